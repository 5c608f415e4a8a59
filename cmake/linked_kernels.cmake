# Families of runtime kernels (src/runtime/kernels) as the compiler links them into artifacts: each family is one
# relocatable object, whose bytes the driver holds. It is compiled without sanitizers, for any processor of the
# architecture; sections stay apart, so that an artifact keeps the kernels that it calls and no others.
if(NOT TARGET lathe_driver)
  return()
endif()
file(GLOB families RELATIVE ${CMAKE_SOURCE_DIR}/src/runtime/kernels CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/src/runtime/kernels/*)
add_library(lathe_linked_kernels STATIC)
foreach(family IN LISTS families)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/runtime/kernels/${family}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cpp$")
  add_library(lathe_linked_${family} OBJECT ${sources})
  target_include_directories(lathe_linked_${family} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(lathe_linked_${family} PRIVATE
    -fno-exceptions -fno-rtti -fno-threadsafe-statics -O2 -fno-sanitize=all -fno-profile-instr-generate
    -fno-coverage-mapping)
  set(outside "")  # objects of libraries that the family calls
  if(family STREQUAL images)
    set(outside ${LATHE_CODECS_OBJECT})
    target_link_libraries(lathe_linked_images PRIVATE lathe_codecs)
  endif()
  set(object ${CMAKE_BINARY_DIR}/linked_kernels/${family}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/linked_kernels
    COMMAND ${LATHE_LLD} -r -o ${object} $<TARGET_OBJECTS:lathe_linked_${family}> ${outside}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden --strip-debug ${object}
    DEPENDS lathe_linked_${family} ${outside} $<TARGET_OBJECTS:lathe_linked_${family}> COMMAND_EXPAND_LISTS VERBATIM)
  set(holder ${CMAKE_BINARY_DIR}/linked_kernels/${family}.c)
  set(symbol lathe_linked_kernels_${family})
  file(CONFIGURE OUTPUT ${holder} @ONLY CONTENT "// The bytes of ${family}.o.
__asm__(\".pushsection .rodata\\n\"
        \".global ${symbol}_begin, ${symbol}_end\\n\"
        \".balign 16\\n\"
        \"${symbol}_begin: .incbin \\\"${object}\\\"\\n\"
        \"${symbol}_end: .byte 0\\n\"
        \".popsection\");
")
  set_source_files_properties(${holder} PROPERTIES OBJECT_DEPENDS ${object})
  target_sources(lathe_linked_kernels PRIVATE ${holder})
endforeach()
set_target_properties(lathe_linked_kernels PROPERTIES C_COMPILER_LAUNCHER "") # the cache does not see what is included
target_link_libraries(lathe_driver PUBLIC lathe_linked_kernels)
