#include "tir/register_index.h"

#include "ir/build.h"

namespace lathe::tir {

std::optional<RegisterIndex> register_index(const ir::Expr& index) {
  if (const auto constant = ir::as_int(index); constant && index->dtype.is_scalar()) return RegisterIndex{*constant};
  const auto* ramp = index.as<ir::Ramp>();
  const auto first = ramp ? ir::as_int(ramp->base) : std::nullopt;
  const auto stride = ramp ? ir::as_int(ramp->stride) : std::nullopt;
  if (!first || !stride || *stride < 1) return std::nullopt;
  return RegisterIndex{*first, ramp->lanes, *stride};
}

}  // namespace lathe::tir
