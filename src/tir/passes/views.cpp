#include "tir/passes/views.h"

#include "tir/analysis/calls.h"
#include "tir/codes.h"
#include "tir/rewrite.h"

namespace lathe::tir {
namespace {

// Accesses of a buffer that names a region of another become accesses of that other buffer.
class RegionAliases : public TirRewriter {
 public:
  explicit RegionAliases(const std::vector<MatchBufferRegion>& matches) {
    for (const MatchBufferRegion& match : matches) {
      if (match->buffer->shape.size() > match->source->region.size())
        throw support::DiagnosticError(support::Diagnostic{
            .code = codes::match_buffer_rank,
            .message =
                fmt::format("match_buffer '{}' has {} dimensions, more than its source '{}' ({})", match->buffer->name,
                            match->buffer->shape.size(), match->source->buffer->name, match->source->region.size())});
      matches_[match->buffer.get()] = match;
    }
  }

 protected:
  Stmt visit_stmt(Stmt s) override {
    Stmt rewritten = children(std::move(s));
    const auto* store = rewritten.as<BufferStore>();
    const MatchBufferRegion match = store ? find(store->buffer) : MatchBufferRegion();
    if (!match) return rewritten;
    return with(*store, [&](BufferStore& copy) { redirect(match, copy.buffer, copy.indices); });
  }
  Expr visit_expr(Expr e) override {
    if (const auto* call = e.as<Call>(); call && call->op == &intrinsic::tvm_stack_make_array) e = lent(*call);
    Expr rewritten = children(std::move(e));
    const auto* load = rewritten.as<BufferLoad>();
    const MatchBufferRegion match = load ? find(load->buffer) : MatchBufferRegion();
    if (!match) return rewritten;
    return with(*load, [&](BufferLoad& copy) { redirect(match, copy.buffer, copy.indices); });
  }
  // What blocks inside say of a view: their regions, and views of the view.
  NodeRef visit_other(NodeRef node) override {
    NodeRef rewritten = descend(std::move(node));
    const auto* region = rewritten.as<BufferRegionNode>();
    const MatchBufferRegion match = region ? find(region->buffer) : MatchBufferRegion();
    if (!match) return rewritten;
    return with(*region, [&](BufferRegionNode& copy) { redirect(*match->source, copy); });
  }

 private:
  // A tensor over a view: its rows lie as those of the source.
  Expr lent(const Call& array) const {
    const auto parts = passed_array(array);
    const MatchBufferRegion match = parts ? find(parts->element->buffer) : MatchBufferRegion();
    if (!match || !parts->strides.empty()) return Expr(&array);
    const Buffer& source = match->source->buffer;
    std::vector<Expr> strides;
    Expr stride = int64(1);
    for (size_t d = source->shape.size(); d-- > 0; stride = stride * cast(DType::int64(), source->shape[d]))
      strides.insert(strides.begin(), source->strides.empty() ? stride : source->strides[d]);
    strides.erase(strides.begin(), strides.end() - static_cast<ptrdiff_t>(parts->shape.size()));
    return with(array, [&](Call& copy) {
      copy.args[2] = call(DType::handle(), intrinsic::tvm_stack_make_shape, std::move(strides));
    });
  }
  MatchBufferRegion find(const Buffer& buffer) const {
    const auto it = matches_.find(buffer.get());
    return it == matches_.end() ? MatchBufferRegion() : it->second;
  }
  static void redirect(const MatchBufferRegion& match, Buffer& buffer, std::vector<Expr>& indices) {
    const std::vector<Range>& region = match->source->region;
    const size_t dropped = region.size() - indices.size();
    std::vector<Expr> moved;
    for (size_t d = 0; d < region.size(); ++d) {
      if (d < dropped) {
        moved.push_back(region[d].min);
        continue;
      }
      const Expr& index = indices[d - dropped];
      moved.push_back(add_index(index, cast(index->dtype.element(), region[d].min)));
    }
    buffer = match->source->buffer;
    indices = std::move(moved);
  }

  static void redirect(const BufferRegionNode& source, BufferRegionNode& part) {
    const size_t dropped = source.region.size() - part.region.size();
    std::vector<Range> moved;
    for (size_t d = 0; d < source.region.size(); ++d) {
      const Range& around = source.region[d];
      if (d < dropped) {
        moved.push_back({around.min, constant(around.extent->dtype, 1)});
        continue;
      }
      const Range& inner = part.region[d - dropped];
      moved.push_back({add(inner.min, cast(inner.min->dtype, around.min)), inner.extent});
    }
    part.buffer = source.buffer;
    part.region = std::move(moved);
  }

  std::unordered_map<const BufferNode*, MatchBufferRegion> matches_;
};

// The symbols in an alias's layout stand for the source's strides and offset.
VarMap layout_symbols(const std::vector<MatchBufferRegion>& matches) {
  VarMap symbols;
  for (const MatchBufferRegion& match : matches) {
    const Buffer& source = match->source->buffer;
    const size_t rank = source->shape.size();
    Expr stride = int64(1), offset = source->elem_offset ? source->elem_offset : int64(0);
    for (size_t d = rank; d-- > 0;) {
      const Expr here = source->strides.empty() ? stride : source->strides[d];
      offset = offset + cast(DType::int64(), match->source->region[d].min) * here;
      stride = stride * cast(DType::int64(), source->shape[d]);
      const size_t dropped = rank - match->buffer->shape.size();
      if (d >= dropped && !match->buffer->strides.empty())
        if (const auto* symbol = match->buffer->strides[d - dropped].as<VarNode>())
          symbols.emplace(Var(symbol), cast(symbol->dtype, here));
    }
    if (match->buffer->elem_offset)
      if (const auto* symbol = match->buffer->elem_offset.as<VarNode>())
        symbols.emplace(Var(symbol), cast(symbol->dtype, offset));
  }
  return symbols;
}

}  // namespace

Ref<Block> without_views(const Block& block) {
  if (block.match_buffers.empty()) return Ref<Block>(&block);
  RegionAliases aliases(block.match_buffers);
  const VarMap symbols = layout_symbols(block.match_buffers);
  return with(block, [&](Block& copy) {
    copy.match_buffers.clear();
    copy.body = substitute(aliases(block.body), symbols);
    if (block.init) copy.init = substitute(aliases(block.init), symbols);
  });
}

}  // namespace lathe::tir
