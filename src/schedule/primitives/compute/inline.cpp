#include "schedule/primitives/compute/inline.h"

#include "ir/visit.h"

namespace lathe::schedule {

Result<const BufferStore*> single_store(const Block& block, std::string_view verb) {
  const auto problem = [&](std::string_view why) {
    return refuse(codes::not_inlinable, fmt::format("cannot {} {}: {}", verb, name_of(block), why));
  };
  if (block.init || has_reduce_iters(block)) return problem("it is a reduction");
  for (const IterVar& iter : block.iter_vars)
    if (iter->type != IterType::spatial) return problem(fmt::format("its axis '{}' is not spatial", iter->var->name));
  const auto* store = block.body.as<BufferStore>();
  if (!store || !block.match_buffers.empty() || !block.alloc_buffers.empty())
    return problem("its body is not one store");
  if (store->predicate || store->value->dtype.is_vector()) return problem("its store is masked or of a vector");
  bool effects = false;
  post_order(store->value, [&](const NodeRef& n) {
    if (const auto* call = n.as<Call>()) effects = effects || call->op->effect != Effect::pure;
  });
  if (effects) return problem("its value has effects");
  return store;
}

Result<std::vector<Var>> index_variables(const Block& block, const std::vector<Expr>& indices, std::string_view verb) {
  const auto problem = [&](std::string why) {
    return refuse(codes::not_inlinable, fmt::format("cannot {} {}: {}", verb, name_of(block), why));
  };
  std::vector<Var> vars;
  for (const Expr& index : indices) {
    const auto* v = index.as<VarNode>();
    if (!v && !as_int(index)) return problem("an index is neither a variable of the block nor a constant");
    if (v && std::find(vars.begin(), vars.end(), Var(v)) != vars.end())
      return problem(fmt::format("'{}' indexes two dimensions", v->name));
    vars.push_back(v ? Var(v) : Var());
  }
  for (const IterVar& iter : block.iter_vars)
    if (!is_int(iter->dom.extent, 1) && std::find(vars.begin(), vars.end(), iter->var) == vars.end())
      return problem(fmt::format("its variable '{}' does not follow from the indices", iter->var->name));
  return vars;
}

Result<std::vector<Var>> variables_over_all(const Block& block, const Expr& value, const Buffer& buffer,
                                            std::string_view verb) {
  const auto problem = [&](std::string_view why) {
    return refuse(codes::not_inlinable,
                  fmt::format("cannot {} {}: it reads {} of '{}'", verb, name_of(block), why, buffer->name));
  };
  std::vector<Var> vars;
  std::optional<Diagnostic> refused;
  bool first = true;
  post_order(value, [&](const NodeRef& n) {
    const auto* load = n.as<BufferLoad>();
    if (!load || load->buffer != buffer || refused) return;
    auto found = index_variables(block, load->indices, verb);
    if (!found)
      refused = found.diagnostics()[0];
    else if (!first && *found != vars)
      refused = problem("different elements");
    else
      vars = *found;
    first = false;
  });
  if (refused) return *std::move(refused);
  for (size_t d = 0; d < vars.size(); ++d) {
    if (!vars[d]) {
      if (!is_int(buffer->shape[d], 1)) return problem("only a part");
      continue;
    }
    for (const IterVar& iter : block.iter_vars)
      if (iter->var == vars[d] && !(is_int(iter->dom.min, 0) && same(iter->dom.extent, buffer->shape[d])))
        return problem("only a part");
  }
  return vars;
}

VarMap values_of(const Block& block, const std::vector<Var>& vars, const std::vector<Expr>& indices) {
  VarMap values;
  for (size_t d = 0; d < vars.size(); ++d)
    if (vars[d]) values[vars[d]] = indices[d];
  for (const IterVar& iter : block.iter_vars)
    if (!values.count(iter->var)) values[iter->var] = iter->dom.min;
  return values;
}

namespace {

size_t common_loops(const Access& a, const Access& b) {
  size_t common = 0;
  while (common < a.loops.size() && common < b.loops.size() && a.loops[common] == b.loops[common]) ++common;
  return common;
}

}  // namespace

std::optional<Diagnostic> refuse_moved(const std::vector<Access>& all, const Block& consumer, const Block& producer,
                                       const Buffer& between, std::string_view verb, bool writes_there) {
  const Access *at_producer = nullptr, *at_consumer = nullptr;
  for (const Access& access : all) {
    if (access.block == &producer && access.writes) at_producer = &access;
    if (access.block == &consumer && access.writes) at_consumer = &access;
  }
  const Buffer output = at_consumer->buffer;
  for (const Access& mine : all) {
    if (mine.block != &consumer || mine.buffer == between || (mine.writes && !writes_there)) continue;
    for (const Access& other : all) {
      if (other.block == &consumer || other.buffer != mine.buffer) continue;
      const bool hazard = mine.writes || mine.buffer == output;
      if (hazard ? other.order < at_consumer->order
                 : other.writes && (other.order > at_producer->order ||
                                    common_loops(other, *at_producer) > common_loops(*at_producer, *at_consumer)))
        return refuse(codes::not_inlinable,
                      fmt::format("cannot {} {} into {}: '{}' is touched{} before {} runs", verb, name_of(consumer),
                                  name_of(producer), mine.buffer->name,
                                  other.block ? " by " + name_of(*other.block) : "", name_of(consumer)));
    }
  }
  return std::nullopt;
}

const Block* allocating_block(const PrimFunc& function, const Buffer& buffer) {
  const Block* found = nullptr;
  each_statement(function.body, [&](const Stmt& s) {
    const auto* block = s.as<Block>();
    if (block &&
        std::find(block->alloc_buffers.begin(), block->alloc_buffers.end(), buffer) != block->alloc_buffers.end())
      found = block;
  });
  return found;
}

bool has_view(const PrimFunc& function, const Buffer& buffer) {
  bool found = false;
  post_order(function.body, [&](const NodeRef& n) {
    const auto* match = n.as<MatchBufferRegionNode>();
    found = found || (match && match->source->buffer == buffer);
  });
  return found;
}

namespace {

class Loads : public Rewriter {
 public:
  Loads(const Buffer& buffer, support::function_ref<Expr(const BufferLoad&)> change,
        const std::vector<const Block*>* within)
      : buffer_(buffer), change_(change), within_(within) {}

 protected:
  NodeRef visit(NodeRef node) override {
    if (node->node_class().has_identity || node->node_class().family == "buffer_region") return node;
    const Node* before = node.get();
    const NodeRef kept = node;
    const bool outer = changes_;
    if (const auto* block = node.as<Block>(); block && within_)
      changes_ = std::find(within_->begin(), within_->end(), block) != within_->end();
    const bool changes = changes_;
    NodeRef after = descend(std::move(node));
    changes_ = outer;
    if (const auto* load = after.as<BufferLoad>(); load && load->buffer == buffer_ && (changes || !within_))
      return change_(*load);
    if (const auto* block = after.as<Block>(); block && block != before) {
      Ref<Block> changed(block);
      if (!within_ &&
          std::find(block->alloc_buffers.begin(), block->alloc_buffers.end(), buffer_) != block->alloc_buffers.end())
        changed = with(*block, [&](Block& copy) { std::erase(copy.alloc_buffers, buffer_); });
      if (!changed->reads.empty() || !changed->writes.empty()) changed = with_regions(changed);
      return changed;
    }
    return after;
  }

 private:
  const Buffer& buffer_;
  support::function_ref<Expr(const BufferLoad&)> change_;
  const std::vector<const Block*>* within_;
  bool changes_ = false;
};

}  // namespace

Function with_loads_replaced(const Function& function, const Stmt& removed, const Buffer& buffer,
                             support::function_ref<Expr(const BufferLoad&)> change,
                             const std::vector<const Block*>* within) {
  return with_body(function, Loads(buffer, change, within)(replace(function->body, removed, nop())));
}

}  // namespace lathe::schedule
