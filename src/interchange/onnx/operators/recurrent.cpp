// RNN, GRU and LSTM: the input's product for all steps at once, then a recurrent cell for each direction.
#include "ops/build/recurrent.h"

#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

using build::CellKind;

// ---- activations ----

// An activation's formula; alpha and beta where it has them.
struct CellActivation {
  std::string_view name;  // in small letters
  ir::Expr (*apply)(const ir::Expr& x, double alpha, double beta);
  std::optional<double> alpha, beta;  // by default
  bool takes_alpha = false, takes_beta = false;
};

ir::Expr number_like(const ir::Expr& x, double value) { return ir::constant(x->dtype, value); }
ir::Expr exp_less_one(const ir::Expr& x) { return ir::call(ir::intrinsic::exp, x) - number_like(x, 1); }

const CellActivation cell_activations[] = {
    {"relu", [](const ir::Expr& x, double, double) { return ir::max(x, number_like(x, 0)); }, {}, {}},
    {"tanh", [](const ir::Expr& x, double, double) { return ir::call(ir::intrinsic::tanh, x); }, {}, {}},
    {"sigmoid", [](const ir::Expr& x, double, double) { return ir::call(ir::intrinsic::sigmoid, x); }, {}, {}},
    {"affine",
     [](const ir::Expr& x, double alpha, double beta) { return number_like(x, alpha) * x + number_like(x, beta); },
     {},
     {},
     true,
     true},
    {"leakyrelu",
     [](const ir::Expr& x, double alpha, double) {
       return ir::select(x < number_like(x, 0), number_like(x, alpha) * x, x);
     },
     0.01f,
     {},
     true},
    {"thresholdedrelu",
     [](const ir::Expr& x, double alpha, double) {
       return ir::select(x >= number_like(x, alpha), x, number_like(x, 0));
     },
     1.0,
     {},
     true},
    {"scaledtanh",
     [](const ir::Expr& x, double alpha, double beta) {
       return number_like(x, alpha) * ir::call(ir::intrinsic::tanh, number_like(x, beta) * x);
     },
     {},
     {},
     true,
     true},
    {"hardsigmoid",
     [](const ir::Expr& x, double alpha, double beta) {
       return ir::max(number_like(x, 0), ir::min(number_like(x, 1), number_like(x, alpha) * x + number_like(x, beta)));
     },
     0.2f, 0.5, true, true},
    {"elu",
     [](const ir::Expr& x, double alpha, double) {
       return ir::select(x < number_like(x, 0), number_like(x, alpha) * exp_less_one(x), x);
     },
     1.0,
     {},
     true},
    {"softsign",
     [](const ir::Expr& x, double, double) { return ir::div(x, number_like(x, 1) + ir::call(ir::intrinsic::abs, x)); },
     {},
     {}},
    {"softplus",
     [](const ir::Expr& x, double, double) {
       const ir::Expr magnitude = ir::call(ir::intrinsic::abs, x);
       const ir::Expr tail = ir::call(ir::intrinsic::exp, number_like(x, 0) - magnitude);
       return ir::max(x, number_like(x, 0)) + ir::call(ir::intrinsic::log1p, tail);
     },
     {},
     {}},
};

std::string in_small_letters(std::string text) {
  for (char& letter : text)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return text;
}

// The functions of every direction one after the other. Alphas and betas are given for those that take one, in order.
std::vector<build::CellFunction> cell_functions(NodeImport& c, const std::vector<std::string>& otherwise,
                                                size_t directions) {
  std::vector<std::string> names;
  if (const auto given = c.attributes.texts("activations")) names = *given;
  const std::vector<float> alphas = c.attributes.numbers("activation_alpha").value_or(std::vector<float>());
  const std::vector<float> betas = c.attributes.numbers("activation_beta").value_or(std::vector<float>());
  if (names.empty())
    for (size_t d = 0; d < directions; ++d) names.insert(names.end(), otherwise.begin(), otherwise.end());
  if (names.size() != directions * otherwise.size())
    c.fail(codes::wrong_attribute, "the attribute 'activations' has " + std::to_string(names.size()) + " names, but " +
                                       std::to_string(directions * otherwise.size()) + " are needed");
  size_t next_alpha = 0, next_beta = 0;
  std::vector<build::CellFunction> functions;
  for (const std::string& name : names) {
    const auto* const row = std::find_if(std::begin(cell_activations), std::end(cell_activations),
                                         [&](const CellActivation& r) { return r.name == in_small_letters(name); });
    if (row == std::end(cell_activations))
      c.fail(codes::wrong_attribute, "the activation '" + name + "' is not one of a recurrent cell");
    const auto number_for = [&](bool takes, const std::vector<float>& given, size_t& next,
                                const std::optional<double>& by_default, const char* what) {
      if (!takes) return 0.0;
      if (next < given.size()) return static_cast<double>(given[next++]);
      if (!by_default)
        c.fail(codes::wrong_attribute,
               "the activation '" + name + "' needs a number in the attribute '" + std::string(what) + "'");
      return *by_default;
    };
    const double alpha = number_for(row->takes_alpha, alphas, next_alpha, row->alpha, "activation_alpha");
    const double beta = number_for(row->takes_beta, betas, next_beta, row->beta, "activation_beta");
    functions.emplace_back([row, alpha, beta](const ir::Expr& x) { return row->apply(x, alpha, beta); });
  }
  return functions;
}

// ---- operands ----

// One node: sizes, and its operands direction by direction.
struct RecurrentNode {
  NodeImport& c;
  CellKind kind;
  int64_t gates, directions, hidden;
  DType wide;          // what is computed in
  bool batch_first;    // layout 1
  bool linear_before;  // of a gru

  Shape steps_batch;  // T and B

  // Part `d` of a weight [directions, rows…], without the first dimension; null where the input is absent.
  Expr part(size_t i, int64_t d) const {
    if (!c.has(i)) return {};
    const Shape shape = c.shape(i);
    const Shape rest(shape.begin() + 1, shape.end());
    Expr x = c.cast(c.input(i), wide);
    if (directions > 1) {
      auto split = attributes_with<ops::SplitAttributes>([&](ops::SplitAttributes& a) {
        a.axis = 0;
        a.sections = directions;
      });
      x = c.builder().tuple_item(c.call(ops::split, {x}, std::move(split)), d);
    }
    return c.reshape(x, rest);
  }

  Expr transposed(const Expr& x, std::vector<int64_t> axes) const {
    return c.call(ops::permute_dims, {x}, ir::make<ops::PermuteDimsAttributes>(std::optional(std::move(axes))));
  }

  // The state before the first step, [B, H] of direction d: zeros where none is given.
  Expr state(size_t i, int64_t d) const {
    const Shape shape{steps_batch[1], ir::int64(hidden)};
    if (!c.has(i)) return c.call(ops::broadcast_to, {c.scalar(wide, 0), ir::make<relax::ShapeExpr>(shape)});
    Expr x = c.cast(c.input(i), wide);
    if (batch_first) x = transposed(x, {1, 0, 2});
    if (directions == 1) return c.reshape(x, shape);
    auto split = attributes_with<ops::SplitAttributes>([&](ops::SplitAttributes& a) {
      a.axis = 0;
      a.sections = directions;
    });
    return c.reshape(c.builder().tuple_item(c.call(ops::split, {x}, std::move(split)), d), shape);
  }

  // The biases of input and recurrence added, [gates * hidden]; that of the recurrence's hidden gate is left out
  // where the reset gate comes between.
  Expr bias(const Expr& both) const {
    const int64_t count = gates * hidden;
    const int64_t added = linear_before ? count - hidden : count;
    const auto make = [&](const std::vector<te::Tensor>& in) {
      return std::vector{te::compute(
          {ir::int64(count)},
          [&](const std::vector<ir::Expr>& i) {
            const ir::Expr own = in[0]({i[0]}), other = in[0]({i[0] + count});
            return added == count ? own + other : ir::select(i[0] < added, own + other, own);
          },
          in, "recurrent_bias")};
    };
    return c.builder().call_te("recurrent_bias", {both}, make).value_or_throw();
  }

  Expr hidden_bias(const Expr& both) const {
    const int64_t first = (2 * gates - 1) * hidden;
    const auto make = [&](const std::vector<te::Tensor>& in) {
      return std::vector{te::compute(
          {ir::int64(hidden)}, [&](const std::vector<ir::Expr>& i) { return in[0]({i[0] + first}); }, in,
          "hidden_bias")};
    };
    return c.builder().call_te("hidden_bias", {both}, make).value_or_throw();
  }

  void check(size_t i, const std::vector<ir::Expr>& wanted, const char* what) const {
    if (!c.has(i)) return;
    const Shape& own = c.shape(i);
    const auto refuse = [&] {
      c.fail(codes::wrong_shape,
             std::string(what) + " is " + relax::text_of(own) + ", but " + relax::text_of(wanted) + " is needed");
    };
    if (own.size() != wanted.size()) refuse();
    for (size_t d = 0; d < own.size(); ++d)
      if (relax::different_extents(own[d], wanted[d])) refuse();
    for (size_t d = 0; d < own.size(); ++d) build::expect_equal(c.builder(), own[d], wanted[d]);
  }
};

int64_t known_hidden_size(NodeImport& c) {
  const int64_t given = c.attributes.integer("hidden_size", 0);
  if (c.rank(2) != 3)
    c.fail(codes::wrong_node,
           "the weights of the recurrence have " + std::to_string(c.rank(2)) + " dimensions, but 3 are needed");
  const auto from_weights = ir::as_int(c.shape(2)[2]);
  if (given < 1 && !from_weights)
    c.fail(codes::not_constant, "the size of the state must be known when compiling, or the attribute 'hidden_size'");
  const int64_t size = given < 1 ? *from_weights : given;
  if (size < 1) c.fail(codes::wrong_shape, "the state has no elements");
  return size;
}

// Stacks one tensor a direction along a new axis.
Expr stacked(NodeImport& c, const std::vector<Expr>& parts, int64_t axis) {
  std::vector<Expr> items;
  for (const Expr& part : parts) {
    Shape shape = build::shape_of(part);
    shape.insert(shape.begin() + axis, ir::int64(1));
    items.push_back(c.reshape(part, std::move(shape)));
  }
  if (items.size() == 1) return items[0];
  return c.call(ops::concat, std::move(items), ir::make<ops::AxisAttributes>(axis));
}

template <CellKind kind>
void recurrent(NodeImport& c) {
  const std::string direction = c.attributes.word("direction", {"forward", "reverse", "bidirectional"});
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const int64_t gates = kind == CellKind::rnn ? 1 : kind == CellKind::gru ? 3 : 4;
  RecurrentNode node{.c = c,
                     .kind = kind,
                     .gates = gates,
                     .directions = directions,
                     .hidden = known_hidden_size(c),
                     .wide = relax::accumulation_dtype(c.dtype(0)),
                     .batch_first = c.attributes.flag("layout", false),
                     .linear_before = kind == CellKind::gru && c.attributes.flag("linear_before_reset", false),
                     .steps_batch = {}};
  build::RecurrentCell how{.kind = kind, .functions = {}, .linear_before_reset = node.linear_before};
  if (kind == CellKind::lstm) how.couples_forget = c.attributes.flag("input_forget", false);
  if (c.version < 7) c.attributes.ignore("output_sequence");
  how.clip = c.attributes.number("clip", 0);
  if (how.clip < 0) c.fail(codes::wrong_attribute, "the attribute 'clip' is negative");
  const std::vector<std::string> otherwise = kind == CellKind::rnn ? std::vector<std::string>{"tanh"}
                                             : kind == CellKind::gru
                                                 ? std::vector<std::string>{"sigmoid", "tanh"}
                                                 : std::vector<std::string>{"sigmoid", "tanh", "tanh"};
  const auto functions = cell_functions(c, otherwise, static_cast<size_t>(directions));

  if (c.rank(0) != 3)
    c.fail(codes::wrong_node,
           "the input has " + std::to_string(c.rank(0)) + " dimensions, but a sequence of batches has 3");
  const Shape given = c.shape(0);
  node.steps_batch = node.batch_first ? Shape{given[1], given[0]} : Shape{given[0], given[1]};
  const ir::Expr batch = node.steps_batch[1], every = ir::int64(directions), size = ir::int64(node.hidden);
  const ir::Expr rows = ir::int64(gates * node.hidden);
  node.check(1, {every, rows, given[2]}, "the weight of the input");
  node.check(2, {every, rows, size}, "the weight of the recurrence");
  node.check(3, {every, ir::int64(2 * gates * node.hidden)}, "the bias");
  node.check(4, {batch}, "the lengths of the sequences");
  if (c.has(4))
    c.expect_elements(4, {ir::int64(0)}, {relax::simplified(node.steps_batch[0] + 1)},
                      relax::Message() << c.name_of(0) << " takes lengths");
  const std::vector<ir::Expr> state = node.batch_first ? Shape{batch, every, size} : Shape{every, batch, size};
  node.check(5, state, "the first hidden state");
  node.check(6, state, "the first cell state");
  node.check(7, {every, ir::int64(3 * node.hidden)}, "the peephole weight");

  Expr x = c.cast(c.input(0), node.wide);
  if (node.batch_first) x = node.transposed(x, {1, 0, 2});
  // One product of all steps and batches, whose rows are one axis.
  const ir::Expr& steps = node.steps_batch[0];
  const ir::Expr every_row = relax::simplified(steps * batch);
  x = c.reshape(x, {every_row, given[2]});
  std::vector<Expr> all, hidden, cell;
  for (int64_t d = 0; d < directions; ++d) {
    how.reverse = direction == "reverse" || d == 1;
    const auto first = functions.begin() + d * static_cast<int64_t>(otherwise.size());
    how.functions.assign(first, first + static_cast<int64_t>(otherwise.size()));
    const Expr weights = node.transposed(node.part(1, d), {1, 0}), both = node.part(3, d);
    Expr inputs = c.call(ops::matmul, {x, weights}, ir::make<ops::MatmulAttributes>());
    if (both) inputs = c.call(ops::add, {inputs, node.bias(both)});
    inputs = c.reshape(inputs, {steps, batch, rows});
    build::RecurrentOperands operands{.inputs = inputs,
                                      .weights = node.transposed(node.part(2, d), {1, 0}),
                                      .hidden = node.state(5, d),
                                      .cell = {},
                                      .lengths = c.has(4) ? c.input(4) : Expr(),
                                      .peepholes = {},
                                      .hidden_bias = {},
                                      .knows_weights = c.value(2).is_fixed()};
    if (kind == CellKind::lstm) {
      operands.cell = node.state(6, d);
      operands.peepholes = node.part(7, d);
    }
    if (node.linear_before) {
      const Shape shape{size};
      operands.hidden_bias =
          both ? node.hidden_bias(both)
               : c.call(ops::broadcast_to, {c.scalar(node.wide, 0), ir::make<relax::ShapeExpr>(shape)});
    }
    const build::RecurrentResult result = build::recurrent(c.builder(), operands, how);
    all.push_back(result.all);
    hidden.push_back(result.hidden);
    cell.push_back(result.cell);
  }
  const DType dtype = c.dtype(0);
  if (c.wants(0)) {
    Expr y = stacked(c, all, 1);  // [T, directions, B, H]
    if (node.batch_first) y = node.transposed(y, {2, 0, 1, 3});
    c.set(0, c.cast(y, dtype));
  }
  const auto last = [&](size_t i, const std::vector<Expr>& parts) {
    if (c.wants(i)) c.set(i, c.cast(stacked(c, parts, node.batch_first ? 1 : 0), dtype));
  };
  last(1, hidden);
  if (kind == CellKind::lstm) last(2, cell);
}

const OperatorRow recurrent_rows[] = {
    {"RNN", {1, 7, 14}, 3, 6, 2, recurrent<CellKind::rnn>},
    {"GRU", {1, 7, 14}, 3, 6, 2, recurrent<CellKind::gru>},
    {"LSTM", {1, 7, 14}, 3, 8, 3, recurrent<CellKind::lstm>},
};

}  // namespace

Table recurrent() { return recurrent_rows; }

}  // namespace lathe::onnx::operators
