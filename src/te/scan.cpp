#include "te/scan.h"

#include "arith/analyzer.h"
#include "ir/visit.h"
#include "te/codes.h"
#include "tir/analysis/regions.h"

namespace lathe::te {

using ir::Buffer;
using ir::NodeRef;
using tir::Stmt;

namespace {

[[noreturn]] void refuse_scan(std::string message) {
  throw support::DiagnosticError(support::Diagnostic{.code = codes::scan, .message = std::move(message)});
}

bool depends_on(const Tensor& tensor, const std::vector<ScanState>& states) {
  for (const ScanState& s : states)
    if (tensor.buffer == s.state.buffer) return true;
  if (!tensor.op) return false;
  return std::any_of(tensor.op->inputs.begin(), tensor.op->inputs.end(),
                     [&](const Tensor& input) { return depends_on(input, states); });
}

// The output of each state, and what a step must hold to.
class ScanBody {
 public:
  ScanBody(const std::vector<ScanState>& states, const std::vector<Buffer>& outputs, const std::string& name)
      : states_(states), outputs_(outputs), name_(name) {}

  Stmt statement() {
    std::vector<Stmt> all;
    for (size_t k = 0; k < states_.size(); ++k) all.push_back(first_steps(k));
    const Expr begin = states_[0].init.shape()[0], steps = outputs_[0]->shape[0];
    const Var t = ir::var("t");
    std::vector<Stmt> updates;
    for (size_t k = 0; k < states_.size(); ++k) updates.push_back(step(k, t));
    all.push_back(ir::make<tir::For>(t, begin, steps - begin, tir::ForKind::serial, tir::seq(std::move(updates)),
                                     ir::IterVar(), ir::Attributes()));
    return tir::seq(std::move(all));
  }

 private:
  // A block over `axes`, each bound to a loop of its own; the first to `outer` where that is given.
  Stmt nest(const std::vector<IterVar>& axes, const Var& outer, const std::string& name, Stmt init, Stmt body) {
    std::vector<Expr> values;
    std::vector<Var> loops;
    for (size_t d = 0; d < axes.size(); ++d) {
      loops.push_back(d == 0 && outer ? outer : ir::var(axes[d]->var->name));
      values.push_back(loops.back());
    }
    auto block = ir::make<tir::Block>(axes, std::vector<Buffer>{}, std::vector<tir::MatchBufferRegion>{},
                                      std::vector<tir::BufferRegion>{}, std::vector<tir::BufferRegion>{}, name,
                                      std::move(init), std::move(body), ir::Attributes());
    tir::Regions regions = tir::infer_regions(*block);
    // A reduction reads its own buffer at earlier steps too, which is not seen beside what it accumulates into.
    if (block->init) {
      const Buffer own = regions.writes[0]->buffer;
      std::erase_if(regions.reads, [&](const tir::BufferRegion& read) { return read->buffer == own; });
      regions.reads.push_back(tir::region_of(own));
    }
    block = ir::with(*block, [&](tir::Block& copy) {
      copy.reads = regions.reads;
      copy.writes = regions.writes;
    });
    Stmt made = ir::make<tir::BlockRealize>(values, ir::boolean(true), block);
    for (size_t d = axes.size(); d-- > (outer ? 1 : 0);)
      made = ir::make<tir::For>(loops[d], axes[d]->dom.min, axes[d]->dom.extent, tir::ForKind::serial, made,
                                ir::IterVar(), ir::Attributes());
    return made;
  }

  Stmt first_steps(size_t k) {
    std::vector<IterVar> axes;
    std::vector<Expr> at;
    for (const Expr& extent : states_[k].init.shape()) {
      const Var v = ir::var("i" + std::to_string(axes.size()));
      axes.push_back(ir::make<ir::IterVarNode>(ir::Range{ir::int64(0), extent}, v, ir::IterType::spatial));
      at.push_back(v);
    }
    return nest(axes, Var(), name_of(k, "_init"), Stmt(),
                ir::make<tir::BufferStore>(outputs_[k], states_[k].init(at), at));
  }

  Stmt step(size_t k, const Var& t) {
    const OperationNode& op = *states_[k].update.op;
    const Expr begin = states_[0].init.shape()[0];
    ir::VarMap fresh;
    std::vector<IterVar> axes;
    std::vector<Expr> at;
    const auto add = [&](const IterVar& axis, ir::Range domain, ir::IterType type) {
      const Var v = ir::var(axis->var->name);
      fresh[axis->var] = v;
      axes.push_back(ir::make<ir::IterVarNode>(std::move(domain), v, type));
      return v;
    };
    for (size_t d = 0; d < op.axis.size(); ++d) {
      const ir::Range& whole = op.axis[d]->dom;
      at.push_back(d == 0 ? add(op.axis[d], ir::Range{begin, whole.extent - begin}, ir::IterType::scan)
                          : add(op.axis[d], whole, ir::IterType::spatial));
    }
    for (const IterVar& axis : op.reduce_axis) add(axis, axis->dom, ir::IterType::reduce);
    const Expr body = with_outputs(ir::substitute(op.body[0], fresh), at[0], begin);
    const Buffer& out = outputs_[k];
    const auto* reduce = body.as<ir::Reduce>();
    if (!reduce) return nest(axes, t, name_of(k, "_update"), Stmt(), ir::make<tir::BufferStore>(out, body, at));
    if (reduce->sources.size() != 1 || reduce->condition || !reduce->init.empty())
      refuse_scan("the update of '" + out->name + "' reduces in a way that a scan does not take");
    const ir::VarMap operands = {{reduce->combiner->lhs[0], ir::load(out, at)},
                                 {reduce->combiner->rhs[0], reduce->sources[0]}};
    const Expr next = ir::substitute(reduce->combiner->result[0], operands);
    return nest(axes, t, name_of(k, "_update"), ir::make<tir::BufferStore>(out, reduce->combiner->identity[0], at),
                ir::make<tir::BufferStore>(out, next, at));
  }

  // Reads of the states' placeholders as reads of the results, each of a step before `t`.
  Expr with_outputs(const Expr& body, const Expr& t, const Expr& begin) {
    return ir::rewrite_post_order(body, [&](NodeRef node) -> NodeRef {
      const auto* load = node.as<ir::BufferLoad>();
      if (!load) return node;
      for (size_t k = 0; k < states_.size(); ++k) {
        if (load->buffer != states_[k].state.buffer) continue;
        arith::Analyzer analyzer;
        const Expr step = load->indices[0];
        if (!analyzer.can_prove(step < t))
          refuse_scan("a step of '" + outputs_[k]->name + "' reads one that is not before it");
        if (!analyzer.can_prove(step - t + begin >= ir::int64(0)))
          refuse_scan("the first step that '" + outputs_[k]->name + "' computes reads one before the first of all");
        return ir::load(outputs_[k], load->indices);
      }
      return node;
    });
  }

  std::string name_of(size_t k, const char* part) const {
    return name_ + (states_.size() > 1 ? "_v" + std::to_string(k) : "") + part;
  }

  const std::vector<ScanState>& states_;
  const std::vector<Buffer>& outputs_;
  std::string name_;
};

void check_shapes(const ScanState& s, const ScanState& first) {
  const auto says = [](const Tensor& t) { return "'" + t.buffer->name + "'"; };
  if (!s.update.op || s.update.op->body.size() != 1)
    refuse_scan("the update " + says(s.update) + " is no computed tensor of one value");
  if (s.state.op) refuse_scan("the state " + says(s.state) + " is no placeholder");
  if (s.init.ndim() == 0 || s.init.ndim() != s.update.ndim() || s.init.ndim() != s.state.ndim())
    refuse_scan(says(s.init) + ", " + says(s.update) + " and " + says(s.state) + " differ in rank, or have none");
  if (s.init.dtype() != s.update.dtype() || s.init.dtype() != s.state.dtype())
    refuse_scan(says(s.init) + ", " + says(s.update) + " and " + says(s.state) + " differ in dtype");
  arith::Analyzer analyzer;
  for (size_t d = 0; d < s.state.ndim(); ++d)
    if (!analyzer.can_prove_equal(s.update.shape()[d], s.state.shape()[d]) ||
        (d > 0 && !analyzer.can_prove_equal(s.init.shape()[d], s.state.shape()[d])))
      refuse_scan("dimension " + std::to_string(d) + " of " + says(s.init) + ", " + says(s.update) + " and " +
                  says(s.state) + " differs");
  if (!analyzer.can_prove_equal(s.init.shape()[0], first.init.shape()[0]) ||
      !analyzer.can_prove_equal(s.state.shape()[0], first.state.shape()[0]))
    refuse_scan("the states " + says(s.state) + " and " + says(first.state) + " differ in steps");
}

}  // namespace

std::vector<Tensor> scan(const std::vector<ScanState>& states, const std::string& name) {
  if (states.empty()) refuse_scan("a scan has at least one state");
  std::vector<Tensor> inputs;
  const auto reads = [&](const Tensor& tensor) {
    if (std::none_of(inputs.begin(), inputs.end(), [&](const Tensor& t) { return t.buffer == tensor.buffer; }))
      inputs.push_back(tensor);
  };
  std::vector<std::pair<std::vector<Expr>, ir::DType>> outputs;
  for (const ScanState& s : states) {
    check_shapes(s, states[0]);
    reads(s.init);
    for (const Tensor& input : s.update.op->inputs) {
      const bool is_state = std::any_of(states.begin(), states.end(),
                                        [&](const ScanState& other) { return other.state.buffer == input.buffer; });
      if (!is_state && depends_on(input, states))
        refuse_scan("the update '" + s.update.buffer->name + "' reads '" + input.buffer->name +
                    "', which is computed from a state: a scan takes updates of one tensor each");
      if (!is_state) reads(input);
    }
    outputs.emplace_back(s.state.shape(), s.state.dtype());
  }
  return extern_op(
      outputs, inputs,
      [&](const std::vector<Buffer>&, const std::vector<Buffer>& made) {
        return ScanBody(states, made, name).statement();
      },
      name);
}

}  // namespace lathe::te
