#include "codegen/emit/order.h"

#include "codegen/emit/math/expand.h"
#include "ir/visit.h"

namespace lathe::codegen {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

namespace {

// A step of a sum of products, in registers: acc = acc + a * b.
bool adds_a_product(const BufferStore& store) {
  const auto* sum = store.value.as<Add>();
  const auto* call = store.value.as<Call>();
  const bool is_step = (sum && (sum->a.as<Mul>() || sum->b.as<Mul>())) || (call && call->op == &intrinsic::fma);
  return is_step && store.buffer->scope == "register";
}

}  // namespace

bool keeps_order(const Kernel& kernel, const target::Target& target) {
  if (target.vector_registers > 16) return false;
  bool has_chains = false, has_products = false;
  pre_order(kernel.function->body, [&](const NodeRef& n) {
    if (const auto* call = n.as<Call>())
      has_chains = has_chains || (call->dtype.lanes > target.lanes(call->dtype.bits) && math::is_function(*call->op));
    if (const auto* store = n.as<BufferStore>()) has_products = has_products || adds_a_product(*store);
    return !has_products;
  });
  return has_chains && !has_products;
}

}  // namespace lathe::codegen
