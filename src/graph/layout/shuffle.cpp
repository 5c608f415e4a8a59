#include "graph/layout/shuffle.h"

#include "ops/attributes.h"
#include "relax/infer.h"

namespace lathe::graph {

std::optional<Shuffle> shuffle_of(const Emitter& emitter, const Call& merging, const Shape& result) {
  const Expr inner = emitter.value_of(merging.args[0]);
  const Call* exchanging = inner ? as_call_of(inner, "permute_dims") : nullptr;
  const Expr innermost = exchanging ? emitter.value_of(exchanging->args[0]) : Expr();
  const Call* parting = innermost ? as_call_of(innermost, "reshape") : nullptr;
  if (!parting || !shape_of(parting->args[0]) || !shape_of(exchanging->args[0])) return std::nullopt;
  const Shape &source = *shape_of(parting->args[0]), &parted = *shape_of(exchanging->args[0]);
  const size_t rank = parted.size();
  if (source.size() < 3 || source.size() != result.size() || rank <= source.size()) return std::nullopt;
  // [batch, parts…, spatial…]
  const size_t pixels = source.size() - 2, parts = rank - pixels - 1;
  if (!ir::structural_equal(source[0], parted[0])) return std::nullopt;
  for (size_t d = 0; d < pixels; ++d)
    if (!ir::structural_equal(parted[1 + parts + d], source[2 + d])) return std::nullopt;
  Shuffle found{parting->args[0],
                Shape(parted.begin() + 1, parted.begin() + 1 + static_cast<ptrdiff_t>(parts)),
                {},
                std::vector<std::vector<int64_t>>(pixels)};
  // Permuted: batch, channels, and each spatial axis before what goes among its pixels.
  const std::vector<int64_t> axes = permuted_axes(*exchanging);
  if (axes[0] != 0) return std::nullopt;
  size_t spatial = 0;
  for (size_t d = 1; d < rank; ++d) {
    const auto axis = static_cast<size_t>(axes[d]);
    if (axis == 0) return std::nullopt;
    if (axis > parts) {
      if (axis != 1 + parts + spatial) return std::nullopt;
      ++spatial;
    } else {
      (spatial == 0 ? found.channels : found.among[spatial - 1]).push_back(static_cast<int64_t>(axis) - 1);
    }
  }
  // Each of these is one axis of the result.
  const auto merges = [&](ir::Expr extent, const std::vector<int64_t>& list, const ir::Expr& into) {
    for (const int64_t part : list) extent = extent * found.parts[static_cast<size_t>(part)];
    return ir::structural_equal(relax::simplified(extent), relax::simplified(into));
  };
  if (!ir::structural_equal(result[0], parted[0]) || !merges(ir::int64(1), found.channels, result[1]))
    return std::nullopt;
  for (size_t d = 0; d < pixels; ++d)
    if (!merges(source[2 + d], found.among[d], result[2 + d])) return std::nullopt;
  return found;
}

Result<Expr> shuffled(Emitter& emitter, const Expr& source_last, const Shuffle& shuffle, const Shape& result) {
  Shape parted(shape_of(source_last)->begin(), shape_of(source_last)->end() - 1);
  const auto first_part = static_cast<int64_t>(parted.size());
  parted.insert(parted.end(), shuffle.parts.begin(), shuffle.parts.end());
  std::vector<int64_t> axes{0};
  for (size_t d = 0; d < shuffle.among.size(); ++d) {
    axes.push_back(1 + static_cast<int64_t>(d));
    for (const int64_t part : shuffle.among[d]) axes.push_back(first_part + part);
  }
  for (const int64_t part : shuffle.channels) axes.push_back(first_part + part);
  const Expr parts = TRY(reshaped(emitter, source_last, std::move(parted)));
  const Expr exchanged = TRY(emitter.call(ops::permute_dims, {parts}, make<ops::PermuteDimsAttributes>(axes)));
  return make_call(ops::reshape, {exchanged, make<ShapeExpr>(channels_last(result))});
}

}  // namespace lathe::graph
