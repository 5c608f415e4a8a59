#include "ops/build/recurrent.h"

#include "ops/attributes.h"
#include "ops/operators.h"
#include "tir/analysis/regions.h"

namespace lathe::ops::build {

namespace {

using Buffers = std::vector<ir::Buffer>;

// Columns of the weights that lie side by side in a panel: each step reads all of them, and rows of many columns are
// pages apart.
constexpr int64_t panel = 32;

size_t gates_of(CellKind kind) { return kind == CellKind::rnn ? 1 : kind == CellKind::gru ? 3 : 4; }

// The blocks of one recurrence. Every product of a step is a block of its own, so that schedules treat it as any
// product; what is computed element by element stands behind it.
class RecurrentSteps {
 public:
  struct Given {
    ir::Buffer inputs, weights, hidden, cell, lengths, peepholes, hidden_bias;
  };
  struct Made {
    ir::Buffer all, hidden, cell, sums, reset, reset_sums;
  };

  RecurrentSteps(const RecurrentCell& how, Given given, Made made)
      : how_(how), given_(std::move(given)), made_(std::move(made)), step_(ir::var("step")) {
    steps_ = given_.inputs->shape[0];
    batch_ = given_.inputs->shape[1];
    size_ = made_.hidden->shape[1];
  }

  tir::Stmt statement() {
    std::vector<tir::Stmt> all{first(made_.hidden, given_.hidden, "hidden_first")};
    if (how_.kind == CellKind::lstm) all.push_back(first(made_.cell, given_.cell, "cell_first"));
    std::vector<tir::Stmt> step;
    switch (how_.kind) {
      case CellKind::rnn:
        rnn_step(step);
        break;
      case CellKind::gru:
        gru_step(step);
        break;
      case CellKind::lstm:
        lstm_step(step);
        break;
    }
    step.push_back(output());
    all.push_back(ir::make<tir::For>(step_, ir::int64(0), steps_, tir::ForKind::serial, tir::seq(std::move(step))));
    return tir::seq(std::move(all));
  }

 private:
  // The axes of a block: the step, and the element it computes.
  struct At {
    Expr step, row, column, k;
  };
  using Body = std::function<tir::Stmt(const At&)>;

  // A block over [batch, columns], over `reduced` too where `init` is given; with an axis for the step where it needs
  // to know which one it is in.
  tir::Stmt block(const std::string& name, const Expr& columns, bool knows_step, const Body& body,
                  const Body& init = {}, const Expr& reduced = {}) {
    std::vector<ir::IterVar> iters;
    std::vector<ir::Var> loops;
    Indices values;
    const auto axis = [&](const std::string& var, const Expr& extent, ir::IterType type) -> Expr {
      const bool outside = type == ir::IterType::scan;
      if (!outside) loops.push_back(ir::var(var));
      values.push_back(outside ? Expr(step_) : Expr(loops.back()));
      iters.push_back(ir::make<ir::IterVarNode>(ir::Range{ir::int64(0), extent}, ir::var("v" + var), type));
      return iters.back()->var;
    };
    At at;
    if (knows_step) at.step = axis("step", steps_, ir::IterType::scan);
    at.row = axis("row", batch_, ir::IterType::spatial);
    at.column = axis("column", columns, ir::IterType::spatial);
    if (init) at.k = axis("k", reduced, ir::IterType::reduce);
    auto made =
        ir::make<tir::Block>(iters, Buffers{}, std::vector<tir::MatchBufferRegion>{}, std::vector<tir::BufferRegion>{},
                             std::vector<tir::BufferRegion>{}, name, init ? init(at) : tir::Stmt{}, body(at));
    tir::Regions regions = tir::infer_regions(*made);
    made = ir::with(*made, [&](tir::Block& copy) {
      copy.reads = std::move(regions.reads);
      copy.writes = std::move(regions.writes);
    });
    tir::Stmt nest = ir::make<tir::BlockRealize>(values, ir::boolean(true), made);
    const size_t outer = knows_step ? 1 : 0;
    for (size_t d = loops.size(); d-- > 0;)
      nest = ir::make<tir::For>(loops[d], ir::int64(0), iters[d + outer]->dom.extent, tir::ForKind::serial,
                                std::move(nest));
    return nest;
  }

  static tir::Stmt put(const ir::Buffer& buffer, Expr value, Indices at) {
    return ir::make<tir::BufferStore>(buffer, std::move(value), std::move(at));
  }

  tir::Stmt first(const ir::Buffer& state, const ir::Buffer& from, const std::string& name) {
    return block(name, size_, false,
                 [&](const At& at) { return put(state, ir::load(from, {at.row, at.column}), {at.row, at.column}); });
  }

  // sums[row, n] = the sum over k of from[row, k] * weights[k, first + n]. The same in every step, so that no axis of
  // the block speaks of the step: schedules treat it as they do any product.
  tir::Stmt product(const std::string& name, const ir::Buffer& sums, const ir::Buffer& from, const Expr& first) {
    const auto own = [&](const At& at) { return Indices{at.row, at.column}; };
    return block(
        name, sums->shape[1], false,
        [&](const At& at) {
          return put(sums, ir::load(sums, own(at)) + ir::load(from, {at.row, at.k}) * weight(at, first), own(at));
        },
        [&](const At& at) { return put(sums, zero(), own(at)); }, size_);
  }

  Expr weight(const At& at, const Expr& first) const {
    if (given_.weights->shape.size() == 2)
      return ir::load(given_.weights, {at.k, relax::simplified(at.column + first)});
    const Expr width = ir::int64(panel);
    return ir::load(given_.weights, {relax::simplified(ir::floordiv(at.column, width) + ir::floordiv(first, width)),
                                     at.k, ir::floormod(at.column, width)});
  }

  // ---- elements ----

  Expr zero() const { return ir::constant(made_.hidden->dtype, 0); }
  Expr one() const { return ir::constant(made_.hidden->dtype, 1); }
  Expr length(const At& at) const { return ir::cast(DType::int64(), ir::load(given_.lengths, {at.row})); }
  Expr in_sequence(const At& at) const { return at.step < length(at); }
  // Which element of the sequence a step takes. Steps behind the end have their own, so that each is written once.
  Expr position(const At& at) const {
    if (!how_.reverse) return at.step;
    if (!given_.lengths) return relax::simplified(steps_ - 1 - at.step);
    return ir::select(in_sequence(at), ir::min(length(at), steps_) - 1 - at.step, at.step);
  }
  Expr gate_column(const At& at, size_t gate) const {
    return relax::simplified(at.column + size_ * static_cast<int64_t>(gate));
  }
  Expr input(const At& at, size_t gate) const {
    return ir::load(given_.inputs, {position(at), at.row, gate_column(at, gate)});
  }
  Expr sum(const At& at, size_t gate) const { return ir::load(made_.sums, {at.row, gate_column(at, gate)}); }
  Expr peephole(const At& at, size_t part, const Expr& cell) const {
    if (!given_.peepholes) return zero();
    return ir::load(given_.peepholes, {relax::simplified(at.column + size_ * static_cast<int64_t>(part))}) * cell;
  }
  Expr apply(size_t function, Expr x) const {
    if (how_.clip > 0) {
      const Expr limit = ir::constant(x->dtype, how_.clip);
      x = ir::max(ir::min(x, limit), ir::constant(x->dtype, -how_.clip));
    }
    return how_.functions.at(function)(x);
  }

  // state[row, column] = value, unless the sequence has ended.
  tir::Stmt advance(const std::string& name, const ir::Buffer& state, const std::function<Expr(const At&)>& value) {
    return block(name, size_, true, [&](const At& at) {
      const Indices own{at.row, at.column};
      Expr next = value(at);
      if (given_.lengths) next = ir::select(in_sequence(at), next, ir::load(state, own));
      return put(state, std::move(next), own);
    });
  }

  tir::Stmt output() {
    return block("output", size_, true, [&](const At& at) {
      Expr value = ir::load(made_.hidden, {at.row, at.column});
      if (given_.lengths) value = ir::select(in_sequence(at), value, zero());
      return put(made_.all, std::move(value), {position(at), at.row, at.column});
    });
  }

  // ---- kinds of cells ----

  void rnn_step(std::vector<tir::Stmt>& step) {
    step.push_back(product("sums", made_.sums, made_.hidden, ir::int64(0)));
    step.push_back(advance("hidden", made_.hidden, [&](const At& at) { return apply(0, input(at, 0) + sum(at, 0)); }));
  }

  void gru_step(std::vector<tir::Stmt>& step) {
    const auto old = [&](const At& at) { return ir::load(made_.hidden, {at.row, at.column}); };
    const auto gate = [&](const At& at, size_t g) { return apply(0, input(at, g) + sum(at, g)); };
    step.push_back(product("sums", made_.sums, made_.hidden, ir::int64(0)));
    if (!how_.linear_before_reset) {
      step.push_back(block("reset", size_, true,
                           [&](const At& at) { return put(made_.reset, gate(at, 1) * old(at), {at.row, at.column}); }));
      step.push_back(product("reset_sums", made_.reset_sums, made_.reset, size_ * 2));
    }
    step.push_back(advance("hidden", made_.hidden, [&](const At& at) {
      const Expr update = gate(at, 0);
      const Expr inner = how_.linear_before_reset
                             ? gate(at, 1) * (sum(at, 2) + ir::load(given_.hidden_bias, {at.column}))
                             : ir::load(made_.reset_sums, {at.row, at.column});
      return (one() - update) * apply(1, input(at, 2) + inner) + update * old(at);
    }));
  }

  void lstm_step(std::vector<tir::Stmt>& step) {
    step.push_back(product("sums", made_.sums, made_.hidden, ir::int64(0)));
    const auto cell = [&](const At& at) { return ir::load(made_.cell, {at.row, at.column}); };
    const auto gate = [&](const At& at, size_t g, size_t part) {
      return apply(0, input(at, g) + sum(at, g) + peephole(at, part, cell(at)));
    };
    step.push_back(advance("cell", made_.cell, [&](const At& at) {
      const Expr enters = gate(at, 0, 0);
      const Expr stays = how_.couples_forget ? one() - enters : gate(at, 2, 2);
      return stays * cell(at) + enters * apply(1, input(at, 3) + sum(at, 3));
    }));
    step.push_back(advance("hidden", made_.hidden, [&](const At& at) { return gate(at, 1, 1) * apply(2, cell(at)); }));
  }

  const RecurrentCell& how_;
  const Given given_;
  const Made made_;
  const ir::Var step_;
  Expr steps_, batch_, size_;
};

// [H, G * H] as [G * H / panel, H, panel]; as it is where the gates are no whole panels.
Value packed(BlockBuilder& b, const Value& weights) {
  const Shape& shape = shape_of(weights);
  const auto rows = ir::as_int(shape[0]), columns = ir::as_int(shape[1]);
  if (!rows || !columns || *rows % panel != 0 || *columns % panel != 0) return weights;
  const Value panels = reshape(b, weights, {shape[0], ir::int64(*columns / panel), ir::int64(panel)});
  return permuted(b, panels, {1, 0, 2});
}

}  // namespace

RecurrentResult recurrent(BlockBuilder& b, const RecurrentOperands& operands, const RecurrentCell& how) {
  const Shape& inputs = shape_of(operands.inputs);
  const DType dtype = dtype_of(operands.inputs);
  const Expr steps = inputs[0], batch = inputs[1], size = shape_of(operands.weights)[0];
  const bool is_lstm = how.kind == CellKind::lstm;
  const bool resets = how.kind == CellKind::gru && !how.linear_before_reset;
  // The hidden gate of a cell that resets first is summed later, from what was reset.
  const size_t summed = gates_of(how.kind) - (resets ? 1 : 0);

  const Value weights = operands.knows_weights ? packed(b, operands.weights) : operands.weights;
  std::vector<Value> args{operands.inputs, weights, operands.hidden};
  const auto argument = [&](const Value& value) {
    if (value) args.push_back(value);
    return value ? args.size() - 1 : 0;
  };
  const size_t cell = argument(operands.cell), lengths = argument(operands.lengths);
  const size_t peepholes = argument(operands.peepholes), bias = argument(operands.hidden_bias);

  std::vector<std::pair<Shape, DType>> outputs{{{steps, batch, size}, dtype}, {{batch, size}, dtype}};
  const size_t results = is_lstm ? 3 : 2;
  if (is_lstm) outputs.push_back({{batch, size}, dtype});
  outputs.push_back({{batch, relax::simplified(size * static_cast<int64_t>(summed))}, dtype});
  if (resets) outputs.insert(outputs.end(), 2, {{batch, size}, dtype});

  const auto build = [&](const Buffers& in, const Buffers& out) {
    const auto at = [&](size_t i) { return i ? in[i] : ir::Buffer(); };
    return RecurrentSteps(how, {in[0], in[1], in[2], at(cell), at(lengths), at(peepholes), at(bias)},
                          {out[0], out[1], is_lstm ? out[2] : ir::Buffer(), out[results],
                           resets ? out[results + 1] : ir::Buffer(), resets ? out[results + 2] : ir::Buffer()})
        .statement();
  };
  // What a step leaves for itself only is memory of the program.
  const auto tensors = [&](const std::vector<Tensor>& in) {
    std::vector<Tensor> made = te::extern_op(outputs, in, build, "recurrent");
    made.resize(results);
    return made;
  };
  const Value all = b.call_te("recurrent", std::move(args), tensors).value_or_throw();
  return {b.tuple_item(all, 0), b.tuple_item(all, 1), is_lstm ? b.tuple_item(all, 2) : Value()};
}

}  // namespace lathe::ops::build
