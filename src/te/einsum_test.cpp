#include "te/einsum.h"

#include <gtest/gtest.h>

#include "te/codes.h"
#include "tir/analysis/flops.h"
#include "tir/interpret/interpret.h"

namespace lathe::te {
namespace einsum_test {

using ir::int64;
using tir::TensorBuffer;

Tensor given(std::vector<int64_t> extents, const std::string& name) {
  std::vector<Expr> shape;
  for (const int64_t extent : extents) shape.push_back(int64(extent));
  return placeholder(shape, ir::DType::int64(), name);
}

// The einsum of operands whose elements count up from 1.
TensorBuffer run(const std::string& subscripts, const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<Tensor> operands;
  std::vector<TensorBuffer> args;
  for (const auto& shape : shapes) {
    operands.push_back(given(shape, "x" + std::to_string(operands.size())));
    args.push_back(TensorBuffer::zeros(ir::DType::int64(), shape));
    for (int64_t i = 0; i < args.back().elements(); ++i) args.back().set_int(i, i + 1);
  }
  const Tensor made = einsum(subscripts, operands);
  std::vector<int64_t> shape;
  for (const Expr& extent : made.shape()) shape.push_back(ir::as_int(extent).value());
  args.push_back(TensorBuffer::uninitialised(ir::DType::int64(), shape));
  EXPECT_TRUE(tir::interpret(create_prim_func(operands, {made}), args).ok());
  return args.back();
}

TEST(einsum, multiplies_matrices) {
  const TensorBuffer product = run("ij,jk->ik", {{2, 3}, {3, 2}});
  EXPECT_EQ(product.int_at(0), 1 * 1 + 2 * 3 + 3 * 5);
  EXPECT_EQ(product.int_at(3), 4 * 2 + 5 * 4 + 6 * 6);
}

TEST(einsum, takes_diagonals_and_what_is_not_named) {
  EXPECT_EQ(run("ii", {{3, 3}}).int_at(0), 1 + 5 + 9);
  EXPECT_EQ(run("ii->i", {{3, 3}}).int_at(2), 9);
  EXPECT_EQ(run("...i->...", {{2, 2, 2}}).int_at(3), 7 + 8);
  EXPECT_EQ(run("...i,...i->...", {{2, 3}, {1, 3}}).int_at(1), 4 * 1 + 5 * 2 + 6 * 3) << "an extent of 1 meets any";
}

TEST(einsum, orders_several_operands_by_their_work) {
  const std::vector<Tensor> operands = {given({50, 50}, "a"), given({50, 50}, "b"), given({50, 50}, "c"),
                                        given({50, 1}, "v")};
  const tir::Function f = create_prim_func(operands, {einsum("ij,jk,kl,lm->im", operands)});
  EXPECT_LE(tir::estimate_flops(f->body), 2 * 3 * 50 * 50) << "from the right: three products with a vector";
  EXPECT_EQ(run("ij,jk,k->i", {{2, 2}, {2, 2}, {2}}).int_at(0), 1 * (1 + 4) + 2 * (3 + 8));
}

TEST(einsum, says_which_index_does_not_fit) {
  const auto wrong = [](const std::string& subscripts, const std::vector<Tensor>& operands) {
    try {
      einsum(subscripts, operands);
    } catch (const support::DiagnosticError& error) {
      EXPECT_EQ(error.diagnostics[0].code.name, codes::einsum.name);
      return error.diagnostics[0].message;
    }
    return std::string("accepted");
  };
  const Tensor a = given({2, 3}, "a"), b = given({4, 2}, "b");
  EXPECT_EQ(wrong("ij,jk->ik", {a, b}), "index 'j' has the extents 3 and 4");
  EXPECT_EQ(wrong("ij->k", {a}), "no operand has the output's index 'k'");
  EXPECT_EQ(wrong("ijk->i", {a}), "'ijk' has 3 indices, and 'a' has 2 dimensions");
  EXPECT_EQ(wrong("ij", {}), "there is nothing to multiply");
}

}  // namespace einsum_test
}  // namespace lathe::te
