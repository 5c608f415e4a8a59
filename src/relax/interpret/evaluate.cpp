#include "relax/interpret/evaluate.h"

#include "ir/match.h"
#include "ir/visit.h"
#include "relax/assert_op.h"
#include "relax/block_builder.h"
#include "relax/call_tir.h"
#include "relax/control.h"
#include "relax/dim_sizes.h"
#include "relax/infer.h"
#include "relax/interpret/evaluate_collection.h"
#include "relax/interpret/lower_call.h"
#include "relax/tensor_to_shape.h"
#include "tir/interpret/interpret.h"

namespace lathe::relax {

namespace {

using ir::TensorData;
using support::Diagnostic;
using support::Status;

constexpr int deepest_call = 64;  // as in the register program

Diagnostic refuse(const ir::Origin& origin, std::string message) {
  Diagnostic d{.code = codes::cannot_interpret, .message = std::move(message)};
  if (origin) d.place = *origin;
  return d;
}

class Evaluation {
 public:
  Evaluation(const ir::IRModule& module, const EvaluateOptions& options, int depth = 0)
      : module_(module), options_(options), depth_(depth) {}

  Result<GraphValue> function(const FunctionNode& f, const std::vector<GraphValue>& args, const std::string& name) {
    if (args.size() != f.params.size())
      return Diagnostic{.code = codes::wrong_input,
                        .message = "'" + name + "' takes " + std::to_string(f.params.size()) + " arguments, not " +
                                   std::to_string(args.size())};
    for (size_t i = 0; i < args.size(); ++i) {
      TRY(bind_symbols(f.params[i]->struct_info, args[i], "argument '" + f.params[i]->name + "'"));
      values_[f.params[i].get()] = args[i];
    }
    for (size_t i = 0; i < args.size(); ++i)
      TRY(check(f.params[i]->struct_info, args[i], "argument '" + f.params[i]->name + "'"));
    for (const Assert& each : TRY(size_checks(f))) TRY(require(each, {}));
    return evaluate(f.body);
  }

 private:
  // ---- symbols ----

  Result<int64_t> extent(const ir::Expr& e) {
    if (const auto known = ir::as_int(e)) return *known;
    const auto known = ir::as_int(simplified(ir::substitute(e, symbols_)));
    if (known) return *known;
    return Diagnostic{.code = codes::cannot_interpret, .message = "the extent " + text_of(e) + " is not known"};
  }

  Result<std::vector<int64_t>> extents(const Shape& shape) {
    std::vector<int64_t> values;
    for (const ir::Expr& e : shape) values.push_back(TRY(extent(e)));
    return values;
  }

  // Binds the symbols that stand alone in `info` to what `value` has there.
  Status bind_symbols(const StructInfo& info, const GraphValue& value, const std::string& what) {
    if (const auto* tuple = info.as<TupleStructInfo>()) {
      if (!value.items() || value.items()->size() != tuple->items.size())
        return Diagnostic{.code = codes::wrong_input,
                          .message = what + " is not a tuple of " + std::to_string(tuple->items.size())};
      for (size_t i = 0; i < tuple->items.size(); ++i) TRY(bind_symbols(tuple->items[i], (*value.items())[i], what));
      return support::success();
    }
    const auto* tensor = info.as<TensorStructInfo>();
    const auto* shape = info.as<ShapeStructInfo>();
    const std::vector<int64_t>* actual = value.tensor() ? &(*value.tensor())->shape : value.shape();
    const OptionalShape declared = tensor ? tensor->shape : shape ? shape->values : OptionalShape{};
    if (!actual || !declared || actual->size() != declared->size()) return support::success();  // `check` tells
    for (size_t d = 0; d < actual->size(); ++d)
      if ((*declared)[d].is<ir::VarNode>())
        symbols_.try_emplace(ir::cast<ir::VarNode>((*declared)[d]), ir::int64((*actual)[d]));
    return support::success();
  }

  Status require(const Assert& parts, const ir::Origin& origin) {
    if (TRY(extent(parts.condition)) != 0) return support::success();
    std::vector<std::string> numbers;
    for (const int64_t number : TRY(extents(parts.numbers))) numbers.push_back(std::to_string(number));
    Diagnostic failed{.code = codes::wrong_input, .message = formatted(parts.format, numbers)};
    if (origin) failed.place = *origin;
    return failed;
  }

  // Whether `value` is what `info` says.
  Status check(const StructInfo& info, const GraphValue& value, const std::string& what) {
    if (const auto* shape = info.as<ShapeStructInfo>(); shape && shape->values && value.shape())
      if (const auto wanted = TRY(extents(*shape->values)); wanted != *value.shape())
        return Diagnostic{.code = codes::wrong_input, .message = what + " is not " + text_of(*shape->values)};
    const auto* tensor = info.as<TensorStructInfo>();
    if (!tensor) return support::success();
    const auto describe = [&](const std::string& actual) {
      return Diagnostic{.code = codes::wrong_input, .message = what + " is " + actual + ", not " + text_of(*tensor)};
    };
    if (!value.tensor()) return describe("no tensor");
    const ir::TensorDataNode& data = **value.tensor();
    const std::string actual = text_of(*tensor_info(data.shape, data.dtype).as<TensorStructInfo>());
    if (!tensor->dtype.is_void() && data.dtype != tensor->dtype) return describe(actual);
    if (tensor->ndim >= 0 && static_cast<size_t>(tensor->ndim) != data.shape.size()) return describe(actual);
    if (tensor->shape && TRY(extents(*tensor->shape)) != data.shape) return describe(actual);
    return support::success();
  }

  // ---- expressions ----

  Result<GraphValue> evaluate(const Expr& e) {
    using Value = Result<GraphValue>;
    return ir::match(
        e,
        [&](const VarNode& n) -> Value {
          const auto it = values_.find(&n);
          if (it == values_.end()) return refuse(e->origin(), "the variable '" + n.name + "' has no value");
          return it->second;
        },
        [](const Constant& n) -> Value { return GraphValue{n.data}; },
        [&](const ShapeExpr& n) -> Value { return GraphValue{TRY(extents(n.values))}; },
        [&](const PrimValue& n) -> Value { return GraphValue{std::vector{TRY(extent(n.value))}}; },
        [&](const Tuple& n) -> Value {
          std::vector<GraphValue> items;
          for (const Expr& item : n.items) items.push_back(TRY(evaluate(item)));
          return GraphValue{std::move(items)};
        },
        [&](const TupleGetItem& n) -> Value {
          const GraphValue tuple = TRY(evaluate(n.tuple));
          if (!tuple.items() || n.index < 0 || static_cast<size_t>(n.index) >= tuple.items()->size())
            return refuse(e->origin(), "item " + std::to_string(n.index) + " of a value that has none");
          return (*tuple.items())[static_cast<size_t>(n.index)];
        },
        [&](const SeqExpr& n) -> Value { return sequence(n); },
        [&](const If& n) -> Value {
          const bool chosen = TRY(is_true(TRY(evaluate(n.condition)), e));
          return evaluate(chosen ? n.true_branch : n.false_branch);
        },
        [&](const Call& n) -> Value { return call(ir::Ref<Call>(&n)); },
        [&](const ExprNode& n) -> Value {
          return refuse(e->origin(), "a value of kind " + std::string(n.node_class().name) + " cannot be evaluated");
        });
  }

  Result<GraphValue> sequence(const SeqExpr& seq) {
    for (const BindingBlock& block : seq.blocks)
      for (const Binding& binding : block->bindings) {
        if (const auto* cast = binding.as<MatchCast>()) {
          const GraphValue value = TRY(evaluate(cast->value));
          TRY(bind_symbols(cast->struct_info, value, "'" + cast->var->name + "'"));
          TRY(check(cast->struct_info, value, "'" + cast->var->name + "'"));
          values_[cast->var.get()] = value;
          continue;
        }
        const auto& bound = *binding.as<VarBinding>();
        GraphValue value = TRY(evaluate(bound.value));
        TRY(check(bound.var->struct_info, value, "'" + bound.var->name + "'"));
        values_[bound.var.get()] = std::move(value);
      }
    return evaluate(seq.body);
  }

  Result<GraphValue> call(const ir::Ref<Call>& call) {
    if (const auto parts = as_call_tir(call)) return run_call_tir(*parts, call);
    if (const auto* global = call->callee.as<GlobalVar>())
      return call_function(global->name, TRY(evaluate_all(call->args)), call);
    if (const auto branch = as_branch(call)) {
      const Callee& callee = TRY(is_true(TRY(evaluate(branch->condition)), call)) ? branch->then : branch->otherwise;
      return call_function(callee.function, TRY(evaluate_all(callee.args)), call);
    }
    if (const auto parts = as_loop(call)) return loop(*parts, call);
    const Operator* op = callee_operator(*call);
    if (!op) return refuse(call->origin(), "only operators and functions of the module can be called");
    if (const auto* composite = std::get_if<Composite>(&op->meaning)) {
      BlockBuilder builder;
      builder.begin_scope();
      const Expr scope = builder.end_scope(TRY((*composite)(builder, *call)));
      // The tensor programs of an expansion are functions of the builder's.
      Evaluation expansion(builder.module(), options_, depth_);
      expansion.symbols_ = symbols_;
      for (const Expr& arg : call->args)
        if (arg) TRY(expansion.take_values(arg, *this));
      return expansion.evaluate(scope);
    }
    if (op == &tensor_to_shape_operator) {
      const GraphValue x = TRY(evaluate(call->args.at(0)));
      std::vector<int64_t> values;
      for (int64_t i = 0; x.tensor() && i < (*x.tensor())->elements(); ++i)
        values.push_back(ir::int_at(**x.tensor(), i));
      return GraphValue{std::move(values)};
    }
    if (const auto parts = as_assert(call)) {
      TRY(require(*parts, call->origin()));
      return GraphValue{std::vector<GraphValue>{}};
    }
    if (is_alloc_tensor(call)) {
      const auto& info = *as_tensor(call);
      return GraphValue{tir::TensorBuffer::zeros(info.dtype, TRY(extents(*info.shape))).to_data()};
    }
    if (is_collection_operator(*op)) {
      std::vector<GraphValue> args;
      for (const Expr& arg : call->args) args.push_back(arg ? TRY(evaluate(arg)) : GraphValue());
      return evaluate_collection(*call, args);
    }
    if (std::holds_alternative<RuntimeKernel>(op->meaning))
      return refuse(call->origin(), std::string(op->name) + " is a kernel of the runtime");
    return run_loops(call);
  }

  // The values that `from` has of the variables in `e`.
  Status take_values(const Expr& e, Evaluation& from) {
    if (const auto* var = e.as<VarNode>()) values_[var] = TRY(from.evaluate(e));
    if (const auto* tuple = e.as<Tuple>())
      for (const Expr& item : tuple->items) TRY(take_values(item, from));
    return support::success();
  }

  // ---- functions ----

  Result<std::vector<GraphValue>> evaluate_all(const std::vector<Expr>& items) {
    std::vector<GraphValue> values;
    for (const Expr& item : items) values.push_back(TRY(evaluate(item)));
    return values;
  }

  Result<GraphValue> call_function(const std::string& name, const std::vector<GraphValue>& args, const Expr& at) {
    const Function callee = module_.find_as<FunctionNode>(name);
    if (!callee) return refuse(at->origin(), "the module has no function '" + name + "'");
    if (depth_ >= deepest_call)
      return refuse(at->origin(), "functions call each other more than " + std::to_string(deepest_call) + " deep");
    return Evaluation(module_, options_, depth_ + 1).function(*callee, args, name);
  }

  Result<bool> is_true(const GraphValue& value, const Expr& at) const {
    if (!value.tensor() || (*value.tensor())->elements() != 1)
      return refuse(at->origin(), "a condition that is no scalar");
    return ir::int_at(**value.tensor(), 0) != 0;
  }

  Result<GraphValue> loop(const Loop& loop, const Expr& at) {
    std::vector<GraphValue> carried = TRY(evaluate_all(loop.carried));
    const std::vector<GraphValue> captured = TRY(evaluate_all(loop.captured));
    std::vector<std::vector<TensorData>> rows(loop.results.size() - carried.size());
    bool goes_on = !loop.condition || TRY(is_true(TRY(evaluate(loop.condition)), at));
    int64_t trips = std::numeric_limits<int64_t>::max();
    if (loop.trips) trips = ir::int_at(**TRY(evaluate(loop.trips)).tensor(), 0);
    for (int64_t turn = 0; turn < trips && goes_on; ++turn) {
      if (turn >= options_.max_turns)
        return refuse(at->origin(), "a loop takes more than " + std::to_string(options_.max_turns) + " turns");
      std::vector<GraphValue> args{{ir::tensor_of<int64_t>(DType::int64(), {}, {turn})},
                                   {ir::tensor_of<uint8_t>(DType::boolean(), {}, {1})}};
      args.insert(args.end(), carried.begin(), carried.end());
      args.insert(args.end(), captured.begin(), captured.end());
      const GraphValue results = TRY(call_function(loop.body, args, at));
      if (!results.items() || results.items()->size() != 1 + loop.results.size())
        return refuse(at->origin(), "'" + loop.body + "' does not give what the loop carries and stacks");
      const std::vector<GraphValue>& items = *results.items();
      goes_on = TRY(is_true(items[0], at));
      carried.assign(items.begin() + 1, items.begin() + 1 + static_cast<ptrdiff_t>(carried.size()));
      for (size_t k = 0; k < rows.size(); ++k) {
        const GraphValue& row = items[1 + carried.size() + k];
        if (!row.tensor()) return refuse(at->origin(), "a row that is no tensor");
        rows[k].push_back(*row.tensor());
      }
    }
    for (size_t k = 0; k < rows.size(); ++k)
      carried.push_back({TRY(stack(rows[k], *loop.results[loop.carried.size() + k].as<TensorStructInfo>(), at))});
    return GraphValue{std::move(carried)};
  }

  // The rows along a new first axis; of no rows a tensor without elements, whose unknown extents are 0.
  Result<TensorData> stack(const std::vector<TensorData>& rows, const TensorStructInfo& info, const Expr& at) {
    std::vector<int64_t> shape{static_cast<int64_t>(rows.size())};
    if (rows.empty()) {
      for (int64_t d = 0; d < info.ndim; ++d) {
        const Result<int64_t> known = info.shape ? extent((*info.shape)[static_cast<size_t>(d)]) : Result<int64_t>(0);
        shape.push_back(known.ok() ? *known : 0);
      }
      return tir::TensorBuffer::zeros(info.dtype, std::move(shape)).to_data();
    }
    shape.insert(shape.end(), rows[0]->shape.begin(), rows[0]->shape.end());
    tir::TensorBuffer all = tir::TensorBuffer::zeros(rows[0]->dtype, std::move(shape));
    int64_t next = 0;
    for (const TensorData& row : rows) {
      if (row->shape != rows[0]->shape || row->dtype != rows[0]->dtype)
        return refuse(at->origin(), "rows of different shapes are stacked");
      const bool is_real = row->dtype.is_floating();
      for (int64_t i = 0; i < row->elements(); ++i, ++next)
        is_real ? all.set_float(next, ir::float_at(*row, i)) : all.set_int(next, ir::int_at(*row, i));
    }
    return all.to_data();
  }

  // ---- tensor programs ----

  Result<GraphValue> run_call_tir(const CallTir& parts, const ir::Ref<Call>& call) {
    const tir::Function function = module_.find_as<tir::PrimFunc>(parts.function);
    if (!function) return refuse(call->origin(), "the module has no tensor program '" + parts.function + "'");
    std::vector<TensorData> inputs;
    for (const Expr& arg : parts.args) {
      const GraphValue value = TRY(evaluate(arg));
      if (!value.tensor()) return refuse(call->origin(), "an argument of call_tir is no tensor");
      inputs.push_back(*value.tensor());
    }
    std::vector<int64_t> scalars;
    for (const ir::Expr& scalar : parts.scalars) scalars.push_back(TRY(extent(scalar)));
    return run(function, inputs, parts, scalars, parts.outputs.size() > 1);
  }

  Result<GraphValue> run_loops(ir::Ref<Call> call) {
    // Where a shape is known only now, the call is typed again by the actual shapes; so too where an extent is zero,
    // because a block that is never run initialises no reduction.
    const bool has_zero =
        std::any_of(symbols_.begin(), symbols_.end(), [](const auto& symbol) { return ir::is_int(symbol.second, 0); });
    if (has_zero || !is_shaped(*call)) call = TRY(typed_by_values(*call));
    const LoweredCall lowered = TRY(lower_call(*call));
    std::vector<TensorData> inputs;
    for (const Expr& arg : lowered.inputs) inputs.push_back(*TRY(evaluate(arg)).tensor());
    std::vector<int64_t> scalars;
    for (const ir::Var& scalar : lowered.scalars) scalars.push_back(TRY(extent(scalar)));
    const bool is_tuple = call->struct_info.is<TupleStructInfo>();
    return run(lowered.function, inputs, {.outputs = lowered.outputs}, scalars, is_tuple);
  }

  static bool is_shaped(const Call& call) {
    const std::function<bool(const StructInfo&)> shaped = [&](const StructInfo& info) {
      if (const auto* tensor = info.as<TensorStructInfo>())
        return tensor->shape.has_value() && !tensor->dtype.is_void();
      if (const auto* tuple = info.as<TupleStructInfo>())
        return std::all_of(tuple->items.begin(), tuple->items.end(), shaped);
      if (const auto* shape = info.as<ShapeStructInfo>()) return shape->values.has_value();
      return true;
    };
    return shaped(call.struct_info) &&
           std::all_of(call.args.begin(), call.args.end(), [&](const Expr& a) { return !a || shaped(a->struct_info); });
  }

  Result<ir::Ref<Call>> typed_by_values(const Call& call) {
    std::vector<Expr> args;
    for (const Expr& arg : call.args) {
      if (!arg) {
        args.push_back(arg);
        continue;
      }
      const GraphValue value = TRY(evaluate(arg));
      if (value.shape()) {
        Shape shape;
        for (const int64_t e : *value.shape()) shape.push_back(ir::int64(e));
        args.push_back(make<ShapeExpr>(std::move(shape)));
      } else if (value.tensor()) {
        args.push_back(constant(*value.tensor()));
      } else {
        return refuse(call.origin(), "an argument of unknown shape is a tuple");
      }
    }
    return ir::cast<Call>(
        TRY(make_call(*callee_operator(call), std::move(args), call.attributes, call.origin(), call.struct_info_args)));
  }

  // Outputs are fresh, or the inputs that `parts` says are updated.
  Result<GraphValue> run(const tir::Function& function, const std::vector<TensorData>& inputs, const CallTir& parts,
                         const std::vector<int64_t>& scalars, bool is_tuple) {
    std::vector<tir::TensorBuffer> buffers;
    for (const TensorData& input : inputs) buffers.push_back(tir::TensorBuffer::of(input));
    std::vector<size_t> outputs;  // among the buffers
    for (size_t k = 0; k < parts.outputs.size(); ++k) {
      outputs.push_back(parts.updated(k).value_or(buffers.size()));
      if (outputs.back() < buffers.size()) continue;
      const auto& info = *parts.outputs[k].as<TensorStructInfo>();
      buffers.push_back(tir::TensorBuffer::uninitialised(info.dtype, TRY(extents(*info.shape))));
    }
    TRY(tir::interpret(function, buffers, scalars, {.seed = 0, .max_steps = options_.max_steps, .module = &module_}));
    std::vector<GraphValue> results;
    for (const size_t k : outputs) {
      for (int64_t i = 0; i < buffers[k].elements(); ++i)
        if (!buffers[k].is_written(i))
          return Diagnostic{.code = codes::cannot_interpret,
                            .message = "element " + std::to_string(i) + " of an output is never written"};
      results.push_back({buffers[k].to_data()});
    }
    if (!is_tuple) return results.at(0);
    return GraphValue{std::move(results)};
  }

  const ir::IRModule& module_;
  const EvaluateOptions& options_;
  const int depth_;
  std::unordered_map<const VarNode*, GraphValue> values_;
  ir::VarMap symbols_;
};

void flatten(const GraphValue& value, std::vector<TensorData>& tensors) {
  if (value.tensor()) tensors.push_back(*value.tensor());
  if (value.shape())
    tensors.push_back(ir::tensor_of(DType::int64(), {static_cast<int64_t>(value.shape()->size())}, *value.shape()));
  if (value.items())
    for (const GraphValue& item : *value.items()) flatten(item, tensors);
  if (value.members())
    for (const GraphValue& member : *value.members()) flatten(member, tensors);
}

}  // namespace

Result<std::vector<TensorData>> evaluate(const ir::IRModule& module, const std::string& function,
                                         const std::vector<TensorData>& inputs, const EvaluateOptions& options) {
  const Function f = module.find_as<FunctionNode>(function);
  if (!f) return refuse({}, "the module has no graph function '" + function + "'");
  std::vector<GraphValue> args;
  for (const TensorData& input : inputs) args.push_back({input});
  return support::catch_diagnostics([&]() -> Result<std::vector<TensorData>> {
    std::vector<TensorData> outputs;
    flatten(TRY(Evaluation(module, options).function(*f, args, function)), outputs);
    return outputs;
  });
}

Result<std::vector<TensorData>> evaluate(const ir::IRModule& module, const std::string& function,
                                         const std::vector<TensorData>& inputs) {
  return evaluate(module, function, inputs, {});
}

}  // namespace lathe::relax
