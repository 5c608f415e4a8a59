# What users meet: the `lathe` command (tools/lathe) and the Python extension (python/bindings), both over `driver`.

# LLVM's and protobuf's symbols stay inside, so that another copy in the process never meets ours.
function(lathe_hide_symbols target)
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL -Wl,-Bsymbolic)
endfunction()

# The command is a library, lathe_tool, over which the binary's main and `python -m lathe` are thin.
file(GLOB_RECURSE command_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/lathe/*.cpp)
list(FILTER command_sources EXCLUDE REGEX "(_test|_fuzz|/main)\\.cpp$")
if(TARGET lathe_driver AND command_sources)
  find_package(CLI11 REQUIRED)
  add_library(lathe_tool STATIC ${command_sources})
  lathe_use_standard_header(lathe_tool)
  target_include_directories(lathe_tool PUBLIC ${CMAKE_SOURCE_DIR}/tools/lathe)
  target_link_libraries(lathe_tool PUBLIC lathe_driver PRIVATE CLI11::CLI11 zip)
  if(LATHE_FUZZ)
    set(arrays ${CMAKE_SOURCE_DIR}/tools/lathe/arrays)
    add_executable(npy_fuzz ${arrays}/npy_fuzz.cpp ${arrays}/npy.cpp)
    lathe_use_standard_header(npy_fuzz)
    target_include_directories(npy_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/tools/lathe)
    target_link_libraries(npy_fuzz PRIVATE lathe_ir zip)
    target_link_options(npy_fuzz PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers npy_fuzz)
  endif()
  add_executable(lathe ${CMAKE_SOURCE_DIR}/tools/lathe/main.cpp)
  target_link_libraries(lathe PRIVATE lathe_tool)
  if(NOT LATHE_SANITIZE) # the sanitizer's memory functions stand for those that libraries call, too
    target_link_options(lathe PRIVATE -Wl,--exclude-libs,ALL)
  endif()
  set_target_properties(lathe PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  if(SKBUILD)
    install(TARGETS lathe DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
  endif()
endif()

file(GLOB_RECURSE binding_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/bindings/*.cpp)
if(LATHE_PYTHON AND TARGET lathe_tool AND binding_sources)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
    OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  find_package(nanobind CONFIG REQUIRED)
  nanobind_add_module(lathe_python NB_STATIC ${binding_sources})
  set_target_properties(lathe_python PROPERTIES OUTPUT_NAME _lathe)
  set(package ${CMAKE_SOURCE_DIR}/python/lathe)
  if(NOT CMAKE_BINARY_DIR STREQUAL ${CMAKE_SOURCE_DIR}/build)
    # Beside links to the package's sources, which tests/support/paths.py finds first.
    set(package ${CMAKE_BINARY_DIR}/python/lathe)
    file(GLOB package_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/lathe/*)
    list(FILTER package_files EXCLUDE REGEX "/(_lathe\\..*|__pycache__)$")
    file(MAKE_DIRECTORY ${package})
    foreach(path ${package_files})
      get_filename_component(name ${path} NAME)
      file(CREATE_LINK ${path} ${package}/${name} SYMBOLIC)
    endforeach()
  endif()
  set_target_properties(lathe_python PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${package})
  target_include_directories(lathe_python PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(lathe_python PRIVATE lathe_tool)
  lathe_hide_symbols(lathe_python)
  set_target_properties(lathe_python PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS lathe_python DESTINATION lathe COMPONENT python)

  # What editors and type checkers know of the package.
  add_custom_command(
    OUTPUT ${CMAKE_BINARY_DIR}/stubs/_lathe.pyi
    COMMAND ${Python_EXECUTABLE} -m scripts.stubs ${CMAKE_BINARY_DIR}/stubs ${package}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    DEPENDS lathe_python ${CMAKE_SOURCE_DIR}/scripts/stubs.py VERBATIM)
  add_custom_target(lathe_stubs DEPENDS ${CMAKE_BINARY_DIR}/stubs/_lathe.pyi)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/stubs/ DESTINATION lathe COMPONENT python OPTIONAL)
endif()

# Beside the extension: what a program that opens artifacts needs.
if(TARGET lathe_runtime_shared)
  install(TARGETS lathe_runtime_shared lathe_runtime DESTINATION lathe/lib COMPONENT python)
  file(GLOB abi_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/abi/*.h)
  install(FILES ${abi_headers} DESTINATION lathe/include/abi COMPONENT python)
endif()

# All that a user runs, without the tests.
add_custom_target(product)
foreach(target lathe lathe_python lathe_runtime_shared)
  if(TARGET ${target})
    add_dependencies(product ${target})
  endif()
endforeach()
