# liblathe_runtime.so: the runtime with the C interface exported and nothing else. It needs the C library alone: clang's
# C++ standard library is not linked, and an unresolved symbol fails the link.
if(NOT TARGET lathe_runtime)
  return()
endif()
get_target_property(kind lathe_runtime TYPE)
if(kind STREQUAL "INTERFACE_LIBRARY")
  return()
endif()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/lathe_runtime.map CONTENT "{ global: lathe_*; local: *; };\n")
target_compile_options(lathe_runtime PRIVATE -fvisibility=default)
add_library(lathe_runtime_shared SHARED ${CMAKE_BINARY_DIR}/empty.c)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/empty.c CONTENT "")
set_target_properties(lathe_runtime_shared PROPERTIES OUTPUT_NAME lathe_runtime LINKER_LANGUAGE C)
target_link_libraries(lathe_runtime_shared PRIVATE
  -Wl,--whole-archive $<TARGET_FILE:lathe_runtime> -Wl,--no-whole-archive pthread dl)
add_dependencies(lathe_runtime_shared lathe_runtime)
set_property(TARGET lathe_runtime_shared APPEND PROPERTY LINK_DEPENDS $<TARGET_FILE:lathe_runtime>)
target_link_options(lathe_runtime_shared PRIVATE
  -Wl,--version-script=${CMAKE_BINARY_DIR}/lathe_runtime.map -Wl,-Bsymbolic)
if(NOT LATHE_SANITIZE)
  target_link_options(lathe_runtime_shared PRIVATE -Wl,-z,defs)
endif()
