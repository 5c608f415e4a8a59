// Struct info of expressions that are no operator's calls, and of those that are.
#include "ir/match.h"
#include "relax/infer.h"

namespace lathe::relax {

namespace {

Result<StructInfo> infer_call(const Call& call) {
  if (const Operator* op = callee_operator(call))
    return op->infer(InferContext{*op, call.args, call.attributes.get(), call.struct_info_args});
  if (call.struct_info_args.size() == 1) return call.struct_info_args[0];
  if (const auto* function = call.callee->struct_info.as<FuncStructInfo>()) return function->result;
  return StructInfo(make<ObjectStructInfo>());
}

}  // namespace

Result<StructInfo> infer_struct_info(const Expr& e) {
  using Info = Result<StructInfo>;
  const auto known = [&](const ExprNode& node) -> Info {
    return node.struct_info ? node.struct_info : StructInfo(make<ObjectStructInfo>());
  };
  return ir::match(
      e, [&](const VarNode& n) -> Info { return known(n); },
      [](const Tuple& n) -> Info {
        std::vector<StructInfo> items;
        for (const Expr& item : n.items) items.push_back(TRY(infer_struct_info(item)));
        return StructInfo(make<TupleStructInfo>(std::move(items)));
      },
      [](const TupleGetItem& n) -> Info {
        const StructInfo of = TRY(infer_struct_info(n.tuple));
        const auto* tuple = of.as<TupleStructInfo>();
        if (!tuple) return wrong(codes::wrong_arguments, "an item is taken of a value that is not a tuple");
        if (n.index < 0 || n.index >= static_cast<int64_t>(tuple->items.size()))
          return wrong(codes::wrong_arguments,
                       "item " + std::to_string(n.index) + " of a tuple of " + std::to_string(tuple->items.size()));
        return tuple->items[static_cast<size_t>(n.index)];
      },
      [](const Call& n) -> Info { return infer_call(n); },
      [](const SeqExpr& n) -> Info { return infer_struct_info(n.body); },
      [](const If& n) -> Info { return infer_struct_info(n.true_branch); },
      [&](const ExprNode& n) -> Info { return known(n); });
}

}  // namespace lathe::relax
