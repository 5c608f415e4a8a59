#include "graph/layout/conversion.h"
#include "graph/layout/shuffle.h"

namespace lathe::graph {

namespace {

// The [batch, tokens, channels] of which a value [batch, channels, tokens] is the transposition: as the layers of a
// transformer hold an image's pixels; null where it is none.
Expr tokens_of(const Emitter& emitter, const Expr& e) {
  const Expr made = emitter.value_of(e);
  const Call* exchanging = made ? as_call_of(made, "permute_dims") : nullptr;
  const bool turns = exchanging && permuted_axes(*exchanging) == std::vector<int64_t>{0, 2, 1};
  return turns ? exchanging->args[0] : Expr();
}

// Where parts of the channels go among the pixels the image has another size: turned only where that is wanted.
std::optional<Shuffle> wanted_shuffle(const Conversion& c, const Shape& result) {
  auto found = shuffle_of(c.emitter, c.call, result);
  if (!found || !c.layouts.twins.of(found->source)) return std::nullopt;
  const bool is_wanted = c.layouts.wanted.wants_last(c.var) || c.layouts.wanted.is_wanted_by_few(c.var);
  return found->moves_pixels() && !is_wanted ? std::nullopt : found;
}

// Whether a view of channels in groups takes them for the image again whose rows these are.
bool is_image_of(const Shape& rows, const Shape& result) {
  return result.size() > 2 && ir::structural_equal(result[0], rows[0]) && ir::structural_equal(result[1], rows[2]);
}

}  // namespace

// Of one pixel all orders are the same. Pixels that are taken for one axis, or for several, are so in either order.
Result<Expr> convert_view(const Conversion& c) {
  const Expr& given = c.call.args[0];
  if (!shape_of(c.value) || !shape_of(given)) return Expr();
  const Shape &result = *shape_of(c.value), &source = *shape_of(given);
  Twins& twins = c.layouts.twins;
  if (const auto shuffle = wanted_shuffle(c, result)) {
    const Expr last = TRY(c.image(shuffle->source));
    return c.converted(TRY(shuffled(c.emitter, last, *shuffle, result)), Form::image);
  }
  if (const Expr rows = c.layouts.groups.of(given))
    return is_image_of(*shape_of(rows), result) ? c.converted(rows, Form::rows) : Expr();
  if (c.has_twin() && groups_channels(source, result)) {
    c.layouts.groups.hold(c.var, TRY(c.rows(given)));
    return Expr();
  }
  if (c.has_twin() && is_pixel(source))
    return make_call(ops::reshape, {TRY(twins.image_or_rows(c.emitter, given)), make<ShapeExpr>(result)});
  if (!keeps_channels(source, result)) return Expr();
  if (c.has_twin()) {
    const Expr rows = TRY(c.rows(given));
    twins.hold_rows(c.var, rows, result.size() == 3 ? rows : Expr());
  } else if (const Expr tokens = tokens_of(c.emitter, given); tokens && result.size() > 3) {
    twins.hold_rows(c.var, tokens);
  }
  return Expr();
}

// A transposition of the model's own to what the value is already; or from channels last, which its operand is.
Result<Expr> convert_permutation(const Conversion& c) {
  const std::vector<int64_t> axes = permuted_axes(c.call);
  const size_t rank = axes.size();
  if (rank < 3) return Expr();
  const Twin* twin = c.layouts.twins.of(c.call.args[0]);
  if (twin && twin->image && axes == axes_to_last(rank)) return twin->image;
  if (axes == axes_to_first(rank) && rank > 3 && shape_of(c.var)) c.layouts.twins.hold_image(c.var, c.call.args[0]);
  return Expr();
}

}  // namespace lathe::graph
