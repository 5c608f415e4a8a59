#include "lower/legalize/at_sizes.h"

#include "relax/infer.h"
#include "support/mutation.h"

namespace lathe::lower {

LATHE_FAULT(at_sizes_takes_the_next, "lower_test", "a program for one size is made for the size after it");

namespace {

using relax::StructInfo;

class AtSizes : public ir::Rewriter {
 public:
  explicit AtSizes(const ir::VarMap& sizes) : sizes_(sizes) {}

 protected:
  ir::NodeRef visit(ir::NodeRef node) override {
    const std::string_view family = node->node_class().family;
    if (family == ir::ExprNode::family)
      return relax::simplified(ir::substitute(ir::Expr(static_cast<const ir::ExprNode*>(node.get())), sizes_));
    if (family != relax::ExprNode::family) return descend(std::move(node));
    if (const auto* var = node.as<relax::VarNode>()) {
      relax::Var& now = vars_[var];
      if (!now) now = relax::relax_var(var->name, (*this)(var->struct_info), var->is_dataflow);
      return now;
    }
    const StructInfo before = static_cast<const relax::ExprNode*>(node.get())->struct_info;
    const ir::NodeRef rewritten = descend(std::move(node));
    const relax::Expr e(static_cast<const relax::ExprNode*>(rewritten.get()));
    return before ? relax::with_struct_info(e, (*this)(before)) : e;
  }

 private:
  const ir::VarMap& sizes_;
  std::unordered_map<const ir::Node*, relax::Var> vars_;
};

}  // namespace

Group at_sizes(const Group& group, const ir::VarMap& sizes) {
  ir::VarMap taken = sizes;
  if (support::flip(at_sizes_takes_the_next))
    for (auto& [symbol, size] : taken) size = size + ir::int64(1);
  AtSizes rewrite(taken);
  Group result{group.name, {}, {}, {}};
  for (const relax::Var& param : group.params) result.params.push_back(rewrite(param));
  for (const auto& binding : group.bindings) result.bindings.push_back(rewrite(binding));
  for (const relax::Expr& each : group.results) result.results.push_back(rewrite(each));
  return result;
}

}  // namespace lathe::lower
