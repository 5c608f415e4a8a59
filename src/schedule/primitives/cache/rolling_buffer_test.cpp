// What is rolled, and what is not.
#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

// A function of X to Y, with T between; each line of `body` is inside.
Function with_intermediate(const std::string& shapes, const std::string& body) {
  std::string text = "@T.prim_func\ndef main(" + shapes + "):\n";
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find('\n', at);
    text += "    " + body.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return testing::from_text(text);
}

// Sums over windows of three, each beside what it needs; `value` is an element's, `before` comes first in the loop.
Function window_sums(const std::string& value, const std::string& before = "") {
  return with_intermediate(
      R"(X: T.Buffer((12,), "int32"), Y: T.Buffer((10,), "int32"), Z: T.Buffer((10,), "int32"))",
      "t = T.alloc_buffer((12,), \"int32\")\nfor o in range(10):\n" + before +
          "    for ax in range(3):\n"
          "        with T.block(\"T\"):\n"
          "            v = T.axis.spatial(12, o + ax)\n" +
          (value.find("vo") == std::string::npos ? "" : "            vo = T.axis.spatial(10, o)\n") +
          "            t[v] = " + value +
          "\n"
          "    with T.block(\"Y\"):\n"
          "        v = T.axis.spatial(10, o)\n"
          "        Y[v] = t[v] - t[v + 1] * 2 + t[v + 2] * 3\n");
}

struct Rolling {
  Function original;
  Schedule sch = Schedule::create(original).value_or_throw();

  std::string roll(const char* block) {
    const auto rolled = sch.rolling_buffer(sch.get_block(block).value_or_throw(), 0);
    if (!rolled) return rolled.diagnostics()[0].message;
    return tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3);
  }
  void compute_at(const char* block, const char* consumer, size_t loop) {
    const auto loops = sch.get_loops(sch.get_block(consumer).value_or_throw()).value_or_throw();
    sch.compute_at(sch.get_block(block).value_or_throw(), loops.at(loop)).value_or_throw();
  }
  Buffer written(const char* block) {
    return sch.get(sch.get_block(block).value_or_throw()).value_or_throw()->writes.at(0)->buffer;
  }
};

constexpr const char* picture = R"(X: T.Buffer((18, 18), "int32"), Y: T.Buffer((8, 8), "int32"))";

// Maxima over windows of three by three, two apart, of doubled elements.
Function pooled() {
  return with_intermediate(picture,
                           "t = T.alloc_buffer((18, 18), \"int32\")\n"
                           "for i, j in T.grid(18, 18):\n"
                           "    with T.block(\"T\"):\n"
                           "        vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                           "        t[vi, vj] = X[vi, vj] * 2\n"
                           "for i, j, a, b in T.grid(8, 8, 3, 3):\n"
                           "    with T.block(\"Y\"):\n"
                           "        vi, vj, va, vb = T.axis.remap(\"SSRR\", [i, j, a, b])\n"
                           "        with T.init():\n"
                           "            Y[vi, vj] = -1000\n"
                           "        Y[vi, vj] = T.max(Y[vi, vj], t[vi * 2 + va, vj * 2 + vb])\n");
}

TEST(rolling_buffer, keeps_what_the_next_window_needs) {
  Rolling r{window_sums("X[v] * 2")};
  EXPECT_EQ(r.roll("T"), "");
  EXPECT_TRUE(is_int(r.written("T")->shape[0], 3));
}

TEST(rolling_buffer, rolls_the_outermost_loop_that_shares) {
  Rolling r{pooled()};
  r.compute_at("T", "Y", 1);
  EXPECT_EQ(r.roll("T"), "");
  EXPECT_TRUE(is_int(r.written("T")->shape[0], 3));
  EXPECT_TRUE(is_int(r.written("T")->shape[1], 18)) << "the row is kept for the next";
}

TEST(rolling_buffer, rolls_a_tile_of_windows) {
  Rolling r{pooled()};
  const auto loops = r.sch.get_loops(r.sch.get_block("Y").value_or_throw()).value_or_throw();
  (void)r.sch.split(loops[0], {Factor(), int64_t{4}}).value_or_throw();
  r.compute_at("T", "Y", 0);
  EXPECT_EQ(r.roll("T"), "");
  EXPECT_TRUE(is_int(r.written("T")->shape[0], 9));
}

TEST(rolling_buffer, rolls_a_cascade_from_its_end) {
  const Function cascade = with_intermediate(R"(X: T.Buffer((14,), "int32"), Y: T.Buffer((10,), "int32"))",
                                             "t = T.alloc_buffer((14,), \"int32\")\n"
                                             "u = T.alloc_buffer((12,), \"int32\")\n"
                                             "for i in range(14):\n"
                                             "    with T.block(\"T\"):\n"
                                             "        v = T.axis.spatial(14, i)\n"
                                             "        t[v] = X[v] + 1\n"
                                             "for i, w in T.grid(12, 3):\n"
                                             "    with T.block(\"U\"):\n"
                                             "        v, vw = T.axis.remap(\"SR\", [i, w])\n"
                                             "        with T.init():\n"
                                             "            u[v] = 0\n"
                                             "        u[v] = u[v] + t[v + vw]\n"
                                             "for i in range(10):\n"
                                             "    with T.block(\"Y\"):\n"
                                             "        v = T.axis.spatial(10, i)\n"
                                             "        Y[v] = u[v] + u[v + 2]\n");
  Rolling r{cascade};
  r.compute_at("U", "Y", 0);
  r.compute_at("T", "Y", 0);
  EXPECT_EQ(r.roll("U"), "");
  EXPECT_EQ(r.roll("T"), "");
  EXPECT_TRUE(is_int(r.written("U")->shape[0], 3));
  EXPECT_TRUE(is_int(r.written("T")->shape[0], 5));
}

TEST(rolling_buffer, refuses_what_the_loop_changes) {
  const std::string changed = "    with T.block(\"Z\"):\n        v = T.axis.spatial(10, o)\n        Z[0] = X[v]\n";
  EXPECT_EQ(
      Rolling{window_sums("X[v] + X[vo]")}.roll("T"),
      "cannot roll 't', which block 'T' writes: instances of block 'T' with other variables may write one element");
  EXPECT_EQ(
      Rolling{window_sums("X[v] + Z[0]", changed)}.roll("T"),
      "cannot roll 't', which block 'T' writes: instances of block 'Z' with other variables may write one element");
}

TEST(rolling_buffer, refuses_loops_that_share_nothing_or_run_at_once) {
  Rolling before{pooled()};
  EXPECT_EQ(before.roll("T"), "cannot roll 't', which block 'T' writes: no loop is around it and its readers");
  EXPECT_EQ(before.roll("Y"), "cannot roll 'Y': it is a parameter of the function");
  Rolling apart{testing::dense(int64(8), int64(6), int64(4))};
  apart.compute_at("bias_add", "relu", 0);
  EXPECT_EQ(apart.roll("bias_add"),
            "cannot roll 'E', which block 'bias_add' writes: no iteration of a loop around it and its readers needs a "
            "part of what the one before needed, at a constant distance in one dimension");
  Rolling parallel{pooled()};
  parallel.compute_at("T", "Y", 0);
  parallel.sch.parallel(parallel.sch.get_loops(parallel.sch.get_block("Y").value_or_throw()).value_or_throw()[0])
      .value_or_throw();
  EXPECT_EQ(parallel.roll("T"), "cannot roll 't', which block 'T' writes: loop 'i' is parallel");
}

}  // namespace
}  // namespace lathe::schedule
