// The fixture's functions; compiled into the test binary alone.
#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx::testing {

using schema::AttributeProto;

void add_attribute(schema::NodeProto& node, const Attribute& attribute) {
  AttributeProto& proto = *node.add_attribute();
  proto.set_name(attribute.name);
  if (const auto* i = std::get_if<int64_t>(&attribute.value)) {
    proto.set_type(AttributeProto::INT);
    proto.set_i(*i);
  } else if (const auto* f = std::get_if<float>(&attribute.value)) {
    proto.set_type(AttributeProto::FLOAT);
    proto.set_f(*f);
  } else if (const auto* s = std::get_if<std::string>(&attribute.value)) {
    proto.set_type(AttributeProto::STRING);
    proto.set_s(*s);
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute.value)) {
    proto.set_type(AttributeProto::INTS);
    for (const int64_t each : *ints) proto.add_ints(each);
  } else if (const auto* numbers = std::get_if<std::vector<float>>(&attribute.value)) {
    proto.set_type(AttributeProto::FLOATS);
    for (const float each : *numbers) proto.add_floats(each);
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
    proto.set_type(AttributeProto::STRINGS);
    for (const std::string& each : *texts) proto.add_strings(each);
  } else {
    proto.set_type(AttributeProto::TENSOR);
    *proto.mutable_t() = std::get<schema::TensorProto>(attribute.value);
  }
}

ModelBuilder::ModelBuilder(int64_t opset) {
  proto.set_ir_version(8);
  proto.add_opset_import()->set_version(opset);
  proto.mutable_graph()->set_name("test");
}

ModelBuilder& ModelBuilder::input(const std::string& name, const std::vector<Dim>& dims, int type) {
  auto& value = *proto.mutable_graph()->add_input();
  value.set_name(name);
  auto& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (const Dim& dim : dims) {
    auto& entry = *tensor.mutable_shape()->add_dim();
    if (const auto* number = std::get_if<int64_t>(&dim.value))
      entry.set_dim_value(*number);
    else if (!std::get<std::string>(dim.value).empty())
      entry.set_dim_param(std::get<std::string>(dim.value));
  }
  return *this;
}

ModelBuilder& ModelBuilder::output(const std::string& name) {
  proto.mutable_graph()->add_output()->set_name(name);
  return *this;
}

ModelBuilder& ModelBuilder::weight(const std::string& name, const std::vector<int64_t>& dims,
                                   const std::vector<float>& values) {
  auto& tensor = *proto.mutable_graph()->add_initializer();
  tensor = tensor_proto(floats(dims, values));
  tensor.set_name(name);
  return *this;
}

ModelBuilder& ModelBuilder::integers(const std::string& name, const std::vector<int64_t>& dims,
                                     const std::vector<int64_t>& values) {
  auto& tensor = *proto.mutable_graph()->add_initializer();
  tensor = tensor_proto(longs(dims, values));
  tensor.set_name(name);
  return *this;
}

ModelBuilder& ModelBuilder::node(const std::string& type, const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs, const std::vector<Attribute>& attributes) {
  auto& node = *proto.mutable_graph()->add_node();
  node.set_op_type(type);
  for (const std::string& name : inputs) node.add_input(name);
  for (const std::string& name : outputs) node.add_output(name);
  for (const Attribute& attribute : attributes) add_attribute(node, attribute);
  return *this;
}

Result<ir::IRModule> ModelBuilder::import(const ImportOptions& options) const {
  return import_onnx(ModelBytes{.content = std::make_shared<const std::string>(bytes())}, options);
}

std::vector<TensorData> ModelBuilder::run(const std::vector<TensorData>& inputs, const ImportOptions& options) const {
  const auto module = import(options);
  if (!module.ok()) {
    ADD_FAILURE() << text_of(module.diagnostics());
    return {};
  }
  const auto outputs = relax::evaluate(*module, "main", inputs);
  if (outputs.ok()) return *outputs;
  ADD_FAILURE() << text_of(outputs.diagnostics());
  return {};
}

std::string ModelBuilder::refusal(const ImportOptions& options) const {
  const auto module = import(options);
  EXPECT_FALSE(module.ok()) << "the model was accepted";
  return module.ok() ? "" : text_of(module.diagnostics());
}

TensorData floats(std::vector<int64_t> dims, const std::vector<float>& values) {
  return ir::tensor_of<float>(DType::float32(), std::move(dims), values);
}
TensorData longs(std::vector<int64_t> dims, const std::vector<int64_t>& values) {
  return ir::tensor_of<int64_t>(DType::int64(), std::move(dims), values);
}
TensorData bools(std::vector<int64_t> dims, const std::vector<int>& values) {
  std::string bytes;
  for (const int value : values) bytes += static_cast<char>(value);
  return ir::tensor_data(DType::boolean(), std::move(dims), std::move(bytes));
}
TensorData random_floats(std::vector<int64_t> dims, uint32_t seed) {
  std::mt19937 random(seed);
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(random() % 2001) / 500.0f - 1.75f);
  return floats(std::move(dims), values);
}

schema::TensorProto tensor_proto(const TensorData& data) {
  schema::TensorProto proto;
  for (const int64_t dim : data->shape) proto.add_dims(dim);
  const DType t = data->dtype;
  proto.set_data_type(t == DType::float32() ? Type::FLOAT
                      : t == DType::int64() ? Type::INT64
                      : t == DType::int32() ? Type::INT32
                      : t.is_bool()         ? Type::BOOL
                                            : Type::DOUBLE);
  proto.set_raw_data(std::string(data->view()));
  return proto;
}

std::string text_of(const Diagnostics& diagnostics) {
  std::string text;
  for (const auto& d : diagnostics) text += std::string(d.code.name) + ": " + support::render(d);
  return text;
}

std::string failure(const ModelBuilder& m, const std::vector<TensorData>& inputs) {
  const auto results = relax::evaluate(m.import().value_or_throw(), "main", inputs);
  return results.ok() ? "" : text_of(results.diagnostics());
}

void expect_close(const TensorData& actual, const TensorData& expected, double tolerance) {
  ASSERT_TRUE(actual && expected);
  ASSERT_EQ(actual->shape, expected->shape);
  ASSERT_EQ(actual->dtype.str(), expected->dtype.str());
  for (int64_t i = 0; i < expected->elements(); ++i) {
    const double a = ir::float_at(*actual, i), e = ir::float_at(*expected, i);
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    ASSERT_NEAR(a, e, tolerance * std::max(1.0, std::fabs(e))) << "element " << i;
  }
}
void expect_floats(const TensorData& actual, const std::vector<int64_t>& dims, const std::vector<float>& values) {
  expect_close(actual, floats(dims, values));
}
void expect_longs(const TensorData& actual, const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
  expect_close(actual, longs(dims, values));
}

}  // namespace lathe::onnx::testing
