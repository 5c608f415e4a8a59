// Every primitive on random programs, in random order: what is accepted must mean the same to the interpreter.
#include <gtest/gtest.h>

#include "schedule/analysis/tree.h"
#include "schedule/testing/random_program.h"
#include "tir/script/dialect.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

struct Count {
  int accepted = 0, refused = 0;
};

class Walk {
 public:
  Walk(uint64_t seed, std::map<std::string, Count>& counts)
      : random_(seed),
        counts_(counts),
        original_(testing::random_program(random_)),
        schedule_(Schedule::create(original_).value_or_throw()) {}

  // Empty, or what went wrong.
  std::string run(int steps) {
    for (int i = 0; i < steps; ++i) {
      const std::string problem = step();
      if (!problem.empty()) return problem + "\n" + schedule_.trace().as_python();
    }
    return replay();
  }

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  std::string step() {
    Schedule attempt = schedule_;
    std::vector<BlockRV> blocks;
    std::vector<std::string> names;
    each_statement(attempt.function().body, [&](const Stmt& s) {
      const auto* block = s.as<Block>();
      if (block && block->name != "root") names.push_back(block->name);
    });
    for (const std::string& name : names)
      if (auto block = attempt.get_block(name); block.ok()) blocks.push_back(*block);
    if (blocks.empty()) return {};
    const BlockRV block = blocks[pick(blocks.size())];
    const std::vector<LoopRV> loops = attempt.get_loops(block).value_or_throw();
    const BlockRV other = blocks[pick(blocks.size())];
    const std::vector<LoopRV> others = attempt.get_loops(other).value_or_throw();
    if (loops.empty() || others.empty()) return {};
    const LoopRV loop = loops[pick(loops.size())], other_loop = others[pick(others.size())];
    const int64_t factor = 1 + static_cast<int64_t>(pick(5));

    std::string name;
    bool accepted = false;
    std::string refusal;
    const auto record = [&](const char* what, const auto& result) {
      name = what;
      accepted = result.ok();
      if (!accepted) refusal = result.diagnostics()[0].message;
    };
    switch (pick(48)) {
      case 38:
        record("read_at", attempt.read_at(loop, block, static_cast<int64_t>(pick(2)), "local"));
        break;
      case 39:
        record("write_at", attempt.write_at(loop, block, 0, "local"));
        break;
      case 40:
      case 41:
        record("cache_inplace", attempt.cache_inplace(block, 0, "local"));
        break;
      case 42: {
        static constexpr const char* maps[] = {"lambda i: (i // 2, i % 2)", "lambda i, j: (j, i)",
                                               "lambda i, j: (i * 13 + j,)", "lambda i, j, k: (k, i, j)",
                                               "lambda i, j, k: (i, j)"};
        const IndexMap map = parse_index_map(maps[pick(5)]).value_or_throw();
        if (pick(2))
          record("reindex_cache_read", attempt.reindex_cache_read(block, 0, "local", map));
        else
          record("reindex_cache_write", attempt.reindex_cache_write(block, 0, "local", map));
        break;
      }
      case 43:
        record("storage_align", attempt.storage_align(block, 0, static_cast<int64_t>(pick(3)) - 1, 1 + factor,
                                                      static_cast<int64_t>(pick(2))));
        break;
      case 44:
        record("unsafe_set_dtype", attempt.unsafe_set_dtype(block, 0, "int64"));
        break;
      case 45:
        record("decompose_padding", attempt.decompose_padding(block, loop));
        break;
      case 46:
      case 47: {
        std::vector<int64_t> padding;
        for (size_t i = attempt.get(block).value_or_throw()->iter_vars.size(); i > 0; --i)
          padding.push_back(static_cast<int64_t>(1 + pick(4)));
        record("pad_einsum", attempt.pad_einsum(block, padding));
        break;
      }
      case 21:
      case 22: {
        static constexpr const char* axes[] = {"blockIdx.x", "threadIdx.x", "threadIdx.y", "vthread"};
        record("bind", attempt.bind(loop, axes[pick(4)]));
        break;
      }
      case 23:
      case 24:
        record("merge", attempt.merge({loop, other_loop}));
        break;
      case 25: {
        std::vector<int64_t> order(attempt.get(block).value_or_throw()->iter_vars.size());
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random_);
        record("reorder_block_iter_var", attempt.reorder_block_iter_var(block, order));
        break;
      }
      case 26:
        record("blockize", attempt.blockize(loop, pick(2)));
        break;
      case 27:
      case 28: {
        RandomDecider decider(random_());
        const auto tile = attempt.sample_perfect_tile(decider, "walk", loop, static_cast<int64_t>(1 + pick(3)), factor);
        record("sample_perfect_tile", tile);
        if (tile) {
          std::vector<Factor> factors(tile->begin(), tile->end());
          if (auto parts = attempt.split(loop, factors); !parts) return {};
        }
        break;
      }
      case 20: {
        std::vector<int64_t> axes{0, 1, 2};
        axes.resize(1 + pick(3));
        std::shuffle(axes.begin(), axes.end(), random_);
        record("transform_layout", attempt.transform_layout(block, {.writes = pick(2) == 0}, permutation(axes)));
        break;
      }
      case 29:
      case 30: {
        static constexpr const char* maps[] = {"lambda i: (i // 2, i % 2)",
                                               "lambda i: (i % 3, i // 3)",
                                               "lambda i: (i * 2,)",
                                               "lambda i, j: (i * 13 + j,)",
                                               "lambda i, j: (j // 4, i, j % 4)",
                                               "lambda i, j, k: (i, k, j)",
                                               "lambda i, j, k: (i * 13 + j, k // 3, k % 3)"};
        const ir::Value pad = pick(2) ? ir::Value(int64_t{7}) : ir::Value();
        record("transform_layout", attempt.transform_layout(block, {.writes = pick(2) == 0},
                                                            parse_index_map(maps[pick(7)]).value_or_throw(), pad));
        break;
      }
      case 31: {
        const std::string text = pick(2) ? fmt::format("lambda i, j: (j // {0}, i, j % {0})", factor)
                                         : fmt::format("lambda i, j, k: (k // {0}, j, i, k % {0})", factor);
        record("transform_block_layout", attempt.transform_block_layout(block, parse_index_map(text).value_or_throw()));
        break;
      }
      case 32:
      case 33:
        record("reindex", attempt.reindex(block, {.writes = pick(2) == 0}));
        break;
      case 0:
        record("split", attempt.split(loop, {Factor(), factor}));
        break;
      case 1:
        record("split", attempt.split(loop, {factor, Factor(), int64_t{2}}));
        break;
      case 2: {
        std::vector<LoopRV> some;
        const size_t first = pick(loops.size());
        for (size_t i = first; i < std::min(loops.size(), first + 1 + pick(3)); ++i) some.push_back(loops[i]);
        record("fuse", attempt.fuse(some));
        break;
      }
      case 3:
      case 4: {
        std::vector<LoopRV> some = loops;
        std::shuffle(some.begin(), some.end(), random_);
        some.resize(1 + pick(some.size()));
        record("reorder", attempt.reorder(some));
        break;
      }
      case 5:
        record("loop_partition", attempt.loop_partition(loop, {factor, Factor()}));
        break;
      case 6:
        record("peel", attempt.peel(loop, factor));
        break;
      case 7:
        record("parallel", attempt.parallel(loop));
        break;
      case 8:
        record("vectorize", attempt.vectorize(loop));
        break;
      case 9:
        record("unroll", attempt.unroll(loop));
        break;
      case 10:
        record("compute_at", attempt.compute_at(block, other_loop, pick(2)));
        break;
      case 11:
      case 36:
      case 37:
        record("compute_at", attempt.compute_at(block, others[0], pick(2)));
        break;
      case 12:
      case 34:
      case 35:
        record("reverse_compute_at", attempt.reverse_compute_at(block, other_loop, pick(2)));
        break;
      case 13:
        record("compute_inline", attempt.compute_inline(block));
        break;
      case 14:
        record("reverse_compute_inline", attempt.reverse_compute_inline(block));
        break;
      case 15:
        record("cache_read", attempt.cache_read(block, static_cast<int64_t>(pick(2)), "local"));
        break;
      case 16:
        record("cache_write", attempt.cache_write(block, 0, "local"));
        break;
      case 17:
        record("decompose_reduction", attempt.decompose_reduction(block, loop));
        break;
      case 18:
        record("rfactor", attempt.rfactor(loop, static_cast<int64_t>(pick(2))));
        break;
      default:
        record("set_scope", attempt.set_scope(block, 0, "local"));
        break;
    }
    Count& count = counts_[name];
    (accepted ? count.accepted : count.refused)++;
    if (!accepted) {
      if (refusal.empty()) return name + " refuses without a reason";
      return {};
    }
    const ir::IRModule before = schedule_.mod();
    schedule_ = std::move(attempt);
    const std::string wrong = ids(schedule_.function());
    if (!wrong.empty()) return name + ": " + wrong;
    const std::string difference =
        tir::testing::difference(original_, schedule_.mod().find_as<PrimFunc>("main"), random_());
    // A program that was never right (an empty reduction that is read) proves nothing.
    if (difference.rfind("invalid", 0) == 0) return {};
    return difference.empty() ? "" : name + ": " + difference + "\n" + text(before) + text(schedule_.mod());
  }

  // The printed trace makes the same program of the original.
  std::string replay() const {
    const std::string text = schedule_.trace().as_python();
    const auto trace = parse_trace(text);
    if (!trace) return "trace: " + support::render(trace.diagnostics()) + text;
    Schedule again = Schedule::create(original_).value_or_throw();
    if (const auto applied = trace->apply(again); !applied) return support::render(applied.diagnostics()) + text;
    const auto difference = ir::first_difference(again.mod(), schedule_.mod());
    return difference ? "replayed: " + *difference + "\n" + text : "";
  }

  static std::string text(const ir::IRModule& module) {
    return tir::function_text(module.find_as<PrimFunc>("main")) + "\n";
  }

  // Every loop and block has its own number.
  static std::string ids(const PrimFunc& function) {
    std::set<Id> seen;
    std::string problem;
    each_statement(function.body, [&](const Stmt& s) {
      const Id id = s.as<For>() ? s.as<For>()->id : s.as<Block>() ? s.as<Block>()->id : ~Id{0};
      if (id == 0) problem = "a loop or block has no number";
      if (id != ~Id{0} && !seen.insert(id).second) problem = fmt::format("number {} is given twice", id);
    });
    return problem;
  }

  std::mt19937 random_;
  std::map<std::string, Count>& counts_;
  Function original_;
  Schedule schedule_;
};

TEST(primitives, keep_the_meaning_of_random_programs) {
  std::map<std::string, Count> counts;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::string problem;
    EXPECT_NO_THROW(problem = Walk(seed, counts).run(12)) << "seed " << seed;
    if (!problem.empty()) ADD_FAILURE() << "seed " << seed << "\n" << problem;
    if (HasFailure()) break;
  }
  for (const auto& [name, count] : counts) {
    fmt::print("{:24} accepted {:5}, refused {:5}\n", name, count.accepted, count.refused);
    EXPECT_GT(count.accepted, 0) << name;
  }
}

}  // namespace
}  // namespace lathe::schedule
