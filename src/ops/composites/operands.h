// What composites ask of their operands: dtypes that fit, numbers, shapes that broadcast.
#pragma once

#include "ops/composites/expansion.h"

namespace lathe::ops::composites {

// Refused unless tensor argument i is of `set`; `name` is the input's.
void expect_dtype(const Expansion& e, size_t i, std::string_view name, DTypeSet set);
// Refused unless the tensors have one dtype.
void expect_one_dtype(const Expansion& e, const std::vector<Value>& tensors);
// The dtype given, or `otherwise`; refused unless it is one of numbers or bool.
DType element_dtype(const Expansion& e, const std::optional<DType>& given, DType otherwise = {});
// The shape of both broadcast against each other; what only the run can tell is checked then.
Shape broadcast(const Expansion& e, const Value& a, const Value& b);

// An integer of an Input::scalar as int64, or `otherwise` where it is absent.
Expr integer_argument(const Expansion& e, size_t i, std::string_view name, const Expr& otherwise = {});
// As `integer_argument`, but an extent: not negative.
Expr extent_argument(const Expansion& e, size_t i, std::string_view name, const Expr& otherwise = {});
// The number, which may be symbolic, as a tensor without dimensions.
Value scalar_tensor(const Expansion& e, DType dtype, const Expr& number);

// Numbers that a tensor program reads: constants in it, symbolic ones as operands.
class Numbers {
 public:
  using Read = std::function<Expr(const std::vector<Tensor>& in)>;
  explicit Numbers(std::vector<Value> operands_before = {}) : operands(std::move(operands_before)) {}
  Read add(const Expansion& e, DType dtype, const Expr& number);

  std::vector<Value> operands;
};

}  // namespace lathe::ops::composites
