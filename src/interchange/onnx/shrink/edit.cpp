#include "interchange/onnx/shrink/edit.h"

#include "interchange/onnx/read/model.h"
#include "onnx_schema.pb.h"
#include "support/std.h"

namespace lathe::onnx::shrink {
namespace {

using Names = std::set<std::string>;

Names produced_in(const schema::GraphProto& graph) {
  Names names;
  for (const auto& node : graph.node()) names.insert(node.output().begin(), node.output().end());
  return names;
}

void add_reads(const schema::NodeProto& node, Names& names);

// What a subgraph reads and does not make itself.
void add_captured(const schema::GraphProto& graph, Names& names) {
  Names reads, own = produced_in(graph);
  for (const auto& node : graph.node()) add_reads(node, reads);
  for (const auto& output : graph.output()) reads.insert(output.name());
  for (const auto& input : graph.input()) own.insert(input.name());
  for (const auto& initializer : graph.initializer()) own.insert(initializer.name());
  for (const std::string& name : reads)
    if (!own.count(name)) names.insert(name);
}

void add_reads(const schema::NodeProto& node, Names& names) {
  for (const std::string& name : node.input())
    if (!name.empty()) names.insert(name);
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) add_captured(attribute.g(), names);
    for (const auto& graph : attribute.graphs()) add_captured(graph, names);
  }
}

// Keeps the elements of a repeated field for which `keeps` says so.
template <class Field, class Keeps>
void keep_if(Field& field, Keeps&& keeps) {
  Field kept;
  for (auto& element : field)
    if (keeps(element)) kept.Add()->Swap(&element);
  field.Swap(&kept);
}

bool gives_any(const schema::NodeProto& node, const Names& names) {
  return std::any_of(node.output().begin(), node.output().end(),
                     [&](const std::string& name) { return !name.empty() && names.count(name); });
}

// From the outputs backwards: nodes stand in an order in which they can run, or a pass more finds the rest.
Names needed_by_outputs(const schema::GraphProto& graph) {
  Names needed;
  for (const auto& output : graph.output()) needed.insert(output.name());
  for (size_t before = 0; before != needed.size();) {
    before = needed.size();
    for (int i = graph.node_size(); i-- > 0;)
      if (gives_any(graph.node(i), needed)) add_reads(graph.node(i), needed);
  }
  return needed;
}

int64_t bytes_of_element(int type) {
  const auto dtype = element_type(type, "a tensor", {});
  return dtype.ok() && dtype->storage_bits() % 8 == 0 ? dtype->storage_bits() / 8 : 0;
}

// The tensor without what lies past the new extents.
bool crop(schema::TensorProto& tensor, const std::vector<int64_t>& extents) {
  const int64_t width = bytes_of_element(tensor.data_type());
  int64_t count = 1, wanted = 1;
  for (const int64_t extent : tensor.dims()) count *= extent;
  for (const int64_t extent : extents) wanted *= extent;
  if (width == 0 || count * width != static_cast<int64_t>(tensor.raw_data().size())) return false;
  std::string bytes;
  bytes.reserve(static_cast<size_t>(wanted * width));
  for (int64_t i = 0; i < wanted; ++i) {
    int64_t position = 0, rest = i, stride = 1;
    for (size_t d = extents.size(); d-- > 0;) {
      position += rest % extents[d] * stride;
      rest /= extents[d];
      stride *= tensor.dims(static_cast<int>(d));
    }
    bytes.append(tensor.raw_data(), static_cast<size_t>(position * width), static_cast<size_t>(width));
  }
  tensor.set_raw_data(std::move(bytes));
  for (size_t d = 0; d < extents.size(); ++d) tensor.set_dims(static_cast<int>(d), extents[d]);
  return true;
}

bool shrink_tensor(schema::TensorProto& tensor, int64_t from, int64_t to) {
  bool changed = false;
  std::vector<int64_t> extents(tensor.dims().begin(), tensor.dims().end());
  for (int64_t& extent : extents)
    if (extent == from) {
      extent = to;
      changed = true;
    }
  if (changed && !crop(tensor, extents)) return false;
  if (tensor.data_type() != schema::TensorProto::INT64 || tensor.dims_size() > 1) return changed;
  std::string bytes = tensor.raw_data();
  for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    int64_t value = 0;
    std::memcpy(&value, bytes.data() + at, 8);
    if (value != from) continue;
    std::memcpy(bytes.data() + at, &to, 8);
    changed = true;
  }
  tensor.set_raw_data(std::move(bytes));
  return changed;
}

}  // namespace

std::set<std::string> reads_of(const schema::NodeProto& node) {
  Names names;
  add_reads(node, names);
  return names;
}

schema::ModelProto with_every_output(const schema::ModelProto& model) {
  schema::ModelProto every = model;
  Names given;
  for (const auto& output : model.graph().output()) given.insert(output.name());
  for (const auto& node : model.graph().node())
    for (const std::string& name : node.output())
      if (!name.empty() && given.insert(name).second) every.mutable_graph()->add_output()->set_name(name);
  return every;
}

void prune(schema::ModelProto& model) {
  schema::GraphProto& graph = *model.mutable_graph();
  const Names needed = needed_by_outputs(graph);
  keep_if(*graph.mutable_node(), [&](const schema::NodeProto& node) { return gives_any(node, needed); });
  keep_if(*graph.mutable_input(), [&](const schema::ValueInfoProto& input) { return needed.count(input.name()) > 0; });
  keep_if(*graph.mutable_initializer(),
          [&](const schema::TensorProto& tensor) { return needed.count(tensor.name()) > 0; });
  keep_if(*graph.mutable_sparse_initializer(),
          [&](const schema::SparseTensorProto& tensor) { return needed.count(tensor.values().name()) > 0; });
  graph.clear_value_info();
  graph.clear_doc_string();
  graph.clear_quantization_annotation();
  graph.clear_metadata_props();
  for (auto& node : *graph.mutable_node()) {
    node.clear_doc_string();
    node.clear_metadata_props();
  }
  for (auto& output : *graph.mutable_output())  // what these were is the importer's to say again
    if (output.type().tensor_type().has_shape())
      for (auto& dim : *output.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) dim.Clear();
  model.clear_doc_string();
  model.clear_metadata_props();
  if (model.functions_size() == 0) return;
  const std::string text = graph.SerializeAsString();  // a function's name that lies nowhere is not called
  keep_if(*model.mutable_functions(), [&](const schema::FunctionProto& function) {
    if (text.find(function.name()) != std::string::npos) return true;
    return std::any_of(model.functions().begin(), model.functions().end(), [&](const schema::FunctionProto& other) {
      return std::any_of(other.node().begin(), other.node().end(),
                         [&](const schema::NodeProto& node) { return node.op_type() == function.name(); });
    });
  });
}

bool leave_out(schema::ModelProto& model, int begin, int end, const Types& types) {
  schema::GraphProto& graph = *model.mutable_graph();
  Names gone, read_by_gone, read;
  for (int i = begin; i < end; ++i) {
    gone.insert(graph.node(i).output().begin(), graph.node(i).output().end());
    add_reads(graph.node(i), read_by_gone);
  }
  graph.mutable_node()->DeleteSubrange(begin, end - begin);
  if (graph.node_size() == 0) return false;
  keep_if(*graph.mutable_output(), [&](const schema::ValueInfoProto& output) { return !gone.count(output.name()); });
  if (graph.output_size() == 0)
    for (const auto& node : graph.node())
      for (const std::string& name : node.output())
        if (read_by_gone.count(name)) {
          auto* output = graph.add_output();
          output->set_name(name);
          if (const auto type = types.find(name); type != types.end()) *output->mutable_type() = type->second;
        }
  for (const auto& node : graph.node()) add_reads(node, read);
  for (const std::string& name : gone) {
    if (!read.count(name)) continue;
    const auto type = types.find(name);
    if (type == types.end()) return false;
    auto* input = graph.add_input();
    input->set_name(name);
    *input->mutable_type() = type->second;
  }
  return graph.output_size() > 0;
}

bool bypass(schema::ModelProto& model, int node, int input, const Types& types) {
  schema::GraphProto& graph = *model.mutable_graph();
  const std::string from = graph.node(node).output(0), to = graph.node(node).input(input);
  const auto one = types.find(from), other = types.find(to);
  if (one == types.end() || other == types.end() ||
      one->second.SerializeAsString() != other->second.SerializeAsString())
    return false;
  bool changed = false;
  for (auto& reader : *graph.mutable_node())
    for (std::string& name : *reader.mutable_input())
      if (name == from) {
        name = to;
        changed = true;
      }
  return changed;
}

bool drop_outputs(schema::ModelProto& model, int begin, int end) {
  auto& outputs = *model.mutable_graph()->mutable_output();
  if (end - begin >= outputs.size()) return false;
  outputs.DeleteSubrange(begin, end - begin);
  return true;
}

bool drop_attribute(schema::ModelProto& model, int node, int attribute) {
  model.mutable_graph()->mutable_node(node)->mutable_attribute()->DeleteSubrange(attribute, 1);
  return true;
}

std::vector<int64_t> extents_of(const schema::ModelProto& model) {
  std::set<int64_t, std::greater<>> found;
  for (const auto& input : model.graph().input())
    for (const auto& dim : input.type().tensor_type().shape().dim())
      if (dim.dim_value() > 1) found.insert(dim.dim_value());
  for (const auto& tensor : model.graph().initializer())
    for (const int64_t extent : tensor.dims())
      if (extent > 1) found.insert(extent);
  return {found.begin(), found.end()};
}

std::vector<std::string> symbols_of(const schema::ModelProto& model) {
  Names found;
  for (const auto& input : model.graph().input())
    for (const auto& dim : input.type().tensor_type().shape().dim())
      if (!dim.dim_param().empty()) found.insert(dim.dim_param());
  return {found.begin(), found.end()};
}

bool shrink_extent(schema::ModelProto& model, int64_t from, int64_t to) {
  bool changed = false;
  for (auto& input : *model.mutable_graph()->mutable_input())
    for (auto& dim : *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
      if (dim.dim_value() == from) {
        dim.set_dim_value(to);
        changed = true;
      }
  for (auto& tensor : *model.mutable_graph()->mutable_initializer()) changed |= shrink_tensor(tensor, from, to);
  for (auto& node : *model.mutable_graph()->mutable_node())
    for (auto& attribute : *node.mutable_attribute())
      if (node.op_type() == "Constant" && attribute.has_t()) changed |= shrink_tensor(*attribute.mutable_t(), from, to);
  return changed;
}

bool fix_symbol(schema::ModelProto& model, const std::string& name, int64_t extent) {
  for (auto& input : *model.mutable_graph()->mutable_input())
    for (auto& dim : *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
      if (dim.dim_param() == name) dim.set_dim_value(extent);
  return true;
}

bool make_ones(schema::ModelProto& model, int initializer) {
  auto& tensor = *model.mutable_graph()->mutable_initializer(initializer);
  const auto dtype = element_type(tensor.data_type(), "a tensor", {});
  const int64_t width = bytes_of_element(tensor.data_type());
  if (width == 0 || width > 8 || !dtype->is_floating()) return false;
  const uint64_t one = ir::encode_float(*dtype, 1);
  std::string bytes;
  for (size_t at = 0; at < tensor.raw_data().size(); at += static_cast<size_t>(width))
    bytes.append(reinterpret_cast<const char*>(&one), static_cast<size_t>(width));
  if (bytes == tensor.raw_data()) return false;
  tensor.set_raw_data(std::move(bytes));
  return true;
}

}  // namespace lathe::onnx::shrink
