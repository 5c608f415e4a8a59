#include "ir/visit.h"
#include "schedule/rules/tile/tile.h"

namespace lathe::schedule {

const Work* only_reduction(const std::vector<Work>& list, std::string& why) {
  const Work* found = nullptr;
  for (const Work& work : list) {
    if (has_effects(work.block())) {
      why = fmt::format("block '{}' has effects", work.block().name);
      return nullptr;
    }
    if (!work.reduces()) continue;
    if (found) {
      why = fmt::format("blocks '{}' and '{}' are both reductions", found->block().name, work.block().name);
      return nullptr;
    }
    found = &work;
  }
  if (!found) why = "no block is a reduction";
  if (!found || constant_product(found->loops) != 0) return found;
  why = "there is nothing to compute";
  return nullptr;
}

bool is_read_often(const Work& work) { return is_conditional(work.block()) || is_costly(work.block()); }

Result<Surroundings> inline_around(Schedule& schedule, const std::string& reduction,
                                   support::function_ref<bool(const Work&)> keep) {
  // What follows the reduction is computed once an element wherever it stands.
  std::set<std::string> following;
  bool after = false;
  for (const Work& work : works(schedule.function())) {
    if (after) following.insert(work.block().name);
    after = after || work.block().name == reduction;
  }
  TRY(inline_producers(schedule, [&](const Work& work) { return !following.count(work.block().name) && keep(work); }));
  const std::vector<Work> list = works(schedule.function());
  const Work* work = find(list, reduction);
  Surroundings result;
  if (!work) return result;
  for (const Work& other : list)
    if (&other != work) (&other < work ? result.before : result.behind).push_back(other.block().name);
  // With several blocks behind it the value is wanted in memory anyway.
  if (result.behind.size() == 1 && !work->is_output) {
    result.epilogue = result.behind[0];
    result.behind.clear();
    // Padding around the value: the tile writes inside, the sides are filled by themselves, of nothing that is
    // computed.
    if (const auto sides = TRY(split_filled_sides(schedule, TRY(schedule.get_block(result.epilogue)))))
      result.behind = *sides;
  }
  return result;
}

}  // namespace lathe::schedule
