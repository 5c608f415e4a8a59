// Multiply-add rounded once, for targets without the instruction (x86-64-v2). Sources: Knuth's and Dekker's error-free
// transformations; Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums" (2008), for rounding to odd.
//
// Remainders: fmod by long division on the bits, some eleven quotient bits a step: LLVM's frem is a call of the C
// library.
#include "codegen/llvm/narrow_float.h"

namespace lathe::codegen {
namespace {

using V = llvm::Value*;

// These steps cancel on purpose: contraction would undo them.
struct Strict {
  llvm::IRBuilder<>& b;
  llvm::FastMathFlags kept;
  explicit Strict(llvm::IRBuilder<>& builder) : b(builder), kept(builder.getFastMathFlags()) { b.clearFastMathFlags(); }
  ~Strict() { b.setFastMathFlags(kept); }
};

llvm::Type* wide_word(llvm::IRBuilder<>& b, llvm::Type* t) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(t);
  return vector ? llvm::FixedVectorType::get(b.getInt64Ty(), vector->getNumElements())
                : static_cast<llvm::Type*>(b.getInt64Ty());
}

struct Pair {
  V high, low;
};

Pair two_sum(llvm::IRBuilder<>& b, V x, V y) {
  const V sum = b.CreateFAdd(x, y);
  const V of_y = b.CreateFSub(sum, x);
  const V of_x = b.CreateFSub(sum, of_y);
  return {sum, b.CreateFAdd(b.CreateFSub(x, of_x), b.CreateFSub(y, of_y))};
}

Pair split(llvm::IRBuilder<>& b, V x) {
  const V scaled = b.CreateFMul(x, llvm::ConstantFP::get(x->getType(), 134217729.0));  // 2^27 + 1
  const V high = b.CreateFSub(scaled, b.CreateFSub(scaled, x));
  return {high, b.CreateFSub(x, high)};
}

Pair two_product(llvm::IRBuilder<>& b, V x, V y) {
  const V product = b.CreateFMul(x, y);
  const Pair u = split(b, x), v = split(b, y);
  V error = b.CreateFSub(b.CreateFMul(u.high, v.high), product);
  error = b.CreateFAdd(error, b.CreateFMul(u.high, v.low));
  error = b.CreateFAdd(error, b.CreateFMul(u.low, v.high));
  return {product, b.CreateFAdd(error, b.CreateFMul(u.low, v.low))};
}

// The float64 among the two around sum + error (error not 0) whose last bit is set.
V to_odd(llvm::IRBuilder<>& b, Pair sum) {
  llvm::Type* word = wide_word(b, sum.high->getType());
  const V zero = llvm::Constant::getNullValue(sum.high->getType());
  const V bits = b.CreateBitCast(sum.high, word);
  const V even = b.CreateICmpEQ(b.CreateAnd(bits, llvm::ConstantInt::get(word, 1)), llvm::Constant::getNullValue(word));
  const V inexact = b.CreateFCmpONE(sum.low, zero);
  const V toward = b.CreateXor(b.CreateFCmpOGT(sum.low, zero), b.CreateFCmpOGT(sum.high, zero));
  const V step = b.CreateSelect(toward, llvm::Constant::getAllOnesValue(word), llvm::ConstantInt::get(word, 1));
  return b.CreateBitCast(b.CreateSelect(b.CreateAnd(even, inexact), b.CreateAdd(bits, step), bits),
                         sum.high->getType());
}

}  // namespace

V sum_to_odd(llvm::IRBuilder<>& b, V x, V y) {
  const Strict strict(b);
  return to_odd(b, two_sum(b, x, y));
}

V fused_single(llvm::IRBuilder<>& b, V x, V y, V z) {
  const Strict strict(b);
  llvm::Type* single = x->getType();
  llvm::Type* wide =
      single->isVectorTy()
          ? llvm::VectorType::get(b.getDoubleTy(), llvm::cast<llvm::VectorType>(single)->getElementCount())
          : b.getDoubleTy();
  // The product of two float32 is exact in float64.
  const V product = b.CreateFMul(b.CreateFPExt(x, wide), b.CreateFPExt(y, wide));
  return b.CreateFPTrunc(sum_to_odd(b, product, b.CreateFPExt(z, wide)), single);
}

V fused_double(llvm::IRBuilder<>& b, V x, V y, V z) {
  const Strict strict(b);
  const Pair product = two_product(b, x, y);
  const Pair low = two_sum(b, z, product.low);
  const Pair high = two_sum(b, product.high, low.high);
  const V rest = to_odd(b, two_sum(b, low.low, high.low));
  const V result = b.CreateFAdd(high.high, rest);
  // Infinities and NaN break the error terms but not the plain form.
  const V plain = b.CreateFAdd(b.CreateFMul(x, y), z);
  const V finite = b.CreateFCmpOLT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, plain),
                                   llvm::ConstantFP::getInfinity(x->getType()));
  return b.CreateSelect(b.CreateAnd(finite, b.CreateFCmpORD(result, result)), result, plain);
}

// ---- remainders ----

namespace {

// One operand's magnitude as mantissa * 2^exponent with the mantissa in [2^52, 2^53); exponent counted from the
// smallest subnormal.
struct Parts {
  V mantissa, exponent;
};

Parts normalised(llvm::IRBuilder<>& b, V magnitude) {
  const V field = b.CreateLShr(magnitude, 52);
  const V fraction = b.CreateAnd(magnitude, (uint64_t{1} << 52) - 1);
  const V subnormal = b.CreateICmpEQ(field, b.getInt64(0));
  // The shift that brings a subnormal's highest bit to bit 52.
  const V zeros = b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, fraction, b.getInt1(false));
  const V shift = b.CreateSub(b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, zeros, b.getInt64(63)), b.getInt64(11));
  const V raised = b.CreateShl(fraction, b.CreateAnd(shift, 63));
  const V mantissa = b.CreateSelect(subnormal, raised, b.CreateOr(fraction, uint64_t{1} << 52));
  const V exponent = b.CreateSelect(subnormal, b.CreateSub(b.getInt64(1), shift), field);
  return {mantissa, exponent};
}

}  // namespace

llvm::Function* remainder_function(llvm::Module& module) {
  if (llvm::Function* known = module.getFunction("lathe_fmod")) return known;
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto* type = llvm::FunctionType::get(b.getDoubleTy(), {b.getDoubleTy(), b.getDoubleTy()}, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "lathe_fmod", module);
  const auto block = [&](const char* name) { return llvm::BasicBlock::Create(context, name, function); };
  auto *entry = block("entry"), *finite = block("finite"), *head = block("head"), *step = block("step"),
       *done = block("done"), *special = block("special"), *small = block("small");

  b.SetInsertPoint(entry);
  const V x = function->getArg(0), y = function->getArg(1);
  const uint64_t infinity = uint64_t{0x7ff} << 52;
  const V bits_x = b.CreateBitCast(x, b.getInt64Ty()), bits_y = b.CreateBitCast(y, b.getInt64Ty());
  const V sign = b.CreateAnd(bits_x, uint64_t{1} << 63);
  const V magnitude_x = b.CreateXor(bits_x, sign);
  const V magnitude_y = b.CreateAnd(bits_y, ~(uint64_t{1} << 63));
  const V invalid = b.CreateOr(
      b.CreateICmpUGE(magnitude_x, b.getInt64(infinity)),
      b.CreateOr(b.CreateICmpUGT(magnitude_y, b.getInt64(infinity)), b.CreateICmpEQ(magnitude_y, b.getInt64(0))));
  b.CreateCondBr(invalid, special, finite);

  b.SetInsertPoint(special);
  b.CreateRet(llvm::ConstantFP::getNaN(b.getDoubleTy()));

  b.SetInsertPoint(finite);
  const Parts dividend = normalised(b, magnitude_x), divisor = normalised(b, magnitude_y);
  const V apart = b.CreateSub(dividend.exponent, divisor.exponent);
  b.CreateCondBr(b.CreateICmpULT(magnitude_x, magnitude_y), small, head);

  b.SetInsertPoint(small);
  b.CreateRet(x);

  b.SetInsertPoint(head);
  const V first = b.CreateURem(dividend.mantissa, divisor.mantissa);
  b.CreateCondBr(b.CreateICmpSGT(apart, b.getInt64(0)), step, done);

  b.SetInsertPoint(step);
  llvm::PHINode* rest = b.CreatePHI(b.getInt64Ty(), 2);
  llvm::PHINode* left = b.CreatePHI(b.getInt64Ty(), 2);
  const V bits = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, b.getInt64(11));
  const V next = b.CreateURem(b.CreateShl(rest, bits), divisor.mantissa);
  const V remaining = b.CreateSub(left, bits);
  rest->addIncoming(first, head), rest->addIncoming(next, step);
  left->addIncoming(apart, head), left->addIncoming(remaining, step);
  b.CreateCondBr(b.CreateICmpSGT(remaining, b.getInt64(0)), step, done);

  b.SetInsertPoint(done);
  llvm::PHINode* mantissa = b.CreatePHI(b.getInt64Ty(), 2);
  mantissa->addIncoming(first, head), mantissa->addIncoming(next, step);
  // Normalise: at most as far as the exponent allows, then a subnormal.
  const V zeros = b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, mantissa, b.getInt1(false));
  const V wanted = b.CreateSub(zeros, b.getInt64(11));
  const V exponent = b.CreateSub(divisor.exponent, wanted);
  const V normal = b.CreateICmpSGT(exponent, b.getInt64(0));
  const V as_normal = b.CreateOr(b.CreateAnd(b.CreateShl(mantissa, b.CreateAnd(wanted, 63)), (uint64_t{1} << 52) - 1),
                                 b.CreateShl(exponent, 52));
  // Below the normal range the mantissa counts units of the smallest subnormal: 2^(exponent - 1) of them a bit.
  const V up = b.CreateSub(divisor.exponent, b.getInt64(1));
  const V raised = b.CreateShl(mantissa, b.CreateAnd(up, 63));
  const V lowered = b.CreateLShr(mantissa, b.CreateAnd(b.CreateNeg(up), 63));
  const V as_subnormal = b.CreateSelect(b.CreateICmpSGE(up, b.getInt64(0)), raised, lowered);
  const V magnitude = b.CreateSelect(normal, as_normal, as_subnormal);
  const V result = b.CreateSelect(b.CreateICmpEQ(mantissa, b.getInt64(0)), b.getInt64(0), magnitude);
  b.CreateRet(b.CreateBitCast(b.CreateOr(result, sign), b.getDoubleTy()));
  return function;
}

}  // namespace lathe::codegen
