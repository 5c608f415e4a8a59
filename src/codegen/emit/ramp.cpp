#include "codegen/emit/ramp.h"

#include "ir/build.h"

namespace lathe::codegen {

using namespace ir;  // NOLINT

std::optional<RampOf> as_ramp(const Expr& e) {
  if (const auto* n = e.as<Ramp>()) {
    if (const auto stride = as_int(n->stride)) return RampOf{n->base, *stride};
    return std::nullopt;
  }
  if (const auto* n = e.as<Broadcast>()) {
    if (n->value->dtype.is_scalar()) return RampOf{n->value, 0};
    return std::nullopt;
  }
  if (const auto* n = e.as<Add>()) {
    const auto a = as_ramp(n->a), b = as_ramp(n->b);
    if (a && b) return RampOf{ir::add(a->base, b->base), a->stride + b->stride};
  }
  if (const auto* n = e.as<Sub>()) {
    const auto a = as_ramp(n->a), b = as_ramp(n->b);
    if (a && b) return RampOf{ir::sub(a->base, b->base), a->stride - b->stride};
  }
  if (const auto* n = e.as<Mul>()) {
    const auto a = as_ramp(n->a), b = as_ramp(n->b);
    if (a && b && b->stride == 0)
      if (const auto factor = as_int(b->base)) return RampOf{ir::mul(a->base, b->base), a->stride * *factor};
  }
  return std::nullopt;
}

}  // namespace lathe::codegen
