#include "lower/ahead/ask_for_weights.h"

#include <gtest/gtest.h>

#include "graph/rewrite_bindings.h"
#include "ir/visit.h"
#include "lower/testing/random_graph.h"
#include "lower/testing/same_results.h"
#include "ops/operators.h"
#include "relax/script/dialect.h"
#include "script/parse.h"
#include "script/testing/expected_text.h"
#include "tir/script/dialect.h"

namespace lathe::lower {
namespace {

using namespace relax;  // NOLINT: the subject of these tests
using testing::random_data;

target::Target machine(int64_t shared) {
  target::Target target = target::native_target();
  target.caches = {{.level = 1, .bytes = 1 << 15}, {.level = 2, .bytes = 1 << 20}};
  if (shared > 0) target.caches.push_back({.level = 3, .bytes = shared});
  return target;
}

// The module with constants in the place of the parameters of main that are called "w" and something.
ir::IRModule with_weights(ir::IRModule module) {
  std::mt19937_64 random(7);
  graph::change_functions(module, [&](const std::string&, const relax::Function& function) -> Result<relax::Function> {
    std::vector<Var> params;
    std::unordered_map<const ir::Node*, Expr> weights;
    for (const Var& param : function->params) {
      if (param->name[0] != 'w') {
        params.push_back(param);
        continue;
      }
      std::vector<int64_t> shape;
      for (const ir::Expr& extent : *as_tensor(param)->shape) shape.push_back(*ir::as_int(extent));
      weights[param.get()] = constant(random_data(std::move(shape), random));
    }
    std::vector<Binding> bindings = graph::all_bindings(function);
    for (Binding& binding : bindings)
      binding = ir::rewrite_post_order(binding, [&](ir::NodeRef n) -> ir::NodeRef {
        const auto weight = weights.find(n.get());
        return weight == weights.end() ? n : weight->second;
      });
    return graph::make_function(std::move(params), std::move(bindings), function->body.as<SeqExpr>()->body,
                                function->attrs);
  }).value_or_throw();
  return module;
}

// How many places ask for memory ahead.
int hints(const ir::IRModule& module) {
  int count = 0;
  for (const auto& [name, function] : module)
    ir::post_order(function, [&](const ir::NodeRef& n) {
      const auto* call = n.as<ir::Call>();
      count += call && call->op == &ir::intrinsic::prefetch;
    });
  return count;
}

TEST(ask_for_weights, makes_of_programs_what_its_text_expects) {
  const auto graph = script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  const ir::Pass pass = [](ir::IRModule module, const ir::PassContext& context) {
    return ask_for_weights(with_weights(std::move(module)), machine(1 << 25), context, 256);
  };
  const std::string unexpected = script::testing::check_cases(pass, {}, __FILE__, dialects);
  EXPECT_TRUE(unexpected.empty()) << unexpected;
}

// Products of `rows` by 32 by 32, one after the other, then the first `terms` elements of a row of the last result
// times as many rows of 32 by 512, of which only so many columns are summed.
ir::IRModule products(int64_t rows, int count, int64_t terms = 32, int64_t columns = 512) {
  std::string text = fmt::format(R"(
@I.ir_module
class Module:
    @T.prim_func
    def product(x: T.Buffer(({0}, 32), "float32"), w: T.Buffer((32, 32), "float32"), y: T.Buffer(({0}, 32), "float32")):
        for i, k, j in T.grid({0}, 32, 32):
            with T.block("y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    y[vi, vj] = T.float32(0)
                y[vi, vj] = y[vi, vj] + x[vi, vk] * w[vk, vj] * T.float32(0.25) + T.float32(0.125) * x[vi, vk]

    @T.prim_func
    def row(y: T.Buffer(({0}, 32), "float32"), w: T.Buffer((32, 512), "float32"), z: T.Buffer(({2},), "float32")):
        for k, j in T.grid({1}, {2}):
            with T.block("z"):
                vk, vj = T.axis.remap("RS", [k, j])
                with T.init():
                    z[vj] = T.float32(0)
                z[vj] = z[vj] + y[0, vk] * w[vk, vj]

    @R.function
    def main(x0: R.Tensor(({0}, 32), "float32"), w0: R.Tensor((32, 32), "float32"), w1: R.Tensor((32, 512), "float32")) -> R.Tensor(({2},), "float32"):
        cls = Module
        with R.dataflow():
)",
                                 rows, terms, columns);
  for (int i = 0; i < count; ++i)
    text +=
        fmt::format("            x{} = R.call_tir(cls.product, (x{}, w0), out_sinfo=R.Tensor(({}, 32), \"float32\"))\n",
                    i + 1, i, rows);
  text += fmt::format("            z = R.call_tir(cls.row, (x{}, w1), out_sinfo=R.Tensor(({},), \"float32\"))\n", count,
                      columns);
  text += "            R.output(z)\n        return z\n";
  const auto graph = script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  return with_weights(script::parse({"products", text}, dialects).value_or_throw());
}

TEST(ask_for_weights, keeps_what_programs_compute) {
  std::mt19937_64 random(11);
  for (const int64_t rows : {1, 7, 40})
    for (const int count : {1, 3}) {
      SCOPED_TRACE(fmt::format("{} rows, {} products", rows, count));
      const ir::IRModule before = products(rows, count);
      const ir::IRModule after = ask_for_weights(before, machine(1 << 25), {}, 256).value_or_throw();
      EXPECT_EQ(hints(after) > 0, rows > 7);
      testing::expect_same_results(before, after, {random_data({rows, 32}, random)});
    }
}

TEST(ask_for_weights, asks_for_what_the_shared_cache_keeps_and_not_across_more) {
  const auto asks = [](const ir::IRModule& module, int64_t shared, int64_t least = 256) {
    return hints(ask_for_weights(module, machine(shared), {}, least).value_or_throw()) > 0;
  };
  const ir::IRModule module = products(200, 1);
  EXPECT_TRUE(asks(module, 1 << 25));
  EXPECT_FALSE(asks(module, 0)) << "no shared cache";
  EXPECT_FALSE(asks(module, 1 << 16)) << "the product reads 52 KB, more than half of it";
  EXPECT_FALSE(asks(module, 1 << 25, 1 << 17)) << "64 KB of weights are too few";
  EXPECT_FALSE(asks(products(200, 1, 3), 1 << 25)) << "three rows of a table";
  EXPECT_TRUE(asks(products(200, 1, 32, 500), 1 << 25)) << "panels have lanes that nobody reads";
}

}  // namespace
}  // namespace lathe::lower
