// Conversions between dtypes. Narrow floats (16 bits and fewer) live in registers as their bits and are computed in
// float32; every rounding is to nearest even and happens once: float64 goes through a float32 rounded to odd.
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/narrow_float.h"
#include "ir/formats/float_format.h"
#include "support/mutation.h"

namespace lathe::codegen {

LATHE_FAULT(llvm_far_integers_are_near, "codegen_llvm_test", "numbers up to 2^32 count as if 32 bits held them");
LATHE_FAULT(llvm_bfloat_round_half_up, "codegen_llvm_test", "bfloat16 rounds ties down instead of to even");

using namespace ir;  // NOLINT

bool KernelEmitter::is_narrow(DType t) { return t.is_floating() && t.bits <= 16; }

DType KernelEmitter::computed_as(DType t) { return is_narrow(t) ? DType::float_(32, t.lanes) : t; }

KernelEmitter::V KernelEmitter::widen(DType t, V bits) {
  const int lanes = t.lanes;
  llvm::Type* word = i(32, lanes);
  if (t.is_bfloat16())
    return builder_.CreateBitCast(builder_.CreateShl(builder_.CreateZExt(bits, word), 16), f32(lanes));
  if (t.is_ieee_float() && (target_.has("f16c") || llvm::Triple(target_.triple).isAArch64()))
    return builder_.CreateFPExt(builder_.CreateBitCast(bits, vector_of(builder_.getHalfTy(), lanes)), f32(lanes));
  const V code = builder_.CreateZExt(bits, word);
  const auto n = [&](uint64_t x) { return llvm::ConstantInt::get(word, x); };
  if (t.code == TypeCode::float8_e8m0fnu) {
    const V power =
        builder_.CreateSelect(builder_.CreateICmpEQ(code, n(0)), n(0x00400000), builder_.CreateShl(code, 23));
    return builder_.CreateBitCast(builder_.CreateSelect(builder_.CreateICmpEQ(code, n(255)), n(0x7fc00000), power),
                                  f32(lanes));
  }
  const FloatFormat f = float_format(t);
  const V magnitude = builder_.CreateAnd(code, n(f.sign() - 1));
  const V sign = builder_.CreateShl(builder_.CreateXor(code, magnitude), static_cast<uint64_t>(32 - t.bits));
  // The fields at float32's places, then the difference of the biases by a multiplication: subnormals come out right.
  const V moved = builder_.CreateShl(magnitude, static_cast<uint64_t>(23 - f.mantissa_bits));
  const V scaled = builder_.CreateFMul(builder_.CreateBitCast(moved, f32(lanes)),
                                       llvm::ConstantFP::get(f32(lanes), std::ldexp(1.0, 127 - f.bias)));
  V result = builder_.CreateBitCast(scaled, word);
  if (f.has_infinity())
    result = builder_.CreateSelect(builder_.CreateICmpUGT(magnitude, n(f.largest())),
                                   builder_.CreateOr(moved, n(0x7f800000)), result);
  else if (f.special == FloatFormat::Special::fn)
    result = builder_.CreateSelect(builder_.CreateICmpEQ(magnitude, n(f.nan())), n(0x7fc00000), result);
  result = builder_.CreateOr(result, sign);
  if (!f.has_negative_zero())
    result = builder_.CreateSelect(builder_.CreateICmpEQ(code, n(f.nan())), n(0x7fc00000), result);
  return builder_.CreateBitCast(result, f32(lanes));
}

KernelEmitter::V KernelEmitter::narrow(DType t, V single) {
  const int lanes = t.lanes;
  llvm::Type* word = i(32, lanes);
  llvm::Type* result_type = register_type(t);
  const auto n = [&](uint64_t x) { return llvm::ConstantInt::get(word, x); };
  if (t.is_ieee_float() && (target_.has("f16c") || llvm::Triple(target_.triple).isAArch64()))
    return builder_.CreateBitCast(builder_.CreateFPTrunc(single, vector_of(builder_.getHalfTy(), lanes)), result_type);
  const V bits = builder_.CreateBitCast(single, word);
  const V is_nan = builder_.CreateFCmpUNO(single, single);
  if (t.is_bfloat16()) {
    const V odd =
        builder_.CreateAnd(builder_.CreateLShr(bits, 16), n(support::flip(llvm_bfloat_round_half_up) ? 0 : 1));
    const V rounded = builder_.CreateLShr(builder_.CreateAdd(bits, builder_.CreateAdd(odd, n(0x7fff))), 16);
    const V quiet = builder_.CreateOr(builder_.CreateLShr(bits, 16), n(0x40));
    return builder_.CreateTrunc(builder_.CreateSelect(is_nan, quiet, rounded), result_type);
  }
  const V magnitude = builder_.CreateAnd(bits, n(0x7fffffff));
  if (t.code == TypeCode::float8_e8m0fnu) {
    // Ties are up: of two powers of two the larger one is even. Below 2^-126 float32 has the fraction alone.
    const V normal = builder_.CreateLShr(builder_.CreateAdd(bits, n(0x400000)), 23);
    const V subnormal = builder_.CreateZExt(builder_.CreateICmpUGE(bits, n(0x600000)), word);
    V code = builder_.CreateSelect(builder_.CreateICmpULT(bits, n(0x800000)), subnormal, normal);
    code = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, code, n(255));
    // Negative numbers are NaN, but -0 is the smallest as 0 is; so are NaN and infinity.
    code = builder_.CreateSelect(builder_.CreateICmpEQ(magnitude, n(0)), n(0), code);
    return builder_.CreateTrunc(builder_.CreateSelect(is_nan, n(255), code), result_type);
  }
  const FloatFormat f = float_format(t);
  const int shift = 23 - f.mantissa_bits;
  const V sign = builder_.CreateLShr(builder_.CreateXor(bits, magnitude), static_cast<uint64_t>(32 - t.bits));
  const V odd = builder_.CreateAnd(builder_.CreateLShr(magnitude, static_cast<uint64_t>(shift)), n(1));
  const uint64_t rebias = static_cast<uint64_t>(127 - f.bias) << 23;
  const V rounded = builder_.CreateAdd(magnitude, builder_.CreateAdd(odd, n((uint64_t{1} << (shift - 1)) - 1)));
  const V as_normal = builder_.CreateLShr(builder_.CreateSub(rounded, n(rebias)), static_cast<uint64_t>(shift));
  // Adding a number whose last place is the smallest subnormal rounds there.
  const double magic = std::ldexp(1.0, f.min_exponent() - f.mantissa_bits + 23);
  const V shifted =
      builder_.CreateFAdd(builder_.CreateBitCast(magnitude, f32(lanes)), llvm::ConstantFP::get(f32(lanes), magic));
  const V as_subnormal =
      builder_.CreateSub(builder_.CreateBitCast(shifted, word), n(std::bit_cast<uint32_t>(static_cast<float>(magic))));
  const uint64_t smallest_normal = rebias + (uint64_t{1} << 23);
  V code = builder_.CreateSelect(builder_.CreateICmpULT(magnitude, n(smallest_normal)), as_subnormal, as_normal);
  const V too_large =
      builder_.CreateOr(builder_.CreateICmpUGT(code, n(f.largest())), builder_.CreateICmpUGE(magnitude, n(0x7f800000)));
  code = builder_.CreateSelect(too_large, n(f.overflow()), code);
  V result = builder_.CreateOr(code, sign);
  if (!f.has_negative_zero()) {
    result = builder_.CreateSelect(builder_.CreateICmpEQ(code, n(0)), n(0), result);
    result = builder_.CreateSelect(too_large, n(f.overflow()), result);
  }
  result = builder_.CreateSelect(is_nan, n(f.nan()), result);
  return builder_.CreateTrunc(result, result_type);
}

KernelEmitter::V KernelEmitter::round_to_odd_single(V wide) {
  const int lanes = lanes_of(wide);
  const V nearest = builder_.CreateFPTrunc(wide, f32(lanes));
  const V back = builder_.CreateFPExt(nearest, f64(lanes));
  const V inexact = builder_.CreateFCmpONE(back, wide);
  const V magnitude = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, wide);
  const V beyond = builder_.CreateFCmpOGT(builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back), magnitude);
  llvm::Type* word = i(32, lanes);
  V bits = builder_.CreateBitCast(nearest, word);
  bits = builder_.CreateSub(bits, builder_.CreateZExt(beyond, word));
  bits = builder_.CreateOr(bits, builder_.CreateZExt(inexact, word));
  return builder_.CreateBitCast(bits, f32(lanes));
}

// Vectors of float32 to int32 by x86's instruction, which gives the least integer for NaN and what is out of range.
// Null where the target or the vectors are others.
KernelEmitter::V KernelEmitter::converted_by_x86(V v) {
  const int lanes = lanes_of(v);
  if (!llvm::Triple(target_.triple).isX86() || lanes % 4 != 0 || !v->getType()->getScalarType()->isFloatTy())
    return nullptr;
  const int most = target_.has("avx512f") ? 16 : target_.has("avx") ? 8 : 4;
  const int width = std::gcd(lanes, most);
  return by_registers(width, {v}, [&](const std::vector<V>& part) -> V {
    if (width == 16)
      return builder_.CreateIntrinsic(
          llvm::Intrinsic::x86_avx512_mask_cvttps2dq_512, {},
          {part[0], llvm::Constant::getNullValue(i(32, 16)), builder_.getInt16(0xffff), builder_.getInt32(4)});
    return builder_.CreateIntrinsic(
        width == 8 ? llvm::Intrinsic::x86_avx_cvtt_ps2dq_256 : llvm::Intrinsic::x86_sse2_cvttps2dq, {}, {part[0]});
  });
}

// To signed integers of so many bits: what is out of range is the nearest of them, NaN is 0, or where only low bits are
// wanted anything whose low half is. LLVM has an instruction for one element and takes vectors apart; these are
// compared and chosen from, and none is converted that does not fit.
KernelEmitter::V KernelEmitter::saturated_to_int(V v, int bits, bool low_half) {
  if (!v->getType()->isVectorTy())
    return builder_.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {i(bits, 1), v->getType()}, {v});
  llvm::Type* type = i(bits, lanes_of(v));
  const auto at_least = [&](double bound) {
    return builder_.CreateFCmpOGE(v, llvm::ConstantFP::get(v->getType(), bound));
  };
  const V quick = converted_by_x86(v);
  if (quick && bits == 32) {
    // The least integer with all bits turned is the greatest.
    const V whole = builder_.CreateXor(quick, builder_.CreateSExt(at_least(0x1p31), type));
    if (low_half) return whole;
    return builder_.CreateAnd(whole, builder_.CreateSExt(builder_.CreateFCmpORD(v, v), type));
  }
  if (quick && bits == 64 && !target_.has("avx512dq")) {
    // No instruction: nearly all numbers fit into 32 bits.
    const V size = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v);
    const double bound = support::flip(llvm_far_integers_are_near) ? 0x1p32 : 0x1p31;
    const V fit = builder_.CreateAndReduce(builder_.CreateFCmpOLT(size, llvm::ConstantFP::get(v->getType(), bound)));
    return near_or_any(fit, builder_.CreateSExt(quick, type), [&] { return compared_to_int(v, bits); });
  }
  return compared_to_int(v, bits);
}

KernelEmitter::V KernelEmitter::near_or_any(V fits, V near, support::function_ref<V()> any) {
  llvm::BasicBlock *before = builder_.GetInsertBlock(), *far = block("far"), *after = block("after_far");
  builder_.CreateCondBr(fits, after, far, llvm::MDBuilder(context_).createBranchWeights(1 << 20, 1));
  builder_.SetInsertPoint(far);
  const V seldom = any();
  llvm::BasicBlock* from = builder_.GetInsertBlock();
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
  llvm::PHINode* phi = builder_.CreatePHI(near->getType(), 2);
  phi->addIncoming(near, before);
  phi->addIncoming(seldom, from);
  return phi;
}

KernelEmitter::V KernelEmitter::compared_to_int(V v, int bits) {
  llvm::Type* type = i(bits, lanes_of(v));
  const V least = llvm::ConstantFP::get(v->getType(), -std::ldexp(1.0, bits - 1));
  const V beyond = builder_.CreateFCmpOGE(v, llvm::ConstantFP::get(v->getType(), std::ldexp(1.0, bits - 1)));
  V inside = builder_.CreateSelect(builder_.CreateFCmpOGT(v, least), v, least);
  inside = builder_.CreateSelect(beyond, llvm::Constant::getNullValue(v->getType()), inside);
  V result = builder_.CreateFPToSI(inside, type);
  result = builder_.CreateSelect(beyond, llvm::ConstantInt::get(type, llvm::APInt::getSignedMaxValue(bits)), result);
  const V is_nan = builder_.CreateFCmpUNO(v, v);
  return builder_.CreateSelect(is_nan, llvm::Constant::getNullValue(type), result);
}

KernelEmitter::V KernelEmitter::cast(DType from, DType to, V v) {
  if (from == to) return v;
  const int lanes = to.lanes;
  if (from.is_handle() || to.is_handle()) {
    if (from.is_handle() && to.is_handle()) return v;
    return from.is_handle() ? builder_.CreatePtrToInt(v, register_type(to))
                            : builder_.CreateIntToPtr(v, builder_.getPtrTy());
  }
  if (from.is_floating()) {
    if (is_narrow(from)) return cast(computed_as(from), to, widen(from, v));
    if (to.is_bool()) return builder_.CreateFCmpUNE(v, llvm::Constant::getNullValue(v->getType()));
    if (to.is_integer()) {
      // Out of range is unspecified: narrow types take the low bits of a wider one that saturates, as C does on most
      // machines; NaN gives 0.
      if (to.bits < 32 || (to.is_int() && to.bits == 32))
        return builder_.CreateTrunc(saturated_to_int(v, 32, to.bits < 32), register_type(to));
      const V wide = saturated_to_int(v, 64, false);
      if (to.bits < 64) return builder_.CreateTrunc(wide, register_type(to));
      if (to.is_int()) return wide;
      const V beyond = builder_.CreateFCmpOGE(v, llvm::ConstantFP::get(v->getType(), 0x1p63));
      const V above = builder_.CreateIntrinsic(llvm::Intrinsic::fptoui_sat, {i(64, lanes), v->getType()}, {v});
      return builder_.CreateSelect(beyond, above, wide);
    }
    if (is_narrow(to)) return narrow(to, from.bits == 64 ? round_to_odd_single(v) : v);
    return from.bits < to.bits ? builder_.CreateFPExt(v, f64(lanes)) : builder_.CreateFPTrunc(v, f32(lanes));
  }
  const bool is_signed = from.is_int();
  if (to.is_bool()) return builder_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  if (to.is_integer()) return builder_.CreateIntCast(v, register_type(to), is_signed);
  // Integers to narrow floats: float32 holds 24 bits exactly, float64 rounds the rest.
  if (is_narrow(to)) {
    const DType between = from.bits <= 24 ? DType::float_(32, lanes) : DType::float_(64, lanes);
    return cast(between, to, cast(from, between, v));
  }
  return is_signed ? builder_.CreateSIToFP(v, register_type(to)) : builder_.CreateUIToFP(v, register_type(to));
}

}  // namespace lathe::codegen
