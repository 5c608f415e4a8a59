#include "relax/control.h"

#include <gtest/gtest.h>

#include "ops/operators.h"
#include "relax/block_builder.h"
#include "relax/collection.h"
#include "relax/interpret/evaluate.h"
#include "relax/outline.h"
#include "relax/script/dialect.h"
#include "relax/verify.h"
#include "script/parse.h"
#include "script/print.h"
#include "tir/script/dialect.h"

namespace lathe::relax {
namespace control_test {

std::vector<const script::Dialect*> dialects() {
  static const std::unique_ptr<script::Dialect> graph = script_dialect(ops::default_operators());
  return {&tir::script_dialect(), graph.get()};
}

// What is wrong with a module of two functions and a `main` that ends in these lines.
std::string wrong_with(const std::string& lines) {
  const std::string text = R"(
@I.ir_module
class Module:
    @R.function(private=True)
    def step(i: R.Tensor((), "int64"), c: R.Tensor((), "bool"), x: R.Tensor((3,), "float32")):
        y = R.add(x, x)
        return (c, y, y)

    @R.function(private=True)
    def twice(x: R.Tensor((3,), "float32")):
        y = R.add(x, x)
        return (y,)

    @R.function
    def main(c: R.Tensor((), "bool"), m: R.Tensor((), "int64"), x: R.Tensor((3,), "float32")):
        cls = Module
)" + lines;
  const auto module = script::parse({"m.py", text}, dialects());
  if (!module.ok()) return module.diagnostics().at(0).message;
  const support::Diagnostics found = verify(*module);
  if (!found.empty()) return found[0].message;
  script::PrintOptions options;
  const std::string printed = script::print(*module, options, dialects());
  const auto back = script::parse({"printed.py", printed}, dialects()).value_or_throw();
  const auto difference = ir::first_difference(*module, back);
  return difference ? "comes back as another: " + *difference + "\n" + printed : "";
}

TEST(control, branches_and_loops_are_read_and_checked) {
  const std::string two = "sinfo_args=[R.Tensor((3,), \"float32\")])\n        return x\n";
  const std::string rows =
      "sinfo_args=[R.Tensor((3,), \"float32\"), R.Tensor((3,), \"float32\")])\n"
      "        return x\n";
  EXPECT_EQ(wrong_with("        r = R.branch(c, cls.twice, (x,), cls.twice, (x,), " + two), "");
  EXPECT_EQ(wrong_with("        r = R.loop(cls.step, m, c, (x,), (), " + rows), "");
  EXPECT_EQ(wrong_with("        r = R.loop(cls.step, None, None, (x,), (), " + rows), "");
  EXPECT_EQ(wrong_with("        r = R.branch(m, cls.twice, (x,), cls.twice, (x,), " + two),
            "condition of branch is a scalar of bool, not int64[]");
  EXPECT_EQ(wrong_with("        r = R.branch(c, cls.twice, (x,), cls.twice, x, " + two),
            "branch takes a condition, and two functions of the module, each with a tuple of arguments");
  EXPECT_EQ(wrong_with("        r = R.branch(c, cls.twice, (x, x), cls.twice, (x,), " + two),
            "'r' gives 'twice' 2 arguments; it takes 1");
  EXPECT_EQ(wrong_with("        r = R.branch(c, cls.twice, (x,), cls.twice, (m,), " + two),
            "'r' gives 'twice' an argument 0 of another type than it takes");
  EXPECT_EQ(wrong_with("        r = R.branch(c, cls.twice, (x,), cls.twice, (x,), " + rows),
            "'r' takes 2 results from 'twice', which gives others");
  EXPECT_EQ(wrong_with("        r = R.branch(c, cls.twice, (x,), cls.twice, (x,), "
                       "sinfo_args=[R.Tensor((3,), \"int64\")])\n        return x\n"),
            "'r' takes a result 0 of 'twice' for another type than it is");
  EXPECT_EQ(wrong_with("        r = R.loop(cls.step, c, c, (x,), (), " + rows),
            "trips of loop is a scalar of int64, not bool[]");
  EXPECT_EQ(wrong_with("        r = R.loop(cls.step, m, c, (x, x, x), (), " + rows),
            "loop carries 3 values, but declares 2 results");
  EXPECT_EQ(wrong_with("        r = R.loop(cls.step, m, c, x, (), " + rows),
            "loop takes a function of the module, trips, a condition, and tuples of what it carries and captures");
  EXPECT_EQ(wrong_with("        r = R.loop(cls.step, m, c, (x,), (), sinfo_args=[R.Tensor((3,), \"float32\"), "
                       "R.Shape([3])])\n        return x\n"),
            "the rows that a loop stacks are tensors of known rank");
  EXPECT_EQ(wrong_with("        r = R.loop(cls.twice, m, c, (x,), (), " + rows),
            "'r' gives 'twice' 3 arguments; it takes 1");
  EXPECT_EQ(wrong_with("        r = cls.step(x)\n        return x\n"), "the function takes 3 arguments, not 1");
}

ir::TensorData number(int64_t value) { return ir::tensor_of<int64_t>(DType::int64(), {}, {value}); }

TEST(control, the_interpreter_bounds_turns_and_calls) {
  const std::string text = R"(
@I.ir_module
class Module:
    @R.function(private=True)
    def step(i: R.Tensor((), "int64"), c: R.Tensor((), "bool")):
        return (c,)

    @R.function
    def main(m: R.Tensor((), "int64")):
        cls = Module
        r = R.loop(cls.step, None, None, (), (), sinfo_args=[])
        return m

    @R.function
    def again(m: R.Tensor((), "int64")):
        cls = Module
        r = cls.again(m)
        return r
)";
  const ir::IRModule module = script::parse({"m.py", text}, dialects()).value_or_throw();
  EvaluateOptions options;
  options.max_turns = 100;
  EXPECT_EQ(evaluate(module, "main", {number(1)}, options).diagnostics().at(0).message,
            "a loop takes more than 100 turns");
  EXPECT_EQ(evaluate(module, "again", {number(1)}).diagnostics().at(0).message,
            "functions call each other more than 64 deep");
}

// What is wrong with a function that begins with a sequence and an optional, and goes on with this line.
std::string wrong_with_collection(const std::string& line) {
  const std::string text = R"(
@R.function
def main(x: R.Tensor((3,), "float32"), y: R.Tensor((3, 4), "int64"), i: R.Tensor((), "int64"),
         s: R.Sequence(R.Tensor((3,), "float32")), o: R.Optional(R.Tensor(ndim=1, dtype="float32"))):
    r = )" + line + "\n    return x\n";
  const auto module = script::parse({"m.py", text}, dialects());
  if (!module.ok()) return module.diagnostics().at(0).message;
  const support::Diagnostics found = verify(*module);
  return found.empty() ? "" : found[0].message;
}

TEST(collection, operators_check_what_they_are_given) {
  const std::string element = "sinfo_args=[R.Tensor((3,), \"float32\")])";
  for (const std::string& line :
       {"R.make_sequence(x, x, " + element, "R.sequence_insert(s, x, i, " + element, std::string("R.sequence_erase(s)"),
        std::string("R.sequence_at(s, i)"), std::string("R.sequence_length(s)"), std::string("R.join_sequence(s)"),
        std::string("R.split_sequence(y, i)"), "R.make_optional(x, " + element, std::string("R.optional_has(o)"),
        std::string("R.optional_get(o)")})
    EXPECT_EQ(wrong_with_collection(line), "") << line;
  const std::pair<std::string, std::string> refused[] = {
      {"R.make_sequence(x)", "make_sequence says in sinfo_args what tensor its elements are"},
      {"R.make_sequence(y, " + element, "items of make_sequence is int64[3, 4], but elements are float32[3]"},
      {"R.sequence_at(x, i)", "sequence of sequence_at is no sequence"},
      {"R.sequence_at(s, x)", "position of sequence_at is a scalar of int64 or int32, not float32[3]"},
      {"R.sequence_length(o)", "sequence of sequence_length is no sequence"},
      {"R.optional_get(s)", "optional of optional_get is no optional"},
      {"R.split_sequence(i)", "split_sequence of int64[], which has no axis"},
      {"R.split_sequence(y, x)", "sizes of split_sequence is a scalar or vector of int64 or int32, not float32[3]"},
      {"R.make_optional(x)", "make_optional says in sinfo_args what its value is"},
  };
  for (const auto& [line, message] : refused) EXPECT_EQ(wrong_with_collection(line), message) << line;
}

TEST(collection, the_type_of_either_is_what_both_are) {
  const auto tensor = [](std::vector<int64_t> shape) { return tensor_info(shape, DType::float32()); };
  const StructInfo rank = tensor_info_of_rank(2, DType::float32()), none = tensor_info_of_rank(-1, DType::float32());
  const auto same = [](const StructInfo& a, const StructInfo& b) { return ir::structural_equal(a, b); };
  EXPECT_TRUE(same(joined(tensor({2, 3}), tensor({2, 3})), tensor({2, 3})));
  EXPECT_TRUE(same(joined(tensor({2, 3}), tensor({2, 4})), rank));
  EXPECT_TRUE(same(joined(none, tensor({2, 4})), tensor({2, 4})));
  EXPECT_FALSE(joined(tensor({2}), tensor({2, 4})));
  EXPECT_FALSE(joined(tensor({2}), tensor_info(std::vector<int64_t>{2}, DType::int64())));
  const auto sequence = [](const StructInfo& element) { return StructInfo(make<SequenceStructInfo>(element)); };
  EXPECT_TRUE(same(joined(sequence(none), sequence(rank)), sequence(rank)));
  EXPECT_FALSE(joined(sequence(rank), rank));
}

// ---- outlining ----

struct Captured {
  Outlined made;
  Var x, y;
  ir::Var n = ir::size_var("n"), m = ir::size_var("m");
};

// x: [n + m], y: [m], and inside: z = x + x, s = shape(n), w = z matched to [k], all of them results.
Captured captured(bool uses_y) {
  Captured c;
  c.x = relax_var("x", tensor_info({c.n + c.m}, DType::float32()));
  c.y = relax_var("y", tensor_info({ir::Expr(c.m)}, DType::float32()));
  const ir::Var k = ir::size_var("k");
  BlockBuilder b;
  b.begin_scope();
  const Expr z = b.call(ops::add, {c.x, c.x}).value_or_throw();
  const Expr w = b.match_cast(z, tensor_info({ir::Expr(k)}, DType::float32()));
  std::vector<Expr> results{w, b.call(ops::add, {w, w}).value_or_throw()};
  if (uses_y) results.push_back(b.call(ops::add, {c.y, c.y}).value_or_throw());
  c.made = outline(b.end_scope(make<Tuple>(results)), {});
  return c;
}

TEST(outline, passes_variables_and_the_symbols_that_no_shape_tells) {
  const Captured both = captured(true), one = captured(false);
  ASSERT_EQ(both.made.captured.size(), 3u);
  EXPECT_EQ(both.made.captured[0].get(), both.x.get());
  EXPECT_EQ(both.made.captured[1].get(), both.y.get());
  EXPECT_EQ(both.made.captured[2].as<ShapeExpr>()->values, std::vector<ir::Expr>{both.n});
  ASSERT_EQ(one.made.captured.size(), 2u);
  EXPECT_EQ(one.made.captured[1].as<ShapeExpr>()->values, (std::vector<ir::Expr>{one.n, one.m}));
  for (const Captured* each : {&both, &one}) {
    ir::IRModule module;
    module.set("f", each->made.function);
    EXPECT_TRUE(verify(module).empty()) << support::render(verify(module));
    EXPECT_TRUE(each->made.function->attrs.get_or("private", false));
  }
}

}  // namespace control_test
}  // namespace lathe::relax
