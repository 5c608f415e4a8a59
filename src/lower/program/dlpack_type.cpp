#include "lower/program/dlpack_type.h"

namespace lathe::lower {

DLDataType dlpack_type(ir::DType dtype) {
  using ir::TypeCode;
  uint8_t code = kDLOpaqueHandle;
  switch (dtype.code) {
    case TypeCode::int_: code = kDLInt; break;
    case TypeCode::uint: code = kDLUInt; break;
    case TypeCode::boolean: return {kDLBool, 8, dtype.lanes};  // a byte in memory
    case TypeCode::float_: code = kDLFloat; break;
    case TypeCode::bfloat: code = kDLBfloat; break;
    case TypeCode::float8_e4m3fn: code = kDLFloat8_e4m3fn; break;
    case TypeCode::float8_e4m3fnuz: code = kDLFloat8_e4m3fnuz; break;
    case TypeCode::float8_e5m2: code = kDLFloat8_e5m2; break;
    case TypeCode::float8_e5m2fnuz: code = kDLFloat8_e5m2fnuz; break;
    case TypeCode::float8_e8m0fnu: code = kDLFloat8_e8m0fnu; break;
    case TypeCode::float4_e2m1fn: code = kDLFloat4_e2m1fn; break;
    case TypeCode::handle:
    case TypeCode::void_: break;
  }
  return {code, dtype.bits, dtype.lanes};
}

}  // namespace lathe::lower
