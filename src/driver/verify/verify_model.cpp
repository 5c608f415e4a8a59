#include "driver/verify/verify_model.h"

#include "driver/codes.h"
#include "driver/interpreted.h"
#include "driver/pipeline.h"
#include "driver/report/winograd_summary.h"
#include "driver/verify/sample.h"
#include "driver/verify/trials.h"
#include "graph/rewrite_bindings.h"
#include "ir/codes.h"
#include "ir/node_name.h"
#include "relax/call_tir.h"
#include "relax/interpret/evaluate.h"
#include "tir/interpret/interpret.h"

namespace lathe::driver {
namespace {

using ir::TensorData;
using support::Result;
using support::Status;

std::string words(const Dims& dims) {
  std::string text;
  for (const auto& [name, size] : dims) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, size);
  return text;
}

// The tensor programs that a module of one program an operator calls, in order.
struct OperatorCall {
  relax::Var var;
  relax::CallTir parts;
  tir::Function function;
  std::string name;
};

std::vector<OperatorCall> calls_of(const ir::IRModule& module) {
  std::vector<OperatorCall> calls;
  for (const relax::Binding& binding : graph::all_bindings(module.find_as<relax::FunctionNode>("main"))) {
    const auto* bound = binding.as<relax::VarBinding>();
    const auto parts = bound ? relax::as_call_tir(bound->value) : std::nullopt;
    if (!parts) continue;
    const std::string node = ir::node_name(bound->value);
    calls.push_back({bound->var, *parts, module.find_as<tir::PrimFunc>(parts->function),
                     node.empty() ? parts->function : fmt::format("{} ({})", node, parts->function)});
  }
  return calls;
}

// `main` with more results than its own: every tensor that a tensor program takes or computes.
struct EveryTensor {
  ir::IRModule module;
  std::unordered_map<const ir::Node*, size_t> position;               // among the results, of a variable
  std::unordered_map<const ir::Node*, std::vector<size_t>> computed;  // of the outputs of a call, by its variable
};

EveryTensor with_every_tensor(ir::IRModule module, const std::vector<OperatorCall>& calls) {
  const relax::Function main = module.find_as<relax::FunctionNode>("main");
  EveryTensor every;
  std::vector<relax::Expr> items;
  std::vector<relax::Binding> bindings = graph::all_bindings(main);
  const relax::Expr& result = main->body.as<relax::SeqExpr>()->body;
  if (const auto* tuple = result.as<relax::Tuple>())
    items = tuple->items;
  else
    items = {result};
  const auto add = [&](const relax::Expr& item) {
    const auto [it, is_new] = every.position.emplace(item.get(), items.size());
    if (is_new) items.push_back(item);
    return it->second;
  };
  for (const OperatorCall& call : calls) {
    for (const relax::Expr& arg : call.parts.args)
      if (arg.as<relax::VarNode>()) add(arg);
    std::vector<size_t>& outputs = every.computed[call.var.get()];
    if (call.parts.outputs.size() == 1) {
      outputs.push_back(add(call.var));
      continue;
    }
    for (size_t k = 0; k < call.parts.outputs.size(); ++k) {
      relax::Expr item = relax::with_struct_info(ir::make<relax::TupleGetItem>(call.var, static_cast<int64_t>(k)),
                                                 call.parts.outputs[k]);
      const relax::Var var = relax::relax_var(fmt::format("{}_{}", call.var->name, k), call.parts.outputs[k]);
      bindings.push_back(ir::make<relax::VarBinding>(std::move(item), var));
      outputs.push_back(add(var));
    }
  }
  relax::Expr all = relax::tuple_of(std::move(items));
  ir::Attributes attrs = main->attrs;
  attrs.erase("output_names");
  module.set("main", graph::make_function(main->params, std::move(bindings), std::move(all), attrs));
  every.module = std::move(module);
  return every;
}

class Verify {
 public:
  Verify(const ReadWithDims& read, const VerifyOptions& options) : read_(read), options_(options) {}

  Result<Verification> run() {
    ir::IRModule module = TRY(read_(options_.dims));
    const Signature signature = signature_of(module);
    const std::vector<Dims> trials = trials_of(module);
    if (options_.bisect) TRY(bisect_trials(module, signature, trials));
    if (made_.bisection && !made_.bisection->agrees) return std::move(made_);
    const CompiledModelRef model = TRY(compile(module, options_.compile));
    if (const std::string winograd = winograd_summary(model->module); !winograd.empty())
      made_.report.remarks.push_back(winograd);
    compiled_ = TRY(load(model));
    for (size_t t = 0; t < trials.size(); ++t) {
      const Dims& dims = trials[t];
      Status done = trial(signature, dims, options_.seed + 1000 * t);
      // Not every choice of sizes is a legal model; one must be.
      if (!done.ok() && (trials.size() == 1 || (t + 1 == trials.size() && made_.trials.empty())))
        return std::move(done).failure();
      if (!done.ok()) made_.report.remarks.push_back(fmt::format("{}: {}", words(dims), done.diagnostics()[0].message));
    }
    return std::move(made_);
  }

 private:
  // Up to the first trial that differs; before anything is compiled as a whole, which may be what fails.
  Status bisect_trials(const ir::IRModule& module, const Signature& signature, const std::vector<Dims>& trials) {
    for (size_t t = 0; t < trials.size() && (!made_.bisection || made_.bisection->agrees); ++t) {
      const Dims& dims = trials[t];
      const auto fixed_module = read_(with_fixed(dims));  // not every choice of sizes is a legal model
      const auto reference =
          fixed_module.ok() ? one_program_an_operator(*fixed_module) : Result<ir::IRModule>(fixed_module.diagnostics());
      if (!reference.ok()) {
        if (t + 1 == trials.size() && !made_.bisection) return reference.diagnostics();
        continue;
      }
      const std::vector<TensorData> inputs = TRY(random_inputs(signature, dims, options_.seed + 1000 * t));
      double operations = 0;
      for (const OperatorCall& call : calls_of(*reference)) operations += operations_of(*call.function);
      const bool small = operations <= options_.whole_limit;
      report("what the model means " + words(dims));
      const std::vector<TensorData> expected =
          small ? TRY(relax::evaluate(*reference, "main", inputs))
                : TRY(TRY(unscheduled(*reference))->run(inputs, {.limits = options_.limits}));
      if (!small && t == 0)
        made_.report.remarks.push_back(
            "too large for the interpreter: compared with an unscheduled build, and no "
            "program between the passes is run (`lathe reduce` makes a model smaller)");
      made_.bisection = TRY(bisect(module, options_.compile, inputs, expected, small));
      made_.bisection->dims = words(dims);
    }
    return support::success();
  }

  relax::DimSizesByName with_fixed(const Dims& dims) const {
    relax::DimSizesByName fixed = options_.dims;
    for (const auto& [name, size] : dims) fixed[name] = size;
    return fixed;
  }

  // A build of the programs as they are.
  Result<ExecutableRef> unscheduled(const ir::IRModule& module) const {
    CompileOptions plain = options_.compile;
    plain.dump_folder.clear();
    plain.debug_text.clear();
    plain.debug = 0;
    for (const ir::PassRow& row : pipeline(plain.target))
      if (stage_of(row.name) == "graph" || row.name == "schedule_functions") plain.disabled_passes.insert(row.name);
    return load(TRY(compile(module, plain)));
  }

  Status trial(const Signature& signature, const Dims& dims, uint64_t seed) {
    report("reading " + words(dims));
    const ir::IRModule reference = TRY(one_program_an_operator(TRY(read_(with_fixed(dims)))));
    const std::vector<TensorData> inputs = TRY(random_inputs(signature, dims, seed));
    const std::vector<TensorData> outputs = TRY(compiled_->run(inputs, {.limits = options_.limits}));
    VerifyTrial made{words(dims), {}, {}};
    for (size_t i = 0; i < inputs.size(); ++i) made.inputs.emplace_back(signature.inputs[i]->name, inputs[i]);
    for (size_t i = 0; i < outputs.size(); ++i) made.outputs.emplace_back(signature.output_names[i], outputs[i]);

    const std::vector<OperatorCall> calls = calls_of(reference);
    double operations = 0;
    for (const OperatorCall& call : calls) operations += operations_of(*call.function);
    if (operations <= options_.whole_limit)
      TRY(whole(reference, made, inputs));
    else
      TRY(by_operators(reference, calls, made, inputs, seed));
    made_.trials.push_back(std::move(made));
    return support::success();
  }

  Status whole(const ir::IRModule& reference, const VerifyTrial& made, const std::vector<TensorData>& inputs) {
    report("interpreting " + made.dims);
    const auto expected = TRY(relax::evaluate(reference, "main", inputs));
    for (size_t i = 0; i < made.outputs.size(); ++i)
      add(made.dims, made.outputs[i].first, "interpreter", *made.outputs[i].second, *expected.at(i));
    return support::success();
  }

  Status by_operators(const ir::IRModule& reference, const std::vector<OperatorCall>& calls, const VerifyTrial& made,
                      const std::vector<TensorData>& inputs, uint64_t seed) {
    report("the unscheduled build " + made.dims);
    const EveryTensor every = with_every_tensor(reference, calls);
    const ExecutableRef build = TRY(unscheduled(every.module));
    const std::vector<TensorData> results = TRY(build->run(inputs, {.limits = options_.limits}));
    for (size_t i = 0; i < made.outputs.size(); ++i)
      add(made.dims, made.outputs[i].first, "unscheduled build", *made.outputs[i].second, *results.at(i));

    // The interpreter on random elements of each operator, from the unscheduled build's own tensors.
    std::mt19937_64 random(seed);
    for (size_t c = 0; c < calls.size(); ++c) {
      const OperatorCall& call = calls[c];
      report(fmt::format("operator {} of {}: {}", c + 1, calls.size(), call.name));
      if (options_.compile.cancelled && options_.compile.cancelled())
        return support::Diagnostic{.code = ir::codes::cancelled, .message = "stopped by the user"};
      std::vector<TensorData> args, outputs;
      for (const relax::Expr& arg : call.parts.args) {
        const auto* constant = arg.as<relax::Constant>();
        args.push_back(constant ? constant->data : results.at(every.position.at(arg.get())));
      }
      for (const size_t position : every.computed.at(call.var.get())) outputs.push_back(results.at(position));
      std::vector<int64_t> scalars;
      for (const ir::Expr& scalar : call.parts.scalars)
        if (const auto known = ir::as_int(scalar)) scalars.push_back(*known);
      if (scalars.size() == call.parts.scalars.size())
        TRY(check_operator(call, args, scalars, outputs, made.dims, random));
      else
        made_.report.remarks.push_back(call.name + ": not sampled, it depends on a size without a name");
    }
    return support::success();
  }

  Status check_operator(const OperatorCall& call, const std::vector<TensorData>& args,
                        const std::vector<int64_t>& scalars, const std::vector<TensorData>& results,
                        const std::string& dims, std::mt19937_64& random) {
    const bool small = std::all_of(results.begin(), results.end(),
                                   [&](const TensorData& r) { return r->elements() <= options_.samples; });
    SampledProgram program{call.function, false};
    if (!small) program = sample_outputs(call.function, results.size(), options_.samples);
    if (!program.is_sampled && operations_of(*call.function) > options_.whole_limit) {
      made_.report.remarks.push_back(
          fmt::format("{}: too large for the interpreter, and of a form that cannot be sampled", call.name));
      return support::success();
    }
    std::vector<tir::TensorBuffer> buffers;
    for (const TensorData& arg : args) buffers.push_back(tir::TensorBuffer::of(arg));
    for (const TensorData& result : results)
      buffers.push_back(tir::TensorBuffer::uninitialised(result->dtype, result->shape));
    std::vector<std::vector<int64_t>> positions(results.size());
    if (program.is_sampled)
      for (size_t k = 0; k < results.size(); ++k) buffers.push_back(points(*results[k], random, positions[k]));
    TRY(tir::interpret(program.function, buffers, scalars, {.max_steps = 2'000'000'000}));
    for (size_t k = 0; k < results.size(); ++k) {
      const TensorData expected = buffers[args.size() + k].to_data();
      add(dims, results.size() == 1 ? call.name : fmt::format("{} #{}", call.name, k),
          program.is_sampled ? fmt::format("interpreter, {} elements", positions[k].size()) : "interpreter",
          *results[k], *expected, positions[k]);
    }
    return support::success();
  }

  // Random points of a tensor as a buffer of indices, and their row-major positions.
  tir::TensorBuffer points(const ir::TensorDataNode& tensor, std::mt19937_64& random,
                           std::vector<int64_t>& positions) const {
    const auto rank = static_cast<int64_t>(tensor.shape.size());
    tir::TensorBuffer indices = tir::TensorBuffer::zeros(ir::DType::int64(), {options_.samples, rank});
    for (int64_t s = 0; s < options_.samples; ++s) {
      int64_t position = static_cast<int64_t>(random() % static_cast<uint64_t>(tensor.elements()));
      positions.push_back(position);
      for (int64_t d = rank; d-- > 0; position /= tensor.shape[static_cast<size_t>(d)])
        indices.set_int(s * rank + d, position % tensor.shape[static_cast<size_t>(d)]);
    }
    return indices;
  }

  void add(const std::string& dims, const std::string& subject, const std::string& oracle,
           const ir::TensorDataNode& got, const ir::TensorDataNode& expected, std::span<const int64_t> positions = {}) {
    made_.report.rows.push_back({dims, subject, oracle, compare(got, expected, positions), tolerance_of(got.dtype)});
  }

  void report(const std::string& what) const {
    if (options_.compile.on_progress) options_.compile.on_progress(what, 0);
  }

  const ReadWithDims& read_;
  const VerifyOptions& options_;
  ExecutableRef compiled_;
  Verification made_;
};

}  // namespace

Result<Verification> verify_model(const ReadWithDims& read, const VerifyOptions& options) {
  return support::catch_diagnostics([&] { return Verify(read, options).run(); });
}

}  // namespace lathe::driver
