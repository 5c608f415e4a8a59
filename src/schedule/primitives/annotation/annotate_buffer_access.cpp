// annotate_buffer_access: a block says itself which part of a buffer it reads or writes, and the lowering takes it at
// its word where it makes memory smaller (compact_buffers).
#include "schedule/analysis/access.h"
#include "schedule/analysis/conflicts.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"
#include "tir/analysis/regions.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(annotate_buffer_access_believes_ends, "schedule_test",
            "annotate_buffer_access: where a region ends is believed");

namespace {

// An element that the access touches and that is outside of `region` (both in loop variables).
arith::PointSearch element_outside(const Access& access, const std::vector<Range>& region, const Ranges& around) {
  Expr touched = in_range(access.loops), inside = boolean(true);
  for (const Expr& condition : {access.predicate, access.guard})
    if (condition) touched = logical_and(touched, condition);
  for (size_t d = 0; d < region.size(); ++d) {
    const Var element = var(fmt::format("element{}", d));
    const Range& range = access.region[d];
    touched = logical_and(touched, logical_and(element >= range.min, element < range.min + range.extent));
    inside = logical_and(inside, element >= region[d].min);
    if (!support::flip(annotate_buffer_access_believes_ends))
      inside = logical_and(inside, element < region[d].min + region[d].extent);
  }
  for (const auto& [v, range] : around)
    touched = logical_and(touched, logical_and(v >= range.min, v < range.min + range.extent));
  return arith::find_point(logical_and(touched, logical_not(inside)));
}

}  // namespace

Result<Edit> annotate_buffer_access(const Program& program, Id id, BufferIndex which, const IndexMap& ranges) {
  const Path path = TRY(block_path(program, id));
  const auto& realized = *path.back().as<BlockRealize>();
  const Ref<Block> block = realized.block;
  const char* const verb = which.writes ? "writes" : "reads";
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("cannot say what {} {}: {}", name_of(*block), verb, why));
  };
  const std::vector<BufferRegion>& declared = which.writes ? block->writes : block->reads;
  if (which.number < 0 || which.number >= static_cast<int64_t>(declared.size()))
    return problem(codes::bad_argument,
                   fmt::format("it {} {} buffers, there is no number {}", verb, declared.size(), which.number));
  const Buffer buffer = declared[static_cast<size_t>(which.number)]->buffer;
  if (ranges.from.size() != block->iter_vars.size())
    return problem(codes::bad_argument, fmt::format("the ranges are of {} variables, and it has {}", ranges.from.size(),
                                                    block->iter_vars.size()));
  if (ranges.to.size() != 2 * buffer->shape.size())
    return problem(codes::bad_argument,
                   fmt::format("{} bounds are given for the {} axes of '{}', two are needed for each", ranges.to.size(),
                               buffer->shape.size(), buffer->name));

  for (const Expr& bound : ranges.to)
    for (const Var& v : free_vars(bound))
      if (std::find(ranges.from.begin(), ranges.from.end(), v) == ranges.from.end())
        return problem(codes::bad_argument, fmt::format("the ranges use '{}', which is no variable of it", v->name));

  std::vector<Expr> variables;
  for (const IterVar& iter : block->iter_vars) variables.push_back(iter->var);
  const std::vector<Expr> bounds = ranges(variables);
  const VarMap values = bindings(realized);
  arith::Analyzer analyzer;
  std::vector<Range> region, bound;  // in the block's variables, and in the loops'
  for (size_t d = 0; d < buffer->shape.size(); ++d) {
    const Expr low = analyzer.simplify(bounds[2 * d]);
    region.push_back({low, analyzer.simplify(bounds[2 * d + 1] - bounds[2 * d])});
    bound.push_back({substitute(low, values), substitute(region.back().extent, values)});
  }
  const bool reads_declared = std::any_of(block->reads.begin(), block->reads.end(),
                                          [&](const BufferRegion& other) { return other->buffer == buffer; });
  const Ranges around = ranges_around(*program.function, id);
  for (const Access& access : accesses(path.back())) {
    if (!program.proves || access.buffer != buffer) continue;
    if (access.opaque) return problem(codes::access, fmt::format("the address of '{}' is taken", buffer->name));
    // A reduction reads what it says it writes.
    const bool meant = access.writes ? which.writes : !which.writes || !reads_declared;
    if (!meant) continue;
    const arith::PointSearch search = element_outside(access, bound, around);
    if (search.outcome == arith::PointSearch::none) continue;
    const bool found = search.outcome == arith::PointSearch::found;
    Diagnostic refused =
        problem(codes::access, fmt::format("'{}' is touched outside of the given ranges", buffer->name));
    if (search.outcome == arith::PointSearch::spent) refused.note("the budget of the polyhedral proof is spent");
    if (search.outcome == arith::PointSearch::undecided)
      refused.note("which elements are touched depends on values that are not known before it runs");
    std::string where;
    for (const For* loop : loops_above(path))
      if (const auto it = search.values.find(loop->loop_var); found && it != search.values.end())
        where += fmt::format("{}{} = {}", where.empty() ? "" : ", ", loop->loop_var->name, it->second);
    if (!where.empty()) refused.note("for instance where " + where);
    return refused;
  }

  const Stmt changed = with(realized, [&](BlockRealize& copy) {
    copy.block = with(*block, [&](Block& inner) {
      std::vector<BufferRegion>& list = which.writes ? inner.writes : inner.reads;
      list[static_cast<size_t>(which.number)] = make<BufferRegionNode>(buffer, region);
      const char* const key = which.writes ? explicit_write_region_key : explicit_read_region_key;
      ir::Value::List numbers;
      if (const auto* before = inner.annotations.get<ir::Value::List>(key)) numbers = *before;
      const auto same_number = [&](const ir::Value& value) {
        const auto* number = value.get<int64_t>();
        return number && *number == which.number;
      };
      if (std::none_of(numbers.begin(), numbers.end(), same_number)) numbers.push_back(which.number);
      inner.annotations.set(key, numbers);
    });
  });
  return edit(program, path.back(), changed, program.next);
}

}  // namespace lathe::schedule::primitives
