#include "tir/analysis/flops.h"

#include "ir/match.h"
#include "ir/visit.h"
#include "tir/analysis/buffer_accesses.h"
#include "tir/rewrite.h"

namespace lathe::tir {
namespace {

bool is_data_operator(const Expr& e) {
  return e.is<Add>() || e.is<Sub>() || e.is<Mul>() || e.is<Div>() || e.is<Mod>() || e.is<FloorDiv>() ||
         e.is<FloorMod>() || e.is<Min>() || e.is<Max>() || e.is<EQ>() || e.is<NE>() || e.is<LT>() || e.is<LE>() ||
         e.is<GT>() || e.is<GE>() || e.is<And>() || e.is<Or>() || e.is<Not>();
}

class FlopCount {
 public:
  bool symbolic = false;

  double of(const Expr& e) {
    if (!e || e.is<BufferLoad>()) return 0;  // its subscripts are free
    if (const auto* select = e.as<Select>())
      return of(select->condition) + dearer(select->true_value, select->false_value);
    if (const auto* call = e.as<Call>(); call && call->op == &intrinsic::if_then_else)
      return of(call->args[0]) + dearer(call->args[1], call->args[2]);
    double sum = 0;
    e->node_class().for_each_child(*e, [&](const NodeRef& child) {
      if (child && child->node_class().family == ExprNode::family) sum += of(ir::detail::narrow<ExprNode>(child));
    });
    const auto* call = e.as<Call>();
    const bool counts = is_data_operator(e) || (call && call->op->effect == Effect::pure && call->op->arity > 0 &&
                                                call->op != &intrinsic::likely && call->op != &intrinsic::reinterpret);
    return sum + (counts ? e->dtype.lanes : 0);
  }

  double of(const Stmt& s) {
    if (!s) return 0;
    if (const auto* store = s.as<BufferStore>()) return of(store->value);
    if (const auto* evaluate = s.as<Evaluate>()) return of(evaluate->value);
    if (const auto* let = s.as<LetStmt>()) return of(let->value) + of(let->body);
    if (const auto* assertion = s.as<AssertStmt>()) return of(assertion->condition);
    if (const auto* branch = s.as<IfThenElse>())
      return of(branch->condition) + std::max(of(branch->then_case), of(branch->else_case));
    if (const auto* loop = s.as<For>()) return times(loop->extent) * of(loop->body);
    if (const auto* realize = s.as<BlockRealize>()) {
      const Block& block = *realize->block;
      return of(block.body) + of(block.init) / instances_of_an_init(block);
    }
    if (const auto* repeat = s.as<While>()) {
      symbolic = true;
      return of(repeat->condition) + of(repeat->body);
    }
    double sum = 0;
    s->node_class().for_each_child(*s, [&](const NodeRef& child) {
      if (child && child->node_class().family == StmtNode::family) sum += of(ir::detail::narrow<StmtNode>(child));
    });
    return sum;
  }

 private:
  double dearer(const Expr& a, const Expr& b) { return std::max(of(a), of(b)); }
  double times(const Expr& extent) {
    if (const auto n = as_int(extent)) return static_cast<double>(std::max<int64_t>(*n, 0));
    symbolic = true;
    return 1;
  }
  double instances_of_an_init(const Block& block) {
    double instances = 1;
    for (const IterVar& iter : block.iter_vars)
      if (iter->type == IterType::reduce) instances *= std::max(1.0, times(iter->dom.extent));
    return instances;
  }
};

bool reduces(const Block& block) {
  return std::any_of(block.iter_vars.begin(), block.iter_vars.end(),
                     [](const IterVar& iter) { return iter->type == IterType::reduce; });
}

bool holds_blocks(const Stmt& s) {
  bool found = false;
  pre_order(s, [&](const NodeRef& node) {
    found = found || node.is<Block>();
    return !found && node->node_class().family != ExprNode::family;
  });
  return found;
}

// How many elements the loads and stores of each buffer touch, those of the same element counted each time.
std::map<const BufferNode*, double> touched_elements(const Stmt& body, bool& symbolic) {
  std::map<const BufferNode*, double> elements;
  for (const BufferAccess& access : buffer_accesses(body)) {
    double count = access.buffer->dtype.lanes * (access.indices.empty() ? 1 : access.indices.back()->dtype.lanes);
    for (const Ref<For>& loop : access.loops) {
      const auto extent = as_int(loop->extent);
      symbolic = symbolic || !extent;
      count *= static_cast<double>(std::max<int64_t>(extent.value_or(1), 0));
    }
    elements[access.buffer.get()] += count;
  }
  pre_order(body, [&](const NodeRef& n) {
    symbolic = symbolic || n.is<While>();
    return n->node_class().family != ExprNode::family;
  });
  return elements;
}

// The statements around each access, outermost first.
class AccessPlaces {
 public:
  std::vector<std::pair<Buffer, std::vector<Stmt>>> shared;

  void visit(const NodeRef& node) {
    if (!node || node->node_class().has_identity) return;
    if (const auto* load = node.as<BufferLoad>()) access(load->buffer);
    if (const auto* store = node.as<BufferStore>()) access(store->buffer);
    if (const auto* match = node.as<MatchBufferRegionNode>()) access(match->source->buffer);
    if (node.is<BufferRegionNode>()) return;  // a declaration, not an access
    if (const auto* loop = node.as<For>()) {
      visit(loop->min);
      visit(loop->extent);
      return inside(Stmt(loop), loop->body);
    }
    if (const auto* block = node.as<Block>()) {
      around_.emplace_back(block);
      for (const MatchBufferRegion& match : block->match_buffers) visit(match);
      visit(block->init);
      visit(block->body);
      around_.pop_back();
      return;
    }
    node->node_class().for_each_child(*node, [&](const NodeRef& child) { visit(child); });
  }

 private:
  void inside(const Stmt& outer, const Stmt& body) {
    around_.push_back(outer);
    visit(body);
    around_.pop_back();
  }
  void access(const Buffer& buffer) {
    for (auto& [known, places] : shared) {
      if (known != buffer) continue;
      size_t common = 0;
      while (common < places.size() && common < around_.size() && places[common] == around_[common]) ++common;
      places.resize(common);
      return;
    }
    shared.emplace_back(buffer, around_);
  }
  std::vector<Stmt> around_;
};

}  // namespace

double estimate_flops(const Stmt& s, bool* symbolic) {
  FlopCount count;
  const double flops = count.of(s);
  if (symbolic) *symbolic = count.symbolic;
  return flops;
}

double estimate_traffic(const PrimFunc& function, bool* symbolic) {
  bool unknown = false;
  std::map<const BufferNode*, double> touched = touched_elements(function.body, unknown);
  double bytes = 0;
  if (symbolic) *symbolic = unknown;
  for (const auto& [param, buffer] : function.buffer_map) {
    double elements = 1;
    for (const Expr& extent : buffer->shape) {
      const auto n = as_int(fold_constants(extent));
      if (!n && symbolic) *symbolic = true;
      elements *= n ? static_cast<double>(*n) : touched[buffer.get()];
    }
    bytes += std::min(elements, touched[buffer.get()]) * buffer->dtype.storage_bits() / 8;
  }
  return bytes;
}

Ref<Block> find_anchor_block(const PrimFunc& function) {
  Ref<Block> dearest, last;
  double most = -1;
  std::vector<double> repeats = {1};
  const std::function<void(const NodeRef&)> visit = [&](const NodeRef& node) {
    if (!node || node->node_class().family == ExprNode::family || node->node_class().has_identity) return;
    const auto* loop = node.as<For>();
    if (loop) repeats.push_back(repeats.back() * static_cast<double>(as_int(loop->extent).value_or(1)));
    if (const auto* realize = node.as<BlockRealize>(); realize && !holds_blocks(realize->block->body)) {
      const double flops = repeats.back() * estimate_flops(Stmt(realize));
      last = realize->block;
      if (reduces(*realize->block) && flops > most) {
        most = flops;
        dearest = realize->block;
      }
    }
    node->node_class().for_each_child(*node, visit);
    if (loop) repeats.pop_back();
  };
  visit(function.body);
  return dearest ? dearest : last;
}

std::vector<std::pair<Buffer, Stmt>> buffer_access_lca(const PrimFunc& function) {
  AccessPlaces places;
  places.visit(function.body);
  std::vector<std::pair<Buffer, Stmt>> found;
  for (const auto& [buffer, around] : places.shared)
    found.emplace_back(buffer, around.empty() ? Stmt() : around.back());
  return found;
}

}  // namespace lathe::tir
