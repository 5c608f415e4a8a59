#include "te/loops/infer_blocks.h"

#include "arith/affine.h"
#include "ir/visit.h"
#include "support/mutation.h"
#include "te/codes.h"
#include "tir/analysis/regions.h"

namespace lathe::te {

LATHE_FAULT(infer_blocks_takes_order_for_spatial, "te_test", "a loop whose iterations build on one another is spatial");

namespace {

using namespace tir;  // NOLINT: the subject of this file
using ir::IterType;
using ir::IterVar;
using ir::IterVarNode;
using ir::Range;

bool has_loops(const Stmt& s) {
  bool found = false;
  ir::pre_order(s, [&](const NodeRef& n) {
    found = found || n->node_class().name == For::kind_name;
    return !found;
  });
  return found;
}

bool has_loads(const NodeRef& n, const Buffer& of = {}) {
  bool found = false;
  ir::post_order(n, [&](const NodeRef& node) {
    const auto* load = node.as<BufferLoad>();
    found = found || (load && (!of || load->buffer == of));
  });
  return found;
}

bool same_indices(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return ir::structural_equal(x, y); });
}

// Whether `store` is C[i] = C[i] op e for an op whose order is free, where e does not read C.
bool accumulates(const BufferStore& store) {
  const auto split = [&](const Expr& a, const Expr& b, bool commutes) {
    const auto is_before = [&](const Expr& e) {
      const auto* load = e.as<BufferLoad>();
      return load && load->buffer == store.buffer && same_indices(load->indices, store.indices);
    };
    return (is_before(a) && !has_loads(b, store.buffer)) || (commutes && is_before(b) && !has_loads(a, store.buffer));
  };
  if (const auto* n = store.value.as<Add>()) return split(n->a, n->b, true);
  if (const auto* n = store.value.as<Mul>()) return split(n->a, n->b, true);
  if (const auto* n = store.value.as<Max>()) return split(n->a, n->b, true);
  if (const auto* n = store.value.as<Min>()) return split(n->a, n->b, true);
  if (const auto* n = store.value.as<Sub>()) return split(n->a, n->b, false);
  return false;
}

class BlockMaker {
 public:
  Stmt statement(const Stmt& s) {
    if (const auto* loop = s.as<For>()) return in_loop(*loop, [&] { return statement(loop->body); });
    if (const auto* list = s.as<SeqStmt>()) return sequence(list->seq);
    if (const auto* branch = s.as<IfThenElse>(); branch && has_loops(s) && !has_loads(branch->condition)) {
      Stmt then_case = guarded(branch->condition, branch->then_case);
      if (!branch->else_case) return then_case;
      return seq({std::move(then_case), guarded(ir::logical_not(branch->condition), branch->else_case)});
    }
    return is_nop(s) ? s : block(s, {});
  }

 private:
  Stmt in_loop(const For& loop, const std::function<Stmt()>& inside) {
    loops_.push_back(&loop);
    Stmt body = inside();
    loops_.pop_back();
    return ir::with(loop, [&](For& copy) { copy.body = std::move(body); });
  }

  Stmt guarded(const Expr& condition, const Stmt& s) {
    guards_.push_back(condition);
    Stmt made = statement(s);
    guards_.pop_back();
    return made;
  }

  Stmt sequence(const std::vector<Stmt>& list) {
    std::vector<Stmt> made;
    for (size_t i = 0; i < list.size(); ++i) {
      if (i + 1 < list.size())
        if (Stmt merged = reduction(list[i], list[i + 1])) {
          made.push_back(std::move(merged));
          ++i;
          continue;
        }
      made.push_back(statement(list[i]));
    }
    return seq(std::move(made));
  }

  // `first` as the init of the accumulation that `second` is a nest of loops around, or null.
  Stmt reduction(const Stmt& first, const Stmt& second) {
    const auto* start = first.as<BufferStore>();
    if (!start || has_loads(start->value, start->buffer)) return {};
    std::vector<const For*> nest;
    Stmt inner = second;
    while (const auto* loop = inner.as<For>()) {
      nest.push_back(loop);
      inner = loop->body;
    }
    const auto* store = inner.as<BufferStore>();
    if (!store || nest.empty() || store->buffer != start->buffer || !same_indices(store->indices, start->indices) ||
        !accumulates(*store))
      return {};
    for (const For* loop : nest) {
      for (const Expr& index : store->indices)
        if (ir::uses_var(index, loop->loop_var)) return {};
      // A loop that does not run would leave the init out, too.
      if (!analyzer_.can_prove_greater_equal(loop->extent, 1)) return {};
    }
    return nested(nest, 0, [&] { return block(inner, first); });
  }
  Stmt nested(const std::vector<const For*>& nest, size_t at, const std::function<Stmt()>& inside) {
    if (at == nest.size()) return inside();
    return in_loop(*nest[at], [&] { return nested(nest, at + 1, inside); });
  }

  // For each loop around, what its iterations are to `s`.
  std::vector<IterType> kinds_of(const Stmt& s) {
    std::vector<IterType> kinds(loops_.size(), IterType::opaque);
    std::vector<const BufferStore*> stores;
    ir::pre_order(s, [&](const NodeRef& n) {
      if (const auto* store = n.as<BufferStore>()) stores.push_back(store);
      return true;
    });
    if (stores.empty()) return kinds;
    const bool reduces = stores.size() == 1 && s.is<BufferStore>() && accumulates(*stores[0]);
    arith::Domain domain;
    std::vector<size_t> choosing;
    for (size_t l = 0; l < loops_.size(); ++l) {
      const auto chooses = [&](const BufferStore* store) {
        return std::any_of(store->indices.begin(), store->indices.end(),
                           [&](const Expr& index) { return ir::uses_var(index, loops_[l]->loop_var); });
      };
      if (std::all_of(stores.begin(), stores.end(), chooses)) {
        choosing.push_back(l);
        domain.emplace_back(loops_[l]->loop_var, Range{loops_[l]->min, loops_[l]->extent});
      } else if (reduces && std::none_of(stores.begin(), stores.end(), chooses)) {
        kinds[l] = IterType::reduce;
      }
    }
    for (const BufferStore* store : stores) {
      if (support::flip(infer_blocks_takes_order_for_spatial)) continue;
      if (reads_other_elements(s, *store)) return kinds;
      const auto map = arith::detect_affine(turned(store->indices, domain), domain, {}, analyzer_);
      if (!map.ok() || !map->injective) return kinds;
    }
    for (const size_t l : choosing) kinds[l] = IterType::spatial;
    return kinds;
  }

  // `indices` with those loops run from their end that count an index down: the same elements are written.
  std::vector<Expr> turned(std::vector<Expr> indices, const arith::Domain& domain) {
    for (const auto& [v, range] : domain) {
      const auto falls = [&, v = v](const Expr& index) {
        const Expr next = ir::substitute(index, ir::VarMap{{v, v + ir::constant(v->dtype, 1)}});
        return ir::uses_var(index, v) && analyzer_.can_prove_less(next - index, 0);
      };
      if (std::none_of(indices.begin(), indices.end(), falls)) continue;
      const Expr last = range.min + range.extent - ir::constant(v->dtype, 1);
      for (Expr& index : indices)
        index = analyzer_.simplify(ir::substitute(index, ir::VarMap{{v, range.min + last - v}}));
    }
    return indices;
  }

  // Whether `s` reads what `store` writes, or its buffer elsewhere, in another instance.
  static bool reads_other_elements(const Stmt& s, const BufferStore& store) {
    bool found = false;
    ir::post_order(s, [&](const NodeRef& n) {
      if (const auto* load = n.as<BufferLoad>(); load && load->buffer == store.buffer)
        found = found || !same_indices(load->indices, store.indices);
      if (const auto* other = n.as<BufferStore>(); other && other->buffer == store.buffer)
        found = found || !same_indices(other->indices, store.indices);
    });
    return found;
  }

  Stmt block(const Stmt& s, const Stmt& init) {
    const std::vector<IterType> kinds = kinds_of(s);
    std::vector<IterVar> axes;
    std::vector<Expr> values;
    ir::VarMap renamed;
    arith::Domain domain;
    for (const For* loop : loops_) domain.emplace_back(loop->loop_var, Range{loop->min, loop->extent});
    for (size_t l = 0; l < loops_.size(); ++l) {
      const Var& loop_var = loops_[l]->loop_var;
      const Var axis = ir::var("v" + loop_var->name, loop_var->dtype);
      axes.push_back(ir::make<IterVarNode>(range_of_loop(domain, l, analyzer_), axis, kinds[l]));
      values.emplace_back(loop_var);
      renamed.emplace(loop_var, axis);
    }
    Expr predicate = ir::boolean(true);
    for (const Expr& guard : guards_) predicate = ir::logical_and(predicate, guard);
    Ref<Block> made = ir::make<Block>(std::move(axes), std::vector<Buffer>{}, std::vector<MatchBufferRegion>{},
                                      std::vector<BufferRegion>{}, std::vector<BufferRegion>{}, name_of(s),
                                      init ? ir::substitute(init, renamed) : Stmt(), ir::substitute(s, renamed));
    const Regions regions = infer_regions(*made);
    made = ir::with(*made, [&](Block& copy) {
      copy.reads = regions.reads;
      copy.writes = regions.writes;
    });
    return ir::with_origin(Stmt(ir::make<BlockRealize>(std::move(values), predicate, made)), s->origin());
  }

  std::string name_of(const Stmt& s) {
    std::string name = "block";
    bool named = false;
    ir::pre_order(s, [&](const NodeRef& n) {
      const auto* store = n.as<BufferStore>();
      if (store && !std::exchange(named, true)) name = store->buffer->name;
      return !named;
    });
    const int count = names_[name]++;
    return count == 0 ? name : name + "_" + std::to_string(count);
  }

  arith::Analyzer analyzer_;
  std::vector<const For*> loops_;
  std::vector<Expr> guards_;
  std::unordered_map<std::string, int> names_;
};

}  // namespace

Range range_of_loop(const arith::Domain& loops, size_t at, arith::Analyzer& analyzer) {
  const auto& [var, range] = loops[at];
  Domains outer;
  const auto varies = [&](const Expr& e) {
    const std::vector<Var> vars = ir::free_vars(e);
    return std::any_of(vars.begin(), vars.end(), [&](const Var& v) {
      return std::any_of(loops.begin(), loops.begin() + static_cast<ptrdiff_t>(at),
                         [&](const auto& loop) { return loop.first == v; });
    });
  };
  if (!varies(range.min) && !varies(range.extent)) return range;
  for (size_t l = 0; l < at; ++l) outer[loops[l].first.get()] = range_of_loop(loops, l, analyzer);
  const auto low = interval_of(analyzer.simplify(range.min), outer);
  const auto high = interval_of(analyzer.simplify(range.min + range.extent), outer);
  if (!low || !high)
    throw support::DiagnosticError(support::Diagnostic{
        .code = codes::unbounded_loop,
        .message =
            "the bounds of loop '" + var->name + "' change with the loops around it, and by how much does not show"});
  return {analyzer.simplify(low->min), analyzer.simplify(ir::max(high->max - low->min, ir::int64(0)))};
}

Stmt infer_blocks(const Stmt& body) { return BlockMaker().statement(body); }

}  // namespace lathe::te
