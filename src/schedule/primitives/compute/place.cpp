#include "schedule/primitives/compute/place.h"

#include "arith/affine.h"
#include "ir/conditions.h"
#include "ir/visit.h"

namespace lathe::schedule {

namespace {

// The smaller (or larger) of two bounds, when it can be told.
std::optional<Expr> extreme(const Expr& a, const Expr& b, bool smaller) {
  const auto gap = difference(a, b);
  if (gap) return (*gap <= 0) == smaller ? a : b;
  arith::Analyzer analyzer;
  if (analyzer.can_prove(a <= b)) return smaller ? a : b;
  if (analyzer.can_prove(b <= a)) return smaller ? b : a;
  return std::nullopt;
}

// Whether an access meets every element of a box whose every dimension it covers: B[i, i] does not, B[f // 4, f % 4]
// does where the extent is a multiple of 4.
bool takes_all(const Access& access, const std::vector<const For*>& loops, const std::vector<Interval>& box) {
  const bool shared = std::any_of(loops.begin(), loops.end(), [&](const For* loop) {
    return std::count_if(access.region.begin(), access.region.end(),
                         [&](const Range& range) { return uses_var(range.min, loop->loop_var); }) > 1;
  });
  if (!shared) return true;
  arith::Analyzer analyzer;
  arith::Domain domain;
  std::vector<Expr> indices;
  for (const For* loop : loops) domain.emplace_back(loop->loop_var, Range{loop->min, loop->extent});
  for (const Range& range : access.region) {
    if (!is_int(range.extent, 1)) return false;
    indices.push_back(range.min);
  }
  const auto map = arith::detect_affine(indices, domain, Expr(), analyzer);
  if (!map.ok() || !map->surjective) return false;
  for (size_t d = 0; d < box.size(); ++d)
    if (!analyzer.can_prove_equal(map->extents[d], box[d].high - box[d].low + 1)) return false;
  return true;
}

}  // namespace

std::optional<Region> touched(const std::vector<Access>& list, support::function_ref<bool(const Access&)> chosen,
                              const std::vector<const For*>& fixed) {
  std::optional<Region> hull;
  for (const Access& access : list) {
    if (!chosen(access)) continue;
    std::vector<const For*> loops;
    for (const For* loop : access.loops)
      if (std::find(fixed.begin(), fixed.end(), loop) == fixed.end()) loops.push_back(loop);
    const Domains domains = domains_of(loops);
    Region region;
    region.exact = access.certain && !access.opaque;
    for (const For* loop : loops)
      if (is_int(loop->extent, 0)) region.exact = false;  // nothing is touched at all
    for (size_t d = 0; d < access.region.size(); ++d) {
      const Range& range = access.region[d];
      if (reads_memory(range.min) || reads_memory(range.extent)) {  // anywhere
        region.exact = false;
        region.dimensions.push_back({int64(0), Linear(linear(access.buffer->shape[d] - 1)).expr()});
        continue;
      }
      const auto low = interval(range.min, domains, &region.exact);
      const auto high = interval(Linear(linear(range.min + range.extent - 1)).expr(), domains);
      if (!low || !high) return std::nullopt;
      region.dimensions.push_back({low->low, high->high});
    }
    if (region.exact) region.exact = takes_all(access, loops, region.dimensions);
    if (!hull) {
      hull = std::move(region);
      continue;
    }
    hull->exact = hull->exact && region.exact;
    // Two parts are all of their hull where one holds the other, or where they adjoin in their only other dimension.
    bool mine_holds = true, other_holds = true, adjoin = true;
    size_t different = 0;
    for (size_t d = 0; d < region.dimensions.size(); ++d) {
      Interval& mine = hull->dimensions[d];
      const Interval& other = region.dimensions[d];
      if (same(mine.low, other.low) && same(mine.high, other.high)) continue;
      const auto low = extreme(mine.low, other.low, true), high = extreme(mine.high, other.high, false);
      if (!low || !high) return std::nullopt;
      mine_holds = mine_holds && same(*low, mine.low) && same(*high, mine.high);
      other_holds = other_holds && same(*low, other.low) && same(*high, other.high);
      const auto behind = difference(other.low, mine.high), before = difference(mine.low, other.high);
      adjoin = adjoin && behind && before && *behind <= 1 && *before <= 1;
      ++different;
      mine = {*low, *high};
    }
    if (!mine_holds && !other_holds && !(adjoin && different == 1)) hull->exact = false;
  }
  return hull;
}

bool apart(const Region& a, const Region& b) {
  arith::Analyzer analyzer;
  for (size_t d = 0; d < a.dimensions.size() && d < b.dimensions.size(); ++d) {
    const auto one = difference(a.dimensions[d].low, b.dimensions[d].high);
    const auto other = difference(b.dimensions[d].low, a.dimensions[d].high);
    if ((one && *one > 0) || (other && *other > 0)) return true;
    if (analyzer.can_prove(a.dimensions[d].low > b.dimensions[d].high) ||
        analyzer.can_prove(b.dimensions[d].low > a.dimensions[d].high))
      return true;
  }
  return false;
}

bool holds(const Region& outer, const Region& inner, const std::vector<const For*>& loops) {
  arith::Analyzer analyzer;
  for (const For* loop : loops) analyzer.bind(loop->loop_var, Range{loop->min, loop->extent});
  for (size_t d = 0; d < outer.dimensions.size(); ++d) {
    const Interval &a = outer.dimensions[d], &b = inner.dimensions[d];
    const auto low = difference(b.low, a.low), high = difference(a.high, b.high);
    if (!(low ? *low >= 0 : analyzer.can_prove(b.low >= a.low))) return false;
    if (!(high ? *high >= 0 : analyzer.can_prove(a.high >= b.high))) return false;
  }
  return true;
}

bool predicate_is_domain(const Path& path) {
  const auto& realize = *path.back().as<BlockRealize>();
  if (is_int(realize.predicate, 1)) return true;
  VarMap units;  // the only value of a variable says nothing of domains
  for (const For* loop : loops_above(path))
    if (is_int(loop->extent, 1)) units[loop->loop_var] = loop->min;
  arith::Analyzer analyzer;
  std::vector<std::unique_ptr<arith::Analyzer::Constraint>> inside;
  const Block& block = *realize.block;
  std::vector<Linear> domain;  // what is not negative inside of it
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const Range& range = block.iter_vars[i]->dom;
    const Expr end = is_int(range.min, 0) ? range.extent : range.min + range.extent;
    const Expr value = substitute(realize.iter_values[i], units);
    inside.push_back(std::make_unique<arith::Analyzer::Constraint>(analyzer, value < end));
    inside.push_back(std::make_unique<arith::Analyzer::Constraint>(analyzer, value >= range.min));
    domain.push_back(linear(end - value - 1));
    domain.push_back(linear(value - range.min));
  }
  for (const Expr& part : conjuncts(substitute(realize.predicate, units))) {
    std::optional<Linear> gap;  // what the conjunct says is not negative
    if (const auto* less = part.as<LT>()) gap = linear(less->b - less->a - 1);
    if (const auto* at_most = part.as<LE>()) gap = linear(at_most->b - at_most->a);
    const bool implied = gap && std::find(domain.begin(), domain.end(), *gap) != domain.end();
    if (!implied && !analyzer.can_prove(part)) return false;
  }
  return true;
}

bool runs_whole_domain(const BlockRealize& realize, const std::vector<const For*>& loops) {
  arith::Analyzer analyzer;
  arith::Domain domain;
  for (const For* loop : loops) {
    if (is_int(loop->extent, 0)) return false;
    domain.emplace_back(loop->loop_var, Range{loop->min, loop->extent});
    analyzer.bind(loop->loop_var, domain.back().second);
  }
  const Expr predicate = is_int(realize.predicate, 1) ? Expr() : realize.predicate;
  const auto map = arith::detect_affine(realize.iter_values, domain, predicate, analyzer);
  if (!map.ok() || !map->bijective()) return false;
  for (size_t i = 0; i < realize.iter_values.size(); ++i) {
    const Range& wanted = realize.block->iter_vars[i]->dom;
    if (!analyzer.can_prove_equal(map->extents[i], wanted.extent) ||
        !analyzer.can_prove_equal(map->indices[i].base, wanted.min))
      return false;
  }
  return true;
}

Stmt nest_over(const Ref<Block>& block, const std::vector<Interval>& parts, const std::vector<Interval>& domains,
               const Path& where, bool keep_unit_loops, Id& next) {
  // The variable of a loop of one iteration stays in what blocks are bound to: others are bound to it as well, and that
  // they touch the same elements shows where both say so alike.
  arith::Analyzer analyzer, but_units;
  for (const Stmt& s : where) {
    if (const auto* loop = s.as<For>()) {
      analyzer.bind(loop->loop_var, Range{loop->min, loop->extent});
      if (!is_int(loop->extent, 1)) but_units.bind(loop->loop_var, Range{loop->min, loop->extent});
    }
    if (const auto* outer = s.as<Block>())
      for (const IterVar& iter : outer->iter_vars) {
        analyzer.bind(iter->var, iter->dom);
        but_units.bind(iter->var, iter->dom);
      }
  }
  struct Loop {
    Var v;
    Expr extent;
    bool reduces;
  };
  std::vector<Loop> loops;
  std::vector<Expr> values;
  Expr predicate = boolean(true);
  const auto require_that = [&](const Expr& condition) {
    if (analyzer.can_prove(condition)) return;
    predicate = is_int(predicate, 1) ? condition : logical_and(predicate, condition);
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    const Expr extent = analyzer.simplify(parts[i].high - parts[i].low + 1);
    const Expr low = but_units.simplify(parts[i].low);
    Expr value = low;
    if (!is_int(extent, 1) || keep_unit_loops) {
      const Var v = var("ax_" + block->iter_vars[i]->var->name);
      analyzer.bind(v, Range{int64(0), extent});
      but_units.bind(v, Range{int64(0), extent});
      value = is_int(low, 0) ? Expr(v) : but_units.simplify(low + v);
      loops.push_back({v, extent, block->iter_vars[i]->type != IterType::spatial});
    }
    values.push_back(value);
    const Interval& domain = domains[i];
    if (!same(low, domain.low)) require_that(value >= domain.low);
    if (!same(parts[i].high, domain.high)) require_that(value <= domain.high);
  }
  std::vector<Loop> ordered;
  for (const bool reduces : {false, true})
    for (const Loop& loop : loops)
      if (loop.reduces == reduces) ordered.push_back(loop);
  loops = std::move(ordered);
  Stmt nest = realize(std::move(values), analyzer.simplify(predicate), block);
  for (size_t i = loops.size(); i-- > 0;) nest = loop_over(loops[i].v, loops[i].extent, nest, next++);
  return nest;
}

Diagnostic Move::problem(const support::Code& code, const std::string& why) const {
  return refuse(code, fmt::format("cannot compute {} at {}: {}", name_of(*realize().block),
                                  target.empty() || !target.back().is<For>() ? "the loop" : name_of(loop()), why));
}

Result<Move> move_under(const Program& program, Id block, Id loop) {
  Move move{TRY(block_path(program, block)), path_to(program.function->body, loop)};
  const Path &path = move.path, &target = move.target;
  if (target.empty() || !target.back().is<For>()) return move.problem(codes::gone, "the loop is not in the function");
  if (scope_of(path) != scope_of(target) || in_init(path) || in_init(target))
    return move.problem(codes::not_nested, "they are in different scopes");
  if (!path_to(Stmt(&move.loop()), block).empty())
    return move.problem(codes::not_nested, "the block is already inside the loop");
  if (const auto why = undecided_above(path)) return move.problem(codes::region, "it is " + *why);
  if (!predicate_is_domain(path))
    return move.problem(codes::region, "its predicate does more than to bound its variables");
  return move;
}

std::optional<Diagnostic> instances_meet(const Program& program, const Move& move) {
  if (!program.proves) return std::nullopt;
  const Conflict conflict = instances_that_meet(*program.function, move.path);
  if (!conflict) return std::nullopt;
  Diagnostic refused = move.problem(codes::dependence, "instances with other variables may write one element");
  conflict.explain(refused);
  return refused;
}

Function moved_to(const Program& program, const Move& move, const Stmt& nest, size_t at) {
  std::vector<Stmt> statements = items(move.loop().body);
  statements.insert(statements.begin() + static_cast<ptrdiff_t>(at), nest);
  const Stmt changed = with(move.loop(), [&](For& copy) { copy.body = seq(std::move(statements)); });
  return with_body(program.function,
                   replace_all(program.function->body, {{move.target.back(), changed}, {move.path.back(), nop()}}));
}

Result<size_t> place_of(int64_t index, size_t first, size_t last) {
  if (index == primitives::last_place) return last;
  if (index == primitives::first_place) return first;
  const auto place = static_cast<size_t>(index);
  if (index >= 0 && place >= first && place <= last) return place;
  return refuse(
      codes::bad_argument,
      fmt::format("there is no place {} for it in the loop: it may be {}, behind what it needs and before what "
                  "needs it",
                  index, first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last)));
}

size_t behind_all(const std::vector<Stmt>& statements, const Stmt& something) {
  size_t behind = 0;
  for (size_t i = 0; i < statements.size(); ++i)
    if (conflict(statements[i], something)) behind = i + 1;
  return behind;
}

std::vector<Interval> whole(const Buffer& buffer) {
  std::vector<Interval> bounds;
  for (const Expr& extent : buffer->shape) bounds.push_back({int64(0), Linear(linear(extent - 1)).expr()});
  return bounds;
}

std::optional<std::vector<Interval>> bounds_of(const Path& path, size_t at, const Buffer& buffer) {
  const auto& realize = *path.back().as<BlockRealize>();
  std::vector<Interval> bounds = whole(buffer);
  if (is_int(realize.predicate, 1)) return bounds;
  const Block& block = *realize.block;
  bool first = true;
  std::vector<Var> indices;
  for (const Access& access : accesses(block.init ? seq({block.init, block.body}) : block.body)) {
    if (access.buffer != buffer) continue;
    for (size_t d = 0; d < bounds.size(); ++d) {
      const Expr& index = access.region[d].min;
      if (!is_int(access.region[d].extent, 1)) return std::nullopt;
      if (as_int(index)) continue;
      const auto iter = std::find_if(block.iter_vars.begin(), block.iter_vars.end(),
                                     [&](const IterVar& v) { return index == Expr(v->var); });
      if (iter == block.iter_vars.end()) return std::nullopt;
      indices.push_back((*iter)->var);
      const Range& domain = (*iter)->dom;
      const Interval mine{domain.min, Linear(linear(domain.min + domain.extent - 1)).expr()};
      if (!first && !(same(bounds[d].low, mine.low) && same(bounds[d].high, mine.high))) return std::nullopt;
      bounds[d] = mine;
    }
    first = false;
  }
  // Of a variable that indexes nothing, the first value at least is inside.
  arith::Analyzer analyzer;
  VarMap starts;
  for (size_t p = 0; p < path.size(); ++p) {
    if (const auto* loop = path[p].as<For>()) {
      if (p < at) analyzer.bind(loop->loop_var, Range{loop->min, loop->extent});
      if (p >= at) starts[loop->loop_var] = substitute(loop->min, starts);
    }
    if (const auto* outer = path[p].as<Block>())
      for (const IterVar& iter : outer->iter_vars) analyzer.bind(iter->var, iter->dom);
  }
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const IterVar& iter = block.iter_vars[i];
    if (std::find(indices.begin(), indices.end(), iter->var) != indices.end()) continue;
    const Expr value = substitute(realize.iter_values[i], starts);
    if (!analyzer.can_prove(value >= iter->dom.min) || !analyzer.can_prove(value < iter->dom.min + iter->dom.extent))
      return std::nullopt;
  }
  return bounds;
}

Stmt copy_nest(const std::string& name, const Buffer& from, const Buffer& to, const Region& region,
               const std::vector<Interval>& bounds, const Path& where, Id& next, Id& block_id) {
  std::vector<IterVar> iters;
  std::vector<Expr> indices;
  for (size_t d = 0; d < from->shape.size(); ++d) {
    const Var v = var(fmt::format("v{}", d));
    iters.push_back(make<IterVarNode>(Range{int64(0), from->shape[d]}, v, IterType::spatial));
    indices.push_back(v);
  }
  block_id = next++;
  const Ref<Block> block = make<Block>(
      iters, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{},
      std::vector<BufferRegion>{point_region(from, indices)}, std::vector<BufferRegion>{point_region(to, indices)},
      name, Stmt{}, Stmt(make<BufferStore>(to, load(from, indices), indices, Expr())), Attributes(), block_id);
  return nest_over(block, region.dimensions, bounds, where, false, next);
}

std::optional<Diagnostic> refuse_parallel_above(const Program& before, const Function& after, const Path& path,
                                                std::string_view verb) {
  if (!before.proves) return std::nullopt;
  for (const Stmt& s : path) {
    const auto* old = s.as<For>();
    if (!old || old->kind == ForKind::serial || old->kind == ForKind::unrolled) continue;
    const For* loop = find_loop(*after, old->id);
    if (!loop) continue;
    const std::vector<Carried> carried = carried_by(*loop, *after, before.proofs);
    if (!carried.empty())
      return refuse(codes::dependence, fmt::format("cannot {} inside {}, whose iterations run at once: {}", verb,
                                                   name_of(*loop), carried[0].reason));
  }
  return std::nullopt;
}

}  // namespace lathe::schedule
