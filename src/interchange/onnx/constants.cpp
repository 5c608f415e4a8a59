#include "interchange/onnx/constants.h"

#include "relax/interpret/evaluate.h"

namespace lathe::onnx {

namespace {

constexpr int64_t most_elements = 1024;  // of an input or result

std::optional<int64_t> elements_of(const Expr& tensor) {
  const auto* info = relax::as_tensor(tensor);
  const auto shape = info && info->shape ? relax::constant_shape(*info->shape) : std::nullopt;
  if (!shape || !checked_bytes(*shape, info->dtype)) return std::nullopt;
  int64_t count = 1;
  for (const int64_t extent : *shape) count *= extent;
  return count;
}

bool is_small_constant(const GraphValue& value) {
  if (value.tensor) {
    const auto* constant = value.tensor.as<relax::Constant>();
    return constant && constant->data->elements() <= most_elements;
  }
  return constants_of(*value.integers).has_value();
}

}  // namespace

bool fold_constants(const OperatorRow& row, NodeImport& import, NodeAttributes& attributes) {
  if (import.input_count() == 0) return false;
  for (size_t i = 0; i < import.input_count(); ++i)
    if (import.has(i) && !is_small_constant(import.value(i))) return false;

  relax::BlockBuilder builder;
  builder.set_origin(import.builder().origin());
  builder.begin_function("main", {});
  builder.begin_dataflow();
  NodeImport trial(builder, attributes, import);
  row.convert(trial);
  std::vector<Expr> tensors;
  for (const GraphValue& result : trial.results()) {
    if (!result.tensor) continue;
    const auto count = elements_of(result.tensor);
    if (!count || *count > most_elements) return false;
    tensors.push_back(builder.emit_output(result.tensor));
  }
  builder.end_block();
  builder.end_function(ir::make<relax::Tuple>(std::move(tensors)));
  const auto values = relax::evaluate(builder.finish(), "main", {}, {.max_steps = 1'000'000});
  if (!values.ok()) return false;

  import.clear_results();
  size_t next = 0;
  for (size_t i = 0; i < trial.results().size(); ++i) {
    GraphValue& result = import.results()[i];
    result = std::move(trial.results()[i]);
    if (result.tensor) result = {.tensor = relax::constant((*values)[next++])};
  }
  return true;
}

}  // namespace lathe::onnx
