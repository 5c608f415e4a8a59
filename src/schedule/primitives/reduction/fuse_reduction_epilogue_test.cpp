#include <gtest/gtest.h>

#include "schedule/codes.h"
#include "schedule/testing/programs.h"
#include "tir/script/dialect.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

// C[i, j] = a sum (or a largest element) over k, and `out` of it with a bias and a residual, behind what `between` is.
Function reduced(const std::string& combined, const std::string& start, const std::string& out,
                 const std::string& between = "") {
  return testing::from_text(fmt::format(R"(
@T.prim_func
def main(X: T.Buffer((4, 5), "float32"), W: T.Buffer((5, 6), "float32"), bias: T.Buffer((6,), "float32"),
         R: T.Buffer((4, 6), "float32"), Y: T.Buffer((4, 6), "float32")):
    C = T.alloc_buffer((4, 6))
    for i, j, k in T.grid(4, 6, 5):
        with T.block("reduce"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32({1})
            C[vi, vj] = {0}
{3}
    for i, j in T.grid(4, 6):
        with T.block("out"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = {2}
)",
                                        combined, start, out, between));
}
Function summed(const std::string& out, const std::string& between = "") {
  return reduced("C[vi, vj] + X[vi, vk] * W[vk, vj]", "0", out, between);
}

struct Fused {
  explicit Fused(const Function& program)
      : original(program),
        schedule(Schedule::create(program).value_or_throw()),
        reduce(schedule.get_block("reduce").value_or_throw()) {}

  // What the primitive says, or nothing where it did what it should.
  std::string fuse() {
    const auto out = schedule.get_block("out");
    if (!out) return "no block is left";
    const Status done = schedule.fuse_reduction_epilogue(reduce, *out);
    if (!done.ok()) {
      EXPECT_EQ(done.diagnostics()[0].code.name, codes::not_inlinable.name);
      return done.diagnostics()[0].message;
    }
    EXPECT_EQ(tir::testing::difference(original, schedule.mod().find_as<PrimFunc>("main"), 3, {}, nullptr, 1e-4), "");
    return {};
  }
  // The value of the init, as it is printed.
  std::string start() const {
    const std::string text = tir::function_text(schedule.mod().find_as<PrimFunc>("main"));
    const size_t value = text.find(" = ", text.find("T.init()")) + 3;
    return text.substr(value, text.find('\n', value) - value);
  }
  std::string written() const { return schedule.get(reduce).value_or_throw()->body.as<BufferStore>()->buffer->name; }

  const Function original;
  Schedule schedule;
  const BlockRV reduce;
};

TEST(fuse_reduction_epilogue, takes_away_a_block_that_does_nothing_else) {
  Fused f(summed("C[vi, vj] + bias[vj]"));
  EXPECT_EQ(f.fuse(), "");
  EXPECT_EQ(f.start(), "bias[vj]");
  EXPECT_EQ(f.written(), "Y");
  EXPECT_FALSE(f.schedule.get_block("out").ok());
}

TEST(fuse_reduction_epilogue, takes_one_step_at_a_time) {
  Fused f(summed("T.max(C[vi, vj] + bias[vj] + R[vi, vj], T.float32(0))"));
  EXPECT_EQ(f.fuse(), "");
  EXPECT_EQ(f.start(), "bias[vj]");
  EXPECT_EQ(f.fuse(), "");
  EXPECT_EQ(f.start(), "bias[vj] + R_1[vi, vj]");
  EXPECT_EQ(f.written(), "C");
  EXPECT_EQ(f.fuse(),
            "cannot fuse block 'reduce' with block 'out': the latter does not go on with what the former "
            "combines");
}

TEST(fuse_reduction_epilogue, takes_what_each_use_of_the_result_has) {
  Fused f(summed("(C[vi, vj] + bias[vj]) * T.sigmoid(C[vi, vj] + bias[vj])"));
  EXPECT_EQ(f.fuse(), "");
  EXPECT_EQ(f.start(), "bias[vj]");
  Fused other(summed("(C[vi, vj] + bias[vj]) * (C[vi, vj] + R[vi, vj])"));
  EXPECT_NE(other.fuse(), "");
}

TEST(fuse_reduction_epilogue, takes_what_combines_as_the_reduction_does) {
  const char* largest = "T.max(C[vi, vj], X[vi, vk] * W[vk, vj])";
  Fused relu(reduced(largest, "-1", "T.max(C[vi, vj], T.float32(0))"));
  EXPECT_EQ(relu.fuse(), "");
  EXPECT_EQ(relu.start(), "T.max(T.float32(-1.0), T.float32(0.0))");
  Fused above(reduced(largest, "1", "T.max(C[vi, vj], bias[vj])"));
  EXPECT_EQ(above.fuse(), "");
  EXPECT_EQ(above.start(), "T.max(T.float32(1.0), bias[vj])");
  Fused biased(reduced(largest, "-1", "C[vi, vj] + bias[vj]"));
  EXPECT_NE(biased.fuse(), "");
  Fused from_one(reduced("C[vi, vj] + X[vi, vk] * W[vk, vj]", "1", "bias[vj] + C[vi, vj]"));
  EXPECT_EQ(from_one.fuse(), "");
  EXPECT_EQ(from_one.start(), "T.float32(1.0) + bias[vj]");
}

TEST(fuse_reduction_epilogue, refuses_what_is_not_there_yet_or_wanted_elsewhere) {
  const char* fills = R"(
    for i, j in T.grid(4, 6):
        with T.block("fill"):
            vi, vj = T.axis.remap("SS", [i, j])
            R[vi, vj] = {}
)";
  Fused later(summed("C[vi, vj] + R[vi, vj]", fmt::format(fmt::runtime(fills), "X[vi, 0]")));
  EXPECT_EQ(later.fuse(),
            "cannot fuse block 'out' into block 'reduce': 'R' is touched by block 'fill' before block "
            "'out' runs");
  Fused shared(summed("C[vi, vj] + bias[vj]", fmt::format(fmt::runtime(fills), "C[vi, vj]")));
  EXPECT_EQ(shared.fuse(), "cannot fuse block 'reduce' with block 'out': 'C' has other readers or writers");
  Fused in_place(summed("C[vi, vj] + Y[vi, vj]"));
  EXPECT_EQ(in_place.fuse(), "cannot fuse block 'reduce' with block 'out': the latter reads what it writes, 'Y'");
}

TEST(fuse_reduction_epilogue, refuses_what_is_computed_for_some_elements_only) {
  Fused chosen(summed("T.if_then_else(vj < 3, C[vi, vj] + bias[vj + 3], T.float32(0))"));
  EXPECT_EQ(chosen.fuse(), "cannot fuse block 'reduce' with block 'out': the latter is computed under a condition");
  Fused cut(summed("C[vi, vj] + bias[vj]"));
  const BlockRV out = cut.schedule.get_block("out").value_or_throw();
  ASSERT_TRUE(cut.schedule.split(cut.schedule.get_loops(out).value_or_throw()[1], {Factor(), int64_t{4}}));
  EXPECT_EQ(cut.fuse(), "cannot fuse block 'reduce' with block 'out': the latter is computed under a condition");
}

TEST(fuse_reduction_epilogue, keeps_a_copy_into_memory_that_others_have_touched) {
  const char* before = R"(
    for i, j in T.grid(4, 6):
        with T.block("border"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.float32(7)
)";
  Fused f(summed("C[vi, vj] + bias[vj]", before));
  EXPECT_EQ(f.fuse(), "");
  EXPECT_EQ(f.start(), "bias[vj]");
  EXPECT_EQ(f.written(), "C");
  EXPECT_TRUE(f.schedule.get_block("out").ok());
}

}  // namespace
}  // namespace lathe::schedule
