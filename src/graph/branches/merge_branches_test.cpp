#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words
using Names = std::vector<std::string>;

ir::IRModule merged(const ir::IRModule& module) {
  return eliminate_dead_code(merge_branches(module, context()).value_or_throw(), context()).value_or_throw();
}

// What a branch's convolution has.
struct Own {
  Extents kernel, padding, strides, dilation;
};

// The sum of convolutions of one tensor.
ir::IRModule branches(const Extents& image, int64_t channels, int64_t groups, const std::vector<Own>& list) {
  Graph g;
  const Expr x = g.input("x", image);
  Expr sum;
  uint64_t seed = 0;
  for (const Own& own : list) {
    Extents shape{channels, image[1] / groups};
    shape.insert(shape.end(), own.kernel.begin(), own.kernel.end());
    const Expr branch = g.call(ops::conv, {x, weights(shape, ++seed)},
                               ir::make<ops::ConvAttributes>(own.strides, own.padding, own.dilation, groups));
    sum = sum ? g.call(ops::add, {sum, branch}) : branch;
  }
  return g.finish(sum);
}

TEST(merge_branches, makes_of_programs_what_its_text_expects) { expect_text(merge_branches, __FILE__); }

TEST(merge_branches, puts_a_kernel_where_it_reads_the_same_elements) {
  const std::vector<std::vector<Own>> merging{
      {{{3, 3}, {1, 1, 1, 1}, {}, {}}, {{1, 1}, {}, {}, {}}},
      {{{1, 1}, {}, {2, 2}, {}}, {{3, 3}, {1, 1, 1, 1}, {2, 2}, {}}},
      {{{5, 3}, {2, 1, 2, 1}, {}, {}}, {{3, 3}, {1, 1, 1, 1}, {}, {}}, {{1, 3}, {0, 1, 0, 1}, {}, {}}},
      {{{3, 3}, {2, 2, 2, 2}, {}, {2, 2}}, {{1, 1}, {}, {}, {}}, {{3, 3}, {2, 2, 2, 2}, {}, {2, 2}}},
      {{{2, 3}, {0, 2, 1, 0}, {}, {}}, {{1, 1}, {}, {}, {}}},
  };
  for (const auto& list : merging)
    for (const int64_t groups : {1, 2, 4}) {
      const auto before = branches({2, 4, 7, 6}, 8, groups, list), after = merged(before);
      EXPECT_EQ(calls(after), Names{"nn.conv"});
      EXPECT_EQ(difference(before, after, 1e-4), "") << groups << " groups";
    }
}

TEST(merge_branches, keeps_kernels_that_read_other_elements) {
  const std::vector<std::vector<Own>> apart{
      {{{3, 3}, {1, 1, 1, 1}, {}, {}}, {{3, 3}, {2, 2, 2, 2}, {}, {2, 2}}},  // of other distances
      {{{3, 3}, {1, 1, 1, 1}, {2, 2}, {}}, {{1, 1}, {}, {2, 2}, {}}, {{2, 2}, {1, 1, 0, 0}, {2, 2}, {}}},
      {{{2, 2}, {0, 0, 1, 1}, {}, {}}, {{2, 2}, {1, 1, 0, 0}, {}, {}}},  // of opposite corners
  };
  const std::vector<size_t> left{2, 1, 2};
  for (size_t i = 0; i < apart.size(); ++i) {
    const auto before = branches({1, 2, 6, 6}, 2, 1, apart[i]), after = merged(before);
    const Names names = calls(after);
    EXPECT_EQ(std::count(names.begin(), names.end(), "nn.conv"), static_cast<ptrdiff_t>(left[i])) << i;
    EXPECT_EQ(difference(before, after, 1e-4), "") << i;
  }
}

TEST(merge_branches, takes_kernels_that_normalisation_has_scaled) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(3), ir::int64(6), ir::int64(5)});
  const auto normalized = [&](const Expr& value, uint64_t seed) {
    return g.call(ops::batch_norm, {value, weights({3}, seed), weights({3}, seed + 1), weights({3}, seed + 2),
                                    weights({3}, seed + 3, 0.5, 2)});
  };
  const auto same = ir::make<ops::ConvAttributes>(Extents{}, Extents{1, 1, 1, 1});
  const Expr wide = normalized(g.call(ops::conv, {x, weights({3, 3, 3, 3}, 1)}, same), 10);
  const Expr narrow = normalized(g.call(ops::conv, {x, weights({3, 3, 1, 1}, 2)}), 20);
  const auto before = g.finish(g.call(ops::add, {g.call(ops::add, {wide, narrow}), normalized(x, 30)}));
  const auto scaled = fold_all_but_scaled_kernels(fold_batch_norm(before, context()).value_or_throw(), context());
  const auto after = merged(*scaled);
  EXPECT_EQ(calls(after), (Names{"nn.conv", "add"}));
  EXPECT_EQ(difference(before, after, 1e-4), "");
}

TEST(merge_branches, takes_a_long_sum) {
  const std::vector<Own> list(3000, Own{{1}, {}, {}, {}});
  EXPECT_EQ(calls(merged(branches({1, 1, 2}, 1, 1, list))), Names{"nn.conv"});
}

TEST(merge_branches, keeps_another_dtype_and_kernels_that_only_the_run_knows) {
  for (const bool known : {false, true}) {
    Graph g;
    const auto dtype = known ? ir::DType::float_(64) : ir::DType::float32();
    const Expr x = g.input("x", Extents{1, 1, 4}, dtype), w = g.input("w", Extents{1, 1, 1}, dtype);
    const Expr kernel = known ? filled({1, 1, 1}, 2, dtype) : w;
    const auto before = g.finish(
        g.call(ops::add, {g.call(ops::conv, {x, kernel}), g.call(ops::conv, {x, g.call(ops::add, {kernel, kernel})})}));
    EXPECT_EQ(calls(merged(before)), calls(before));
  }
}

}  // namespace
}  // namespace lathe::graph
