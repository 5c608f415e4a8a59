#include "tir/row_strip.h"

#include <gtest/gtest.h>

#include "script/parse.h"
#include "tir/interpret/interpret.h"
#include "tir/script/dialect.h"

namespace lathe::tir {
namespace {

Function strip_program(const std::string& text) {
  const script::Dialect* dialects[] = {&script_dialect()};
  return ir::cast<PrimFunc>(NodeRef(script::parse_function({"test", text}, dialects).value_or_throw()));
}

// A window of three rows, two apart, over what is padded; an epilogue that goes by the row's number; weights.
const char* const window = R"(@T.prim_func
def main(x: T.Buffer((1, 13, 3), "float32"), w: T.Buffer((3,), "float32"), y: T.Buffer((1, 7, 3), "float32")):
    padded = T.alloc_buffer((1, 15, 3), "float32")
    conv = T.alloc_buffer((1, 7, 3), "float32")
    one = T.alloc_buffer((), "float32")
    for i, j, k in T.grid(1, 15, 3):
        with T.block("padded"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            padded[vi, vj, vk] = T.if_then_else(vj >= 1 and vj < 14, x[0, vj - 1, vk], T.float32(0))
    for i, j, k, r in T.grid(1, 7, 3, 3):
        with T.block("conv"):
            vi, vj, vk, vr = T.axis.remap("SSSR", [i, j, k, r])
            with T.init():
                conv[vi, vj, vk] = T.float32(0)
            conv[vi, vj, vk] = conv[vi, vj, vk] + padded[0, vj * 2 + vr, vk] * w[vr]
    with T.block("one"):
        one[()] = T.float32(1)
    for i, k, j in T.grid(1, 3, 7):
        with T.block("y"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            y[vi, vj, vk] = conv[0, vj, vk] + one[()] + T.cast(vj % 3, "float32")
)";

TEST(find_strip, says_which_rows_of_the_inputs_it_takes) {
  const Function all = strip_program(window);
  const auto rows_of_x = [&](RowRange wanted) {
    const auto strip = find_strip(*all, wanted);
    EXPECT_TRUE(strip && !strip->params[1] && strip->params[2] == wanted);
    return strip ? *strip->params[0] : RowRange{};
  };
  EXPECT_EQ(rows_of_x({0, 7}), (RowRange{0, 13}));
  EXPECT_EQ(rows_of_x({0, 1}), (RowRange{0, 2})) << "behind the border";
  EXPECT_EQ(rows_of_x({2, 4}), (RowRange{3, 8}));
  EXPECT_EQ(rows_of_x({6, 7}), (RowRange{11, 13}));
}

TEST(with_strip, computes_the_rows_that_are_wanted) {
  const Function all = strip_program(window);
  const auto tensor = [](const std::vector<float>& values, std::vector<int64_t> shape) {
    return TensorBuffer::of(ir::tensor_of<float>(ir::DType::float32(), std::move(shape), values));
  };
  const auto result = [](int64_t rows) { return TensorBuffer::uninitialised(ir::DType::float32(), {1, rows, 3}); };
  std::vector<float> x(39);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7) % 11) - 4;
  const TensorBuffer w = tensor({1, -2, 3}, {3});
  std::vector<TensorBuffer> whole{tensor(x, {1, 13, 3}), w, result(7)};
  ASSERT_TRUE(interpret(all, whole).ok());
  const std::vector<uint8_t>& y = whole[2].bytes;
  for (int64_t begin = 0; begin < 7; ++begin)
    for (int64_t end = begin + 1; end <= 7; ++end) {
      SCOPED_TRACE(std::to_string(begin) + " to " + std::to_string(end));
      const auto strip = find_strip(*all, {begin, end});
      ASSERT_TRUE(strip);
      const RowRange read = *strip->params[0];
      std::vector<TensorBuffer> args{
          tensor({x.begin() + read.begin * 3, x.begin() + read.end * 3}, {1, read.count(), 3}), w, result(end - begin)};
      ASSERT_TRUE(interpret(with_strip(*all, *strip), args).ok());
      EXPECT_EQ(args[2].bytes, std::vector<uint8_t>(y.begin() + begin * 12, y.begin() + end * 12));
    }
}

TEST(with_strip, makes_one_kernel_of_strips_without_borders) {
  std::string text = window;
  text.replace(text.find(" + T.cast(vj % 3, \"float32\")"), 29, "");  // what depends on the row's number differs
  const Function all = strip_program(text);
  const auto kernel = [&](RowRange rows) { return with_strip(*all, *find_strip(*all, rows)); };
  EXPECT_TRUE(ir::structural_equal(kernel({1, 3}), kernel({3, 5})));
  EXPECT_FALSE(ir::structural_equal(kernel({1, 3}), kernel({0, 2})));
  EXPECT_FALSE(ir::structural_equal(kernel({1, 3}), kernel({5, 7})));
}

TEST(find_strip, declines_what_needs_all_rows_of_what_it_computes) {
  const auto program = [](const std::string& second) {
    return strip_program(R"(@T.prim_func
def main(x: T.Buffer((8, 4), "float32"), y: T.Buffer((8, 4), "float32")):
    a = T.alloc_buffer((8, 4), "float32")
    for i, j in T.grid(8, 4):
        with T.block("a"):
            vi, vj = T.axis.remap("SS", [i, j])
            a[vi, vj] = x[vi, vj]
    for i, j in T.grid(8, 4):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            )" + second + "\n");
  };
  EXPECT_TRUE(find_strip(*program("y[vi, vj] = a[7 - vi, vj] + x[0, vj]"), {2, 4}));
  EXPECT_TRUE(find_strip(*program("y[vi, vj] = a[vi // 2, vj]"), {2, 4}));
  for (const std::string second : {"y[vi, vj] = a[0, vj]", "y[vi, vj] = a[vj, 0]", "y[7 - vi, vj] = a[vi, vj]",
                                   "y[vi, vj] = x[vi, vj]", "a[vi, vj] = y[vi, vj]"})
    EXPECT_FALSE(find_strip(*program(second), {2, 4})) << second;
}

// ---- row by row ----

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

bool is_row_by_row(const PrimFunc& function) {
  const auto strip = find_strip(function, {0, 4});
  return strip && strip->is_row_by_row;
}

TEST(row_by_row, shortens_what_is_computed_row_by_row) {
  for (const int64_t rows : {1, 2, 4}) {
    const Function all = rows_program(with_rows(softmax_like, 8));
    const RowRange wanted{0, rows};
    const auto by_row = find_strip(*all, wanted);
    ASSERT_TRUE(by_row && by_row->is_row_by_row);
    EXPECT_EQ(by_row->params, (std::vector<std::optional<RowRange>>{wanted, std::nullopt, wanted}));
    EXPECT_TRUE(structural_equal(NodeRef(with_strip(*all, *by_row)),
                                 NodeRef(rows_program(with_rows(softmax_like, rows), rows))))
        << rows;
  }
}

TEST(row_by_row, declines_what_needs_other_rows) {
  EXPECT_TRUE(is_row_by_row(*rows_program(elementwise("A[vi, vj] + W[2, vj]"))));
  for (const std::string value :
       {"A[7 - vi, vj]", "A[vi, vj] + A[0, vj]", "A[vi, vj] * T.cast(vi, \"float32\")", "W[vi, vj] + W[0, vj]",
        "A[vi, (vi + vj) % 4]", "T.if_then_else(vi < 3, A[vi, vj], T.float32(0))", "W[(vi + 1) % 8, vj]"})
    EXPECT_FALSE(is_row_by_row(*rows_program(elementwise(value)))) << value;
  // The columns are no rows, though as many.
  EXPECT_FALSE(is_row_by_row(*rows_program(R"(    Y = T.alloc_buffer((4, 8), "float32")
    for i, j in T.grid(4, 8):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = A[vj, vi]
    for i, j in T.grid(8, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = Y[vj, vi]
)")));
  // Sums over the rows.
  EXPECT_FALSE(is_row_by_row(*rows_program(R"(    S = T.alloc_buffer((4,), "float32")
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
)")));
}

TEST(find_strip, declines_loops_that_are_not_plain) {
  EXPECT_FALSE(is_row_by_row(*rows_program(R"(    for i in range(2):
        for k, j in T.grid(4, 4):
            with T.block("C"):
                vi = T.axis.spatial(8, i * 4 + k)
                vj = T.axis.spatial(4, j)
                C[vi, vj] = A[vi, vj]
)")));
  EXPECT_FALSE(is_row_by_row(*rows_program(R"(    for i in T.parallel(8):
        for j in range(4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj]
)")));
}

TEST(row_axis, is_behind_axes_of_extent_one) {
  const auto shape = [](std::vector<int64_t> extents) {
    std::vector<Expr> made;
    for (const int64_t extent : extents) made.push_back(int64(extent));
    return made;
  };
  EXPECT_EQ(row_axis(shape({1, 1, 5, 3})), 2u);
  EXPECT_EQ(row_axis(shape({4})), 0u);
  for (const auto& none : {shape({}), shape({1, 1}), shape({1, 0, 4}), std::vector<Expr>{ir::var("n"), int64(4)}})
    EXPECT_EQ(row_axis(none), std::nullopt);
}

}  // namespace
}  // namespace lathe::tir
