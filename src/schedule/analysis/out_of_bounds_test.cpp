#include "schedule/analysis/out_of_bounds.h"

#include <gtest/gtest.h>

#include "script/parse.h"
#include "tir/codes.h"
#include "tir/script/dialect.h"

namespace lathe::schedule {
namespace {

// What is found in a body over A of extent 8, B of 10, C of extent n, indices I, and numbers n and m; empty: nothing.
std::string found_in(const std::string& body) {
  const script::Dialect* dialects[] = {&tir::script_dialect()};
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((10,), "float32"), c: T.handle, I: T.Buffer((8,), "int64"),
         m: T.int64):
    n = T.int64()
    C = T.match_buffer(c, (n,), "float32"))" +
                           body;
  ir::IRModule module;
  module.set("main", script::parse_function({"test", text}, dialects).value_or_throw());
  std::string found;
  for (const support::Diagnostic& d : find_out_of_bounds(module)) {
    EXPECT_EQ(d.code, tir::codes::access_out_of_bounds);
    EXPECT_NE(support::render(d.place), "");
    found += d.message + "; " + d.notes[0].message + "\n";
  }
  return found;
}

TEST(find_out_of_bounds, says_which_index_and_where) {
  EXPECT_EQ(found_in(R"(
    for i in range(10):
        B[i] = A[i]
)"),
            "a load of 'A' is out of bounds: index 0 is i, from 0 to 9, and the extent is 8; it is 9 where i = 9\n");
  EXPECT_EQ(found_in(R"(
    for i, j in T.grid(2, 5):
        A[i * 5 + j - 1] = T.float32(0)
)"),
            "a store of 'A' is out of bounds: index 0 is i * 5 + j - 1, from -1 to 8, and the extent is 8; it is 8 "
            "where i = 1, j = 4\n");
}

TEST(find_out_of_bounds, finds_what_is_wrong) {
  for (const char* body : {
           "\n    A[8] = T.float32(0)\n",
           "\n    for i in range(2):\n        A[T.Ramp(i * 4 + 1, 1, 4)] = B[0:4]\n",
           "\n    for i in range(10):\n        if i < 9:\n            A[i] = B[i]\n",
           "\n    for i in range(10):\n        if i < 5:\n            A[i] = B[i]\n        else:\n            A[i] = "
           "B[i]\n",
           "\n    for i in range(8):\n        j: T.int64 = i + 1\n        A[j] = B[i]\n",
           "\n    for i in range(10):\n        with T.block(\"b\"):\n            vi = T.axis.spatial(10, i)\n          "
           "  "
           "T.where(i < 9)\n            A[vi] = B[vi]\n",
           "\n    for i in range(n):\n        C[i + 1] = T.float32(0)\n",
           "\n    C[n] = T.float32(0)\n",
           "\n    for i in range(8):\n        A[i] = T.if_then_else(i > 0, B[i - 2], T.float32(0))\n",
           "\n    with T.block(\"b\"):\n        V = T.match_buffer(A[4:8], (4,), \"float32\")\n        V[4] = "
           "T.float32(0)\n",
       })
    EXPECT_NE(found_in(body), "") << body;
}

TEST(find_out_of_bounds, keeps_quiet_where_nothing_is_shown) {
  for (const char* body : {
           "\n    for i in range(8):\n        A[i] = B[i + 2]\n",
           "\n    for i in range(10):\n        if i < 8:\n            A[i] = B[i]\n",
           "\n    for i in range(10):\n        A[T.min(i, 7)] = B[i]\n",
           "\n    for i in range(10):\n        B[i] = T.if_then_else(i < 8, A[i], T.float32(0))\n",
           R"(
    for i in range(10):
        with T.block("b"):
            vi = T.axis.spatial(10, i)
            T.where(i < 8)
            A[vi] = B[vi]
)",
           "\n    for i in range(10):\n        C[i] = B[i]\n",          // not for every n
           "\n    A[m] = B[0]\n",                                       // not for every m
           "\n    for i in range(8):\n        A[I[i] + 100] = B[i]\n",  // what I holds decides
           "\n    if I[0] > 3:\n        A[100] = B[0]\n",               // perhaps never
           "\n    for i in range(m):\n        C[n - i - 1] = B[0]\n",   // for small m in bounds
           "\n    for i in range(0):\n        A[100] = B[0]\n",         // never
           "\n    assert m < 0, \"no\"\n    for i in range(m):\n        A[100] = B[0]\n",
           "\n    for i in range(3):\n        assert m < 0, \"no\"\n    A[100] = B[0]\n",
           "\n    for i in range(10):\n        if I[0] > i:\n            break\n        A[i] = B[i]\n",
           "\n    while I[0] > 0:\n        A[100] = B[0]\n",
           "\n    T.evaluate(T.call_extern(\"int32\", \"f\", T.address_of(A[8])))\n",
       })
    EXPECT_EQ(found_in(body), "") << body;
}

// Values, and not indices: the sum wraps, to 6.
TEST(find_out_of_bounds, knows_that_narrow_sums_wrap) {
  EXPECT_EQ(found_in(R"(
    for i in range(8):
        j: T.int8 = T.Cast("int8", i)
        A[T.Cast("int64", j * T.int8(64) + T.int8(0)) // 512 + 3] = B[i]
)"),
            "");
}

}  // namespace
}  // namespace lathe::schedule
