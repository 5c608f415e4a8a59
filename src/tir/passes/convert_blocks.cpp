#include "support/mutation.h"
#include "tir/analysis/calls.h"
#include "tir/codes.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(convert_blocks_predicate, "tir_test", "the predicate of a block instance is dropped");

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

Stmt allocated(const Buffer& buffer, Stmt body) {
  std::vector<Expr> extents = buffer->shape;
  if (!buffer->strides.empty()) {
    // Memory up to the last element that the layout reaches.
    Expr last = int64(0);
    for (size_t d = 0; d < extents.size(); ++d) last = last + (extents[d] - 1) * buffer->strides[d];
    extents = {last + 1};
  }
  return make<Allocate>(buffer->data, buffer->dtype, std::move(extents), buffer->scope, std::move(body));
}

class BlockConversion : public TirRewriter {
 public:
  explicit BlockConversion(const Function& function) {
    for (const auto& [handle, buffer] : function->buffer_map) addresses_.insert(buffer->data.get());
  }

 protected:
  Stmt visit_stmt(Stmt s) override {
    if (const auto* allocate = s.as<Allocate>()) addresses_.insert(allocate->buffer_var.get());
    if (const auto* constant = s.as<AllocateConst>()) addresses_.insert(constant->buffer_var.get());
    if (const auto* declare = s.as<DeclBuffer>()) {
      const Buffer buffer = declare->buffer;
      const bool fresh = addresses_.insert(buffer->data.get()).second;
      Stmt body = (*this)(declare->body);
      return fresh ? allocated(buffer, std::move(body)) : body;
    }
    if (const auto* realize = s.as<BlockRealize>()) return (*this)(inlined(*realize));
    return children(std::move(s));
  }

 private:
  Stmt inlined(const BlockRealize& realize) {
    const Block& block = *realize.block;
    VarMap values;
    for (size_t k = 0; k < block.iter_vars.size(); ++k) {
      const Var& var = block.iter_vars[k]->var;
      values[var] = cast(var->dtype, realize.iter_values[k]);
    }
    Stmt body = block.body;
    if (!block.match_buffers.empty()) {
      body = RegionAliases(block.match_buffers)(body);
      body = substitute(body, layout_symbols(block.match_buffers));
    }
    for (size_t k = block.alloc_buffers.size(); k-- > 0;) {
      addresses_.insert(block.alloc_buffers[k]->data.get());
      body = allocated(block.alloc_buffers[k], std::move(body));
    }
    body = substitute(body, values);
    if (is_int(realize.predicate, 1) || support::flip(convert_blocks_predicate)) return body;
    return make<IfThenElse>(realize.predicate, std::move(body));
  }

  std::unordered_set<const VarNode*> addresses_;
};

}  // namespace

Result<IRModule> convert_blocks(IRModule module, const PassContext&) {
  return on_each_function(std::move(module), [](const Function& f) {
    Stmt body = BlockConversion(f)(f->body);
    return with(*f, [&](PrimFunc& copy) { copy.body = std::move(body); });
  });
}

}  // namespace lathe::tir
