#include "tir/analysis/flops.h"

#include <gtest/gtest.h>

#include "script/parse.h"
#include "tir/script/dialect.h"

namespace lathe::tir {
namespace {

Function program(const std::string& text) {
  const script::Dialect* dialects[] = {&script_dialect()};
  return ir::cast<PrimFunc>(NodeRef(script::parse_function({"test", text}, dialects).value_or_throw()));
}

const char* const product_relu = R"(
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((4, 6), "float32"), C: T.Buffer((8, 6), "float32")):
    Y = T.alloc_buffer((8, 6), "float32")
    for i, j, k in T.grid(8, 6, 4):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(1) + T.float32(2)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(8, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
)";

TEST(estimate_flops, counts_what_each_instance_does) {
  bool symbolic = true;
  const Function f = program(product_relu);
  EXPECT_EQ(estimate_flops(f->body, &symbolic), 2 * 8 * 6 * 4 + 8 * 6 + 8 * 6);
  EXPECT_FALSE(symbolic);
}

TEST(estimate_flops, counts_lanes_and_the_dearer_case) {
  const Function f = program(R"(
@T.prim_func
def main(A: T.Buffer((16,), "float32"), n: T.int64):
    for i in range(n):
        if n > 3:
            A[0:8] = A[0:8] * T.Broadcast(T.float32(2), 8)
        else:
            A[0] = T.exp(A[0])
)");
  bool symbolic = false;
  EXPECT_EQ(estimate_flops(f->body, &symbolic), 1 + 8);
  EXPECT_TRUE(symbolic);
}

TEST(estimate_traffic, counts_each_parameter_once) {
  bool symbolic = true;
  EXPECT_EQ(estimate_traffic(*program(product_relu), &symbolic), 4 * (8 * 4 + 4 * 6 + 8 * 6));
  EXPECT_FALSE(symbolic);
}

TEST(estimate_traffic, counts_what_is_taken_from_a_table) {
  const Function f = program(R"(
@T.prim_func
def main(table: T.Buffer((1000, 8), "float16"), rows: T.Buffer((3,), "int64"), C: T.Buffer((3, 8), "float16")):
    for i, j in T.grid(3, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = table[rows[vi], vj]
)");
  EXPECT_EQ(estimate_traffic(*f), 2 * 3 * 8 + 8 * 3 + 2 * 3 * 8);
}

TEST(estimate_traffic, says_where_it_cannot_know) {
  const Function f = program(R"(
@T.prim_func
def main(a: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), "float32")
    for i in range(n):
        A[i] = A[i] * T.float32(2)
)");
  bool symbolic = false;
  estimate_traffic(*f, &symbolic);
  EXPECT_TRUE(symbolic);
}

TEST(find_anchor_block, is_the_reduction_that_does_most) {
  EXPECT_EQ(find_anchor_block(*program(product_relu))->name, "Y");
  const Function copy = program(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("first"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi]
    for i in range(4):
        with T.block("last"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi]
)");
  EXPECT_EQ(find_anchor_block(*copy)->name, "last");
}

TEST(buffer_access_lca, is_the_innermost_statement_around_all_accesses) {
  const Function f = program(product_relu);
  std::map<std::string, std::string> names;
  for (const auto& [buffer, place] : buffer_access_lca(*f)) {
    const auto* block = place.as<Block>();
    names[buffer->name] = block ? "block " + block->name : place ? "loop" : "function";
  }
  const std::map<std::string, std::string> wanted = {
      {"A", "block Y"}, {"B", "block Y"}, {"C", "block C"}, {"Y", "block root"}};
  EXPECT_EQ(names, wanted);
}

}  // namespace
}  // namespace lathe::tir
