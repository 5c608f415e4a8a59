// Branches, loops and calls: what the register program does is what the interpreter says.
#include <gtest/gtest.h>

#include "graph/passes.h"
#include "lower/legalize/legalize.h"
#include "lower/testing/opened.h"
#include "lower/testing/random_graph.h"
#include "ops/operators.h"
#include "relax/interpret/evaluate.h"
#include "relax/script/dialect.h"
#include "relax/verify.h"
#include "runtime/core/program_fixture.h"
#include "script/parse.h"
#include "tir/script/dialect.h"

namespace lathe::lower {
namespace lower_control_test {

using runtime::testing::last_message;
using testing::Opened;
using testing::random_data;

ir::IRModule parsed(const std::string& functions) {
  static const std::unique_ptr<script::Dialect> graph = relax::script_dialect(ops::default_operators());
  const std::vector<const script::Dialect*> dialects{&tir::script_dialect(), graph.get()};
  ir::IRModule module = script::parse({"m.py", "@I.ir_module\nclass Module:\n" + functions}, dialects).value_or_throw();
  const support::Diagnostics wrong = relax::verify(module);
  EXPECT_TRUE(wrong.empty()) << support::render(wrong);
  return module;
}

ir::TensorData truth(bool value) {
  return ir::tensor_of<uint8_t>(ir::DType::boolean(), {}, {value ? uint8_t{1} : uint8_t{0}});
}
ir::TensorData number(int64_t value) { return ir::tensor_of<int64_t>(ir::DType::int64(), {}, {value}); }

// The program of a module, run on several inputs in turn, beside the interpreter.
void expect_agreement(const ir::IRModule& module, const std::vector<std::vector<ir::TensorData>>& runs) {
  for (const bool fused : {false, true}) {
    ir::IRModule lowered = fused ? graph::fuse_ops(module, {}).value_or_throw() : module;
    lowered = legalize(std::move(lowered), {}).value_or_throw();
    const Program program = write_program(lowered).value_or_throw();
    Opened opened(lowered, program);
    ASSERT_TRUE(opened.is_open()) << last_message();
    for (size_t r = 0; r < runs.size(); ++r) {
      SCOPED_TRACE("run " + std::to_string(r));
      const auto expected = relax::evaluate(module, "main", runs[r]).value_or_throw();
      const auto actual = opened.run(runs[r], static_cast<int>(expected.size()));
      ASSERT_EQ(actual.size(), expected.size()) << last_message();
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(actual[i]->shape, expected[i]->shape) << "result " << i;
        EXPECT_EQ(actual[i]->view(), expected[i]->view()) << "result " << i;
      }
    }
  }
}

const char* const two_ways = R"(
    @R.function(private=True)
    def half(x: R.Tensor(("n", 3), "float32"), s: R.Shape(["k"])) -> R.Tuple(R.Tensor(("n", 3), "float32")):
        k = T.int64(is_size_var=True)
        y = R.multiply(x, R.const(0.5, "float32"))
        z = R.add(y, R.const([1.0, 2.0, 3.0], "float32"))
        e = R.full(R.shape([k]), R.const(2.0, "float32"))
        f = R.sum(e)
        g = R.add(z, f)
        return (g,)

    @R.function(private=True)
    def same(x: R.Tensor(("n", 3), "float32")) -> R.Tuple(R.Tensor(("n", 3), "float32")):
        return (x,)

    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n", 3), "float32")):
        n = T.int64(is_size_var=True)
        cls = Module
        with R.dataflow():
            y = R.add(x, x)
            b = R.branch(c, cls.half, (y, R.shape([n + 2])), cls.same, (y,), sinfo_args=[R.Tensor((n, 3), "float32")])
            v = b[0]
            u = R.negative(y)
            w = R.subtract(v, u)
            R.output(v, w)
        return (v, w)
)";

TEST(lower_control, a_branch_calls_the_function_that_is_chosen) {
  std::mt19937_64 random(5);
  std::vector<std::vector<ir::TensorData>> runs;
  for (const int64_t n : {2, 0, 5, 2})
    for (const bool way : {true, false}) runs.push_back({truth(way), random_data({n, 3}, random)});
  expect_agreement(parsed(two_ways), runs);
}

const char* const growing = R"(
    @R.function(private=True)
    def turn(i: R.Tensor((), "int64"), c: R.Tensor((), "bool"), s: R.Tensor(("k", 3), "float32"),
             z: R.Tensor((3,), "float32"), x: R.Tensor(("n", 3), "float32"), limit: R.Tensor((), "int64")):
        with R.dataflow():
            g = R.concat((s, x), axis=0)
            t = R.sum(g, axis=[0])
            r = R.add(t, z)
            less = R.less(i, limit)
            R.output(g, t, r, less)
        return (less, g, r, t, i)

    @R.function
    def main(c: R.Tensor((), "bool"), m: R.Tensor((), "int64"), limit: R.Tensor((), "int64"),
             x: R.Tensor(("n", 3), "float32")):
        n = T.int64(is_size_var=True)
        cls = Module
        with R.dataflow():
            v = R.add(x, x)
            z = R.sum(x, axis=[0])
            r = R.loop(cls.turn, m, c, (v, z), (x, limit),
                       sinfo_args=[R.Tensor(ndim=2, dtype="float32"), R.Tensor((3,), "float32"),
                                   R.Tensor((3,), "float32"), R.Tensor((), "int64")])
            grown = r[0]
            k = T.int64(is_size_var=True)
            s = R.match_cast(grown, R.Tensor((k, 3), "float32"))
            last = r[1]
            rows = r[2]
            j = T.int64(is_size_var=True)
            w = T.int64(is_size_var=True)
            t = R.match_cast(rows, R.Tensor((j, w), "float32"))
            turns = r[3]
            q = T.int64(is_size_var=True)
            o = R.match_cast(turns, R.Tensor((q,), "int64"))
            u = R.negative(s)
            p = R.add(v, last)
            R.output(u, t, p, o)
        return (u, t, p, o)
)";

TEST(lower_control, a_loop_carries_values_that_grow_and_stacks_rows) {
  std::mt19937_64 random(7);
  std::vector<std::vector<ir::TensorData>> runs;
  for (const int64_t n : {2, 1, 0})
    for (const int64_t trips : {0, 1, 5, -3})
      for (const int64_t limit : {2, 9})
        runs.push_back({truth(true), number(trips), number(limit), random_data({n, 3}, random)});
  runs.push_back({truth(false), number(4), number(9), random_data({2, 3}, random)});
  expect_agreement(parsed(growing), runs);
}

// Three loops inside each other, a branch in the innermost one, and a function that two callers call.
const char* const nested = R"(
    @R.function(private=True)
    def add_one(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32")):
        y = R.add(x, R.const(1.0, "float32"))
        return (y,)

    @R.function(private=True)
    def keep(x: R.Tensor((4,), "float32")):
        return (x,)

    @R.function(private=True)
    def inner(i: R.Tensor((), "int64"), c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32"), o: R.Tensor((), "int64")):
        cls = Module
        e = R.equal(i, o)
        b = R.branch(e, cls.add_one, (x,), cls.keep, (x,), sinfo_args=[R.Tensor((4,), "float32")])
        y = b[0]
        z = R.multiply(y, R.const(1.5, "float32"))
        return (c, z, z)

    @R.function(private=True)
    def outer(i: R.Tensor((), "int64"), c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32"), m: R.Tensor((), "int64")):
        cls = Module
        a = cls.add_one(x)
        y = a[0]
        w = R.multiply(y, y)
        r = R.loop(cls.inner, m, None, (y,), (i,),
                   sinfo_args=[R.Tensor((4,), "float32"), R.Tensor((4,), "float32")])
        z = r[0]
        s = r[1]
        n = T.int64(is_size_var=True)
        t = R.match_cast(s, R.Tensor((n, 4), "float32"))
        f = R.sum(t, axis=[0])
        g = R.subtract(f, w)
        return (c, z, g)

    @R.function
    def main(m: R.Tensor((), "int64"), x: R.Tensor((4,), "float32")):
        cls = Module
        r = R.loop(cls.outer, m, None, (x,), (m,),
                   sinfo_args=[R.Tensor((4,), "float32"), R.Tensor((4,), "float32")])
        z = r[0]
        s = r[1]
        n = T.int64(is_size_var=True)
        t = R.match_cast(s, R.Tensor((n, 4), "float32"))
        y = R.add(x, z)
        return (y, t)
)";

TEST(lower_control, loops_and_branches_nest) {
  std::mt19937_64 random(11);
  std::vector<std::vector<ir::TensorData>> runs;
  for (const int64_t trips : {3, 0, 1, 2}) runs.push_back({number(trips), random_data({4}, random)});
  expect_agreement(parsed(nested), runs);
}

TEST(lower_control, functions_that_never_run_together_share_memory) {
  const auto arena_bytes = [](const std::string& then, const std::string& otherwise) {
    std::string text;
    for (const char* name : {"one", "two"})
      text += std::string("\n    @R.function(private=True)\n    def ") + name + R"((x: R.Tensor((1024,), "float32")):
        y = R.exp(x)
        z = R.sum(y)
        return (z,)
)";
    text += R"(
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((1024,), "float32")):
        cls = Module
        r = R.branch(c, cls.)" +
            then + ", (x,), cls." + otherwise + R"(, (x,), sinfo_args=[R.Tensor((), "float32")])
        return r[0]
)";
    return write_program(legalize(parsed(text), {}).value_or_throw()).value_or_throw().arena_bytes;
  };
  EXPECT_EQ(arena_bytes("one", "one"), 4096);
  EXPECT_EQ(arena_bytes("one", "two"), 4096);
}

std::string refusal(const std::string& functions) {
  const auto result = write_program(legalize(parsed(functions), {}).value_or_throw());
  return result.ok() ? "" : result.diagnostics().at(0).message;
}

TEST(lower_control, a_function_that_calls_itself_is_refused) {
  EXPECT_EQ(refusal(R"(
    @R.function(private=True)
    def again(x: R.Tensor((4,), "float32")):
        cls = Module
        a = cls.again(x)
        return a

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Module
        a = cls.again(x)
        y = R.match_cast(a, R.Tensor((4,), "float32"))
        return y
)"),
            "the function 'again' calls itself");
}

TEST(lower_control, calls_too_deep_are_refused) {
  const auto chain = [](int length) {
    std::string text;
    for (int i = 0; i < length; ++i) {
      const std::string next = "f" + std::to_string(i + 1);
      text += "\n    @R.function(private=True)\n    def f" + std::to_string(i) +
              "(x: R.Tensor((4,), \"float32\")) -> R.Tensor((4,), \"float32\"):\n        cls = Module\n        y = " +
              (i + 1 < length ? "cls." + next + "(x)" : "R.exp(x)") + "\n        return y\n";
    }
    return text + R"(
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Module
        y = cls.f0(x)
        return y
)";
  };
  EXPECT_EQ(refusal(chain(64)), "");
  EXPECT_EQ(refusal(chain(65)), "functions call each other more than 64 deep");
}

}  // namespace lower_control_test
}  // namespace lathe::lower
