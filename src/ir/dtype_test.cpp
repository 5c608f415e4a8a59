#include "ir/dtype.h"

#include <gtest/gtest.h>

namespace lathe::ir {
namespace {

TEST(dtype, prints_what_it_parses) {
  std::vector<std::string> names{
      "bool",          "bfloat16",      "float16",         "float32",           "float64",         "handle",
      "void",          "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",       "float8_e5m2fnuz", "float8_e8m0fnu",
      "float4_e2m1fn", "float8_e3m4",   "float8_e4m3",     "float8_e4m3b11fnuz"};
  for (int bits = 1; bits <= 64; ++bits) {
    names.push_back("int" + std::to_string(bits));
    names.push_back("uint" + std::to_string(bits));
  }
  for (const std::string& name : names)
    for (const std::string suffix : {"", "x2", "x3", "x16", "x65535"}) {
      const auto dtype = DType::parse(name + suffix);
      ASSERT_TRUE(dtype) << name + suffix;
      EXPECT_EQ(dtype->str(), name + suffix);
    }
  EXPECT_EQ(DType::parse("float32x1"), DType::float32());
}

TEST(dtype, refuses_what_names_no_type) {
  for (const char* name :
       {"", "int", "int0", "int65", "uint-8", "float8", "float31", "float128", "bfloat32", "int32x0", "int32x",
        "int32x65536", "x4", "Int32", "int32 ", " int32", "int32x4x4", "float8_e4m4", "int99999999999999999999"})
    EXPECT_FALSE(DType::parse(name)) << name;
}

TEST(dtype, sizes) {
  EXPECT_EQ(DType::boolean().element_bytes(), 1);
  EXPECT_EQ(DType::int_(4).storage_bytes(3), 2);
  EXPECT_EQ(DType::int_(2).storage_bytes(5), 2);
  EXPECT_EQ(DType::boolean().storage_bytes(3), 3);
  EXPECT_EQ(DType::float_(32, 4).storage_bytes(2), 32);
  EXPECT_EQ(DType::float_(64).storage_bytes(0), 0);
}

TEST(dtype, integers_wrap_as_their_bits_do) {
  for (int bits = 1; bits <= 12; ++bits)
    for (const DType t : {DType::int_(bits), DType::uint(bits)}) {
      const int64_t modulus = int64_t{1} << bits;
      for (int64_t value = -3 * modulus; value <= 3 * modulus; ++value) {
        const int64_t wrapped = wrap_integer(value, t);
        EXPECT_EQ((wrapped - value) % modulus, 0);
        EXPECT_LE(min_integer(t), wrapped);
        EXPECT_GE(max_integer(t), wrapped);
      }
    }
  EXPECT_EQ(wrap_integer(7, DType::boolean()), 1);
  EXPECT_EQ(wrap_integer(INT64_MIN, DType::int64()), INT64_MIN);
  EXPECT_EQ(static_cast<uint64_t>(max_integer(DType::uint(64))), UINT64_MAX);
  EXPECT_EQ(max_integer(DType::uint(63)), INT64_MAX);
}

}  // namespace
}  // namespace lathe::ir
