#include "ops/build/box.h"

#include <gtest/gtest.h>

#include <random>

#include "ops/build/by_data.h"
#include "relax/interpret/evaluate.h"

namespace lathe::ops::build {
namespace box_test {

using Extents = std::vector<int64_t>;

int64_t product_of(const Extents& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

ir::TensorData counted(const Extents& shape, int32_t from) {
  std::vector<int32_t> values(static_cast<size_t>(product_of(shape)));
  std::iota(values.begin(), values.end(), from);
  return ir::tensor_of<int32_t>(DType::int32(), shape, values);
}

Shape constants(const Extents& shape) {
  Shape extents;
  for (const int64_t n : shape) extents.push_back(ir::int64(n));
  return extents;
}

// What scattering gives by indices that are a constant of the graph, or an input; and whether a block scatters.
struct Scattered {
  ir::TensorData result;
  bool scatters;
};
Scattered scattered(const Extents& shape, const ir::TensorData& indices, const Extents& updates, bool is_constant,
                    std::optional<int64_t> axis) {
  BlockBuilder b;
  const auto tensor = [](const char* name, const Extents& extents, DType dtype) {
    return relax::relax_var(name, relax::tensor_info(constants(extents), dtype));
  };
  const relax::Var x = tensor("x", shape, DType::int32()), u = tensor("u", updates, DType::int32()),
                   i = tensor("i", indices->shape, DType::int64());
  b.begin_function("main", {x, u, i});
  const Value where = is_constant ? relax::constant(indices) : Value(i);
  b.end_function(axis ? scatter_elements(b, x, where, u, *axis, Combine::replace)
                      : scatter_nd(b, x, where, u, Combine::replace));
  const ir::IRModule module = b.finish();
  const auto results =
      relax::evaluate(module, "main", {counted(shape, 0), counted(updates, 1000), indices}).value_or_throw();
  return {results[0], module.size() > 1};
}

ir::TensorData longs(const Extents& shape, const std::vector<int64_t>& values) {
  return ir::tensor_of<int64_t>(DType::int64(), shape, values);
}

// Both ways give the same; whether the constant one is a box.
bool is_box(const Extents& shape, const ir::TensorData& indices, const Extents& updates,
            std::optional<int64_t> axis = {}) {
  const Scattered known = scattered(shape, indices, updates, true, axis),
                  unknown = scattered(shape, indices, updates, false, axis);
  EXPECT_TRUE(unknown.scatters);
  EXPECT_EQ(known.result->shape, unknown.result->shape);
  EXPECT_EQ(known.result->view(), unknown.result->view());
  return !known.scatters;
}

TEST(box, of_what_slices_assign) {
  EXPECT_TRUE(is_box({6, 2}, longs({3, 1}, {2, 3, 4}), {3, 2})) << "x[2:5]";
  EXPECT_TRUE(is_box({6, 2}, longs({2, 1}, {-2, -1}), {2, 2})) << "x[-2:]";
  EXPECT_TRUE(is_box({3, 4}, longs({3, 2}, {0, 1, 1, 1, 2, 1}), {3})) << "x[:, 1]";
  EXPECT_TRUE(is_box({3, 4}, longs({3, 1, 2}, {0, 1, 1, 1, 2, 1}), {3, 1})) << "x[:, 1:2]";
  EXPECT_TRUE(is_box({3, 4}, longs({2}, {1, 2}), {})) << "x[1, 2]";
  EXPECT_TRUE(is_box({2, 3}, longs({2, 1}, {0, 1}), {2, 3})) << "x[:]";
  EXPECT_FALSE(is_box({6, 2}, longs({2, 1}, {0, 2}), {2, 2})) << "x[0:3:2]";
  EXPECT_FALSE(is_box({6, 2}, longs({2, 1}, {1, 0}), {2, 2})) << "from the end";
  EXPECT_FALSE(is_box({3, 3}, longs({3, 2}, {0, 0, 1, 1, 2, 2}), {3})) << "a diagonal";
  EXPECT_FALSE(is_box({2, 2}, longs({2, 2, 2}, {0, 0, 1, 0, 0, 1, 1, 1}), {2, 2})) << "turned";
  EXPECT_FALSE(is_box({3, 2}, longs({2, 1}, {1, 1}), {2, 2})) << "twice the same";
  EXPECT_FALSE(is_box({3, 2}, longs({2, 1}, {2, 3}), {2, 2})) << "beyond the end";
  EXPECT_FALSE(is_box({3, 2}, longs({0, 1}, {}), {0, 2})) << "nothing";
}

TEST(box, of_elements_along_an_axis) {
  EXPECT_TRUE(is_box({2, 4}, longs({2, 2}, {1, 2, 1, 2}), {2, 2}, 1));
  EXPECT_TRUE(is_box({2, 4}, longs({1, 2}, {-2, -1}), {1, 2}, 1));
  EXPECT_TRUE(is_box({3, 2}, longs({1, 2}, {2, 2}), {1, 2}, 0));
  EXPECT_FALSE(is_box({2, 4}, longs({2, 2}, {1, 2, 1, 3}), {2, 2}, 1));
  EXPECT_FALSE(is_box({2, 4}, longs({2, 2}, {1, 2, 2, 3}), {2, 2}, 1));
}

// Random boxes are found, also in updates of more axes; with one coordinate changed they are scattered.
TEST(box, random_ones_and_what_is_nearly_one) {
  std::mt19937 random(5);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int trial = 0; trial < 300; ++trial) {
    Extents shape, starts, outer;
    const int64_t rank = 1 + below(4), width = 1 + below(rank);
    for (int64_t d = 0; d < rank; ++d) shape.push_back(1 + below(4));
    std::vector<int64_t> cells;
    for (int64_t d = 0; d < width; ++d) {
      const int64_t size = 1 + below(shape[static_cast<size_t>(d)]);
      starts.push_back(below(shape[static_cast<size_t>(d)] - size + 1));
      outer.push_back(size);
    }
    const int64_t count = product_of(outer);
    for (int64_t place = 0; place < count; ++place) {
      int64_t left = place;
      Extents at(outer.size());
      for (size_t d = outer.size(); d-- > 0; left /= outer[d]) at[d] = starts[d] + left % outer[d];
      for (size_t d = 0; d < at.size(); ++d) cells.push_back(below(5) == 0 ? at[d] - shape[d] : at[d]);
    }
    Extents updates = outer;
    updates.insert(updates.end(), shape.begin() + width, shape.end());
    Extents where = outer;
    where.push_back(width);
    EXPECT_TRUE(is_box(shape, longs(where, cells), updates));
    const auto changed = static_cast<size_t>(below(static_cast<int64_t>(cells.size())));
    const int64_t extent = shape[changed % static_cast<size_t>(width)];
    if (extent == 1) continue;
    cells[changed] = (cells[changed] + extent + 1) % extent;
    EXPECT_EQ(is_box(shape, longs(where, cells), updates), count == 1) << trial;
  }
}

// Coordinates of a constant are those that the run finds.
TEST(nonzero, of_constants) {
  std::mt19937 random(7);
  for (const Extents& shape : {Extents{}, {0}, {5}, {3, 4}, {2, 0, 3}, {2, 3, 4}})
    for (const DType dtype : {DType::float32(), DType::int64(), DType::boolean()}) {
      std::string bytes(static_cast<size_t>(dtype.storage_bytes(product_of(shape))), '\0');
      for (int64_t i = 0; i < product_of(shape); ++i)
        bytes[static_cast<size_t>(dtype.storage_bytes(i))] = static_cast<char>(random() % 2);
      const ir::TensorData data = ir::tensor_data(dtype, shape, bytes);
      std::vector<ir::TensorData> found;
      for (const bool is_constant : {true, false}) {
        BlockBuilder b;
        const relax::Var x = relax::relax_var("x", relax::tensor_info(constants(shape), dtype));
        b.begin_function("main", {x});
        b.end_function(nonzero(b, is_constant ? relax::constant(data) : Value(x)));
        found.push_back(relax::evaluate(b.finish(), "main", {data}).value_or_throw()[0]);
      }
      EXPECT_EQ(found[0]->shape, found[1]->shape);
      EXPECT_EQ(found[0]->view(), found[1]->view());
    }
}

}  // namespace box_test
}  // namespace lathe::ops::build
