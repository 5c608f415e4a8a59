#include "schedule/testing/rule_check.h"

#include "driver/pipeline.h"
#include "schedule/analysis/tree.h"
#include "tir/testing/differential.h"

namespace lathe::schedule::testing {

target::Target machine(int bits, int registers) {
  target::Target target;
  target.vector_bits = bits;
  target.vector_registers = registers;
  target.cores = 2;
  target.features = {"fma"};
  return target;
}

target::Target with_small_caches(int bits, int registers) {
  target::Target target = machine(bits, registers);
  target.caches = {{.level = 1, .bytes = 1 << 10}, {.level = 2, .bytes = 16 << 10}};
  return target;
}

std::string last_remarks;

std::string compare(const Function& before, const Function& after, uint64_t seed, double tolerance,
                    const std::map<std::string, int64_t>& symbols) {
  std::vector<tir::TensorBuffer> expected = tir::testing::random_arguments(before, seed, symbols), got = expected;
  const auto scalars_of = [&](const Function& f) {
    std::vector<int64_t> scalars;
    for (const Var& param : f->params)
      if (const auto it = symbols.find(param->name); !param->dtype.is_handle() && it != symbols.end())
        scalars.push_back(it->second);
    return scalars;
  };
  const auto first = tir::interpret(before, expected, scalars_of(before));
  if (!first) return "invalid: " + support::render(first.diagnostics());
  const auto second = tir::interpret(after, got, scalars_of(after), {seed + 1});
  if (!second) return support::render(second.diagnostics());
  for (size_t a = 0; a < expected.size(); ++a)
    for (int64_t i = 0; i < expected[a].elements(); ++i) {
      if (!got[a].is_written(i)) {
        if (expected[a].is_written(i)) return fmt::format("argument {}, element {}: not written", a, i);
        continue;
      }
      const bool floating = expected[a].dtype.is_floating();
      const double x = floating ? expected[a].float_at(i) : static_cast<double>(expected[a].int_at(i));
      const double y = floating ? got[a].float_at(i) : static_cast<double>(got[a].int_at(i));
      if (std::isnan(x) && std::isnan(y)) continue;
      if (!(std::abs(x - y) <= tolerance * std::max(1.0, std::abs(x))))
        return fmt::format("argument {}, element {}: {} is not {}", a, i, y, x);
    }
  return {};
}

std::string scheduled(const Function& f, const target::Target& target, double tolerance,
                      const std::map<std::string, int64_t>& symbols, const std::map<std::string, int64_t>& decisions) {
  return scheduled_once(f, target, tolerance, {symbols}, decisions);
}

std::string scheduled_once(const Function& f, const target::Target& target, double tolerance,
                           const std::vector<std::map<std::string, int64_t>>& symbols,
                           const std::map<std::string, int64_t>& decisions) {
  AnalyticDecider model;
  TableDecider decider(decisions, model);
  std::vector<std::string> declined;
  ir::PassContext context;
  std::string taken = "none";
  context.on_remark = [&](ir::Remark remark) {
    if (remark.taken)
      taken = remark.pass;
    else
      declined.push_back(remark.pass + ": " + remark.text);
  };
  const Schedule start = Schedule::create(f).value_or_throw();
  const Schedule done = schedule_function(start, target, decider, context);
  const Function after = done.mod().find_as<PrimFunc>("main");
  last_remarks.clear();
  for (const std::string& line : declined) last_remarks += "declined " + line + "\n";
  const auto show = [&](const std::string& what) {
    std::string text = taken + ": " + what + "\n";
    for (const std::string& line : declined) text += "  declined " + line + "\n";
    return text + done.trace().as_python();
  };
  const auto at = [](const std::map<std::string, int64_t>& values) {
    std::string text;
    for (const auto& [name, value] : values) text += fmt::format("{} = {}: ", name, value);
    return text;
  };
  for (const std::map<std::string, int64_t>& values : symbols) {
    const std::string problem = compare(f, after, 7, tolerance, values);
    if (problem.rfind("invalid", 0) == 0) return taken;
    if (!problem.empty()) return show(at(values) + problem);
  }
  Schedule again = Schedule::create(f).value_or_throw();
  const auto trace = parse_trace(done.trace().as_python());
  if (!trace) return show(support::render(trace.diagnostics()));
  const auto replayed = trace->apply(again);
  if (!replayed) return show("replay: " + support::render(replayed.diagnostics()));
  if (const auto different = ir::first_difference(again.mod(), done.mod())) return show("replay: " + *different);
  const auto kernel = driver::lower_to_kernel(after);
  if (!kernel) return show("lowering: " + support::render(kernel.diagnostics()));
  for (const std::map<std::string, int64_t>& values : symbols) {
    if (!values.empty()) continue;
    const std::string lowered = compare(f, *kernel, 9, tolerance, values);
    if (!lowered.empty()) return show("lowered: " + lowered);
  }
  return taken;
}

std::string decided(const Function& f, const target::Target& target, const char* from, const char* to) {
  AnalyticDecider decider;
  std::string text;
  ir::PassContext context;
  context.on_remark = [&](const ir::Remark& remark) {
    if (remark.taken) text = remark.text;
  };
  schedule_function(Schedule::create(f).value_or_throw(), target, decider, context);
  const size_t begin = text.find(from);
  return begin == std::string::npos ? text : text.substr(begin, text.find(' ', text.find(to)) - begin);
}

int64_t largest_allocation(const Function& f, const target::Target& target) {
  AnalyticDecider model;
  const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), target, model, {});
  const Function kernel = driver::lower_to_kernel(done.mod().find_as<PrimFunc>("main")).value_or_throw();
  int64_t largest = 0;
  ir::post_order(kernel->body, [&](const NodeRef& n) {
    const auto* allocate = n.as<Allocate>();
    if (!allocate) return;
    int64_t elements = 1;
    for (const Expr& extent : allocate->extents) elements *= as_int(extent).value_or(1 << 30);
    largest = std::max(largest, elements);
  });
  return largest;
}

std::vector<int64_t> parallel_extents(const Function& f, const target::Target& target,
                                      const std::map<std::string, int64_t>& decisions) {
  AnalyticDecider model;
  TableDecider decider(decisions, model);
  const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), target, decider, {});
  std::vector<int64_t> extents;
  each_statement(done.function().body, [&](const Stmt& s) {
    const auto* loop = s.as<For>();
    if (loop && loop->kind == ForKind::parallel) extents.push_back(as_int(loop->extent).value_or(-1));
  });
  return extents;
}

}  // namespace lathe::schedule::testing
