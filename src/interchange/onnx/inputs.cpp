#include "interchange/onnx/inputs.h"

#include "interchange/onnx/codes.h"
#include "interchange/onnx/order.h"
#include "interchange/onnx/read/names.h"
#include "onnx_schema.pb.h"
#include "relax/collection.h"

namespace lathe::onnx {

using support::Diagnostic;
using support::Diagnostics;
using support::Result;

namespace {

constexpr int most_dimensions = 64;

// Values over which windows of convolutions and pools move, also those that become such element by element.
std::unordered_set<std::string> images(const schema::GraphProto& graph) {
  static const std::unordered_set<std::string_view> windows{"Conv",    "ConvInteger", "QLinearConv", "ConvTranspose",
                                                            "MaxPool", "AveragePool", "LpPool"},
      elementwise{"Add", "Cast", "Div", "Identity", "Mul", "Sub"};
  std::unordered_set<std::string> found;
  for (int i = graph.node_size(); i-- > 0;) {
    const auto& node = graph.node(i);
    if (domain_of(node.domain()) != "" || node.input_size() == 0 || node.output_size() == 0) continue;
    if (windows.count(node.op_type())) found.insert(node.input(0));
    if (elementwise.count(node.op_type()) && found.count(node.output(0)))
      found.insert(node.input().begin(), node.input().end());
  }
  return found;
}

class InputReader {
 public:
  InputReader(const Model& model, const ImportOptions& options, const schema::GraphProto& graph)
      : model_(model), options_(options), images_(images(graph)) {}

  Result<relax::Var> read(const schema::ValueInfoProto& input) {
    const std::string what = "the input " + in_quotes(input.name());
    if (input.name().empty()) return refuse(codes::wrong_graph, "an input of the graph has no name");
    if (input.type().has_tensor_type())
      return relax::relax_var(input.name(), TRY(tensor(input.type().tensor_type(), input.name(), what)));
    return relax::relax_var(input.name(), TRY(collection(input.type(), input.name(), what, 0)));
  }

  // A sequence or optional of tensors; their extents that are no numbers are not known.
  Result<relax::StructInfo> collection(const schema::TypeProto& type, const std::string& name, const std::string& what,
                                       int depth, bool in_sequence = false) {
    // Without a shape, elements of a sequence may have any number of dimensions.
    if (type.has_tensor_type() && !type.tensor_type().has_shape() && in_sequence) {
      TRY(element_type(type.tensor_type().elem_type(), what, model_.place()));
      return relax::StructInfo(ir::make<relax::ObjectStructInfo>());
    }
    if (type.has_tensor_type()) return relax::element_info(TRY(tensor(type.tensor_type(), name, what)));
    if (depth < 2 && type.has_sequence_type())
      return relax::StructInfo(ir::make<relax::SequenceStructInfo>(
          TRY(collection(type.sequence_type().elem_type(), name, "an element of " + what, depth + 1, true))));
    if (depth == 0 && type.has_optional_type())
      return relax::StructInfo(ir::make<relax::OptionalStructInfo>(
          TRY(collection(type.optional_type().elem_type(), name, "the value of " + what, depth + 1))));
    const bool is_other = type.value_case() != schema::TypeProto::VALUE_NOT_SET;
    return refuse(codes::unsupported,
                  what + (is_other ? " is not a tensor, a sequence or an optional of them" : " has no type"));
  }

  Result<relax::StructInfo> tensor(const schema::TypeProto::Tensor& type, const std::string& name,
                                   const std::string& what) {
    const ir::DType dtype = TRY(element_type(type.elem_type(), what, model_.place()));
    if (!type.has_shape())
      return refuse(codes::unsupported, what + " has no shape; its number of dimensions must be known");
    if (type.shape().dim_size() > most_dimensions)
      return refuse(codes::wrong_shape, what + " has " + std::to_string(type.shape().dim_size()) + " dimensions; " +
                                            std::to_string(most_dimensions) + " is the most");
    std::vector<ir::Expr> shape;
    std::vector<int64_t> known;
    for (int d = 0; d < type.shape().dim_size(); ++d) {
      shape.push_back(TRY(dimension(type.shape().dim(d), name, d)));
      if (const auto extent = ir::as_int(shape.back())) known.push_back(*extent);
    }
    if (!checked_bytes(known, dtype)) return refuse(codes::wrong_shape, what + " has dimensions that no memory holds");
    return relax::tensor_info(std::move(shape), dtype);
  }

  // What the options tell of the symbols of the inputs read so far.
  const relax::DimSizesByName& sizes() const { return sizes_; }
  const std::vector<ir::Var>& symbols() const { return all_; }

  // A name given in the options that no dimension has is a mistake.
  support::Status check_options() const {
    for (const auto& [name, value] : options_.dims)
      if (!seen_.count(name) && !symbol_names_.count(name)) {
        std::string known;
        for (const std::string& each : seen_) known += (known.empty() ? "" : ", ") + printable(each);
        Diagnostic d = refuse(codes::unknown_dim, "no input has a dimension called " + in_quotes(name));
        d.help = known.empty() ? "all dimensions of the model are fixed" : "its symbolic dimensions are " + known;
        return d;
      }
    return support::success();
  }

 private:
  Diagnostic refuse(support::Code code, std::string message) const {
    return {.code = code, .place = model_.place(), .message = std::move(message)};
  }

  Result<ir::Expr> dimension(const schema::TensorShapeProto::Dimension& dim, const std::string& input, int index) {
    const auto negative = [&](int64_t value, const std::string& where) {
      return refuse(codes::wrong_shape, where + " is " + std::to_string(value) + ", a negative number");
    };
    const std::string here = "the dimension " + std::to_string(index) + " of the input " + in_quotes(input);
    if (dim.has_dim_value()) {
      if (dim.dim_value() < 0) return negative(dim.dim_value(), here);
      return ir::int64(dim.dim_value());
    }
    const std::string name = dimension_name(dim.dim_param(), input, index);
    const std::string symbol_name = identifier(name);
    seen_.insert(name);
    symbol_names_.insert(symbol_name);
    auto told = options_.dims.find(name);
    if (told == options_.dims.end()) told = options_.dims.find(symbol_name);
    if (told != options_.dims.end()) {
      if (told->second.least < 0) return negative(told->second.least, "the dimension " + in_quotes(name));
      if (const auto fixed = told->second.fixed()) return ir::int64(*fixed);
    }
    // A window has nothing to begin with in an image without lines, or lines without elements.
    if (told != options_.dims.end())
      sizes_[symbol_name] = told->second;
    else if (index >= 2 && images_.count(input))
      sizes_[symbol_name].least = 1;
    if (dim.dim_param().empty()) return ir::Expr(all_.emplace_back(ir::size_var(symbol_name)));
    ir::Var& symbol = symbols_[name];
    if (!symbol) symbol = all_.emplace_back(ir::size_var(symbol_name));
    return ir::Expr(symbol);
  }

  const Model& model_;
  const ImportOptions& options_;
  std::unordered_set<std::string> images_;
  std::map<std::string, ir::Var> symbols_;
  std::vector<ir::Var> all_;
  std::set<std::string> seen_, symbol_names_;  // the second as programs write them
  relax::DimSizesByName sizes_;
};

}  // namespace

std::string dimension_name(const std::string& dim_param, const std::string& input, int index) {
  return dim_param.empty() ? identifier(input) + "_dim_" + std::to_string(index) : dim_param;
}

Result<GraphInputs> read_inputs(const Model& model, const schema::GraphProto& graph, const ImportOptions& options) {
  std::unordered_set<std::string> weights;
  for (const auto& tensor : graph.initializer()) weights.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) weights.insert(tensor.values().name());
  InputReader reader(model, options, graph);
  GraphInputs result;
  Diagnostics wrong;
  for (const auto& input : graph.input()) {
    if (weights.count(input.name())) continue;
    Result<relax::Var> param = reader.read(input);
    if (param.ok())
      result.params.push_back(*param);
    else if (wrong.size() < most_diagnostics)
      wrong.push_back(param.diagnostics().front());
  }
  if (!wrong.empty()) return wrong;
  TRY(reader.check_options());
  result.sizes = reader.sizes();
  result.symbols = reader.symbols();
  return result;
}

}  // namespace lathe::onnx
