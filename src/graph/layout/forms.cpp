#include "graph/layout/forms.h"

namespace lathe::graph {

Shape channels_last(const Shape& shape) {
  Shape result{shape[0]};
  result.insert(result.end(), shape.begin() + 2, shape.end());
  result.push_back(shape[1]);
  return result;
}

Shape widened(const Shape& shape, size_t rank) {
  Shape result(rank - shape.size(), ir::int64(1));
  result.insert(result.end(), shape.begin(), shape.end());
  return result;
}

bool is_pixel(const Shape& shape) {
  return std::all_of(shape.begin() + 2, shape.end(), [](const ir::Expr& extent) { return ir::is_int(extent, 1); });
}

bool keeps_channels(const Shape& a, const Shape& b) {
  return a.size() > 2 && b.size() > 2 && ir::structural_equal(a[0], b[0]) && ir::structural_equal(a[1], b[1]) &&
         ir::structural_equal(pixels_of(a), pixels_of(b));
}

bool spans_pixels(const Shape& shape, const Shape& out) {
  bool none = true, all = true;
  for (size_t d = 2; d < out.size(); ++d) {
    const size_t missing = out.size() - shape.size();
    const ir::Expr extent = d < missing ? ir::int64(1) : shape[d - missing];
    none = none && ir::is_int(extent, 1);
    all = all && ir::structural_equal(extent, out[d]);
  }
  return none || all;
}

int64_t moved_axis(int64_t axis, size_t rank) {
  const auto axes = static_cast<int64_t>(rank);
  if (axis < 0) axis += axes;
  return axis == 0 ? 0 : axis == 1 ? axes - 1 : axis - 1;
}

std::vector<int64_t> axes_to_last(size_t rank) {
  std::vector<int64_t> axes{0};
  for (size_t d = 2; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  axes.push_back(1);
  return axes;
}

std::vector<int64_t> axes_to_first(size_t rank) {
  std::vector<int64_t> axes{0, static_cast<int64_t>(rank) - 1};
  for (size_t d = 1; d + 1 < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  return axes;
}

}  // namespace lathe::graph
