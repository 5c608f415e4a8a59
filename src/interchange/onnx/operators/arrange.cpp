// Operators that move elements: Transpose, Concat, Split, Pad, Expand, Tile.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/integers.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/run_time_axes.h"
#include "ops/build.h"

namespace lathe::onnx::operators {

namespace {

std::string text_of_list(const std::vector<int64_t>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size() && i < 16; ++i) text += (i ? ", " : "") + std::to_string(values[i]);
  return text + (values.size() > 16 ? ", ...]" : "]");
}

void transpose(NodeImport& c) {
  auto perm = c.attributes.integers("perm");
  const int64_t rank = c.rank(0);
  if (perm) {
    std::vector<int64_t> sorted = *perm;
    std::sort(sorted.begin(), sorted.end());
    bool whole = static_cast<int64_t>(sorted.size()) == rank;
    for (size_t d = 0; whole && d < sorted.size(); ++d) whole = sorted[d] == static_cast<int64_t>(d);
    if (!whole)
      c.fail(codes::wrong_attribute, "the attribute 'perm' " + text_of_list(*perm) + " is no permutation of the " +
                                         std::to_string(rank) + " axes");
  }
  c.set(c.call(ops::permute_dims, {c.input(0)}, ir::make<ops::PermuteDimsAttributes>(std::move(perm))));
}

void concat(NodeImport& c) {
  const int64_t axis =
      c.axis(c.version >= 4 ? c.attributes.integer("axis") : c.attributes.integer("axis", 1), c.rank(0));
  std::vector<Expr> parts;
  for (size_t i = 0; i < c.input_count(); ++i) parts.push_back(c.input(i));
  c.set(parts.size() == 1 ? parts[0] : c.call(ops::concat, std::move(parts), ir::make<ops::AxisAttributes>(axis)));
}

// Vectors joined.
bool fold_concat(NodeImport& c) {
  Integers all;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has(i) || c.rank(i) != 1 || c.dtype(i) != c.dtype(0)) return false;
    const Integers& part = *c.known(i);
    all.insert(all.end(), part.begin(), part.end());
  }
  c.axis(c.attributes.integer("axis"), 1);
  const auto count = static_cast<int64_t>(all.size());
  c.set_integers(std::move(all), {count}, c.dtype(0));
  return true;
}

// x[begin : end] along one axis, unit steps.
Expr part(NodeImport& c, const Expr& x, int64_t axis, const ir::Expr& begin, const ir::Expr& end) {
  return c.call(ops::strided_slice, {x, shape_expr({begin}), shape_expr({end})},
                ir::make<ops::StridedSliceAttributes>(std::vector<int64_t>{axis}));
}

// Into parts of given sizes, or equal ones; from opset 18 the last equal part may be smaller.
void split(NodeImport& c) {
  const int64_t axis = c.axis(c.attributes.integer("axis", 0), c.rank(0));
  const auto outputs = static_cast<int64_t>(c.output_count());
  const Expr x = c.input(0);
  const ir::Expr extent = c.shape(0)[static_cast<size_t>(axis)];
  std::optional<Integers> sizes;
  if (c.version < 13) {
    if (const auto given = c.attributes.integers("split")) {
      sizes.emplace();
      for (const int64_t size : *given) sizes->push_back(ir::int64(size));
    }
  } else if (c.has(1)) {
    sizes = c.integers(1, outputs);
  }
  if (c.version >= 18 && c.attributes.has("num_outputs")) {
    const int64_t count = c.attributes.integer("num_outputs");
    if (sizes) c.fail(codes::wrong_node, "Split has both sizes and the attribute 'num_outputs'");
    if (count != outputs)
      c.fail(codes::wrong_attribute, "the attribute 'num_outputs' is " + std::to_string(count) + ", but the node has " +
                                         std::to_string(outputs) + " outputs");
  }
  if (sizes && static_cast<int64_t>(sizes->size()) != outputs)
    c.fail(codes::wrong_node,
           "Split has " + std::to_string(sizes->size()) + " sizes, but " + std::to_string(outputs) + " outputs");
  if (sizes) {
    if (c.version >= 13) c.expect_at_least(1, *sizes, 0, "a part has 0 elements or more");
    ir::Expr total = ir::int64(0);
    relax::Message message;
    for (const ir::Expr& size : *sizes) {
      message << (size.same_as(sizes->front()) ? "the sizes " : ", ") << size;
      total = relax::simplified(total + size);
    }
    const bool are_known = ir::as_int(total) && ir::as_int(extent);  // then the operator compares them
    if (!are_known)
      c.expect(ir::eq(total, extent), message << " are " << total << " together, but axis " << std::to_string(axis)
                                              << " of " << c.name_of(0) << " has " << extent << " elements");
    if (const auto constants = constants_of(*sizes); constants && ir::as_int(extent)) {
      const Expr parts = c.call(ops::split, {x}, ir::make<ops::SplitAttributes>(axis, *constants));
      for (size_t i = 0; i < c.output_count(); ++i) c.set(i, c.builder().tuple_item(parts, static_cast<int64_t>(i)));
      return;
    }
    ir::Expr at = ir::int64(0);
    for (size_t i = 0; i < c.output_count(); ++i) {
      const ir::Expr next = relax::simplified(at + (*sizes)[i]);
      c.set(i, part(c, x, axis, at, next));
      at = next;
    }
    return;
  }
  if (const auto known = ir::as_int(extent); known && c.version < 18 && *known % outputs != 0)
    c.fail(codes::wrong_shape, "Split into " + std::to_string(outputs) + " equal parts of " + std::to_string(*known));
  if (c.version < 18)
    c.expect(ir::eq(ir::floormod(extent, ir::int64(outputs)), ir::int64(0)),
             relax::Message() << "axis " << std::to_string(axis) << " of " << c.name_of(0) << " has " << extent
                              << " elements, which " << std::to_string(outputs) << " equal parts do not make");
  const ir::Expr size = relax::simplified(ir::ceildiv(extent, ir::int64(outputs)));
  for (int64_t i = 0; i < outputs; ++i) {
    const ir::Expr begin = relax::simplified(ir::min(size * i, extent));
    const ir::Expr end = relax::simplified(ir::min(size * (i + 1), extent));
    c.set(static_cast<size_t>(i), part(c, x, axis, begin, end));
  }
}

// Pads of axes whose number only the run tells: all the dimensions' worth, of which those beyond are no axis's.
ir::Expr read_open_pads(NodeImport& c, Integers& pads, Integers& axes) {
  const int64_t rank = c.rank(0);
  const auto open = c.integers_up_to(3, rank, rank);
  const ir::Expr& count = open.length;
  axes = open.values;
  const Expr given = c.input(1);
  const ir::Expr own = c.known(1) ? ir::int64(c.integer_dims(1)[0]) : c.shape(1)[0];
  ops::build::expect_equal(c.builder(), own, relax::simplified(count * 2));
  const auto spread = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        {ir::int64(2 * rank)},
        [&](const std::vector<ir::Expr>& at) {
          const ir::Expr axis = ir::floormod(at[0], ir::int64(rank)), side = ir::floordiv(at[0], ir::int64(rank));
          const ir::Expr pad = ir::cast(DType::int64(), in[0]({side * count + axis}));
          return ir::if_then_else(axis < count, pad, ir::int64(0));
        },
        in, "open_pads")};
  };
  pads = c.read_at_run_time(c.builder().call_te("open_pads", {given}, spread).value_or_throw(), 2 * rank);
  return count;
}

// A dimension keeps 0 elements at least; beyond its ends there are only those that the mode finds inside.
void expect_pads(NodeImport& c, const std::string& mode, int64_t d, const ir::Expr& before, const ir::Expr& after) {
  const ir::Expr& extent = c.shape(0)[static_cast<size_t>(d)];
  const auto pads = [&] {
    return relax::Message() << "the pads " << before << " and " << after << " of axis " << std::to_string(d)
                            << ", which has " << extent << " elements, ";
  };
  c.expect(before + extent + after >= 0, pads() << "leave less than none");
  if (mode == "constant") return;
  // A mirror at the last element shows all others, a wall or a ring what is there.
  const ir::Expr most = ir::max(before, after);
  if (mode == "reflect")
    c.expect(ir::logical_or(most < extent, most <= 0), pads() << "are mirrored from further than there is");
  else
    c.expect(ir::logical_or(extent > 0, most <= 0), pads() << "are copies of an element, but there is none");
}

// Pads before and after each dimension. Before opset 11 attributes; from 18 on an input may choose the axes.
void pad(NodeImport& c) {
  const std::string mode = c.version >= 19 ? c.attributes.word("mode", {"constant", "reflect", "edge", "wrap"})
                                           : c.attributes.word("mode", {"constant", "reflect", "edge"});
  const int64_t rank = c.rank(0);
  const Expr x = c.input(0);
  Integers pads;
  Expr value;
  if (c.version < 11) {
    const auto given = c.attributes.integers("pads");
    if (!given) c.fail(codes::wrong_attribute, "the attribute 'pads' is missing");
    for (const int64_t each : *given) pads.push_back(ir::int64(each));
    value = c.scalar(c.dtype(0), c.attributes.number("value", 0));
  } else {
    if (c.has(2)) value = c.input(2);
  }
  Integers axes;
  ir::Expr open_count;  // of the axes
  if (c.version >= 18 && c.has(3) && c.has_open_length(3)) {
    open_count = read_open_pads(c, pads, axes);
  } else {
    if (c.version >= 18 && c.has(3))
      axes = c.integers(3);
    else
      for (int64_t d = 0; d < rank; ++d) axes.push_back(ir::int64(d));
    if (c.version >= 11) pads = c.integers(1, 2 * static_cast<int64_t>(axes.size()));
  }
  if (pads.size() != 2 * axes.size())
    c.fail(codes::wrong_node, "Pad has " + std::to_string(pads.size()) + " pads for " + std::to_string(axes.size()) +
                                  " axes; it takes two for each");
  if (const auto constants = constants_of(axes)) c.axes(*constants, rank);
  for (const ir::Expr& each : pads)
    if (const auto known = ir::as_int(each); known && std::abs(*known) > std::numeric_limits<int32_t>::max())
      c.fail(codes::wrong_attribute, "a pad of " + std::to_string(*known) + " is out of range");
  if (c.version >= 18 && c.has(3)) c.expect_axes(3, axes, rank, open_count);
  Integers before, after;
  for (int64_t d = 0; d < rank; ++d) {
    ir::Expr low = ir::int64(0), high = ir::int64(0);
    for (size_t k = 0; k < axes.size(); ++k) {
      const ir::Expr here = is_axis(axes[k], d, rank);
      low = ir::select(here, pads[k], low);
      high = ir::select(here, pads[k + axes.size()], high);
    }
    before.push_back(relax::simplified(low));
    after.push_back(relax::simplified(high));
    expect_pads(c, mode, d, before.back(), after.back());
  }
  std::vector<Expr> args{x, shape_expr(std::move(before)), shape_expr(std::move(after))};
  if (mode == "constant" && value) args.push_back(value);
  c.set(c.call(ops::pad, std::move(args), ir::make<ops::PadAttributes>(mode)));
}

// The shape asked for; one whose length only the run tells is as long as the declared rank, filled up by ones in front.
Integers expanded_shape(NodeImport& c) {
  const auto declared = c.declared_rank(0);
  if (!c.has_open_length(1) || !declared) return c.integers(1);
  const auto [wanted, length] = c.integers_up_to(1, *declared, 1, true);
  const int64_t own = c.rank(0);
  if (own < *declared) ops::build::expect_equal(c.builder(), length, ir::int64(*declared));
  return wanted;
}

void expand(NodeImport& c) {
  const Expr x = c.input(0);
  const Integers wanted = expanded_shape(c);
  for (const ir::Expr& extent : wanted)
    if (const auto known = ir::as_int(extent); known && *known < 0)
      c.fail(codes::wrong_shape,
             "cannot expand to " + relax::text_of(wanted) + ": " + std::to_string(*known) + " is negative");
  c.expect_at_least(1, wanted, 0, "an extent is 0 or more");
  const Shape& own = c.shape(0);
  for (size_t back = 1; back <= std::min(own.size(), wanted.size()); ++back) {
    const ir::Expr &a = own[own.size() - back], &b = wanted[wanted.size() - back], one = ir::int64(1);
    if (ir::as_int(a) && ir::as_int(b)) continue;  // compared below
    c.expect(ir::logical_or(ir::logical_or(ir::eq(a, one), ir::eq(b, one)), ir::eq(a, b)),
             relax::Message() << c.name_of(0) << " does not expand to " << wanted << ": " << a << " and " << b
                              << " are neither equal nor 1");
  }
  const Shape shape = relax::broadcast_shapes(c.shape(0), wanted).value_or_throw();  // broadcast_to checks at run time
  if (relax::same_shape(shape, c.shape(0)))
    c.set(x);
  else
    c.set(c.call(ops::broadcast_to, {x, shape_expr(shape)}));
}

void tile(NodeImport& c) {
  const Expr x = c.input(0);
  const Integers repeats = c.integers(1, c.rank(0));
  if (static_cast<int64_t>(repeats.size()) != c.rank(0))
    c.fail(codes::wrong_node,
           "Tile has " + std::to_string(repeats.size()) + " repeats for a tensor of rank " + std::to_string(c.rank(0)));
  for (const ir::Expr& each : repeats)
    if (const auto known = ir::as_int(each); known && (*known < 0 || *known > (int64_t{1} << 47)))
      c.fail(codes::wrong_node, "Tile repeats a dimension " + std::to_string(*known) + " times");
  c.expect_at_least(1, repeats, 0, "a dimension is repeated 0 times or more");
  for (size_t d = 0; d < repeats.size(); ++d) {
    const auto extent = ir::as_int(c.shape(0)[d]), times = ir::as_int(repeats[d]);
    int64_t product = 0;
    if (extent && times && __builtin_mul_overflow(*extent, *times, &product))
      c.fail(codes::too_large, "Tile repeats " + std::to_string(*extent) + " elements " + std::to_string(*times) +
                                   " times, more than 64 bits count");
  }
  c.set(c.call(ops::tile, {x, shape_expr(repeats)}));
}

int64_t block_size(NodeImport& c) {
  const int64_t size = c.attributes.integer("blocksize");
  if (size < 1 || size > std::numeric_limits<int32_t>::max())
    c.fail(codes::wrong_attribute, "the attribute 'blocksize' is " + std::to_string(size));
  if (c.rank(0) != 4) c.fail(codes::wrong_node, "the input has " + std::to_string(c.rank(0)) + " dimensions, not 4");
  return size;
}

Expr rearranged(NodeImport& c, Shape folded, std::vector<int64_t> axes, Shape shape) {
  for (Shape* each : {&folded, &shape})
    for (ir::Expr& extent : *each) extent = relax::simplified(extent);
  const Expr parts = c.reshape(c.input(0), std::move(folded));
  const Expr moved =
      c.call(ops::permute_dims, {parts}, ir::make<ops::PermuteDimsAttributes>(std::optional(std::move(axes))));
  return c.reshape(moved, std::move(shape));
}

// Channels become blocks of space: the block's place is the slower (DCR) or the faster part of the channel.
void depth_to_space(NodeImport& c) {
  const ir::Expr size = ir::int64(block_size(c));
  const bool slower = c.version < 11 || c.attributes.word("mode", {"DCR", "CRD"}) == "DCR";
  const Shape own = c.shape(0);
  const ir::Expr depth = ir::floordiv(own[1], size * size);
  const Shape out{own[0], depth, own[2] * size, own[3] * size};
  if (slower)
    c.set(rearranged(c, {own[0], size, size, depth, own[2], own[3]}, {0, 3, 4, 1, 5, 2}, out));
  else
    c.set(rearranged(c, {own[0], depth, size, size, own[2], own[3]}, {0, 1, 4, 2, 5, 3}, out));
}

void space_to_depth(NodeImport& c) {
  const ir::Expr size = ir::int64(block_size(c));
  const Shape own = c.shape(0);
  const ir::Expr height = ir::floordiv(own[2], size), width = ir::floordiv(own[3], size);
  c.set(rearranged(c, {own[0], own[1], height, size, width, size}, {0, 3, 5, 1, 2, 4},
                   {own[0], own[1] * size * size, height, width}));
}

// Crops or pads the axes about their middle to the extents given.
void center_crop_pad(NodeImport& c) {
  const int64_t rank = c.rank(0);
  std::vector<int64_t> axes;
  if (const auto given = c.attributes.integers("axes"))
    axes = c.axes(*given, rank);
  else
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
  const Integers wanted = c.integers(1, static_cast<int64_t>(axes.size()));
  if (wanted.size() != axes.size())
    c.fail(codes::wrong_node, "CenterCropPad has " + std::to_string(wanted.size()) + " extents for " +
                                  std::to_string(axes.size()) + " axes");
  c.expect_at_least(1, wanted, 0, "an extent is 0 or more");
  Integers before(static_cast<size_t>(rank), ir::int64(0)), after = before;
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto d = static_cast<size_t>(axes[k]);
    const ir::Expr own = c.shape(0)[d], more = wanted[k] - own, less = own - wanted[k], two = ir::int64(2);
    // The odd element goes to the end where it is padded; a crop begins at half of what is left over.
    const ir::Expr first = ir::select(more >= 0, ir::floordiv(more, two), ir::int64(0) - ir::floordiv(less, two));
    before[d] = relax::simplified(first);
    after[d] = relax::simplified(more - first);
  }
  c.set(c.call(ops::pad, {c.input(0), shape_expr(std::move(before)), shape_expr(std::move(after))},
               ir::make<ops::PadAttributes>("constant")));
}

const OperatorRow arrange_rows[] = {
    {"Transpose", {1, 13, 21, 23, 24, 25}, 1, 1, 1, transpose},
    {"Concat", {1, 4, 11, 13}, 1, any_number, 1, concat, fold_concat},
    {"Split", {2, 11, 13, 18}, 1, 2, any_number, split},
    {"Pad", {2, 11, 13, 18, 19, 21, 23, 24, 25}, 1, 4, 1, pad},
    {"Expand", {8, 13}, 2, 2, 1, expand},
    {"Tile", {6, 13}, 2, 2, 1, tile},
    {"DepthToSpace", {1, 11, 13}, 1, 1, 1, depth_to_space},
    {"SpaceToDepth", {1, 13}, 1, 1, 1, space_to_depth},
    {"CenterCropPad", {18}, 2, 2, 1, center_crop_pad},
};

}  // namespace

Table arrange() { return arrange_rows; }

}  // namespace lathe::onnx::operators
