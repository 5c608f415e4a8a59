#include "support/mutation.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(nest_parallel_bound, "tir_test", "a parallel loop made serial loses its last iteration");

namespace {

class ParallelNesting : public TirRewriter {
 protected:
  Stmt visit_stmt(Stmt s) override {
    const auto* loop = s.as<For>();
    if (!loop || loop->kind != ForKind::parallel) return children(std::move(s));
    if (inside_) {
      Stmt serial = with(*loop, [](For& copy) {
        copy.kind = ForKind::serial;
        if (support::flip(nest_parallel_bound)) copy.extent = sub(copy.extent, constant(copy.extent->dtype, 1));
      });
      return children(std::move(serial));
    }
    inside_ = true;
    Stmt result = children(std::move(s));
    inside_ = false;
    return result;
  }

 private:
  bool inside_ = false;
};

}  // namespace

Result<IRModule> nest_parallel(IRModule module, const PassContext& context) {
  return on_each_body(std::move(module), context,
                      [](const Stmt& body, const PassContext&) { return ParallelNesting()(body); });
}

}  // namespace lathe::tir
