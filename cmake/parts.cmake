# The outside parts that rooms are built from. Each is one target, given to the rooms that name it in LATHE_ROOM_PARTS.
find_package(Threads REQUIRED)
find_path(LATHE_FMT_INCLUDE fmt/format.h REQUIRED)

# part_<room> lists the targets, with / written as _.
set(part_support Threads::Threads)
set(part_codegen_llvm lathe_llvm)
set(part_interchange lathe_onnx_schema)

# LLVM and lld. The headers reach the one room that names this target.
add_library(lathe_llvm INTERFACE)
set(LATHE_LLVM_ROOT /usr/lib/llvm-19 CACHE PATH "Where LLVM 19 and lld are installed")
target_include_directories(lathe_llvm SYSTEM INTERFACE ${LATHE_LLVM_ROOT}/include)
target_link_libraries(lathe_llvm INTERFACE
  ${LATHE_LLVM_ROOT}/lib/liblldELF.a ${LATHE_LLVM_ROOT}/lib/liblldCommon.a ${LATHE_LLVM_ROOT}/lib/libLLVM-19.so)
