#include <gtest/gtest.h>

#include "ops/operators.h"
#include "relax/block_builder.h"
#include "relax/call_tir.h"
#include "relax/script/dialect.h"
#include "script/parse.h"
#include "script/print.h"
#include "tir/script/dialect.h"

namespace lathe::relax {
namespace {

struct Both {
  std::unique_ptr<script::Dialect> graph = script_dialect(ops::default_operators());
  std::vector<const script::Dialect*> all{&tir::script_dialect(), graph.get()};
};

void expect_round_trip(const ir::IRModule& module) {
  const Both dialects;
  std::map<std::string, ir::TensorData> constants;
  script::PrintOptions options;
  options.constants = &constants;
  const std::string text = script::print(module, options, dialects.all);
  script::ParseOptions reading;
  reading.constants = [&](const std::string& name) {
    return constants.count(name) ? constants[name] : ir::TensorData();
  };
  auto back = script::parse({"<text>", text}, dialects.all, reading);
  ASSERT_TRUE(back.ok()) << support::render(back.diagnostics()) << text;
  const auto difference = ir::first_difference(module, *back);
  EXPECT_FALSE(difference) << *difference << "\n" << text;
  EXPECT_EQ(script::print(*back, options, dialects.all), text);
}

TEST(relax_script, modules_come_back) {
  const ir::Var n = ir::size_var("n");
  const Var x = relax_var("x", tensor_info({n, ir::int64(4)}, DType::float32()));
  const Var w = relax_var("w", tensor_info(std::vector<int64_t>{4, 5}, DType::float32()));
  BlockBuilder b;
  b.begin_function("main", {x, w}, {{"output_names", ir::Value::List{"y", "z"}}, {"num_input", 1}});
  b.begin_dataflow();
  Expr y = *b.call(ops::matmul, {x, w});
  y = *b.call(ops::add, {y, constant(ir::tensor_of<float>(DType::float32(), {5}, {1, 2, 3, 4, 0.1f}))});
  const std::vector<float> big(20, 0.25f);
  y = *b.call(ops::multiply, {y, constant(ir::tensor_of<float>(DType::float32(), {4, 5}, big))});
  y = b.emit_output(y, "out");
  b.end_block();
  b.end_function(make<Tuple>(std::vector<Expr>{y, x}));
  expect_round_trip(b.finish());
}

TEST(relax_script, branches_and_calls_are_read) {
  const Both dialects;
  const char* text = R"(
@I.ir_module
class Module:
    @T.prim_func
    def double(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("Y"):
                vi = T.axis.spatial(4, i)
                Y[vi] = X[vi] * T.float32(2)

    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((4,), "float32"))
            b = R.add(R.nn.relu(a), x)
            R.output(b)
        if c:
            r = R.add(b, b)
        else:
            s = R.subtract(b, x)
            r = s
        m = T.int64(is_size_var=True)
        k = R.match_cast(r, R.Tensor((m,), "float32"))
        return r
)";
  auto module = script::parse({"m.py", text}, dialects.all);
  ASSERT_TRUE(module.ok()) << support::render(module.diagnostics());
  expect_round_trip(*module);
}

TEST(relax_script, the_decorator_makes_a_function_private) {
  const Both dialects;
  const auto is_private = [&](const std::string& arguments) {
    const std::string text =
        "@R.function" + arguments + "\ndef f(x: R.Tensor((2,), \"float32\")):\n    y = R.add(x, x)\n    return y\n";
    const auto function = script::parse_function({"m.py", text}, dialects.all).value_or_throw();
    return function->attrs.get_or("private", false);
  };
  EXPECT_TRUE(is_private("(private=True)"));
  EXPECT_FALSE(is_private("(private=False)"));
  EXPECT_FALSE(is_private(""));
}

TEST(relax_script, an_annotation_that_differs_is_refused) {
  const Both dialects;
  const auto result = script::parse({"m.py",
                                     "@R.function\ndef f(x: R.Tensor((2, 3), \"float32\")):\n"
                                     "    y: R.Tensor((2, 4), \"float32\") = R.add(x, x)\n    return y\n"},
                                    dialects.all);
  ASSERT_FALSE(result.ok());
  EXPECT_TRUE(
      support::render(result.diagnostics()[0]).starts_with("m.py:3:8: the value is float32[2, 3], not float32[2, 4]"))
      << support::render(result.diagnostics()[0]);
}

}  // namespace
}  // namespace lathe::relax
