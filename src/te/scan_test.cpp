#include "te/scan.h"

#include <gtest/gtest.h>

#include "te/codes.h"
#include "tir/interpret/interpret.h"

namespace lathe::te {
namespace scan_test {

using ir::int64;
using tir::TensorBuffer;

const std::vector<Expr> steps = {int64(6)};

Tensor from_one() {
  return compute({int64(1)}, [](const auto&) { return int64(1); }, {}, "first");
}

TEST(scan, computes_each_step_from_earlier_ones) {
  const Tensor state = placeholder(steps, ir::DType::int64(), "state");
  const Tensor update = compute(steps, [&](const auto& t) { return state({t[0] - 1}) * 2; }, {state}, "update");
  const std::vector<Tensor> made = scan({{from_one(), update, state}});
  ASSERT_EQ(made.size(), 1u);
  std::vector<TensorBuffer> args = {TensorBuffer::uninitialised(ir::DType::int64(), {6})};
  ASSERT_TRUE(tir::interpret(create_prim_func({}, made), args).ok());
  for (int64_t t = 0; t < 6; ++t) EXPECT_EQ(args[0].int_at(t), int64_t{1} << t);
}

TEST(scan, refuses_a_step_that_reads_itself_or_nothing) {
  const auto wrong = [](int64_t back) {
    const Tensor state = placeholder(steps, ir::DType::int64(), "state");
    const Tensor update = compute(steps, [&](const auto& t) { return state({t[0] - back}); }, {state}, "update");
    try {
      scan({{from_one(), update, state}});
    } catch (const support::DiagnosticError& error) {
      EXPECT_EQ(error.diagnostics[0].code.name, codes::scan.name);
      return error.diagnostics[0].message;
    }
    return std::string("accepted");
  };
  EXPECT_EQ(wrong(1), "accepted");
  EXPECT_EQ(wrong(0), "a step of 'scan' reads one that is not before it");
  EXPECT_EQ(wrong(2), "the first step that 'scan' computes reads one before the first of all");
}

}  // namespace scan_test
}  // namespace lathe::te
