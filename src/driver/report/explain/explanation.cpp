#include "driver/report/explain/explanation.h"

#include <nlohmann/json.hpp>

#include "codegen/emit/backends.h"
#include "driver/pipeline.h"
#include "driver/print.h"
#include "driver/report/explain/page.h"
#include "ir/visit.h"
#include "lower/batch/batch_parts.h"
#include "relax/call_tir.h"
#include "relax/control.h"
#include "relax/infer.h"
#include "schedule/decider.h"
#include "schedule/rules/rules.h"
#include "support/version.h"

namespace lathe::driver {

using nlohmann::ordered_json;
using support::Result;

namespace {

constexpr std::string_view row_that_schedules = "schedule_functions";
constexpr size_t longest_text = 400'000;  // of one program on the page
constexpr size_t most_code = 500;         // kernels whose code is shown: those that have most to do

std::string shortened(std::string text) {
  if (text.size() <= longest_text) return text;
  text.resize(longest_text);
  return text + fmt::format("\n# … cut after {} characters\n", longest_text);
}

std::string node_of(const ir::NodeRef& at) {
  const auto* place = at && at->origin() ? std::get_if<support::ModelNode>(at->origin().get()) : nullptr;
  return place ? place->node : "";
}

std::string type_text(const relax::StructInfo& info) {
  if (const auto* tensor = info.as<relax::TensorStructInfo>()) return relax::text_of(*tensor);
  const auto* tuple = info.as<relax::TupleStructInfo>();
  if (!tuple) return info ? std::string(info->node_class().name) : "";
  std::string text;
  for (const relax::StructInfo& item : tuple->items) text += (text.empty() ? "" : ", ") + type_text(item);
  return "(" + text + ")";
}

std::vector<relax::Var> vars_in(const relax::Expr& e) {
  std::vector<relax::Var> found;
  ir::pre_order(e, [&](const ir::NodeRef& n) {
    if (n.is<relax::VarNode>()) found.push_back(ir::detail::narrow<relax::VarNode>(n));
    return true;
  });
  return found;
}

std::string operation(const relax::Expr& value) {
  if (const auto parts = relax::as_call_tir(value)) return parts->function;
  if (const auto* call = value.as<relax::Call>()) {
    if (const auto* op = call->callee.as<relax::OpRef>()) return op->name;
    return "call";
  }
  return std::string(value->node_class().name);
}

// Calls `each(variable, value, binding)` for the bindings in order.
template <class Each>
void on_bindings(const relax::SeqExpr& sequence, Each&& each) {
  for (const relax::BindingBlock& block : sequence.blocks)
    for (const relax::Binding& binding : block->bindings)
      if (const auto* bound = binding.as<relax::VarBinding>())
        each(bound->var, bound->value, binding);
      else
        each(binding.as<relax::MatchCast>()->var, binding.as<relax::MatchCast>()->value, binding);
}

// The bindings of `main` as nodes of a graph: inputs first, then values in order. Items of tuples are the tuple.
class GraphOf {
 public:
  explicit GraphOf(const relax::Function& main) {
    for (const relax::Var& param : main->params)
      add(param.get(), {{"op", "input"}, {"name", param->name}, {"type", type_text(param->struct_info)}}, {});
    const auto* sequence = main->body.as<relax::SeqExpr>();
    if (!sequence) return;
    on_bindings(*sequence, [&](const relax::Var& var, const relax::Expr& value, const relax::Binding& binding) {
      add_value(var, value, binding);
    });
    std::set<int> results;
    collect(sequence->body, results);
    for (const int id : results) nodes_[static_cast<size_t>(id)]["output"] = true;
  }

  ordered_json take() { return std::move(nodes_); }

 private:
  void add(const ir::Node* var, ordered_json node, const std::set<int>& inputs) {
    ids_[var] = static_cast<int>(nodes_.size());
    node["inputs"] = inputs;
    nodes_.push_back(std::move(node));
  }

  void add_value(const relax::Var& var, const relax::Expr& value, const relax::Binding& binding) {
    std::set<int> inputs;
    collect(value, inputs);
    const bool stands_for =
        value.is<relax::TupleGetItem>() || value.is<relax::VarNode>() || binding.is<relax::MatchCast>();
    if (stands_for && inputs.size() == 1) {
      ids_[var.get()] = *inputs.begin();
      return;
    }
    std::string node = node_of(value);
    add(var.get(),
        {{"op", operation(value)},
         {"name", var->name},
         {"type", type_text(var->struct_info)},
         {"node", node.empty() ? node_of(binding) : node}},
        inputs);
  }

  void collect(const relax::Expr& e, std::set<int>& found) const {
    for (const relax::Var& var : vars_in(e))
      if (const auto it = ids_.find(var.get()); it != ids_.end()) found.insert(it->second);
  }

  ordered_json nodes_ = ordered_json::array();
  std::unordered_map<const ir::Node*, int> ids_;
};

ordered_json graph(const std::string& title, const ir::IRModule& module) {
  const auto main = module.find_as<relax::FunctionNode>("main");
  if (!main) return {{"title", title}, {"nodes", ordered_json::array()}, {"text", ""}};
  return {{"title", title}, {"nodes", GraphOf(main).take()}, {"text", shortened(print_node(main, "main"))}};
}

// Where each planned tensor lies, and from which binding to which it lives.
ordered_json memory(const CompiledModel& model) {
  const lower::MemoryPlan& plan = model.program->plan;
  ordered_json tensors = ordered_json::array();
  ordered_json steps = ordered_json::array();
  const auto main = model.module.find_as<relax::FunctionNode>("main");
  const auto* sequence = main ? main->body.as<relax::SeqExpr>() : nullptr;
  if (sequence) {
    std::map<const ir::Node*, std::set<const ir::Node*>> stands_for;  // the variables whose memory a variable is
    std::map<const ir::Node*, int> first, last;
    int at = 0;
    const auto use = [&](const relax::Expr& e) {
      for (const relax::Var& var : vars_in(e)) {
        last[var.get()] = at;
        for (const ir::Node* behind : stands_for[var.get()]) last[behind] = at;
      }
    };
    on_bindings(*sequence, [&](const relax::Var& var, const relax::Expr& value, const relax::Binding&) {
      use(value);
      first[var.get()] = last[var.get()] = at;
      if (relax::as_call_tir(value)) {
        steps.push_back(operation(value));
        ++at;
        return;
      }
      for (const relax::Var& source : vars_in(value)) {
        stands_for[var.get()].insert(source.get());
        const std::set<const ir::Node*> behind = stands_for[source.get()];
        stands_for[var.get()].insert(behind.begin(), behind.end());
      }
      if (lower::is_joined_batch(value))  // its memory is there with its first part
        for (const ir::Node* part : stands_for[var.get()]) first[var.get()] = std::min(first[var.get()], first[part]);
    });
    use(sequence->body);
    for (const auto& [place, placement] : plan.placements) {
      const auto begin = first.find(place.first);
      if (placement.kind != lower::Placement::planned || placement.whole || begin == first.end()) continue;
      const auto& var = static_cast<const relax::VarNode&>(*place.first);
      tensors.push_back({{"name", var.name},
                         {"offset", placement.offset},
                         {"bytes", placement.bytes},
                         {"from", begin->second},
                         {"to", std::max(begin->second, last[place.first])}});
    }
  }
  return {{"arena", plan.arena_bytes},    {"unplanned", plan.unplanned_bytes},      {"in_place", plan.in_place},
          {"slots", plan.slots},          {"weights", model.program->weight_bytes}, {"steps", std::move(steps)},
          {"tensors", std::move(tensors)}};
}

ordered_json to_json(const CodeShape& shape) {
  ordered_json out{{"instructions", shape.instructions}, {"spills", shape.spills}};
  if (shape.inner)
    out["inner"] = {{"instructions", shape.inner->instructions},
                    {"arithmetic", shape.inner->arithmetic},
                    {"loads", shape.inner->loads},
                    {"stores", shape.inner->stores},
                    {"spills", shape.inner->spills},
                    {"registers", shape.inner->vector_registers}};
  return out;
}

struct KernelTimes {
  uint64_t calls = 0, nanoseconds = 0;
};

// The kernels of the program, each with all that is known of it.
class Kernels {
 public:
  Kernels(const CompiledModel& model, const CompileOptions& options, const ir::IRModule& scheduled,
          const WorkReport& work, const std::optional<MeasuredRuns>& runs)
      : model_(model), options_(options), scheduled_(scheduled), work_(work), runs_(runs) {
    if (!runs) return;
    for (const InstructionTime& each : runs->instructions) {
      times_[each.name].calls += each.calls;
      times_[each.name].nanoseconds += each.nanoseconds;
      all_ += each.nanoseconds;
    }
  }

  Result<ordered_json> all() {
    std::vector<std::string> heaviest = model_.program->kernels;
    const auto operations = [&](const std::string& name) {
      const KernelWork* work = work_.find(name);
      return work ? work->operations : 0;
    };
    std::stable_sort(heaviest.begin(), heaviest.end(),
                     [&](const auto& a, const auto& b) { return operations(a) > operations(b); });
    shown_.insert(heaviest.begin(), heaviest.begin() + static_cast<ptrdiff_t>(std::min(most_code, heaviest.size())));
    ordered_json rows = ordered_json::array();
    for (const std::string& name : model_.program->kernels) rows.push_back(TRY(one(name)));
    return rows;
  }

 private:
  Result<ordered_json> one(const std::string& name) {
    ordered_json row{{"name", name}};
    const std::string& scheduled_as = work_.scheduled_as(name);
    ordered_json declined = ordered_json::array();
    for (const ir::Remark& remark : model_.remarks)
      if (remark.subject == scheduled_as && !remark.taken)
        declined.push_back({{"by", remark.pass}, {"why", remark.text}});
    row["declined"] = std::move(declined);
    if (const KernelWork* work = work_.find(name)) {
      row["rule"] = work->rule;
      row["decisions"] = work->decisions;
      row["symbolic"] = work->symbolic;
      row["operations"] = work->operations;
      row["bytes"] = work->bytes;
      if (runs_ && !work->symbolic) {
        row["limit_us"] = 1e6 * work->limit(runs_->machine);
        row["bound"] = work->bound(runs_->machine);
        if (const auto seconds = work_.predicted(name, "", model_.target, runs_->machine, runs_->threads))
          row["predicted_us"] = 1e6 * *seconds;
      }
    }
    if (const auto at = times_.find(name); at != times_.end() && at->second.calls > 0) {
      row["us"] = static_cast<double>(at->second.nanoseconds) / 1e3 / static_cast<double>(at->second.calls);
      row["calls"] = static_cast<double>(at->second.calls) / static_cast<double>(std::max<uint64_t>(runs_->runs, 1));
      row["share"] = static_cast<double>(at->second.nanoseconds) / static_cast<double>(std::max<uint64_t>(all_, 1));
    }
    row["tensor_program"] = text(work_.unscheduled(), scheduled_as);
    row["scheduled"] = text(scheduled_, scheduled_as);
    row["trace"] = trace_of(scheduled_as);
    row["kernel"] = text(model_.module, name);
    const tir::Function function = model_.module.find_as<tir::PrimFunc>(name);
    const codegen::Backend* backend = codegen::find_backend(model_.target.kind);
    if (!function || !backend || !shown_.count(name)) return row;
    const auto emitted = [&](codegen::EmitKind kind) -> Result<std::string> {
      return backend->emit({{name, function}}, model_.target, {.kind = kind, .comments = true});
    };
    row["ll"] = shortened(TRY(emitted(codegen::EmitKind::llvm_ir)));
    const std::string assembly = TRY(emitted(codegen::EmitKind::assembly));
    row["code"] = to_json(shape_of_assembly(assembly));
    row["asm"] = shortened(assembly);
    return row;
  }

  static std::string text(const ir::IRModule& module, const std::string& name) {
    const auto function = module.find_as<tir::PrimFunc>(name);
    return function ? shortened(print_node(function, name)) : "";
  }

  // The steps of the schedule, by asking the rules once more, for the program that was taken.
  std::string trace_of(const std::string& name) const {
    const auto function = work_.unscheduled().find_as<tir::PrimFunc>(name);
    const auto taken = scheduled_.find(name);
    if (!function || taken.same_as(work_.unscheduled().find(name))) return "";
    auto schedule = schedule::Schedule::create(function, name);
    if (!schedule) return "";
    schedule::AnalyticDecider analytic;
    schedule::TableDecider decider(options_.decisions, analytic);
    const auto is_taken = [&](const tir::Function& made) {
      return ir::structural_equal(made, taken) ? schedule::Outcome() : schedule::Outcome("another program was taken");
    };
    return schedule::schedule_function(*std::move(schedule), model_.target, decider, {}, is_taken).trace().as_python();
  }

  const CompiledModel& model_;
  const CompileOptions& options_;
  const ir::IRModule& scheduled_;
  const WorkReport& work_;
  const std::optional<MeasuredRuns>& runs_;
  std::map<std::string, KernelTimes> times_;
  std::set<std::string> shown_;
  uint64_t all_ = 0;
};

// Trace events: one after the other, each as long as it took in the mean.
std::string timeline_of(const MeasuredRuns& runs) {
  ordered_json events = ordered_json::array();
  double now = 0;
  for (const InstructionTime& each : runs.instructions) {
    const double us =
        static_cast<double>(each.nanoseconds) / 1e3 / static_cast<double>(std::max<uint64_t>(runs.runs, 1));
    events.push_back({{"name", each.name},
                      {"cat", "kernel"},
                      {"ph", "X"},
                      {"ts", now},
                      {"dur", us},
                      {"pid", 1},
                      {"tid", 1},
                      {"args", {{"node", each.node}}}});
    now += us;
  }
  return ordered_json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}}.dump(
      -1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json to_json(const MeasuredRuns& runs) {
  ordered_json levels = ordered_json::array();
  for (const MemoryLevel& level : runs.machine.levels)
    levels.push_back({{"name", level.name}, {"bytes_per_second", level.bytes_per_second}});
  return {{"runs", runs.runs},
          {"threads", runs.threads},
          {"operations_per_second", runs.machine.operations_per_second},
          {"levels", std::move(levels)}};
}

}  // namespace

Explanation::Explanation(std::string name, ir::IRModule module)
    : name_(std::move(name)), imported_(std::move(module)) {}

std::function<void(const std::string&, const ir::IRModule&)> Explanation::watch() {
  return [this, work = work_.watch()](const std::string& row, const ir::IRModule& module) {
    work(row, module);
    if (row == row_that_schedules) scheduled_ = module;
  };
}

support::Status Explanation::finish(const CompiledModel& model, const CompileOptions& options,
                                    const std::optional<MeasuredRuns>& runs) {
  support::require(model.program.has_value(), "only a model compiled to the end can be explained");
  work_.finish(model);
  if (runs) work_.know_sizes(runs->inputs);
  ordered_json rows = ordered_json::array();
  for (const RowTime& row : model.times)
    rows.push_back({{"row", row.row},
                    {"stage", std::string(stage_of(row.row))},
                    {"ms", static_cast<double>(row.time.count()) / 1e6}});
  ordered_json remarks = ordered_json::array();
  for (const ir::Remark& remark : model.remarks)
    remarks.push_back(
        {{"pass", remark.pass}, {"subject", remark.subject}, {"text", remark.text}, {"taken", remark.taken}});
  Kernels kernels(model, options, scheduled_, work_, runs);
  const ordered_json all{{"model", name_},
                         {"target", model.target.str()},
                         {"lathe", support::version},
                         {"llvm", codegen::llvm_version()},
                         {"run", runs ? to_json(*runs) : ordered_json()},
                         {"rows", std::move(rows)},
                         {"graphs", {graph("as it was read", imported_), graph("as it runs", model.module)}},
                         {"kernels", TRY(kernels.all())},
                         {"remarks", std::move(remarks)},
                         {"memory", memory(model)}};
  json_ = all.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  if (runs) timeline_ = timeline_of(*runs);
  return support::success();
}

std::string Explanation::page() const {
  std::string page(explain_page);
  const auto put = [&](std::string_view mark, const std::string& data) {
    std::string safe;
    safe.reserve(data.size());
    for (const char c : data)  // no "</script>" in a text may end the data
      if (c == '<')
        safe += "\\u003c";
      else
        safe += c;
    const size_t at = page.find(mark);
    page.replace(at, mark.size(), safe.empty() ? "null" : safe);
  };
  put("@timeline@", timeline_);
  put("@data@", json_);
  return page;
}

}  // namespace lathe::driver
