// Operators that give the same elements another shape: Reshape, Flatten, Squeeze, Unsqueeze.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/integers.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/run_time_axes.h"

namespace lathe::onnx::operators {

namespace {

// The shape that `wanted` asks for: 0 takes the input's extent there (unless allowed as itself), one -1 what is left.
// Entries that are only known when the model runs are resolved by expressions.
Shape resolve(NodeImport& c, const Shape& own, Integers wanted, bool allow_zero) {
  std::optional<size_t> open;
  bool may_be_open = false;
  for (size_t d = 0; d < wanted.size(); ++d) {
    ir::Expr& extent = wanted[d];
    extent = c.same_sizes().own(extent);
    if (const auto known = ir::as_int(extent)) {
      if (*known < -1 || (*known == 0 && !allow_zero && d >= own.size()))
        c.fail(codes::wrong_shape, "cannot reshape " + relax::text_of(own) + " to " + relax::text_of(wanted) + ": " +
                                       std::to_string(*known) + " at " + std::to_string(d) + " has no meaning there");
      if (*known == 0 && !allow_zero) extent = own[d];
      if (*known != -1) continue;
      if (open) c.fail(codes::wrong_shape, "cannot reshape to " + relax::text_of(wanted) + ": two extents are -1");
      open = d;
    } else if (!c.bounds().at_least(extent, 0)) {
      may_be_open = true;
      if (!allow_zero && d < own.size()) extent = ir::select(ir::eq(extent, ir::int64(0)), own[d], extent);
    }
  }
  const ir::Expr count = ir::product(own);
  const auto without = [&](size_t skipped) {
    Shape others;
    for (size_t d = 0; d < wanted.size(); ++d) {
      if (d == skipped) continue;
      const bool sure = c.bounds().at_least(wanted[d], 0);
      others.push_back(sure ? wanted[d] : ir::select(wanted[d] < 0, ir::int64(1), wanted[d]));
    }
    return others;
  };
  if (open) {
    const ir::Expr others = relax::simplified(ir::product(without(*open)));
    if (ir::is_int(others, 0)) {
      if (!ir::is_int(relax::simplified(count), 0) || allow_zero)
        c.fail(codes::wrong_shape, "cannot reshape " + relax::text_of(own) + " to " + relax::text_of(wanted) +
                                       ": the extent left open could be any");
      wanted[*open] = ir::int64(0);
    } else {
      if (relax::different_extents(ir::floormod(count, others), ir::int64(0)))
        c.fail(codes::wrong_shape, "cannot reshape " + relax::text_of(own) + " to " + relax::text_of(wanted) + ": " +
                                       relax::text_of(count) + " elements are not a multiple of " +
                                       relax::text_of(others));
      wanted[*open] = relax::extent_left(own, without(*open));
    }
  } else if (may_be_open) {
    Shape resolved = wanted;
    for (size_t d = 0; d < wanted.size(); ++d)
      if (!c.bounds().at_least(wanted[d], 0)) {
        // Guarded, so that no division by zero is computed where the branch is not taken.
        const ir::Expr others = ir::max(ir::product(without(d)), ir::int64(1));
        resolved[d] = ir::select(wanted[d] < 0, ir::floordiv(count, others), wanted[d]);
      }
    wanted = std::move(resolved);
  }
  for (ir::Expr& extent : wanted) extent = relax::simplified(extent);
  return wanted;
}

void check_rank(NodeImport& c, size_t i) {
  if (c.rank(i) != 1)
    c.fail(codes::wrong_node,
           "the input " + std::to_string(i) + " has " + std::to_string(c.rank(i)) + " dimensions; a shape has one");
}

// Where all other extents are the input's, the place of the one that is left, and what the input has left for it: this
// it has to be.
struct LeftExtent {
  size_t at = 0;
  ir::Expr own;
};
std::optional<LeftExtent> left_extent(const Shape& own, const Shape& shape) {
  Shape left = own;
  std::vector<size_t> computed;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto same = std::find_if(left.begin(), left.end(),
                                   [&](const ir::Expr& extent) { return relax::same_extent(extent, shape[d]); });
    if (same != left.end())
      left.erase(same);
    else
      computed.push_back(d);
  }
  const ir::Expr product = relax::simplified(ir::product(left));
  if (computed.size() != 1 || ir::as_int(product) || ir::as_int(shape[computed[0]])) return std::nullopt;
  return LeftExtent{computed[0], product};
}

// Of shapes that the model computes: what they have to be, as far as the input tells.
void expect_same_count(NodeImport& c, Shape& shape) {
  const ir::Expr own = relax::simplified(ir::product(c.shape(0))), other = relax::simplified(ir::product(shape));
  if (relax::same_extent(own, other) || (ir::as_int(own) && ir::as_int(other))) return;
  const auto left = left_extent(c.shape(0), shape);
  c.expect(left ? ir::eq(shape[left->at], left->own) : ir::eq(other, own),
           relax::Message() << "the shape " << shape << " holds " << other << " elements, but " << c.name_of(0)
                            << " has " << own);
  if (!left) return;
  c.same_sizes().add(shape[left->at], left->own);
  shape[left->at] = left->own;
}

void reshape(NodeImport& c) {
  const bool allow_zero = c.version >= 14 && c.attributes.flag("allowzero", false);
  check_rank(c, 1);
  const Expr x = c.input(0);
  const Integers wanted = c.integers_or(1, c.declared_rank(0));
  if (!constants_of(wanted)) c.expect_at_least(1, wanted, -1, "an extent is 0 or more, or -1 for what is left");
  Shape shape = resolve(c, c.shape(0), wanted, allow_zero);
  expect_same_count(c, shape);
  c.set(c.reshape(x, shape));
}

bool fold_reshape(NodeImport& c) {
  const bool allow_zero = c.version >= 14 && c.attributes.flag("allowzero", false);
  check_rank(c, 1);
  Shape own;
  for (const int64_t dim : c.integer_dims(0)) own.push_back(ir::int64(dim));
  const auto dims = constants_of(resolve(c, own, *c.known(1), allow_zero));
  if (!dims) return false;
  for (const int64_t dim : *dims)
    if (dim > most_integers) return false;
  if (dims->size() > 8 || element_count(*dims) != static_cast<int64_t>(c.known(0)->size())) return false;
  c.set_integers(*c.known(0), *dims, c.dtype(0));
  return true;
}

void flatten(NodeImport& c) {
  const int64_t rank = c.rank(0), given = c.attributes.integer("axis", 1);
  if (given < (c.version >= 11 ? -rank : 0) || given > rank)
    c.fail(codes::wrong_attribute,
           "axis " + std::to_string(given) + " is outside a tensor of rank " + std::to_string(rank));
  const int64_t axis = given < 0 ? given + rank : given;
  const Shape& shape = c.shape(0);
  const Shape outer(shape.begin(), shape.begin() + axis), inner(shape.begin() + axis, shape.end());
  c.set(c.reshape(c.input(0), {relax::simplified(ir::product(outer)), relax::simplified(ir::product(inner))}));
}

// Axes are an attribute before opset 13, then an input; `count` says how many where only the declared rank tells.
std::optional<Integers> read_axes(NodeImport& c, std::optional<int64_t> count) {
  if (c.version >= 13) return c.has(1) ? std::optional(c.integers_or(1, count)) : std::nullopt;
  const auto given = c.attributes.integers("axes");
  if (!given) return std::nullopt;
  Integers axes;
  for (const int64_t each : *given) axes.push_back(ir::int64(each));
  return axes;
}

// The dims without those at `axes`, which must be 1; without axes, without all that are 1: a symbol must not be then.
Shape squeezed(NodeImport& c, const Shape& own) {
  const auto rank = static_cast<int64_t>(own.size());
  const auto declared = c.declared_rank(0);
  const std::optional<Integers> given = read_axes(c, declared ? std::optional(rank - *declared) : std::nullopt);
  Shape result;
  if (!given) {
    for (size_t d = 0; d < own.size(); ++d) {
      if (ir::is_int(own[d], 1)) continue;
      result.push_back(own[d]);
      if (!ir::as_int(own[d]))
        c.expect(relax::simplified(ir::ne(own[d], ir::int64(1))),
                 relax::Message() << "axis " + std::to_string(d) +
                                         " has extent 1, which Squeeze drops where it is given no axes: the rank of "
                                         "the result must not depend on the run");
    }
    return result;
  }
  const auto constants = constants_of(*given);
  if (!constants) {
    if (c.version >= 13) c.expect_axes(1, *given, rank);
    Shape left =
        without_chosen(own, chosen_by(*given, rank), std::max<int64_t>(rank - static_cast<int64_t>(given->size()), 0));
    const ir::Expr before = ir::product(own), after = ir::product(left);
    c.expect(ir::eq(relax::simplified(before), relax::simplified(after)),
             relax::Message() << "an axis that is left out has an extent other than 1");
    return left;
  }
  const std::vector<int64_t> axes = c.axes(*constants, rank);
  for (int64_t d = 0; d < rank; ++d) {
    const ir::Expr& extent = own[static_cast<size_t>(d)];
    if (std::find(axes.begin(), axes.end(), d) == axes.end())
      result.push_back(extent);
    else if (relax::different_extents(extent, ir::int64(1)))
      c.fail(codes::wrong_shape, "axis " + std::to_string(d) + " of " + relax::text_of(own) +
                                     " cannot be squeezed: its extent is " + relax::text_of(extent));
  }
  return result;
}

Shape unsqueezed(NodeImport& c, const Shape& own) {
  const auto declared = c.declared_rank(0);
  const std::optional<Integers> given =
      read_axes(c, declared ? std::optional(*declared - static_cast<int64_t>(own.size())) : std::nullopt);
  if (!given) c.fail(codes::wrong_attribute, "the attribute 'axes' is missing");
  if (given->size() > 64) c.fail(codes::wrong_attribute, "Unsqueeze has " + std::to_string(given->size()) + " axes");
  const auto constants = constants_of(*given);
  if (!constants) {
    if (c.version >= 13) c.expect_axes(1, *given, static_cast<int64_t>(own.size() + given->size()));
    return with_axes(own, *given);
  }
  std::vector<int64_t> axes = c.axes(*constants, static_cast<int64_t>(own.size() + given->size()));
  std::sort(axes.begin(), axes.end());
  Shape result = own;
  for (const int64_t axis : axes) result.insert(result.begin() + axis, ir::int64(1));
  return result;
}

template <Shape (*shape)(NodeImport&, const Shape&)>
void reshaped(NodeImport& c) {
  const Expr x = c.input(0);
  c.set(c.reshape(x, shape(c, c.shape(0))));
}

template <Shape (*shape)(NodeImport&, const Shape&)>
bool fold_reshaped(NodeImport& c) {
  Shape own;
  for (const int64_t dim : c.integer_dims(0)) own.push_back(ir::int64(dim));
  const auto dims = constants_of(shape(c, own));
  if (!dims) return false;
  c.set_integers(*c.known(0), *dims, c.dtype(0));
  return true;
}

const OperatorRow reshape_rows[] = {
    {"Reshape", {5, 13, 14, 19, 21, 23, 24, 25}, 2, 2, 1, reshape, fold_reshape},
    {"Flatten", {1, 9, 11, 13, 21, 23, 24, 25}, 1, 1, 1, flatten},
    {"Squeeze", {1, 11, 13, 21, 23, 24, 25}, 1, 2, 1, reshaped<squeezed>, fold_reshaped<squeezed>},
    {"Unsqueeze", {1, 11, 13, 21, 23, 24, 25}, 1, 2, 1, reshaped<unsqueezed>, fold_reshaped<unsqueezed>},
};

}  // namespace

Table reshape() { return reshape_rows; }

}  // namespace lathe::onnx::operators
