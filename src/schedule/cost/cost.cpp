#include "schedule/cost/cost.h"

#include "ir/match.h"
#include "ir/structural.h"
#include "ir/visit.h"

namespace lathe::schedule {

using namespace tir;  // NOLINT: this file is about programs

namespace {

// Of a core that starts two vector multiply-adds a cycle, two loads, and one store: steps are halves of a cycle.
constexpr double load_steps = 1, store_steps = 2, multiply_add_latency = 8, loop_steps = 2;
constexpr double call_seconds = 1e-7, fork_seconds = 1e-6;

// Steps of an operator or scalar function on one vector.
double steps_of(const Expr& e) {
  using namespace ir::intrinsic;  // NOLINT
  if (e.is<Div>() || e.is<ir::Mod>() || e.is<ir::FloorDiv>() || e.is<ir::FloorMod>()) return 16;
  const auto* call = e.as<ir::Call>();
  if (!call) return 1;
  static const std::unordered_map<const Intrinsic*, double> dear{
      {&exp, 14},   {&exp2, 12},  {&exp10, 16}, {&expm1, 20}, {&log, 16},   {&log2, 16}, {&log10, 18},
      {&log1p, 20}, {&sin, 24},   {&cos, 24},   {&tan, 40},   {&tanh, 24},  {&erf, 28},  {&sigmoid, 26},
      {&sqrt, 16},  {&rsqrt, 28}, {&pow, 60},   {&sinh, 30},  {&cosh, 30},  {&atan, 30}, {&atan2, 40},
      {&acos, 30},  {&asin, 30},  {&acosh, 50}, {&asinh, 50}, {&atanh, 50}, {&hypot, 24}};
  const auto it = dear.find(call->op);
  return it == dear.end() ? 1 : it->second;
}

bool is_operator(const Expr& e) {
  if (const auto* call = e.as<ir::Call>())
    return call->op->effect == Effect::pure && call->op->arity > 0 && call->op != &ir::intrinsic::likely &&
           call->op != &ir::intrinsic::reinterpret;
  return e.is<ir::Add>() || e.is<ir::Sub>() || e.is<ir::Mul>() || e.is<ir::Div>() || e.is<ir::Mod>() ||
         e.is<ir::FloorDiv>() || e.is<ir::FloorMod>() || e.is<ir::Min>() || e.is<ir::Max>() || e.is<ir::EQ>() ||
         e.is<ir::NE>() || e.is<ir::LT>() || e.is<ir::LE>() || e.is<ir::GT>() || e.is<ir::GE>() || e.is<ir::Select>() ||
         e.is<ir::Cast>();
}

// Walks the statements with the loops around them.
class Counting {
 public:
  Counting(const target::Target& target, const Rates& rates) : target_(target), rates_(rates) {}

  double arithmetic = 0, access = 0, latency = 0, loops = 0;  // steps
  bool is_parallel = false;

  void statement(const Stmt& s) {
    if (!s) return;
    if (const auto* loop = s.as<For>()) return inside(*loop);
    if (const auto* store = s.as<BufferStore>()) return stored(*store);
    if (const auto* realize = s.as<BlockRealize>()) {
      for (size_t k = 0; k < realize->block->iter_vars.size(); ++k)
        bindings_[realize->block->iter_vars[k]->var.get()] = realize->iter_values[k];
      double runs = 1;  // of the block, for each of its init
      for (const IterVar& iter : realize->block->iter_vars)
        if (iter->type == IterType::reduce) runs *= static_cast<double>(ir::as_int(iter->dom.extent).value_or(1));
      const double often = std::exchange(often_, often_ / std::max(runs, 1.0));
      statement(realize->block->init);
      often_ = often;
      return statement(realize->block->body);
    }
    if (const auto* branch = s.as<IfThenElse>()) {
      statement(branch->then_case);
      return statement(branch->else_case);
    }
    s->node_class().for_each_child(*s, [&](const ir::NodeRef& child) {
      if (child && child->node_class().family == StmtNode::family) statement(ir::detail::narrow<StmtNode>(child));
    });
  }

 private:
  void inside(const For& loop) {
    auto turns = static_cast<double>(std::max<int64_t>(ir::as_int(loop.extent).value_or(1), 0));
    // Threads share the outermost parallel loop; the last round may leave some of them idle.
    const bool is_shared = loop.kind == ForKind::parallel && !is_shared_;
    if (is_shared) {
      is_parallel = is_shared_ = true;
      turns = std::ceil(turns / rates_.threads);
    }
    around_.push_back(&loop);
    const double often = std::exchange(often_, often_ * turns);
    if (loop.kind == ForKind::serial || loop.kind == ForKind::parallel) loops += often_ * loop_steps;
    statement(loop.body);
    often_ = often;
    around_.pop_back();
    if (is_shared) is_shared_ = false;
  }

  // How an expression changes with a loop's variable: by nothing, by one, by more or not evenly.
  enum class Stride { none, one, other };
  Stride stride(const std::vector<Expr>& indices, const For& loop) const {
    Stride found = Stride::none;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (!uses(indices[d], loop.loop_var)) continue;
      found = d + 1 == indices.size() && is_unit(indices[d], loop.loop_var) && found == Stride::none ? Stride::one
                                                                                                     : Stride::other;
    }
    return found;
  }
  bool uses(const Expr& e, const ir::Var& var) const {
    bool found = false;
    ir::pre_order(e, [&](const ir::NodeRef& n) {
      if (n.get() == var.get()) found = true;
      if (const auto it = bindings_.find(n.get()); it != bindings_.end() && !found) found = uses(it->second, var);
      return !found;
    });
    return found;
  }
  bool is_unit(const Expr& e, const ir::Var& var) const {
    if (e.get() == var.get()) return true;
    if (const auto it = bindings_.find(e.get()); it != bindings_.end()) return is_unit(it->second, var);
    if (const auto* cast = e.as<ir::Cast>()) return is_unit(cast->value, var);
    if (const auto* add = e.as<ir::Add>())
      return uses(add->a, var) ? !uses(add->b, var) && is_unit(add->a, var) : is_unit(add->b, var);
    if (const auto* sub = e.as<ir::Sub>()) return !uses(sub->b, var) && is_unit(sub->a, var);
    return false;
  }

  // How often vectors of the access are loaded or stored: once for all turns of the written-out loops inside that do
  // not move it, and by lanes where they do not lie side by side.
  double vectors(const std::vector<Expr>& indices, int bits) const {
    double count = often_;
    bool innermost = true;
    for (size_t k = around_.size(); k-- > 0;) {
      const For& loop = *around_[k];
      const auto extent = static_cast<double>(ir::as_int(loop.extent).value_or(1));
      innermost = innermost && (loop.kind == ForKind::unrolled || loop.kind == ForKind::vectorized);
      if (!innermost || extent < 1) continue;
      switch (stride(indices, loop)) {
        case Stride::none:
          count /= extent;
          break;
        case Stride::one:
          if (loop.kind == ForKind::vectorized) count *= registers(extent, bits) / extent;
          break;
        case Stride::other:
          break;
      }
    }
    return count;
  }

  double registers(double lanes, int bits) const {
    return std::max(1.0, std::ceil(lanes * bits / target_.vector_bits));
  }

  void stored(const BufferStore& store) {
    double lanes = 1;
    for (const For* loop : around_)
      if (loop->kind == ForKind::vectorized) lanes *= static_cast<double>(ir::as_int(loop->extent).value_or(1));
    const double runs = often_ / lanes;
    loads_.clear();
    const double steps = operators(store.value, lanes);
    arithmetic += runs * steps;
    if (store.buffer->scope != "register") access += vectors(store.indices, store.buffer->dtype.bits) * store_steps;
    bool adds_up = false;
    for (const ir::BufferLoad* load : loads_) {
      const bool is_own = load->buffer == store.buffer;
      adds_up = adds_up || is_own;
      if (load->buffer->scope != "register") access += vectors(load->indices, load->dtype.bits) * load_steps;
    }
    if (adds_up) waits(store, lanes, runs);
  }

  // A sum over a loop that does not move it: as many run at once as loops written out inside make.
  void waits(const BufferStore& store, double lanes, double runs) {
    double at_once = registers(lanes, store.buffer->dtype.bits);
    for (size_t k = around_.size();; --k) {
      if (k == 0) return;  // every loop moves it
      const For& loop = *around_[k - 1];
      if (loop.kind == ForKind::vectorized) continue;
      if (stride(store.indices, loop) == Stride::none) break;
      if (loop.kind != ForKind::unrolled) return;
      at_once *= static_cast<double>(ir::as_int(loop.extent).value_or(1));
    }
    const double each = runs * registers(lanes, store.buffer->dtype.bits);
    latency += each / at_once * std::max(multiply_add_latency, at_once);
  }

  // The steps of an expression's operators on so many lanes; a product that is added is one.
  double operators(const Expr& e, double lanes) {
    if (!e) return 0;
    if (const auto* load = e.as<ir::BufferLoad>()) {
      const auto same = [&](const ir::BufferLoad* other) {
        return ir::structural_equal(ir::NodeRef(other), ir::NodeRef(load));
      };
      if (std::ranges::none_of(loads_, same)) loads_.push_back(load);
      return 0;
    }
    double steps = 0;
    e->node_class().for_each_child(*e, [&](const ir::NodeRef& child) {
      if (child && child->node_class().family == ExprNode::family)
        steps += operators(ir::detail::narrow<ExprNode>(child), lanes);
    });
    if (!is_operator(e)) return steps;
    const auto is_product = [](const Expr& operand) { return operand.is<ir::Mul>() && operand->dtype.is_floating(); };
    const auto* add = e.as<ir::Add>();
    if (add && (is_product(add->a) || is_product(add->b))) return steps;
    return steps + steps_of(e) * registers(lanes, e->dtype.bits);
  }

  const target::Target& target_;
  const Rates& rates_;
  double often_ = 1;
  bool is_shared_ = false;  // a parallel loop is around
  std::vector<const For*> around_;
  std::unordered_map<const ir::Node*, Expr> bindings_;
  std::vector<const ir::BufferLoad*> loads_;
};

}  // namespace

std::optional<Cost> predict(const PrimFunc& function, const target::Target& target, const Rates& rates) {
  const auto traffic = Traffic::of(function.body);
  if (!traffic) return std::nullopt;
  Counting counting(target, rates);
  counting.statement(function.body);
  const double step = 2.0 * target.lanes(32) * rates.threads / rates.operations_per_second;
  Cost cost{.arithmetic = counting.arithmetic * step,
            .access = counting.access * step,
            .latency = counting.latency * step,
            .overhead =
                counting.loops * step + call_seconds + (counting.is_parallel && rates.threads > 1 ? fork_seconds : 0)};
  for (size_t i = 0; i + 1 < rates.levels.size(); ++i)
    cost.movement += traffic->missed(rates.levels[i].bytes) / rates.levels[i + 1].bytes_per_second;
  return cost;
}

}  // namespace lathe::schedule
