#include "ops/build/box.h"

#include "ops/build/places.h"
#include "ops/operators.h"

namespace lathe::ops::build {

namespace {

// Constant indices that are worth looking at: integers, of something.
const ir::TensorDataNode* known_indices(const Value& indices) {
  const auto* constant = indices.as<relax::Constant>();
  return constant && constant->data->elements() > 0 ? constant->data.get() : nullptr;
}

std::optional<std::vector<int64_t>> known_extents(const Shape& shape, size_t count) {
  std::vector<int64_t> extents;
  for (size_t d = 0; d < count; ++d) {
    const auto extent = ir::as_int(shape[d]);
    if (!extent) return std::nullopt;
    extents.push_back(*extent);
  }
  return extents;
}

int64_t from_start(int64_t index, int64_t extent) { return index < 0 ? index + extent : index; }

bool fits(const Box& box, const std::vector<int64_t>& extents) {
  for (size_t d = 0; d < extents.size(); ++d)
    if (box.starts[d] < 0 || box.starts[d] + box.sizes[d] > extents[d]) return false;
  return true;
}

}  // namespace

std::optional<Box> box_of_elements(const Shape& x, const Value& indices, int64_t axis) {
  const ir::TensorDataNode* known = known_indices(indices);
  const auto extents = known_extents(x, x.size());
  if (!known || !extents || known->shape.size() != x.size()) return std::nullopt;
  const auto along = static_cast<size_t>(axis);
  Box box{std::vector<int64_t>(x.size(), 0), known->shape};
  box.starts[along] = from_start(ir::int_at(*known, 0), (*extents)[along]);
  const bool is_run = each_place(known->shape, [&](int64_t place, const std::vector<int64_t>& at) {
    return from_start(ir::int_at(*known, place), (*extents)[along]) == box.starts[along] + at[along];
  });
  return is_run && fits(box, *extents) ? std::optional(box) : std::nullopt;
}

std::optional<Box> box_of_coordinates(const Shape& x, const Value& indices) {
  const ir::TensorDataNode* known = known_indices(indices);
  if (!known || known->shape.empty()) return std::nullopt;
  const auto width = static_cast<size_t>(known->shape.back());
  const auto extents = known_extents(x, width);
  if (!extents) return std::nullopt;
  const std::vector<int64_t> outer(known->shape.begin(), known->shape.end() - 1);
  const auto coordinate = [&](int64_t place, size_t d) {
    return from_start(ir::int_at(*known, place * known->shape.back() + static_cast<int64_t>(d)), (*extents)[d]);
  };
  // The axes of the updates that move, each along the first coordinate behind the last one's that it moves by one.
  Box box{{}, std::vector<int64_t>(width, 1)};
  for (size_t d = 0; d < width; ++d) box.starts.push_back(coordinate(0, d));
  std::vector<size_t> moved(outer.size());
  size_t next = 0;
  for (size_t k = 0; k < outer.size(); ++k) {
    if (outer[k] == 1) continue;
    const int64_t step =
        std::accumulate(outer.begin() + static_cast<ptrdiff_t>(k) + 1, outer.end(), int64_t{1}, std::multiplies<>());
    while (next < width && coordinate(step, next) == box.starts[next]) ++next;
    if (next == width) return std::nullopt;
    box.sizes[next] = outer[k];
    moved[k] = next++;
  }
  const bool is_box = each_place(outer, [&](int64_t place, const std::vector<int64_t>& at) {
    std::vector<int64_t> expected = box.starts;
    for (size_t k = 0; k < outer.size(); ++k)
      if (outer[k] != 1) expected[moved[k]] += at[k];
    for (size_t d = 0; d < width; ++d)
      if (coordinate(place, d) != expected[d]) return false;
    return true;
  });
  return is_box && fits(box, *extents) ? std::optional(box) : std::nullopt;
}

Value with_box(BlockBuilder& b, const Value& x, const Box& box, const Value& updates) {
  Shape whole;
  for (const int64_t size : box.sizes) whole.push_back(ir::int64(size));
  const Shape& own = shape_of(x);
  whole.insert(whole.end(), own.begin() + static_cast<ptrdiff_t>(box.sizes.size()), own.end());
  const auto part = [&](const Value& of, size_t axis, int64_t begin, int64_t end) {
    const auto at = [](int64_t i) { return ir::make<relax::ShapeExpr>(Shape{ir::int64(i)}); };
    return b
        .call(ops::strided_slice, {of, at(begin), at(end)},
              ir::make<StridedSliceAttributes>(Axes{static_cast<int64_t>(axis)}))
        .value_or_throw();
  };
  const std::function<Value(const Value&, size_t)> replaced = [&](const Value& of, size_t axis) -> Value {
    const auto extent = [&](size_t d) { return *ir::as_int(shape_of(of)[d]); };
    while (axis < box.sizes.size() && box.sizes[axis] == extent(axis)) ++axis;
    if (axis == box.sizes.size()) return reshape(b, updates, whole);
    const int64_t begin = box.starts[axis], end = begin + box.sizes[axis];
    std::vector<Value> parts;
    if (begin > 0) parts.push_back(part(of, axis, 0, begin));
    parts.push_back(replaced(part(of, axis, begin, end), axis + 1));
    if (end < extent(axis)) parts.push_back(part(of, axis, end, extent(axis)));
    return b.call(ops::concat, std::move(parts), ir::make<AxisAttributes>(static_cast<int64_t>(axis))).value_or_throw();
  };
  return replaced(x, 0);
}

}  // namespace lathe::ops::build
