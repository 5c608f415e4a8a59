#include "relax/infer.h"

#include "ir/match.h"
#include "ir/structural.h"
#include "relax/strings.h"
#include "te/topi/elementwise.h"

namespace lathe::relax {

using support::Diagnostic;
using support::Status;

Diagnostic wrong(support::Code code, std::string message) { return {.code = code, .message = std::move(message)}; }

// ---- text ----

namespace {

// `e` as text; an operand of a tighter operator is parenthesised.
std::string extent_text(const ir::Expr& e, int tightness) {
  const auto binary = [&](const auto& node, const char* symbol, int own) {
    std::string text = extent_text(node.a, own) + symbol + extent_text(node.b, own + 1);
    return own < tightness ? "(" + text + ")" : text;
  };
  const auto call = [&](const auto& node, const char* name) {
    return name + ("(" + extent_text(node.a, 0)) + ", " + extent_text(node.b, 0) + ")";
  };
  return ir::match(
      e, [](const ir::IntImm& n) { return std::to_string(n.value); }, [](const ir::VarNode& n) { return n.name; },
      [&](const ir::Add& n) { return binary(n, " + ", 1); }, [&](const ir::Sub& n) { return binary(n, " - ", 1); },
      [&](const ir::Mul& n) { return binary(n, " * ", 2); },
      [&](const ir::FloorDiv& n) { return binary(n, " // ", 2); },
      [&](const ir::FloorMod& n) { return binary(n, " % ", 2); }, [&](const ir::Max& n) { return call(n, "max"); },
      [&](const ir::Min& n) { return call(n, "min"); }, [](const ir::ExprNode&) { return std::string("?"); });
}

}  // namespace

std::string text_of(const ir::Expr& extent) { return extent_text(extent, 0); }

std::string text_of(const Shape& shape) {
  std::string text = "[";
  for (size_t d = 0; d < shape.size(); ++d) text += (d ? ", " : "") + text_of(shape[d]);
  return text + "]";
}

std::string text_of(const TensorStructInfo& info) {
  const std::string dtype = info.dtype.is_void() ? "tensor" : info.dtype == string_dtype ? "string" : info.dtype.str();
  if (info.shape) return dtype + text_of(*info.shape);
  return dtype + (info.ndim < 0 ? " of unknown rank" : " of rank " + std::to_string(info.ndim));
}

// ---- extents ----

bool same_extent(const ir::Expr& a, const ir::Expr& b) {
  return a.same_as(b) || ir::structural_equal(a, b) || ir::is_int(simplified(ir::sub(a, b)), 0);
}
bool different_extents(const ir::Expr& a, const ir::Expr& b) {
  const auto difference = ir::as_int(simplified(ir::sub(a, b)));
  return difference && *difference != 0;
}
bool may_be(const ir::Expr& actual, const ir::Expr& expected, Assumptions* assumptions) {
  if (same_extent(actual, expected)) return true;
  if (different_extents(actual, expected)) return false;
  if (assumptions) assumptions->push_back({actual, expected});
  return true;
}
bool same_shape(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_extent);
}

namespace {

// The factors of a product; its constants are multiplied into `constant`.
struct Factors {
  int64_t constant = 1;
  std::vector<ir::Expr> others;

  void add(const ir::Expr& e) {
    int64_t product;
    if (const auto* pair = e.as<ir::Mul>()) {
      add(pair->a);
      add(pair->b);
    } else if (const auto known = ir::as_int(e); known && !__builtin_mul_overflow(constant, *known, &product)) {
      constant = product;
    } else {
      others.push_back(e);
    }
  }
  ir::Expr product() const {
    ir::Expr all = ir::int64(constant);
    for (const ir::Expr& each : others) all = all * each;
    return all;
  }
};

}  // namespace

ir::Expr extent_left(const Shape& own, const Shape& others) {
  Factors count, known;
  for (const ir::Expr& extent : own) count.add(extent);
  for (const ir::Expr& extent : others) known.add(extent);
  std::erase_if(known.others, [&](const ir::Expr& each) {
    const auto same = std::find_if(count.others.begin(), count.others.end(),
                                   [&](const ir::Expr& other) { return ir::structural_equal(each, other); });
    if (same == count.others.end()) return false;
    count.others.erase(same);
    return true;
  });
  if (const int64_t common = std::gcd(count.constant, known.constant); common > 1) {
    count.constant /= common;
    known.constant /= common;
  }
  return simplified(ir::floordiv(count.product(), known.product()));
}

ir::Expr non_negative(ir::Expr extent) { return simplified(ir::max(std::move(extent), ir::int64(0))); }

std::optional<std::vector<int64_t>> constant_shape(const Shape& shape) {
  std::vector<int64_t> values;
  for (const ir::Expr& extent : shape) {
    const auto value = ir::as_int(extent);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

// ---- arguments ----

namespace {

std::string input_name(const InferContext& c, size_t i) {
  const size_t row = std::min(i, c.op.inputs.size() - 1);
  return "'" + std::string(c.op.inputs[row].name) + "'";
}

}  // namespace

Result<const TensorStructInfo*> tensor_argument(const InferContext& c, size_t i) {
  if (i >= c.args.size() || !c.args[i])
    return wrong(codes::wrong_arguments, std::string(c.op.name) + " has no argument " + input_name(c, i));
  const TensorStructInfo* info = as_tensor(c.args[i]);
  if (!info)
    return wrong(codes::wrong_arguments,
                 "argument " + input_name(c, i) + " of " + std::string(c.op.name) + " is not a tensor");
  return info;
}

Result<Shape> shape_argument(const InferContext& c, size_t i) {
  const Expr arg = i < c.args.size() ? c.args[i] : Expr{};
  if (arg)
    if (const auto* shape = arg->struct_info.as<ShapeStructInfo>(); shape && shape->values) return *shape->values;
  return wrong(codes::wrong_arguments,
               "argument " + input_name(c, i) + " of " + std::string(c.op.name) + " is not a known shape");
}

// ---- dtypes ----

bool contains(DTypeSet set, DType dtype) {
  switch (set) {
    case DTypeSet::any:
      return true;
    case DTypeSet::numeric:
      return dtype.is_floating() || dtype.is_integer();
    case DTypeSet::floating:
      return dtype.is_floating();
    case DTypeSet::signed_numeric:
      return dtype.is_floating() || dtype.is_int();
    case DTypeSet::integer:
      return dtype.is_integer();
    case DTypeSet::boolean:
      return dtype.is_bool();
  }
  support::unreachable("a dtype set without a case");
}

Status check_dtype(const InferContext& c, size_t i, DTypeSet set) {
  const DType dtype = TRY(tensor_argument(c, i))->dtype;
  if (dtype.is_void() || contains(set, dtype)) return support::success();
  constexpr std::string_view names[] = {"any", "number", "floating-point", "signed number", "integer", "bool"};
  return wrong(codes::dtype_not_supported, std::string(c.op.name) + " takes " +
                                               std::string(names[static_cast<size_t>(set)]) + " tensors, but " +
                                               input_name(c, i) + " is " + dtype.str());
}

Status check_same_dtype(const InferContext& c, size_t i, size_t j) {
  const DType a = TRY(tensor_argument(c, i))->dtype, b = TRY(tensor_argument(c, j))->dtype;
  if (a == b || a.is_void() || b.is_void()) return support::success();
  return wrong(codes::dtype_mismatch, std::string(c.op.name) + " takes tensors of one dtype, but " + input_name(c, i) +
                                          " is " + a.str() + " and " + input_name(c, j) + " is " + b.str());
}

DType accumulation_dtype(DType dtype) { return dtype.is_floating() && dtype.bits < 32 ? DType::float32() : dtype; }

// ---- shapes ----

Result<int64_t> normalize_axis(const InferContext& c, int64_t axis, int64_t rank) {
  const int64_t wrapped = axis < 0 ? axis + rank : axis;
  if (wrapped >= 0 && wrapped < rank) return wrapped;
  return wrong(codes::axis_out_of_range, "axis " + std::to_string(axis) + " of " + std::string(c.op.name) +
                                             " is outside a tensor of rank " + std::to_string(rank));
}

Result<std::vector<int64_t>> normalize_axes(const InferContext& c, const std::optional<std::vector<int64_t>>& axes,
                                            int64_t rank) {
  std::vector<int64_t> all;
  if (!axes) {
    for (int64_t d = 0; d < rank; ++d) all.push_back(d);
    return all;
  }
  for (const int64_t axis : *axes) all.push_back(TRY(normalize_axis(c, axis, rank)));
  std::sort(all.begin(), all.end());
  if (const auto twice = std::adjacent_find(all.begin(), all.end()); twice != all.end())
    return wrong(codes::axis_out_of_range,
                 "axis " + std::to_string(*twice) + " of " + std::string(c.op.name) + " is given twice");
  return all;
}

namespace {

bool is_never_one(const ir::Expr& extent) { return ir::is_int(simplified(ir::eq(extent, ir::int64(1))), 0); }

// Assumes that `extent` is 1 or `out`.
bool may_be_one_or(const ir::Expr& extent, const ir::Expr& out, Assumptions* assumptions) {
  if (ir::is_int(extent, 1) || same_extent(extent, out)) return true;
  if (ir::is_int(out, 1)) return may_be(extent, out, assumptions);
  if (different_extents(extent, out) && ir::as_int(extent)) return false;
  if (ir::as_int(extent)) return may_be(extent, out, assumptions);
  if (assumptions) assumptions->push_back({extent, ir::select(ir::eq(extent, ir::int64(1)), ir::int64(1), out)});
  return true;
}

}  // namespace

bool broadcasts_to(const Shape& from, const Shape& to, Assumptions* assumptions) {
  if (from.size() > to.size()) return false;
  for (size_t d = 0; d < from.size(); ++d)
    if (!may_be_one_or(from[d], to[to.size() - from.size() + d], assumptions)) return false;
  return true;
}

Result<Shape> broadcast_shapes(const Shape& a, const Shape& b, Assumptions* assumptions) {
  const size_t rank = std::max(a.size(), b.size());
  Shape result(rank);
  for (size_t d = 0; d < rank; ++d) {  // from the last dimension on
    ir::Expr& out = result[rank - 1 - d];
    if (d >= a.size() || d >= b.size()) {
      out = d >= a.size() ? b[b.size() - 1 - d] : a[a.size() - 1 - d];
      continue;
    }
    const ir::Expr &x = a[a.size() - 1 - d], &y = b[b.size() - 1 - d];
    if (ir::is_int(x, 1) || same_extent(x, y))
      out = y;
    else if (ir::is_int(y, 1))
      out = x;
    else if (const bool first = te::topi::is_cut_of(x, y); first || te::topi::is_cut_of(y, x)) {
      out = first ? y : x;
      if (assumptions) assumptions->push_back({first ? x : y, out});
    } else if (different_extents(x, y) && is_never_one(x) && is_never_one(y))
      return wrong(codes::cannot_broadcast, "cannot broadcast " + text_of(a) + " with " + text_of(b));
    else {
      // Both are 1 or the same.
      out = ir::as_int(x) ? x : ir::as_int(y) ? y : ir::select(ir::eq(x, ir::int64(1)), y, x);
      if (!ir::as_int(x) && ir::as_int(y)) may_be_one_or(x, out, assumptions);
      if (!ir::as_int(y)) may_be_one_or(y, out, assumptions);
    }
  }
  return result;
}

Result<StructInfo> broadcast_arguments(const InferContext& c, DType dtype) {
  std::optional<Shape> shape;
  int64_t rank = 0;
  bool known = true;
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (!c.args[i]) continue;
    const TensorStructInfo* info = TRY(tensor_argument(c, i));
    rank = info->ndim < 0 || rank < 0 ? -1 : std::max(rank, info->ndim);
    known = known && info->shape;
    if (known) shape = shape ? TRY(broadcast_shapes(*shape, *info->shape, c.assumptions)) : *info->shape;
  }
  return known && shape ? tensor_info(*shape, dtype) : tensor_info_of_rank(rank, dtype);
}

Shape reduced_shape(const Shape& shape, const std::vector<int64_t>& axes, bool keepdims) {
  Shape result;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) == axes.end())
      result.push_back(shape[d]);
    else if (keepdims)
      result.push_back(ir::int64(1));
  }
  return result;
}

Infer same_type_as_input(DTypeSet set) {
  return [set](const InferContext& c) -> Result<StructInfo> {
    TRY(check_dtype(c, 0, set));
    return c.args[0]->struct_info;
  };
}

}  // namespace lathe::relax
