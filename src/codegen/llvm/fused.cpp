// Multiply-add rounded once, for targets without the instruction (x86-64-v2). Sources: Knuth's and Dekker's error-free
// transformations; Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums" (2008), for rounding to odd.
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

}  // namespace lathe::codegen
