#include "te/loops/from_python.h"

#include <gtest/gtest.h>

#include "ir/visit.h"
#include "schedule/schedule.h"
#include "tir/interpret/interpret.h"
#include "tir/verify.h"

namespace lathe::te {
namespace from_python_test {

using ir::DType;
using tir::TensorBuffer;
using Specs = std::vector<ParameterSpec>;

tir::Function read(const std::string& text, const Specs& specs) {
  const ir::IRModule module = from_python({"loops.py", text}, specs).value_or_throw();
  EXPECT_EQ(module.size(), 1u);
  return ir::cast<tir::PrimFunc>(module.functions()[0].second);
}

// "C: spatial spatial reduce" for each block.
std::vector<std::string> blocks_of(const tir::Function& f) {
  static constexpr const char* kinds[] = {"spatial", "reduce", "scan", "opaque", "thread"};
  std::vector<std::string> found;
  ir::pre_order(f, [&](const ir::NodeRef& n) {
    if (const auto* block = n.as<tir::Block>(); block && block->name != "root") {
      std::string line = block->name + (block->init ? " with init:" : ":");
      for (const ir::IterVar& axis : block->iter_vars) (line += " ") += kinds[static_cast<int>(axis->type)];
      found.push_back(line);
    }
    return true;
  });
  return found;
}

TensorBuffer filled(const std::vector<int64_t>& shape, DType dtype = DType::float32()) {
  TensorBuffer t = TensorBuffer::zeros(dtype, shape);
  for (int64_t i = 0; i < t.elements(); ++i)
    dtype.is_floating() ? t.set_float(i, static_cast<double>((i * 7 + 3) % 11) - 5) : t.set_int(i, (i * 7 + 3) % 5);
  return t;
}

// Runs `f`, and what a schedule makes of it, on the same arrays; gives the arrays after.
std::vector<TensorBuffer> run(const tir::Function& f, std::vector<TensorBuffer> arrays,
                              const std::vector<int64_t>& scalars = {}) {
  EXPECT_TRUE(tir::verify(f).empty());
  EXPECT_TRUE(schedule::Schedule::create(f).ok());
  tir::interpret(f, arrays, scalars).value_or_throw();
  return arrays;
}

constexpr const char* linear_relu = R"(
def linear_relu(x, w, out):
    """The product with the transpose of w, then relu."""
    for i in range(x.shape[0]):
        for j in range(len(w)):
            out[i, j] = 0
            for k in range(x.shape[1]):
                out[i, j] += x[i, k] * w[j, k]
            out[i, j] = max(out[i, j], 0.0)
)";

TEST(from_python, infers_the_blocks_of_a_product_and_its_activation) {
  const tir::Function f = read(linear_relu, Specs{{"x", {{3, 4}}}, {"w", {{5, 4}}}, {"out", {{3, 5}}}});
  EXPECT_EQ(blocks_of(f),
            (std::vector<std::string>{"out with init: spatial spatial reduce", "out_1: spatial spatial"}));
  const auto arrays = run(f, {filled({3, 4}), filled({5, 4}), TensorBuffer::uninitialised(DType::float32(), {3, 5})});
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 5; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 4; ++k) sum += arrays[0].float_at(i * 4 + k) * arrays[1].float_at(j * 4 + k);
      EXPECT_EQ(arrays[2].float_at(i * 5 + j), std::max(sum, 0.0));
    }
}

TEST(from_python, keeps_an_init_apart_from_loops_that_may_not_run) {
  const Specs specs{{"x", {{int64_t{2}, "n"}}}, {"out", {{2}}}};
  const std::string text =
      "def f(x, out):\n  for i in range(2):\n    out[i] = 1\n    for k in range(n):\n      out[i] += x[i][k]\n";
  const tir::Function f = read(text, specs);
  EXPECT_EQ(blocks_of(f), (std::vector<std::string>{"out: spatial", "out_1: spatial reduce"}));
  for (const int64_t n : {0, 3}) {
    const auto arrays = run(f, {filled({2, n}), TensorBuffer::uninitialised(DType::float32(), {2})});
    double sum = 1;
    for (int64_t k = 0; k < n; ++k) sum += arrays[0].float_at(n + k);
    EXPECT_EQ(arrays[1].float_at(1), sum);
  }
}

TEST(from_python, gives_every_iteration_its_own_local_variables) {
  const std::string text = R"(
def softmax(x, out):
    rows, columns = x.shape
    for i in range(rows):
        top = x[i, 0]
        for j in range(1, columns):
            top = max(top, x[i, j])
        total = 0.0
        for j in range(columns):
            total += math.exp(x[i, j] - top)
        for j in range(columns):
            e = math.exp(x[i, j] - top)
            out[i, j] = e / total
)";
  const tir::Function f = read(text, Specs{{"x", {{4, 6}}}, {"out", {{4, 6}}}});
  EXPECT_EQ(blocks_of(f), (std::vector<std::string>{"top with init: spatial reduce", "total with init: spatial reduce",
                                                    "e: spatial spatial", "out: spatial spatial"}));
  const auto arrays = run(f, {filled({4, 6}), TensorBuffer::uninitialised(DType::float32(), {4, 6})});
  for (int64_t i = 0; i < 4; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < 6; ++j) sum += arrays[1].float_at(i * 6 + j);
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  // Rows are independent now, which a schedule can show.
  schedule::Schedule sch = schedule::Schedule::create(f).value_or_throw();
  const auto loops = sch.get_loops(sch.get_block("total").value_or_throw()).value_or_throw();
  EXPECT_TRUE(sch.parallel(loops[0]).ok());
}

TEST(from_python, keeps_the_order_of_iterations_that_build_on_one_another) {
  const std::string text = "def sums(x, y):\n  y[0] = x[0]\n  for i in range(1, 8):\n    y[i] = y[i - 1] + x[i]\n";
  const tir::Function f = read(text, Specs{{"x", {{8}}, DType::int32()}, {"y", {{8}}, DType::int32()}});
  EXPECT_EQ(blocks_of(f), (std::vector<std::string>{"y:", "y_1: opaque"}));
  const auto arrays = run(f, {filled({8}, DType::int32()), TensorBuffer::uninitialised(DType::int32(), {8})});
  int64_t sum = 0;
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(arrays[1].int_at(i), sum += arrays[0].int_at(i));
  schedule::Schedule sch = schedule::Schedule::create(f).value_or_throw();
  const auto loops = sch.get_loops(sch.get_block("y_1").value_or_throw()).value_or_throw();
  EXPECT_FALSE(sch.parallel(loops[0]).ok());
}

TEST(from_python, does_not_take_overlapping_writes_for_independent_ones) {
  const std::string text =
      "def conv(x, w, y):\n  for i in range(5):\n    for j in range(3):\n      y[i + j] += x[i] * w[j]\n";
  const tir::Function f = read(text, Specs{{"x", {{5}}}, {"w", {{3}}}, {"y", {{7}}}});
  EXPECT_EQ(blocks_of(f), std::vector<std::string>{"y: opaque opaque"});
  const auto arrays = run(f, {filled({5}), filled({3}), TensorBuffer::zeros(DType::float32(), {7})});
  EXPECT_EQ(arrays[2].float_at(1),
            arrays[0].float_at(0) * arrays[1].float_at(1) + arrays[0].float_at(1) * arrays[1].float_at(0));
}

TEST(from_python, reads_triangles_steps_and_conditions) {
  const std::string text = R"(
def f(x, y):
    z = np.zeros((6, 6), dtype="float32")
    for i in range(6):
        for j in range(i + 1):
            z[i, j] = x[i, j]
    for i in range(5, -1, -2):
        for j in range(6):
            if j > 0:
                y[i, j] = z[i, j - 1]
            else:
                y[i, j] = -1
    for i in range(0, 6, 2):
        for j in range(6):
            y[i, j] = z[j, i] if j >= i else 2.5
)";
  const tir::Function f = read(text, Specs{{"x", {{6, 6}}}, {"y", {{6, 6}}}});
  const auto arrays = run(f, {filled({6, 6}), TensorBuffer::uninitialised(DType::float32(), {6, 6})});
  const auto z = [&](int64_t i, int64_t j) { return j <= i ? arrays[0].float_at(i * 6 + j) : 0; };
  for (int64_t i = 0; i < 6; ++i)
    for (int64_t j = 0; j < 6; ++j)
      EXPECT_EQ(arrays[1].float_at(i * 6 + j), i % 2    ? (j > 0 ? z(i, j - 1) : -1)
                                               : j >= i ? z(j, i)
                                                        : 2.5)
          << i << " " << j;
}

TEST(from_python, takes_numbers_and_gathers) {
  const std::string text =
      "def f(x, at, y, shift):\n  for i in range(4):\n    p = at[i]\n    y[i] = x[p] * float(shift) + i\n";
  const tir::Function f =
      read(text, Specs{{"x", {{5}}}, {"at", {{4}}, DType::int64()}, {"y", {{4}}}, {"shift", {}, DType::int64()}});
  const auto arrays =
      run(f, {filled({5}), filled({4}, DType::int64()), TensorBuffer::zeros(DType::float32(), {4})}, {3});
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(arrays[2].float_at(i), arrays[0].float_at(arrays[1].int_at(i)) * 3 + static_cast<double>(i));
}

TEST(from_python, counts_negative_indices_from_the_end) {
  const std::string text = R"(
def f(x, y, at):
    for i in range(6):
        y[i] = x[-1 - i] + x[i - 2] * 10 + x[at[i]] * 100 + (x[i + 1] if i < 5 else x[-2]) * 1000
)";
  const tir::Function f = read(text, Specs{{"x", {{6}}}, {"y", {{6}}}, {"at", {{6}}, DType::int32()}});
  TensorBuffer at = TensorBuffer::zeros(DType::int32(), {6});
  for (int64_t i = 0; i < 6; ++i) at.set_int(i, i % 2 ? -i : i);
  const auto arrays = run(f, {filled({6}), TensorBuffer::zeros(DType::float32(), {6}), at});
  const auto x = [&](int64_t i) { return arrays[0].float_at(i < 0 ? i + 6 : i); };
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(arrays[1].float_at(i),
              x(-1 - i) + x(i - 2) * 10 + x(at.int_at(i)) * 100 + (i < 5 ? x(i + 1) : x(-2)) * 1000);
  // An index whose sign is known stays one that schedules understand.
  const tir::Function turned =
      read("def f(x, y):\n  for i in range(6):\n    y[-1 - i] = x[-i - 1]\n", Specs{{"x", {{6}}}, {"y", {{6}}}});
  EXPECT_EQ(blocks_of(turned), std::vector<std::string>{"y: spatial"});
}

struct Refusal {
  const char* body;
  const char* code;
  uint32_t line, column;
};

TEST(from_python, refuses_with_line_and_column) {
  const Refusal refusals[] = {
      {"while x[0] > 0:\n    y[0] = 1", "te-not-loops", 2, 3},
      {"for i in x:\n    y[0] = 1", "te-not-loops", 2, 12},
      {"for i in range(0, 4, 0):\n    y[i] = 1", "te-not-loops", 2, 24},
      {"for i in range(4):\n    break", "te-not-loops", 3, 5},
      {"return x", "te-not-loops", 2, 3},
      {"x[0] + 1", "te-not-loops", 2, 3},
      {"y[0] = frobnicate(x[0])", "script-unknown-name", 2, 10},
      {"y[0] = math.frobnicate(x[0])", "te-not-loops", 2, 10},
      {"y[0] = q + 1", "script-unknown-name", 2, 10},
      {"y[0, 1] = 1.0", "script-wrong-arguments", 2, 5},
      {"for i in range(n):\n    q = x[i]\n  y[0] = q", "te-unassigned", 4, 10},
      {"for i in range(4):\n    y[i] = q\n    q = x[i]", "te-unassigned", 3, 12},
      {"n = 3", "te-not-loops", 1, 1},
      {"k[0] = x[0]", "te-not-loops", 2, 10},
      {"for i in range(4):\n    z = np.zeros((4,))", "te-not-loops", 3, 5},
      {"for i in range(4):\n    for j in range(k[i]):\n      y[j] = 1", "te-not-loops", 3, 14},
      {"y[0] = x[0] + u[0] * k[0]", "script-dtype-mismatch", 2, 17},
      {"c = 0\n  for i in range(3):\n    c += 1\n    y[i] = x[i] * c", "script-dtype-mismatch", 5, 12},
      {"y[0:2] = 1.0", "te-not-loops", 2, 5},
      {"for i in range(n):\n    y[i] = x[i + 1]", "te-not-loops", 3, 14},
      {"for i in range(5):\n    four[i] = 0", "te-not-loops", 3, 10},
      {"four[0] = four[-5]", "te-not-loops", 2, 18},
      {"for i in range(5):\n    if i < 4:\n      four[i + 1] = 0", "te-not-loops", 4, 12},
      {"import numpy", "te-not-loops", 2, 3},
  };
  const Specs specs{
      {"x", {{"n"}}}, {"y", {{"n"}}}, {"k", {{"n"}}, DType::int64()}, {"u", {{"n"}}, DType::uint(64)}, {"four", {{4}}}};
  for (const Refusal& r : refusals) {
    const auto result = from_python({"loops.py", std::string("def f(x, y, k, u, four):\n  ") + r.body + "\n"}, specs);
    ASSERT_FALSE(result.ok()) << r.body;
    const support::Diagnostic& d = result.diagnostics()[0];
    EXPECT_EQ(d.code.name, r.code) << r.body << "\n" << d.message;
    const auto* range = std::get_if<support::TextRange>(&d.place);
    ASSERT_TRUE(range) << r.body << "\n" << d.message;
    const support::LineColumn at = support::line_column(*range->source, range->begin);
    EXPECT_EQ(std::pair(at.line, at.column), std::pair(r.line, r.column)) << r.body << "\n" << d.message;
  }
}

TEST(from_python, refuses_parameters_that_do_not_fit) {
  const auto code = [](const std::string& text, const Specs& specs) {
    const auto result = from_python({"loops.py", text}, specs);
    return result.ok() ? "accepted" : result.diagnostics()[0].code.name;
  };
  EXPECT_EQ(code("def f(x): pass\n", {}), "te-parameters");
  EXPECT_EQ(code("def f(x): pass\n", Specs{{"x", {{4}}}, {"y", {{4}}}}), "te-parameters");
  EXPECT_EQ(code("def f(x): pass\n", Specs{{"x", {{-4}}}}), "te-parameters");
  EXPECT_EQ(code("x = 1\n", {}), "te-not-loops");
  EXPECT_EQ(code("def f(): pass\ndef g(): pass\n", {}), "te-not-loops");
  EXPECT_EQ(code("def f(x)\n", {}), "script-syntax");
  EXPECT_EQ(code("def f(x):\n  for i in range(4):\n    for j in range(i * (4 - i)):\n      x[j] = 1.0\n",
                 Specs{{"x", {{8}}}}),
            "te-unbounded-loop");
}

}  // namespace from_python_test
}  // namespace lathe::te
