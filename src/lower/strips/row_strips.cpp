#include "lower/strips/row_strips.h"

#include "graph/rewrite_bindings.h"
#include "lower/batch/batch_parts.h"
#include "lower/batch/last_uses.h"
#include "lower/other_kernels.h"
#include "lower/plan/plan_memory.h"
#include "ops/operators.h"
#include "relax/call_tir.h"
#include "support/mutation.h"
#include "tir/analysis/flops.h"
#include "tir/row_strip.h"

namespace lathe::lower {

LATHE_FAULT(row_strips_repeats_the_first, "lower_test", "every strip is read from the first rows of what is there");

using namespace relax;  // NOLINT: the subject of this file
using tir::RowRange;

namespace {

constexpr size_t longest_run = 12;  // kernels
constexpr int64_t few_rows = 16;
constexpr size_t most_versions = 3;  // of a kernel: the first strip, those between, the last

// A tensor of known size as rows.
struct Rows {
  size_t axis = 0;
  int64_t count = 0, bytes = 0;  // bytes: of one
};

std::optional<Rows> rows_of(const Expr& e) {
  const auto* info = as_tensor(e);
  const auto bytes = info ? static_bytes(*info) : std::nullopt;
  const auto axis = bytes ? tir::row_axis(*info->shape) : std::nullopt;
  if (!axis || info->dtype.storage_bits() % 8 != 0) return std::nullopt;
  const int64_t count = *ir::as_int((*info->shape)[*axis]);
  return *bytes > 0 ? std::optional(Rows{*axis, count, *bytes / count}) : std::nullopt;
}

StructInfo with_rows(const Expr& e, int64_t count) {
  const auto* tensor = as_tensor(e);
  std::vector<ir::Expr> shape = *tensor->shape;
  shape[rows_of(e)->axis] = ir::int64(count);
  return tensor_info(std::move(shape), tensor->dtype);
}

// One binding of a run: a kernel, or a view.
struct Step {
  Ref<VarBinding> bound;
  std::optional<CallTir> call;  // none: a view
  const ir::Node* var() const { return bound->var.get(); }
  const Expr& viewed() const { return bound->value.as<Call>()->args[0]; }
};

using Ranges = std::unordered_map<const ir::Node*, RowRange>;  // by variables

// What a strip is made of.
struct Strip {
  Ranges needed;    // the rows that the strip's kernels read, and those of the last result
  Ranges computed;  // of what kernels compute: what the strip before does not have; may be none
};

// A run in so many strips.
struct Split {
  size_t end = 0;  // of the run's bindings
  int64_t strips = 1;
  double saved = 0;
};

class StripSplitter {
 public:
  // Adds to `replaced` the names of the kernels that it calls for fewer rows.
  StripSplitter(ir::IRModule& module, const target::Target& target, const ir::PassContext& context,
                const StripCosts& costs, std::set<std::string>& replaced)
      : module_(module), target_(target), context_(context), costs_(costs), replaced_(replaced) {}

  Result<relax::Function> operator()(const std::string& name, const relax::Function& function) {
    bindings_ = graph::all_bindings(function);
    const LastUses uses(function, bindings_);
    uses_ = &uses;
    std::string text;
    bool is_changed = false;
    std::vector<Split> ahead = splits_from(0);
    for (size_t i = 0; i < bindings_.size();) {
      const std::vector<Split> splits = std::exchange(ahead, {});
      ahead = splits_from(i + 1);
      // A run that begins behind may be worth more.
      const bool is_best = !splits.empty() && (ahead.empty() || ahead.front().saved <= splits.front().saved);
      const Split* done = is_best ? apply(splits, i) : nullptr;
      if (!done) {
        out_.push_back(bindings_[i++]);
        continue;
      }
      is_changed = true;
      text += (text.empty() ? "" : "; ") + std::to_string(kernels_in(i, done->end)) + " kernels run in " +
              std::to_string(done->strips) + " strips";
      i = done->end;
      ahead = splits_from(i);
    }
    if (!is_changed) return function;
    context_.remark("row_strips", name, text);
    return graph::make_function(function->params, std::move(out_), function->body.as<SeqExpr>()->body, function->attrs,
                                function->is_pure);
  }

 private:
  // ---- which bindings go together ----

  std::optional<Step> step_of(size_t at) {
    const auto* bound = bindings_[at].as<VarBinding>();
    if (!bound || !rows_of(bound->var)) return std::nullopt;
    Step step{Ref<VarBinding>(bound), as_call_tir(bound->value)};
    if (!step.call) {
      const auto* call = bound->value.as<Call>();
      const Operator* op = call ? callee_operator(*call) : nullptr;
      return op && op->is_view && call->args[0].is<VarNode>() && rows_of(call->args[0]) ? std::optional(step)
                                                                                        : std::nullopt;
    }
    const CallTir& call = *step.call;
    const bool is_plain = call.outputs.size() == 1 && call.scalars.empty() && !call.updated(0);
    return is_plain && strip_of(call.function, {0, rows_of(bound->var)->count}) && has_its_parameters_shapes(call)
               ? std::optional(step)
               : std::nullopt;
  }

  // Whether the rows of the kernel's parameters are those of what it is called with.
  bool has_its_parameters_shapes(const CallTir& call) const {
    const auto function = module_.find_as<tir::PrimFunc>(call.function);
    const auto is_of = [](const auto* info, const ir::Buffer& buffer) {
      return info && info->shape && info->shape->size() == buffer->shape.size() &&
             std::equal(buffer->shape.begin(), buffer->shape.end(), info->shape->begin(),
                        [](const ir::Expr& a, const ir::Expr& b) { return ir::structural_equal(a, b); });
    };
    for (size_t i = 0; i < call.args.size(); ++i)
      if (!is_of(as_tensor(call.args[i]), function->buffer_map[i].second)) return false;
    return is_of(call.outputs[0].as<TensorStructInfo>(), function->buffer_map.back().second);
  }

  const tir::RowStrip* strip_of(const std::string& name, RowRange rows) {
    const auto [it, is_new] = strips_.try_emplace({name, rows});
    if (is_new) {
      const auto function = module_.find_as<tir::PrimFunc>(name);
      if (function && !function->attrs.contains("versions")) it->second = tir::find_strip(*function, rows);
    }
    return it->second ? &*it->second : nullptr;
  }

  size_t kernels_in(size_t begin, size_t end) {
    size_t kernels = 0;
    for (size_t i = begin; i < end; ++i) kernels += step_of(i)->call.has_value();
    return kernels;
  }

  bool is_needed_behind(const ir::Node* var, size_t end) const { return (*uses_)(var).value_or(0) >= end; }
  // The same of it or of a view of it.
  bool is_kept(const std::vector<Step>& steps, const ir::Node* var, size_t end) const {
    return is_needed_behind(var, end) || std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
             return !step.call && step.viewed().get() == var && is_kept(steps, step.var(), end);
           });
  }

  // What it takes to compute `wanted` of what the last of the steps gives, behind a strip that has `before`; nothing
  // where that takes whole tensors that the run itself computes.
  std::optional<Strip> strip_for(const std::vector<Step>& steps, RowRange wanted, const Strip* before) {
    Strip strip;
    Ranges& needed = strip.needed;
    needed[steps.back().var()] = wanted;
    std::unordered_set<const ir::Node*> own;
    for (const Step& step : steps) own.insert(step.var());
    const auto need = [&](const Expr& value, RowRange rows) {
      const auto [it, is_new] = needed.try_emplace(value.get(), rows);
      if (!is_new) it->second = {std::min(it->second.begin, rows.begin), std::max(it->second.end, rows.end)};
    };
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      const auto rows = needed.find(step->var());
      if (rows == needed.end()) {  // nobody in the run reads it
        if (step->call) return std::nullopt;
        continue;
      }
      if (!step->call) {
        const int64_t from = rows_of(step->bound->var)->bytes, to = rows_of(step->viewed())->bytes;
        if (rows->second.begin * from % to != 0 || rows->second.end * from % to != 0) return std::nullopt;
        need(step->viewed(), {rows->second.begin * from / to, rows->second.end * from / to});
        continue;
      }
      const RowRange computed = missing(step->var(), rows->second, before);
      strip.computed[step->var()] = computed;
      if (computed.count() == 0) continue;
      const tir::RowStrip* kernel = strip_of(step->call->function, computed);
      if (!kernel) return std::nullopt;
      for (size_t i = 0; i < step->call->args.size(); ++i) {
        const Expr& arg = step->call->args[i];
        if (!kernel->params[i]) {
          if (own.count(arg.get())) return std::nullopt;
        } else {
          if (!arg.is<VarNode>() || !rows_of(arg)) return std::nullopt;
          need(arg, *kernel->params[i]);
        }
      }
    }
    return strip;
  }

  // What of the rows the strip before does not have.
  static RowRange missing(const ir::Node* var, RowRange rows, const Strip* before) {
    const auto last = before ? before->needed.find(var) : Ranges::const_iterator();
    if (!before || last == before->needed.end() || rows.begin < last->second.begin || rows.begin >= last->second.end)
      return rows;
    return {std::min(last->second.end, rows.end), rows.end};
  }

  // Where parts lie in wholes, kernels expect them to begin with a line.
  static bool begins_a_line(const Rows& rows, int64_t begin) { return begin * rows.bytes % plan_alignment == 0; }

  // Those worth it of the runs that begin with binding number `begin`, the best first.
  std::vector<Split> splits_from(size_t begin) {
    std::vector<Split> found;
    std::vector<Step> steps;
    size_t kernels = 0;
    double at_most = 0;
    for (size_t i = begin; i < bindings_.size() && kernels < longest_run; ++i) {
      auto step = step_of(i);
      if (!step || (steps.empty() && !step->call)) break;
      steps.push_back(*std::move(step));
      if (!steps.back().call) continue;
      at_most += most_saved(*steps.back().call, steps.back().bound->var);
      if (++kernels < 2 || at_most < costs_.nothing) continue;
      const int64_t rows = rows_of(steps.back().bound->var)->count;
      for (int64_t strips = 2; strips <= std::min(rows, most_strips); ++strips) {
        if (rows % strips != 0) continue;
        const double saved = saved_by(steps, strips, i + 1);
        if (saved >= costs_.nothing) found.push_back({i + 1, strips, saved});
      }
    }
    std::sort(found.begin(), found.end(), [](const Split& a, const Split& b) {
      return std::tuple(-a.saved, a.end, a.strips) < std::tuple(-b.saved, b.end, b.strips);
    });
    return found;
  }

  // What a kernel could save at most.
  double most_saved(const CallTir& call, const Expr& result) const {
    int64_t moved = *static_bytes(*as_tensor(result));
    for (const Expr& arg : call.args) moved += as_tensor(arg) ? static_bytes(*as_tensor(arg)).value_or(0) : 0;
    return static_cast<double>(moved) * distance_in_caches(moved, target_);
  }

  double saved_by(const std::vector<Step>& steps, int64_t strips, size_t end) {
    const int64_t last = rows_of(steps.back().bound->var)->count / strips, middle = strips / 2;
    const auto before = strip_for(steps, {(middle - 1) * last, middle * last}, nullptr);
    const auto strip = before ? strip_for(steps, {middle * last, (middle + 1) * last}, &*before) : std::nullopt;
    if (!strip || !is_legal(steps, *strip, middle, strips, end)) return -1;
    std::vector<StripStep> run;
    std::unordered_map<const ir::Node*, size_t> made_by;  // steps of the run, by variables, views among them
    for (const Step& step : steps) {
      if (!step.call) {
        const auto source = made_by.find(step.viewed().get());
        if (source != made_by.end()) made_by[step.var()] = source->second;
        continue;
      }
      const Rows rows = *rows_of(step.bound->var);
      const RowRange computed = strip->computed.at(step.var()), needed = strip->needed.at(step.var());
      // Of few rows two threads cannot share an odd number well.
      if (target_.cores > 1 && computed.count() < few_rows && computed.count() % 2 != 0) return -1;
      StripStep weighed;
      weighed.written = weighed.moved = rows.count * rows.bytes;
      weighed.held = needed.count() * rows.bytes;
      weighed.copied = (needed.count() - computed.count()) * rows.bytes;
      weighed.is_kept = is_kept(steps, step.var(), end);
      weighed.operations = operations_of(step.call->function);
      const tir::RowStrip* kernel = computed.count() > 0 ? strip_of(step.call->function, computed) : nullptr;
      for (size_t a = 0; kernel && a < step.call->args.size(); ++a) {
        const Expr& arg = step.call->args[a];
        const int64_t bytes = static_bytes(*as_tensor(arg)).value_or(0);
        if (!kernel->params[a]) {
          weighed.same += bytes;
          continue;
        }
        weighed.moved += bytes;
        weighed.held += kernel->params[a]->count() * rows_of(arg)->bytes;
        if (const auto source = made_by.find(arg.get()); source != made_by.end())
          run[source->second].readers.push_back(run.size());
      }
      made_by[step.var()] = run.size();
      run.push_back(std::move(weighed));
    }
    return saved_by_strips(run, strips, target_, costs_) - costs_.kernel * more_versions(steps, strips);
  }

  // How many kernels more it takes at least: those of the first and the last strip that have other rows.
  double more_versions(const std::vector<Step>& steps, int64_t strips) {
    const int64_t last = rows_of(steps.back().bound->var)->count / strips;
    std::map<std::string, std::set<int64_t>> counts;
    for (const int64_t number : {int64_t{0}, strips / 2, strips - 1}) {
      const auto before = number == 0 ? std::nullopt : strip_for(steps, {(number - 1) * last, number * last}, nullptr);
      const auto strip = strip_for(steps, {number * last, (number + 1) * last}, before ? &*before : nullptr);
      for (const Step& step : steps)
        if (strip && step.call) counts[step.call->function].insert(strip->computed.at(step.var()).count());
    }
    size_t more = 0;
    for (const auto& [name, different] : counts) more += different.size() - 1;
    return static_cast<double>(more);
  }

  double operations_of(const std::string& name) {
    const auto [it, is_new] = operations_.try_emplace(name);
    if (is_new) it->second = tir::estimate_flops(module_.find_as<tir::PrimFunc>(name)->body);
    return it->second;
  }

  // Whether strip number `number` is parts of wholes that can be views, and what is kept of it is its share.
  bool is_legal(const std::vector<Step>& steps, const Strip& strip, int64_t number, int64_t strips, size_t end) const {
    std::unordered_set<const ir::Node*> own;
    const auto is_share = [&](const Expr& value) {
      const Rows all = *rows_of(value);
      const auto rows = strip.needed.find(value.get());
      return rows != strip.needed.end() && all.count % strips == 0 &&
             rows->second.begin == number * (all.count / strips) && rows->second.count() == all.count / strips &&
             begins_a_line(all, rows->second.begin);
    };
    for (const Step& step : steps) {
      own.insert(step.var());
      if (!step.call) continue;
      if (is_kept(steps, step.var(), end) && !is_share(step.bound->var)) return false;
      const RowRange computed = strip.computed.at(step.var());
      if (!begins_a_line(*rows_of(step.bound->var), computed.begin - strip.needed.at(step.var()).begin)) return false;
      if (computed.count() == 0) continue;
      for (size_t i = 0; i < step.call->args.size(); ++i) {
        const Expr& arg = step.call->args[i];
        const auto part = strips_.at({step.call->function, computed})->params[i];
        const int64_t before = part && own.count(arg.get()) ? strip.needed.at(arg.get()).begin : 0;
        if (part && !begins_a_line(*rows_of(arg), part->begin - before)) return false;
      }
    }
    return true;
  }

  // ---- the split ----

  // The first of the splits that is worth the versions of kernels that it needs, done; null where none is.
  const Split* apply(const std::vector<Split>& splits, size_t begin) {
    for (const Split& split : splits) {
      std::vector<Step> steps;
      for (size_t i = begin; i < split.end; ++i) steps.push_back(*step_of(i));
      if (apply(steps, split)) return &split;
    }
    return nullptr;
  }

  bool apply(const std::vector<Step>& steps, const Split& split) {
    const int64_t rows = rows_of(steps.back().bound->var)->count / split.strips;
    std::vector<Strip> strips;
    std::map<std::string, std::vector<tir::Function>> versions;
    for (int64_t number = 0; number < split.strips; ++number) {
      auto strip = strip_for(steps, {number * rows, (number + 1) * rows}, strips.empty() ? nullptr : &strips.back());
      if (!strip || !is_legal(steps, *strip, number, split.strips, split.end)) return false;
      for (const Step& step : steps) {
        const RowRange computed = step.call ? strip->computed.at(step.var()) : RowRange{};
        if (computed.count() > 0 && !add_version(step.call->function, computed, versions[step.call->function]))
          return false;
      }
      strips.push_back(*std::move(strip));
    }
    size_t more = 0;
    for (const auto& [name, made] : versions) more += made.size() - 1;
    if (split.saved + costs_.kernel * (more_versions(steps, split.strips) - static_cast<double>(more)) < costs_.nothing)
      return false;
    std::unordered_map<const ir::Node*, std::vector<Expr>> parts;  // of what is needed behind
    Parts before;
    for (size_t i = 0; i < strips.size(); ++i)
      before = emit(steps, strips[i], i == 0 ? nullptr : &strips[i - 1], before, parts, split.end);
    for (const Step& step : steps) {
      const bool is_whole = parts.count(step.var()) > 0;
      if (!is_whole && (step.call || !is_kept(steps, step.var(), split.end))) continue;
      bind(is_whole ? joined_batch(parts.at(step.var()), rows_of(step.bound->var)->axis) : step.bound->value,
           step.bound->value, step.bound->var);
    }
    return true;
  }

  // The kernel for these rows is one of few; a new one is among them from now on.
  bool add_version(const std::string& name, RowRange rows, std::vector<tir::Function>& versions) {
    tir::Function& made = made_[{name, rows}];
    if (!made) made = tir::with_strip(*module_.find_as<tir::PrimFunc>(name), *strip_of(name, rows));
    for (const tir::Function& version : versions)
      if (version == made || ir::structural_equal(version, made)) {
        made = version;
        return true;
      }
    versions.push_back(made);
    return versions.size() <= most_versions;
  }

  using Parts = std::unordered_map<const ir::Node*, Expr>;  // the rows that are needed of variables

  // A strip's bindings, behind those of the strip before; its parts.
  Parts emit(const std::vector<Step>& steps, const Strip& strip, const Strip* before, const Parts& parts_before,
             std::unordered_map<const ir::Node*, std::vector<Expr>>& kept, size_t end) {
    Parts own;
    std::map<std::pair<const ir::Node*, RowRange>, Expr> parts;
    const auto part_of = [&](const Expr& whole, RowRange rows) {
      const auto made = own.find(whole.get());
      const bool is_own = made != own.end();
      Expr& part = parts[{whole.get(), rows}];
      if (!part)
        part = rows_from(is_own ? made->second : whole,
                         is_own ? strip.needed.at(whole.get()) : RowRange{0, rows_of(whole)->count}, rows, whole);
      return part;
    };
    // Copied before the strip's kernels run, so that their results may lie where those of the strip before lay.
    Parts kept_rows;
    for (const Step& step : steps) {
      const RowRange needed = step.call ? strip.needed.at(step.var()) : RowRange{};
      if (!step.call || strip.computed.at(step.var()) == needed) continue;
      const Expr rows = rows_from(parts_before.at(step.var()), before->needed.at(step.var()),
                                  {needed.begin, strip.computed.at(step.var()).begin}, step.bound->var);
      kept_rows[step.var()] = bind(joined_batch({rows}, rows_of(step.bound->var)->axis), step.bound->value,
                                   relax_var(step.bound->var->name + "_kept", rows->struct_info));
    }
    for (const Step& step : steps) {
      const auto needed = strip.needed.find(step.var());
      if (needed == strip.needed.end()) continue;
      if (!step.call) {
        const int64_t bytes = rows_of(step.bound->var)->bytes, of = rows_of(step.viewed())->bytes;
        const Expr part = part_of(step.viewed(), {needed->second.begin * bytes / of, needed->second.end * bytes / of});
        const StructInfo info = with_rows(step.bound->var, needed->second.count());
        own[step.var()] =
            bind(make_call(ops::reshape, {part, make<ShapeExpr>(*info.as<TensorStructInfo>()->shape)}).value_or_throw(),
                 step.bound->value, relax_var(step.bound->var->name, info));
        continue;
      }
      const RowRange computed = strip.computed.at(step.var());
      std::vector<Expr> rows;
      if (computed != needed->second) rows.push_back(kept_rows.at(step.var()));
      if (computed.count() > 0) {
        const tir::RowStrip& kernel = *strip_of(step.call->function, computed);
        std::vector<Expr> args;
        for (size_t i = 0; i < step.call->args.size(); ++i)
          args.push_back(kernel.params[i] ? part_of(step.call->args[i], *kernel.params[i]) : step.call->args[i]);
        const StructInfo info = with_rows(step.bound->var, computed.count());
        rows.push_back(bind(call_tir(name_of(step.call->function, computed), std::move(args), {info}).value_or_throw(),
                            step.bound->value, relax_var(step.bound->var->name, info)));
      }
      Expr& part = own[step.var()] = rows.front();
      if (rows.size() > 1)
        part = bind(joined_batch(rows, rows_of(step.bound->var)->axis), step.bound->value,
                    relax_var(step.bound->var->name, with_rows(step.bound->var, needed->second.count())));
      if (is_kept(steps, step.var(), end)) kept[step.var()].push_back(part);
    }
    return own;
  }

  // Rows `wanted` of `whole`, of which `source` has the rows `from`.
  Expr rows_from(const Expr& source, RowRange from, RowRange wanted, const Expr& whole) {
    if (from == wanted) return source;
    const int64_t begin = support::flip(row_strips_repeats_the_first) ? 0 : wanted.begin - from.begin;
    const Expr part = batch_part(source, begin, begin + wanted.count(), rows_of(whole)->axis);
    return bind(part, whole, relax_var(whole.as<VarNode>()->name + "_part", part->struct_info));
  }

  Var bind(const Expr& value, const Expr& origin, const Var& var) {
    out_.push_back(make<VarBinding>(ir::with_origin(value, origin->origin()), var));
    return var;
  }

  // The kernel for these rows, as a function of the module.
  std::string name_of(const std::string& function, RowRange rows) {
    const tir::Function& made = made_.at({function, rows});
    std::string& name = names_[made.get()];
    if (!name.empty()) return name;
    replaced_.insert(function);
    return name = add_kernel(module_, made, function + "_strip");
  }

  ir::IRModule& module_;
  const target::Target& target_;
  const ir::PassContext& context_;
  const StripCosts& costs_;
  std::set<std::string>& replaced_;
  std::vector<Binding> bindings_, out_;
  const LastUses* uses_ = nullptr;
  std::map<std::pair<std::string, RowRange>, std::optional<tir::RowStrip>> strips_;
  std::map<std::pair<std::string, RowRange>, tir::Function> made_;
  std::map<std::string, double> operations_;
  std::map<const ir::Node*, std::string> names_;
};

}  // namespace

support::Result<ir::IRModule> row_strips(ir::IRModule module, const target::Target& target,
                                         const ir::PassContext& context, const StripCosts& costs) {
  std::set<std::string> replaced;
  TRY(graph::change_functions(module, [&](const std::string& name, const relax::Function& function) {
    return StripSplitter(module, target, context, costs, replaced)(name, function);
  }));
  drop_uncalled(module, replaced);
  return module;
}

support::Result<ir::IRModule> row_strips(ir::IRModule module, const target::Target& target,
                                         const ir::PassContext& context) {
  return row_strips(std::move(module), target, context, {});
}

}  // namespace lathe::lower
