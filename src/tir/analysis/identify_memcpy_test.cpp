#include "tir/analysis/identify_memcpy.h"

#include <gtest/gtest.h>

#include "arith/analyzer.h"
#include "script/parse.h"
#include "script/print.h"
#include "tir/script/dialect.h"

namespace lathe::tir {
namespace {

std::string index_text(const Expr& e) {
  const script::Dialect* dialects[] = {&script_dialect()};
  const auto number = as_int(e);
  return number ? std::to_string(*number) : script::print(e, {}, dialects);
}

// "A[1, 0:8]"
std::string region_text(const BufferRegion& region) {
  std::string ranges;
  for (const Range& range : region->region) {
    ranges += (ranges.empty() ? "" : ", ") + index_text(range.min);
    if (!is_int(range.extent, 1)) ranges += ":" + index_text(arith::Analyzer().simplify(range.min + range.extent));
  }
  return region->buffer->name + "[" + ranges + "]";
}

// The copies in a body over A and B, as text: "A[0:8] -> B[0:8]; …".
std::string copies_in(const std::string& body, const std::string& a = R"(A: T.Buffer((8, 8), "float32"))",
                      const std::string& b = R"(B: T.Buffer((8, 8), "float32"))") {
  const script::Dialect* dialects[] = {&script_dialect()};
  const std::string text = "@T.prim_func\ndef main(" + a + ", " + b + "):\n" + body;
  const Function f = ir::cast<PrimFunc>(NodeRef(script::parse_function({"test", text}, dialects).value_or_throw()));
  std::string found;
  for (const Memcpy& copy : identify_memcpy(f->body))
    found += (found.empty() ? "" : "; ") + region_text(copy.source) + " -> " + region_text(copy.destination);
  return found;
}

TEST(identify_memcpy, finds_nests_however_they_are_written) {
  for (const char* body : {
           "    for i, j in T.grid(8, 8):\n        B[i, j] = A[i, j]\n",
           "    for j, i in T.grid(8, 8):\n        B[i, j] = A[i, j]\n",
           "    for k in range(64):\n        B[k // 8, k % 8] = A[k // 8, k % 8]\n",
           "    for i, jo, ji in T.grid(8, 2, 4):\n        B[i, jo * 4 + ji] = A[i, jo * 4 + ji]\n",
           "    for i, j in T.grid(8, 2):\n        B[i, T.Ramp(j * 4, 1, 4)] = A[i, T.Ramp(j * 4, 1, 4)]\n",
           "    for i in range(8):\n        for j in T.vectorized(1, 9):\n            B[i, j - 1] = A[i, j - 1]\n",
           R"(    for i, j in T.grid(8, 8):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(i * 8 + j < 64)
            B[vi, vj] = A[vi, vj]
)",
       })
    EXPECT_EQ(copies_in(body), "A[0:8, 0:8] -> B[0:8, 0:8]") << body;
}

TEST(identify_memcpy, gives_the_part_that_is_copied) {
  EXPECT_EQ(copies_in("    for i, j in T.grid(2, 8):\n        B[i, j] = A[i + 4, j]\n"), "A[4:6, 0:8] -> B[0:2, 0:8]");
  EXPECT_EQ(copies_in("    for j in range(3):\n        A[1, j] = A[0, j + 5]\n"), "A[0, 5:8] -> A[1, 0:3]");
  // The rows of a nest that is none.
  EXPECT_EQ(copies_in("    for i, j in T.grid(4, 8):\n        B[i * 2, j] = A[i, j]\n"), "A[i, 0:8] -> B[i * 2, 0:8]");
  EXPECT_EQ(copies_in("    for i, j in T.grid(8, 4):\n        B[i, j] = A[i, j]\n"), "A[i, 0:4] -> B[i, 0:4]");
  EXPECT_EQ(copies_in("    for i in range(2, 3):\n        B[i, i * 2] = A[0, i]\n"), "A[0, 2] -> B[2, 4]");
}

TEST(identify_memcpy, refuses_what_is_none) {
  for (const char* body : {
           "    for i, j in T.grid(8, 8):\n        B[i, j] = A[j, i]\n",                  // transposed
           "    for i in range(8):\n        B[0, i] = A[0, 7 - i]\n",                     // reversed
           "    for i in range(4):\n        B[0, i] = A[0, i * 2]\n",                     // strided
           "    for i in range(4):\n        B[0, i * 2] = A[0, i * 2]\n",                 // with gaps
           "    for i in range(8):\n        B[0, i] = A[0, 3]\n",                         // one element
           "    for i in range(8):\n        B[0, i] = A[0, i] + T.float32(1)\n",          // a sum
           "    for i in range(7):\n        A[0, i + 1] = A[0, i]\n",                     // onto itself
           "    for i in range(8):\n        if i < 5:\n            B[0, i] = A[0, i]\n",  // a part of it
           "    for i in range(64):\n        B[0, i] = A[0, i]\n",                        // out of bounds
           "    for i in range(0):\n        B[0, i] = A[0, i]\n",                         // never
           "    for i in T.thread_binding(8, thread=\"threadIdx.x\"):\n        B[0, i] = A[0, i]\n",
       })
    EXPECT_EQ(copies_in(body), "") << body;
  EXPECT_EQ(
      copies_in("    for i in range(8):\n        B[0, i] = T.float32(A[0, i])\n", R"(A: T.Buffer((8, 8), "float16"))"),
      "");
}

TEST(identify_memcpy, reads_extents_that_are_symbols) {
  EXPECT_EQ(copies_in(R"(
    n = T.int64()
    m = T.int64()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    for i, j in T.grid(n, m):
        B[i, j] = A[i, j]
)",
                      "a: T.handle", "b: T.handle"),
            "A[0:n, 0:m] -> B[0:n, 0:m]");
}

TEST(identify_memcpy, knows_what_views_are_of) {
  EXPECT_EQ(copies_in(R"(
    with T.block("b"):
        V = T.match_buffer(A[0, 0:8], (8,), "float32")
        for i in range(7):
            A[0, i + 1] = V[i]
        for i in range(7):
            B[0, i + 1] = V[i]
)"),
            "V[0:7] -> B[0, 1:8]");
}

}  // namespace
}  // namespace lathe::tir
