// Nodes made from the values of their fields, as other languages make them.
#include <gtest/gtest.h>

#include "ir/build.h"

namespace lathe::ir {
namespace {

template <class T>
NodeRef construct(std::vector<Value> fields) {
  return node_class_of<T>().construct(fields);
}

template <class T>
std::string refusal_of(std::vector<Value> fields) {
  try {
    construct<T>(std::move(fields));
  } catch (const support::DiagnosticError& error) {
    return error.diagnostics[0].message;
  }
  return "";
}

TEST(Construct, gives_what_make_gives) {
  const Var x = var("x");
  const NodeRef sum = construct<Add>({Value(x), Value(1)});
  EXPECT_TRUE(structural_equal(sum, make<Add>(Expr(x), int64(1))));
  EXPECT_EQ(sum.as<Add>()->dtype, DType::int64());
  const NodeRef named = construct<VarNode>({Value("n"), Value("int32"), Value(true)});
  EXPECT_EQ(named.as<VarNode>()->dtype, DType::int32());
  EXPECT_TRUE(named.as<VarNode>()->is_size);
  const NodeRef call = construct<Call>({Value("float32"), Value("exp"), Value(Value::List{Value(0.5)})});
  EXPECT_EQ(call.as<Call>()->op, &intrinsic::exp);
}

TEST(Construct, field_values_give_the_node_back) {
  const Buffer a = buffer("A", {int64(4), int64(8)}, DType::float32());
  const NodeRef load = ir::load(a, {int64(1), int64(2)});
  const NodeClass& kind = load->node_class();
  std::vector<Value> fields;
  for (size_t i = 0; i < kind.field_names.size(); ++i) fields.push_back(kind.field_value(*load, i));
  EXPECT_EQ(kind.field_names.size(), 3u);
  EXPECT_EQ(kind.field_names[0], "buffer");
  EXPECT_TRUE(structural_equal(kind.construct(fields), load));
}

TEST(Construct, refuses_what_a_field_cannot_hold) {
  const Var x = var("x"), y = var("y", DType::float32());
  EXPECT_EQ(refusal_of<Add>({Value(x)}), "Add: 'b' takes an expression, not nothing");
  EXPECT_EQ(refusal_of<Add>({Value(x), Value(Value::List{})}), "Add: 'b' takes an expression, not a list");
  EXPECT_EQ(refusal_of<Add>({Value(x), Value(y)}), "Add of int64 and float32");
  EXPECT_EQ(refusal_of<VarNode>({Value(3)}), "Var: 'name' takes a string, not 3");
  EXPECT_EQ(refusal_of<Let>({Value(int64(1)), Value(x), Value(x)}), "Let: 'var' takes a Var, not a IntImm");
  EXPECT_EQ(refusal_of<Call>({Value("float32"), Value("no_such"), Value(Value::List{})}),
            "Call: 'op' takes the name of a row that exists, not 'no_such'");
  EXPECT_EQ(refusal_of<Call>({Value("float32"), Value("exp"), Value(Value::List{})}), "exp takes 1 arguments, not 0");
  EXPECT_EQ(refusal_of<IntImm>({Value("float32"), Value(1)}), "IntImm of float32, which is no integer type");
  EXPECT_EQ(refusal_of<Not>({Value(x)}), "Not of int64, which is no bool");
  EXPECT_EQ(refusal_of<Mul>({Value("text"), Value("text")}), "Mul of handle, which is no number");
  EXPECT_EQ(refusal_of<Ramp>({Value(x), Value(1), Value(0)}), "Ramp of 0 lanes; there are 1 to 65535");
  EXPECT_EQ(refusal_of<Shuffle>({Value(Value::List{}), Value(Value::List{})}),
            "Shuffle takes at least one vector and at most 65535 indices");
}

TEST(Construct, a_refusal_has_a_code) {
  try {
    construct<IntImm>({Value("int32"), Value("four")});
    FAIL() << "accepted";
  } catch (const support::DiagnosticError& error) {
    EXPECT_EQ(error.diagnostics[0].code.name, "ir-field");
  }
}

TEST(Construct, depth_is_bounded) {
  NodeRef deep = boolean(true);
  const auto deepen = [&] {
    for (uint32_t i = 0; i <= max_depth; ++i) deep = construct<Not>({Value(deep)});
  };
  EXPECT_THROW(deepen(), support::DiagnosticError);
}

}  // namespace
}  // namespace lathe::ir
