#include "ir/formats/dlpack_type.h"

#include <gtest/gtest.h>

namespace lathe::ir {
namespace {

bool equal(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

TEST(dlpack_type, every_type_comes_back) {
  const char* names[] = {"int4",
                         "int8",
                         "int16",
                         "int32",
                         "int64",
                         "uint4",
                         "uint8",
                         "uint16",
                         "uint32",
                         "uint64",
                         "bool",
                         "float16",
                         "float32",
                         "float64",
                         "bfloat16",
                         "float8_e4m3fn",
                         "float8_e5m2",
                         "float8_e4m3fnuz",
                         "float8_e5m2fnuz",
                         "float8_e8m0fnu",
                         "float8_e3m4",
                         "float8_e4m3",
                         "float8_e4m3b11fnuz",
                         "float4_e2m1fn",
                         "handle",
                         "int8x16",
                         "float32x4",
                         "boolx8",
                         "void"};
  std::vector<DLDataType> seen;
  for (const char* name : names) {
    const auto dtype = DType::parse(name);
    ASSERT_TRUE(dtype) << name;
    const DLDataType theirs = dlpack_type(*dtype);
    EXPECT_EQ(dtype_of(theirs), *dtype) << name << " came back as " << dtype_of(theirs).str();
    for (const DLDataType& other : seen) EXPECT_FALSE(equal(theirs, other)) << name;
    seen.push_back(theirs);
  }
}

// The numbers of the DLPack specification, written out.
TEST(dlpack_type, uses_the_numbers_of_the_specification) {
  const struct {
    DType ours;
    DLDataType theirs;
  } rows[] = {
      {DType::int64(), {0, 64, 1}},
      {DType::uint(8), {1, 8, 1}},
      {DType::float_(16), {2, 16, 1}},
      {DType::float32(), {2, 32, 1}},
      {DType::handle(), {3, 64, 1}},
      {DType::bfloat16(), {4, 16, 1}},
      {DType::boolean(), {6, 8, 1}},
      {DType::float_(32, 4), {2, 32, 4}},
      {*DType::parse("float8_e3m4"), {7, 8, 1}},
      {*DType::parse("float8_e4m3fn"), {10, 8, 1}},
      {*DType::parse("float8_e5m2"), {12, 8, 1}},
  };
  for (const auto& row : rows) EXPECT_TRUE(equal(dlpack_type(row.ours), row.theirs)) << row.ours.str();
}

TEST(dlpack_type, has_no_type_for_complex_numbers) {
  EXPECT_TRUE(dtype_of({kDLComplex, 64, 1}).is_void());
  EXPECT_TRUE(dtype_of({200, 8, 1}).is_void());
}

}  // namespace
}  // namespace lathe::ir
