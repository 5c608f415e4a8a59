// What elementwise operators share: a scalar function is the meaning, the rest follows from it.
#pragma once

#include "ops/operators.h"
#include "te/topi/elementwise.h"

namespace lathe::ops {

using ir::DType;
using ir::Expr;
using relax::AttributesNode;
using relax::DTypeSet;
using relax::FusionKind;
using relax::InferContext;
using relax::LowerContext;
using relax::Result;
using relax::StructInfo;

// f in float32 where x is of a narrower float: for formulas of several steps, rounded once.
template <class F>
Expr in_float32(const Expr& x, F&& f) {
  const DType wide = relax::accumulation_dtype(x->dtype);
  return ir::cast(x->dtype, f(ir::cast(wide, x)));
}

// The block name of an operator: "relu" of "nn.relu".
std::string te_name(std::string_view operator_name);

using UnaryScalar = std::function<Expr(const Expr&)>;
using BinaryScalar = std::function<Expr(const Expr&, const Expr&)>;
// An operator of one tensor; the result has the input's type.
Operator unary(std::string_view name, DTypeSet dtypes, UnaryScalar f, std::string_view reference,
               relax::Gradient gradient = {});
// An operator of two tensors of one dtype, broadcast; the result has their dtype, or bool.
Operator binary(std::string_view name, DTypeSet dtypes, BinaryScalar f, std::string_view reference,
                bool is_predicate = false, relax::Gradient gradient = {});
// The scalars of an operator with attributes.
template <class Attributes>
Operator unary_with(std::string_view name, DTypeSet dtypes, Expr (*f)(const Expr&, const Attributes&),
                    std::string_view reference) {
  Operator op = unary(name, dtypes, {}, reference);
  op.attributes = relax::attributes_of<Attributes>();
  op.meaning = relax::TeExpression([name, f](const LowerContext& c) {
    return std::vector{
        te::topi::map(c.tensor(0), [&](const Expr& x) { return f(x, c.attrs<Attributes>()); }, te_name(name))};
  });
  return op;
}

}  // namespace lathe::ops
