// Parts of tensors: Slice and Gather.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/integers.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/run_time_axes.h"
#include "ops/build.h"

namespace lathe::onnx::operators {

namespace {

// As NumPy's x[start:end:step] along some axes. Before opset 10 attributes, then inputs.
struct Ranges {
  Integers starts, ends, axes, steps;
  ir::Expr count;  // of those that are there, where only the run tells it
};

// How many elements the vector `i` has, where that is known.
std::optional<int64_t> known_count(NodeImport& c, size_t i) {
  if (c.rank(i) != 1)
    c.fail(codes::wrong_node,
           "the input " + std::to_string(i) + " of Slice has " + std::to_string(c.rank(i)) + " dimensions, not 1");
  return c.known(i) ? c.integer_dims(i)[0] : ir::as_int(c.shape(i)[0]);
}

// The integers of vectors some of whose lengths only the run tells: at most one for each dimension. What is missing up
// to there is filled up by a range that is the whole of a dimension that does not exist.
Ranges read_open_ranges(NodeImport& c) {
  const int64_t rank = c.rank(0), outside = std::numeric_limits<int64_t>::max();
  const int64_t fillers[] = {0, 0, outside, rank, 1};
  std::optional<int64_t> count;
  ir::Expr length;
  for (size_t i = 1; i < c.input_count(); ++i) {
    if (!c.has(i)) continue;
    if (const auto known = known_count(c, i)) count = known;
    const ir::Expr own = c.known(i) ? ir::int64(c.integer_dims(i)[0]) : c.shape(i)[0];
    if (length) ops::build::expect_equal(c.builder(), own, length);
    length = own;
  }
  const auto read = [&](size_t i) -> Integers {
    if (!c.has(i)) return {};
    if (known_count(c, i)) return c.integers(i);
    return c.integers_up_to(i, count.value_or(rank), fillers[i]).values;
  };
  return {read(1), read(2), read(3), read(4), count ? ir::Expr() : length};
}

Ranges read_ranges(NodeImport& c) {
  Ranges r;
  if (c.version < 10) {
    const auto list = [&](std::string_view name, bool required) {
      const auto given = c.attributes.integers(name);
      if (!given && required) c.fail(codes::wrong_attribute, "the attribute '" + std::string(name) + "' is missing");
      Integers values;
      for (const int64_t each : given.value_or(std::vector<int64_t>{})) values.push_back(ir::int64(each));
      return values;
    };
    r = {list("starts", true), list("ends", true), list("axes", false), {}, {}};
  } else {
    if (c.input_count() < 3)
      c.fail(codes::wrong_node, "Slice takes 3 to 5 inputs, but the node has " + std::to_string(c.input_count()));
    bool is_open = false;
    for (size_t i = 1; i < c.input_count(); ++i) is_open = is_open || (c.has(i) && !known_count(c, i));
    if (is_open)
      r = read_open_ranges(c);
    else
      r = {c.integers(1),
           c.integers(2),
           c.has(3) ? c.integers(3) : Integers{},
           c.has(4) ? c.integers(4) : Integers{},
           {}};
  }
  if (r.axes.empty())
    for (size_t d = 0; d < r.starts.size(); ++d) r.axes.push_back(ir::int64(static_cast<int64_t>(d)));
  if (r.steps.empty()) r.steps.assign(r.starts.size(), ir::int64(1));
  if (r.ends.size() != r.starts.size() || r.axes.size() != r.starts.size() || r.steps.size() != r.starts.size())
    c.fail(codes::wrong_node, "Slice has " + std::to_string(r.starts.size()) + " starts, " +
                                  std::to_string(r.ends.size()) + " ends, " + std::to_string(r.axes.size()) +
                                  " axes and " + std::to_string(r.steps.size()) + " steps");
  if (static_cast<int64_t>(r.starts.size()) > c.rank(0))
    c.fail(codes::wrong_node, "Slice has " + std::to_string(r.starts.size()) + " starts for a tensor of rank " +
                                  std::to_string(c.rank(0)));
  return r;
}

// Of steps and axes that the model computes.
void expect_ranges(NodeImport& c, const Ranges& r) {
  if (c.version < 10) return;
  if (c.has(3)) c.expect_axes(3, r.axes, c.rank(0), r.count);
  for (size_t k = 0; c.has(4) && k < r.steps.size(); ++k)
    c.expect(ir::ne(r.steps[k], ir::int64(0)), relax::Message() << c.name_of(4) << " holds 0 at [" << std::to_string(k)
                                                                << "], but a step leads on or back");
}

void slice(NodeImport& c) {
  const Ranges r = read_ranges(c);
  const auto axes = constants_of(r.axes), steps = constants_of(r.steps);
  const Expr x = c.input(0);
  if (!axes || !steps) {
    expect_ranges(c, r);
    c.set(slice_at_run_time(c, x, r.starts, r.ends, r.axes, r.steps));
    return;
  }
  for (const int64_t step : *steps)
    if (step == 0 || step == std::numeric_limits<int64_t>::min())
      c.fail(codes::wrong_node, "a step of Slice is " + std::to_string(step));
  c.set(c.call(ops::strided_slice, {x, shape_expr(r.starts), shape_expr(r.ends)},
               ir::make<ops::StridedSliceAttributes>(c.axes(*axes, c.rank(0)), *steps)));
}

// A vector's part.
bool fold_slice(NodeImport& c) {
  if (c.rank(0) != 1) return false;
  const Ranges r = read_ranges(c);
  const auto starts = constants_of(r.starts), ends = constants_of(r.ends), axes = constants_of(r.axes),
             steps = constants_of(r.steps);
  if (!starts || !ends || !axes || !steps) return false;
  const Integers& own = *c.known(0);
  Integers chosen = own;
  if (!starts->empty()) {
    c.axes(*axes, 1);
    const auto count = static_cast<int64_t>(own.size());
    const int64_t step = (*steps)[0];
    if (step == 0) return false;
    const auto position = [&](int64_t given, int64_t low, int64_t high) {
      return std::clamp(given < 0 ? given + count : given, low, high);
    };
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? count : count - 1;
    const int64_t start = position((*starts)[0], low, high), end = position((*ends)[0], low, high);
    chosen.clear();
    for (int64_t at = start; step > 0 ? at < end : at > end;) {
      chosen.push_back(own[static_cast<size_t>(at)]);
      if (__builtin_add_overflow(at, step, &at)) break;
    }
  }
  const auto count = static_cast<int64_t>(chosen.size());
  c.set_integers(std::move(chosen), {count}, c.dtype(0));
  return true;
}

void gather(NodeImport& c) {
  const int64_t axis = c.axis(c.attributes.integer("axis", 0), c.rank(0));
  const Expr x = c.input(0), indices = c.input(1);
  c.expect_indices(1, {c.shape(0)[static_cast<size_t>(axis)]}, "axis " + std::to_string(axis));
  c.set(c.call(ops::take, {x, indices}, ir::make<ops::AxisAttributes>(axis)));
}

// Elements of a vector.
bool fold_gather(NodeImport& c) {
  const auto indices = constants_of(*c.known(1));
  if (c.rank(0) != 1 || !indices) return false;
  c.axis(c.attributes.integer("axis", 0), 1);
  const Integers& own = *c.known(0);
  const auto count = static_cast<int64_t>(own.size());
  Integers chosen;
  for (const int64_t index : *indices) {
    if (index < -count || index >= count) return false;  // the tensor's path says it
    chosen.push_back(own[static_cast<size_t>(index < 0 ? index + count : index)]);
  }
  c.set_integers(std::move(chosen), c.integer_dims(1), c.dtype(0));
  return true;
}

const OperatorRow select_rows[] = {
    {"Slice", {1, 10, 11, 13}, 1, 5, 1, slice, fold_slice},
    {"Gather", {1, 11, 13}, 2, 2, 1, gather, fold_gather},
};

}  // namespace

Table select() { return select_rows; }

}  // namespace lathe::onnx::operators
