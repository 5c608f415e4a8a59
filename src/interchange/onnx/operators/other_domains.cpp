// Operators of ONNX's other domains: steps of training (ai.onnx.preview.training), classical models (ai.onnx.ml).
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "ops/build.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

double required_number(NodeImport& c, std::string_view name) {
  if (!c.attributes.has(name)) c.fail(codes::wrong_attribute, "the attribute '" + std::string(name) + "' is missing");
  return c.attributes.number(name, 0);
}

// Inputs: the rate, the step's number, then lists of equal length: weights, gradients, one or two moments. The outputs
// are the same lists without the gradients. `update` gives the new element of each from the old ones.
using Update = std::function<std::vector<ir::Expr>(const ir::Expr& rate, const ir::Expr& step, const ir::Expr& weight,
                                                   const ir::Expr& gradient, const std::vector<ir::Expr>& moments)>;

void optimize(NodeImport& c, size_t moments, const Update& update) {
  const size_t lists = 2 + moments, count = (c.input_count() - 2) / lists;
  if (c.input_count() != 2 + count * lists || c.output_count() != count * (1 + moments))
    c.fail(codes::wrong_node, std::to_string(c.input_count() - 2) + " inputs and " + std::to_string(c.output_count()) +
                                  " outputs are not lists of weights, gradients and moments of one length");
  auto& b = c.builder();
  for (size_t k = 0; k < count; ++k) {
    std::vector<Expr> operands{c.input(0), c.input(1)};
    const Shape shape = c.shape(2 + k);
    const DType dtype = c.dtype(2 + k);
    for (size_t list = 0; list < lists; ++list) {
      const size_t i = 2 + list * count + k;
      if (c.dtype(i) != dtype || c.rank(i) != static_cast<int64_t>(shape.size()))
        c.fail(codes::wrong_node, "the input " + std::to_string(i) + " is not of the type and rank of its weights");
      for (size_t d = 0; d < shape.size(); ++d) build::expect_equal(b, c.shape(i)[d], shape[d]);
      operands.push_back(c.input(i));
    }
    for (const size_t i : {0, 1}) operands[i] = c.reshape(operands[i], {});
    for (size_t out = 0; out <= moments; ++out) {
      if (!c.wants(out * count + k)) continue;
      c.set(out * count + k, build::elementwise(
                                 b, operands, shape,
                                 [&](const std::vector<ir::Expr>& x, const std::vector<ir::Expr>&) {
                                   return update(ir::cast(dtype, x[0]), x[1], x[2], x[3],
                                                 {x.begin() + 4, x.end()})[out];
                                 },
                                 "optimize"));
    }
  }
}

void momentum(NodeImport& c) {
  const double alpha = required_number(c, "alpha"), beta = required_number(c, "beta");
  const double decay = required_number(c, "norm_coefficient");
  const bool nesterov = c.attributes.word("mode", {"standard", "nesterov"}) == "nesterov";
  optimize(c, 1,
           [&](const auto& rate, const auto& step, const auto& weight, const auto& gradient, const auto& moments) {
             const DType dtype = weight->dtype;
             const auto number = [&](double value) { return ir::constant(dtype, value); };
             const ir::Expr slope = number(decay) * weight + gradient;
             const ir::Expr share = ir::select(step > 0, number(beta), number(1));
             const ir::Expr velocity = number(alpha) * moments[0] + share * slope;
             const ir::Expr direction = nesterov ? slope + number(alpha) * velocity : velocity;
             return std::vector<ir::Expr>{weight - rate * direction, velocity};
           });
}

void adagrad(NodeImport& c) {
  const double decay = c.attributes.number("norm_coefficient", 0), epsilon = c.attributes.number("epsilon", 1e-6f);
  const double slowing = c.attributes.number("decay_factor", 0);
  optimize(c, 1,
           [&](const auto& rate, const auto& step, const auto& weight, const auto& gradient, const auto& moments) {
             const DType dtype = weight->dtype;
             const auto number = [&](double value) { return ir::constant(dtype, value); };
             const ir::Expr now = ir::div(rate, number(1) + ir::cast(dtype, step) * number(slowing));
             const ir::Expr slope = number(decay) * weight + gradient, squares = moments[0] + slope * slope;
             const ir::Expr root = ir::call(ir::intrinsic::sqrt, squares) + number(epsilon);
             return std::vector<ir::Expr>{weight - ir::div(now * slope, root), squares};
           });
}

void adam(NodeImport& c) {
  const double alpha = c.attributes.number("alpha", 0.9f), beta = c.attributes.number("beta", 0.999f);
  const double decay = c.attributes.number("norm_coefficient", 0), epsilon = c.attributes.number("epsilon", 1e-6f);
  const double after = c.attributes.number("norm_coefficient_post", 0);
  optimize(
      c, 2, [&](const auto& rate, const auto& step, const auto& weight, const auto& gradient, const auto& moments) {
        const DType dtype = weight->dtype, wide = DType::float_(64);
        const auto number = [&](double value) { return ir::constant(dtype, value); };
        const ir::Expr slope = number(decay) * weight + gradient;
        const ir::Expr first = number(alpha) * moments[0] + number(1 - alpha) * slope;
        const ir::Expr second = number(beta) * moments[1] + number(1 - beta) * slope * slope;
        // Both begin at zero, which the first steps make up for.
        const auto missing = [&](double factor) {
          const ir::Expr left = ir::call(wide, ir::intrinsic::pow, {ir::constant(wide, factor), ir::cast(wide, step)});
          return ir::constant(wide, 1.0) - left;
        };
        const ir::Expr made_up = ir::div(ir::call(ir::intrinsic::sqrt, missing(beta)), missing(alpha));
        const ir::Expr now = ir::select(step > 0, rate * ir::cast(dtype, made_up), rate);
        const ir::Expr root = ir::call(ir::intrinsic::sqrt, second) + number(epsilon);
        const ir::Expr next = weight - now * ir::div(first, root);
        return std::vector<ir::Expr>{number(1 - after) * next, first, second};
      });
}

// Columns of the last dimension, in the order of the indices; a vector is one row.
void array_feature_extractor(NodeImport& c) {
  const int64_t rank = c.rank(0);
  if (rank < 1) c.fail(codes::wrong_node, "a scalar has no features");
  c.expect_indices(1, {c.shape(0).back()}, "the last axis");
  const Expr indices = c.reshape(c.input(1), {relax::simplified(ir::product(c.shape(1)))});
  Expr x = c.input(0);
  if (rank == 1) x = c.reshape(x, {ir::int64(1), c.shape(0)[0]});
  c.set(c.call(ops::take, {x, indices}, ir::make<ops::AxisAttributes>(std::max<int64_t>(rank, 2) - 1)));
}

void binarizer(NodeImport& c) {
  const double threshold = c.attributes.number("threshold", 0);
  const DType dtype = c.dtype(0), wide = dtype.is_floating() ? dtype : DType::float_(64);
  c.set(build::elementwise(
      c.builder(), {c.input(0)}, c.shape(0),
      [&](const std::vector<ir::Expr>& x, const std::vector<ir::Expr>&) {
        return ir::cast(dtype, ir::cast(wide, x[0]) > ir::constant(wide, threshold));
      },
      "binarizer"));
}

constexpr std::string_view training = "ai.onnx.preview.training", classical = "ai.onnx.ml";

const OperatorRow other_domains_rows[] = {
    {"Momentum", {1}, 5, any_number, any_number, momentum, nullptr, training},
    {"Adagrad", {1}, 5, any_number, any_number, adagrad, nullptr, training},
    {"Adam", {1}, 6, any_number, any_number, adam, nullptr, training},
    {"ArrayFeatureExtractor", {1}, 2, 2, 1, array_feature_extractor, nullptr, classical},
    {"Binarizer", {1}, 1, 1, 1, binarizer, nullptr, classical},
};

}  // namespace

Table other_domains() { return other_domains_rows; }

}  // namespace lathe::onnx::operators
