#include "relax/control.h"

#include "relax/call_tir.h"
#include "relax/infer.h"

namespace lathe::relax {

namespace {

StructInfo tuple_of(std::span<const StructInfo> items) {
  return make<TupleStructInfo>(std::vector<StructInfo>(items.begin(), items.end()));
}

// What decides is a scalar tensor of that dtype.
support::Status check_decider(const InferContext& c, size_t i, DType dtype) {
  if (i >= c.args.size() || !c.args[i]) return support::success();
  const TensorStructInfo& info = *TRY(tensor_argument(c, i));
  if ((!info.dtype.is_void() && info.dtype != dtype) || info.ndim > 0)
    return wrong(codes::wrong_arguments, std::string(c.op.inputs[i].name) + " of " + std::string(c.op.name) +
                                             " is a scalar of " + dtype.str() + ", not " + text_of(info));
  return support::success();
}

Result<StructInfo> infer_branch(const InferContext& c) {
  if (c.args.size() != 5 || !c.args[0] || !c.args[1] || !c.args[1].is<GlobalVar>() || !c.args[2] ||
      !c.args[2].is<Tuple>() || !c.args[3] || !c.args[3].is<GlobalVar>() || !c.args[4] || !c.args[4].is<Tuple>())
    return wrong(codes::wrong_arguments,
                 "branch takes a condition, and two functions of the module, each with a tuple of arguments");
  TRY(check_decider(c, 0, DType::boolean()));
  return tuple_of(c.struct_info_args);
}

Result<StructInfo> infer_loop(const InferContext& c) {
  if (c.args.size() != 5 || !c.args[0] || !c.args[0].is<GlobalVar>() || !c.args[3] || !c.args[3].is<Tuple>() ||
      !c.args[4] || !c.args[4].is<Tuple>())
    return wrong(codes::wrong_arguments,
                 "loop takes a function of the module, trips, a condition, and tuples of what it carries and captures");
  TRY(check_decider(c, 1, DType::int64()));
  TRY(check_decider(c, 2, DType::boolean()));
  const size_t carried = c.args[3].as<Tuple>()->items.size();
  if (c.struct_info_args.size() < carried)
    return wrong(codes::wrong_arguments, "loop carries " + std::to_string(carried) + " values, but declares " +
                                             std::to_string(c.struct_info_args.size()) + " results");
  std::vector<StructInfo> results(c.struct_info_args.begin(), c.struct_info_args.end());
  for (size_t k = carried; k < results.size(); ++k) {
    const auto* row = results[k].as<TensorStructInfo>();
    if (!row || row->ndim < 0)
      return wrong(codes::wrong_arguments, "the rows that a loop stacks are tensors of known rank");
    results[k] = tensor_info_of_rank(row->ndim + 1, row->dtype);
  }
  return StructInfo(make<TupleStructInfo>(std::move(results)));
}

}  // namespace

const Operator branch_operator{
    .name = "branch",
    .inputs = {{"condition"}, {"then"}, {"then_args"}, {"otherwise"}, {"otherwise_args"}},
    .infer = infer_branch,
    .meaning = RuntimeKernel{"branch"},
    .reference = "then(*then_args) if condition else otherwise(*otherwise_args)",
};

const Operator loop_operator{
    .name = "loop",
    .inputs = {{"body"}, {"trips", Input::optional}, {"condition", Input::optional}, {"carried"}, {"captured"}},
    .infer = infer_loop,
    .meaning = RuntimeKernel{"loop"},
    .reference = "a while loop over body(turn, condition, *carried, *captured)",
};

std::optional<Branch> as_branch(const Expr& e) {
  const auto* call = e.as<Call>();
  if (!call || callee_operator(*call) != &branch_operator) return std::nullopt;
  const auto callee = [&](size_t i) {
    return Callee{call->args[i].as<GlobalVar>()->name, call->args[i + 1].as<Tuple>()->items};
  };
  return Branch{call->args[0], callee(1), callee(3)};
}

std::optional<Loop> as_loop(const Expr& e) {
  const auto* call = e.as<Call>();
  if (!call || callee_operator(*call) != &loop_operator) return std::nullopt;
  return Loop{
      call->args[0].as<GlobalVar>()->name, call->args[1],         call->args[2], call->args[3].as<Tuple>()->items,
      call->args[4].as<Tuple>()->items,    call->struct_info_args};
}

Result<Expr> make_branch(const Branch& branch, std::vector<StructInfo> results, ir::Origin origin) {
  return make_call(branch_operator,
                   {branch.condition, global_var(branch.then.function), tuple_of(branch.then.args),
                    global_var(branch.otherwise.function), tuple_of(branch.otherwise.args)},
                   {}, std::move(origin), std::move(results));
}

Result<Expr> make_loop(const Loop& loop, ir::Origin origin) {
  return make_call(loop_operator,
                   {global_var(loop.body), loop.trips, loop.condition, tuple_of(loop.carried), tuple_of(loop.captured)},
                   {}, std::move(origin), loop.results);
}

std::vector<std::string> called_functions(const Expr& e) {
  if (const auto branch = as_branch(e)) return {branch->then.function, branch->otherwise.function};
  if (const auto loop = as_loop(e)) return {loop->body};
  const auto* call = e.as<Call>();
  const auto* callee = call ? call->callee.as<GlobalVar>() : nullptr;
  return callee ? std::vector{callee->name} : std::vector<std::string>{};
}

}  // namespace lathe::relax
