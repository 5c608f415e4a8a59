#include "schedule/testing/attempts.h"

#include "ir/function.h"
#include "schedule/analysis/tree.h"
#include "schedule/codes.h"
#include "script/parse.h"
#include "tir/script/dialect.h"

namespace lathe::schedule::testing {

namespace {

using support::Diagnostics;

template <class T>
Diagnostics refusal_of(const Result<T>& result) {
  return result.ok() ? Diagnostics{} : result.diagnostics();
}

template <class Call>
std::function<Diagnostics(Schedule&)> calling(Call call) {
  return [call](Schedule& s) { return refusal_of(call(s)); };
}

template <class Call>
Attempt made(Call call) {
  return {calling(call), {}, {}};
}

// `call` lets the iterations of `loop` run at once.
template <class Call>
Attempt at_once(const LoopRV& loop, Call call) {
  return {calling(call), loop, {}};
}

std::vector<BlockRV> neighbours(Choice& c, bool consumers) {
  auto found = consumers ? c.schedule.get_consumers(c.block) : c.schedule.get_producers(c.block);
  return found ? *found : std::vector<BlockRV>{};
}

// None (who can is to be found), the block alone, or the block and another.
std::vector<BlockRV> consumers_of(const Choice& c, size_t count) {
  if (count == 0) return {};
  return count == 1 ? std::vector<BlockRV>{c.block} : std::vector<BlockRV>{c.block, c.other};
}

size_t axes_of(const Choice& c) { return c.schedule.get(c.block).value_or_throw()->iter_vars.size(); }

Attempt split(Draw& draw, Choice& c) {
  std::vector<Factor> factors{Factor(), c.factor};
  if (draw.pick(2)) factors = {c.factor, Factor(), int64_t{2}};
  // Without a predicate only where the factors divide: else that it does no harm would be our word.
  const int64_t product = c.factor * (factors.size() == 3 ? 2 : 1);
  const int64_t extent = as_int(c.schedule.get(c.loop).value_or_throw()->extent).value_or(1);
  const bool bare = draw.pick(4) == 0 && extent % product == 0;
  const bool units = draw.pick(2);
  return made([=, loop = c.loop](Schedule& s) { return s.split(loop, factors, bare, units); });
}

Attempt fuse(Draw& draw, Choice& c) {
  std::vector<LoopRV> some;
  const size_t first = draw.pick(c.loops.size());
  for (size_t i = first; i < std::min(c.loops.size(), first + 1 + draw.pick(3)); ++i) some.push_back(c.loops[i]);
  const bool units = draw.pick(2);
  return made([=](Schedule& s) { return s.fuse(some, units); });
}

Attempt reorder(Draw& draw, Choice& c) {
  std::vector<LoopRV> some = c.loops;
  std::shuffle(some.begin(), some.end(), draw.random());
  some.resize(std::min(some.size(), 2 + draw.pick(3)));
  return made([=](Schedule& s) { return s.reorder(some); });
}

// A loop and one beside it: of neighbours, at the same depth, as these fit more often, or any two.
std::vector<LoopRV> beside(Draw& draw, Choice& c) {
  const std::vector<BlockRV> after = neighbours(c, true);
  if (!after.empty() && draw.pick(3)) {
    const std::vector<LoopRV> theirs = c.schedule.get_loops(after[0]).value_or_throw();
    const size_t depth = draw.pick(c.loops.size());
    if (depth < theirs.size()) return {c.loops[depth], theirs[depth]};
  }
  return {c.loop, c.other_loop};
}

Attempt merge(Draw& draw, Choice& c) {
  return made([loops = beside(draw, c)](Schedule& s) { return s.merge(loops); });
}

Attempt join(Draw& draw, Choice& c) {
  return made([loops = beside(draw, c)](Schedule& s) { return s.join(loops); });
}

Attempt loop_partition(Draw& draw, Choice& c) {
  const bool units = draw.pick(2);
  return made(
      [=, loop = c.loop, factor = c.factor](Schedule& s) { return s.loop_partition(loop, {factor, Factor()}, units); });
}

Attempt peel(Draw&, Choice& c) {
  return made([loop = c.loop, factor = c.factor](Schedule& s) { return s.peel(loop, factor); });
}

Attempt strip_mine(Draw&, Choice& c) {
  return made([loop = c.loop, factor = c.factor](Schedule& s) { return s.strip_mine(loop, factor); });
}

Attempt add_unit_loop(Draw& draw, Choice& c) {
  if (draw.pick(2)) return made([loop = c.loop](Schedule& s) { return s.add_unit_loop(loop); });
  return made([block = c.block](Schedule& s) { return s.add_unit_loop(block); });
}

Attempt parallel(Draw&, Choice& c) {
  return at_once(c.loop, [loop = c.loop](Schedule& s) { return s.parallel(loop); });
}

Attempt vectorize(Draw&, Choice& c) {
  return at_once(c.loop, [loop = c.loop](Schedule& s) { return s.vectorize(loop); });
}

Attempt unroll(Draw&, Choice& c) {
  return made([loop = c.loop](Schedule& s) { return s.unroll(loop); });
}

Attempt bind(Draw& draw, Choice& c) {
  static constexpr const char* axes[] = {"blockIdx.x", "threadIdx.x", "threadIdx.y", "vthread"};
  const std::string axis = axes[draw.pick(4)];
  return at_once(c.loop, [=, loop = c.loop](Schedule& s) { return s.bind(loop, axis); });
}

// Where a block is moved to: mostly a loop around one that it gives to or takes from.
struct Place {
  LoopRV at;
  bool keep;
  int64_t index;
};
Place place(Draw& draw, Choice& c, bool consumers) {
  const bool keep = draw.pick(2);
  const int64_t index = draw.pick(3) == 0 ? draw.number(3) : -1 - draw.number(2);
  LoopRV at = c.other_loop;
  const std::vector<BlockRV> near = neighbours(c, consumers);
  if (!near.empty() && draw.pick(4)) {
    const std::vector<LoopRV> theirs = c.schedule.get_loops(near[draw.pick(near.size())]).value_or_throw();
    if (!theirs.empty()) at = theirs[draw.pick(theirs.size())];
  }
  return {at, keep, index};
}

Attempt compute_at(Draw& draw, Choice& c) {
  return made(
      [block = c.block, p = place(draw, c, true)](Schedule& s) { return s.compute_at(block, p.at, p.keep, p.index); });
}

Attempt reverse_compute_at(Draw& draw, Choice& c) {
  Attempt result = made([block = c.block, p = place(draw, c, false)](Schedule& s) {
    return s.reverse_compute_at(block, p.at, p.keep, p.index);
  });
  result.moved = c.block;
  return result;
}

Attempt compute_inline(Draw&, Choice& c) {
  return made([block = c.block](Schedule& s) { return s.compute_inline(block); });
}

Attempt reverse_compute_inline(Draw&, Choice& c) {
  return made([block = c.block](Schedule& s) { return s.reverse_compute_inline(block); });
}

Attempt cache_read(Draw& draw, Choice& c) {
  const int64_t which = draw.number(2);
  const std::vector<BlockRV> consumers = consumers_of(c, draw.pick(3));
  return made([=, block = c.block](Schedule& s) { return s.cache_read(block, which, "local", consumers); });
}

Attempt cache_write(Draw& draw, Choice& c) {
  const std::vector<BlockRV> near = neighbours(c, true);
  const std::vector<BlockRV> consumers = near.empty() || draw.pick(2) ? std::vector<BlockRV>{} : near;
  return made([=, block = c.block](Schedule& s) { return s.cache_write(block, 0, "local", consumers); });
}

Attempt read_at(Draw& draw, Choice& c) {
  const int64_t which = draw.number(2);
  return made([=, loop = c.loop, block = c.block](Schedule& s) { return s.read_at(loop, block, which, "local"); });
}

Attempt write_at(Draw&, Choice& c) {
  return made([loop = c.loop, block = c.block](Schedule& s) { return s.write_at(loop, block, 0, "local"); });
}

Attempt prefetch(Draw& draw, Choice& c) {
  const int64_t which = draw.number(2);
  return made([=, block = c.block, loop = c.loop, at = c.other_loop](Schedule& s) {
    return s.prefetch(block, which, loop, at);
  });
}

Attempt cache_inplace(Draw&, Choice& c) {
  return made([block = c.block](Schedule& s) { return s.cache_inplace(block, 0, "local"); });
}

BufferIndex one_buffer(Draw& draw) { return {.writes = draw.pick(2) == 0}; }

Attempt reindex(Draw& draw, Choice& c) {
  return made([block = c.block, which = one_buffer(draw)](Schedule& s) { return s.reindex(block, which); });
}

IndexMap one_of(Draw& draw, std::span<const char* const> maps) {
  return parse_index_map(maps[draw.pick(maps.size())]).value_or_throw();
}

IndexMap cache_map(Draw& draw) {
  static constexpr const char* maps[] = {
      "lambda i: (i // 2, i % 2)", "lambda i, j: (j, i)", "lambda i, j: (i * 13 + j,)", "lambda i, j, k: (k, i, j)",
      "lambda i, j, k: (i, j)",    "lambda i: (i,)",      "lambda i, j: (i,)"};
  return one_of(draw, maps);
}

Attempt reindex_cache_read(Draw& draw, Choice& c) {
  return made(
      [block = c.block, map = cache_map(draw)](Schedule& s) { return s.reindex_cache_read(block, 0, "local", map); });
}

Attempt reindex_cache_write(Draw& draw, Choice& c) {
  return made(
      [block = c.block, map = cache_map(draw)](Schedule& s) { return s.reindex_cache_write(block, 0, "local", map); });
}

Attempt transform_layout(Draw& draw, Choice& c) {
  static constexpr const char* maps[] = {"lambda i: (i // 2, i % 2)", "lambda i: (i % 3, i // 3)",
                                         "lambda i: (i * 2,)",        "lambda i, j: (i * 13 + j,)",
                                         "lambda i, j: (j, i)",       "lambda i, j: (j // 4, i, j % 4)",
                                         "lambda i, j, k: (i, k, j)", "lambda i, j, k: (i * 13 + j, k // 3, k % 3)",
                                         "lambda i, j: (i + j, j)",   "lambda i, j: (i, i * 2 + j)",
                                         "lambda i: (i + i // 3,)"};
  const IndexMap map = one_of(draw, maps);
  const ir::Value pad = draw.pick(2) ? ir::Value(int64_t{7}) : ir::Value();
  const BufferIndex which = one_buffer(draw);
  const bool word = draw.pick(2);
  return made([=, block = c.block](Schedule& s) { return s.transform_layout(block, which, map, pad, word); });
}

Attempt transform_block_layout(Draw&, Choice& c) {
  const size_t axes = axes_of(c);
  const std::string text = axes == 1   ? fmt::format("lambda i: (i // {0}, i % {0})", c.factor)
                           : axes == 2 ? fmt::format("lambda i, j: (j // {0}, i, j % {0})", c.factor)
                                       : fmt::format("lambda i, j, k: (k // {0}, j, i, k % {0})", c.factor);
  const IndexMap map = parse_index_map(text).value_or_throw();
  return made([=, block = c.block](Schedule& s) { return s.transform_block_layout(block, map); });
}

Attempt set_scope(Draw&, Choice& c) {
  return made([block = c.block](Schedule& s) { return s.set_scope(block, 0, "local"); });
}

Attempt storage_align(Draw& draw, Choice& c) {
  const int64_t axis = draw.number(3) - 1, offset = draw.number(2);
  return made([=, block = c.block, factor = c.factor](Schedule& s) {
    return s.storage_align(block, 0, axis, 1 + factor, offset);
  });
}

Attempt unsafe_set_dtype(Draw& draw, Choice& c) {
  const DType own = draw.element();  // what wraps, wraps otherwise where there is more room
  const std::string wider = own.is_floating() ? "float64" : own.bits < 32 ? own.str() : "int64";
  return made([=, block = c.block](Schedule& s) { return s.unsafe_set_dtype(block, 0, wider); });
}

Attempt set_axis_separator(Draw& draw, Choice& c) {
  const int64_t separator = 1 + draw.number(2);
  const std::vector<int64_t> separators =
      draw.pick(3) ? std::vector<int64_t>{separator} : std::vector<int64_t>{separator, separator + 1};
  return made([=, block = c.block, which = one_buffer(draw)](Schedule& s) {
    return s.set_axis_separator(block, which, separators);
  });
}

Attempt cache_index(Draw& draw, Choice& c) {
  const int64_t threshold = draw.number(3);
  return made([=, block = c.block](Schedule& s) -> Status {
    const auto blocks = s.cache_index(block, "local", threshold);
    if (!blocks) return blocks.diagnostics();
    if (blocks->empty()) return refuse(codes::bad_argument, "it computes no index");
    return support::success();
  });
}

Attempt rolling_buffer(Draw& draw, Choice& c) {
  // Mostly of a block that is computed where it is needed, which gives the iterations something to share.
  const std::vector<BlockRV> near = neighbours(c, true);
  std::vector<LoopRV> places;
  if (!near.empty() && draw.pick(4)) places = c.schedule.get_loops(near[0]).value_or_throw();
  for (const LoopRV& place : places) {
    Schedule placed = c.schedule;
    if (!placed.compute_at(c.block, place)) continue;
    Schedule rolled = placed;
    if (!rolled.rolling_buffer(c.block, 0) && draw.pick(3)) continue;
    draw.go_on_from(c, placed);
    break;
  }
  return made([block = c.block](Schedule& s) { return s.rolling_buffer(block, 0); });
}

Attempt annotate_buffer_access(Draw& draw, Choice& c) {
  const Ref<Block> node = c.schedule.get(c.block).value_or_throw();
  const bool writes = draw.pick(2);
  const std::vector<BufferRegion>& declared = writes ? node->writes : node->reads;
  if (declared.empty())
    return made([block = c.block](Schedule& s) { return s.annotate_buffer_access(block, 0, "read", {}); });
  const int64_t which = draw.number(declared.size());
  // What it declares, or all there is, axis by axis.
  IndexMap map;
  for (const IterVar& iter : node->iter_vars) map.from.push_back(iter->var);
  const BufferRegion region = declared[static_cast<size_t>(which)];
  for (size_t d = 0; d < region->region.size(); ++d) {
    const Range& range = region->region[d];
    const bool all = draw.pick(2);
    map.to.push_back(all ? int64(0) : range.min);
    map.to.push_back(all ? region->buffer->shape[d] : range.min + range.extent);
  }
  for (const Expr& bound : map.to)
    for (const Var& v : free_vars(bound))
      if (std::find(map.from.begin(), map.from.end(), v) == map.from.end())
        return made(
            [](Schedule&) -> Status { return refuse(codes::bad_argument, "the text of a map knows no symbols"); });
  return made([=, block = c.block](Schedule& s) {
    return s.annotate_buffer_access(block, which, writes ? "write" : "read", map);
  });
}

Attempt enter_postproc(Draw&, Choice&) {
  return made([](Schedule& s) -> Status {
    s.enter_postproc();
    return support::success();
  });
}

Attempt reorder_block_iter_var(Draw& draw, Choice& c) {
  std::vector<int64_t> order(axes_of(c));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), draw.random());
  return made([=, block = c.block](Schedule& s) { return s.reorder_block_iter_var(block, order); });
}

Attempt blockize(Draw& draw, Choice& c) {
  const bool keep = draw.pick(2);
  return made([=, loop = c.loop](Schedule& s) { return s.blockize(loop, keep); });
}

Attempt blockize_blocks(Draw& draw, Choice& c) {
  std::vector<BlockRV> some{c.block};
  const std::vector<BlockRV> after = neighbours(c, true);
  if (draw.pick(4)) some.push_back(after.empty() ? c.other : after[0]);
  const bool keep = draw.pick(2);
  return made([=](Schedule& s) { return s.blockize(some, keep); });
}

Attempt tensorize(Draw&, Choice& c) {
  const LoopRV innermost = c.loops.back();
  const int64_t n = as_int(c.schedule.get(innermost).value_or_throw()->extent).value_or(0);
  return made([=](Schedule& s) -> Status {
    Status done = refuse(codes::intrin_mismatch, "none fits");
    for (const char* kind : {"scale", "differ", "join", "twice", "copy"})
      if (!done.ok()) done = s.tensorize(innermost, fmt::format("{}_{}", kind, n));
    return done;
  });
}

Attempt sample_compute_location(Draw& draw, Choice& c) {
  const std::vector<int64_t> places = c.schedule.compute_locations(c.block).value_or_throw();
  const int64_t place = places[draw.pick(places.size())];
  return made([=, block = c.block](Schedule& s) -> Status {
    const auto at = s.sample_compute_location(block, place);
    if (!at) return at.diagnostics();
    return s.compute_at(block, *at);
  });
}

Attempt decompose_padding(Draw&, Choice& c) {
  return made([block = c.block, loop = c.loop](Schedule& s) { return s.decompose_padding(block, loop); });
}

Attempt split_padding(Draw&, Choice& c) {
  return made([block = c.block](Schedule& s) { return s.split_padding(block); });
}

Attempt pad_einsum(Draw& draw, Choice& c) {
  std::vector<int64_t> padding(axes_of(c));
  for (int64_t& to : padding) to = 1 + draw.number(4);
  return made([=, block = c.block](Schedule& s) { return s.pad_einsum(block, padding); });
}

Attempt decompose_reduction(Draw&, Choice& c) {
  return made([block = c.block, loop = c.loop](Schedule& s) { return s.decompose_reduction(block, loop); });
}

Attempt fuse_reduction_epilogue(Draw& draw, Choice& c) {
  // A block behind a reduction, where there is one.
  for (int i = 0; i < 8 && !c.schedule.get(c.block).value_or_throw()->init; ++i) c = draw.choice().value_or(c);
  const std::vector<BlockRV> after = neighbours(c, true);
  const BlockRV reduction = c.block, epilogue = after.empty() ? c.other : after[draw.pick(after.size())];
  return made([=](Schedule& s) { return s.fuse_reduction_epilogue(reduction, epilogue); });
}

Attempt rfactor(Draw& draw, Choice& c) {
  const int64_t axis = draw.number(2);
  return made([=, loop = c.loop](Schedule& s) { return s.rfactor(loop, axis); });
}

Attempt sample_perfect_tile(Draw& draw, Choice& c) {
  const uint64_t seed = draw.random()();
  const int64_t parts = 1 + draw.number(3);
  return made([=, loop = c.loop, factor = c.factor](Schedule& s) -> Status {
    RandomDecider decider(seed);
    const auto tile = s.sample_perfect_tile(decider, "walk", loop, parts, factor);
    if (!tile) return tile.diagnostics();
    const auto split = s.split(loop, std::vector<Factor>(tile->begin(), tile->end()));
    if (!split) return split.diagnostics();
    return support::success();
  });
}

constexpr Primitive all_primitives[] = {{"split", split},
                                        {"fuse", fuse},
                                        {"reorder", reorder},
                                        {"merge", merge},
                                        {"join", join},
                                        {"loop_partition", loop_partition},
                                        {"peel", peel},
                                        {"strip_mine", strip_mine},
                                        {"add_unit_loop", add_unit_loop},
                                        {"parallel", parallel},
                                        {"vectorize", vectorize},
                                        {"unroll", unroll},
                                        {"bind", bind},
                                        {"compute_at", compute_at},
                                        {"reverse_compute_at", reverse_compute_at},
                                        {"compute_inline", compute_inline},
                                        {"reverse_compute_inline", reverse_compute_inline},
                                        {"cache_read", cache_read},
                                        {"cache_write", cache_write},
                                        {"read_at", read_at},
                                        {"write_at", write_at},
                                        {"prefetch", prefetch},
                                        {"cache_inplace", cache_inplace},
                                        {"reindex", reindex},
                                        {"reindex_cache_read", reindex_cache_read},
                                        {"reindex_cache_write", reindex_cache_write},
                                        {"transform_layout", transform_layout},
                                        {"transform_block_layout", transform_block_layout},
                                        {"set_scope", set_scope},
                                        {"storage_align", storage_align},
                                        {"unsafe_set_dtype", unsafe_set_dtype},
                                        {"set_axis_separator", set_axis_separator},
                                        {"cache_index", cache_index},
                                        {"rolling_buffer", rolling_buffer},
                                        {"annotate_buffer_access", annotate_buffer_access},
                                        {"enter_postproc", enter_postproc},
                                        {"reorder_block_iter_var", reorder_block_iter_var},
                                        {"blockize", blockize},
                                        {"blockize_blocks", blockize_blocks},
                                        {"tensorize", tensorize},
                                        {"sample_compute_location", sample_compute_location},
                                        {"decompose_padding", decompose_padding},
                                        {"split_padding", split_padding},
                                        {"pad_einsum", pad_einsum},
                                        {"decompose_reduction", decompose_reduction},
                                        {"fuse_reduction_epilogue", fuse_reduction_epilogue},
                                        {"rfactor", rfactor},
                                        {"sample_perfect_tile", sample_perfect_tile}};

}  // namespace

std::span<const Primitive> primitives() { return all_primitives; }

std::optional<Choice> Draw::choice() {
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
  c.factor = 1 + number(5);
  return c;
}

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

}  // namespace lathe::schedule::testing
