#include "relax/outline.h"

#include <unordered_set>

#include "ir/visit.h"

namespace lathe::relax {

namespace {

// Struct info holds no relax variables; attributes neither.
class ReplaceRelaxVars : public ir::Rewriter {
 public:
  explicit ReplaceRelaxVars(const Replacement& map) : map_(map) {}

 protected:
  NodeRef visit(NodeRef node) override {
    if (node.is<VarNode>()) {
      const auto it = map_.find(node.get());
      return it == map_.end() ? node : NodeRef(it->second);
    }
    if (node->node_class().family == "struct_info" || node->node_class().family == "expr") return node;
    StructInfo info;
    if (node->node_class().family == "relax_expr") info = static_cast<const ExprNode*>(node.get())->struct_info;
    NodeRef result = descend(std::move(node));
    if (info && result->node_class().family == "relax_expr") {
      const auto* e = static_cast<const ExprNode*>(result.get());
      if (!e->struct_info) const_cast<ExprNode*>(e)->struct_info = info;
    }
    return result;
  }

 private:
  const Replacement& map_;
};

class Outliner {
 public:
  Outliner(const Expr& sequence, std::vector<Var> params) : sequence_(sequence), params_(std::move(params)) {}

  Outlined run() {
    for (const Var& param : params_) bound_.insert(param.get());
    ir::pre_order(sequence_, [&](const NodeRef& n) { return note_bound(n); });
    ir::pre_order(sequence_, [&](const NodeRef& n) { return note_captured(n); });
    for (const Var& param : params_) bind_symbols(param->struct_info);
    for (const Var& param : params_) use_symbols(param->struct_info);
    ir::pre_order(sequence_, [&](const NodeRef& n) { return note_symbols(n); });
    if (!missing_.empty()) {
      params_.push_back(relax_var("sizes", make<ShapeStructInfo>(std::optional(missing_))));
      captured_.push_back(make<ShapeExpr>(missing_));
    }

    const auto* body = sequence_.as<SeqExpr>();
    Expr result = body->body;
    if (!result.is<Tuple>()) result = tuple_of({result});
    const StructInfo info = result->struct_info;
    Expr whole = with_struct_info(make<SeqExpr>(body->blocks, std::move(result)), info);
    whole = replace_vars(std::move(whole), replacement_);
    ir::Attributes attrs{{"private", true}};
    return {make<FunctionNode>(std::move(params_), std::move(whole), info, true, std::move(attrs)),
            std::move(captured_)};
  }

 private:
  // Dimensions that are symbols alone tell them.
  void bind_symbols(const StructInfo& info) {
    ir::pre_order(info, [&](const NodeRef& n) {
      const auto extents = [&](const std::optional<std::vector<ir::Expr>>& shape) {
        if (!shape) return;
        for (const ir::Expr& extent : *shape)
          if (extent.is<ir::VarNode>()) known_.insert(extent.get());
      };
      if (const auto* tensor = n.as<TensorStructInfo>()) extents(tensor->shape);
      if (const auto* shape = n.as<ShapeStructInfo>()) extents(shape->values);
      return n->node_class().family == "struct_info";
    });
  }

  void use_symbols(const NodeRef& root) {
    if (!root) return;
    ir::pre_order(root, [&](const NodeRef& n) {
      if (n.is<ir::VarNode>() && known_.insert(n.get()).second) missing_.push_back(ir::cast<ir::VarNode>(n));
      return true;
    });
  }

  bool note_bound(const NodeRef& n) {
    if (const auto* bound = n.as<VarBinding>()) bound_.insert(bound->var.get());
    if (const auto* cast = n.as<MatchCast>()) bound_.insert(cast->var.get());
    return !n.is<VarNode>();
  }

  bool note_captured(const NodeRef& n) {
    const auto* var = n.as<VarNode>();
    if (!var) return true;
    if (!bound_.insert(var).second) return false;
    const Var param = relax_var(var->name, var->struct_info);
    replacement_[var] = param;
    captured_.push_back(ir::cast<VarNode>(n));
    params_.push_back(param);
    return false;
  }

  // In program order: a match_cast defines the symbols that nothing before it knows.
  bool note_symbols(const NodeRef& n) {
    if (const auto* cast = n.as<MatchCast>()) {
      use_symbols(cast->value);
      bind_symbols(cast->struct_info);
      use_symbols(cast->struct_info);
      use_symbols(cast->var->struct_info);
      return false;
    }
    if (const auto* var = n.as<VarNode>()) {
      use_symbols(var->struct_info);
      return false;
    }
    if (n.is<ir::VarNode>()) use_symbols(n);
    return true;
  }

  const Expr& sequence_;
  std::vector<Var> params_;
  std::vector<Expr> captured_;
  Replacement replacement_;
  std::unordered_set<const ir::Node*> bound_, known_;
  std::vector<ir::Expr> missing_;
};

}  // namespace

NodeRef replace_vars(NodeRef root, const Replacement& map) {
  return map.empty() ? root : ReplaceRelaxVars(map)(std::move(root));
}

Outlined outline(const Expr& sequence, std::vector<Var> params) { return Outliner(sequence, std::move(params)).run(); }

}  // namespace lathe::relax
