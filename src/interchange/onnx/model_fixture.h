// For tests: models built field by field, imported, and evaluated by the interpreter of graphs.
#pragma once

#include <gtest/gtest.h>

#include "interchange/onnx/import.h"
#include "interchange/onnx/read/model.h"
#include "onnx_schema.pb.h"
#include "relax/interpret/evaluate.h"

namespace lathe::onnx::testing {

using ir::DType;
using ir::TensorData;
using support::Diagnostics;
using support::Result;
using Type = schema::TensorProto;

// An attribute of a node: {"axis", 1}, {"pads", {0, 1}}, {"mode", "edge"}, {"alpha", 0.5f}, {"value", tensor}.
struct Attribute {
  using Value = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                             std::vector<std::string>, schema::TensorProto>;
  std::string name;
  Value value;
  Attribute(std::string n, int v) : name(std::move(n)), value(static_cast<int64_t>(v)) {}
  Attribute(std::string n, int64_t v) : name(std::move(n)), value(v) {}
  Attribute(std::string n, float v) : name(std::move(n)), value(v) {}
  Attribute(std::string n, const char* v) : name(std::move(n)), value(std::string(v)) {}
  Attribute(std::string n, std::vector<int64_t> v) : name(std::move(n)), value(std::move(v)) {}
  Attribute(std::string n, std::vector<float> v) : name(std::move(n)), value(std::move(v)) {}
  Attribute(std::string n, std::vector<std::string> v) : name(std::move(n)), value(std::move(v)) {}
  Attribute(std::string n, schema::TensorProto v) : name(std::move(n)), value(std::move(v)) {}
};

void add_attribute(schema::NodeProto& node, const Attribute& attribute);

// A dimension of an input: a number, a name, or "" for an unnamed one.
struct Dim {
  std::variant<int64_t, std::string> value;
  Dim(int v) : value(static_cast<int64_t>(v)) {}
  Dim(int64_t v) : value(v) {}
  Dim(const char* v) : value(std::string(v)) {}
};

class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 17);

  ModelBuilder& input(const std::string& name, const std::vector<Dim>& dims, int type = Type::FLOAT);
  ModelBuilder& output(const std::string& name);
  ModelBuilder& weight(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& values);
  ModelBuilder& integers(const std::string& name, const std::vector<int64_t>& dims, const std::vector<int64_t>& values);
  ModelBuilder& node(const std::string& type, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, const std::vector<Attribute>& attributes = {});

  std::string bytes() const { return proto.SerializeAsString(); }
  Result<ir::IRModule> import(const ImportOptions& options = {}) const;
  // The outputs for these inputs; a test failure where the model is refused.
  std::vector<TensorData> run(const std::vector<TensorData>& inputs, const ImportOptions& options = {}) const;
  // The diagnostics of a model that must be refused, as one text; each starts with its code.
  std::string refusal(const ImportOptions& options = {}) const;

  schema::ModelProto proto;
};

// What the run of a model says of these inputs; empty where it says nothing.
std::string failure(const ModelBuilder& m, const std::vector<TensorData>& inputs);

TensorData floats(std::vector<int64_t> dims, const std::vector<float>& values);
TensorData longs(std::vector<int64_t> dims, const std::vector<int64_t>& values);
TensorData bools(std::vector<int64_t> dims, const std::vector<int>& values);
// Values without symmetry, different for different seeds.
TensorData random_floats(std::vector<int64_t> dims, uint32_t seed);
schema::TensorProto tensor_proto(const TensorData& data);
std::string text_of(const Diagnostics& diagnostics);

// Same shape and type, and close element by element.
void expect_close(const TensorData& actual, const TensorData& expected, double tolerance = 1e-5);
void expect_floats(const TensorData& actual, const std::vector<int64_t>& dims, const std::vector<float>& values);
void expect_longs(const TensorData& actual, const std::vector<int64_t>& dims, const std::vector<int64_t>& values);

}  // namespace lathe::onnx::testing
