#include "schedule/primitives/cache/buffers.h"

#include "arith/analyzer.h"
#include "ir/visit.h"
#include "schedule/index_map.h"
#include "schedule/primitives/compute/inline.h"
#include "tir/analysis/zero_border.h"

namespace lathe::schedule {

namespace {

class Relayout : public Rewriter {
 public:
  Relayout(const Buffer& from, const Buffer& to, const IndexMap& map) : from_(from), to_(to), map_(map) {}

 protected:
  NodeRef visit(NodeRef node) override {
    if (node.get() == static_cast<const Node*>(from_.get())) return to_;
    if (node->node_class().has_identity) return node;
    if (const auto* loop = node.as<For>()) analyzer_.bind(loop->loop_var, Range{loop->min, loop->extent});
    bool declares = false;
    if (const auto* block = node.as<Block>()) {
      for (const IterVar& iter : block->iter_vars) analyzer_.bind(iter->var, iter->dom);
      for (const auto* list : {&block->reads, &block->writes})
        for (const BufferRegion& region : *list) declares = declares || region->buffer == from_;
    }
    // The buffer's field is rewritten with the children, so what remains is the indices.
    node = descend(std::move(node));
    if (const auto* load = node.as<BufferLoad>(); load && load->buffer == to_)
      return with(*load, [&](BufferLoad& copy) { copy.indices = mapped(load->indices); });
    if (const auto* store = node.as<BufferStore>(); store && store->buffer == to_)
      return with(*store, [&](BufferStore& copy) { copy.indices = mapped(store->indices); });
    // What was a box need not be one any more.
    if (declares) return with_regions(Ref<Block>(node.as<Block>()));
    return node;
  }

 private:
  std::vector<Expr> mapped(const std::vector<Expr>& indices) {
    std::vector<Expr> result = map_(indices);
    for (Expr& e : result) e = analyzer_.simplify(e);
    return result;
  }

  const Buffer &from_, &to_;
  const IndexMap& map_;
  arith::Analyzer analyzer_;
};

}  // namespace

Stmt with_layout(const Stmt& root, const Buffer& from, const Buffer& to, const IndexMap& map) {
  return tir::without_zero_border(Relayout(from, to, map)(root), from);
}

std::vector<Buffer> outer_buffers(const Path& path, bool writes) {
  std::vector<Buffer> list = writes ? buffers_written(path.back()) : buffers_read(path.back());
  each_statement(path.back(), [&](const Stmt& s) {
    if (const auto* block = s.as<Block>())
      for (const Buffer& own : block->alloc_buffers) std::erase(list, own);
    if (const auto* declared = s.as<DeclBuffer>()) std::erase(list, declared->buffer);
  });
  return list;
}

Result<Buffer> buffer_of(const Path& path, BufferIndex which) {
  const Block& block = *path.back().as<BlockRealize>()->block;
  std::vector<Buffer> list = outer_buffers(path, true);
  if (!which.writes) {
    const std::vector<Buffer> own = std::exchange(list, outer_buffers(path, false));
    for (const Buffer& buffer : own) std::erase(list, buffer);
  }
  if (which.number < 0 || which.number >= static_cast<int64_t>(list.size()))
    return refuse(codes::bad_argument, fmt::format("{} {} {} buffers, there is no number {}", name_of(block),
                                                   which.writes ? "writes" : "reads", list.size(), which.number));
  return list[static_cast<size_t>(which.number)];
}

std::optional<Diagnostic> refuse_fixed(const PrimFunc& function, const Buffer& buffer, std::string_view verb) {
  const auto problem = [&](std::string_view why) {
    return refuse(codes::bad_argument, fmt::format("cannot {} '{}': {}", verb, buffer->name, why));
  };
  if (!allocating_block(function, buffer)) return problem("it is a parameter of the function");
  for (const Access& access : accesses(function.body))
    if (access.buffer == buffer && access.opaque) return problem("its address is taken");
  bool seen = !buffer->strides.empty() || has_view(function, buffer);
  post_order(function.body, [&](const NodeRef& n) {
    const auto* load = n.as<BufferLoad>();
    const auto* store = n.as<BufferStore>();
    seen = seen || (load && load->buffer == buffer && load->dtype.lanes != buffer->dtype.lanes) ||
           (store && store->buffer == buffer && store->value->dtype.lanes != buffer->dtype.lanes);
  });
  if (seen) return problem("it is read in vectors, through a view, or has strides");
  return std::nullopt;
}

Buffer cache_of(const Buffer& buffer, const std::string& scope_name) {
  return with(*buffer, [&](BufferNode& copy) {
    copy.name += "_" + scope_name;
    copy.scope = scope_name;
    copy.data = buffer->data ? var(copy.name, buffer->data->dtype) : Var();
    copy.strides.clear();
    copy.elem_offset = Expr();
  });
}

bool is_inside(const Block* inner, const Block& block) {
  bool found = inner == &block;
  if (inner && !found)
    each_statement(block.init ? seq({block.init, block.body}) : block.body,
                   [&](const Stmt& s) { found = found || s.as<Block>() == inner; });
  return found;
}

bool touched_by_others(const Stmt& s, const Buffer& buffer, const Block& block) {
  for (const Access& access : accesses(s))
    if (access.buffer == buffer && !is_inside(access.block, block)) return true;
  return false;
}

size_t alone_around(const Path& path, const Buffer& buffer) {
  const Block& block = *path.back().as<BlockRealize>()->block;
  size_t at = path.size() - 1;
  while (at > 0 && !path[at - 1].is<Block>() && !path[at - 1].is<BlockRealize>() &&
         !touched_by_others(path[at - 1], buffer, block))
    --at;
  while (at + 1 < path.size() && path[at].is<SeqStmt>()) ++at;
  return at;
}

Result<size_t> below_loop(const Path& path, Id id, std::string_view verb) {
  for (size_t at = path.size() - 1; at-- > 0 && !path[at].is<Block>();) {
    const auto* loop = path[at].as<For>();
    if (loop && loop->id == id) return path[at + 1].is<SeqStmt>() ? at + 2 : at + 1;
  }
  return refuse(codes::not_nested, fmt::format("cannot {} at the loop: it is not around {} in its scope", verb,
                                               name_of(*path.back().as<BlockRealize>()->block)));
}

Result<Expr> constant_of(const ir::Value& value, DType dtype) {
  if (const auto* integer = std::get_if<int64_t>(&value.data)) return constant(dtype, *integer);
  if (const auto* number = std::get_if<double>(&value.data); number && dtype.is_floating())
    return constant(dtype, *number);
  return refuse(codes::bad_argument, fmt::format("the value is no number of type {}", dtype.str()));
}

}  // namespace lathe::schedule
