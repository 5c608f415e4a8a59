// Pooling over windows, and over all of space.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/operators/windows.h"

namespace lathe::onnx::operators {

namespace {

relax::AttributesRef pool_attributes(NodeImport& c, bool has_dilations, bool count_include_pad) {
  const WindowAttributes w = read_windows(c, false, has_dilations);
  const bool ceil_mode = c.version >= 10 && c.attributes.flag("ceil_mode", false);
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

// (sum of |x|^p over the window)^(1/p): the mean over all places of the window, padding included, times their number.
void lp_pool(NodeImport& c) {
  const int64_t p = c.attributes.integer("p", 2);
  if (p < 1) c.fail(codes::wrong_attribute, "the attribute 'p' is " + std::to_string(p));
  if (c.version >= 18 && c.attributes.flag("ceil_mode", false))
    c.fail(codes::unsupported, "LpPool with ceil_mode is not one that Lathe compiles");
  const relax::AttributesRef how = pool_attributes(c, c.version >= 18, true);
  double places = 1;
  for (const int64_t extent : how.as<ops::PoolAttributes>()->pool_size) places *= static_cast<double>(extent);
  const DType dtype = c.dtype(0), wide = relax::accumulation_dtype(dtype);
  const Expr x = c.call(ops::abs, {c.cast(c.input(0), wide)});
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
