// The methods of Schedule that take decisions and record them.
#include <cmath>

#include "schedule/analysis/access.h"
#include "schedule/analysis/tree.h"
#include "schedule/codes.h"
#include "schedule/primitives/primitives.h"
#include "schedule/schedule.h"
#include "support/mutation.h"

namespace lathe::schedule {

LATHE_FAULT(enter_postproc_forgets, "schedule_test", "enter_postproc: the trace does not say where the search ends");

void Schedule::enter_postproc() {
  if (!support::flip(enter_postproc_forgets)) record("enter_postproc", {}, {}, {});
}

Result<ExprRV> Schedule::decide(Decider& decider, const DecisionPoint& point) {
  const std::string name = point.rule + "." + point.name;
  const int64_t answer = decider.decide(point);
  const auto found = std::find(point.candidates.begin(), point.candidates.end(), answer);
  if (found == point.candidates.end())
    return refuse(codes::bad_argument, fmt::format("decision {} of '{}' is not one of its candidates [{}]", answer,
                                                   name, fmt::join(point.candidates, ", ")));
  return sample_categorical(point.candidates, {}, found - point.candidates.begin(), name);
}

Result<ExprRV> Schedule::sample_categorical(const std::vector<int64_t>& candidates, const std::vector<double>& probs,
                                            int64_t decision, const std::string& name) {
  if (!probs.empty() && probs.size() != candidates.size())
    return refuse(codes::bad_argument,
                  fmt::format("{} candidates with {} probabilities", candidates.size(), probs.size()));
  for (const double probability : probs)
    if (!(probability >= 0 && std::isfinite(probability)))
      return refuse(codes::bad_argument, fmt::format("{} is no probability", probability));
  if (decision < 0 || decision >= static_cast<int64_t>(candidates.size()))
    return refuse(codes::bad_argument,
                  fmt::format("the decision {} is no index of {} candidates", decision, candidates.size()));
  const ExprRV value = add_number(candidates[static_cast<size_t>(decision)]);
  NamedArguments attributes{{"candidates", Argument::List(candidates.begin(), candidates.end())}};
  if (!probs.empty()) attributes.emplace_back("probs", Argument::List(probs.begin(), probs.end()));
  attributes.emplace_back("decision", decision);
  if (!name.empty()) attributes.emplace_back("name", name);
  record("sample_categorical", {}, std::move(attributes), {value});
  return value;
}

namespace {

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> found;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    found.push_back(d);
    if (d != n / d) found.push_back(n / d);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

Result<int64_t> Schedule::extent_to_tile(LoopRV loop, int64_t n, int64_t max_innermost_factor) const {
  const Ref<For> node = TRY(get(loop));
  const auto problem = [&](std::string why) {
    return refuse(codes::bad_argument, fmt::format("cannot sample a tile of {}: {}", name_of(*node), why));
  };
  const auto extent = as_int(node->extent);
  if (!extent) return problem("its extent is not a constant");
  if (*extent < 1) return problem(fmt::format("its extent is {}", *extent));
  if (n < 1) return problem(fmt::format("{} factors", n));
  if (max_innermost_factor < 1) return problem(fmt::format("max_innermost_factor is {}", max_innermost_factor));
  return *extent;
}

Result<std::vector<ExprRV>> Schedule::sample_perfect_tile(Decider& decider, const std::string& rule, LoopRV loop,
                                                          int64_t n, int64_t max_innermost_factor) {
  int64_t rest = TRY(extent_to_tile(loop, n, max_innermost_factor));
  const std::string subject = TRY(get(loop))->loop_var->name;
  // From the innermost out; the outermost takes what is left.
  std::vector<int64_t> decision(static_cast<size_t>(n), 1);
  for (size_t i = decision.size(); i-- > 1;) {
    std::vector<int64_t> candidates = divisors(rest);
    if (i + 1 == decision.size()) std::erase_if(candidates, [&](int64_t d) { return d > max_innermost_factor; });
    const int64_t preferred = i + 1 == decision.size() ? candidates.back() : 1;
    decision[i] = decider.decide({rule, fmt::format("tile_{}", i), subject, candidates, preferred});
    if (std::find(candidates.begin(), candidates.end(), decision[i]) == candidates.end()) decision[i] = preferred;
    rest /= decision[i];
  }
  decision[0] = rest;
  // One factor is the extent itself, whatever the largest that was wished for.
  return sample_perfect_tile(loop, n, n == 1 ? std::max(rest, max_innermost_factor) : max_innermost_factor, decision);
}

Result<std::vector<ExprRV>> Schedule::sample_perfect_tile(LoopRV loop, int64_t n, int64_t max_innermost_factor,
                                                          const std::vector<int64_t>& decision) {
  int64_t rest = TRY(extent_to_tile(loop, n, max_innermost_factor));
  bool fits = static_cast<int64_t>(decision.size()) == n;
  for (const int64_t factor : decision) {
    fits = fits && factor > 0 && rest % factor == 0;
    if (fits) rest /= factor;
  }
  if (!fits || rest != 1 || decision.back() > max_innermost_factor)
    return refuse(codes::bad_argument,
                  fmt::format("decision [{}] is no {} factors of {}'s extent, the last of at most {}",
                              fmt::join(decision, ", "), n, name_of(*TRY(get(loop))), max_innermost_factor));
  std::vector<ExprRV> factors;
  for (const int64_t factor : decision) factors.push_back(add_number(factor));
  record("sample_perfect_tile", {loop},
         {{"n", n},
          {"max_innermost_factor", max_innermost_factor},
          {"decision", Argument::List(decision.begin(), decision.end())}},
         {factors.begin(), factors.end()});
  return factors;
}

Result<std::vector<ExprRV>> Schedule::sample_partitioned_tile(LoopRV loop, int64_t n, int64_t partition_pos,
                                                              int64_t innerpart_factor,
                                                              const std::vector<int64_t>& decision) {
  const int64_t extent = TRY(extent_to_tile(loop, n, 1));
  int64_t product = 1, inner = 1;
  bool fits = static_cast<int64_t>(decision.size()) == n && partition_pos >= 0 && partition_pos <= n;
  for (size_t i = 0; fits && i < decision.size(); ++i) {
    fits = decision[i] > 0 && (extent / product) % decision[i] == 0;
    if (!fits) break;
    product *= decision[i];
    if (static_cast<int64_t>(i) >= partition_pos) inner *= decision[i];
  }
  if (!fits || product != extent || innerpart_factor < 1 || inner % innerpart_factor != 0)
    return refuse(codes::bad_argument,
                  fmt::format("decision [{}] is no {} factors of {}'s extent, of which those from number {} on make a "
                              "multiple of {}",
                              fmt::join(decision, ", "), n, name_of(*TRY(get(loop))), partition_pos, innerpart_factor));
  std::vector<ExprRV> factors;
  for (const int64_t factor : decision) factors.push_back(add_number(factor));
  record("sample_partitioned_tile", {loop},
         {{"n", n},
          {"partition_pos", partition_pos},
          {"innerpart_factor", innerpart_factor},
          {"decision", Argument::List(decision.begin(), decision.end())}},
         {factors.begin(), factors.end()});
  return factors;
}

namespace {

// The loops around the block's first consumer, outermost first.
std::vector<Id> consumer_loops(const PrimFunc& function, Id block) {
  const Path path = path_to(function.body, block);
  const BlockRealize* scope = scope_of(path);
  if (!scope) return {};
  const std::vector<Buffer> written = buffers_written(path.back());
  for (const Ref<BlockRealize>& other : outer_blocks(scope->block->body)) {
    if (other->block->id == block) continue;
    for (const Buffer& buffer : buffers_read(other))
      if (std::find(written.begin(), written.end(), buffer) != written.end()) {
        std::vector<Id> ids;
        for (const For* loop : loops_above(path_to(function.body, other->block->id))) ids.push_back(loop->id);
        return ids;
      }
  }
  return {};
}

}  // namespace

Result<std::vector<int64_t>> Schedule::compute_locations(BlockRV block) const {
  const Handle handle = *TRY(find(block));
  const Program before = program(handle.function);
  std::vector<int64_t> places;
  if (primitives::compute_inline(before, handle.id).ok()) places.push_back(inline_location);
  places.push_back(root_location);
  const std::vector<Id> loops = consumer_loops(*before.function, handle.id);
  for (size_t i = 0; i < loops.size(); ++i)
    if (primitives::compute_at(before, handle.id, loops[i], false).ok()) places.push_back(static_cast<int64_t>(i));
  return places;
}

Result<LoopRV> Schedule::sample_compute_location(BlockRV block, int64_t decision) {
  const Handle handle = *TRY(find(block));
  const std::vector<Id> loops = consumer_loops(*program(handle.function).function, handle.id);
  if (decision < inline_location || decision >= static_cast<int64_t>(loops.size()))
    return refuse(codes::bad_argument,
                  fmt::format("decision {} is no place to compute {} at: its consumer has {} loops", decision,
                              name_of(*TRY(get(block))), loops.size()));
  const LoopRV place = add_loop(handle.function, decision == inline_location ? inline_id
                                                 : decision == root_location ? root_id
                                                                             : loops[static_cast<size_t>(decision)]);
  record("sample_compute_location", {block}, {{"decision", decision}}, {place});
  return place;
}

}  // namespace lathe::schedule
