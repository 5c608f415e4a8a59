#include "graph/layout/planes.h"

#include "ops/attributes.h"

namespace lathe::graph {

namespace {

bool has_no_extents(const Expr& operand) {
  return !operand || !as_tensor(operand) || (shape_of(operand) && shape_of(operand)->empty());
}

}  // namespace

bool fills_planes(const Shape& out, const Shape& kernel) {
  const auto pixels = ir::as_int(pixels_of(out)), outputs = ir::as_int(kernel[0]), inputs = ir::as_int(kernel[1]);
  return pixels && outputs && inputs && *pixels >= std::max(*outputs, *inputs);
}

Result<Expr> met_pixels(Emitter& emitter, const Var& var, const Call& conv) {
  const auto& attrs = *static_cast<const ops::ConvAttributes*>(conv.attributes.get());
  const Shape& out = *shape_of(var);
  std::vector<int64_t> axes;
  std::vector<ir::Expr> begin, end;
  for (size_t d = 2; d < out.size(); ++d) {
    axes.push_back(static_cast<int64_t>(d));
    begin.push_back(ir::int64(0));
    end.push_back(ir::int64((*ir::as_int(out[d]) - 1) * attrs.strides[d - 2] + 1));
  }
  return emitter.call(ops::strided_slice, {conv.args[0], make<ShapeExpr>(begin), make<ShapeExpr>(end)},
                      make<ops::StridedSliceAttributes>(axes, attrs.strides), "pixels");
}

bool Planes::has_any(const std::vector<Expr>& operands) const {
  return std::any_of(operands.begin(), operands.end(), [&](const Expr& e) { return e && planes_.count(e.get()) > 0; });
}

Result<Expr> Planes::product(Emitter& emitter, const Var& var, const Expr& weights, const Expr& image) {
  const Shape& kernel = *shape_of(weights);
  const Expr matrix = TRY(reshaped(emitter, weights, {kernel[0], kernel[1]}));
  const Expr planes = TRY(reshaped(emitter, image, planes_of(*shape_of(image))));
  return held(emitter, var, TRY(make_call(ops::matmul, {matrix, planes})));
}

Result<Expr> Planes::elementwise(Emitter& emitter, const Var& var, const Operator& op, const Call& call) {
  const Shape& out = *shape_of(var);
  for (const Expr& operand : call.args) {
    if (has_no_extents(operand)) continue;
    const Shape* shape = shape_of(operand);
    if (!shape || shape->size() > out.size() || !spans_pixels(*shape, out)) return Expr();
  }
  std::vector<Expr> operands = call.args;
  for (Expr& operand : operands) {
    if (has_no_extents(operand)) continue;
    const auto known = planes_.find(operand.get());
    operand = known != planes_.end()
                  ? known->second
                  : TRY(reshaped(emitter, operand, planes_of(widened(*shape_of(operand), out.size()))));
  }
  return held(emitter, var, TRY(make_call(op, operands, call.attributes)));
}

// `value` is what `var` is, as [batch, channels, pixels].
Result<Expr> Planes::held(Emitter& emitter, const Var& var, const Expr& value) {
  const Expr planes = emitter.emit(value, var->name + "_planes");
  planes_[var.get()] = planes;
  return make_call(ops::reshape, {planes, make<ShapeExpr>(*shape_of(var))});
}

}  // namespace lathe::graph
