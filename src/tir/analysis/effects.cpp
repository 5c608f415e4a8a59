#include "tir/analysis/effects.h"

#include "ir/visit.h"

namespace lathe::tir {
namespace {

// Whether the quotient of integers by `divisor` always exists.
bool divides(const Expr& divisor) {
  const auto value = as_int(divisor);
  return !divisor->dtype.is_integer() || (value && *value != 0);
}

bool may_fail(const Call& call) {
  // Of functions from elsewhere nothing is known; an integer to a negative power divides.
  return call.op == &intrinsic::call_pure_extern || call.op == &intrinsic::call_llvm_pure_intrin ||
         (call.op == &intrinsic::pow && !call.dtype.is_floating());
}

}  // namespace

bool is_hint(const Call& call) { return call.op == &intrinsic::prefetch; }

Effects effects_of(const NodeRef& root) {
  Effects found;
  post_order(root, [&](const NodeRef& n) {
    if (n.is<BufferLoad>()) found.reads = found.fails = true;
    if (const auto* div = n.as<Div>()) found.fails |= !divides(div->b);
    if (const auto* mod = n.as<Mod>()) found.fails |= !divides(mod->b);
    if (const auto* div = n.as<FloorDiv>()) found.fails |= !divides(div->b);
    if (const auto* mod = n.as<FloorMod>()) found.fails |= !divides(mod->b);
    const auto* call = n.as<Call>();
    if (!call) return;
    found.updates |= call->op->effect == Effect::updates;
    found.reads |= call->op->effect != Effect::pure;
    // Each one may be another value.
    found.reads |= call->op == &intrinsic::undef;
    found.fails |= call->op->effect != Effect::pure || may_fail(*call);
  });
  return found;
}

bool only_gives_a_value(const NodeRef& root) {
  bool pure = true;
  post_order(root, [&](const NodeRef& n) {
    if (const auto* call = n.as<Call>()) pure = pure && call->op->effect == Effect::pure;
  });
  return pure;
}

bool is_total(const NodeRef& root) {
  const Effects effects = effects_of(root);
  return !effects.updates && !effects.reads && !effects.fails;
}

Writes writes_of(const Stmt& s) {
  Writes found;
  post_order(s, [&](const NodeRef& n) {
    if (const auto* store = n.as<BufferStore>()) found.memory.insert(store->buffer->data.get());
    if (const auto* call = n.as<Call>())
      found.anything |= call->op->effect == Effect::updates && !is_hint(*call) && call->op != &intrinsic::assume;
  });
  return found;
}

bool reads_written(const Expr& e, const Writes& writes) {
  bool found = false;
  post_order(e, [&](const NodeRef& n) {
    if (const auto* load = n.as<BufferLoad>())
      found |= writes.anything || writes.memory.count(load->buffer->data.get()) != 0;
  });
  return found;
}

}  // namespace lathe::tir
