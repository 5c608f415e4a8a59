// Scalar and vector expressions, one case a kind.
#include "codegen/llvm/emitter.h"
#include "ir/match.h"
#include "support/mutation.h"

namespace lathe::codegen {

LATHE_FAULT(llvm_swap_operands, "codegen_llvm_test", "a subtraction takes its operands the wrong way round");

using namespace ir;  // NOLINT

KernelEmitter::V KernelEmitter::constant_float(DType t, double x) {
  const DType e = t.element();
  llvm::Constant* scalar = nullptr;
  if (is_narrow(e))
    scalar = builder_.getIntN(e.bits, encode_float(e, x));
  else
    scalar = llvm::ConstantFP::get(scalar_type(e), x);
  return t.lanes == 1 ? scalar : llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(t.lanes), scalar);
}

KernelEmitter::V KernelEmitter::ramp(const Ramp& n) {
  const int lanes = static_cast<int>(n.lanes);
  std::vector<llvm::Constant*> steps;
  auto* t = llvm::cast<llvm::IntegerType>(scalar_type(n.base->dtype));
  for (int64_t l = 0; l < lanes; ++l) steps.push_back(llvm::ConstantInt::get(t, static_cast<uint64_t>(l), true));
  const V base = splat(value(n.base), lanes);
  const V stride = splat(value(n.stride), lanes);
  const V steps_vector = lanes == 1 ? static_cast<V>(steps[0]) : llvm::ConstantVector::get(steps);
  return builder_.CreateAdd(base, builder_.CreateMul(steps_vector, stride, "", false, in_index_), "", false, in_index_);
}

KernelEmitter::V KernelEmitter::shuffle(const Shuffle& n) {
  std::vector<V> lanes;
  for (const Expr& source : n.vectors) {
    const V v = value(source);
    for (int l = 0; l < source->dtype.lanes; ++l)
      lanes.push_back(source->dtype.is_vector() ? builder_.CreateExtractElement(v, static_cast<uint64_t>(l)) : v);
  }
  if (n.indices.size() == 1) return lanes.at(static_cast<size_t>(n.indices[0]));
  V result = llvm::PoisonValue::get(register_type(n.dtype));
  for (size_t l = 0; l < n.indices.size(); ++l)
    result = builder_.CreateInsertElement(result, lanes.at(static_cast<size_t>(n.indices[l])), l);
  return result;
}

KernelEmitter::V KernelEmitter::let(const Let& n) {
  // Lets nest in their body by the dozen in expanded functions: a loop, not recursion.
  const Let* here = &n;
  while (true) {
    frame_.values[here->var.get()] = value(here->value);
    const auto* next = here->body.as<Let>();
    if (!next) return value(here->body);
    here = next;
  }
}

KernelEmitter::V KernelEmitter::value(const Expr& e) {
  const auto compared = [&](Comparison how) {
    return [this, how](const auto& n) {
      if (const V quick = compare_ramps(how, n.a, n.b)) return quick;
      const V a = value(n.a);
      return compare(n.a->dtype, how, a, value(n.b));
    };
  };
  return match_all(
      e,
      [&](const VarNode& n) -> V {
        const auto it = frame_.values.find(&n);
        if (it != frame_.values.end()) return it->second;
        const auto storage = frame_.storages.find(&n);
        support::require(storage != frame_.storages.end() && storage->second.address, "a variable has no value");
        return storage->second.address;
      },
      [&](const IntImm& n) -> V {
        return llvm::ConstantInt::get(scalar_type(n.dtype), static_cast<uint64_t>(n.value), n.dtype.is_int());
      },
      [&](const FloatImm& n) -> V { return constant_float(n.dtype, n.value); },
      [&](const StringImm& n) -> V { return text(n.value); },
      [&](const GlobalVar&) -> V { support::unreachable("a kernel names a function"); },
      [&](const Cast& n) -> V {
        // Only 64-bit arithmetic in an index is exact: below a conversion are values, and those wrap.
        const bool outer = std::exchange(in_index_, in_index_ && n.value->dtype.element() == DType::int64());
        const V v = value(n.value);
        in_index_ = outer;
        return cast(n.value->dtype, n.dtype, v);
      },
      [&](const Add& n) -> V { return sum(n); },
      [&](const Sub& n) -> V {
        const V a = value(n.a), b = value(n.b);
        return support::flip(llvm_swap_operands) ? sub(n.dtype, b, a) : sub(n.dtype, a, b);
      },
      [&](const Mul& n) -> V { return product(n); }, [&](const Div& n) -> V { return divide(n.a, n.b, false); },
      [&](const Mod& n) -> V { return remainder(n.a, n.b, false); },
      [&](const FloorDiv& n) -> V { return divide(n.a, n.b, true); },
      [&](const FloorMod& n) -> V { return remainder(n.a, n.b, true); },
      [&](const Min& n) -> V {
        const V a = value(n.a);
        return minimum(n.dtype, a, value(n.b));
      },
      [&](const Max& n) -> V {
        const V a = value(n.a);
        return maximum(n.dtype, a, value(n.b));
      },
      [&](const EQ& n) -> V { return compared(Comparison::eq)(n); },
      [&](const NE& n) -> V { return compared(Comparison::ne)(n); },
      [&](const LT& n) -> V { return compared(Comparison::lt)(n); },
      [&](const LE& n) -> V { return compared(Comparison::le)(n); },
      [&](const GT& n) -> V { return compared(Comparison::gt)(n); },
      [&](const GE& n) -> V { return compared(Comparison::ge)(n); },
      [&](const And& n) -> V {
        const V a = value(n.a);
        return builder_.CreateAnd(a, value(n.b));
      },
      [&](const Or& n) -> V {
        const V a = value(n.a);
        return builder_.CreateOr(a, value(n.b));
      },
      [&](const Not& n) -> V { return builder_.CreateNot(value(n.a)); },
      [&](const Select& n) -> V { return select(n); }, [&](const Ramp& n) -> V { return ramp(n); },
      [&](const Broadcast& n) -> V {
        // A vector repeats: the lanes of `value`, `lanes` times over.
        if (n.value->dtype.is_scalar()) return splat(value(n.value), static_cast<int>(n.lanes));
        const V v = value(n.value);
        std::vector<int> lanes;
        for (int l = 0; l < n.dtype.lanes; ++l) lanes.push_back(l % n.value->dtype.lanes);
        return builder_.CreateShuffleVector(v, lanes);
      },
      [&](const Shuffle& n) -> V { return shuffle(n); }, [&](const Let& n) -> V { return let(n); },
      [&](const BufferLoad& n) -> V { return load(n); }, [&](const Call& n) -> V { return call(e, n); },
      [&](const Reduce&) -> V { support::unreachable("a Reduce is left in a kernel"); });
}

}  // namespace lathe::codegen
