// Loops over a function, backwards: the loop keeps what each turn begins with, and another loop meets the turns from
// the last to the first. Its body takes the turn again and is that turn's adjoint.
#include "ops/attributes.h"
#include "ops/build.h"
#include "ops/gradient/backward.h"
#include "ops/operators.h"
#include "relax/infer.h"
#include "support/mutation.h"

namespace lathe::ops::gradient {

using ir::make;
using relax::as_tensor;
using relax::Loop;
using relax::TensorStructInfo;
using relax::Tuple;
using relax::TupleStructInfo;

LATHE_FAULT(gradient_meets_turns_forwards, "graph_test", "the adjoint of a loop meets the first turn first");
LATHE_FAULT(gradient_starts_captured_anew, "graph_test",
            "what a loop captures has the adjoint of one turn, not of all of them");

namespace {

constexpr size_t deciders = 2;  // the turn and the condition, before what a body carries

StructInfo scalar_info(ir::DType dtype) { return relax::tensor_info(std::vector<int64_t>{}, dtype); }

relax::Function body_of(const ir::IRModule& module, const Loop& loop) {
  const auto body = module.find_as<relax::FunctionNode>(loop.body);
  support::require(static_cast<bool>(body), "a loop calls a function of the module");
  return body;
}

// Why a loop cannot keep what its turns begin with; empty where it can.
std::string reason_against(const Loop& loop, const relax::FunctionNode& body) {
  for (size_t k = 0; k < loop.carried.size(); ++k) {
    const std::string value =
        "no gradient goes through a loop whose value " + std::to_string(k) + " that is carried from turn to turn ";
    const auto* before = as_tensor(loop.carried[k]);
    const auto* after = loop.results[k].as<TensorStructInfo>();
    if (!before || !after) return value + "is no tensor";
    if (!before->shape || !after->shape || !relax::same_shape(*before->shape, *after->shape))
      return value + "changes its shape";
    if (const auto* inside = as_tensor(body.params[deciders + k]); !inside || !inside->shape)
      return value + "has a shape that '" + loop.body + "' does not know";
    const ir::DType t = after->dtype;
    if (!t.is_bool() && (t.bits < 8 || !(t.is_int() || t.is_uint() || t.is_floating())))
      return value + "is of type " + t.str();
  }
  return "";
}

// The type of one row a turn, stacked.
StructInfo stacked(const ir::Expr& turns, const Shape& row, ir::DType dtype) {
  Shape shape{turns};
  shape.insert(shape.end(), row.begin(), row.end());
  return relax::tensor_info(std::move(shape), dtype);
}

// The shape by names of a function's own: what its caller calls them means nothing there.
Shape renamed(const Shape& shape) {
  Shape own;
  for (const ir::Expr& extent : shape)
    own.push_back(ir::as_int(extent) ? extent : ir::Expr(ir::size_var("extent_" + std::to_string(own.size()))));
  return own;
}

// The adjoint of `e` as it comes from outside, by the extents of `e`.
Expr fitted(BlockBuilder& builder, const Expr& adjoint, const Expr& e) {
  const auto *given = as_tensor(adjoint), *own = as_tensor(e);
  if (!own || !own->shape || (given->shape && relax::same_shape(*given->shape, *own->shape))) return adjoint;
  return builder.match_cast(adjoint, e->struct_info);
}

// Parameters of a function with the arguments that a loop gives it, in the order of its body's: carried, then captured.
struct Given {
  std::vector<Var> params;
  std::vector<Expr> args;

  Var add(const std::string& name, StructInfo info, const Expr& arg) {
    params.push_back(relax::relax_var(name, std::move(info)));
    args.push_back(arg);
    return params.back();
  }
};

// Emits what the function gives, ends it and adds it to the module.
std::string end_body(BlockBuilder& builder, std::vector<Var> params, std::vector<Expr> results,
                     const ir::Attributes& attrs, const std::string& name) {
  std::vector<StructInfo> infos;
  for (Expr& result : results) {
    result = builder.emit_output(std::move(result));
    infos.push_back(result->struct_info);
  }
  const StructInfo info = make<TupleStructInfo>(std::move(infos));
  const Expr whole = builder.end_scope(with_struct_info(make<Tuple>(std::move(results)), info));
  return builder.add_function(make<relax::FunctionNode>(std::move(params), whole, info, true, attrs), name);
}

}  // namespace

// The loop with two things more: it carries how many turns it made, and stacks what each of them began with. The value
// is then what the loop's was, written out.
support::Result<Expr> Backward::keep_starts(const Var& var, const Expr& value, Bindings& bindings) {
  const Loop loop = *as_loop(value);
  const relax::Function body = body_of(expanded_, loop);
  if (!reason_against(loop, *body).empty()) return value;  // which is no matter unless an adjoint comes here
  const size_t carried = loop.carried.size();
  builder_.begin_scope();
  builder_.begin_dataflow();
  relax::Replacement copies;
  std::vector<Var> params = copy_parameters(body->params, copies);
  const std::vector<Expr> starts(params.begin() + deciders,
                                 params.begin() + static_cast<ptrdiff_t>(deciders + carried));
  const CopiedBody copied = TRY(Backward(builder_, expanded_).copy(body->body, std::move(copies)));
  std::vector<Expr> results = copied.result.as<Tuple>()->items;
  const auto end_of_carried = static_cast<ptrdiff_t>(1 + carried);
  results.insert(results.begin() + end_of_carried,
                 TRY(builder_.call(ops::add, {params[0], build::scalar(ir::DType::int64(), 1)})));
  results.insert(results.end(), starts.begin(), starts.end());
  const StructInfo count = scalar_info(ir::DType::int64());
  params.insert(params.begin() + static_cast<ptrdiff_t>(deciders + carried), relax::relax_var("turns_made", count));

  Loop kept = loop;
  kept.body = end_body(builder_, std::move(params), std::move(results), body->attrs, loop.body + "_kept");
  kept.carried.push_back(build::scalar(ir::DType::int64(), 0));
  kept.results.insert(kept.results.begin() + static_cast<ptrdiff_t>(carried), count);
  kept.results.insert(kept.results.end(), loop.results.begin(), loop.results.begin() + static_cast<ptrdiff_t>(carried));
  const Expr call = TRY(make_loop(kept, value->origin()));
  const Var all = relax::relax_var(var->name + "_kept", call->struct_info, true);
  kept_.emplace(call.get(), KeptLoop{loop, all});
  bind(all, call, bindings);
  std::vector<Expr> items;
  for (size_t k = 0; k < loop.results.size(); ++k)
    items.push_back(bind_item(all, k < carried ? k : k + 1, var->name + "_" + std::to_string(k), bindings));
  return ir::with_origin(with_struct_info(make<Tuple>(std::move(items)), var->struct_info), value->origin());
}

// Which of the values that a loop's body takes have adjoints: what is carried has one as well if a turn makes it depend
// on something that has.
support::Result<std::vector<bool>> Backward::active_in_turns(const Loop& loop, const relax::FunctionNode& body) const {
  std::vector<Expr> args = loop.carried;
  args.insert(args.end(), loop.captured.begin(), loop.captured.end());
  std::vector<bool> active;
  for (const Expr& arg : args) active.push_back(is_active(arg) && carries_gradient(arg->struct_info));
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    BlockBuilder scratch;
    scratch.begin_scope();
    Backward turn(scratch, expanded_);
    relax::Replacement copies;
    const std::vector<Var> params = copy_parameters(body.params, copies);
    for (size_t k = 0; k < active.size(); ++k)
      if (active[k]) turn.want(params[deciders + k]);
    const CopiedBody copied = TRY(turn.copy(body.body, std::move(copies)));
    for (size_t k = 0; k < loop.carried.size(); ++k) {
      const Expr& after = copied.result.as<Tuple>()->items.at(1 + k);
      if (active[k] || !turn.is_active(after) || !carries_gradient(after->struct_info)) continue;
      active[k] = is_changed = true;
    }
  }
  return active;
}

// The turns once more, from the last to the first. What the loop carries are the adjoints of what the turns carried,
// and sums of the adjoints of what they captured.
class Backward::TurnsBackward {
 public:
  TurnsBackward(Backward& outer, const KeptLoop& kept, std::vector<bool> active)
      : outer_(outer),
        builder_(outer.builder_),
        loop_(kept.loop),
        all_(kept.all),
        body_(body_of(outer.expanded_, kept.loop)),
        active_(std::move(active)),
        inner_(outer.builder_, outer.expanded_),
        turn_(relax::relax_var("turn", scalar_info(ir::DType::int64()))),
        condition_(relax::relax_var("condition", scalar_info(ir::DType::boolean()))) {}

  // `adjoints` are those of the items of the loop that keeps starts; `origin` is the loop's place.
  support::Status run(const std::vector<Expr>& adjoints, const ir::Origin& origin) {
    made_ = builder_.tuple_item(all_, static_cast<int64_t>(carried()));
    const std::vector<Expr> starts = stacked_starts();
    builder_.begin_scope();
    builder_.begin_dataflow();
    const CopiedBody copied = TRY(turn_again(starts));
    TRY(seed(copied.result.as<Tuple>()->items, adjoints));
    TRY(inner_.run(copied.bindings));
    const std::string name = TRY(end_turn());
    for (size_t i = 0; i < targets_.size(); ++i)
      if (!first_.args[i]) first_.args[i] = TRY(zeros_like(builder_, targets_[i]));
    const Loop back{name, made_, {}, first_.args, then_.args, infos_};
    return add_results(builder_.emit(TRY(make_loop(back, origin)), "loop_adjoint"));
  }

 private:
  size_t carried() const { return loop_.carried.size(); }

  // What each turn began with, by the extents that the caller knows.
  std::vector<Expr> stacked_starts() {
    std::vector<Expr> starts;
    const ir::Expr turns = ir::size_var("turns");
    for (size_t k = 0; k < carried(); ++k) {
      const auto& info = *loop_.results[k].as<TensorStructInfo>();
      const Expr start = builder_.tuple_item(all_, static_cast<int64_t>(1 + loop_.results.size() + k));
      starts.push_back(builder_.match_cast(start, stacked(turns, *info.shape, info.dtype), "starts"));
    }
    return starts;
  }

  // The row of this turn of something that the backward loop is given.
  support::Result<Expr> row_of(const Expr& stack, const std::string& name, const Shape& shape) {
    const Var param = then_.add(name, stacked(turns_, shape, as_tensor(stack)->dtype), stack);
    return builder_.call(ops::take, {param, at_}, make<AxisAttributes>(int64_t{0}));
  }

  // The body as it was, of what the turn began with.
  support::Result<CopiedBody> turn_again(const std::vector<Expr>& starts) {
    const Var count = then_.add("turns_made", scalar_info(ir::DType::int64()), made_);
    const Expr last = TRY(builder_.call(ops::subtract, {count, build::scalar(ir::DType::int64(), 1)}));
    at_ = TRY(builder_.call(ops::subtract, {last, turn_}, {}, "turn_undone"));
    if (support::flip(gradient_meets_turns_forwards)) at_ = turn_;
    relax::Replacement copies{{body_->params[0].get(), at_}, {body_->params[1].get(), condition_}};
    for (size_t k = 0; k < carried() + loop_.captured.size(); ++k) {
      const Var& param = body_->params[deciders + k];
      if (k < carried()) {
        const auto& info = *param->struct_info.as<TensorStructInfo>();
        own_.push_back(TRY(row_of(starts[k], "starts_" + std::to_string(k), *info.shape)));
      } else {
        own_.push_back(then_.add(param->name, param->struct_info, loop_.captured[k - carried()]));
      }
      copies[param.get()] = own_.back();
      if (!active_[k]) continue;
      inner_.want(own_.back());
      if (const auto* info = k < carried() ? nullptr : as_tensor(loop_.captured[k - carried()]); info && info->shape)
        inner_.captured_[own_.back().get()] = k - carried();
    }
    return inner_.copy(body_->body, std::move(copies));
  }

  // The adjoints of what the turn gave.
  support::Status seed(const std::vector<Expr>& results, const std::vector<Expr>& adjoints) {
    for (size_t k = 0; k < carried(); ++k) {
      if (!active_[k]) continue;
      targets_.push_back(loop_.carried[k]);
      infos_.push_back(loop_.results[k]);
      const Var after = first_.add("adjoint_" + std::to_string(k), own_[k]->struct_info, adjoints[k]);
      TRY(inner_.add(results.at(1 + k), fitted(builder_, after, results[1 + k])));
    }
    for (size_t r = carried(); r < loop_.results.size(); ++r) {
      const Expr &adjoint = adjoints[1 + r], &row = results.at(1 + r);
      if (!adjoint || !inner_.is_active(row)) continue;
      const auto* info = as_tensor(adjoint);
      if (!info->shape) return no_gradient_of(adjoint, "a gradient of rows of unknown shape is asked for");
      const Shape shape = renamed({info->shape->begin() + 1, info->shape->end()});
      const Expr given = TRY(row_of(adjoint, "adjoint_rows_" + std::to_string(r - carried()), shape));
      TRY(inner_.add(row, fitted(builder_, given, row)));
    }
    return support::success();
  }

  // The adjoints of what the turn began with, sums of those of what it captured, and what it took: the function's name.
  support::Result<std::string> end_turn() {
    std::vector<Expr> results{condition_};
    for (size_t k = 0; k < own_.size(); ++k) {
      if (!active_[k]) continue;
      const Expr adjoint = inner_.of(own_[k]);
      if (k < carried()) {
        results.push_back(adjoint ? adjoint : TRY(zeros_like(builder_, own_[k])));
      } else if (adjoint) {
        targets_.push_back(loop_.captured[k - carried()]);
        infos_.push_back(targets_.back()->struct_info);
        const Var sum = first_.add("sum_" + std::to_string(k - carried()), own_[k]->struct_info, {});
        results.push_back(support::flip(gradient_starts_captured_anew) ? adjoint
                                                                       : TRY(builder_.call(ops::add, {sum, adjoint})));
      }
    }
    for (const Taken& taken : inner_.taken_) {
      const auto& whole = *as_tensor(loop_.captured[taken.captured]);
      Shape row = *whole.shape;
      row.erase(row.begin() + taken.axis);
      infos_.push_back(scalar_info(as_tensor(taken.position)->dtype));
      infos_.push_back(relax::tensor_info(std::move(row), whole.dtype));
      results.insert(results.end(), {taken.position, taken.adjoint});
    }
    std::vector<Var> params{turn_, condition_};
    params.insert(params.end(), first_.params.begin(), first_.params.end());
    params.insert(params.end(), then_.params.begin(), then_.params.end());
    return end_body(builder_, std::move(params), std::move(results), body_->attrs, loop_.body + "_adjoint");
  }

  support::Status add_results(const Expr& found) {
    for (size_t i = 0; i < targets_.size(); ++i)
      TRY(outer_.add(targets_[i], builder_.tuple_item(found, static_cast<int64_t>(i))));
    const ir::Expr turns = ir::size_var("turns");
    const auto stack = [&](size_t result) {
      const auto& row = *infos_[result].as<TensorStructInfo>();
      const Expr item = builder_.tuple_item(found, static_cast<int64_t>(result));
      return builder_.match_cast(item, stacked(turns, *row.shape, row.dtype), "taken");
    };
    for (size_t i = 0; i < inner_.taken_.size(); ++i) {
      const Taken& taken = inner_.taken_[i];
      const Expr positions = stack(targets_.size() + 2 * i), rows = stack(targets_.size() + 2 * i + 1);
      TRY(outer_.add_taken(loop_.captured[taken.captured], taken.axis, positions, rows));
    }
    return support::success();
  }

  Backward& outer_;
  BlockBuilder& builder_;
  const Loop& loop_;
  const Expr all_;
  const relax::Function body_;
  const std::vector<bool> active_;  // carried, then captured
  Backward inner_;
  const Var turn_, condition_;
  const ir::Expr turns_ = ir::size_var("turns");
  Expr made_, at_;  // how many turns there were, and the one that this one undoes
  Given first_, then_;
  std::vector<Expr> own_;          // what the turn began with, then what it captured
  std::vector<Expr> targets_;      // whose adjoints the loop carries
  std::vector<StructInfo> infos_;  // of the loop
};

support::Status Backward::reverse_loop(const Expr& value, const std::vector<Expr>& adjoints) {
  const auto known = kept_.find(value.get());
  if (known == kept_.end()) {
    const Loop loop = *as_loop(value);
    return no_gradient_of(value, reason_against(loop, *body_of(expanded_, loop)));
  }
  const KeptLoop& kept = known->second;
  std::vector<bool> active = TRY(active_in_turns(kept.loop, *body_of(expanded_, kept.loop)));
  return TurnsBackward(*this, kept, std::move(active)).run(adjoints, value->origin());
}

// The adjoint of what one turn takes is a row: added to the adjoint of the whole, each turn would cost as much as all.
bool Backward::note_taken(const Call& call, const Expr& adjoint) {
  const auto captured = captured_.find(call.args[0].get());
  const auto *from = as_tensor(call.args[0]), *position = as_tensor(call.args[1]);
  if (captured == captured_.end() || position->ndim != 0 || from->ndim < 1) return false;
  const int64_t axis = call.attributes ? call.attributes.as<AxisAttributes>()->axis : 0;
  taken_.push_back({captured->second, axis < 0 ? axis + from->ndim : axis, call.args[1], adjoint});
  return true;
}

// The turns together took of x by a vector of positions.
support::Status Backward::add_taken(const Expr& x, int64_t axis, const Expr& positions, const Expr& rows) {
  std::vector<int64_t> order;
  for (int64_t d = 1; d < as_tensor(rows)->ndim; ++d) order.push_back(d);
  order.insert(order.begin() + axis, 0);
  const Expr adjoint =
      axis == 0
          ? rows
          : TRY(builder_.call(ops::permute_dims, {rows}, make<PermuteDimsAttributes>(std::optional(std::move(order)))));
  const Expr all = TRY(make_call(ops::take, {x, positions}, make<AxisAttributes>(axis)));
  return reverse_program("take", all, {adjoint});
}

}  // namespace lathe::ops::gradient
