#include "relax/verify.h"

#include <gtest/gtest.h>

#include "relax/block_builder.h"
#include "relax/call_tir.h"
#include "relax/infer.h"
#include "te/topi/elementwise.h"

namespace lathe::relax {
namespace verify_test {

const Operator twice{
    .name = "twice",
    .inputs = {{"x"}},
    .infer = same_type_as_input(DTypeSet::numeric),
    .meaning = TeExpression([](const LowerContext& c) {
      return std::vector{te::topi::map(c.tensor(0), [](const ir::Expr& x) { return x + x; }, "twice")};
    }),
};

Var tensor_var(const std::string& name, Shape shape, bool is_dataflow = false) {
  return relax_var(name, tensor_info(std::move(shape), DType::float32()), is_dataflow);
}

Expr call_of(Expr x) { return make_call(twice, {std::move(x)}).value_or_throw(); }

// The codes found in a function of the bindings.
std::vector<std::string> found(std::vector<Var> params, std::vector<BindingBlock> blocks, Expr result) {
  ir::IRModule module;
  StructInfo info = result->struct_info;
  module.set("main",
             make<FunctionNode>(std::move(params), Expr(make<SeqExpr>(std::move(blocks), std::move(result))), info));
  std::vector<std::string> codes;
  for (const support::Diagnostic& d : verify(module)) codes.emplace_back(d.code.name);
  return codes;
}
BindingBlock block(std::vector<Binding> bindings, bool is_dataflow = false) {
  return make<BindingBlockNode>(std::move(bindings), is_dataflow);
}
Binding bind(const Var& var, Expr value) { return make<VarBinding>(std::move(value), var); }
using Codes = std::vector<std::string>;

TEST(verify, accepts_well_formed_functions) {
  const ir::Var n = ir::size_var("n");
  const Var x = tensor_var("x", {n}), y = tensor_var("y", {n}, true), z = tensor_var("z", {n});
  EXPECT_EQ(found({x}, {block({bind(y, call_of(x)), bind(z, call_of(y))}, true)}, z), Codes{});
}

TEST(verify, finds_operands_that_are_not_leaves) {
  const Var x = tensor_var("x", {ir::int64(2)}), y = tensor_var("y", {ir::int64(2)});
  EXPECT_EQ(found({x}, {block({bind(y, call_of(call_of(x)))})}, y), Codes{"relax-not-normal-form"});
  const Expr inner = with_struct_info(make<SeqExpr>(std::vector<BindingBlock>{}, Expr(x)), x->struct_info);
  EXPECT_EQ(found({x}, {block({bind(y, inner)})}, y), Codes{"relax-not-normal-form"});
}

TEST(verify, finds_uses_before_definitions) {
  const Var x = tensor_var("x", {ir::int64(2)}), y = tensor_var("y", {ir::int64(2)}),
            z = tensor_var("z", {ir::int64(2)});
  EXPECT_EQ(found({x}, {block({bind(y, call_of(z)), bind(z, call_of(x))})}, y), Codes{"relax-undefined-variable"});
  EXPECT_EQ(found({x}, {block({bind(y, call_of(x)), bind(y, call_of(x))})}, y), Codes{"relax-defined-twice"});
}

TEST(verify, keeps_dataflow_variables_in_their_block) {
  const Var x = tensor_var("x", {ir::int64(2)}), y = tensor_var("y", {ir::int64(2)}, true),
            z = tensor_var("z", {ir::int64(2)});
  EXPECT_EQ(found({x}, {block({bind(y, call_of(x))}, true), block({bind(z, call_of(y))})}, z),
            Codes{"relax-dataflow-escape"});
  EXPECT_EQ(found({x}, {block({bind(y, call_of(x)), bind(z, call_of(y))})}, z), Codes{"relax-dataflow-escape"});
}

TEST(verify, checks_struct_info_against_the_rules) {
  const Var x = tensor_var("x", {ir::int64(2)}), y = tensor_var("y", {ir::int64(2)});
  EXPECT_EQ(found({x}, {block({bind(y, make<Call>(op_ref(twice), std::vector<Expr>{x}))})}, y),
            Codes{"relax-missing-struct-info"});
  const Expr wrong_info = with_struct_info(call_of(x), tensor_info({int64_t{3}}, DType::float32()));
  EXPECT_EQ(found({x}, {block({bind(y, wrong_info)})}, y), Codes{"relax-struct-info-differs"});
}

TEST(verify, finds_symbols_and_functions_nobody_defines) {
  const ir::Var n = ir::size_var("n"), m = ir::size_var("m");
  const Var x = tensor_var("x", {n}), y = tensor_var("y", {m});
  const Codes codes = found({x}, {block({make<MatchCast>(Expr(x), tensor_info(Shape{m}, DType::float32()), y)})}, y);
  EXPECT_EQ(codes, Codes{}) << "a match_cast defines";
  EXPECT_EQ(found({tensor_var("p", {n + m})}, {}, x),
            (Codes{"relax-undefined-symbol", "relax-undefined-symbol", "relax-undefined-variable"}));
  const Var z = tensor_var("z", {n});
  const Expr unknown = call_tir("nobody", {x}, {z->struct_info}).value_or_throw();
  EXPECT_EQ(found({x}, {block({bind(z, unknown)})}, z), Codes{"relax-undefined-function"});
}

}  // namespace verify_test
}  // namespace lathe::relax
