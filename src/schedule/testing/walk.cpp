#include "schedule/testing/walk.h"

#include "ir/function.h"
#include "schedule/analysis/tree.h"
#include "schedule/codes.h"
#include "schedule/testing/random_program.h"
#include "schedule/testing/truth.h"
#include "script/parse.h"
#include "tir/script/dialect.h"
#include "tir/testing/differential.h"
#include "tir/verify.h"

namespace lathe::schedule::testing {

namespace {

using support::Diagnostics;

// The primitives, each under the name of its tally.
constexpr const char* names[] = {"split",
                                 "fuse",
                                 "reorder",
                                 "merge",
                                 "join",
                                 "loop_partition",
                                 "peel",
                                 "strip_mine",
                                 "add_unit_loop",
                                 "parallel",
                                 "vectorize",
                                 "unroll",
                                 "bind",
                                 "compute_at",
                                 "reverse_compute_at",
                                 "compute_inline",
                                 "reverse_compute_inline",
                                 "cache_read",
                                 "cache_write",
                                 "read_at",
                                 "write_at",
                                 "prefetch",
                                 "cache_inplace",
                                 "reindex",
                                 "reindex_cache_read",
                                 "reindex_cache_write",
                                 "transform_layout",
                                 "transform_block_layout",
                                 "set_scope",
                                 "storage_align",
                                 "unsafe_set_dtype",
                                 "set_axis_separator",
                                 "cache_index",
                                 "rolling_buffer",
                                 "annotate_buffer_access",
                                 "enter_postproc",
                                 "reorder_block_iter_var",
                                 "blockize",
                                 "blockize_blocks",
                                 "tensorize",
                                 "sample_compute_location",
                                 "decompose_padding",
                                 "split_padding",
                                 "pad_einsum",
                                 "decompose_reduction",
                                 "fuse_reduction_epilogue",
                                 "rfactor",
                                 "sample_perfect_tile"};

// A primitive with its arguments, to run on copies of one schedule.
struct Attempt {
  std::string name;
  std::function<Diagnostics(Schedule&)> run;  // empty where it was accepted
  std::optional<LoopRV> concurrent;           // the loop whose iterations it lets run at once
  std::optional<BlockRV> moved;               // the block whose instances run elsewhere, each as often as before
};

template <class T>
Diagnostics refusal_of(const Result<T>& result) {
  return result.ok() ? Diagnostics{} : result.diagnostics();
}

// Intrinsics for what the random programs compute, "scale_4" and the like, over one loop of the extents they have. Each
// is its own implementation.
std::shared_ptr<const Context> row_intrins() {
  static const std::shared_ptr<const Context> made = [] {
    const script::Dialect* const dialects[] = {&tir::script_dialect()};
    const std::map<std::string, std::string> rows{{"scale", "B[vi] = X[vi] * 3"},
                                                  {"differ", "B[vi] = X[vi] - Y[vi]"},
                                                  {"join", "B[vi] = X[vi] * 2 + Y[vi]"},
                                                  {"twice", "B[vi] = X[vi] * 2 + X[vi]"},
                                                  {"copy", "B[vi] = X[vi]"}};
    auto context = std::make_shared<Context>();
    for (const auto& [name, store] : rows)
      for (int n = 1; n < 14; ++n) {
        const bool two = store.find('Y') != std::string::npos;
        const std::string text = fmt::format(
            "@T.prim_func\ndef main(X: T.Buffer(({0},), \"int32\"),{1} B: T.Buffer(({0},), \"int32\")):\n"
            "    for i in range({0}):\n        with T.block(\"row\"):\n"
            "            vi = T.axis.spatial({0}, i)\n            {2}\n",
            n, two ? fmt::format(" Y: T.Buffer(({},), \"int32\"),", n) : "", store);
        const auto f = ir::cast<PrimFunc>(script::parse_function({"<row>", text}, dialects).value_or_throw());
        context->add(fmt::format("{}_{}", name, n), {f, f}).value_or_throw();
      }
    return context;
  }();
  return made;
}

class Walk {
 public:
  Walk(uint64_t seed, Tallies& tallies, const WalkOptions& options)
      : random_(seed),
        tallies_(tallies),
        options_(options),
        start_(program()),
        schedule_(Schedule::create(start_.function, "main", {.context = row_intrins()}).value_or_throw()) {}

  std::string run() {
    for (int i = 0; i < options_.steps; ++i) {
      const std::string problem = step();
      if (!problem.empty()) return problem + "\n" + schedule_.trace().as_python();
    }
    if (const std::string problem = hide(); !problem.empty()) return problem;
    return replay();
  }

 private:
  // Last, because what is proved after it is on the caller's word: the program itself is the same.
  std::string hide() {
    auto c = choice();
    if (!c) return {};
    Tally& tally = tallies_["unsafe_hide_buffer_access"];
    ++tally.tried;
    const bool hidden = c->schedule.unsafe_hide_buffer_access(c->block, pick(2) ? "read" : "write", {0}).ok();
    ++(hidden ? tally.accepted : tally.cannot_be);
    if (!hidden) return {};
    schedule_ = std::move(c->schedule);
    const std::string found = difference(schedule_.mod().find_as<PrimFunc>("main"), reordered_);
    return found.empty() || found.rfind("invalid", 0) == 0 ? "" : "unsafe_hide_buffer_access: " + found;
  }

  // Every second time a program that the primitive accepted least often is for.
  RandomNests program() {
    struct Wish {
      std::string_view primitive, nest, block;
    };
    static constexpr Wish wishes[] = {{"cache_inplace", "in_place", ""},
                                      {"rolling_buffer", "windows", ""},
                                      {"decompose_padding", "", "padding"},
                                      {"split_padding", "", "padding"},
                                      {"rfactor", "product", "reduction"},
                                      {"decompose_reduction", "product", ""},
                                      {"fuse_reduction_epilogue", "epilogue", ""},
                                      {"pad_einsum", "product", ""},
                                      {"reverse_compute_inline", "chain", ""},
                                      {"compute_inline", "windows", ""},
                                      {"compute_at", "windows", "window"},
                                      {"reverse_compute_at", "product", ""},
                                      {"merge", "chain", ""},
                                      {"join", "chain", ""},
                                      {"prefetch", "product", ""},
                                      {"reindex_cache_read", "windows", ""},
                                      {"reindex_cache_write", "chain", ""},
                                      {"transform_layout", "chain", ""},
                                      {"tensorize", "", "window"},
                                      {"cache_index", "product", "window"},
                                      {"set_axis_separator", "chain", ""},
                                      {"sample_compute_location", "windows", ""}};
    const std::string least = least_accepted();
    const auto wish =
        std::find_if(std::begin(wishes), std::end(wishes), [&](const Wish& w) { return w.primitive == least; });
    const bool wished = pick(2) == 0 && wish != std::end(wishes);
    if (wished ? !wish->nest.empty() && (wish->block.empty() || pick(2)) : pick(2) == 0)
      return random_nests(random_, wished ? wish->nest : std::string_view());
    RandomProgramOptions options{.reads_everything = true, .element = DType::int_(32), .wished = {}};
    if (wished) options.wished = wish->block;
    if (pick(5) == 0) options.element = DType::float32();
    return {random_program(random_, options), {{}}, options.element};
  }

  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  int64_t number(size_t n) { return static_cast<int64_t>(pick(n)); }

  // What the attempts choose from, as handles of one copy of the schedule.
  struct Choice {
    Schedule schedule;
    BlockRV block, other;
    std::vector<LoopRV> loops, others;
    LoopRV loop, other_loop;
  };

  std::optional<Choice> choice() {
    Choice c{schedule_, {}, {}, {}, {}, {}, {}};
    std::vector<BlockRV> blocks;
    std::vector<std::string> names;
    each_statement(c.schedule.function().body, [&](const Stmt& s) {
      const auto* block = s.as<Block>();
      if (block && block->name != "root") names.push_back(block->name);
    });
    for (const std::string& name : names)
      if (auto block = c.schedule.get_block(name); block.ok()) blocks.push_back(*block);
    if (blocks.empty()) return std::nullopt;
    c.block = blocks[pick(blocks.size())];
    // Mostly a neighbour: what blocks that do not meet may do is soon said.
    c.other = blocks[pick(blocks.size())];
    c.loops = c.schedule.get_loops(c.block).value_or_throw();
    c.others = c.schedule.get_loops(c.other).value_or_throw();
    if (c.loops.empty() || c.others.empty()) return std::nullopt;
    c.loop = c.loops[pick(c.loops.size())];
    c.other_loop = c.others[pick(c.others.size())];
    return c;
  }

  std::vector<BlockRV> neighbours(Choice& c, bool consumers) {
    auto found = consumers ? c.schedule.get_consumers(c.block) : c.schedule.get_producers(c.block);
    return found ? *found : std::vector<BlockRV>{};
  }

  // None (who can is to be found), the block alone, or the block and another.
  static std::vector<BlockRV> consumers_of(const Choice& c, size_t count) {
    if (count == 0) return {};
    return count == 1 ? std::vector<BlockRV>{c.block} : std::vector<BlockRV>{c.block, c.other};
  }

  template <class Call>
  static std::function<Diagnostics(Schedule&)> calling(Call call) {
    return [call](Schedule& s) { return refusal_of(call(s)); };
  }

  Attempt attempt(const std::string& name, Choice& c) {
    const BlockRV block = c.block;
    const LoopRV loop = c.loop;
    const int64_t factor = 1 + number(5);
    const auto made = [&](auto call) { return Attempt{name, calling(call), {}, {}}; };
    const auto at_once = [&](auto call) { return Attempt{name, calling(call), loop, {}}; };
    if (name == "split") {
      std::vector<Factor> factors{Factor(), factor};
      if (pick(2)) factors = {factor, Factor(), int64_t{2}};
      // Without a predicate only where the factors divide: else that it does no harm would be our word.
      const int64_t product = factor * (factors.size() == 3 ? 2 : 1);
      const bool bare =
          pick(4) == 0 && as_int(c.schedule.get(loop).value_or_throw()->extent).value_or(1) % product == 0;
      const bool units = pick(2);
      return made([=](Schedule& s) { return s.split(loop, factors, bare, units); });
    }
    if (name == "fuse") {
      std::vector<LoopRV> some;
      const size_t first = pick(c.loops.size());
      for (size_t i = first; i < std::min(c.loops.size(), first + 1 + pick(3)); ++i) some.push_back(c.loops[i]);
      const bool units = pick(2);
      return made([=](Schedule& s) { return s.fuse(some, units); });
    }
    if (name == "reorder") {
      std::vector<LoopRV> some = c.loops;
      std::shuffle(some.begin(), some.end(), random_);
      some.resize(std::min(some.size(), 2 + pick(3)));
      return made([=](Schedule& s) { return s.reorder(some); });
    }
    if (name == "merge" || name == "join") {
      const auto together = [joins = name == "join"](Schedule& s, const std::vector<LoopRV>& loops) {
        return joins ? s.join(loops) : s.merge(loops);
      };
      const LoopRV next = c.other_loop;
      // Loops at the same depth of neighbours fit more often.
      const std::vector<BlockRV> after = neighbours(c, true);
      if (!after.empty() && pick(3)) {
        const std::vector<LoopRV> theirs = c.schedule.get_loops(after[0]).value_or_throw();
        const size_t depth = pick(c.loops.size());
        if (depth < theirs.size()) {
          const LoopRV mine = c.loops[depth], their = theirs[depth];
          return made([=](Schedule& s) { return together(s, {mine, their}); });
        }
      }
      return made([=](Schedule& s) { return together(s, {loop, next}); });
    }
    if (name == "loop_partition") {
      const bool units = pick(2);
      return made([=](Schedule& s) { return s.loop_partition(loop, {factor, Factor()}, units); });
    }
    if (name == "peel") return made([=](Schedule& s) { return s.peel(loop, factor); });
    if (name == "strip_mine") return made([=](Schedule& s) { return s.strip_mine(loop, factor); });
    if (name == "add_unit_loop" && pick(2)) return made([=](Schedule& s) { return s.add_unit_loop(loop); });
    if (name == "add_unit_loop") return made([=](Schedule& s) { return s.add_unit_loop(block); });
    if (name == "parallel") return at_once([=](Schedule& s) { return s.parallel(loop); });
    if (name == "vectorize") return at_once([=](Schedule& s) { return s.vectorize(loop); });
    if (name == "unroll") return made([=](Schedule& s) { return s.unroll(loop); });
    if (name == "bind") {
      static constexpr const char* axes[] = {"blockIdx.x", "threadIdx.x", "threadIdx.y", "vthread"};
      const std::string axis = axes[pick(4)];
      return at_once([=](Schedule& s) { return s.bind(loop, axis); });
    }
    if (name == "compute_at" || name == "reverse_compute_at") {
      const bool reversed = name == "reverse_compute_at", keep = pick(2);
      const int64_t index = pick(3) == 0 ? number(3) : -1 - number(2);
      LoopRV at = c.other_loop;
      const std::vector<BlockRV> near = neighbours(c, !reversed);
      if (!near.empty() && pick(4)) {
        const std::vector<LoopRV> theirs = c.schedule.get_loops(near[pick(near.size())]).value_or_throw();
        if (!theirs.empty()) at = theirs[pick(theirs.size())];
      }
      if (reversed)
        return {name, calling([=](Schedule& s) { return s.reverse_compute_at(block, at, keep, index); }), {}, block};
      return made([=](Schedule& s) { return s.compute_at(block, at, keep, index); });
    }
    if (name == "compute_inline") return made([=](Schedule& s) { return s.compute_inline(block); });
    if (name == "reverse_compute_inline") return made([=](Schedule& s) { return s.reverse_compute_inline(block); });
    if (name == "cache_read") {
      const int64_t which = number(2);
      const std::vector<BlockRV> consumers = consumers_of(c, pick(3));
      return made([=](Schedule& s) { return s.cache_read(block, which, "local", consumers); });
    }
    if (name == "cache_write") {
      const std::vector<BlockRV> near = neighbours(c, true);
      const std::vector<BlockRV> consumers = near.empty() || pick(2) ? std::vector<BlockRV>{} : near;
      return made([=](Schedule& s) { return s.cache_write(block, 0, "local", consumers); });
    }
    if (name == "read_at") {
      const int64_t which = number(2);
      return made([=](Schedule& s) { return s.read_at(loop, block, which, "local"); });
    }
    if (name == "prefetch") {
      const int64_t which = number(2);
      const LoopRV at = c.other_loop;
      return made([=](Schedule& s) { return s.prefetch(block, which, loop, at); });
    }
    if (name == "write_at") return made([=](Schedule& s) { return s.write_at(loop, block, 0, "local"); });
    if (name == "cache_inplace") return made([=](Schedule& s) { return s.cache_inplace(block, 0, "local"); });
    if (name == "reindex") {
      const BufferIndex which{.writes = pick(2) == 0};
      return made([=](Schedule& s) { return s.reindex(block, which); });
    }
    const size_t axes = c.schedule.get(block).value_or_throw()->iter_vars.size();
    if (name == "reindex_cache_read" || name == "reindex_cache_write") {
      static constexpr const char* maps[] = {
          "lambda i: (i // 2, i % 2)", "lambda i, j: (j, i)", "lambda i, j: (i * 13 + j,)", "lambda i, j, k: (k, i, j)",
          "lambda i, j, k: (i, j)",    "lambda i: (i,)",      "lambda i, j: (i,)"};
      const IndexMap map = parse_index_map(maps[pick(7)]).value_or_throw();
      if (name == "reindex_cache_read")
        return made([=](Schedule& s) { return s.reindex_cache_read(block, 0, "local", map); });
      return made([=](Schedule& s) { return s.reindex_cache_write(block, 0, "local", map); });
    }
    if (name == "transform_layout") {
      static constexpr const char* maps[] = {"lambda i: (i // 2, i % 2)", "lambda i: (i % 3, i // 3)",
                                             "lambda i: (i * 2,)",        "lambda i, j: (i * 13 + j,)",
                                             "lambda i, j: (j, i)",       "lambda i, j: (j // 4, i, j % 4)",
                                             "lambda i, j, k: (i, k, j)", "lambda i, j, k: (i * 13 + j, k // 3, k % 3)",
                                             "lambda i, j: (i + j, j)",   "lambda i, j: (i, i * 2 + j)",
                                             "lambda i: (i + i // 3,)"};
      const IndexMap map = parse_index_map(maps[pick(11)]).value_or_throw();
      const ir::Value pad = pick(2) ? ir::Value(int64_t{7}) : ir::Value();
      const BufferIndex which{.writes = pick(2) == 0};
      const bool word = pick(2);
      return made([=](Schedule& s) { return s.transform_layout(block, which, map, pad, word); });
    }
    if (name == "transform_block_layout") {
      const std::string text = axes == 1   ? fmt::format("lambda i: (i // {0}, i % {0})", factor)
                               : axes == 2 ? fmt::format("lambda i, j: (j // {0}, i, j % {0})", factor)
                                           : fmt::format("lambda i, j, k: (k // {0}, j, i, k % {0})", factor);
      const IndexMap map = parse_index_map(text).value_or_throw();
      return made([=](Schedule& s) { return s.transform_block_layout(block, map); });
    }
    if (name == "set_scope") return made([=](Schedule& s) { return s.set_scope(block, 0, "local"); });
    if (name == "storage_align") {
      const int64_t axis = number(3) - 1, offset = number(2);
      return made([=](Schedule& s) { return s.storage_align(block, 0, axis, 1 + factor, offset); });
    }
    if (name == "set_axis_separator") {
      const int64_t separator = 1 + number(2);
      const std::vector<int64_t> separators =
          pick(3) ? std::vector<int64_t>{separator} : std::vector<int64_t>{separator, separator + 1};
      const BufferIndex which{.writes = pick(2) == 0};
      return made([=](Schedule& s) { return s.set_axis_separator(block, which, separators); });
    }
    if (name == "cache_index") {
      const int64_t threshold = number(3);
      return made([=](Schedule& s) -> Status {
        const auto blocks = s.cache_index(block, "local", threshold);
        if (!blocks) return blocks.diagnostics();
        if (blocks->empty()) return refuse(codes::bad_argument, "it computes no index");
        return support::success();
      });
    }
    if (name == "rolling_buffer") {
      // Mostly of a block that is computed where it is needed, which gives the iterations something to share.
      const std::vector<BlockRV> near = neighbours(c, true);
      std::vector<LoopRV> places;
      if (!near.empty() && pick(4)) places = c.schedule.get_loops(near[0]).value_or_throw();
      for (const LoopRV& place : places) {
        Schedule placed = c.schedule, rolled = placed;
        if (!placed.compute_at(block, place)) continue;
        rolled = placed;
        if (!rolled.rolling_buffer(block, 0) && pick(3)) continue;
        schedule_ = c.schedule = placed;
        break;
      }
      return made([=](Schedule& s) { return s.rolling_buffer(block, 0); });
    }
    if (name == "annotate_buffer_access") {
      const Ref<Block> node = c.schedule.get(block).value_or_throw();
      const bool writes = pick(2);
      const std::vector<BufferRegion>& declared = writes ? node->writes : node->reads;
      if (declared.empty()) return made([=](Schedule& s) { return s.annotate_buffer_access(block, 0, "read", {}); });
      const int64_t which = number(declared.size());
      // What it declares, or all there is, axis by axis.
      IndexMap map;
      for (const IterVar& iter : node->iter_vars) map.from.push_back(iter->var);
      const BufferRegion region = declared[static_cast<size_t>(which)];
      for (size_t d = 0; d < region->region.size(); ++d) {
        const Range& range = region->region[d];
        const bool all = pick(2);
        map.to.push_back(all ? int64(0) : range.min);
        map.to.push_back(all ? region->buffer->shape[d] : range.min + range.extent);
      }
      for (const Expr& bound : map.to)
        for (const Var& v : free_vars(bound))
          if (std::find(map.from.begin(), map.from.end(), v) == map.from.end())
            return made(
                [](Schedule&) -> Status { return refuse(codes::bad_argument, "the text of a map knows no symbols"); });
      return made([=](Schedule& s) { return s.annotate_buffer_access(block, which, writes ? "write" : "read", map); });
    }
    if (name == "enter_postproc")
      return made([=](Schedule& s) -> Status {
        s.enter_postproc();
        return support::success();
      });
    if (name == "unsafe_set_dtype") {
      const DType own = start_.element;  // what wraps, wraps otherwise where there is more room
      const std::string wider = own.is_floating() ? "float64" : own.bits < 32 ? own.str() : "int64";
      return made([=](Schedule& s) { return s.unsafe_set_dtype(block, 0, wider); });
    }
    if (name == "reorder_block_iter_var") {
      std::vector<int64_t> order(axes);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random_);
      return made([=](Schedule& s) { return s.reorder_block_iter_var(block, order); });
    }
    if (name == "blockize") {
      const bool keep = pick(2);
      return made([=](Schedule& s) { return s.blockize(loop, keep); });
    }
    if (name == "blockize_blocks") {
      std::vector<BlockRV> some{block};
      const std::vector<BlockRV> after = neighbours(c, true);
      if (pick(4)) some.push_back(after.empty() ? c.other : after[0]);
      const bool keep = pick(2);
      return made([=](Schedule& s) { return s.blockize(some, keep); });
    }
    if (name == "sample_compute_location") {
      const std::vector<int64_t> places = c.schedule.compute_locations(block).value_or_throw();
      const int64_t place = places[pick(places.size())];
      return made([=](Schedule& s) -> Status {
        const auto at = s.sample_compute_location(block, place);
        if (!at) return at.diagnostics();
        return s.compute_at(block, *at);
      });
    }
    if (name == "tensorize") {
      const LoopRV innermost = c.loops.back();
      const int64_t n = as_int(c.schedule.get(innermost).value_or_throw()->extent).value_or(0);
      return made([=](Schedule& s) -> Status {
        Status done = refuse(codes::intrin_mismatch, "none fits");
        for (const char* kind : {"scale", "differ", "join", "twice", "copy"})
          if (!done.ok()) done = s.tensorize(innermost, fmt::format("{}_{}", kind, n));
        return done;
      });
    }
    if (name == "decompose_padding") return made([=](Schedule& s) { return s.decompose_padding(block, loop); });
    if (name == "split_padding") return made([=](Schedule& s) { return s.split_padding(block); });
    if (name == "pad_einsum") {
      std::vector<int64_t> padding;
      for (size_t i = 0; i < axes; ++i) padding.push_back(1 + number(4));
      return made([=](Schedule& s) { return s.pad_einsum(block, padding); });
    }
    if (name == "decompose_reduction") return made([=](Schedule& s) { return s.decompose_reduction(block, loop); });
    if (name == "fuse_reduction_epilogue") {
      // A block behind a reduction, where there is one.
      for (int i = 0; i < 8 && !c.schedule.get(c.block).value_or_throw()->init; ++i) c = choice().value_or(c);
      const std::vector<BlockRV> after = neighbours(c, true);
      const BlockRV reduction = c.block, epilogue = after.empty() ? c.other : after[pick(after.size())];
      return made([=](Schedule& s) { return s.fuse_reduction_epilogue(reduction, epilogue); });
    }
    if (name == "rfactor") {
      const int64_t axis = number(2);
      return made([=](Schedule& s) { return s.rfactor(loop, axis); });
    }
    support::require(name == "sample_perfect_tile", "a primitive that the walk does not know");
    const uint64_t seed = random_();
    const int64_t parts = 1 + number(3);
    return made([=](Schedule& s) -> Status {
      RandomDecider decider(seed);
      const auto tile = s.sample_perfect_tile(decider, "walk", loop, parts, factor);
      if (!tile) return tile.diagnostics();
      const auto split = s.split(loop, std::vector<Factor>(tile->begin(), tile->end()));
      if (!split) return split.diagnostics();
      return support::success();
    });
  }

  // Every second time the primitive that was accepted least often so far.
  std::string next_name() { return pick(2) ? names[pick(std::size(names))] : least_accepted(); }
  std::string least_accepted() {
    std::string least = names[0];
    for (const char* name : names)
      if (tallies_[name].accepted < tallies_[least].accepted) least = name;
    return least;
  }

  // A sum of floats may come out otherwise once one of these has been there.
  static bool may_reorder(const std::string& name) {
    static constexpr std::string_view reordering[] = {"reorder",
                                                      "compute_at",
                                                      "reverse_compute_at",
                                                      "sample_compute_location",
                                                      "rfactor",
                                                      "pad_einsum",
                                                      "reindex",
                                                      "transform_block_layout",
                                                      "unsafe_set_dtype",
                                                      "merge",
                                                      "fuse_reduction_epilogue"};
    return std::find(std::begin(reordering), std::end(reordering), name) != std::end(reordering);
  }

  double tolerance() const {
    if (!start_.element.is_floating()) return 0;
    return start_.element.bits == 16 ? 0.5 : 1e-4;
  }

  std::string difference(const Function& after, bool reordered) {
    for (const Symbols& symbols : start_.symbols) {
      const std::string found = tir::testing::difference(start_.function, after, random_(), symbols,
                                                         row_intrins().get(), reordered ? tolerance() : 0);
      if (!found.empty()) return found;
    }
    return {};
  }

  std::string step() {
    auto c = choice();
    if (!c) return {};
    const std::string name = next_name();
    const Attempt a = attempt(name, *c);
    Schedule changed = c->schedule;
    const Diagnostics refused = a.run(changed);
    Tally& tally = tallies_[name];
    ++tally.tried;
    // Of a program in which nothing runs, nothing is learned.
    const Id block = c->schedule.get(c->block).value_or_throw()->id;
    const bool trivial = std::all_of(start_.symbols.begin(), start_.symbols.end(), [&](const Symbols& symbols) {
      return instances_run(c->schedule.function(), block, symbols) == 0;
    });
    if (!refused.empty()) {
      if (refused[0].message.empty()) return name + " refuses without a reason";
      if (options_.judges && !trivial) judge(a, *c, refused, tally);
      tally.trivial += trivial;
      return {};
    }
    ++(trivial ? tally.trivial : tally.accepted);
    const ir::IRModule before = schedule_.mod();
    schedule_ = std::move(changed);
    reordered_ = reordered_ || may_reorder(name);
    const Function after = schedule_.mod().find_as<PrimFunc>("main");
    std::string wrong = ids(schedule_.function());
    if (wrong.empty()) wrong = malformed(after);
    if (!wrong.empty()) return name + ": " + wrong + "\n" + text(before) + text(schedule_.mod());
    const std::string found = difference(after, reordered_);
    // A program that was never right (an empty reduction that is read) proves nothing.
    if (found.rfind("invalid", 0) == 0) return {};
    if (!found.empty()) return name + ": " + found + "\n" + text(before) + text(schedule_.mod());
    if (a.concurrent && !race_free(a, *c)) return name + ": iterations depend on one another\n" + text(before);
    return {};
  }

  bool race_free(const Attempt& a, const Choice& c) const {
    for (const Symbols& symbols : start_.symbols)
      if (!iterations_are_independent(c.schedule.function(), c.schedule.get(*a.concurrent).value_or_throw()->id,
                                      symbols)
               .value_or(true))
        return false;
    return true;
  }

  void judge(const Attempt& a, const Choice& c, const Diagnostics& refused, Tally& tally) {
    Schedule forced = c.schedule;
    forced.set_options({.enable_check = false, .context = row_intrins()});
    if (!a.run(forced).empty()) {
      ++tally.cannot_be;
      return;
    }
    const std::string why = support::render(refused);
    bool same = true;
    const bool reordered = reordered_ || may_reorder(a.name);
    for (int round = 0; same && round < 3; ++round)
      same = difference(forced.mod().find_as<PrimFunc>("main"), reordered).empty();
    if (same && a.concurrent) same = race_free(a, c);
    // Instances that run before their values are final, and again, may come out right; they are not what is asked for.
    if (same && a.moved) {
      const Id block = c.schedule.get(*a.moved).value_or_throw()->id;
      for (const Symbols& symbols : start_.symbols)
        same = same &&
               instances_run(c.schedule.function(), block, symbols) == instances_run(forced.function(), block, symbols);
    }
    if (!same) {
      ++tally.illegal;
    } else if (why.find("budget") != std::string::npos || why.find("touched depends on") != std::string::npos) {
      // What values decide, or what is not affine, isl leaves open.
      ++tally.undecided;
    } else {
      ++tally.legal;
      Tally::Refusals& known = tally.legal_reasons[without_names(refused[0].message)];
      if (known.count++ == 0) known.example = why + text(c.schedule.mod()) + text(forced.mod());
    }
  }

  static std::string without_names(const std::string& message) {
    std::string result;
    bool quoted = false;
    for (const char letter : message) {
      if (letter == '\'') {
        if (!quoted) result += "_";
        quoted = !quoted;
      } else if (!quoted) {
        result += letter;
      }
    }
    return result;
  }

  // The printed trace makes the same program of the original.
  std::string replay() const {
    const std::string printed = schedule_.trace().as_python();
    const auto trace = parse_trace(printed);
    if (!trace) return "trace: " + support::render(trace.diagnostics()) + printed;
    Schedule again = Schedule::create(start_.function, "main", {.context = row_intrins()}).value_or_throw();
    if (const auto applied = trace->apply(again); !applied) return support::render(applied.diagnostics()) + printed;
    const auto first = ir::first_difference(again.mod(), schedule_.mod());
    return first ? "replayed: " + *first + "\n" + printed : "";
  }

  static std::string text(const ir::IRModule& module) {
    return tir::function_text(module.find_as<PrimFunc>("main")) + "\n";
  }

  // What the verifier says, or where the text of it is another program.
  static std::string malformed(const Function& function) {
    if (const Diagnostics problems = tir::verify(function); !problems.empty()) return support::render(problems);
    static const script::Dialect* const dialects[] = {&tir::script_dialect()};
    const std::string printed = tir::function_text(function);
    const auto parsed = script::parse_function({"<walk>", printed}, dialects);
    if (!parsed) return "its text: " + support::render(parsed.diagnostics());
    const auto other = ir::first_difference(NodeRef(*parsed), NodeRef(function));
    return other ? "its text reads as another program: " + *other : "";
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
  Tallies& tallies_;
  WalkOptions options_;
  RandomNests start_;
  Schedule schedule_;
  bool reordered_ = false;
};

}  // namespace

std::string walk(uint64_t seed, Tallies& tallies, const WalkOptions& options) {
  return Walk(seed, tallies, options).run();
}

std::string table(const Tallies& tallies, bool with_examples) {
  std::string rows = fmt::format("{:24} {:>6} {:>8} {:>7} {:>9} {:>7} {:>5} {:>9} {:>7}\n", "primitive", "tried",
                                 "accepted", "trivial", "cannot be", "illegal", "legal", "undecided", "refused");
  Tally all;
  const auto row = [](const std::string& name, const Tally& t) {
    return fmt::format("{:24} {:6} {:8} {:7} {:9} {:7} {:5} {:9} {:6.1f}%\n", name, t.tried, t.accepted, t.trivial,
                       t.cannot_be, t.illegal, t.legal, t.undecided, 100 * t.share_refused());
  };
  for (const auto& [name, t] : tallies) {
    rows += row(name, t);
    for (const auto& [reason, known] : t.legal_reasons)
      rows += fmt::format("    {:4} {}\n{}", known.count, reason, with_examples ? known.example : "");
    all.tried += t.tried;
    all.accepted += t.accepted;
    all.trivial += t.trivial;
    all.cannot_be += t.cannot_be;
    all.illegal += t.illegal;
    all.legal += t.legal;
    all.undecided += t.undecided;
  }
  return rows + row("all", all);
}

}  // namespace lathe::schedule::testing
