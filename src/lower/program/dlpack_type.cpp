#include "lower/program/dlpack_type.h"

namespace lathe::lower {
namespace {

struct Row {
  ir::TypeCode ours;
  uint8_t theirs;
};
constexpr Row rows[] = {
    {ir::TypeCode::int_, kDLInt},
    {ir::TypeCode::uint, kDLUInt},
    {ir::TypeCode::float_, kDLFloat},
    {ir::TypeCode::bfloat, kDLBfloat},
    {ir::TypeCode::float8_e4m3fn, kDLFloat8_e4m3fn},
    {ir::TypeCode::float8_e4m3fnuz, kDLFloat8_e4m3fnuz},
    {ir::TypeCode::float8_e5m2, kDLFloat8_e5m2},
    {ir::TypeCode::float8_e5m2fnuz, kDLFloat8_e5m2fnuz},
    {ir::TypeCode::float8_e8m0fnu, kDLFloat8_e8m0fnu},
    {ir::TypeCode::float4_e2m1fn, kDLFloat4_e2m1fn},
    {ir::TypeCode::handle, kDLOpaqueHandle},
};

}  // namespace

DLDataType dlpack_type(ir::DType dtype) {
  if (dtype.is_bool()) return {kDLBool, 8, dtype.lanes};  // a byte in memory
  for (const Row& row : rows)
    if (row.ours == dtype.code) return {row.theirs, dtype.bits, dtype.lanes};
  return {kDLOpaqueHandle, 0, 1};
}

ir::DType dtype_of(DLDataType type) {
  if (type.code == kDLOpaqueHandle && type.bits == 0) return ir::DType::void_();
  if (type.code == kDLBool) return ir::DType::boolean(type.lanes);
  for (const Row& row : rows)
    if (row.theirs == type.code) return {row.ours, type.bits, type.lanes};
  return ir::DType::void_();
}

}  // namespace lathe::lower
