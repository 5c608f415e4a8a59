#include "schedule/analysis/access.h"

#include "arith/analyzer.h"
#include "schedule/analysis/tree.h"
#include "schedule/codes.h"
#include "tir/analysis/regions.h"
#include "tir/intrinsics/context.h"

namespace lathe::schedule {

namespace {

// What the block or one inside it allocates: nobody outside sees it.
std::vector<Buffer> allocated_inside(const Block& block) {
  std::vector<Buffer> found = block.alloc_buffers;
  each_statement(block.init ? seq({block.init, block.body}) : block.body, [&](const Stmt& s) {
    if (const auto* inner = s.as<Block>())
      found.insert(found.end(), inner->alloc_buffers.begin(), inner->alloc_buffers.end());
    if (const auto* declared = s.as<DeclBuffer>()) found.push_back(declared->buffer);
  });
  return found;
}

class Collector {
 public:
  std::vector<Access> found;

  // The views of a block that the walk begins inside of, and what it hides.
  void enter(const Block& block) {
    for (const MatchBufferRegion& match : block.match_buffers) aliases_[match->buffer] = match->source;
    if (block.annotations.contains(hidden_access_key)) hiding_.emplace_back(&block, allocated_inside(block));
  }

  void statement(const Stmt& s) {
    if (!s) return;
    if (const auto* loop = s.as<For>()) {
      expression(loop->min);
      expression(loop->extent);
      loops_.push_back(loop);
      statement(loop->body);
      loops_.pop_back();
    } else if (const auto* realize = s.as<BlockRealize>()) {
      block(*realize);
    } else if (const auto* store = s.as<BufferStore>()) {
      expression(store->value);
      for (const Expr& index : store->indices) expression(index);
      if (store->predicate) expression(store->predicate);
      add(store->buffer, store->indices, true, store->predicate);
    } else if (const auto* branch = s.as<IfThenElse>()) {
      expression(branch->condition);
      ++conditions_;
      under(branch->condition, [&] { statement(branch->then_case); });
      under(logical_not(branch->condition), [&] { statement(branch->else_case); });
      --conditions_;
    } else if (const auto* loop = s.as<While>()) {
      expression(loop->condition);
      ++conditions_;
      const bool outside = std::exchange(exact_, false);
      statement(loop->body);
      exact_ = outside;
      --conditions_;
    } else if (const auto* let = s.as<LetStmt>()) {
      expression(let->value);
      values_[let->var] = map(let->value);
      statement(let->body);
    } else {
      s->node_class().for_each_child(*s, [&](const NodeRef& child) {
        if (child->node_class().family == "stmt")
          statement(Stmt(static_cast<const StmtNode*>(child.get())));
        else if (child->node_class().family == "expr")
          expression(Expr(static_cast<const ExprNode*>(child.get())));
      });
    }
  }

 private:
  void block(const BlockRealize& realize) {
    for (const Expr& value : realize.iter_values) expression(value);
    expression(realize.predicate);
    const Block* outer = block_;
    const std::shared_ptr<const BlockInstance> outer_instance = instance_;
    const Expr outer_predicate = predicate_;
    const Expr predicate = map(realize.predicate);
    if (!is_int(predicate, 1)) predicate_ = predicate_ ? logical_and(predicate_, predicate) : predicate;
    block_ = realize.block.get();
    auto instance = std::make_shared<BlockInstance>(block_, std::vector<Expr>{}, outer_instance);
    for (const Expr& value : realize.iter_values) instance->values.push_back(map(value));
    for (size_t i = 0; i < instance->values.size(); ++i)
      values_[realize.block->iter_vars[i]->var] = instance->values[i];
    instance_ = std::move(instance);
    const size_t hiding = hiding_.size();
    enter(*realize.block);
    if (realize.block->init) {
      const bool outside = std::exchange(in_init_, true);
      statement(realize.block->init);
      in_init_ = outside;
    }
    if (tensor_intrin_of(*realize.block))
      described(*realize.block);
    else
      statement(realize.block->body);
    hiding_.resize(hiding);
    block_ = outer;
    instance_ = outer_instance;
    predicate_ = outer_predicate;
  }

  template <class Visit>
  void under(const Expr& condition, Visit visit) {
    const Expr outside = guard_;
    guard_ = guard_ ? logical_and(guard_, map(condition)) : map(condition);
    visit();
    guard_ = outside;
  }

  // A tensorized block touches what it declares: that its description does no more was shown when it was tensorized.
  void described(const Block& block) {
    for (const BufferRegion& region : block.reads) push(region->buffer, mapped(region->region), false, false, false);
    for (const BufferRegion& region : block.writes) {
      // What has an init is accumulated onto, and the block does not say that it reads it.
      if (block.init) push(region->buffer, mapped(region->region), false, false, false);
      push(region->buffer, mapped(region->region), true, false, false);
    }
  }

  Expr map(const Expr& e) const { return values_.empty() ? e : substitute(e, values_); }

  void expression(const Expr& e) {
    pre_order(e, [&](const NodeRef& n) {
      if (const auto* load = n.as<BufferLoad>()) {
        add(load->buffer, load->indices, false, load->predicate);
      } else if (const auto* let = n.as<Let>()) {
        values_[let->var] = map(let->value);
      } else if (const auto* call = n.as<Call>()) {
        if (call->op == &intrinsic::if_then_else) {
          expression(call->args[0]);
          ++conditional_;
          under(call->args[0], [&] { expression(call->args[1]); });
          under(logical_not(call->args[0]), [&] { expression(call->args[2]); });
          --conditional_;
          return false;
        }
        if (call->op == &intrinsic::prefetch) return false;  // a hint touches nothing
        if (call->op == &intrinsic::address_of) {
          opaque(call->args[0]);
          return false;
        }
      }
      return true;
    });
  }

  // The memory behind an address may be read and written; a declared region narrows it.
  void opaque(const Expr& target) {
    const auto* load = target.as<BufferLoad>();
    if (!load) return;
    const auto view = aliases_.find(load->buffer);
    const Buffer& buffer = view == aliases_.end() ? load->buffer : view->second->buffer;
    for (const bool writes : {false, true}) {
      bool declared = false;
      if (block_)
        for (const BufferRegion& region : writes ? block_->writes : block_->reads)
          if (region->buffer == buffer) {
            declared = true;
            push(buffer, mapped(region->region), writes, false, true);
          }
      if (!declared && !block_) push(buffer, region_of(buffer)->region, writes, false, true);
    }
  }

  std::vector<Range> mapped(const std::vector<Range>& region) const {
    std::vector<Range> result;
    for (const Range& range : region) result.push_back({map(range.min), map(range.extent)});
    return result;
  }

  void add(const Buffer& buffer, const std::vector<Expr>& indices, bool writes, const Expr& mask) {
    std::vector<Range> region;
    const bool outside = exact_;
    for (const Expr& index : indices) {
      if (const auto* ramp = index.as<Ramp>()) {
        region.push_back({map(ramp->base), map((ramp->stride * (ramp->lanes - 1)) + 1)});
        exact_ = exact_ && is_int(ramp->stride, 1);
      } else {
        region.push_back({map(index), int64(1)});
      }
    }
    exact_ = exact_ && !mask;
    const bool conditional = mask || (!writes && conditional_ > 0);
    if (const auto it = aliases_.find(buffer); it != aliases_.end()) {
      exact_ = false;
      push(it->second->buffer, mapped(it->second->region), writes, false, false);
    } else {
      push(buffer, std::move(region), writes, !conditional && conditions_ == 0, false);
    }
    exact_ = outside;
  }

  // Whether a block around does not declare what its user has hidden.
  bool is_hidden(const Buffer& buffer, bool writes) const {
    const auto has = [&](const std::vector<BufferRegion>& list) {
      return std::any_of(list.begin(), list.end(), [&](const BufferRegion& r) { return r->buffer == buffer; });
    };
    return std::any_of(hiding_.begin(), hiding_.end(), [&](const auto& hiding) {
      const auto& [block, own] = hiding;
      return !has(block->writes) && (writes || !has(block->reads)) &&
             std::find(own.begin(), own.end(), buffer) == own.end();
    });
  }

  void push(const Buffer& buffer, std::vector<Range> region, bool writes, bool certain, bool believed) {
    if (is_hidden(buffer, writes)) return;
    found.push_back({buffer, std::move(region), writes, certain, believed, block_, loops_, predicate_, instance_,
                     guard_, exact_ && !believed, in_init_, found.size()});
  }

  VarMap values_;
  std::unordered_map<Buffer, BufferRegion> aliases_;
  // The blocks around that hide accesses, and the buffers that live inside them.
  std::vector<std::pair<const Block*, std::vector<Buffer>>> hiding_;
  std::vector<const For*> loops_;
  const Block* block_ = nullptr;
  std::shared_ptr<const BlockInstance> instance_;
  Expr predicate_;
  Expr guard_;
  int conditions_ = 0, conditional_ = 0;
  bool in_init_ = false, exact_ = true;
};

std::vector<Buffer> buffers(const Stmt& root, bool writes) {
  std::vector<Buffer> result;
  for (const Access& access : accesses(root))
    if (access.writes == writes && std::find(result.begin(), result.end(), access.buffer) == result.end())
      result.push_back(access.buffer);
  return result;
}

}  // namespace

const BlockInstance* instance_of(const Access& access, const Block& block) {
  const BlockInstance* instance = access.instance.get();
  while (instance && instance->block != &block) instance = instance->outer.get();
  return instance;
}

std::vector<Access> accesses(const Stmt& root) {
  Collector collector;
  collector.statement(root);
  return std::move(collector.found);
}

VarMap bindings(const BlockRealize& realize) {
  VarMap map;
  for (size_t i = 0; i < realize.iter_values.size(); ++i)
    map[realize.block->iter_vars[i]->var] = realize.iter_values[i];
  return map;
}

std::vector<Buffer> buffers_read(const Stmt& root) { return buffers(root, false); }
std::vector<Buffer> buffers_written(const Stmt& root) { return buffers(root, true); }

bool conflict(const Stmt& a, const Stmt& b) {
  const std::vector<Access> of_a = accesses(a), of_b = accesses(b);
  for (const Access& x : of_a)
    for (const Access& y : of_b)
      if ((x.writes || y.writes) && x.buffer == y.buffer) return true;
  return false;
}

bool reads_memory(const Expr& e) {
  bool found = false;
  pre_order(e, [&](const NodeRef& n) {
    found = found || n.is<BufferLoad>();
    return !found;
  });
  return found;
}

bool is_conditional(const Block& block) {
  bool found = false;
  post_order(block.body, [&](const NodeRef& n) {
    const auto* call = n.as<Call>();
    found = found || (call && call->op == &intrinsic::if_then_else);
  });
  return found;
}

const Call* effect_in(const Stmt& root) {
  const Call* found = nullptr;
  std::unordered_set<const StmtNode*> known;  // the implementations of tensorized blocks: their descriptions say it
  each_statement(root, [&](const Stmt& s) {
    if (const auto* block = s.as<Block>(); block && tensor_intrin_of(*block))
      each_statement(block->body, [&](const Stmt& inner) { known.insert(inner.get()); });
    const auto* evaluate = s.as<Evaluate>();
    const auto* call = evaluate ? evaluate->value.as<Call>() : nullptr;
    if (call && !found && !known.count(s.get()) && call->op->effect == Effect::updates &&
        call->op != &intrinsic::prefetch)
      found = call;
  });
  return found;
}

namespace {

// The accesses of a block's init and body, in terms of its variables; its views count as what they are views of.
std::vector<Access> accesses_inside(const Block& block) {
  Collector collector;
  collector.enter(block);
  collector.statement(block.init ? seq({block.init, block.body}) : block.body);
  return std::move(collector.found);
}

// The range without what certainly lies outside of the buffer: predicates keep accesses from there.
Range inside_of(const BufferNode& buffer, size_t dimension, Range range) {
  const auto before = as_int(range.min);
  if (before && *before < 0) range = {int64(0), Linear(linear(range.min + range.extent)).expr()};
  const auto beyond = difference(range.min + range.extent, buffer.shape[dimension]);
  if (beyond && *beyond > 0) range.extent = Linear(linear(buffer.shape[dimension] - range.min)).expr();
  return range;
}

}  // namespace

Ref<Block> block_with_regions(std::vector<IterVar> iters, std::string name, Stmt init, Stmt body, Id id) {
  return with_regions(make<Block>(std::move(iters), std::vector<Buffer>{}, std::vector<MatchBufferRegion>{},
                                  std::vector<BufferRegion>{}, std::vector<BufferRegion>{}, std::move(name),
                                  std::move(init), std::move(body), Attributes(), id));
}

Ref<Block> with_regions(const Ref<Block>& block) {
  if (tensor_intrin_of(*block)) return block;  // its regions are those of its description
  // One region a buffer and direction: a point where all accesses agree, else the hull over inner loops where it can be
  // given, else the whole buffer.
  const std::vector<Access> inside = accesses_inside(*block);
  struct Hull {
    Buffer buffer;
    std::vector<Range> region;
  };
  std::vector<Hull> reads, writes;
  const auto writes_buffer = [&](const Buffer& buffer) {
    return std::any_of(inside.begin(), inside.end(), [&](const Access& a) { return a.writes && a.buffer == buffer; });
  };
  const std::vector<Buffer> hidden = allocated_inside(*block);
  for (const Access& access : inside) {
    if (std::find(hidden.begin(), hidden.end(), access.buffer) != hidden.end()) continue;
    const Domains inner = domains_of(access.loops);
    std::vector<Range> region;
    for (size_t d = 0; d < access.region.size(); ++d) {
      const auto low = interval(access.region[d].min, inner);
      const auto high = interval(Linear(linear(access.region[d].min + access.region[d].extent - 1)).expr(), inner);
      if (low && high && !reads_memory(access.region[d].min) && !reads_memory(access.region[d].extent))
        region.push_back(inside_of(*access.buffer, d, {low->low, Linear(linear(high->high - low->low + 1)).expr()}));
      else
        region.push_back({int64(0), access.buffer->shape[d]});
    }
    // A reduction with an init reads only what it writes, and does not say so.
    if (block->init && !access.writes && is_reduction(*block) && writes_buffer(access.buffer)) continue;
    std::vector<Hull>& list = access.writes ? writes : reads;
    const auto it =
        std::find_if(list.begin(), list.end(), [&](const Hull& hull) { return hull.buffer == access.buffer; });
    if (it == list.end()) {
      list.push_back({access.buffer, std::move(region)});
      continue;
    }
    for (size_t d = 0; d < region.size(); ++d) {
      Range& hull = it->region[d];
      const auto shift = difference(region[d].min, hull.min);
      const auto end = difference(region[d].min + region[d].extent, hull.min + hull.extent);
      if (shift && end) {
        const Expr low = *shift < 0 ? region[d].min : hull.min;
        const Expr high = *end > 0 ? region[d].min + region[d].extent : hull.min + hull.extent;
        hull = {low, Linear(linear(high - low)).expr()};
      } else {
        hull = {int64(0), access.buffer->shape[d]};
      }
    }
  }
  const auto regions = [](std::vector<Hull>& list) {
    std::vector<BufferRegion> result;
    for (Hull& hull : list) result.push_back(make<BufferRegionNode>(hull.buffer, std::move(hull.region)));
    return result;
  };
  return with(*block, [&](Block& copy) {
    copy.reads = regions(reads);
    copy.writes = regions(writes);
    copy.annotations.erase(explicit_read_region_key);
    copy.annotations.erase(explicit_write_region_key);
  });
}

namespace {

// Whether `declared` covers `seen`, both in terms of the block's variables.
bool covers(const std::vector<Range>& declared, const std::vector<Range>& seen, const Domains& inner,
            const Buffer& buffer, const Block& block) {
  if (declared.size() != seen.size()) return false;
  arith::Analyzer analyzer;
  for (const IterVar& iter : block.iter_vars) analyzer.bind(iter->var, iter->dom);
  for (size_t d = 0; d < seen.size(); ++d) {
    if (is_int(declared[d].min, 0) && same(declared[d].extent, buffer->shape[d])) continue;
    const auto low = interval(seen[d].min, inner);
    const auto high = interval(seen[d].min + seen[d].extent, inner);
    if (!low || !high) return false;
    const auto before = difference(low->low, declared[d].min);
    const auto after = difference(declared[d].min + declared[d].extent, high->high);
    const bool starts = before ? *before >= 0 : analyzer.can_prove(low->low >= declared[d].min);
    const bool ends = after ? *after >= 0 : analyzer.can_prove(declared[d].min + declared[d].extent >= high->high);
    if (!starts || !ends) return false;
  }
  return true;
}

}  // namespace

support::Diagnostics check_declared_regions(const PrimFunc& function) {
  support::Diagnostics problems;
  each_statement(function.body, [&](const Stmt& s) {
    const auto* block = s.as<Block>();
    // A block that declares nothing (the root) is an envelope: its inner blocks are checked.
    if (!block || (block->reads.empty() && block->writes.empty()) || tensor_intrin_of(*block)) return;
    const std::vector<Buffer> hidden = allocated_inside(*block);
    for (const Access& access : accesses_inside(*block)) {
      // Under a condition less may be touched than the index says.
      if (access.opaque || !access.certain || std::find(hidden.begin(), hidden.end(), access.buffer) != hidden.end())
        continue;
      if (std::any_of(access.loops.begin(), access.loops.end(),
                      [](const For* loop) { return is_int(loop->extent, 0); }))
        continue;  // never touched
      bool covered = false;
      // A reduction reads what it writes.
      for (const auto* list : {&block->reads, &block->writes}) {
        if (access.writes && list == &block->reads) continue;
        for (const BufferRegion& region : *list)
          covered = covered || (region->buffer == access.buffer &&
                                covers(region->region, access.region, domains_of(access.loops), access.buffer, *block));
      }
      if (covered) continue;
      problems.push_back(refuse(codes::access, fmt::format("{} {} '{}' outside what it declares", name_of(*block),
                                                           access.writes ? "writes" : "reads", access.buffer->name)));
      return;
    }
  });
  return problems;
}

bool has_reduce_iters(const Block& block) {
  return std::any_of(block.iter_vars.begin(), block.iter_vars.end(),
                     [](const IterVar& iter) { return iter->type == IterType::reduce; });
}

bool is_reduction(const Block& block) { return has_reduce_iters(block) && updates_own_element(block); }

bool accumulates_by_intrin(const Block& block) {
  if (!tensor_intrin_of(block) || !block.init) return false;
  for (const BufferRegion& written : block.writes) {
    for (const BufferRegion& read : block.reads)
      if (read->buffer == written->buffer) return false;
    for (const Range& range : written->region)
      for (const IterVar& iter : block.iter_vars)
        if (iter->type != IterType::spatial && (uses_var(range.min, iter->var) || uses_var(range.extent, iter->var)))
          return false;
  }
  return true;
}

bool updates_own_element(const Block& block) {
  if (tensor_intrin_of(block)) return false;
  const std::vector<Access> all = accesses(block.body);
  const auto reduce_variable_in = [&](const Expr& e) {
    return std::any_of(block.iter_vars.begin(), block.iter_vars.end(),
                       [&](const IterVar& iter) { return iter->type != IterType::spatial && uses_var(e, iter->var); });
  };
  for (const Access& write : all) {
    if (!write.writes) continue;
    if (write.opaque) return false;
    for (const Range& range : write.region)
      if (reduce_variable_in(range.min) || !is_int(range.extent, 1)) return false;
    for (const Access& other : all) {
      if (other.buffer != write.buffer) continue;
      if (other.loops != write.loops) return false;
      for (size_t d = 0; d < write.region.size(); ++d)
        if (!same(other.region[d].min, write.region[d].min) || !is_int(other.region[d].extent, 1)) return false;
    }
  }
  return true;
}

}  // namespace lathe::schedule
