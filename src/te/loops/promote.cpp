// Which dtype arithmetic has: NumPy's promotion (NEP 50), under which numbers of Python's own are weak.
#include <algorithm>
#include <optional>

#include "ir/visit.h"
#include "te/loops/read_loops.h"

namespace lathe::te {

using ir::DType;
using ir::Expr;

namespace {

bool is_ieee(DType t) { return t == DType::float_(16) || t == DType::float_(32) || t == DType::float_(64); }

// The dtype of an operation on elements of two dtypes; nothing where NumPy has none, or one that surprises.
std::optional<DType> promoted(DType x, DType y) {
  if (x == y) return x;
  if (x.is_bool()) return y;
  if (y.is_bool()) return x;
  if (x.is_floating()) std::swap(x, y);
  if (x.is_integer() && y.is_floating()) {
    if (!is_ieee(y)) return std::nullopt;
    const int needed = x.bits <= 8 ? 16 : x.bits <= 16 ? 32 : 64;
    return DType::float_(std::max<int>(needed, y.bits));
  }
  if (x.is_floating()) return is_ieee(x) && is_ieee(y) ? std::optional(x.bits > y.bits ? x : y) : std::nullopt;
  if (!x.is_integer() || !y.is_integer()) return std::nullopt;
  if (x.code == y.code) return x.bits > y.bits ? x : y;
  const bool x_signed = !x.is_uint();
  const int with_sign = x_signed ? x.bits : y.bits, without = x_signed ? y.bits : x.bits;
  if (with_sign > without) return x_signed ? x : y;
  return without < 64 ? std::optional(DType::int_(2 * without)) : std::nullopt;
}

}  // namespace

// Made of Python's own numbers: loops' variables, extents, scalars among the parameters, literals.
bool LoopReader::is_python(const Expr& e) const {
  if (e->dtype != DType::int64() && e->dtype != DType::float_(64) && !e->dtype.is_bool()) return false;
  if (e.as<ir::BufferLoad>()) return false;
  if (std::any_of(typed_.begin(), typed_.end(), [&](const Expr& t) { return t.get() == e.get(); })) return false;
  if (const auto* call = e.as<ir::Call>(); call && call->op == &ir::intrinsic::if_then_else)
    return is_python(call->args[1]) && is_python(call->args[2]);
  bool python = true;
  ir::post_order(e, [&](const ir::NodeRef& n) {
    python = python && !n.as<ir::BufferLoad>() &&
             std::none_of(typed_.begin(), typed_.end(), [&](const Expr& t) { return t.get() == n.get(); });
  });
  return python;
}

// A variable that changes: whether it holds a number of Python's or an element is not known.
bool LoopReader::reads_local(const Expr& e) const {
  bool found = false;
  ir::post_order(e, [&](const ir::NodeRef& n) {
    const auto* load = n.as<ir::BufferLoad>();
    found = found || (load && std::any_of(locals_.begin(), locals_.end(),
                                          [&](const auto& entry) { return entry.second.buffer == load->buffer; }));
  });
  return found;
}

std::pair<Expr, Expr> LoopReader::converted(Expr a, Expr b) {
  const bool weak_a = is_python(a), weak_b = is_python(b);
  const auto as_other = [&](Expr& weak, const Expr& other) {
    if (other->dtype.is_floating() && is_ieee(other->dtype)) {
      weak = ir::cast(other->dtype, weak);
    } else if (weak->dtype == DType::int64() && other->dtype.is_integer()) {
      const arith::ConstIntBound bound = analyzer_.const_int_bound(weak);
      const DType t = other->dtype;
      const bool is_signed = !t.is_uint();
      const int64_t most = is_signed     ? (int64_t{1} << (t.bits - 1)) - 1
                           : t.bits < 63 ? (int64_t{1} << t.bits) - 1
                                         : arith::ConstIntBound::positive_infinity;
      if (bound.max_value <= most && bound.min_value >= (is_signed ? -most - 1 : 0)) weak = ir::cast(t, weak);
    }
  };
  if (weak_a && !weak_b) as_other(a, b);
  if (weak_b && !weak_a) as_other(b, a);
  if (a->dtype == b->dtype || (!weak_a && reads_local(a)) || (!weak_b && reads_local(b))) return {a, b};
  if (const auto both = promoted(a->dtype, b->dtype)) return {ir::cast(*both, a), ir::cast(*both, b)};
  return {std::move(a), std::move(b)};
}

Expr LoopReader::quotient(const Expr& a, const Expr& b) {
  const DType wide = DType::float_(64);
  return ir::make<ir::Div>(ir::cast(wide, a), ir::cast(wide, b));
}

}  // namespace lathe::te
