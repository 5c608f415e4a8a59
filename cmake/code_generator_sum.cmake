# The kernel cache finds what the same code generator made. It is known by a sum over the sources that decide which code
# a kernel becomes; the sum is written anew when one of them changes. As a script (cmake -P) this writes it.
if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB_RECURSE files ${SOURCE}/src/codegen/emit/*.cpp ${SOURCE}/src/codegen/emit/*.h ${SOURCE}/src/codegen/llvm/*.cpp
       ${SOURCE}/src/codegen/llvm/*.h ${SOURCE}/src/abi/*.h)
  list(FILTER files EXCLUDE REGEX "_(test|fuzz)\\.")
  list(SORT files)
  set(sums "")
  foreach(file IN LISTS files)
    file(SHA256 ${file} sum)
    string(APPEND sums "${sum}\n")
  endforeach()
  string(SHA256 sum "${sums}")
  string(SUBSTRING ${sum} 0 32 sum)
  file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
       "#include \"codegen/llvm/code_generator_sum.h\"\n\nconst char* const lathe::codegen::code_generator_sum = \"${sum}\";\n")
  return()
endif()

if(NOT TARGET lathe_codegen_llvm)
  return()
endif()
file(GLOB_RECURSE generator_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/codegen/emit/*.cpp
     ${CMAKE_SOURCE_DIR}/src/codegen/emit/*.h ${CMAKE_SOURCE_DIR}/src/codegen/llvm/*.cpp
     ${CMAKE_SOURCE_DIR}/src/codegen/llvm/*.h ${CMAKE_SOURCE_DIR}/src/abi/*.h)
set(generator_sum ${CMAKE_BINARY_DIR}/code_generator_sum.cpp)
add_custom_command(
  OUTPUT ${generator_sum}
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${generator_sum} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${generator_files} ${CMAKE_CURRENT_LIST_FILE})
set_source_files_properties(${generator_sum} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_sources(lathe_codegen_llvm PRIVATE ${generator_sum})
