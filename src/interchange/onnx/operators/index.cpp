// Reading and writing by indices: GatherElements, GatherND, ScatterElements, ScatterND, TensorScatter, OneHot; and what
// depends on an element's place alone: Trilu, EyeLike, ReverseSequence, Hardmax.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "ops/build.h"
#include "relax/strings.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

void check_same_rank(NodeImport& c, size_t i) {
  if (c.rank(i) != c.rank(0))
    c.fail(codes::wrong_node, "the input " + std::to_string(i) + " has " + std::to_string(c.rank(i)) +
                                  " dimensions, but the data has " + std::to_string(c.rank(0)));
}

void expect_along(NodeImport& c, int64_t axis) {
  c.expect_indices(1, {c.shape(0)[static_cast<size_t>(axis)]}, "axis " + std::to_string(axis));
}

// The last dimension of the indices holds coordinates of the data's dimensions from `first` on.
void expect_coordinates(NodeImport& c, const Expr& indices, int64_t first) {
  const auto width = ir::as_int(relax::as_tensor(indices)->shape->back());
  const Shape own = c.shape(0);
  const auto end = first + width.value_or(0);
  if (!width || *width < 1 || end > static_cast<int64_t>(own.size())) return;  // the operator says it
  std::string axes = std::to_string(first);
  if (end > first + 1) axes += " to " + std::to_string(end - 1);
  c.expect_indices(1, {own.begin() + first, own.begin() + end}, (*width > 1 ? "axes " : "axis ") + axes);
}

void gather_elements(NodeImport& c) {
  const int64_t axis = c.axis(c.attributes.integer("axis", 0), c.rank(0));
  check_same_rank(c, 1);
  expect_along(c, axis);
  c.set(build::gather_elements(c.builder(), c.input(0), c.input(1), axis));
}

void gather_nd(NodeImport& c) {
  const int64_t batch_dims = c.version >= 12 ? c.attributes.integer("batch_dims", 0) : 0;
  if (batch_dims < 0 || batch_dims >= c.rank(0))
    c.fail(codes::wrong_attribute, "the attribute 'batch_dims' is " + std::to_string(batch_dims) +
                                       " for a tensor of rank " + std::to_string(c.rank(0)));
  // The declared rank tells how many coordinates an index has where its extent does not.
  Expr indices = c.input(1);
  if (const auto declared = c.declared_rank(0); declared && c.rank(1) > 0)
    indices = c.with_extent(indices, c.rank(1) - 1, c.rank(0) + c.rank(1) - 1 - batch_dims - *declared);
  if (c.rank(1) > 0) expect_coordinates(c, indices, batch_dims);
  c.set(build::gather_nd(c.builder(), c.input(0), indices, batch_dims));
}

build::Combine read_combine(NodeImport& c) {
  if (c.version < 16) return build::Combine::replace;
  const std::string word = c.version >= 18 ? c.attributes.word("reduction", {"none", "add", "mul", "max", "min"})
                                           : c.attributes.word("reduction", {"none", "add", "mul"});
  if (word != "none" && c.dtype(0) == relax::string_dtype)
    c.fail(codes::wrong_attribute, "the reduction '" + word + "' is not one of strings");
  if (word == "add") return build::Combine::add;
  if (word == "mul") return build::Combine::multiply;
  if (word == "min") return build::Combine::minimum;
  return word == "max" ? build::Combine::maximum : build::Combine::replace;
}

void check_updates(NodeImport& c) {
  if (c.dtype(2) != c.dtype(0))
    c.fail(codes::wrong_node, "the updates are " + c.dtype(2).str() + ", but the data is " + c.dtype(0).str());
}

void scatter_elements(NodeImport& c) {
  const int64_t axis = c.axis(c.attributes.integer("axis", 0), c.rank(0));
  check_same_rank(c, 1);
  check_same_rank(c, 2);
  check_updates(c);
  expect_along(c, axis);
  c.set(build::scatter_elements(c.builder(), c.input(0), c.input(1), c.input(2), axis, read_combine(c)));
}

void scatter_nd(NodeImport& c) {
  check_updates(c);
  Expr indices = c.input(1);  // the ranks tell how many coordinates an index has where its extent does not
  if (c.rank(1) > 0) indices = c.with_extent(indices, c.rank(1) - 1, c.rank(0) + c.rank(1) - 1 - c.rank(2));
  if (c.rank(1) > 0) expect_coordinates(c, indices, 0);
  c.set(build::scatter_nd(c.builder(), c.input(0), indices, c.input(2), read_combine(c)));
}

// New entries of a cache of keys or values.
void tensor_scatter(NodeImport& c) {
  const int64_t axis = c.attributes.integer("axis", -2);
  const std::string mode = c.attributes.word("mode", {"linear", "circular"});
  std::vector<Expr> args{c.input(0), c.input(1)};
  if (c.has(2)) args.push_back(c.input(2));
  const Expr result = c.call(ops::tensor_scatter, std::move(args), {{"axis", axis}, {"mode", mode}});
  if (c.has(2) && mode == "linear") {  // a circle has no end
    const auto d = static_cast<size_t>(c.axis(axis, c.rank(0)));
    const ir::Expr &extent = c.shape(0)[d], &length = c.shape(1)[d];
    c.expect_elements(
        2, {ir::int64(0)}, {relax::simplified(extent - length + 1)},
        relax::Message() << length << " entries of " << c.name_of(1) << " fit " << c.name_of(0) << " at places");
  }
  c.set(result);
}

// values[1] where the new axis has the index, values[0] elsewhere; an index outside [-depth, depth) has none.
void one_hot(NodeImport& c) {
  const int64_t rank = c.rank(0) + 1;
  const int64_t axis = c.axis(c.attributes.integer("axis", -1), rank);
  const Expr indices = c.cast(c.input(0), DType::int64());
  ir::Expr depth;
  if (const Integers* known = c.known(1); known && known->size() == 1)
    depth = known->front();
  else
    depth = c.read_at_run_time(c.reshape(c.cast(c.input(1), DType::int64()), {}), 1)[0];
  c.expect_at_least(1, {depth}, 0, "the new axis has 0 elements or more");
  depth = relax::non_negative(depth);
  if (c.rank(2) != 1) c.fail(codes::wrong_node, "the values of OneHot are a vector of two, off and on");
  build::expect_equal(c.builder(), c.shape(2)[0], ir::int64(2));
  Shape shape = *relax::as_tensor(indices)->shape;
  shape.insert(shape.begin() + axis, depth);
  const auto make = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          std::vector<ir::Expr> at = i;
          at.erase(at.begin() + axis);
          const ir::Expr index = in[0](std::move(at)), place = i[static_cast<size_t>(axis)];
          const ir::Expr hot = ir::eq(ir::select(index < 0, index + depth, index), place);
          return ir::select(hot, in[1]({ir::int64(1)}), in[1]({ir::int64(0)}));
        },
        in, "one_hot")};
  };
  c.set(c.builder().call_te("one_hot", {indices, c.input(2)}, make).value_or_throw());
}

// The lower or upper triangle of matrices, from the diagonal that is k above the main one.
void trilu(NodeImport& c) {
  const bool upper = c.attributes.flag("upper", true);
  if (c.rank(0) < 2)
    c.fail(codes::wrong_node, "Trilu takes matrices, but its input has " + std::to_string(c.rank(0)) + " dimensions");
  ir::Expr k = ir::int64(0);
  if (c.has(1)) {
    const Integers given = c.integers(1);
    if (given.size() != 1) c.fail(codes::wrong_node, "the input k of Trilu is not one number");
    k = given[0];
  }
  const ir::Expr zero = ir::constant(relax::loop_dtype(c.dtype(0)), 0);
  c.set(build::elementwise(
      c.builder(), {c.input(0)}, c.shape(0),
      [&](const std::vector<ir::Expr>& x, const std::vector<ir::Expr>& i) {
        const ir::Expr above = i[i.size() - 1] - i[i.size() - 2];
        return ir::select(upper ? above >= k : above <= k, x[0], zero);
      },
      "trilu"));
}

void eye_like(NodeImport& c) {
  const int64_t k = c.attributes.integer("k", 0);
  DType dtype = c.dtype(0);
  if (c.attributes.has("dtype"))
    dtype = element_type(c.attributes.integer("dtype"), "the result", c.place()).value_or_throw();
  if (c.rank(0) != 2)
    c.fail(codes::wrong_node, "EyeLike takes a matrix, but its input has " + std::to_string(c.rank(0)) + " dimensions");
  const auto make = [&](const std::vector<te::Tensor>&) {
    return std::vector{te::compute(
        c.shape(0), [&](const std::vector<ir::Expr>& i) { return ir::cast(dtype, ir::eq(i[1] - i[0], ir::int64(k))); },
        {}, "eye_like")};
  };
  c.set(c.builder().call_te("eye_like", {}, make).value_or_throw());
}

// The first lengths[batch] elements along the time axis, the other way round.
void reverse_sequence(NodeImport& c) {
  const int64_t batch = c.axis(c.attributes.integer("batch_axis", 1), c.rank(0), "batch_axis");
  const int64_t time = c.axis(c.attributes.integer("time_axis", 0), c.rank(0), "time_axis");
  if (batch == time) c.fail(codes::wrong_attribute, "'batch_axis' and 'time_axis' are the same axis");
  if (c.rank(1) != 1) c.fail(codes::wrong_shape, "the lengths are not a vector");
  const Shape shape = c.shape(0);
  build::expect_equal(c.builder(), c.shape(1)[0], shape[static_cast<size_t>(batch)]);
  const ir::Expr& steps = shape[static_cast<size_t>(time)];
  c.expect_elements(1, {ir::int64(0)}, {relax::simplified(steps + 1)},
                    relax::Message() << "axis " << std::to_string(time) << " of " << c.name_of(0) << " takes lengths");
  const auto make = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](std::vector<ir::Expr> i) {
          ir::Expr& at = i[static_cast<size_t>(time)];
          const ir::Expr last = shape[static_cast<size_t>(time)] - 1;
          const ir::Expr length = ir::cast(DType::int64(), in[1]({i[static_cast<size_t>(batch)]}));
          at = ir::select(at < length, build::index_into(ir::min(length - 1, last) - at, last + 1), at);
          return in[0](std::move(i));
        },
        in, "reverse_sequence")};
  };
  c.set(c.builder().call_te("reverse_sequence", {c.input(0), c.input(1)}, make).value_or_throw());
}

// 1 at the first largest element along the axis, 0 elsewhere; before opset 13 over all dimensions from the axis on.
void hardmax(NodeImport& c) {
  const int64_t rank = c.rank(0);
  const Shape shape = c.shape(0);
  int64_t axis = c.attributes.integer("axis", c.version >= 13 ? -1 : 1);
  Expr x = c.input(0);
  if (c.version >= 13) {
    axis = c.axis(axis, rank);
  } else {
    if (axis != rank) axis = c.axis(axis, rank);
    const Shape outer(shape.begin(), shape.begin() + axis), inner(shape.begin() + axis, shape.end());
    x = c.reshape(x, {relax::simplified(ir::product(outer)), relax::simplified(ir::product(inner))});
    axis = 1;
  }
  const Expr largest = c.call(ops::argmax, {x}, ir::make<ops::ArgReduceAttributes>(std::optional(axis), true, false));
  const DType dtype = c.dtype(0);
  const Expr chosen = build::elementwise(
      c.builder(), {largest}, build::shape_of(x),
      [&](const std::vector<ir::Expr>& index, const std::vector<ir::Expr>& i) {
        return ir::cast(dtype, ir::eq(index[0], i[static_cast<size_t>(axis)]));
      },
      "hardmax");
  c.set(c.reshape(chosen, shape));
}

const OperatorRow index_rows[] = {
    {"GatherElements", {11, 13}, 2, 2, 1, gather_elements},
    {"GatherND", {11, 12, 13}, 2, 2, 1, gather_nd},
    {"Scatter", {9, 11}, 3, 3, 1, scatter_elements},
    {"ScatterElements", {11, 13, 16, 18}, 3, 3, 1, scatter_elements},
    {"ScatterND", {11, 13, 16, 18}, 3, 3, 1, scatter_nd},
    {"TensorScatter", {24}, 2, 3, 1, tensor_scatter},
    {"OneHot", {9, 11}, 3, 3, 1, one_hot},
    {"Trilu", {14}, 1, 2, 1, trilu},
    {"EyeLike", {9, 22}, 1, 1, 1, eye_like},
    {"ReverseSequence", {10}, 2, 2, 1, reverse_sequence},
    {"Hardmax", {1, 11, 13}, 1, 1, 1, hardmax},
};

}  // namespace

Table index() { return index_rows; }

}  // namespace lathe::onnx::operators
