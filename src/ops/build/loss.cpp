// Losses by class.
#include "ops/build.h"

namespace lathe::ops::build {

ClassLoss class_loss(BlockBuilder& b, const Value& scores, const Value& classes, const Value& weights,
                     const std::optional<int64_t>& ignored) {
  const Expr count = shape_of(scores)[1];
  const Shape shape = shape_of(classes);
  const DType dtype = dtype_of(scores);
  const Expr zero = ir::constant(dtype, 0);
  const auto counts = [&](const Expr& of) {
    return ignored ? ir::ne(ir::cast(DType::int64(), of), ir::int64(*ignored)) : ir::boolean(true);
  };
  const auto weigh = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const Indices& i) {
          const Expr of = in[0](i);
          const Expr weight = in.size() > 1 ? in[1]({index_into(of, count)}) : ir::constant(dtype, 1);
          return ir::select(counts(of), weight, zero);
        },
        in, "class_weight")};
  };
  std::vector<Value> args{classes};
  if (weights) args.push_back(weights);
  const Value weight = b.call_te("class_weight", std::move(args), weigh).value_or_throw();
  const auto lose = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const Indices& i) {
          const Expr of = in[1](i);
          Indices at = i;
          at.insert(at.begin() + 1, index_into(of, count));
          return ir::select(counts(of), zero - in[0](std::move(at)) * in[2](i), zero);
        },
        in, "class_loss")};
  };
  return {b.call_te("class_loss", {scores, classes, weight}, lose).value_or_throw(), weight};
}

}  // namespace lathe::ops::build
