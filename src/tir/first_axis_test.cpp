#include "tir/first_axis.h"

#include <gtest/gtest.h>

#include "script/parse.h"
#include "tir/script/dialect.h"

namespace lathe::tir {
namespace {

Function rows_program(const std::string& body, int64_t rows = 8) {
  const std::string n = std::to_string(rows);
  const std::string text = "@T.prim_func\ndef main(A: T.Buffer((" + n + ", 4), \"float32\"), W: T.Buffer((" + "8, 4)" +
                           ", \"float32\"), C: T.Buffer((" + n + ", 4), \"float32\")):\n" + body;
  const script::Dialect* dialects[] = {&script_dialect()};
  return ir::cast<PrimFunc>(NodeRef(script::parse_function({"test", text}, dialects).value_or_throw()));
}

std::string with_rows(std::string text, int64_t rows) {
  for (size_t at; (at = text.find("ROWS")) != std::string::npos;) text.replace(at, 4, std::to_string(rows));
  return text;
}

// One statement of C over a grid of rows and columns.
std::string elementwise(const std::string& value) {
  return "    for i, j in T.grid(8, 4):\n        with T.block(\"C\"):\n"
         "            vi, vj = T.axis.remap(\"SS\", [i, j])\n            C[vi, vj] = " +
         value + "\n";
}

const char* const softmax_like = R"(    Y = T.alloc_buffer((ROWS, 4), "float32")
    S = T.alloc_buffer((ROWS,), "float32")
    one = T.alloc_buffer((), "float32")
    with T.block("one"):
        one[()] = T.float32(1)
    for i, j, k in T.grid(ROWS, 4, 4):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * W[vk, vj]
    for i, k in T.grid(ROWS, 4):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + Y[vi, vk]
    for j, i in T.grid(4, ROWS):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = Y[vi, vj] / S[vi] + one[()] + A[vi, 3 - vj]
)";

TEST(with_fewer_rows, shortens_what_is_computed_row_by_row) {
  for (const int64_t rows : {1, 2, 4}) {
    const Function all = rows_program(with_rows(softmax_like, 8));
    const auto by_row = find_rows(*all, 8);
    ASSERT_TRUE(by_row.has_value());
    EXPECT_EQ(by_row->params, (std::vector<bool>{true, false, true}));
    EXPECT_TRUE(structural_equal(NodeRef(with_fewer_rows(*all, *by_row, rows)),
                                 NodeRef(rows_program(with_rows(softmax_like, rows), rows))))
        << rows;
  }
}

TEST(find_rows, declines_what_needs_other_rows) {
  EXPECT_TRUE(find_rows(*rows_program(elementwise("A[vi, vj] + W[2, vj]")), 8));
  for (const std::string value :
       {"A[7 - vi, vj]", "A[vi, vj] + A[0, vj]", "A[vi, vj] * T.cast(vi, \"float32\")", "W[vi, vj] + W[0, vj]",
        "A[vi, (vi + vj) % 4]", "T.if_then_else(vi < 3, A[vi, vj], T.float32(0))", "W[(vi + 1) % 8, vj]"})
    EXPECT_FALSE(find_rows(*rows_program(elementwise(value)), 8)) << value;
  // The columns are no rows, though as many.
  EXPECT_FALSE(find_rows(*rows_program(R"(    Y = T.alloc_buffer((4, 8), "float32")
    for i, j in T.grid(4, 8):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = A[vj, vi]
    for i, j in T.grid(8, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = Y[vj, vi]
)"),
                         8));
  // Sums over the rows.
  EXPECT_FALSE(find_rows(*rows_program(R"(    S = T.alloc_buffer((4,), "float32")
    for j, k in T.grid(4, 8):
        with T.block("S"):
            vj, vk = T.axis.remap("SR", [j, k])
            with T.init():
                S[vj] = T.float32(0)
            S[vj] = S[vj] + A[vk, vj]
    for i, j in T.grid(8, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + S[vj]
)"),
                         8));
}

TEST(find_rows, declines_loops_that_are_not_plain) {
  EXPECT_FALSE(find_rows(*rows_program(R"(    for i in range(2):
        for k, j in T.grid(4, 4):
            with T.block("C"):
                vi = T.axis.spatial(8, i * 4 + k)
                vj = T.axis.spatial(4, j)
                C[vi, vj] = A[vi, vj]
)"),
                         8));
  EXPECT_FALSE(find_rows(*rows_program(R"(    for i in T.parallel(8):
        for j in range(4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj]
)"),
                         8));
}

}  // namespace
}  // namespace lathe::tir
