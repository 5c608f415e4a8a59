// Losses by class: NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "ops/build.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

// -weights[t] * scores[n, t, rest] for the class t of each element; 0 where t is to be ignored. Reduced to the sum or
// to the mean by weight, unless the reduction is "none". Scores are [N, C, rest], classes [N, rest].
Expr likelihood_loss(NodeImport& c, const Expr& scores, const Expr& classes, const Expr& weights) {
  const std::string reduction = c.attributes.word("reduction", {"mean", "sum", "none"});
  std::optional<int64_t> ignored;
  if (c.attributes.has("ignore_index")) ignored = c.attributes.integer("ignore_index");
  const Shape &own = build::shape_of(scores), &shape = build::shape_of(classes);
  if (own.size() < 2 || shape.size() + 1 != own.size())
    c.fail(codes::wrong_shape, "the classes " + relax::text_of(shape) + " do not fit scores of " + relax::text_of(own));
  for (size_t d = 0; d < shape.size(); ++d) build::expect_equal(c.builder(), shape[d], own[d == 0 ? 0 : d + 1]);
  c.expect_elements(1, {ir::int64(0)}, {own[1]}, relax::Message() << c.name_of(0) << " scores classes", ignored);
  if (weights) {
    if (c.rank(2) != 1) c.fail(codes::wrong_shape, "the weights of the classes are not a vector");
    build::expect_equal(c.builder(), c.shape(2)[0], own[1]);
  }
  const auto [loss, weight] = build::class_loss(c.builder(), scores, classes, weights, ignored);
  if (reduction == "none") return loss;
  const auto all = ir::make<ops::ReduceAttributes>(std::optional<std::vector<int64_t>>(), false);
  const Expr total = c.call(ops::sum, {loss}, all);
  return reduction == "sum" ? total : c.call(ops::divide, {total, c.call(ops::sum, {weight}, all)});
}

void negative_log_likelihood(NodeImport& c) {
  c.set(likelihood_loss(c, c.input(0), c.input(1), c.has(2) ? c.input(2) : Expr{}));
}

void softmax_cross_entropy(NodeImport& c) {
  if (c.rank(0) < 2) c.fail(codes::wrong_node, "the scores need batch and classes");
  const Expr logarithms = c.call(ops::log_softmax, {c.input(0)}, ir::make<ops::SoftmaxAttributes>(int64_t{1}));
  c.set(0, likelihood_loss(c, logarithms, c.input(1), c.has(2) ? c.input(2) : Expr{}));
  if (c.wants(1)) c.set(1, logarithms);
}

const OperatorRow loss_rows[] = {
    {"NegativeLogLikelihoodLoss", {12, 13, 22}, 2, 3, 1, negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", {12, 13}, 2, 3, 2, softmax_cross_entropy},
};

}  // namespace

Table loss() { return loss_rows; }

}  // namespace lathe::onnx::operators
