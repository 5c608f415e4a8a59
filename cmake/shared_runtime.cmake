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
  -Wl,--version-script=${CMAKE_BINARY_DIR}/lathe_runtime.map -Wl,-Bsymbolic
  -Wl,-z,nodelete) # its worker threads and fork handlers must outlive a dlclose
if(NOT LATHE_SANITIZE)
  target_link_options(lathe_runtime_shared PRIVATE -Wl,-z,defs)
endif()

# The size is printed and held, and so is what it needs (scripts/checks do not build, so it is a test).
if(LATHE_TESTS AND NOT LATHE_SANITIZE AND NOT LATHE_FUZZ)
  add_test(NAME runtime_size COMMAND ${CMAKE_COMMAND}
    -DLIBRARY=$<TARGET_FILE:lathe_runtime_shared> -DSTRIP=${CMAKE_STRIP} -DREADELF=${CMAKE_READELF}
    -DCOPY=${CMAKE_BINARY_DIR}/liblathe_runtime.stripped.so -P ${CMAKE_SOURCE_DIR}/cmake/check_runtime_size.cmake)
endif()
if(TARGET runtime_test)
  # core/allocation_sweep_test.cpp makes each of these fail once.
  foreach(function malloc calloc realloc posix_memalign free mmap memfd_create)
    target_link_options(runtime_test PRIVATE -Wl,--wrap=${function})
  endforeach()
  add_dependencies(runtime_test lathe_runtime_shared) # its tests build a C program against it
endif()
