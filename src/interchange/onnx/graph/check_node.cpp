#include "interchange/onnx/graph/check_node.h"

#include "interchange/onnx/codes.h"

namespace lathe::onnx {
namespace {

constexpr int64_t highest_rank = 64;  // as of the graph's inputs and of constants

}  // namespace

std::string kind_of(const GraphValue& value) {
  return value.tensor && value.tensor->struct_info.is<relax::OptionalStructInfo>() ? "an optional" : "a sequence";
}
bool is_tensor(const GraphValue& value) { return !value.tensor || relax::as_tensor(value.tensor); }

void check_counts(const OperatorRow& row, NodeImport& import) {
  const auto range = [](size_t least, size_t most, std::string_view noun) {
    std::string text = std::to_string(least);
    if (most == any_number)
      text += " or more";
    else if (most != least)
      text += " to " + std::to_string(most);
    return text + " " + std::string(noun) + (most == 1 ? "" : "s");
  };
  const std::string name(row.name);
  if (import.input_count() < row.least_inputs || import.input_count() > row.most_inputs)
    import.fail(codes::wrong_node, name + " takes " + range(row.least_inputs, row.most_inputs, "input") +
                                       ", but the node has " + std::to_string(import.input_count()));
  for (size_t i = 0; i < import.input_count(); ++i)
    if (!row.takes_any && import.has(i) && !is_tensor(import.value(i)))
      import.fail(codes::wrong_node, "the input " + std::to_string(i) + " is " + kind_of(import.value(i)) + ", but " +
                                         name + " takes tensors");
  for (size_t i = 0; i < row.least_inputs; ++i)
    if (!import.has(i))
      import.fail(codes::wrong_node, "the input " + std::to_string(i) + " of " + name + " is missing");
  if (import.output_count() < 1 || import.output_count() > row.most_outputs)
    import.fail(codes::wrong_node, name + " gives " + range(1, row.most_outputs, "output") + ", but the node has " +
                                       std::to_string(import.output_count()));
}

void check_shape(const NodeImport& import, const GraphValue& value) {
  const auto* info = relax::as_tensor(value.tensor);
  if (!value.tensor || !is_tensor(value)) return;
  if (!info || !info->shape) import.fail(codes::unsupported, "the shape of the result cannot be known");
  if (info->ndim > highest_rank)
    import.fail(codes::too_large, "the result would have " + std::to_string(info->ndim) + " dimensions; " +
                                      std::to_string(highest_rank) + " is the most");
  std::vector<int64_t> known;
  for (const ir::Expr& extent : *info->shape) {
    if (!is_small(extent))
      import.fail(codes::too_large, "the shape of the result has grown into an expression of over " +
                                        std::to_string(largest_expression) + " terms");
    const auto constant = ir::as_int(extent);
    if (constant && *constant < 0)
      import.fail(codes::wrong_shape, "the result would be " + relax::text_of(*info) + ", with a negative dimension");
    if (constant) known.push_back(*constant);
  }
  if (!checked_bytes(known, info->dtype))
    import.fail(codes::wrong_shape, "the result would be " + relax::text_of(*info) + ", more than any memory holds");
}

}  // namespace lathe::onnx
