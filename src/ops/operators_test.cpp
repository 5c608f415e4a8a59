#include "ops/operators.h"

#include <gtest/gtest.h>

#include "ops/attributes.h"

namespace lathe::ops {
namespace operators_test {

TEST(operators, stand_in_the_table_under_their_names) {
  // What relax defines: call_tir, call_tir_inplace, alloc_tensor, tensor_to_shape, assert_op, two of control, ten of
  // sequences and optionals, two of strings.
  size_t count = 19;
#define LATHE_OP(SYMBOL) \
  ++count;               \
  EXPECT_EQ(default_operators().find(SYMBOL.name), &SYMBOL);
#include "ops/ops.def"
#undef LATHE_OP
#define LATHE_COMPOSITE(SYMBOL) ++count;
#include "ops/composites/composites.def"
#undef LATHE_COMPOSITE
  EXPECT_EQ(default_operators().all().size(), count);
  EXPECT_EQ(default_operators().find("nn.unheard_of"), nullptr);
}

TEST(operators, say_what_they_take_and_mean) {
  for (const Operator* op : default_operators().all()) {
    EXPECT_EQ(op->inputs.empty(), op->name == "strings") << op->name;
    EXPECT_TRUE(op->infer) << op->name;
    if (op->name != "call_tir" && op->name != "call_tir_inplace" && op->name != "tensor_to_shape") {
      EXPECT_FALSE(op->reference.empty()) << op->name << " names no independent reference";
    }
    if (op->attributes) EXPECT_TRUE(op->attributes->defaults()) << op->name;
  }
}

TEST(attributes, are_made_from_named_values) {
  const relax::AttributesClass& pool = *max_pool.attributes;
  const auto made =
      pool.from_values({{"pool_size", ir::Value::List{2, 3}}, {"strides", 2}, {"ceil_mode", true}, {"layout", "NHWC"}});
  ASSERT_TRUE(made.ok());
  const auto& attributes = static_cast<const PoolAttributes&>(**made);
  EXPECT_EQ(attributes.pool_size, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(attributes.strides, (std::vector<int64_t>{2}));
  EXPECT_TRUE(attributes.ceil_mode);
  EXPECT_EQ(attributes.layout, "NHWC");
  const auto dtype = astype.attributes->from_values({{"dtype", "int8"}});
  ASSERT_TRUE(dtype.ok());
  EXPECT_EQ(static_cast<const AstypeAttributes&>(**dtype).dtype, ir::DType::int_(8));
  const auto none = sum.attributes->from_values({{"axis", ir::Value()}, {"keepdims", true}});
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(static_cast<const ReduceAttributes&>(**none).axis);
}

TEST(attributes, refuse_unknown_names_and_wrong_types) {
  for (const auto& values :
       std::vector<ir::Value::Map>{{{"alfa", 1.0}}, {{"alpha", "much"}}, {{"alpha", ir::DType::float32()}}}) {
    const auto made = leakyrelu.attributes->from_values(values);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.diagnostics()[0].code, relax::codes::wrong_attribute);
  }
}

TEST(attributes, read_packed_layouts) {
  EXPECT_EQ(packed_lanes("NK16n", "NK", "n"), 16);
  EXPECT_EQ(packed_lanes("OHWI8o", "OHWI", "o"), 8);
  for (const char* wrong : {"NKn", "NK0n", "NK-4n", "KN", "NK4", "NK4xn", ""})
    EXPECT_EQ(packed_lanes(wrong, "NK", "n"), 0) << wrong;
}

}  // namespace operators_test
}  // namespace lathe::ops
