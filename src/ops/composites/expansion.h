// Operators that mean other operators: what a row of composites.def is made of.
//
//   Value expand_square(const Expansion& e) { return e.call(ops::multiply, {e.tensor(0), e.tensor(0)}); }
//   const Operator square = composite("square", {{"x"}}, nullptr, expand_square, "numpy.square(x)");
//
// The struct info of a call is what its expansion has: a row needs no type rule. `expand_composites` puts the expansion
// in the call's place.
#pragma once

#include "ops/build.h"

namespace lathe::ops::composites {

using build::Value;
using relax::BlockBuilder;

// A call while it is expanded. What does not fit throws a DiagnosticError.
class Expansion {
 public:
  Expansion(BlockBuilder& into, const relax::Call& of) : b(into), call_(of) {}

  BlockBuilder& b;

  // ---- the call's arguments ----
  size_t count() const { return call_.args.size(); }
  bool has(size_t i) const { return i < count() && call_.args[i]; }
  const Value& any(size_t i) const;                    // the argument as it is; refused where it is absent
  const Value& tensor(size_t i) const;                 // refused unless it is a tensor of known shape and dtype
  std::vector<Value> tensors(size_t first = 0) const;  // those from `first` on, or the items of a tuple there
  Shape shape(size_t i) const;                         // of an Input::shape
  Expr scalar(size_t i) const;  // of an Input::scalar, or the value of a constant without dimensions
  template <class T>
  const T& attrs() const {
    return static_cast<const T&>(*call_.attributes);
  }

  // ---- words for expanding ----
  Value call(const Operator& op, std::vector<Value> args, relax::AttributesRef attributes = {}) const;
  // A row of composites.def or ops.def by its name.
  Value call(std::string_view name, std::vector<Value> args, relax::AttributesRef attributes = {}) const;
  Value item(const Value& tuple, int64_t index) const { return b.tuple_item(tuple, index); }
  Value cast(Value x, DType dtype) const { return build::cast(b, std::move(x), dtype); }
  Value reshape(Value x, Shape shape) const { return build::reshape(b, std::move(x), std::move(shape)); }
  Value permute(Value x, Axes axes) const;  // as it is where nothing moves
  Value tuple(std::vector<Value> items) const;
  // An axis from -rank to rank - 1 as one from 0 on; anything else is refused.
  int64_t axis(int64_t given, size_t rank, std::string_view name = "axis") const;
  Axes axes(const std::optional<std::vector<int64_t>>& given, size_t rank) const;  // nothing given: all
  [[noreturn]] void refuse(support::Code code, const std::string& message) const;  // "R.nn.conv2d: <message>"

 private:
  const relax::Call& call_;
};

using Expand = Value (*)(const Expansion&);
// The row; `attributes` may be null.
Operator composite(std::string_view name, std::vector<Input> inputs, const relax::AttributesClass* attributes,
                   Expand expand, std::string_view reference);

#define LATHE_COMPOSITE(SYMBOL) extern const Operator SYMBOL;
#include "ops/composites/composites.def"
#undef LATHE_COMPOSITE

}  // namespace lathe::ops::composites
