// Intrinsics of LLVM that programs call by name. Those of one architecture are listed with the feature that they need:
// LLVM ends the process at an intrinsic that it has no instruction for, so what is not listed is refused.
#include "codegen/emit/codes.h"
#include "codegen/llvm/emitter.h"

namespace lathe::codegen {

using namespace ir;  // NOLINT

namespace {

struct NamedIntrinsic {
  std::string_view name;     // without the types at the end of an overloaded one
  std::string_view feature;  // "": every target
};

constexpr NamedIntrinsic named_intrinsics[] = {
    // x86 (Intel SDM volume 2; the int8 and bf16 dot products add up groups of 4 and 2 neighbours)
    {"llvm.x86.avx512.vpdpbusd.512", "avx512vnni"},
    {"llvm.x86.avx512.vpdpbusds.512", "avx512vnni"},
    {"llvm.x86.avx512.vpdpwssd.512", "avx512vnni"},
    {"llvm.x86.avx512bf16.dpbf16ps.512", "avx512bf16"},
    {"llvm.x86.tilezero", "amx-tile"},
    {"llvm.x86.tileloadd64", "amx-tile"},
    {"llvm.x86.tileloaddt164", "amx-tile"},
    {"llvm.x86.tilestored64", "amx-tile"},
    {"llvm.x86.tdpbssd", "amx-int8"},
    {"llvm.x86.tdpbsud", "amx-int8"},
    {"llvm.x86.tdpbusd", "amx-int8"},
    {"llvm.x86.tdpbuud", "amx-int8"},
    {"llvm.x86.tdpbf16ps", "amx-bf16"},
    // AArch64
    {"llvm.aarch64.neon.sdot", "dotprod"},
    {"llvm.aarch64.neon.udot", "dotprod"},
    {"llvm.aarch64.neon.usdot", "i8mm"},
    // everywhere
    {"llvm.abs", ""},
    {"llvm.bitreverse", ""},
    {"llvm.bswap", ""},
    {"llvm.ctlz", ""},
    {"llvm.ctpop", ""},
    {"llvm.cttz", ""},
    {"llvm.fabs", ""},
    {"llvm.fma", ""},
    {"llvm.fmuladd", ""},
    {"llvm.fshl", ""},
    {"llvm.fshr", ""},
    {"llvm.maxnum", ""},
    {"llvm.minnum", ""},
    {"llvm.sadd.sat", ""},
    {"llvm.smax", ""},
    {"llvm.smin", ""},
    {"llvm.sqrt", ""},
    {"llvm.ssub.sat", ""},
    {"llvm.uadd.sat", ""},
    {"llvm.umax", ""},
    {"llvm.umin", ""},
    {"llvm.usub.sat", ""},
    {"llvm.vector.reduce.add", ""},
};

[[noreturn]] void refuse_call(const std::string& name, const std::string& why) {
  throw support::DiagnosticError(support::Diagnostic{.code = codes::unsupported_intrinsic,
                                                     .message = fmt::format("cannot call '{}': {}", name, why)});
}

const NamedIntrinsic* find_named(llvm::Intrinsic::ID id) {
  for (const NamedIntrinsic& row : named_intrinsics)
    if (llvm::Function::lookupIntrinsicID({row.name.data(), row.name.size()}) == id) return &row;
  return nullptr;
}

std::string text_of(llvm::Type* type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  type->print(stream);
  return text;
}

// The types that an overloaded intrinsic is called with; empty for the others.
std::vector<llvm::Type*> overloads(const std::string& name, llvm::Intrinsic::ID id, llvm::FunctionType* called) {
  if (!llvm::Intrinsic::isOverloaded(id)) return {};
  llvm::SmallVector<llvm::Intrinsic::IITDescriptor> rows;
  llvm::Intrinsic::getIntrinsicInfoTableEntries(id, rows);
  llvm::ArrayRef<llvm::Intrinsic::IITDescriptor> rest(rows);
  llvm::SmallVector<llvm::Type*> types;
  if (llvm::Intrinsic::matchIntrinsicSignature(called, rest, types) != llvm::Intrinsic::MatchIntrinsicTypes_Match ||
      llvm::Intrinsic::matchIntrinsicVarArg(called->isVarArg(), rest))
    refuse_call(name, "it has no form " + text_of(called));
  return {types.begin(), types.end()};
}

}  // namespace

// Operands whose type has another name but the same width (int8x64 where LLVM says <16 x i32>, bfloat16 as its bits)
// are taken as the bits that they are.
KernelEmitter::V KernelEmitter::llvm_call(const Call& n) {
  const auto* text = n.args.empty() ? nullptr : n.args[0].as<StringImm>();
  const std::string name = text ? text->value : "";
  const llvm::Intrinsic::ID id = llvm::Function::lookupIntrinsicID(name);
  const NamedIntrinsic* row = id == llvm::Intrinsic::not_intrinsic ? nullptr : find_named(id);
  if (!row) refuse_call(name, "it is not among the intrinsics of LLVM that programs may call");
  if (!row->feature.empty() && !target_.has(std::string(row->feature)))
    refuse_call(name, fmt::format("the target has no '{}'", row->feature));

  std::vector<V> given;
  std::vector<llvm::Type*> types;
  for (size_t a = 1; a < n.args.size(); ++a) {
    given.push_back(value(n.args[a]));
    types.push_back(given.back()->getType());
  }
  llvm::Type* result = n.dtype.is_void() ? builder_.getVoidTy() : register_type(n.dtype);
  llvm::Function* callee =
      llvm::Intrinsic::getDeclaration(&module_, id, overloads(name, id, llvm::FunctionType::get(result, types, false)));
  llvm::FunctionType* type = callee->getFunctionType();
  if (type->getNumParams() != given.size())
    refuse_call(name, fmt::format("it takes {} arguments, not {}", type->getNumParams(), given.size()));
  const auto as = [&](V v, llvm::Type* wanted) -> V {
    if (v->getType() == wanted) return v;
    const auto width = [](llvm::Type* t) { return t->getPrimitiveSizeInBits().getFixedValue(); };
    if (llvm::isa<llvm::ConstantInt>(v) && wanted->isIntegerTy()) return builder_.CreateIntCast(v, wanted, true);
    if (width(wanted) == 0 || width(v->getType()) != width(wanted))
      refuse_call(name, fmt::format("it takes {} where it is given {}", text_of(wanted), text_of(v->getType())));
    return builder_.CreateBitCast(v, wanted);
  };
  for (unsigned a = 0; a < given.size(); ++a) {
    given[a] = as(given[a], type->getParamType(a));
    if (callee->hasParamAttribute(a, llvm::Attribute::ImmArg) && !llvm::isa<llvm::ConstantInt>(given[a]))
      refuse_call(name, fmt::format("argument {} must be a constant", a));
  }
  llvm::CallInst* call = builder_.CreateCall(callee, given);
  if (type->getReturnType()->isVoidTy()) return zero(DType::int32());
  if (n.dtype.is_void()) return call;
  return as(call, result);
}

}  // namespace lathe::codegen
