#include "schedule/rules/tile/tile_registers.h"

#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

using testing::Builder;
using testing::last_remarks;
using testing::machine;
using testing::machines;
using testing::scheduled;

// A product with a bias and a relu; of rows that only the run knows where these are a variable.
Function product(const Expr& rows, int64_t columns, int64_t terms) {
  Builder b;
  const Buffer x = b.input("A", {rows, int64(terms)}), w = b.input("B", {int64(terms), int64(columns)}),
               bias = b.input("bias", {int64(columns)});
  const Buffer c = b.inner("C", {rows, int64(columns)}), d = b.output("D", {rows, int64(columns)});
  b.sum("product", c, {{"k", int64(terms)}},
        [&](const std::vector<Expr>& i) { return load(x, {i[0], i[2]}) * load(w, {i[2], i[1]}); });
  b.compute("relu", d,
            [&](const std::vector<Expr>& i) { return max(load(c, i) + load(bias, {i[1]}), testing::f32(0)); });
  std::vector<Var> symbols;
  if (const auto* v = rows.as<VarNode>()) symbols.push_back(Var(v));
  return b.build(symbols);
}

// Vectors of the buffer that the product of the only tile sums into.
int64_t sums(int64_t rows, int64_t columns, int64_t terms, const target::Target& target, int64_t chains) {
  AnalyticDecider model;
  TableDecider decider({{"gemm.chains", chains}, {"gemm.vectors", 2}, {"gemm.panels", 0}}, model);
  const Schedule done =
      schedule_function(Schedule::create(product(int64(rows), columns, terms)).value_or_throw(), target, decider, {});
  int64_t elements = 0;
  for (const Work& work : works(done.function())) {
    const auto* store = work.block().body.as<BufferStore>();
    const std::vector<Buffer> read = buffers_read(work.realize);
    const auto is_weights = [](const Buffer& buffer) { return buffer->name == "B"; };
    if (!store || std::none_of(read.begin(), read.end(), is_weights)) continue;
    elements = 1;
    for (const Expr& extent : store->buffer->shape) elements *= as_int(extent).value_or(0);
  }
  return elements / target.lanes(32);
}

TEST(tile_registers, sum_side_by_side_where_sums_are_few) {
  for (const auto& [bits, registers] : machines) {
    const target::Target target = machine(bits, registers);
    const int64_t columns = 2 * target.lanes(32);
    const auto vectors = [&, target = target](int64_t rows, int64_t terms, int64_t chains = 8) {
      return sums(rows, columns, terms, target, chains);
    };
    EXPECT_EQ(vectors(1, 64), 8) << "two vectors in four parts, " << bits << " bits";
    EXPECT_EQ(vectors(2, 64), 8) << "four in two";
    EXPECT_EQ(vectors(3, 64), 12) << "six in two";
    EXPECT_EQ(vectors(4, 64), 8) << "enough";
    EXPECT_EQ(vectors(1, 64, 1), 2) << "not wanted";
    EXPECT_EQ(vectors(1, 66), 4) << "two divides 66, four does not";
    EXPECT_EQ(vectors(1, 65), 2) << "nothing does";
    EXPECT_EQ(vectors(1, 4), 2) << "short";
    EXPECT_EQ(vectors(2, 600), 3 * 8) << "long sums are in parts besides, one after the other";
  }
}

// Whatever the tiles, and where their number is not known, values are the same.
TEST(tile_registers, sum_side_by_side_the_same_values) {
  for (const auto& [bits, registers] : machines) {
    const target::Target target = machine(bits, registers);
    for (const int64_t columns : {2, 19})
      for (const int64_t terms : {36, 600}) {
        for (const int64_t rows : {1, 3, 5})
          EXPECT_EQ(scheduled(product(int64(rows), columns, terms), target, 1e-4), "gemm")
              << rows << "x" << terms << "x" << columns << last_remarks;
        const Function open = product(ir::size_var("n"), columns, terms);
        EXPECT_EQ(testing::scheduled_once(open, target, 1e-4, {{{"n", 0}}, {{"n", 1}}, {{"n", 3}}, {{"n", 23}}}),
                  "gemm")
            << terms << "x" << columns << last_remarks;
      }
  }
}

}  // namespace
}  // namespace lathe::schedule
