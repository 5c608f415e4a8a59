#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

// x + w, where `change` damages w.
template <class Change>
ModelBuilder with_weight(const Change& change) {
  ModelBuilder m;
  m.input("x", {2, 3}).weight("w", {2, 3}, {1, 2, 3, 4, 5, 6}).node("Add", {"x", "w"}, {"y"}).output("y");
  change(*m.proto.mutable_graph()->mutable_initializer(0));
  return m;
}

TEST(Tensor, payloads_must_fit_the_dims) {
  const auto payload = [](size_t size) {
    return with_weight([&](Type& w) { w.set_raw_data(std::string(size, '\1')); }).refusal();
  };
  EXPECT_NE(payload(23).find("payload of 23 bytes, but float32[2, 3] takes 24"), std::string::npos);
  EXPECT_NE(payload(4096).find("4096"), std::string::npos);
  EXPECT_NE(payload(0).find("'w'"), std::string::npos);
  const std::string typed = with_weight([](Type& w) {
                              w.clear_raw_data();
                              for (int i = 0; i < 5; ++i) w.add_float_data(1);
                            }).refusal();
  EXPECT_NE(typed.find("has 5 values, but float32[2, 3] takes 6"), std::string::npos) << typed;
  EXPECT_NE(with_weight([](Type& w) { w.mutable_segment()->set_begin(0); }).refusal().find("segments"),
            std::string::npos);
}

TEST(Tensor, dims_are_checked_before_anything_is_made) {
  const auto dims = [](std::vector<int64_t> values) {
    return with_weight([&](Type& w) {
             w.clear_dims();
             for (const int64_t v : values) w.add_dims(v);
           })
        .refusal();
  };
  EXPECT_NE(dims({-3, -4}).find("onnx-wrong-tensor: model.onnx: the initializer 'w' has the negative dimension -3"),
            std::string::npos);
  EXPECT_NE(dims({int64_t{1} << 62, 4}).find("more than any memory holds"), std::string::npos);
  EXPECT_NE(dims({int64_t{1} << 32, int64_t{1} << 32, 12}).find("more than any memory holds"), std::string::npos);
  EXPECT_NE(dims(std::vector<int64_t>(100, 1)).find("100 dimensions"), std::string::npos);
}

TEST(Tensor, element_types_are_named) {
  const auto type = [](int number) { return with_weight([&](Type& w) { w.set_data_type(number); }).refusal(); };
  EXPECT_NE(type(999).find("the unknown element type 999"), std::string::npos);
  EXPECT_NE(type(0).find("no element type"), std::string::npos);
  EXPECT_NE(type(8).find("the initializer 'w' holds strings, which lie in string_data alone"), std::string::npos);
  EXPECT_NE(type(14).find("COMPLEX64"), std::string::npos);
}

TEST(Tensor, as_many_strings_as_the_dims_say) {
  const auto strings = [](std::vector<int64_t> dims) {
    return with_weight([&](Type& w) {
             w.clear_raw_data();
             w.clear_dims();
             for (const int64_t dim : dims) w.add_dims(dim);
             w.set_data_type(Type::STRING);
             w.add_string_data("a");
           })
        .refusal();
  };
  EXPECT_NE(strings({2}).find("has 1 strings for the dimensions [2]"), std::string::npos);
  EXPECT_NE(strings({int64_t{1} << 40, int64_t{1} << 40}).find("has 1 strings"), std::string::npos);
  EXPECT_NE(strings({-1}).find("negative dimension"), std::string::npos);
  EXPECT_NE(strings(std::vector<int64_t>(100, 1)).find("100 dimensions"), std::string::npos);
}

// Values stored in the typed field of every element type that is compiled.
TEST(Tensor, typed_values_are_read) {
  for (int number = 1; number <= 20; ++number) {
    const auto dtype = element_type(number, "w", {});
    if (!dtype.ok() || number == Type::STRING) continue;
    ModelBuilder m;
    auto& w = *m.proto.mutable_graph()->add_initializer();
    w.set_name("w");
    w.add_dims(2);
    w.set_data_type(number);
    const bool narrow = dtype->is_floating() && dtype->bits <= 16;
    for (const int value : {1, 0}) {
      if (*dtype == DType::float32())
        w.add_float_data(static_cast<float>(value));
      else if (*dtype == DType::float_(64))
        w.add_double_data(value);
      else if (*dtype == DType::int64())
        w.add_int64_data(value);
      else if (dtype->is_uint() && dtype->bits >= 32)
        w.add_uint64_data(static_cast<uint64_t>(value));
      else
        w.add_int32_data(narrow ? static_cast<int>(ir::encode_float(*dtype, value)) : value);
    }
    m.output("w");
    const std::vector<TensorData> outputs = m.run({});
    ASSERT_EQ(outputs.size(), 1u) << dtype->str();
    EXPECT_EQ(outputs[0]->dtype, *dtype);
    EXPECT_EQ(ir::float_at(*outputs[0], 0), 1) << dtype->str();
    EXPECT_EQ(ir::float_at(*outputs[0], 1), 0) << dtype->str();
  }
}

// Elements below a byte, low bits first, in bytes of their own field or of raw data; bits past the last one are free.
TEST(Tensor, packed_values_are_read) {
  const auto read = [](int number, int64_t count, const std::string& bytes, bool raw) {
    ModelBuilder m;
    auto& w = *m.proto.mutable_graph()->add_initializer();
    w.set_name("w");
    w.add_dims(count);
    w.set_data_type(number);
    if (raw) w.set_raw_data(bytes);
    for (size_t i = 0; !raw && i < bytes.size(); ++i) w.add_int32_data(static_cast<uint8_t>(bytes[i]));
    m.output("w");
    const TensorData read = m.run({}).at(0);
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(ir::float_at(*read, i));
    return values;
  };
  using Values = std::vector<double>;
  for (const bool raw : {false, true}) {
    EXPECT_EQ(read(21, 3, "\x21\xff", raw), (Values{1, 2, 15}));
    EXPECT_EQ(read(22, 3, "\x81\x07", raw), (Values{1, -8, 7}));
    EXPECT_EQ(read(23, 3, "\x71\x0a", raw), (Values{0.5, 6, -1}));
    EXPECT_EQ(read(25, 5, "\xe4\x02", raw), (Values{0, 1, 2, 3, 2}));
    EXPECT_EQ(read(26, 5, "\xe4\x02", raw), (Values{0, 1, -2, -1, -2}));
  }
  EXPECT_EQ(checked_bytes(std::vector<int64_t>{3, 3}, DType::int_(4)), 5);
  EXPECT_EQ(checked_bytes(std::vector<int64_t>{}, DType::uint(2)), 1);
}

TEST(Tensor, bools_are_zero_or_one) {
  ModelBuilder m;
  auto& w = *m.proto.mutable_graph()->add_initializer();
  w = tensor_proto(bools({3}, {0, 2, 1}));
  w.set_name("w");
  m.output("w");
  EXPECT_EQ(m.run({}).at(0)->view(), std::string_view("\0\1\1", 3));
}

TEST(Tensor, sparse_tensors_become_dense) {
  const auto model = [](const std::vector<int64_t>& indices, std::vector<int64_t> index_dims) {
    ModelBuilder m;
    auto& s = *m.proto.mutable_graph()->add_sparse_initializer();
    *s.mutable_values() = tensor_proto(floats({2}, {5, 7}));
    s.mutable_values()->set_name("w");
    *s.mutable_indices() = tensor_proto(longs(std::move(index_dims), indices));
    s.add_dims(2);
    s.add_dims(3);
    m.output("w");
    return m;
  };
  expect_floats(model({1, 5}, {2}).run({}).at(0), {2, 3}, {0, 5, 0, 0, 0, 7});
  expect_floats(model({0, 2, 1, 0}, {2, 2}).run({}).at(0), {2, 3}, {0, 0, 5, 7, 0, 0});
  ModelBuilder packed;
  auto& s = *packed.proto.mutable_graph()->add_sparse_initializer();
  s.mutable_values()->set_name("w");
  s.mutable_values()->set_data_type(22);
  s.mutable_values()->add_dims(2);
  s.mutable_values()->set_raw_data("\xe5");
  *s.mutable_indices() = tensor_proto(longs({2}, {1, 4}));
  s.add_dims(5);
  packed.output("w");
  const TensorData dense = packed.run({}).at(0);
  const int64_t wanted[] = {0, 5, 0, 0, -2};
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(ir::int_at(*dense, i), wanted[i]) << i;
  EXPECT_NE(model({1, 6}, {2}).refusal().find("index 6"), std::string::npos);
  EXPECT_NE(model({0, -1, 1, 0}, {2, 2}).refusal().find("index -1"), std::string::npos);
  EXPECT_NE(model({1}, {1}).refusal().find("do not fit"), std::string::npos);
}

TEST(Tensor, bytes_are_counted_in_64_bits) {
  EXPECT_EQ(checked_bytes(std::vector<int64_t>{2, 3}, DType::float32()), 24);
  EXPECT_EQ(checked_bytes(std::vector<int64_t>{}, DType::float_(64)), 8);
  EXPECT_EQ(checked_bytes(std::vector<int64_t>{0, 5}, DType::float32()), 0);
  EXPECT_EQ(checked_bytes(std::vector<int64_t>{int64_t{1} << 32, int64_t{1} << 32}, DType::int_(8)), std::nullopt);
  EXPECT_EQ(checked_bytes(std::vector<int64_t>{(int64_t{1} << 33) + 1, int64_t{1} << 31, 4}, DType::int_(8)),
            std::nullopt);
}

}  // namespace
}  // namespace lathe::onnx
