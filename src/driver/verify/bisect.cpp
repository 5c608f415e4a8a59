#include "driver/verify/bisect.h"

#include "driver/codes.h"
#include "driver/evaluate.h"
#include "driver/executable.h"
#include "driver/pipeline.h"
#include "driver/verify_module.h"
#include "graph/rewrite_bindings.h"
#include "ir/codes.h"
#include "ir/node_name.h"
#include "relax/interpret/evaluate.h"

namespace lathe::driver {
namespace {

using ir::TensorData;
using support::Result;

// The tensors that `main` binds by the names of their variables, in order.
struct NamedTensor {
  std::string name, node;
  TensorData value;
};

Result<std::vector<NamedTensor>> every_binding(ir::IRModule module, const std::vector<TensorData>& inputs) {
  const auto main = module.find_as<relax::FunctionNode>("main");
  std::vector<NamedTensor> tensors;
  std::vector<relax::Expr> items;
  std::vector<relax::StructInfo> infos;
  const std::vector<relax::Binding> bindings = graph::all_bindings(main);
  for (const relax::Binding& binding : bindings) {
    const auto* bound = binding.as<relax::VarBinding>();
    if (!bound || !bound->var->struct_info.as<relax::TensorStructInfo>()) continue;
    tensors.push_back({bound->var->name, ir::node_name(bound->value), {}});
    items.push_back(bound->var);
    infos.push_back(bound->var->struct_info);
  }
  if (items.empty()) return tensors;
  relax::Expr all = relax::with_struct_info(ir::make<relax::Tuple>(std::move(items)),
                                            ir::make<relax::TupleStructInfo>(std::move(infos)));
  ir::Attributes attrs = main->attrs;
  attrs.erase("output_names");
  module.set("main", graph::make_function(main->params, bindings, std::move(all), attrs));
  const std::vector<TensorData> values = TRY(relax::evaluate(module, "main", inputs));
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].value = values.at(i);
  return tensors;
}

// The first output that differs.
std::optional<std::pair<size_t, Difference>> different_output(const std::vector<TensorData>& got,
                                                              const std::vector<TensorData>& expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (const Difference d = compare(*got.at(i), *expected[i]); !d.agrees()) return std::pair(i, d);
  return std::nullopt;
}

// The first tensor that both programs have, under one name or of one node of the model, and that is not the same in
// both.
void name_tensor(FirstDifference& first, const ir::IRModule& before, const ir::IRModule& after,
                 const std::vector<TensorData>& inputs) {
  const auto old_tensors = every_binding(before, inputs), new_tensors = every_binding(after, inputs);
  if (!old_tensors.ok() || !new_tensors.ok()) return;
  std::map<std::string, TensorData> known, of_node;  // of a node: the last, which is its result
  for (const NamedTensor& tensor : *old_tensors) {
    known.emplace(tensor.name, tensor.value);
    of_node[tensor.node] = tensor.value;
  }
  for (const NamedTensor& tensor : *new_tensors) {
    const auto named = known.find(tensor.name), same = of_node.find(tensor.node);
    TensorData old = named != known.end() ? named->second : TensorData();
    if (!old && !tensor.node.empty() && same != of_node.end()) old = same->second;
    if (!old || old->shape != tensor.value->shape || old->dtype != tensor.value->dtype) continue;
    const Difference d = compare(*tensor.value, *old);
    if (d.agrees()) continue;
    first.tensor = tensor.name;
    first.node = tensor.node;
    first.difference = d;
    return;
  }
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// A compile and a run with these rows off.
Result<std::vector<TensorData>> run_without(const ir::IRModule& module, CompileOptions options,
                                            const std::set<std::string>& rows, const std::vector<TensorData>& inputs) {
  options.disabled_passes.insert(rows.begin(), rows.end());
  options.dump_folder.clear();
  options.debug_text.clear();
  options.debug = 0;
  try {
    return support::catch_diagnostics(
        [&]() -> Result<std::vector<TensorData>> { return TRY(load(TRY(compile(module, options))))->run(inputs); });
  } catch (const support::InternalError& e) {
    return support::Diagnostic{.code = codes::bisect_failure, .message = e.what()};
  }
}

}  // namespace

Result<FirstDifference> first_difference(const ir::IRModule& module, const std::vector<ir::PassRow>& rows,
                                         const ir::PassContext& context, const std::vector<TensorData>& inputs,
                                         const std::vector<TensorData>& expected) {
  FirstDifference first;
  ir::IRModule now = module;
  ir::RowsRun done;
  for (const ir::PassRow& row : rows) {
    if (context.disabled.count(row.name)) continue;
    if (context.cancelled && context.cancelled())
      return support::Diagnostic{.code = ir::codes::cancelled, .message = "stopped by the user"};
    first.pass = row.name;
    try {
      const ir::IRModule before = now;
      now = TRY(row.run(now, context));
      done.insert(row.name);
      if (ir::structural_hash(now) == ir::structural_hash(before)) continue;
      if (const support::Diagnostics wrong = verify_module(now, done); !wrong.empty()) {
        first.failure = "the program is not well formed after it: " + first_line(support::render(wrong));
        return first;
      }
      const Result<std::vector<TensorData>> got = relax::evaluate(now, "main", inputs);
      if (!got.ok()) {
        first.failure = "the program cannot be run after it: " + got.diagnostics()[0].message;
        return first;
      }
      ++first.compared;
      const auto differs = different_output(*got, expected);
      if (!differs) continue;
      first.tensor = fmt::format("output {}", differs->first);
      first.difference = differs->second;
      name_tensor(first, before, now, inputs);
      return first;
    } catch (const support::InternalError& e) {
      first.failure = first_line(e.what());
      return first;
    }
  }
  first.pass.clear();
  return first;
}

Result<Bisection> bisect(const ir::IRModule& module, const CompileOptions& options,
                         const std::vector<TensorData>& inputs, const std::vector<TensorData>& expected,
                         bool interpret) {
  return support::catch_diagnostics([&]() -> Result<Bisection> {
    Bisection made;
    const std::vector<ir::PassRow> rows = pipeline(options.target, options.decisions);
    const auto report = [&](const std::string& what, size_t at) {
      if (options.on_progress) options.on_progress(what, static_cast<double>(at) / static_cast<double>(rows.size()));
    };
    const auto whole = run_without(module, options, {}, inputs);
    const auto differs = whole.ok() ? different_output(*whole, expected) : std::nullopt;
    made.agrees = whole.ok() && !differs;
    if (interpret && !made.agrees) {
      report("interpreting the program after each pass", 0);
      ir::PassContext context;
      context.disabled = options.disabled_passes;
      context.cancelled = options.cancelled;
      context.evaluate = native_evaluator(options);
      context.config = pass_config(options.decisions, options.winograd);
      made.first = TRY(first_difference(module, rows, context, inputs, expected));
      if (made.first.pass.empty()) {
        made.first.pass = "generate_code";
        if (differs) {
          made.first.tensor = fmt::format("output {}", differs->first);
          made.first.difference = differs->second;
        } else {
          made.first.failure = whole.diagnostics()[0].message;
        }
      }
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      if (options.disabled_passes.count(rows[i].name)) continue;
      report("without " + rows[i].name, i);
      if (options.cancelled && options.cancelled())
        return support::Diagnostic{.code = ir::codes::cancelled, .message = "stopped by the user"};
      const auto got = run_without(module, options, {rows[i].name}, inputs);
      SwitchedOff& off = made.without.emplace_back(SwitchedOff{.pass = rows[i].name});
      if (!got.ok()) {
        off.verdict = SwitchedOff::Verdict::needed;
        off.said = first_line(got.diagnostics()[0].message);
      } else if (const auto other = different_output(*got, expected)) {
        off.verdict = SwitchedOff::Verdict::differs;
        off.said =
            fmt::format("output {}: {} of {} elements", other->first, other->second.wrong, other->second.compared);
      }
    }
    return made;
  });
}

}  // namespace lathe::driver
