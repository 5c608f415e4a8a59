#include "support/mutation.h"
#include "tir/codes.h"
#include "tir/passes/passes.h"
#include "tir/passes/views.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(convert_blocks_predicate, "tir_test", "the predicate of a block instance is dropped");

namespace {

Stmt allocated(const Buffer& buffer, Stmt body) {
  std::vector<Expr> extents = buffer->shape;
  if (!buffer->strides.empty()) {
    // Memory up to the last element that the layout reaches, where there is one.
    Expr count = int64(1);
    bool may_be_empty = false;
    for (size_t d = 0; d < extents.size(); ++d) {
      count = count + (extents[d] - 1) * buffer->strides[d];
      may_be_empty = may_be_empty || as_int(extents[d]).value_or(0) == 0;
    }
    extents = {may_be_empty ? max(count, int64(0)) : count};
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
    if (block.init)
      throw support::DiagnosticError(support::Diagnostic{
          .code = codes::illegal_after_stage,
          .message = fmt::format("block '{}' still has an init, which loops cannot say", block.name),
          .help = "the pass lower_init comes before convert_blocks"});
    VarMap values;
    for (size_t k = 0; k < block.iter_vars.size(); ++k) {
      const Var& var = block.iter_vars[k]->var;
      values[var] = cast(var->dtype, realize.iter_values[k]);
    }
    Stmt body = without_views(block)->body;
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

Result<IRModule> convert_blocks(IRModule module, const PassContext& context) {
  return on_each_function(std::move(module), context, [](const std::string&, const Function& f, const PassContext&) {
    Stmt body = BlockConversion(f)(f->body);
    return with(*f, [&](PrimFunc& copy) { copy.body = std::move(body); });
  });
}

}  // namespace lathe::tir
