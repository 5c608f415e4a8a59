// Normalisation and softmax.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "ops/build.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

// running * momentum + now * (1 - momentum), in the running value's type.
Expr moved(NodeImport& c, const Expr& running, const Expr& now, double momentum) {
  const DType dtype = relax::as_tensor(running)->dtype;
  const Expr kept = c.call(ops::multiply, {running, c.scalar(dtype, momentum)});
  const Expr fresh = c.call(ops::multiply, {c.cast(now, dtype), c.scalar(dtype, 1 - momentum)});
  return c.call(ops::add, {kept, fresh});
}

// By stored statistics; in training mode by those of the batch, giving moved averages too.
void batch_normalization(NodeImport& c) {
  const double epsilon = c.attributes.number("epsilon", 1e-5f), momentum = c.attributes.number("momentum", 0.9f);
  if (c.version < 9 && c.attributes.integer("spatial", 1) != 1)
    c.fail(codes::unsupported, "BatchNormalization by element (spatial = 0) is not one that Lathe compiles");
  const bool training = c.version < 7     ? !c.attributes.flag("is_test", false)
                        : c.version >= 14 ? c.attributes.flag("training_mode", false)
                                          : false;
  if (training && c.version < 14)
    c.fail(codes::unsupported, "BatchNormalization in training mode; Lathe compiles inference");
  if (!training)
    for (size_t i = 1; i < c.output_count(); ++i)
      if (c.wants(i)) c.fail(codes::wrong_node, "BatchNormalization gives statistics in training mode only");
  const Expr x = c.input(0);
  if (c.rank(0) < 2) c.fail(codes::wrong_node, "the input of BatchNormalization needs batch and channels");
  Expr mean = c.input(3), variance = c.input(4);
  if (training) {
    std::vector<int64_t> axes{0};
    for (int64_t d = 2; d < c.rank(0); ++d) axes.push_back(d);
    const Expr batch_mean = build::mean(c.builder(), x, axes);
    const Expr batch_variance = build::variance(c.builder(), x, batch_mean, axes);
    const Shape channels{c.shape(0)[1]};
    const Expr now_mean = c.reshape(batch_mean, channels), now_variance = c.reshape(batch_variance, channels);
    if (c.wants(1)) c.set(1, moved(c, mean, now_mean, momentum));
    if (c.wants(2)) c.set(2, moved(c, variance, now_variance, momentum));
    mean = now_mean;
    variance = now_variance;
  }
  c.set(c.call(ops::batch_norm, {x, c.input(1), c.input(2), mean, variance},
               ir::make<ops::BatchNormAttributes>(int64_t{1}, epsilon)));
}

// Over the dimensions from `axis` on. The statistics are given in `stash_type`, float32 unless said otherwise.
void layer_normalization(NodeImport& c) {
  const int64_t axis = c.axis(c.attributes.integer("axis", -1), c.rank(0));
  const double epsilon = c.attributes.number("epsilon", 1e-5f);
  const DType stash =
      element_type(c.attributes.integer("stash_type", 1), "the attribute 'stash_type'", c.place()).value_or_throw();
  std::vector<int64_t> axes;
  for (int64_t d = axis; d < c.rank(0); ++d) axes.push_back(d);
  const Expr x = c.input(0);
  std::vector<Expr> args{x, c.input(1)};
  if (c.has(2)) args.push_back(c.input(2));
  c.set(c.call(ops::layer_norm, std::move(args), ir::make<ops::LayerNormAttributes>(axes, epsilon)));
  if (!c.wants(1) && !c.wants(2)) return;
  const Expr wide = c.cast(x, stash);
  const Expr mean = build::mean(c.builder(), wide, axes);
  if (c.wants(1)) c.set(1, mean);
  if (c.wants(2)) {
    const Expr variance = build::variance(c.builder(), wide, mean, axes);
    const Expr spread = c.call(ops::sqrt, {c.call(ops::add, {variance, c.scalar(stash, epsilon)})});
    c.set(2, c.call(ops::divide, {c.scalar(stash, 1), spread}));
  }
}

// Along one axis; before opset 13 over all dimensions from the axis on, as one.
template <const relax::Operator& op>
void softmax(NodeImport& c) {
  const int64_t rank = c.rank(0);
  const Expr x = c.input(0);
  if (c.version >= 13) {
    const int64_t axis = c.axis(c.attributes.integer("axis", -1), rank);
    c.set(c.call(op, {x}, ir::make<ops::SoftmaxAttributes>(axis)));
    return;
  }
  // The axis may be the rank: then each row has one element.
  const int64_t given = c.attributes.integer("axis", 1);
  if (given < -rank || given > rank) c.axis(given, rank);
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis == rank - 1) {
    c.set(c.call(op, {x}, ir::make<ops::SoftmaxAttributes>(axis)));
    return;
  }
  const Shape shape = c.shape(0);
  const Shape outer(shape.begin(), shape.begin() + axis), inner(shape.begin() + axis, shape.end());
  const Expr flat = c.reshape(x, {relax::simplified(ir::product(outer)), relax::simplified(ir::product(inner))});
  c.set(c.reshape(c.call(op, {flat}, ir::make<ops::SoftmaxAttributes>(int64_t{1})), shape));
}

const OperatorRow normalize_rows[] = {
    {"BatchNormalization", {6, 7, 9, 14, 15}, 5, 5, 5, batch_normalization},
    {"LayerNormalization", {17}, 2, 3, 3, layer_normalization},
    {"Softmax", {1, 11, 13}, 1, 1, 1, softmax<ops::softmax>},
    {"LogSoftmax", {1, 11, 13}, 1, 1, 1, softmax<ops::log_softmax>},
};

}  // namespace

Table normalize() { return normalize_rows; }

}  // namespace lathe::onnx::operators
