#include "lower/batch/split_batch.h"

#include "graph/rewrite_bindings.h"
#include "lower/batch/batch_model.h"
#include "lower/batch/batch_parts.h"
#include "lower/batch/last_uses.h"
#include "lower/other_kernels.h"
#include "lower/plan/plan_memory.h"
#include "relax/call_tir.h"
#include "support/mutation.h"
#include "tir/row_strip.h"

namespace lathe::lower {

LATHE_FAULT(split_batch_repeats_the_first, "lower_test", "every piece of a batch is computed from its first rows");

using namespace relax;  // NOLINT: the subject of this file

namespace {

std::optional<int64_t> rows_of(const Expr& e) {
  const auto* info = as_tensor(e);
  return info && info->shape && !info->shape->empty() ? ir::as_int(info->shape->front()) : std::nullopt;
}

StructInfo with_rows(const StructInfo& info, int64_t rows) {
  const auto* tensor = info.as<TensorStructInfo>();
  std::vector<ir::Expr> shape = *tensor->shape;
  shape[0] = ir::int64(rows);
  return tensor_info(std::move(shape), tensor->dtype);
}

// One binding of a run: a kernel, or a view of what one computed.
struct Step {
  const VarBinding* bound = nullptr;
  std::optional<CallTir> call;  // none: a view
  std::vector<bool> has_rows;   // of the call's tensors, results behind them
};

class BatchSplitter {
 public:
  // Adds to `replaced` the names of the kernels that it calls for fewer rows.
  BatchSplitter(ir::IRModule& module, const target::Target& target, const ir::PassContext& context,
                std::set<std::string>& replaced)
      : module_(module), target_(target), context_(context), replaced_(replaced) {}

  Result<relax::Function> operator()(const std::string& name, const relax::Function& function) {
    bindings_ = graph::all_bindings(function);
    const LastUses uses(function, bindings_);
    last_use_ = &uses;
    std::vector<Binding> changed;
    bool is_changed = false;
    for (size_t i = 0; i < bindings_.size();) {
      const std::vector<Step> run = run_from(i);
      const size_t end = run.size() < 2 ? 0 : split(run, i, changed);
      is_changed = is_changed || end > 0;
      const size_t next = i + std::max<size_t>(end, std::max<size_t>(run.size(), 1));
      for (i += end; i < next; ++i) changed.push_back(bindings_[i]);
    }
    if (!is_changed) return function;
    context_.remark("split_batch", name, text_);
    return graph::make_function(function->params, std::move(changed), function->body.as<SeqExpr>()->body,
                                function->attrs, function->is_pure);
  }

 private:
  // ---- which bindings go together ----

  std::vector<Step> run_from(size_t begin) {
    std::vector<Step> run;
    rows_ = 0;
    for (size_t i = begin; i < bindings_.size(); ++i) {
      auto step = step_of(bindings_[i]);
      if (!step) break;
      run.push_back(*std::move(step));
    }
    while (!run.empty() && !run.back().call) run.pop_back();
    return run;
  }

  std::optional<Step> step_of(const Binding& binding) {
    const auto* bound = binding.as<VarBinding>();
    if (!bound || !as_tensor(bound->var) || !static_bytes(*as_tensor(bound->var))) return std::nullopt;
    const auto rows = rows_of(bound->var);
    if (!rows || *rows < 2 || (rows_ != 0 && rows != rows_) || !fits_lines(*as_tensor(bound->var), *rows))
      return std::nullopt;
    Step step{bound, as_call_tir(bound->value), {}};
    if (!step.call) {
      const auto* call = bound->value.as<Call>();
      const Operator* op = call ? callee_operator(*call) : nullptr;
      if (!op || !op->is_view || rows_of(call->args[0]) != rows || !call->args[0].is<VarNode>()) return std::nullopt;
      return step;
    }
    if (step.call->outputs.size() != 1 || !step.call->scalars.empty() || step.call->updated(0)) return std::nullopt;
    const tir::RowStrip* by_row = rows_in(step.call->function, *rows);
    if (!by_row) return std::nullopt;
    for (const auto& part : by_row->params) step.has_rows.push_back(part.has_value());
    for (size_t i = 0; i < step.call->args.size(); ++i) {
      const Expr& arg = step.call->args[i];
      if (step.has_rows[i] && (rows_of(arg) != rows || !arg.is<VarNode>() || !fits_lines(*as_tensor(arg), *rows)))
        return std::nullopt;
    }
    rows_ = *rows;
    return step;
  }

  // Whether parts of it begin where kernels expect tensors to begin.
  static bool fits_lines(const TensorStructInfo& info, int64_t rows) {
    const auto bytes = static_bytes(info);
    return bytes && *bytes > 0 && *bytes % (rows * plan_alignment) == 0 && info.dtype.storage_bits() % 8 == 0;
  }

  // Of the first so many rows of a kernel; null where it does not go row by row.
  const tir::RowStrip* rows_in(const std::string& name, int64_t rows) {
    const auto [it, is_new] = by_row_.try_emplace({name, rows});
    if (is_new) {
      const auto function = module_.find_as<tir::PrimFunc>(name);
      if (function && !function->attrs.contains("versions")) it->second = tir::find_strip(*function, {0, rows});
    }
    return it->second && it->second->is_row_by_row ? &*it->second : nullptr;
  }

  // ---- the split ----

  // Of a run that begins with binding number `begin`: how many bindings were split, their replacement added.
  size_t split(const std::vector<Step>& run, size_t begin, std::vector<Binding>& out) {
    const std::vector<size_t> kernels = kernels_of(run);
    const BatchSplit best = best_batch_split(weighed(run, kernels, begin), rows_, target_);
    if (best.steps < 2) return 0;
    const size_t end = kernels[best.steps - 1] + 1;
    const std::vector<Step> steps(run.begin(), run.begin() + static_cast<ptrdiff_t>(end));
    const int64_t rows = rows_ / best.pieces;
    std::unordered_map<const ir::Node*, std::vector<Expr>> parts;  // of what is needed behind
    for (int64_t piece = 0; piece < best.pieces; ++piece) {
      std::unordered_map<const ir::Node*, Expr> own;
      const auto part_of = [&](const Expr& whole) {
        Expr& part = own[whole.get()];
        if (!part) {
          const auto& var = static_cast<const VarNode&>(*whole);
          const int64_t first = support::flip(split_batch_repeats_the_first) ? 0 : piece * rows;
          const Expr value = batch_part(whole, first, first + rows);
          part = relax_var(var.name + "_part", value->struct_info);
          out.push_back(make<VarBinding>(value, ir::cast<VarNode>(part)));
        }
        return part;
      };
      for (const Step& step : steps) {
        const Var part = relax_var(step.bound->var->name, with_rows(step.bound->var->struct_info, rows));
        const Expr value = ir::with_origin(step.call ? smaller(step, rows, part_of) : viewed(step, rows, part_of),
                                           step.bound->value->origin());
        out.push_back(make<VarBinding>(value, part));
        own[step.bound->var.get()] = part;
      }
      for (const Step& step : steps)
        if (step.call && is_used_behind(*step.bound, steps, begin))
          parts[step.bound->var.get()].push_back(own[step.bound->var.get()]);
    }
    for (const Step& step : steps) {
      if (!is_used_behind(*step.bound, steps, begin)) continue;
      const Expr value = step.call ? joined_batch(parts.at(step.bound->var.get())) : step.bound->value;
      out.push_back(make<VarBinding>(ir::with_origin(value, step.bound->value->origin()), step.bound->var));
    }
    text_ += (text_.empty() ? "" : "; ") + std::to_string(best.steps) + " kernels run " + std::to_string(rows) +
             " of " + std::to_string(rows_) + " rows at a time";
    return end;
  }

  static std::vector<size_t> kernels_of(const std::vector<Step>& run) {
    std::vector<size_t> kernels;
    for (size_t i = 0; i < run.size(); ++i)
      if (run[i].call) kernels.push_back(i);
    return kernels;
  }

  std::vector<BatchStep> weighed(const std::vector<Step>& run, const std::vector<size_t>& kernels, size_t begin) const {
    std::unordered_map<const ir::Node*, size_t> made_by;  // steps among the kernels, by variables, views among them
    std::vector<BatchStep> steps;
    for (size_t i = 0; i < run.size(); ++i) {
      const Step& step = run[i];
      const auto until = (*last_use_)(step.bound->var.get());
      // Numbers of bindings as numbers of kernels; behind the run it is never.
      const size_t last = until ? *until - begin : i;
      const auto reader = std::lower_bound(kernels.begin(), kernels.end(), last);
      const size_t last_use =
          last >= run.size() || reader == kernels.end() ? run.size() : static_cast<size_t>(reader - kernels.begin());
      if (!step.call) {
        const auto source = made_by.find(step.bound->value.as<Call>()->args[0].get());
        if (source == made_by.end()) continue;
        made_by[step.bound->var.get()] = source->second;
        steps[source->second].last_use = std::max(steps[source->second].last_use, last_use);
        continue;
      }
      BatchStep weighed;
      weighed.written = weighed.moved = *static_bytes(*as_tensor(step.bound->var));
      weighed.last_use = last_use;
      for (size_t a = 0; a < step.call->args.size(); ++a) {
        const auto bytes = static_bytes(*as_tensor(step.call->args[a]));
        if (!step.has_rows[a]) {
          weighed.same += bytes.value_or(0);
          continue;
        }
        weighed.moved += *bytes;
        if (const auto source = made_by.find(step.call->args[a].get()); source != made_by.end())
          ++steps[source->second].reads;
      }
      made_by[step.bound->var.get()] = steps.size();
      steps.push_back(weighed);
    }
    return steps;
  }

  bool is_used_behind(const VarBinding& bound, const std::vector<Step>& steps, size_t begin) const {
    if ((*last_use_)(bound.var.get()).value_or(0) >= begin + steps.size()) return true;
    // What a view of it is of.
    return std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
      return !step.call && step.bound->value.as<Call>()->args[0].get() == bound.var.get() && step.bound != &bound &&
             is_used_behind(*step.bound, steps, begin);
    });
  }

  template <class PartOf>
  Expr smaller(const Step& step, int64_t rows, const PartOf& part_of) {
    std::vector<Expr> args;
    for (size_t i = 0; i < step.call->args.size(); ++i)
      args.push_back(step.has_rows[i] ? part_of(step.call->args[i]) : step.call->args[i]);
    return call_tir(name_of(step.call->function, rows), std::move(args), {with_rows(step.call->outputs[0], rows)})
        .value_or_throw();
  }

  template <class PartOf>
  Expr viewed(const Step& step, int64_t rows, const PartOf& part_of) const {
    const auto& call = *step.bound->value.as<Call>();
    std::vector<Expr> args = call.args;
    args[0] = part_of(args[0]);
    for (size_t i = 1; i < args.size(); ++i)
      if (const auto* shape = args[i] ? args[i].as<ShapeExpr>() : nullptr) {
        std::vector<ir::Expr> extents = shape->values;
        extents[0] = ir::int64(rows);
        args[i] = make<ShapeExpr>(std::move(extents));
      }
    return make_call(*callee_operator(call), std::move(args), call.attributes).value_or_throw();
  }

  // The kernel for so many rows, as a function of the module.
  std::string name_of(const std::string& function, int64_t rows) {
    std::string& name = names_[{function, rows}];
    if (!name.empty()) return name;
    replaced_.insert(function);
    const auto whole = module_.find_as<tir::PrimFunc>(function);
    const tir::Function fewer = tir::with_strip(*whole, *rows_in(function, rows));
    return name = add_kernel(module_, fewer, function + "_rows_" + std::to_string(rows));
  }

  ir::IRModule& module_;
  const target::Target& target_;
  const ir::PassContext& context_;
  std::set<std::string>& replaced_;
  std::vector<Binding> bindings_;
  const LastUses* last_use_ = nullptr;
  int64_t rows_ = 0;  // of the run
  std::map<std::pair<std::string, int64_t>, std::optional<tir::RowStrip>> by_row_;
  std::map<std::pair<std::string, int64_t>, std::string> names_;
  std::string text_;
};

}  // namespace

support::Result<ir::IRModule> split_batch(ir::IRModule module, const target::Target& target,
                                          const ir::PassContext& context) {
  std::set<std::string> replaced;
  TRY(graph::change_functions(module, [&](const std::string& name, const relax::Function& function) {
    return BatchSplitter(module, target, context, replaced)(name, function);
  }));
  drop_uncalled(module, replaced);
  return module;
}

}  // namespace lathe::lower
