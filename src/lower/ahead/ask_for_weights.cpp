#include "lower/ahead/ask_for_weights.h"

#include <fmt/format.h>

#include "graph/rewrite_bindings.h"
#include "ir/build.h"
#include "ir/visit.h"
#include "lower/other_kernels.h"
#include "relax/call_tir.h"
#include "support/mutation.h"
#include "target/target.h"
#include "tir/analysis/flops.h"

namespace lathe::lower {

LATHE_FAULT(ask_for_weights_instead, "lower_test", "a kernel gets the weights to ask for in the place of an operand");

using namespace relax;  // NOLINT: the subject of this file

namespace {

constexpr int64_t line_bytes = target::cache_line_bytes;
constexpr int64_t most_lines = 8;  // asked for in one turn
constexpr double most_of = 0.75;
constexpr double waits_below = 4;        // operations a byte: memory sets the time
constexpr double operations_a_byte = 8;  // in whose time memory gives a byte, to one core
constexpr size_t most_kernels = 4;       // that ask for the same weights

// A kernel's call.
struct KernelCall {
  const ir::Node* var;  // that it is bound to
  std::string kernel;
  double operations = 0, traffic = 0;
  Expr weights;  // its largest constant, or null
  int64_t weight_bytes = 0;
  bool takes_operands = false;  // one more is no problem
  // Whether it reads so many bytes of weights at least, most of them (of a table a few rows, perhaps; of panels all but
  // the lanes that fill the last one), and does little with them.
  bool waits_for(int64_t least) const {
    const double most = most_of * static_cast<double>(weight_bytes);
    return weight_bytes >= least && traffic >= most && operations < waits_below * traffic;
  }
  // Operations that are left when memory has given what the kernel reads and writes, in bytes that it could give.
  int64_t idle() const { return static_cast<int64_t>(operations / operations_a_byte - traffic); }
};

// The loops around the block that does most, outermost first, down to the first that is written out or is of no known
// length.
class TurnLoops {
 public:
  explicit TurnLoops(const tir::PrimFunc& function) : anchor_(tir::find_anchor_block(function)) {
    if (anchor_) walk(function.body);
    for (const auto& loop : loops_) {
      const bool turns = loop->kind == tir::ForKind::serial || loop->kind == tir::ForKind::parallel;
      if (!turns || ir::as_int(loop->extent).value_or(0) < 1) break;
      found_.push_back(loop);
    }
  }
  const std::vector<ir::Ref<tir::For>>& loops() const { return found_; }

 private:
  bool walk(const tir::Stmt& s) {
    if (const auto* loop = s.as<tir::For>()) {
      loops_.emplace_back(loop);
      if (walk(loop->body)) return true;
      loops_.pop_back();
      return false;
    }
    if (const auto* list = s.as<tir::SeqStmt>())
      return std::any_of(list->seq.begin(), list->seq.end(), [&](const tir::Stmt& each) { return walk(each); });
    const auto* realize = s.as<tir::BlockRealize>();
    if (!realize) return false;
    // Inside a block with axes loops go by other variables.
    return realize->block == anchor_ || (realize->block->iter_vars.empty() && walk(realize->block->body));
  }

  const ir::Ref<tir::Block> anchor_;
  std::vector<ir::Ref<tir::For>> loops_, found_;
};

// How many of the loops have turns enough to ask for so many lines, one or more with each.
struct Turns {
  size_t depth = 0;
  int64_t count = 0, lines = 0;  // turns, and lines with each
};
Turns turns_for(const std::vector<ir::Ref<tir::For>>& loops, int64_t lines) {
  Turns best;
  int64_t count = 1;
  for (size_t d = 0; d < loops.size(); ++d) {
    count *= *ir::as_int(loops[d]->extent);
    if (count > lines) break;
    best = {d + 1, count, std::min(lines / count, most_lines)};
  }
  return best;
}

// What a call's kernel is to ask for: a part of those weights, from a byte on.
struct Order {
  Expr weights;
  int64_t begin = 0;
  Turns turns;
};

// The kernel with one operand more, behind its inputs, of which it asks for a part in turns.
tir::Function asking(const tir::PrimFunc& function, size_t inputs, const Order& order) {
  const TurnLoops found(function);
  const std::vector<ir::Ref<tir::For>>& loops = found.loops();
  const Turns& turns = order.turns;
  const auto& data = *order.weights.as<Constant>()->data;
  std::vector<ir::Expr> shape;
  for (const int64_t extent : data.shape) shape.push_back(ir::int64(extent));
  const ir::Buffer ahead = ir::buffer("ahead", std::move(shape), data.dtype);
  std::vector<tir::IterVar> iters;
  std::vector<ir::Expr> values;
  ir::Expr turn = ir::int64(0);
  for (size_t l = 0; l < turns.depth; ++l) {
    const tir::For& loop = *loops[l];
    const ir::Var v = ir::var("v_" + loop.loop_var->name, loop.loop_var->dtype);
    iters.push_back(ir::make<tir::IterVarNode>(ir::Range(loop.min, loop.extent), v, tir::IterType::spatial, ""));
    values.emplace_back(loop.loop_var);
    turn = turn * *ir::as_int(loop.extent) + (ir::Expr(v) - loop.min);
  }
  const int64_t elements = line_bytes * 8 / data.dtype.storage_bits();
  std::vector<tir::Stmt> hints;
  for (int64_t line = 0; line < turns.lines; ++line) {
    std::vector<ir::Expr> at(data.shape.size(), ir::int64(0));
    at.back() = turn * (turns.lines * elements) + (order.begin / line_bytes + line) * elements;
    hints.push_back(ir::make<tir::Evaluate>(
        ir::call(ir::DType::int32(), ir::intrinsic::prefetch, {ir::load(ahead, std::move(at)), ir::int32(2)})));
  }
  const auto block =
      ir::make<tir::Block>(std::move(iters), std::vector<ir::Buffer>{}, std::vector<tir::MatchBufferRegion>{},
                           std::vector<tir::BufferRegion>{}, std::vector<tir::BufferRegion>{}, "ahead", tir::Stmt{},
                           tir::seq(std::move(hints)));
  const tir::For& loop = *loops[turns.depth - 1];
  const tir::Stmt asks = ir::with(loop, [&](tir::For& copy) {
    copy.body = tir::seq({ir::make<tir::BlockRealize>(std::move(values), ir::boolean(true), block), copy.body});
  });
  return ir::with(function, [&](tir::PrimFunc& copy) {
    const ir::Var handle = ir::var("ahead_handle", ir::DType::handle());
    const auto behind = static_cast<ptrdiff_t>(inputs);
    copy.params.insert(copy.params.begin() + behind, handle);
    copy.buffer_map.insert(copy.buffer_map.begin() + behind, std::pair(handle, ahead));
    copy.body = ir::rewrite_post_order(
        copy.body, [&](ir::NodeRef n) -> ir::NodeRef { return n.get() == &loop ? ir::NodeRef(asks) : n; });
  });
}

class Asking {
 public:
  Asking(ir::IRModule& module, const target::Target& target, const ir::PassContext& context, int64_t least)
      : module_(module), context_(context), least_(least), most_(target.cache_bytes(3, 0) / 2) {
    for (const auto& [name, base] : module_)
      if (const auto function = module_.find_as<relax::FunctionNode>(name))
        for (const Binding& binding : graph::all_bindings(function))
          if (const auto call = call_of(binding)) ++calls_[call->function];
  }

  Result<relax::Function> run(const relax::Function& function) {
    std::vector<KernelCall> calls;
    for (const Binding& binding : graph::all_bindings(function))
      if (const auto call = call_of(binding)) calls.push_back(described(graph::var_of_binding(binding).get(), *call));
    orders_.clear();
    for (size_t k = 0; k < calls.size(); ++k)
      if (calls[k].waits_for(least_)) order_before(calls, k);
    if (orders_.empty()) return function;
    return graph::rewrite_bindings(function, [&](graph::Emitter&, const Var& var, const Expr& value) -> Result<Expr> {
      const auto order = orders_.find(var.get());
      return order == orders_.end() ? Expr() : with_operand(*as_call_tir(value), order->second, value->origin());
    });
  }

 private:
  static std::optional<CallTir> call_of(const Binding& binding) {
    const auto* bound = binding.as<VarBinding>();
    return bound ? as_call_tir(bound->value) : std::nullopt;
  }

  KernelCall described(const ir::Node* var, const CallTir& call) const {
    KernelCall result{.var = var, .kernel = call.function};
    const auto kernel = module_.find_as<tir::PrimFunc>(call.function);
    bool of_loops = false, of_sizes = false;
    if (kernel) {
      result.operations = tir::estimate_flops(kernel->body, &of_loops);
      result.traffic = tir::estimate_traffic(*kernel, &of_sizes);
    }
    // How much it reads, nobody knows: nothing is asked for across it.
    if (!kernel || of_loops || of_sizes)
      return {.var = var, .kernel = call.function, .traffic = static_cast<double>(most_)};
    result.takes_operands = call.inplace_indices.empty() && !kernel->attrs.contains("versions") &&
                            kernel->params.size() == kernel->buffer_map.size();
    for (const Expr& arg : call.args) {
      const auto* constant = arg.as<Constant>();
      if (!constant || constant->data->byte_size() <= result.weight_bytes) continue;
      result.weights = arg;
      result.weight_bytes = constant->data->byte_size();
    }
    return result;
  }

  // Lets a few kernels before number `k` ask for its weights: those that leave memory idle longest.
  void order_before(const std::vector<KernelCall>& calls, size_t k) {
    std::vector<const KernelCall*> able;
    double between = 0;
    for (size_t i = k; i-- > 0;) {
      between += calls[i].traffic;
      if (between > static_cast<double>(most_)) break;
      if (calls[i].idle() >= least_ / 4 && !orders_.count(calls[i].var) && calls[i].takes_operands)
        able.push_back(&calls[i]);
    }
    std::stable_sort(able.begin(), able.end(), [](const auto* a, const auto* b) { return a->idle() > b->idle(); });
    int64_t left = std::min(calls[k].weight_bytes, most_);
    size_t kernels = 0;
    for (const KernelCall* call : able) {
      const TurnLoops loops(*module_.find_as<tir::PrimFunc>(call->kernel));
      const Turns turns = turns_for(loops.loops(), std::min(call->idle(), left) / line_bytes);
      const int64_t bytes = turns.count * turns.lines * line_bytes;
      if (bytes < least_ / 4) continue;
      left -= bytes;
      orders_[call->var] = {calls[k].weights, left, turns};
      if (++kernels == most_kernels) break;
    }
    if (kernels > 0)
      context_.remark(
          "ask_for_weights", calls[k].kernel,
          fmt::format("{} of its {} KB of weights are asked for by {} kernels before it",
                      (std::min(calls[k].weight_bytes, most_) - left) >> 10, calls[k].weight_bytes >> 10, kernels));
  }

  Result<Expr> with_operand(const CallTir& call, const Order& order, const ir::Origin& origin) {
    tir::Function kernel = asking(*module_.find_as<tir::PrimFunc>(call.function), call.args.size(), order);
    std::string name = call.function;
    if (calls_[name] == 1) {
      module_.set(name, kernel);
    } else {
      --calls_[name];
      kernel = ir::with(*kernel, [&](tir::PrimFunc& copy) { copy.attrs.set(scheduled_as, name); });
      name = add_kernel(module_, kernel, name);
    }
    std::vector<Expr> args = call.args;
    args.push_back(order.weights);
    if (support::flip(ask_for_weights_instead)) std::swap(args[0], args.back());
    return ir::with_origin(TRY(call_tir(name, std::move(args), call.outputs, call.scalars)), origin);
  }

  ir::IRModule& module_;
  const ir::PassContext& context_;
  const int64_t least_, most_;               // bytes of weights
  std::map<std::string, int> calls_;         // of each kernel
  std::map<const ir::Node*, Order> orders_;  // by the variable that a call is bound to
};

}  // namespace

support::Result<ir::IRModule> ask_for_weights(ir::IRModule module, const target::Target& target,
                                              const ir::PassContext& context, int64_t least) {
  Asking asking(module, target, context, least);
  TRY(graph::change_functions(
      module, [&](const std::string&, const relax::Function& function) { return asking.run(function); }));
  return module;
}

support::Result<ir::IRModule> ask_for_weights(ir::IRModule module, const target::Target& target,
                                              const ir::PassContext& context) {
  return ask_for_weights(std::move(module), target, context, 1 << 18);
}

}  // namespace lathe::lower
