# The outside parts that rooms are built from. Each is one target, given to the rooms that name it in LATHE_ROOM_PARTS.
find_package(Threads REQUIRED)
find_path(LATHE_FMT_INCLUDE fmt/format.h REQUIRED)

# part_<room> lists what a room's library links besides other rooms, and part_<room>_test what its tests do; / is
# written as _. Include folders reach that room alone.
set(part_support Threads::Threads)
set(part_arith_test z3)
set(part_arith_polyhedral isl)
set(part_runtime_kernels_images lathe_codecs)
set(part_codegen_llvm lathe_llvm)
set(part_codegen_llvm_test lathe_llvm)
set(part_interchange lathe_onnx_schema)
set(part_interchange_test lathe_onnx_schema)
set(part_driver_test lathe_onnx_schema)

# The Python whose packages the build reads: the environment of ./dev, unless the caller (pip) names another.
if(NOT Python_EXECUTABLE AND EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  set(Python_EXECUTABLE ${CMAKE_SOURCE_DIR}/.venv/bin/python)
endif()
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)

# LLVM and lld.
set(LATHE_LLVM_ROOT /usr/lib/llvm-19 CACHE PATH "Where LLVM 19 and lld are installed")
add_library(lathe_llvm INTERFACE)
target_include_directories(lathe_llvm SYSTEM INTERFACE ${LATHE_LLVM_ROOT}/include)
target_link_libraries(lathe_llvm INTERFACE
  ${LATHE_LLVM_ROOT}/lib/liblldELF.a ${LATHE_LLVM_ROOT}/lib/liblldCommon.a ${LATHE_LLVM_ROOT}/lib/libLLVM-19.so z zstd)

# ONNX's schema, as `#include "onnx_schema.pb.h"`: taken from the onnx package and generated for protobuf's lite runtime
# under a namespace of our own, lathe_onnx, so that another copy of onnx in the process never meets ours. The lite
# runtime is linked as a shared library: Debian's static one uses local-exec thread storage, which no extension can hold.
execute_process(
  COMMAND ${Python_EXECUTABLE} -c
    "import importlib.util as u; print(u.find_spec('onnx').submodule_search_locations[0] + '/onnx-ml.proto')"
  OUTPUT_VARIABLE onnx_proto OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_program(LATHE_PROTOC protoc REQUIRED)
set(schema_folder ${CMAKE_BINARY_DIR}/generated/onnx_schema)
file(MAKE_DIRECTORY ${schema_folder})
file(READ ${onnx_proto} schema)
string(REGEX REPLACE "\npackage onnx;" "\npackage lathe_onnx;" schema "${schema}")
file(CONFIGURE OUTPUT ${schema_folder}/onnx_schema.proto CONTENT "${schema}" @ONLY)
add_custom_command(
  OUTPUT ${schema_folder}/onnx_schema.pb.cc ${schema_folder}/onnx_schema.pb.h
  COMMAND ${LATHE_PROTOC} --cpp_out=. onnx_schema.proto
  WORKING_DIRECTORY ${schema_folder}
  DEPENDS ${schema_folder}/onnx_schema.proto VERBATIM)
add_library(lathe_onnx_schema STATIC EXCLUDE_FROM_ALL
  ${schema_folder}/onnx_schema.pb.cc ${schema_folder}/onnx_schema.pb.h)
target_include_directories(lathe_onnx_schema SYSTEM PUBLIC ${schema_folder})
target_link_libraries(lathe_onnx_schema PUBLIC protobuf-lite)

# Beside it, the element types that operators take (src/interchange/onnx/input_types.cpp), as rows of C++.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/scripts/onnx_types.py)
execute_process(COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/onnx_types.py
  OUTPUT_VARIABLE onnx_types COMMAND_ERROR_IS_FATAL ANY)
file(CONFIGURE OUTPUT ${schema_folder}/onnx_types.inc CONTENT "${onnx_types}" @ONLY)
