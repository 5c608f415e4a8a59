// transform: a function without reductions whose blocks choose what they compute by equality of an axis with constants,
// as those of Winograd's transforms do: number i of a few sums. Where the axis is written out, the choice is gone, and
// sums share what they have in common. Two such blocks, one behind the other: the first runs inside the loops of the
// second, for one tile and one vector of the last axis, and its values stay in registers or in the nearest cache.
#include "ir/visit.h"
#include "schedule/rules/tile/tile.h"

namespace lathe::schedule {

namespace {

// What a block's choices ask of: the left sides of `e == constant` in the conditions of its selects.
std::vector<Expr> choices(const Block& block) {
  std::vector<Expr> found;
  post_order(block.body, [&](const NodeRef& n) {
    const auto* select = n.as<Select>();
    const auto* equal = select ? select->condition.as<EQ>() : nullptr;
    if (!equal || !as_int(equal->b) || as_int(equal->a)) return;
    if (std::none_of(found.begin(), found.end(), [&](const Expr& e) { return structural_equal(e, equal->a); }))
      found.push_back(equal->a);
  });
  return found;
}

// How far one axis of the last block is written out: whole, or in pieces of `digit`; with `whole_pieces` what counts
// those is written out too.
struct Written {
  int64_t digit = 0;  // 0: the axis is whole
  bool whole_pieces = false;
};

class Transform {
 public:
  Transform(Schedule& schedule, const RuleContext& context) : schedule_(schedule), context_(context) {}

  Result<Outcome> run() {
    for (const Work& work : works(schedule_.function())) {
      if (work.reduces()) return Outcome(fmt::format("block '{}' is a reduction", work.block().name));
      if (has_effects(work.block())) return Outcome(fmt::format("block '{}' has effects", work.block().name));
    }
    std::string why = TRY(find_blocks());
    if (!why.empty()) return Outcome(why);
    const std::vector<Work> list = works(schedule_.function());
    why = look(*find(list, first_), *find(list, last_));
    if (!why.empty()) return Outcome(why);
    TRY(nest());
    for (const std::string& other : others_)
      TRY(vectorize_elementwise(schedule_, context_, TRY(schedule_.get_block(other))));
    return Outcome();
  }

 private:
  // The two blocks, what is around them inlined. Why not, where that does not come to two.
  Result<std::string> find_blocks() {
    std::vector<std::string> choosing;
    for (const Work& work : works(schedule_.function()))
      if (!choices(work.block()).empty()) choosing.push_back(work.block().name);
    if (choosing.size() != 2)
      return fmt::format("{} blocks choose by equality of an axis with constants, not two", choosing.size());
    first_ = choosing[0];
    bool behind = false;
    TRY(inline_producers(schedule_, [&](const Work& work) {
      behind = behind || work.block().name == first_;
      return work.block().name == first_ || is_costly(work.block()) || (!behind && is_conditional(work.block()));
    }));
    for (const Work& work : works(schedule_.function())) {
      const std::string& name = work.block().name;
      if (name == first_) continue;
      if (!choices(work.block()).empty() && last_.empty())
        last_ = name;
      else
        others_.push_back(name);
    }
    if (last_.empty()) return std::string("what chooses was inlined into what chooses");
    if (!is_conditional(*TRY(schedule_.get(TRY(schedule_.get_block(last_)))))) return std::string();
    // Padding around the value.
    const auto sides = TRY(split_filled_sides(schedule_, TRY(schedule_.get_block(last_))));
    if (!sides) return fmt::format("block '{}' chooses by more than what lies around its value", last_);
    others_.insert(others_.end(), sides->begin(), sides->end());
    return std::string();
  }

  // Which axes of the last block are written out: those that it chooses by, and those that tell the axes by which the
  // first does. Why not, where one is no digit of an axis.
  std::string look(const Work& first, const Work& last) {
    const Block &from = first.block(), &to = last.block();
    const auto* stored = from.body.as<BufferStore>();
    if (!stored || !to.body.is<BufferStore>()) return "a block is not one store";
    std::vector<Expr> written = choices(to);
    for (const Expr& chosen : choices(from))
      for (size_t d = 0; d < stored->indices.size(); ++d) {
        if (!(stored->indices[d] == chosen)) continue;
        post_order(to.body, [&](const NodeRef& n) {
          const auto* load = n.as<BufferLoad>();
          if (load && load->buffer == stored->buffer) written.push_back(load->indices[d]);
        });
      }
    for (const Expr& e : written)
      if (!note(to, e)) return fmt::format("block '{}' does not choose by digits of its axes", to.name);
    for (size_t v = 0; v < to.iter_vars.size(); ++v) {
      if (last.loops.size() != to.iter_vars.size() || !(last.realize->iter_values[v] == Expr(last.loops[v]->loop_var)))
        return fmt::format("block '{}' is not bound to its loops one to one", to.name);
      const auto axis = axes_.find(v);
      const auto extent = as_int(last.loops[v]->extent);
      if (axis == axes_.end()) continue;
      if (!extent || *extent == 0)
        return fmt::format("the extent of axis '{}' is not known", to.iter_vars[v]->var->name);
      const bool whole = axis->second.digit == 0 || axis->second.whole_pieces;
      if (whole && *extent > most_written)
        return fmt::format("axis '{}' of {} is too long to be written out", to.iter_vars[v]->var->name, *extent);
    }
    if (axes_.count(to.iter_vars.size() - 1)) return "the last axis is one that is chosen by";
    const auto width = as_int(last.loops.back()->extent);
    const int64_t full = context_.target.lanes(widest_bits(to));
    lanes_ = width ? largest_divisor(*width, full) : 1;
    if (lanes_ < 2 && full > 1) return "no vectors fill the last axis";
    const auto total = constant_product(last.loops);
    enough_ = !total || *total >= parallel_work;
    return "";
  }

  bool note(const Block& block, const Expr& e) {
    if (as_int(e)) return true;
    const auto axis_of = [&](const Expr& v) -> std::optional<size_t> {
      for (size_t i = 0; i < block.iter_vars.size(); ++i)
        if (v == Expr(block.iter_vars[i]->var)) return i;
      return std::nullopt;
    };
    if (const auto axis = axis_of(e)) return axes_.try_emplace(*axis).first->second.digit == 0;
    const auto* low = e.as<FloorMod>();
    const auto* high = e.as<FloorDiv>();
    if (!low && !high) return false;
    const auto axis = axis_of(low ? low->a : high->a);
    const auto digit = as_int(low ? low->b : high->b);
    if (!axis || !digit || *digit < 2) return false;
    Written& known = axes_.try_emplace(*axis, Written{*digit}).first->second;
    known.whole_pieces = known.whole_pieces || high != nullptr;
    return known.digit == *digit;
  }

  Status nest() {
    const BlockRV last = TRY(schedule_.get_block(last_));
    const std::vector<LoopRV> loops = TRY(schedule_.get_loops(last));
    std::vector<LoopRV> outer, written;
    for (size_t i = 0; i + 1 < loops.size(); ++i) {
      const auto axis = axes_.find(i);
      if (axis == axes_.end()) {
        outer.push_back(loops[i]);
      } else if (axis->second.digit == 0) {
        written.push_back(loops[i]);
      } else {
        const std::vector<LoopRV> cut = TRY(schedule_.split(loops[i], {Factor(), Factor(axis->second.digit)}));
        (axis->second.whole_pieces ? written : outer).push_back(cut[0]);
        written.push_back(cut[1]);
      }
    }
    const std::vector<LoopRV> lanes = TRY(schedule_.split(loops.back(), {Factor(), Factor(lanes_)}));
    std::vector<LoopRV> order = outer;
    order.push_back(lanes[0]);
    order.insert(order.end(), written.begin(), written.end());
    order.push_back(lanes[1]);
    TRY(schedule_.reorder(order));
    const BlockRV first = TRY(schedule_.get_block(first_));
    TRY(schedule_.compute_at(first, lanes[0]));
    TRY(schedule_.set_scope(first, 0, "local"));
    TRY(schedule_.vectorize(lanes[1]));
    for (const LoopRV& loop : written) TRY(schedule_.unroll(loop));
    std::vector<LoopRV> inside = TRY(schedule_.get_loops(first));
    inside.erase(inside.begin(), inside.begin() + static_cast<ptrdiff_t>(outer.size()) + 1);
    if (inside.empty()) return support::success();
    if (lanes_ > 1) {
      TRY(schedule_.vectorize(inside.back()));
      inside.pop_back();
    }
    for (const LoopRV& loop : inside) TRY(schedule_.unroll(loop));
    if (enough_) try_parallel(schedule_, outer);
    return support::success();
  }

  static constexpr int64_t most_written = 64;

  Schedule& schedule_;
  const RuleContext& context_;
  std::string first_, last_;
  std::vector<std::string> others_;
  std::map<size_t, Written> axes_;  // of the last block, by number
  int64_t lanes_ = 1;
  bool enough_ = false;
};

}  // namespace

Result<Outcome> transform(Schedule& schedule, const RuleContext& context) { return Transform(schedule, context).run(); }

}  // namespace lathe::schedule
