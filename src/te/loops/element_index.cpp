// Which element an index means: as in NumPy, a negative one counts from the end.
#include "ir/visit.h"
#include "script/expr_printer.h"
#include "support/mutation.h"
#include "te/codes.h"
#include "te/loops/read_loops.h"

namespace lathe::te {

LATHE_FAULT(from_python_keeps_negative_indices, "te_test", "an index that may be negative is taken as it is");

using ir::Buffer;
using ir::Expr;
using ir::Var;
using script::syntax::ExprKind;

std::vector<Expr> LoopReader::load_indices(const Buffer& b, const Syntax& index) {
  std::vector<const Syntax*> items{&index};
  if (index.kind == ExprKind::tuple) items.assign(index.items.begin(), index.items.end());
  for (const Syntax* item : items)
    if (item->kind == ExprKind::slice)
      fail(codes::not_loops, *item, "a part of an array is no number", "write a loop over its elements");
  std::vector<Expr> indices = ExprReader::load_indices(b, index);
  for (size_t d = 0; d < indices.size(); ++d) indices[d] = element_index(b, d, std::move(indices[d]), *items[d]);
  return indices;
}

Expr LoopReader::element_index(const Buffer& b, size_t dimension, Expr index, const Syntax& at) {
  const Expr& extent = b->shape[dimension];
  const bool positive = index->dtype.is_uint() || analyzer_.can_prove_greater_equal(index, 0);
  const Expr wide = index->dtype == extent->dtype ? index : ir::cast(extent->dtype, index);
  const bool near = analyzer_.can_prove(ir::lt(wide, extent)) &&
                    (positive || analyzer_.can_prove(ir::ge(wide + extent, ir::int64(0))));
  if (!near) refuse_outside(b, dimension, wide, at);
  if (positive || support::flip(from_python_keeps_negative_indices)) return index;
  const Expr from_end = analyzer_.simplify(wide + extent);
  if (analyzer_.can_prove_less(wide, 0)) return from_end;
  return ir::select(ir::lt(wide, ir::int64(0)), from_end, wide);
}

// Looks at iterations of the loops around, all where they are few, else the corners: one that surely runs and leaves
// the array is shown.
void LoopReader::refuse_outside(const Buffer& b, size_t dimension, const Expr& index, const Syntax& at) {
  if (reads_arrays(index)) return;
  constexpr size_t most = 256;
  size_t all = 1;
  for (const auto& [v, range] : loops_) {
    const arith::ConstIntBound count = analyzer_.const_int_bound(range.extent);
    const bool few = count.max_value <= static_cast<int64_t>(most);
    all = few && all <= most ? all * static_cast<size_t>(std::max<int64_t>(count.max_value, 1)) : most + 1;
  }
  if (all > most && loops_.size() > 6) return;
  for (size_t number = 0; number < (all <= most ? all : size_t{1} << loops_.size()); ++number)
    refuse_outside_at(number, all <= most, b, dimension, index, at);
}

void LoopReader::refuse_outside_at(size_t number, bool counted, const Buffer& b, size_t dimension, const Expr& index,
                                   const Syntax& at) {
  ir::VarMap values;
  for (const auto& [v, range] : loops_) {
    const auto turns = static_cast<size_t>(
        counted ? std::max<int64_t>(analyzer_.const_int_bound(range.extent).max_value, 1) : int64_t{2});
    const Expr count = analyzer_.simplify(ir::substitute(range.extent, values));
    const auto turn = static_cast<int64_t>(number % turns);
    number /= turns;
    if (!analyzer_.can_prove_greater_equal(count, counted ? turn + 1 : 1)) return;
    const Expr last = counted || turn == 0 ? ir::int64(turn) : count - ir::int64(1);
    values[v] = analyzer_.simplify(ir::substitute(range.min, values) + last);
  }
  for (const Expr& condition : conditions_)
    if (!analyzer_.can_prove(ir::substitute(condition, values))) return;
  const Expr reached = analyzer_.simplify(ir::substitute(index, values));
  const Expr& extent = b->shape[dimension];
  if (!analyzer_.can_prove(ir::ge(reached, extent)) && !analyzer_.can_prove(ir::lt(reached + extent, ir::int64(0))))
    return;
  fail(codes::not_loops, at,
       "this index reaches " + script::expression_text(reached) + ", and dimension " + std::to_string(dimension) +
           " of '" + b->name + "' has " + script::expression_text(extent) + " elements");
}

}  // namespace lathe::te
