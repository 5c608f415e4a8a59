#include "schedule/cost/cost.h"

#include "arith/analyzer.h"
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
      {&exp, 14},     {&exp_nonpositive, 9}, {&exp2, 12},  {&exp10, 16}, {&expm1, 20}, {&log, 16},   {&log2, 16},
      {&log10, 18},   {&log1p, 20},          {&sin, 24},   {&cos, 24},   {&tan, 40},   {&tanh, 24},  {&erf, 28},
      {&sigmoid, 26}, {&sqrt, 16},           {&rsqrt, 28}, {&pow, 60},   {&sinh, 30},  {&cosh, 30},  {&atan, 30},
      {&atan2, 40},   {&acos, 30},           {&asin, 30},  {&acosh, 50}, {&asinh, 50}, {&atanh, 50}, {&hypot, 24}};
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
        bindings_[realize->block->iter_vars[k]->var] = ir::substitute(realize->iter_values[k], bindings_);
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
    depth_[loop.loop_var.get()] = around_.size();
    analyzer_.bind(loop.loop_var, ir::Range{loop.min, loop.extent});
    const double often = std::exchange(often_, often_ * turns);
    often_at_.push_back(often_);
    if (loop.kind == ForKind::serial || loop.kind == ForKind::parallel) loops += often_ * loop_steps;
    statement(loop.body);
    often_ = often;
    often_at_.pop_back();
    around_.pop_back();
    if (is_shared) is_shared_ = false;
  }

  // Indices by the variables of loops alone: of a panel, the quotient and the remainder that a vector's lanes leave.
  std::vector<Expr> placed(std::vector<Expr> indices) {
    for (Expr& index : indices) index = analyzer_.simplify(ir::substitute(index, bindings_));
    return indices;
  }

  // How placed indices change with a loop's variable: by nothing, by one, by more or not evenly.
  enum class Stride { none, one, other };
  static Stride stride(const std::vector<Expr>& indices, const For& loop) {
    Stride found = Stride::none;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (!ir::uses_var(indices[d], loop.loop_var)) continue;
      found = d + 1 == indices.size() && is_unit(indices[d], loop.loop_var) && found == Stride::none ? Stride::one
                                                                                                     : Stride::other;
    }
    return found;
  }
  static bool is_unit(const Expr& e, const ir::Var& var) {
    if (e.get() == var.get()) return true;
    if (const auto* cast = e.as<ir::Cast>()) return is_unit(cast->value, var);
    if (const auto* add = e.as<ir::Add>())
      return ir::uses_var(add->a, var) ? !ir::uses_var(add->b, var) && is_unit(add->a, var) : is_unit(add->b, var);
    if (const auto* sub = e.as<ir::Sub>()) return !ir::uses_var(sub->b, var) && is_unit(sub->a, var);
    return false;
  }

  // How often vectors of the access are loaded or stored: once for all turns of the written-out loops inside that do
  // not move it, and by lanes where they do not lie side by side.
  double vectors(const std::vector<Expr>& given, int bits) {
    const std::vector<Expr> indices = placed(given);
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
    operators_.clear();
    operators(ir::substitute(store.value, bindings_), store.buffer);
    if (store.buffer->scope != "register") access += vectors(store.indices, store.buffer->dtype.bits) * store_steps;
    bool adds_up = false;
    for (const Ref<ir::BufferLoad>& load : loads_) {
      const bool is_own = load->buffer == store.buffer;
      adds_up = adds_up || is_own;
      if (load->buffer->scope != "register") access += vectors(load->indices, load->dtype.bits) * load_steps;
    }
    if (adds_up) waits(store, lanes, runs);
  }

  // A sum over a loop that does not move it: as many run at once as loops written out inside make.
  void waits(const BufferStore& store, double lanes, double runs) {
    const std::vector<Expr> indices = placed(store.indices);
    double at_once = registers(lanes, store.buffer->dtype.bits);
    for (size_t k = around_.size();; --k) {
      if (k == 0) return;  // every loop moves it
      const For& loop = *around_[k - 1];
      if (loop.kind == ForKind::vectorized || ir::is_int(loop.extent, 1)) continue;
      if (stride(indices, loop) == Stride::none) break;
      if (loop.kind != ForKind::unrolled) return;
      at_once *= static_cast<double>(ir::as_int(loop.extent).value_or(1));
    }
    const double each = runs * registers(lanes, store.buffer->dtype.bits);
    latency += each / at_once * std::max(multiply_add_latency, at_once);
  }

  // Adds the steps of an expression's operators, each as often as the innermost loop turns that it depends on, and
  // gives how many loops that is inside of. Equal ones are computed once; a product that is added is one with the sum.
  size_t operators(const Expr& e, const Buffer& sum) {
    if (const auto loop = depth_.find(e.get()); loop != depth_.end()) return loop->second;
    const auto [known, is_new] = operators_.try_emplace(ir::structural_hash(e, false), 0);
    if (!is_new) return known->second;
    size_t& depth = known->second;
    if (const auto* load = e.as<ir::BufferLoad>()) {  // its indices are part of an address
      loads_.emplace_back(load);
      ir::post_order(e, [&](const ir::NodeRef& n) {
        if (const auto loop = depth_.find(n.get()); loop != depth_.end()) depth = std::max(depth, loop->second);
      });
      if (load->buffer == sum) depth = around_.size();
      return depth;
    }
    e->node_class().for_each_child(*e, [&](const ir::NodeRef& child) {
      if (child && child->node_class().family == ExprNode::family)
        depth = std::max(depth, operators(ir::detail::narrow<ExprNode>(child), sum));
    });
    const auto is_product = [](const Expr& operand) { return operand.is<ir::Mul>() && operand->dtype.is_floating(); };
    const auto* add = e.as<ir::Add>();
    if (!is_operator(e) || (add && (is_product(add->a) || is_product(add->b)))) return depth;
    double lanes = 1;
    for (size_t k = 0; k < depth; ++k)
      if (around_[k]->kind == ForKind::vectorized)
        lanes *= static_cast<double>(ir::as_int(around_[k]->extent).value_or(1));
    arithmetic += steps_of(e) * (depth == 0 ? 1 : often_at_[depth - 1]) / lanes * registers(lanes, e->dtype.bits);
    return depth;
  }

  const target::Target& target_;
  const Rates& rates_;
  double often_ = 1;
  bool is_shared_ = false;  // a parallel loop is around
  std::vector<const For*> around_;
  ir::VarMap bindings_;  // of blocks' variables, by those of loops
  arith::Analyzer analyzer_;
  std::unordered_map<const ir::Node*, size_t> depth_;  // of a loop's variable: how many loops its turns are inside of
  std::vector<double> often_at_;                       // by depth - 1: how often its turns are made
  std::map<support::Hash128, size_t> operators_;       // of the statement's expressions: their depth
  std::vector<Ref<ir::BufferLoad>> loads_;             // of the statement, each once, placed
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
