// Arithmetic on values, lane by lane.
//
// Integers wrap; in index positions they are exact (no-wrap flags). Nothing traps: x / 0 is 0 and x % 0 is x, and the
// smallest integer divided by -1 is itself, with remainder 0. Floats may contract to FMA and nothing else. Bools are 0
// and 1, and a result that is not 0 is 1.
#include "codegen/emit/ramp.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/narrow_float.h"
#include "ir/build.h"
#include "ir/visit.h"
#include "support/mutation.h"

namespace lathe::codegen {

LATHE_FAULT(llvm_far_quotients_are_near, "codegen_llvm_test",
            "a remainder of a large quotient is computed as of small");

using namespace ir;  // NOLINT

KernelEmitter::V KernelEmitter::add(DType t, V a, V b) {
  if (is_narrow(t)) return in_single(t, [&](auto x) { return add(computed_as(t), x[0], x[1]); }, {a, b});
  if (t.is_floating()) return builder_.CreateFAdd(a, b);
  if (t.is_handle()) return builder_.CreateGEP(builder_.getInt8Ty(), a, b);
  if (t.is_bool()) return builder_.CreateOr(a, b);  // what is not zero is true, as in NumPy
  return builder_.CreateAdd(a, b, "", false, in_index_ && t.bits == 64);
}

KernelEmitter::V KernelEmitter::sub(DType t, V a, V b) {
  if (is_narrow(t)) return in_single(t, [&](auto x) { return sub(computed_as(t), x[0], x[1]); }, {a, b});
  if (t.is_floating()) return builder_.CreateFSub(a, b);
  return builder_.CreateSub(a, b, "", false, in_index_ && t.bits == 64);
}

KernelEmitter::V KernelEmitter::mul(DType t, V a, V b) {
  if (is_narrow(t)) return in_single(t, [&](auto x) { return mul(computed_as(t), x[0], x[1]); }, {a, b});
  if (t.is_floating()) return builder_.CreateFMul(a, b);
  return builder_.CreateMul(a, b, "", false, in_index_ && t.bits == 64);
}

namespace {

// Whether the expression is known not to be negative, from what is cheap to see: divisions in indices profit.
bool known_nonnegative(const Expr& e) {
  if (const auto n = as_int(e)) return *n >= 0;
  if (e->dtype.is_uint() || e->dtype.is_bool()) return true;
  if (const auto* v = e.as<VarNode>()) return v->is_size;
  if (const auto* n = e.as<FloorMod>()) return as_int(n->b).value_or(0) > 0;
  if (const auto* n = e.as<Max>()) return known_nonnegative(n->a) || known_nonnegative(n->b);
  return false;
}

}  // namespace

KernelEmitter::V KernelEmitter::divide(const Expr& x, const Expr& y, bool floor) {
  const DType t = x->dtype;
  const V a = value(x), b = value(y);
  if (t.is_floating()) {
    const auto quotient = [&](DType u, V p, V q) -> V {
      const V result = builder_.CreateFDiv(p, q);
      if (!floor) return result;
      static_cast<void>(u);
      return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, result);
    };
    if (is_narrow(t)) return in_single(t, [&](auto w) { return quotient(computed_as(t), w[0], w[1]); }, {a, b});
    return quotient(t, a, b);
  }
  const std::optional<int64_t> divisor = as_int(y);
  const V none = zero(t);
  if (t.is_uint() || t.is_bool()) {
    if (divisor && *divisor != 0) return builder_.CreateUDiv(a, b);
    const V by_zero = builder_.CreateICmpEQ(b, none);
    const V safe = builder_.CreateSelect(by_zero, llvm::ConstantInt::get(b->getType(), 1), b);
    return builder_.CreateSelect(by_zero, none, builder_.CreateUDiv(a, safe));
  }
  if (divisor && *divisor > 0) {
    if (!floor) return builder_.CreateSDiv(a, b);
    if (std::has_single_bit(static_cast<uint64_t>(*divisor)))
      return builder_.CreateAShr(
          a, llvm::ConstantInt::get(a->getType(),
                                    static_cast<uint64_t>(std::countr_zero(static_cast<uint64_t>(*divisor)))));
    if (known_nonnegative(x)) return builder_.CreateSDiv(a, b);
    const V quotient = builder_.CreateSDiv(a, b);
    const V rest = builder_.CreateSub(a, builder_.CreateMul(quotient, b));
    return builder_.CreateAdd(quotient, builder_.CreateSExt(builder_.CreateICmpSLT(rest, none), a->getType()));
  }
  const V by_zero = builder_.CreateICmpEQ(b, none);
  const V smallest = llvm::ConstantInt::get(a->getType(), llvm::APInt::getSignedMinValue(t.bits));
  const V overflow = builder_.CreateAnd(builder_.CreateICmpEQ(a, smallest),
                                        builder_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(b->getType())));
  const V one = llvm::ConstantInt::get(b->getType(), 1);
  const V safe = builder_.CreateSelect(builder_.CreateOr(by_zero, overflow), one, b);
  V quotient = builder_.CreateSDiv(a, safe);
  if (floor) {
    const V rest = builder_.CreateSub(a, builder_.CreateMul(quotient, safe));
    const V differ = builder_.CreateICmpSLT(builder_.CreateXor(rest, safe), none);
    const V down = builder_.CreateAnd(builder_.CreateICmpNE(rest, none), differ);
    quotient = builder_.CreateAdd(quotient, builder_.CreateSExt(down, a->getType()));
  }
  return builder_.CreateSelect(by_zero, none, quotient);
}

KernelEmitter::V KernelEmitter::remainder(const Expr& x, const Expr& y, bool floor) {
  const DType t = x->dtype;
  const V a = value(x), b = value(y);
  if (t.is_floating()) {
    if (is_narrow(t))
      return in_single(t, [&](auto w) { return float_remainder(computed_as(t), w[0], w[1], floor); }, {a, b});
    return float_remainder(t, a, b, floor);
  }
  const std::optional<int64_t> divisor = as_int(y);
  const V none = zero(t);
  if (t.is_uint() || t.is_bool()) {
    if (divisor && *divisor != 0) return builder_.CreateURem(a, b);
    const V by_zero = builder_.CreateICmpEQ(b, none);
    const V safe = builder_.CreateSelect(by_zero, llvm::ConstantInt::get(b->getType(), 1), b);
    return builder_.CreateSelect(by_zero, a, builder_.CreateURem(a, safe));
  }
  if (divisor && *divisor > 0) {
    if (floor && std::has_single_bit(static_cast<uint64_t>(*divisor)))
      return builder_.CreateAnd(a, llvm::ConstantInt::get(a->getType(), static_cast<uint64_t>(*divisor - 1)));
    const V rest = builder_.CreateSRem(a, b);
    if (!floor || known_nonnegative(x)) return rest;
    return builder_.CreateAdd(rest, builder_.CreateSelect(builder_.CreateICmpSLT(rest, none), b, none));
  }
  const V by_zero = builder_.CreateICmpEQ(b, none);
  const V minus_one = builder_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(b->getType()));
  const V safe =
      builder_.CreateSelect(builder_.CreateOr(by_zero, minus_one), llvm::ConstantInt::get(b->getType(), 1), b);
  V rest = builder_.CreateSRem(a, safe);
  if (floor) {
    const V differ = builder_.CreateICmpSLT(builder_.CreateXor(rest, safe), none);
    const V add = builder_.CreateAnd(builder_.CreateICmpNE(rest, none), differ);
    rest = builder_.CreateAdd(rest, builder_.CreateSelect(add, safe, none));
  }
  return builder_.CreateSelect(by_zero, a, rest);
}

KernelEmitter::V KernelEmitter::remainder_of_each(V a, V b) {
  llvm::Function* fmod = remainder_function(module_);
  if (!a->getType()->isVectorTy()) return builder_.CreateCall(fmod, {a, b});
  V rest = llvm::PoisonValue::get(a->getType());
  for (uint64_t l = 0; l < static_cast<uint64_t>(lanes_of(a)); ++l) {
    const V lane =
        builder_.CreateCall(fmod, {builder_.CreateExtractElement(a, l), builder_.CreateExtractElement(b, l)});
    rest = builder_.CreateInsertElement(rest, lane, l);
  }
  return rest;
}

// fmod is exact. Of float32 operands a quotient below 2^27, taken in float64, is cut to the right integer: one that is
// none is 2^-24 or more from the next, which is more than it is rounded by. Its product with the divisor has 51 bits.
KernelEmitter::V KernelEmitter::float_remainder(DType t, V a, V b, bool floor) {
  V rest;
  if (t.bits == 64) {
    rest = remainder_of_each(a, b);
  } else {
    const V wide_a = builder_.CreateFPExt(a, f64(t.lanes)), wide_b = builder_.CreateFPExt(b, f64(t.lanes));
    const V quotient = builder_.CreateFDiv(wide_a, wide_b);
    const auto is_below = [&](V v, double bound) {
      const V size = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v);
      return builder_.CreateFCmpOLT(size, llvm::ConstantFP::get(v->getType(), bound));
    };
    const double bound = support::flip(llvm_far_quotients_are_near) ? 0x1p31 : 0x1p27;
    V fits = builder_.CreateAnd(is_below(quotient, bound), is_below(wide_b, std::numeric_limits<double>::infinity()));
    if (fits->getType()->isVectorTy()) fits = builder_.CreateAndReduce(fits);
    const V whole = builder_.CreateSIToFP(builder_.CreateFPToSI(quotient, i(32, t.lanes)), quotient->getType());
    const V left = builder_.CreateFSub(wide_a, builder_.CreateFMul(whole, wide_b));
    // Nothing has the dividend's sign, too.
    const V near = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, left, wide_a);
    rest = builder_.CreateFPTrunc(near_or_any(fits, near, [&] { return remainder_of_each(wide_a, wide_b); }),
                                  a->getType());
  }
  if (!floor) return rest;
  const V none = llvm::Constant::getNullValue(a->getType());
  const V differ = builder_.CreateXor(builder_.CreateFCmpOLT(rest, none), builder_.CreateFCmpOLT(b, none));
  const V adjust = builder_.CreateAnd(builder_.CreateFCmpONE(rest, none), differ);
  return builder_.CreateSelect(adjust, builder_.CreateFAdd(rest, b), rest);
}

namespace {

bool is_number(const llvm::Value* v) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (constant && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* number = constant ? llvm::dyn_cast<llvm::ConstantFP>(constant) : nullptr;
  return number && !number->isNaN();
}

}  // namespace

// NaN where either is. x86 has an instruction for `b better a ? b : a`, which is `a` where one is NaN: another two put
// a NaN of `b` in, none where `b` is a constant. So a running result `a` is waited for by the first alone. Its order of
// -0 and +0 would take three more, which the flag waives; other targets have both.
KernelEmitter::V KernelEmitter::float_extremum(llvm::Intrinsic::ID ieee, V a, V b) {
  if (!llvm::Triple(module_.getTargetTriple()).isX86()) return builder_.CreateBinaryIntrinsic(ieee, a, b);
  if (is_number(a)) std::swap(a, b);
  const V best = builder_.CreateBinaryIntrinsic(ieee, b, a);
  if (auto* call = llvm::dyn_cast<llvm::CallInst>(best)) call->setHasNoSignedZeros(true);
  return best;
}

KernelEmitter::V KernelEmitter::minimum(DType t, V a, V b) {
  if (is_narrow(t)) return in_single(t, [&](auto x) { return minimum(computed_as(t), x[0], x[1]); }, {a, b});
  if (t.is_floating()) return float_extremum(llvm::Intrinsic::minimum, a, b);
  return builder_.CreateBinaryIntrinsic(t.is_int() ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a, b);
}

KernelEmitter::V KernelEmitter::maximum(DType t, V a, V b) {
  if (is_narrow(t)) return in_single(t, [&](auto x) { return maximum(computed_as(t), x[0], x[1]); }, {a, b});
  if (t.is_floating()) return float_extremum(llvm::Intrinsic::maximum, a, b);
  return builder_.CreateBinaryIntrinsic(t.is_int() ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a, b);
}

KernelEmitter::V KernelEmitter::compare(DType t, Comparison how, V a, V b) {
  using P = llvm::CmpInst::Predicate;
  if (t.is_floating()) {
    if (is_narrow(t)) a = widen(t, a), b = widen(t, b);
    static constexpr P predicates[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OLT, P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE};
    return builder_.CreateFCmp(predicates[static_cast<int>(how)], a, b);
  }
  static constexpr P with_sign[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_SLT, P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
  static constexpr P without[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_ULT, P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
  return builder_.CreateICmp((t.is_int() ? with_sign : without)[static_cast<int>(how)], a, b);
}

// Numbers of lanes, which need no 64 bits, against what is the same for all: ranges of an axis, triangles of a mask.
// Null where the two sides are no such thing. A ramp from a number that is no loop's could wrap around.
KernelEmitter::V KernelEmitter::compare_ramps(Comparison how, const Expr& a, const Expr& b) {
  constexpr int64_t largest_stride = 1 << 16, most_lanes = 1 << 12;
  const DType t = a->dtype;
  if (!t.is_int() || t.bits != 64 || !t.is_vector() || t.lanes > most_lanes) return nullptr;
  const auto x = as_ramp(a), y = as_ramp(b);
  if (!x || !y) return nullptr;
  const auto wraps = [&](const RampOf& ramp) {
    bool counts = true;
    post_order(ramp.base, [&](const NodeRef& n) {
      const auto* var = n.as<VarNode>();
      counts = counts && !n.is<BufferLoad>() && !n.is<Call>() && (!var || counters_.count(var) > 0);
    });
    return ramp.stride != 0 && (!counts || std::abs(ramp.stride) > largest_stride);
  };
  if (x->stride == y->stride || wraps(*x) || wraps(*y)) return nullptr;
  const V from = value(x->base);
  V rest = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::ssub_sat, value(y->base), from);
  rest = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, rest, builder_.getInt64(uint64_t(INT32_MIN)));
  rest = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, rest, builder_.getInt64(INT32_MAX));
  std::vector<llvm::Constant*> lanes;
  for (int64_t lane = 0; lane < t.lanes; ++lane)
    lanes.push_back(builder_.getInt32(static_cast<uint32_t>(lane * (x->stride - y->stride))));
  return compare(DType::int_(32, t.lanes), how, llvm::ConstantVector::get(lanes),
                 splat(builder_.CreateTrunc(rest, builder_.getInt32Ty()), t.lanes));
}

// Square and multiply, from the exponent's highest bit, all lanes in step. A negative exponent means 1 / x as C's
// division would have it: 0 but for x of 1 and -1 (and 0, by the rule above for division by zero).
KernelEmitter::V KernelEmitter::integer_power(DType t, V base, V exponent) {
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* loop = block("power");
  llvm::BasicBlock* after = block("powered");
  const V one = llvm::ConstantInt::get(base->getType(), 1), none = zero(t);
  builder_.CreateBr(loop);
  builder_.SetInsertPoint(loop);
  llvm::PHINode* bit = builder_.CreatePHI(builder_.getInt32Ty(), 2);
  llvm::PHINode* result = builder_.CreatePHI(base->getType(), 2);
  llvm::PHINode* square = builder_.CreatePHI(base->getType(), 2);
  llvm::PHINode* rest = builder_.CreatePHI(base->getType(), 2);
  const V odd = builder_.CreateICmpNE(builder_.CreateAnd(rest, one), none);
  const V next = builder_.CreateMul(result, builder_.CreateSelect(odd, square, one));
  const V squared = builder_.CreateMul(square, square);
  const V shifted = builder_.CreateLShr(rest, 1);
  const V count = builder_.CreateAdd(bit, builder_.getInt32(1));
  bit->addIncoming(builder_.getInt32(0), before), bit->addIncoming(count, loop);
  result->addIncoming(one, before), result->addIncoming(next, loop);
  square->addIncoming(base, before), square->addIncoming(squared, loop);
  rest->addIncoming(exponent, before), rest->addIncoming(shifted, loop);
  builder_.CreateCondBr(builder_.CreateICmpULT(count, builder_.getInt32(t.bits)), loop, after);
  builder_.SetInsertPoint(after);
  if (!t.is_int()) return next;
  const V odd_exponent = builder_.CreateICmpNE(builder_.CreateAnd(exponent, one), none);
  const V minus_one = llvm::Constant::getAllOnesValue(base->getType());
  const V of_minus_one = builder_.CreateSelect(odd_exponent, minus_one, one);
  V inverse = builder_.CreateSelect(builder_.CreateICmpEQ(base, one), one, none);
  inverse = builder_.CreateSelect(builder_.CreateICmpEQ(base, minus_one), of_minus_one, inverse);
  return builder_.CreateSelect(builder_.CreateICmpSLT(exponent, none), inverse, next);
}

}  // namespace lathe::codegen
