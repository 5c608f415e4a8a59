// skip_zeros: products with the zeros around a tensor are left out of sums, where asking costs less than they do.
#include "arith/analyzer.h"
#include "support/mutation.h"
#include "tir/analysis/effects.h"
#include "tir/analysis/step.h"
#include "tir/analysis/zero_border.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(skip_zeros_one_more, "tir_test", "the first element inside of a border of zeros is left out, too");

namespace {

using arith::Analyzer;

// A condition is asked once for at least so many iterations, or for so many products that are written out.
constexpr int64_t iterations_worth_asking = 8, products_worth_asking = 256;

// Whether the statement only tells the machine what may come.
bool only_hints(const Stmt& s) {
  if (const auto* realize = s.as<BlockRealize>()) return !realize->block->init && only_hints(realize->block->body);
  if (const auto* list = s.as<SeqStmt>())
    return std::all_of(list->seq.begin(), list->seq.end(), [](const Stmt& part) { return only_hints(part); });
  const auto* call = s.as<Evaluate>() ? s.as<Evaluate>()->value.as<Call>() : nullptr;
  return call && is_hint(*call);
}

// Whether nothing but `inner`, and hints, run in the loop.
bool holds_only(const For& loop, const Node* inner) {
  if (loop.body.get() == inner) return true;
  const auto* list = loop.body.as<SeqStmt>();
  return list && std::all_of(list->seq.begin(), list->seq.end(),
                             [&](const Stmt& part) { return part.get() == inner || only_hints(part); });
}

bool is_written_out(const For& loop) {
  return is_int(loop.extent, 1) || (loop.kind == ForKind::unrolled && as_int(loop.extent));
}

class ZeroSkipping : public TirRewriter {
 protected:
  Stmt visit_stmt(Stmt s) override {
    if (const auto* loop = s.as<For>()) {
      const Analyzer::Scope inside(known_);
      known_.bind(loop->loop_var, Range{loop->min, loop->extent});
      loops_.push_back(loop);
      Stmt result = children(s);
      loops_.pop_back();
      const auto asked = around_.find(loop);
      return asked == around_.end() ? result : Stmt(make<IfThenElse>(asked->second, std::move(result)));
    }
    if (const auto* realize = s.as<BlockRealize>()) return realized(*realize, s);
    return children(std::move(s));
  }
  Expr visit_expr(Expr e) override { return e; }

 private:
  Stmt realized(const BlockRealize& realize, const Stmt& self) {
    const Block& block = *realize.block;
    for (size_t i = 0; i < block.iter_vars.size(); ++i)
      values_[block.iter_vars[i]->var] = substitute(realize.iter_values[i], values_);
    const auto read = block.init ? std::nullopt : bordered_read(block);
    if (!read) {
      // Loops around a block that holds others are none that a condition inside goes around.
      const size_t outside = std::exchange(first_, loops_.size());
      Stmt result = children(self);
      first_ = outside;
      return result;
    }
    Expr predicate = realize.predicate;
    for (size_t d = 0; d < read->load->indices.size(); ++d) {
      const Expr index = known_.simplify(substitute(read->load->indices[d], values_));
      const int64_t before = read->border.before[d] + (support::flip(skip_zeros_one_more) ? 1 : 0);
      const Expr end = known_.simplify(read->load->buffer->shape[d] - read->border.after[d]);
      if (before > 0) ask({index, int64(before), true}, self.get(), predicate);
      if (read->border.after[d] > 0) ask({index, end, false}, self.get(), predicate);
    }
    if (predicate.same_as(realize.predicate)) return self;
    return with(realize, [&](BlockRealize& copy) { copy.predicate = predicate; });
  }

  // That an index lies behind the zeros before a tensor, or before those behind it.
  struct Inside {
    Expr index, end;
    bool behind;
    Expr condition() const { return behind ? ge(index, end) : lt(index, end); }
  };

  // Where a condition is asked: around a loop, for so many iterations, and products of vectors in these.
  struct Place {
    size_t outermost;
    int64_t iterations = 1, products = 1;
    Expr condition = {};
    bool is_worth_it() const { return iterations >= iterations_worth_asking || products >= products_worth_asking; }
  };

  // The outermost loop that does nothing else than the block and does not change the answer. With `any`, loops that are
  // written out may: it is asked whether any of their iterations is inside.
  Place place_for(Inside asked, const Node* block, bool any) {
    Place place{loops_.size()};
    const Node* inner = block;
    for (; place.outermost > first_; --place.outermost) {
      const For& loop = *loops_[place.outermost - 1];
      if (!holds_only(loop, inner)) break;
      if (uses_var(asked.index, loop.loop_var) || uses_var(asked.end, loop.loop_var)) {
        const auto last = any && is_written_out(loop) ? as_int(loop.min + loop.extent - 1) : std::nullopt;
        const Var& v = loop.loop_var;
        const auto step = step_of(asked.index, v, known_);
        if (!last || !step || uses_var(asked.end, v)) break;
        const Expr value = asked.behind == (*step > 0) ? constant(v->dtype, *last) : loop.min;
        asked.index = known_.simplify(substitute(asked.index, {{v, value}}));
      }
      if (loop.kind != ForKind::vectorized) {
        const int64_t turns = std::min(as_int(loop.extent).value_or(iterations_worth_asking), products_worth_asking);
        if (!is_written_out(loop)) place.iterations = std::min(place.iterations * turns, products_worth_asking);
        place.products = std::min(place.products * turns, products_worth_asking);
      }
      inner = &loop;
    }
    place.condition = asked.condition();
    return place;
  }

  // Puts the condition around the outermost loop that it does not vary in and that does nothing else, or, where it is
  // decided when loops are written out, at the block; else whether a tile has any element inside, around the tile's
  // loops. Elsewhere it is not asked: zeros are added.
  void ask(const Inside& inside, const Node* block, Expr& predicate) {
    const Expr condition = inside.condition();
    if (known_.can_prove(condition)) return;
    const std::vector<Var> vars = free_vars(condition);
    const bool decided = std::all_of(vars.begin(), vars.end(), [&](const Var& v) {
      return std::any_of(loops_.begin(), loops_.end(),
                         [&](const For* loop) { return loop->loop_var == v && is_written_out(*loop); });
    });
    for (const bool any : {false, true}) {
      const Place place = place_for(inside, block, any);
      if (place.is_worth_it()) {
        if (known_.can_prove(place.condition)) return;
        Expr& asked = around_[loops_[place.outermost]];
        asked = asked ? logical_and(asked, place.condition) : place.condition;
        return;
      }
      if (decided) break;
    }
    if (decided) predicate = is_int(predicate, 1) ? condition : logical_and(predicate, condition);
  }

  Analyzer known_;
  VarMap values_;                  // of the variables of blocks, by those of loops
  std::vector<const For*> loops_;  // outermost first
  size_t first_ = 0;               // the outermost loop inside the present block
  std::unordered_map<const For*, Expr> around_;
};

}  // namespace

Result<IRModule> skip_zeros(IRModule module, const PassContext& context) {
  return on_each_body(std::move(module), context,
                      [](const Stmt& body, const PassContext&) { return ZeroSkipping()(body); });
}

}  // namespace lathe::tir
