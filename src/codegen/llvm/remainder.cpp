// fmod by long division on the bits, some eleven quotient bits a step: LLVM's frem is a call of the C library.
#include "codegen/llvm/narrow_float.h"

namespace lathe::codegen {
namespace {

using V = llvm::Value*;

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
