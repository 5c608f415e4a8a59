#include "interchange/onnx/lengths.h"

#include "interchange/onnx/codes.h"
#include "interchange/onnx/inputs.h"
#include "onnx_schema.pb.h"

namespace lathe::onnx {

using schema::TensorProto;

namespace {

constexpr int64_t most_tried = 8;  // lengths of a vector; shapes that models compute with are no longer
constexpr size_t most_vectors = 4;

bool wants_a_length(const support::Diagnostics& refused) {
  return std::any_of(refused.begin(), refused.end(),
                     [](const support::Diagnostic& d) { return d.code == codes::not_constant; });
}

// The names of the lengths of inputs that are vectors of integers, where neither the graph nor the options say them.
std::vector<std::string> open_lengths(const schema::GraphProto& graph, const ImportOptions& options) {
  std::unordered_set<std::string> weights;
  for (const auto& tensor : graph.initializer()) weights.insert(tensor.name());
  std::vector<std::string> names;
  for (const auto& input : graph.input()) {
    const auto& type = input.type().tensor_type();
    const bool integers = type.elem_type() == TensorProto::INT64 || type.elem_type() == TensorProto::INT32;
    if (!integers || type.shape().dim_size() != 1 || type.shape().dim(0).has_dim_value()) continue;
    const std::string name = dimension_name(type.shape().dim(0).dim_param(), input.name(), 0);
    const auto told = options.dims.find(name);
    if (weights.count(input.name()) || (told != options.dims.end() && told->second.fixed())) continue;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.size() > most_vectors) names.resize(most_vectors);
  return names;
}

}  // namespace

std::optional<ImportOptions> deduce_length(const schema::GraphProto& graph, const ImportOptions& options,
                                           support::Diagnostics& refused, Fits fits) {
  if (!wants_a_length(refused)) return std::nullopt;
  for (const std::string& name : open_lengths(graph, options)) {
    const auto told = options.dims.find(name);
    ImportOptions tried = options;
    std::vector<int64_t> fitting;
    for (int64_t length = 0; length <= most_tried; ++length) {
      if (told != options.dims.end() && !told->second.allows(length)) continue;
      tried.dims[name] = length;
      if (fits(tried)) fitting.push_back(length);
    }
    if (fitting.empty()) continue;
    if (fitting.size() > 1) {
      for (support::Diagnostic& d : refused)
        if (d.code == codes::not_constant)
          d.help = fmt::format("the model can be compiled for each of {} = {}, apart: fix it with --dim {}={}", name,
                               fmt::join(fitting, ", "), name, fitting[0]);
      return std::nullopt;
    }
    tried.dims[name] = fitting[0];
    return tried;
  }
  return std::nullopt;
}

}  // namespace lathe::onnx
