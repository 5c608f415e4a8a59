# Options that every target shares: language, warnings, sanitizers, linker, compiler cache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# Contraction to FMA within an expression is allowed and nothing else that changes results; the compiler's own sources
# take no contraction, so that the interpreters and constant folding do not depend on the host's instructions.
add_compile_options(-Wall -Wextra -Wno-missing-designated-field-initializers -ffp-contract=off -fno-math-errno -fdebug-compilation-dir=. -fcolor-diagnostics)
add_link_options(-fuse-ld=lld -Wl,--gc-sections -Wl,--as-needed)
# One kind of code for libraries and programs, so that one precompiled header serves both.
add_compile_options(-fPIC -ffunction-sections -fdata-sections)

if(LATHE_SANITIZE)
  add_compile_options(-fsanitize=${LATHE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LATHE_SANITIZE})
  if(LATHE_PYTHON)
    # One runtime of the sanitizer in the process: Python, which has none, loads it first (scripts/parts.py).
    add_link_options(-shared-libsan -frtlib-add-rpath)
  endif()
endif()
if(LATHE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(LATHE_SEEDED_FAULTS)
  add_compile_definitions(LATHE_SEEDED_FAULTS=1)
endif()

# The cache is shared by clones and worktrees at any path: sources are named relative to the build folder, the working
# directory is not hashed, and the precompiled header is known by the sum written beside it (cmake/room.cmake).
find_program(LATHE_CCACHE ccache)
if(LATHE_CCACHE)
  foreach(language C CXX)
    set(CMAKE_${language}_COMPILER_LAUNCHER
      env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1 CCACHE_MAXSIZE=10G
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${LATHE_CCACHE})
  endforeach()
endif()
