#include "graph/layout/twins.h"

#include "ops/attributes.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(convert_layout_swaps_axes, "graph_test", "a converted value comes back with batch and channels exchanged");

const Twin* Twins::of(const Expr& value) const {
  const auto it = value ? twins_.find(value.get()) : twins_.end();
  return it == twins_.end() ? nullptr : &it->second;
}

const Twin* Twins::latest_of(const std::vector<Expr>& operands) const {
  const Twin* latest = nullptr;
  for (const Expr& operand : operands)
    if (const Twin* twin = of(operand); twin && (!latest || twin->position > latest->position)) latest = twin;
  return latest;
}

Result<Expr> Twins::in(Emitter& emitter, const Expr& value, Form form) {
  return form == Form::rows ? rows(emitter, value) : image(emitter, value);
}

Result<Expr> Twins::image(Emitter& emitter, const Expr& value) {
  Twin& twin = twins_[value.get()];
  if (twin.image) return twin.image;
  const Shape& shape = *shape_of(value);
  if (twin.rows) {
    twin.image = TRY(reshaped(emitter, twin.rows, channels_last(shape)));
    return twin.image;
  }
  const auto to_last = make<ops::PermuteDimsAttributes>(axes_to_last(shape.size()));
  twin.image = is_pixel(shape) ? TRY(reshaped(emitter, value, channels_last(shape)))
                               : TRY(emitter.call(ops::permute_dims, {value}, to_last, "channels_last"));
  twin.position = twins_.size();  // as late as the next that is converted, for which it is turned
  return twin.image;
}

Result<Expr> Twins::rows(Emitter& emitter, const Expr& value) {
  const Expr given = TRY(image_or_rows(emitter, value));
  Twin& twin = twins_[value.get()];
  if (!twin.rows) twin.rows = TRY(reshaped(emitter, given, rows_of(*shape_of(value))));
  return twin.rows;
}

Result<Expr> Twins::image_or_rows(Emitter& emitter, const Expr& value) {
  const Twin* twin = of(value);
  if (twin && twin->rows) return twin->rows;
  return image(emitter, value);
}

Result<Expr> Twins::operand(Emitter& emitter, const Expr& value, size_t rank, Form form) {
  const Shape& shape = *shape_of(value);
  if (shape.empty()) return value;
  kept_.push_back(value);
  if (shape.size() == rank) return in(emitter, value, form);
  Expr& of_rank = widened_[value.get()];
  if (!of_rank) of_rank = TRY(reshaped(emitter, value, widened(shape, rank)));
  return in(emitter, of_rank, form);
}

void Twins::hold_image(const Var& var, const Expr& image) {
  const size_t position = twins_.size();
  twins_[var.get()] = {image, {}, Form::image, position};
}

void Twins::hold_rows(const Var& var, const Expr& rows, const Expr& image) {
  const size_t position = twins_.size();
  twins_[var.get()] = {image, rows, Form::rows, position};
}

Result<Expr> Twins::converted(Emitter& emitter, const Var& var, const Expr& value, Form form) {
  const Expr held = emitter.emit(value, var->name + "_last");
  if (form == Form::rows)
    hold_rows(var, held);
  else
    hold_image(var, held);
  const Shape& shape = *shape_of(var);
  if (is_pixel(shape)) return make_call(ops::reshape, {held, make<ShapeExpr>(shape)});
  std::vector<int64_t> axes = axes_to_first(shape.size());
  if (support::flip(convert_layout_swaps_axes)) std::swap(axes[0], axes[1]);
  return make_call(ops::permute_dims, {TRY(image(emitter, var))}, make<ops::PermuteDimsAttributes>(axes));
}

}  // namespace lathe::graph
