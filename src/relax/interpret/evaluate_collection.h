// What the interpreter of graphs holds in its variables, and its operators on sequences and optionals.
#pragma once

#include "ir/tensor_data.h"
#include "relax/operator.h"

namespace lathe::relax {

struct GraphValue {
  // The elements of a sequence, or those of an optional: one or none.
  struct Members {
    std::vector<GraphValue> values;
  };
  std::variant<std::monostate, ir::TensorData, std::vector<int64_t>, std::vector<GraphValue>, Members> data;

  bool empty() const { return std::holds_alternative<std::monostate>(data); }
  const ir::TensorData* tensor() const { return std::get_if<ir::TensorData>(&data); }
  const std::vector<int64_t>* shape() const { return std::get_if<std::vector<int64_t>>(&data); }
  const std::vector<GraphValue>* items() const { return std::get_if<std::vector<GraphValue>>(&data); }
  const std::vector<GraphValue>* members() const {
    const auto* all = std::get_if<Members>(&data);
    return all ? &all->values : nullptr;
  }
};

bool is_collection_operator(const Operator& op);
// The value of a call of such an operator; `args` are its arguments, empty where one is absent.
Result<GraphValue> evaluate_collection(const Call& call, const std::vector<GraphValue>& args);

}  // namespace lathe::relax
