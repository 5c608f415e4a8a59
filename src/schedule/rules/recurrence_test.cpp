#include <gtest/gtest.h>

#include <random>

#include "ops/build/recurrent.h"
#include "schedule/analysis/access.h"
#include "schedule/rules/rules.h"
#include "schedule/testing/programs.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

using testing::last_remarks;
using testing::machine;
using testing::machines;
using testing::scheduled;
using testing::scheduled_once;

// The steps of a recurrent cell; with `ragged`, backwards over sequences of lengths of their own.
Function recurrent_cell(ops::build::CellKind kind, const Expr& batch, int64_t hidden, bool ragged) {
  const int64_t gates = kind == ops::build::CellKind::rnn ? 1 : kind == ops::build::CellKind::gru ? 3 : 4;
  const Expr size = int64(hidden);
  const auto tanh_of = [](const Expr& x) { return ir::call(ir::intrinsic::tanh, x); };
  std::vector<relax::Var> params;
  const auto param = [&](const std::vector<Expr>& shape, DType dtype = DType::float32()) {
    params.push_back(relax::relax_var("p" + std::to_string(params.size()), relax::tensor_info(shape, dtype)));
    return params.back();
  };
  const ops::build::RecurrentCell how{.kind = kind, .functions = {tanh_of, tanh_of, tanh_of}, .reverse = ragged};
  ops::build::RecurrentOperands operands{.inputs = param({int64(3), batch, int64(gates * hidden)}),
                                         .weights = param({size, int64(gates * hidden)}),
                                         .hidden = param({batch, size}),
                                         .cell = {},
                                         .lengths = {},
                                         .peepholes = {},
                                         .hidden_bias = {},
                                         .knows_weights = hidden % 32 == 0};  // then they come in panels
  if (kind == ops::build::CellKind::lstm) operands.cell = param({batch, size});
  if (ragged) operands.lengths = param({batch}, DType::int_(32));
  relax::BlockBuilder b;
  b.begin_function("main", params);
  b.begin_dataflow();
  const relax::Expr all = b.emit_output(ops::build::recurrent(b, operands, how).all);
  b.end_block();
  b.end_function(all);
  return b.finish().find_as<PrimFunc>("recurrent");
}

TEST(recurrence, keeps_the_steps_in_order_and_the_products_in_registers) {
  using ops::build::CellKind;
  for (const auto& [bits, registers] : machines)
    for (const CellKind kind : {CellKind::rnn, CellKind::gru, CellKind::lstm})
      for (const auto& [batch, hidden] :
           std::vector<std::pair<int64_t, int64_t>>{{1, 16}, {3, 19}, {2, 48}, {1, 64}, {3, 32}}) {
        const Function cell = recurrent_cell(kind, int64(batch), hidden, hidden == 19);
        EXPECT_EQ(scheduled(cell, machine(bits, registers), 1e-4), "recurrence")
            << last_remarks << bits << " bits, " << batch << "x" << hidden;
        AnalyticDecider decider;
        const Schedule done =
            schedule_function(Schedule::create(cell).value_or_throw(), machine(bits, registers), decider, {});
        bool in_registers = false, in_vectors = false;
        ir::post_order(done.function().body, [&](const ir::NodeRef& n) {
          const auto* store = n.as<tir::BufferStore>();
          in_registers = in_registers || (store && store->buffer->scope == "register");
          const auto* loop = n.as<tir::For>();
          in_vectors = in_vectors || (loop && loop->kind == tir::ForKind::vectorized);
        });
        EXPECT_TRUE(in_registers && in_vectors) << bits << " bits, " << batch << "x" << hidden;
      }
}

// A batch of unknown size: whole tiles of rows, then four by four, then one by one.
TEST(recurrence, takes_any_number_of_rows) {
  using ops::build::CellKind;
  for (const auto& [bits, registers] : machines)
    for (const CellKind kind : {CellKind::gru, CellKind::lstm})
      for (const int64_t hidden : {19, 32}) {
        const Var batch = ir::var("batch");
        const Function cell = recurrent_cell(kind, batch, hidden, hidden == 19);
        std::vector<std::map<std::string, int64_t>> sizes;
        for (const int64_t rows : {0, 1, 3, 4, 6, 14, 31}) sizes.push_back({{"batch", rows}});
        EXPECT_EQ(scheduled_once(cell, machine(bits, registers), 1e-4, sizes), "recurrence")
            << last_remarks << bits << " bits, " << hidden;
      }
}

// The program of one operator's only kernel.
Function cumulated(const std::vector<Expr>& shape, DType dtype, const ops::build::Cumulation& how) {
  const relax::Var x = relax::relax_var("x", relax::tensor_info(shape, dtype));
  relax::BlockBuilder b;
  b.begin_function("main", {x});
  b.begin_dataflow();
  const relax::Expr all = b.emit_output(ops::build::cumulate(b, x, how));
  b.end_block();
  b.end_function(all);
  return b.finish().find_as<PrimFunc>("cumulate");
}

TEST(recurrence, takes_the_steps_of_vectors_or_rows_together) {
  std::mt19937_64 random(7);
  const auto any = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1)); };
  for (const auto& [bits, registers] : machines)
    for (int i = 0; i < 24; ++i) {
      const ops::build::Cumulation how{.product = any(3) == 0, .exclusive = any(1) == 1, .reverse = any(1) == 1};
      const bool has_lanes = any(1) == 1, is_symbolic = any(2) == 0;
      const Var n = ir::var("n"), outer = ir::var("outer"), inner = ir::var("inner");
      const std::map<std::string, int64_t> sizes{
          {"outer", any(has_lanes ? 3 : 40)}, {"n", any(20)}, {"inner", has_lanes ? any(150) : 1}};
      std::vector<Expr> shape;
      for (const Var& v : {outer, n, inner})
        shape.push_back(is_symbolic && !(v == inner && !has_lanes) ? Expr(v) : int64(sizes.at(v->name)));
      const Function f = cumulated(shape, any(3) == 0 ? DType::int64() : DType::float32(), how);
      EXPECT_EQ(scheduled(f, machine(bits, registers), 0, is_symbolic ? sizes : std::map<std::string, int64_t>{}),
                "recurrence")
          << last_remarks << bits << " bits, sample " << i;
    }
}

// How often a loop of this kind is in the program, its extent a constant of so many at least.
int loops_of_kind(const PrimFunc& f, tir::ForKind kind, int64_t least) {
  int count = 0;
  ir::post_order(f.body, [&](const ir::NodeRef& n) {
    const auto* loop = n.as<tir::For>();
    count += loop && loop->kind == kind && ir::as_int(loop->extent).value_or(0) >= least ? 1 : 0;
  });
  return count;
}

TEST(recurrence, goes_down_columns_in_vectors) {
  AnalyticDecider decider;
  const Function f = cumulated({int64(2), int64(300), int64(640)}, DType::float32(), {});
  const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), machine(512, 32), decider, {});
  // Four vectors of each step, two of these at a time, which threads share, and of the rows that it starts from.
  EXPECT_EQ(loops_of_kind(done.function(), tir::ForKind::vectorized, 64), 2);
  EXPECT_EQ(loops_of_kind(done.function(), tir::ForKind::parallel, 10), 1);
}

}  // namespace
}  // namespace lathe::schedule
