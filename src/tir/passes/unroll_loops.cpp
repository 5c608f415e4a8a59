#include "support/mutation.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(unroll_loops_bound, "tir_test", "the last iteration of an unrolled loop is forgotten");

namespace {

// A loop whose copies hold more statements than this stays a loop: code of that size only fills the caches.
constexpr int64_t max_statements = 16384;

int64_t count_statements(const Stmt& s) {
  int64_t count = 0;
  pre_order(s, [&](const NodeRef& n) {
    const bool statement = n->node_class().family == StmtNode::family;
    count += statement;
    return statement;
  });
  return count;
}

class LoopUnrolling : public TirRewriter {
 public:
  explicit LoopUnrolling(const PassContext& context) : context_(context) {}

 protected:
  Stmt visit_stmt(Stmt s) override {
    const Stmt rewritten = children(std::move(s));
    const auto* loop = rewritten.as<For>();
    if (!loop || loop->kind != ForKind::unrolled) return rewritten;
    const auto extent = as_int(loop->extent);
    if (!extent) return kept(*loop, "its extent is not constant");
    if (*extent <= 0) return nop();
    const int64_t statements = count_statements(loop->body);
    if (statements * *extent > max_statements)
      return kept(*loop, fmt::format("{} iterations of {} statements are too many to write out", *extent, statements));
    std::vector<Stmt> copies;
    const int64_t last = *extent > 1 && support::flip(unroll_loops_bound) ? *extent - 1 : *extent;
    for (int64_t k = 0; k < last; ++k) {
      const VarMap value{{loop->loop_var, add(loop->min, constant(loop->min->dtype, k))}};
      copies.push_back(fold_constants(k == 0 ? substitute(loop->body, value) : fresh_copy(loop->body, value)));
    }
    return seq(std::move(copies));
  }

 private:
  Stmt kept(const For& loop, std::string reason) {
    context_.remark("unroll_loops", loop.loop_var->name, std::move(reason));
    return with(loop, [](For& copy) { copy.kind = ForKind::serial; });
  }
  const PassContext& context_;
};

}  // namespace

Result<IRModule> unroll_loops(IRModule module, const PassContext& context) {
  return on_each_body(std::move(module), context,
                      [](const Stmt& body, const PassContext& own) { return LoopUnrolling(own)(body); });
}

}  // namespace lathe::tir
