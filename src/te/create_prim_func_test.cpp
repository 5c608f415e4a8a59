#include <gtest/gtest.h>

#include "ir/structural.h"
#include "ir/visit.h"
#include "te/codes.h"
#include "te/tensor.h"
#include "te/topi/elementwise.h"
#include "te/topi/matmul.h"

namespace lathe::te {
namespace create_prim_func_test {

using ir::DType;
using ir::int64;

std::vector<const tir::Block*> blocks_of(const tir::Function& f) {
  std::vector<const tir::Block*> blocks;
  ir::pre_order(f, [&](const ir::NodeRef& n) {
    if (const auto* block = n.as<tir::Block>(); block && block->name != "root") blocks.push_back(block);
    return true;
  });
  return blocks;
}

TEST(create_prim_func, gives_a_block_for_each_computed_tensor) {
  const Tensor a = placeholder({int64(4), int64(3)}, DType::float32(), "A");
  const Tensor b = topi::map(a, [](const Expr& x) { return x + x; }, "B");
  const Tensor c = topi::map(b, [](const Expr& x) { return x * x; }, "C");
  const tir::Function f = create_prim_func({a}, {c});
  EXPECT_EQ(f->params.size(), 2u);
  const auto blocks = blocks_of(f);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0]->name, "B");
  EXPECT_EQ(blocks[1]->name, "C");
  ASSERT_EQ(root_of(*f)->block->alloc_buffers.size(), 1u);
  EXPECT_EQ(root_of(*f)->block->alloc_buffers[0], b.buffer);
  EXPECT_FALSE(blocks[0]->init);
  ASSERT_EQ(blocks[0]->reads.size(), 1u);
  EXPECT_TRUE(ir::is_int(blocks[0]->reads[0]->region[0].extent, 1));
}

TEST(create_prim_func, gives_reductions_an_init_and_reduce_variables) {
  const Tensor a = placeholder({int64(4), int64(3)}, DType::float32(), "A");
  const Tensor b = placeholder({int64(3), int64(5)}, DType::float32(), "B");
  const Tensor c = topi::matmul(a, b, {int64(4), int64(5)}, {DType::float32(), DType::float32()});
  const tir::Function f = create_prim_func({a, b}, {c});
  const auto blocks = blocks_of(f);
  ASSERT_EQ(blocks.size(), 1u);
  ASSERT_EQ(blocks[0]->iter_vars.size(), 3u);
  EXPECT_EQ(blocks[0]->iter_vars[2]->type, ir::IterType::reduce);
  EXPECT_TRUE(blocks[0]->init);
  EXPECT_EQ(blocks[0]->reads.size(), 2u) << "the accumulator is not among the reads";
}

TEST(create_prim_func, makes_names_unique) {
  const Tensor a = placeholder({int64(4)}, DType::float32(), "x");
  const Tensor b = topi::map(a, [](const Expr& x) { return x + x; }, "x");
  const Tensor c = topi::map(b, [](const Expr& x) { return x + x; }, "x");
  const tir::Function f = create_prim_func({a}, {c});
  std::set<std::string> names;
  for (const auto& [var, buffer] : f->buffer_map) EXPECT_TRUE(names.insert(buffer->name).second) << buffer->name;
  EXPECT_TRUE(names.insert(root_of(*f)->block->alloc_buffers[0]->name).second);
  const auto blocks = blocks_of(f);
  EXPECT_NE(blocks[0]->name, blocks[1]->name);
}

TEST(create_prim_func, copies_an_output_that_is_an_input) {
  const Tensor a = placeholder({int64(4)}, DType::float32(), "x");
  const tir::Function f = create_prim_func({a}, {a, a});
  EXPECT_EQ(f->params.size(), 3u);
  EXPECT_EQ(blocks_of(f).size(), 2u);
}

TEST(create_prim_func, passes_symbols_that_no_shape_binds) {
  const Var n = ir::size_var("n"), m = ir::size_var("m");
  const Tensor a = placeholder({n}, DType::float32(), "x");
  const Tensor b = compute({n + m}, [&](const auto& i) { return a({ir::floormod(i[0], n)}); }, {a}, "y");
  const tir::Function f = create_prim_func({a}, {b});
  ASSERT_EQ(f->params.size(), 3u);
  EXPECT_EQ(f->params[2], m);
}

TEST(create_prim_func, refuses_a_reduction_inside_an_expression) {
  const Tensor a = placeholder({int64(4)}, DType::float32(), "x");
  const IterVar k = reduce_axis(int64(0), int64(4));
  try {
    compute({int64(1)}, [&](const auto&) { return sum(a({k->var}), {k}) + ir::constant(DType::float32(), 1); }, {a});
    FAIL();
  } catch (const support::DiagnosticError& error) {
    EXPECT_EQ(error.diagnostics[0].code, codes::nested_reduce);
  }
}

TEST(create_prim_func, refuses_outputs_that_reduce_over_different_axes) {
  const Tensor a = placeholder({int64(4)}, DType::float32(), "x");
  const IterVar k = reduce_axis(int64(0), int64(4)), l = reduce_axis(int64(0), int64(2));
  try {
    compute_all({}, [&](const auto&) { return std::vector{sum(a({k->var}), {k}), sum(a({l->var}), {l})}; }, {a});
    FAIL();
  } catch (const support::DiagnosticError& error) {
    EXPECT_EQ(error.diagnostics[0].code, codes::reduce_mismatch);
  }
}

TEST(create_prim_func, refuses_a_placeholder_that_is_no_input) {
  const Tensor a = placeholder({int64(4)}, DType::float32(), "x");
  const Tensor b = topi::map(a, [](const Expr& x) { return x + x; }, "y");
  try {
    create_prim_func({}, {b});
    FAIL();
  } catch (const support::DiagnosticError& error) {
    EXPECT_EQ(error.diagnostics[0].code, codes::not_an_input);
  }
}

}  // namespace create_prim_func_test
}  // namespace lathe::te
