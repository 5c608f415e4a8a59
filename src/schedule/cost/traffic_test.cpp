#include "schedule/cost/traffic.h"

#include <gtest/gtest.h>

#include <list>

#include "arith/analyzer.h"
#include "ir/match.h"
#include "schedule/testing/programs.h"
#include "tir/rewrite.h"

namespace lathe::schedule {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

// A cache of so many lines that drops the one that was not used for longest.
class Cache {
 public:
  explicit Cache(double bytes) : lines_(static_cast<size_t>(bytes) / 64) {}
  int64_t misses = 0;

  void access(const tir::BufferNode* buffer, int64_t byte) {
    const std::pair key(buffer, byte / 64);
    if (const auto it = at_.find(key); it != at_.end()) {
      order_.splice(order_.begin(), order_, it->second);
      return;
    }
    ++misses;
    order_.push_front(key);
    at_[key] = order_.begin();
    if (order_.size() <= lines_) return;
    at_.erase(order_.back());
    order_.pop_back();
  }

 private:
  using Key = std::pair<const tir::BufferNode*, int64_t>;
  size_t lines_;
  std::list<Key> order_;
  std::map<Key, std::list<Key>::iterator> at_;
};

// Runs the accesses, those of one loop in turn.
void run(std::span<const tir::BufferAccess> accesses, size_t depth, ir::VarMap& at, Cache& cache) {
  for (size_t first = 0, end = 0; first < accesses.size(); first = end) {
    const tir::BufferAccess& access = accesses[first];
    end = first + 1;
    if (access.loops.size() > depth) {
      const auto& loop = access.loops[depth];
      while (end < accesses.size() && accesses[end].loops.size() > depth && accesses[end].loops[depth] == loop) ++end;
      for (int64_t i = 0; i < *ir::as_int(loop->extent); ++i) {
        at[loop->loop_var] = ir::int64(i);
        run(accesses.subspan(first, end - first), depth + 1, at, cache);
      }
      continue;
    }
    if (access.in_init) continue;
    int64_t element = 0;
    for (size_t d = 0; d < access.indices.size(); ++d) {
      arith::Analyzer analyzer;
      const auto index = ir::as_int(analyzer.simplify(ir::substitute(access.indices[d], at)));
      ASSERT_TRUE(index);
      element = element * *ir::as_int(access.buffer->shape[d]) + *index;
    }
    cache.access(access.buffer.get(), element * access.buffer->dtype.bits / 8);
  }
}

double simulated(const PrimFunc& function, double cache_bytes) {
  Cache cache(cache_bytes);
  ir::VarMap at;
  run(tir::buffer_accesses(function.body), 0, at, cache);
  return 64.0 * static_cast<double>(cache.misses);
}

// The prediction is within a factor of the truth at every size of cache, and within a small one in the mean.
void expect_near(const Function& function, double factor, double mean) {
  const Traffic traffic = Traffic::of(function->body).value();
  double logarithms = 0;
  int count = 0;
  for (double bytes = 256; bytes <= 16384; bytes *= 2) {
    const double truth = simulated(*function, bytes), found = traffic.missed(bytes);
    if (traffic.touched() <= bytes) {
      EXPECT_EQ(found, 0) << "all of it fits " << bytes;
      EXPECT_LE(truth, traffic.touched()) << "but for what is brought once";
      continue;
    }
    EXPECT_LE(found, truth * factor) << "of a cache of " << bytes;
    EXPECT_GE(found, truth / factor) << "of a cache of " << bytes;
    logarithms += std::abs(std::log(found / truth));
    ++count;
  }
  if (count > 0) EXPECT_LE(std::exp(logarithms / count), mean);
}

TEST(traffic, of_a_product_in_several_orders) {
  for (const auto& order : std::vector<std::vector<std::string>>{{"i", "j", "k"}, {"k", "i", "j"}, {"j", "k", "i"}}) {
    Schedule schedule = Schedule::create(matmul(ir::int64(16), ir::int64(32), ir::int64(24))).value_or_throw();
    const BlockRV block = schedule.get_block("matmul").value_or_throw();
    const auto loops = schedule.get_loops(block).value_or_throw();
    std::vector<LoopRV> wanted;
    for (const std::string& name : order) wanted.push_back(loops[name == "i" ? 0 : name == "j" ? 1 : 2]);
    ASSERT_TRUE(schedule.reorder(wanted).ok());
    expect_near(schedule.mod().find_as<PrimFunc>("main"), 1.1, 1.05);
  }
}

TEST(traffic, of_a_product_in_tiles) {
  for (const int64_t tile : {4, 8}) {
    Schedule schedule = Schedule::create(matmul(ir::int64(16), ir::int64(32), ir::int64(24))).value_or_throw();
    const BlockRV block = schedule.get_block("matmul").value_or_throw();
    const auto loops = schedule.get_loops(block).value_or_throw();
    const auto i = schedule.split(loops[0], {std::nullopt, tile}).value_or_throw();
    const auto j = schedule.split(loops[1], {std::nullopt, 16}).value_or_throw();
    ASSERT_TRUE(schedule.reorder({i[0], j[0], loops[2], i[1], j[1]}).ok());
    expect_near(schedule.mod().find_as<PrimFunc>("main"), 2.5, 1.3);
  }
}

TEST(traffic, of_rows_windows_and_columns) {
  const int64_t n = 40;
  const auto program = [&](const auto& index) {
    Builder b;
    const Buffer from = b.input("A", {ir::int64(n), ir::int64(n)}), to = b.output("B", {ir::int64(n), ir::int64(n)});
    b.compute("copy", to, [&](const std::vector<Expr>& i) { return ir::load(from, index(i)); });
    return b.build();
  };
  const auto plus = [&](const Expr& i, int64_t by) { return ir::min(i + by, ir::int64(n - 1)); };
  expect_near(program([](const auto& i) { return std::vector{i[0], i[1]}; }), 1.25, 1.1);
  expect_near(program([](const auto& i) { return std::vector{i[1], i[0]}; }), 1.15, 1.1);
  expect_near(program([&](const auto& i) { return std::vector{plus(i[0], 3), plus(i[1], 5)}; }), 1.3, 1.2);
  expect_near(program([](const auto& i) {
                return std::vector{ir::floordiv(i[0], ir::int64(4)), ir::floormod(i[1], ir::int64(8))};
              }),
              1.3, 1.3);
}

TEST(traffic, of_blocks_one_after_the_other) { expect_near(softmax(ir::int64(8), ir::int64(96)), 2, 1.5); }

TEST(traffic, needs_constant_extents) {
  EXPECT_FALSE(Traffic::of(matmul(ir::size_var("n"), ir::int64(4), ir::int64(4))->body));
  EXPECT_EQ(Traffic::of(matmul(ir::int64(0), ir::int64(4), ir::int64(4))->body)->missed(0), 0);
}

}  // namespace
}  // namespace lathe::schedule
