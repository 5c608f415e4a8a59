// Pooling over windows, and over all of space.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/operators/windows.h"

namespace lathe::onnx::operators {

namespace {

bool is_same(const WindowAttributes& w) { return w.auto_pad == "SAME_UPPER" || w.auto_pad == "SAME_LOWER"; }

relax::AttributesRef pool_attributes(const WindowAttributes& w, bool ceil_mode, bool count_include_pad) {
  return attributes_with<ops::PoolAttributes>([&](ops::PoolAttributes& a) {
    a.pool_size = w.kernel;
    a.strides = w.strides;
    a.padding = w.auto_pad == "NOTSET" ? w.pads : std::vector<int64_t>{};
    a.dilation = w.dilations;
    a.ceil_mode = ceil_mode;
    a.auto_pad = w.auto_pad;
    a.count_include_pad = count_include_pad;
  });
}

relax::AttributesRef pool_attributes(NodeImport& c, bool has_dilations, bool count_include_pad) {
  const WindowAttributes w = read_windows(c, false, has_dilations);
  return pool_attributes(w, c.version >= 10 && c.attributes.flag("ceil_mode", false), count_include_pad);
}

// A row-major index into [N, C, spatial…] as one whose spatial part is column-major.
Expr column_major(NodeImport& c, const Expr& index) {
  const Shape& shape = c.shape(0);
  const Shape spatial(shape.begin() + 2, shape.end());
  const auto number = [&](const ir::Expr& value) {
    const ir::Expr extent = relax::simplified(ir::max(value, ir::int64(1)));
    if (const auto known = ir::as_int(extent))
      return relax::constant(ir::tensor_of<int64_t>(DType::int64(), {}, {*known}));
    return c.reshape(c.call(ops::shape_to_tensor, {ir::make<relax::ShapeExpr>(Shape{extent})}), {});
  };
  Expr inside = c.call(ops::mod, {index, number(ir::product(spatial))});
  Expr result = c.call(ops::subtract, {index, inside});
  for (size_t d = spatial.size(); d-- > 0;) {
    const Expr position = c.call(ops::mod, {inside, number(spatial[d])});
    inside = c.call(ops::divide, {inside, number(spatial[d])});
    const ir::Expr step = ir::product(Shape(spatial.begin(), spatial.begin() + static_cast<int64_t>(d)));
    result = c.call(ops::add, {result, c.call(ops::multiply, {position, number(step)})});
  }
  return result;
}

void max_pool(NodeImport& c) {
  const bool by_column = c.version >= 8 && c.attributes.flag("storage_order", false);
  const relax::AttributesRef attributes = pool_attributes(c, c.version >= 10, false);
  const Expr x = c.input(0);
  if (!c.wants(1)) {
    c.set(c.call(ops::max_pool, {x}, attributes));
    return;
  }
  const Expr both = c.call(ops::max_pool_with_indices, {x}, attributes);
  c.set(0, c.builder().tuple_item(both, 0));
  const Expr index = c.builder().tuple_item(both, 1);
  c.set(1, by_column ? column_major(c, index) : index);
}

void average_pool(NodeImport& c) {
  const bool count_include_pad = c.version >= 7 && c.attributes.flag("count_include_pad", false);
  const relax::AttributesRef attributes = pool_attributes(c, c.version >= 19, count_include_pad);
  c.set(c.call(ops::avg_pool, {c.input(0)}, attributes));
}

template <const relax::Operator& op>
void global_pool(NodeImport& c) {
  spatial_rank(c);
  std::vector<int64_t> axes;
  for (int64_t d = 2; d < c.rank(0); ++d) axes.push_back(d);
  c.set(c.call(op, {c.input(0)}, ir::make<ops::ReduceAttributes>(std::optional(axes), true)));
}

// x with zeros around it, or less of it, so that the windows whose count is rounded up cover all that is left. The
// windows lose their padding by it.
Expr padded_for_windows(NodeImport& c, const Expr& x, WindowAttributes& w) {
  const auto rank = static_cast<size_t>(spatial_rank(c));
  Shape before{ir::int64(0), ir::int64(0)}, after = before;
  const auto at = [](const std::vector<int64_t>& values, size_t d, int64_t otherwise) {
    return values.empty() ? otherwise : values[d];
  };
  for (size_t d = 0; d < rank; ++d) {
    const bool padded = w.auto_pad == "NOTSET";
    const relax::Window window{at(w.strides, d, 1), at(w.dilations, d, 1), ir::int64(w.kernel[d]),
                               ir::int64(padded ? at(w.pads, d, 0) : 0),
                               ir::int64(padded ? at(w.pads, rank + d, 0) : 0)};
    const ir::Expr& extent = c.shape(0)[2 + d];
    const ir::Expr count = relax::window_positions(extent, window, true);
    before.push_back(window.pad_begin);
    after.push_back(relax::simplified(ir::max(count - 1, ir::int64(0)) * window.stride + window.reach() - extent -
                                      window.pad_begin));
  }
  w.pads.clear();
  w.auto_pad = "NOTSET";
  return c.call(ops::pad, {x, ir::make<relax::ShapeExpr>(before), ir::make<relax::ShapeExpr>(after)},
                ir::make<ops::PadAttributes>("constant"));
}

// (sum of |x|^p over the window)^(1/p): the mean over all places of the window, padding included, times their number.
void lp_pool(NodeImport& c) {
  const int64_t p = c.attributes.integer("p", 2);
  if (p < 1) c.fail(codes::wrong_attribute, "the attribute 'p' is " + std::to_string(p));
  WindowAttributes w = read_windows(c, false, c.version >= 18);
  double places = 1;
  for (const int64_t extent : w.kernel) places *= static_cast<double>(extent);
  const DType dtype = c.dtype(0), wide = relax::accumulation_dtype(dtype);
  Expr x = c.call(ops::abs, {c.cast(c.input(0), wide)});
  // A mean has only the places up to the padding that is declared.
  if (c.version >= 18 && c.attributes.flag("ceil_mode", false) && !is_same(w)) x = padded_for_windows(c, x, w);
  const relax::AttributesRef how = pool_attributes(w, false, true);
  const Expr powers = c.call(ops::power, {x, c.scalar(wide, static_cast<double>(p))});
  const Expr sums = c.call(ops::multiply, {c.call(ops::avg_pool, {powers}, how), c.scalar(wide, places)});
  c.set(c.cast(c.call(ops::power, {sums, c.scalar(wide, 1 / static_cast<double>(p))}), dtype));
}

void global_lp_pool(NodeImport& c) {
  spatial_rank(c);
  const int64_t p = c.attributes.integer("p", 2);
  if (p < 1) c.fail(codes::wrong_attribute, "the attribute 'p' is " + std::to_string(p));
  std::vector<int64_t> axes;
  for (int64_t d = 2; d < c.rank(0); ++d) axes.push_back(d);
  const DType dtype = c.dtype(0), wide = relax::accumulation_dtype(dtype);
  const Expr x = c.call(ops::abs, {c.cast(c.input(0), wide)});
  const Expr powers = c.call(ops::power, {x, c.scalar(wide, static_cast<double>(p))});
  const Expr sums = c.call(ops::sum, {powers}, ir::make<ops::ReduceAttributes>(std::optional(axes), true));
  c.set(c.cast(c.call(ops::power, {sums, c.scalar(wide, 1 / static_cast<double>(p))}), dtype));
}

const OperatorRow pool_rows[] = {
    {"MaxPool", {1, 8, 10, 11, 12, 22}, 1, 1, 2, max_pool},
    {"AveragePool", {1, 7, 10, 11, 19, 22}, 1, 1, 1, average_pool},
    {"GlobalAveragePool", {1, 22}, 1, 1, 1, global_pool<ops::mean>},
    {"GlobalMaxPool", {1, 22}, 1, 1, 1, global_pool<ops::max>},
    {"LpPool", {2, 11, 18, 22}, 1, 1, 1, lp_pool},
    {"GlobalLpPool", {2, 22}, 1, 1, 1, global_lp_pool},
};

}  // namespace

Table pool() { return pool_rows; }

}  // namespace lathe::onnx::operators
