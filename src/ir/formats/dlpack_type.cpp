#include "ir/formats/dlpack_type.h"

namespace lathe::ir {
namespace {

struct Row {
  TypeCode ours;
  uint8_t theirs;
};
constexpr Row rows[] = {
    {TypeCode::int_, kDLInt},
    {TypeCode::uint, kDLUInt},
    {TypeCode::float_, kDLFloat},
    {TypeCode::bfloat, kDLBfloat},
    {TypeCode::float8_e3m4, kDLFloat8_e3m4},
    {TypeCode::float8_e4m3, kDLFloat8_e4m3},
    {TypeCode::float8_e4m3b11fnuz, kDLFloat8_e4m3b11fnuz},
    {TypeCode::float8_e4m3fn, kDLFloat8_e4m3fn},
    {TypeCode::float8_e4m3fnuz, kDLFloat8_e4m3fnuz},
    {TypeCode::float8_e5m2, kDLFloat8_e5m2},
    {TypeCode::float8_e5m2fnuz, kDLFloat8_e5m2fnuz},
    {TypeCode::float8_e8m0fnu, kDLFloat8_e8m0fnu},
    {TypeCode::float4_e2m1fn, kDLFloat4_e2m1fn},
    {TypeCode::handle, kDLOpaqueHandle},
};

}  // namespace

DLDataType dlpack_type(DType dtype) {
  if (dtype.is_bool()) return {kDLBool, 8, dtype.lanes};  // a byte in memory
  for (const Row& row : rows)
    if (row.ours == dtype.code) return {row.theirs, dtype.bits, dtype.lanes};
  return {kDLOpaqueHandle, 0, 1};
}

DType dtype_of(DLDataType type) {
  if (type.code == kDLOpaqueHandle && type.bits == 0) return DType::void_();
  if (type.code == kDLBool) return DType::boolean(type.lanes);
  for (const Row& row : rows)
    if (row.theirs == type.code) return {row.ours, type.bits, type.lanes};
  return DType::void_();
}

}  // namespace lathe::ir
