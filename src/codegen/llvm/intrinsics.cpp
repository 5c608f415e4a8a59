// Calls: what LLVM has as an instruction stands here; the other functions are expanded first (codegen/emit/math).
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/narrow_float.h"
#include "ir/node_name.h"
#include "ir/visit.h"
#include "support/mutation.h"

namespace lathe::codegen {

using namespace ir;  // NOLINT
namespace llvm_op = llvm::Intrinsic;

LATHE_FAULT(llvm_lookup_entry, "codegen_llvm_test", "a table in a register has its first and last entry swapped");

namespace {

// Whether both arms of a choice may simply run: nothing read, nothing long.
bool is_cheap(const Expr& e) {
  bool found = false;
  int nodes = 0;
  pre_order(e, [&](const NodeRef& n) {
    if (++nodes > 24) found = true;
    if (n->node_class().family != ExprNode::family) return false;
    const auto* call = &n->node_class() == &node_class_of<Call>() ? static_cast<const Call*>(n.get()) : nullptr;
    found |= &n->node_class() == &node_class_of<BufferLoad>();
    found |= call && (call->op->effect != Effect::pure || call->op == &intrinsic::call_pure_extern ||
                      call->op == &intrinsic::call_llvm_pure_intrin || math::stands_apart(*call->op));
    return !found;
  });
  return !found;
}

bool has_fma(const target::Target& target) { return target.has("fma") || llvm::Triple(target.triple).isAArch64(); }

}  // namespace

math::Native native_functions(const target::Target& target) {
  const bool wide = target.has("avx512f"), has_tables = wide || (target.has("avx2") && target.has("fma"));
  return {.fma = has_fma(target),
          .ldexp_lanes = wide ? 16 : 0,
          .table_entries = !has_tables ? 0
                           : wide      ? 16
                                       : 8,
          .paired_entries = wide ? 32 : 0};
}

// Arithmetic inside is on values: an index may hold a call, but what it computes from wraps.
template <class Node>
KernelEmitter::V KernelEmitter::written_out(const Node& n) {
  const Expr expanded = math::expand(n, native_);
  if (!expanded) return nullptr;
  const bool in_index = std::exchange(in_index_, false);
  const V v = value(expanded);
  in_index_ = in_index;
  return v;
}

// The function's body is what is written out of it; the module's kernels share it.
KernelEmitter::V KernelEmitter::call_apart(const Call& n) {
  const V argument = value(n.args[0]);
  const std::string name = fmt::format("lathe.{}.{}", n.op->name, n.dtype.str());
  llvm::Function* f = module_.getFunction(name);
  if (!f) {
    f = declare(llvm::FunctionType::get(register_type(n.dtype), {argument->getType()}, false), name, true);
    f->addFnAttr(llvm::Attribute::Cold);
    f->addFnAttr(llvm::Attribute::NoInline);
    f->setDoesNotThrow();
    f->setDoesNotAccessMemory();
    const Frame outer = std::exchange(frame_, Frame{.function = f});
    const V live = std::exchange(live_, nullptr);
    const auto return_to = builder_.saveIP();
    const llvm::DebugLoc place = builder_.getCurrentDebugLocation();
    builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", f));
    if (lines_) builder_.SetCurrentDebugLocation(lines_->begin(*f, name, kernel_));
    const Var x = var("x", n.args[0]->dtype);
    frame_.values[x.get()] = f->getArg(0);
    builder_.CreateRet(written_out(*ir::call(*n.op, x).as<Call>()));
    frame_ = outer;
    live_ = live;
    builder_.restoreIP(return_to);
    builder_.SetCurrentDebugLocation(place);
  }
  return builder_.CreateCall(f, {argument});
}

KernelEmitter::V KernelEmitter::call(const Expr& e, const Call& n) {
  if (math::stands_apart(*n.op)) return call_apart(n);
  if (const V v = written_out(n)) return v;
  const bool in_index = std::exchange(in_index_, false);
  const V v = native_call(e, n);
  in_index_ = in_index;
  return v;
}

KernelEmitter::V KernelEmitter::select(const Select& n) {
  if (const V v = written_out(n)) return v;
  const V condition = value(n.condition);
  const V a = value(n.true_value), b = value(n.false_value);
  if (lanes_of(condition) != 1 && lanes_of(condition) != n.dtype.lanes)
    support::unreachable("a select whose condition has other lanes than its values");
  return builder_.CreateSelect(condition, a, b);
}

KernelEmitter::V KernelEmitter::sum(const Add& n) {
  if (const V v = written_out(n)) return v;
  const V a = value(n.a);
  return add(n.dtype, a, value(n.b));
}

KernelEmitter::V KernelEmitter::product(const Mul& n) {
  if (const V v = written_out(n)) return v;
  const V a = value(n.a);
  return mul(n.dtype, a, value(n.b));
}

// The second or third argument. With one condition for all lanes only the chosen one runs; with a condition a lane,
// both run and their loads are masked.
KernelEmitter::V KernelEmitter::choose(const Call& n) {
  const Expr &condition = n.args[0], &yes = n.args[1], &no = n.args[2];
  const V c = value(condition);
  if (is_cheap(yes) && is_cheap(no)) {
    const V a = value(yes);
    return builder_.CreateSelect(c, a, value(no));
  }
  if (condition->dtype.is_vector()) {
    const V outer = live_;
    live_ = outer ? builder_.CreateAnd(outer, c) : c;
    const V a = value(yes);
    const V other = builder_.CreateNot(c);
    live_ = outer ? builder_.CreateAnd(outer, other) : other;
    const V b = value(no);
    live_ = outer;
    return builder_.CreateSelect(c, a, b);
  }
  llvm::BasicBlock *then_block = block("chosen"), *else_block = block("otherwise"), *after = block("after_choice");
  builder_.CreateCondBr(c, then_block, else_block);
  builder_.SetInsertPoint(then_block);
  const V a = value(yes);
  llvm::BasicBlock* from_then = builder_.GetInsertBlock();
  builder_.CreateBr(after);
  builder_.SetInsertPoint(else_block);
  const V b = value(no);
  llvm::BasicBlock* from_else = builder_.GetInsertBlock();
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
  llvm::PHINode* phi = builder_.CreatePHI(a->getType(), 2);
  phi->addIncoming(a, from_then);
  phi->addIncoming(b, from_else);
  return phi;
}

KernelEmitter::V KernelEmitter::extern_call(const Call& n) {
  const auto* name = n.args.at(0).as<StringImm>();
  support::require(name, "an external call has no name");
  std::vector<V> args;
  std::vector<llvm::Type*> types;
  for (size_t a = 1; a < n.args.size(); ++a) {
    args.push_back(value(n.args[a]));
    types.push_back(args.back()->getType());
  }
  const auto callee =
      module_.getOrInsertFunction(name->value, llvm::FunctionType::get(register_type(n.dtype), types, false));
  return builder_.CreateCall(callee, args);
}

// In halves: the order depends on the number of lanes alone.
KernelEmitter::V KernelEmitter::reduce_lanes(const Call& n) {
  const DType t = n.args[0]->dtype;
  V v = value(n.args[0]);
  if (t.is_bool() && n.op == &intrinsic::vector_reduce_max) return builder_.CreateOrReduce(v);
  if (t.is_bool() && n.op == &intrinsic::vector_reduce_min) return builder_.CreateAndReduce(v);
  const auto combine = [&](DType u, V a, V b) {
    if (n.op == &intrinsic::vector_reduce_add) return add(u, a, b);
    return n.op == &intrinsic::vector_reduce_max ? maximum(u, a, b) : minimum(u, a, b);
  };
  int lanes = t.lanes;
  while (lanes > 1 && lanes % 2 == 0) {
    lanes /= 2;
    std::vector<int> low(static_cast<size_t>(lanes)), high(static_cast<size_t>(lanes));
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), lanes);
    V a = builder_.CreateShuffleVector(v, low), b = builder_.CreateShuffleVector(v, high);
    if (lanes == 1)
      a = builder_.CreateExtractElement(v, uint64_t{0}), b = builder_.CreateExtractElement(v, uint64_t{1});
    v = combine(t.with_lanes(lanes), a, b);
  }
  if (lanes_of(v) == 1 && !v->getType()->isVectorTy()) return v;
  V result = builder_.CreateExtractElement(v, uint64_t{0});
  for (int l = 1; l < lanes; ++l)
    result = combine(t.element(), result, builder_.CreateExtractElement(v, static_cast<uint64_t>(l)));
  return result;
}

KernelEmitter::V KernelEmitter::shift(const Call& n, bool left) {
  const DType t = n.dtype;
  const V a = value(n.args[0]), by = value(n.args[1]);
  const V width = llvm::ConstantInt::get(by->getType(), t.bits);
  const V inside = builder_.CreateICmpULT(by, width);
  if (!left && t.is_int()) {
    const V most =
        builder_.CreateSelect(inside, by, llvm::ConstantInt::get(by->getType(), static_cast<uint64_t>(t.bits - 1)));
    return builder_.CreateAShr(a, most);
  }
  const V safe = builder_.CreateSelect(inside, by, llvm::Constant::getNullValue(by->getType()));
  return builder_.CreateSelect(inside, left ? builder_.CreateShl(a, safe) : builder_.CreateLShr(a, safe), zero(t));
}

// Rounded once. Where the target has no such instruction, float32 goes through float64 and is rounded to odd there.
KernelEmitter::V KernelEmitter::fused_multiply_add(const Call& n) {
  const DType t = n.dtype;
  const V a = value(n.args[0]), b = value(n.args[1]), c = value(n.args[2]);
  if (!t.is_floating()) return add(t, mul(t, a, b), c);
  const bool native = native_.fma;
  const auto single = [&](V x, V y, V z) -> V {
    if (native) return builder_.CreateIntrinsic(llvm_op::fma, {x->getType()}, {x, y, z});
    return fused_single(builder_, x, y, z);
  };
  if (is_narrow(t)) {
    // A product of narrow floats is exact in float32, the sum is exact in float64 but for what rounding to odd keeps.
    llvm::Type* wide = f64(t.lanes);
    const V product = builder_.CreateFPExt(builder_.CreateFMul(widen(t, a), widen(t, b)), wide);
    return narrow(t, round_to_odd_single(sum_to_odd(builder_, product, builder_.CreateFPExt(widen(t, c), wide))));
  }
  if (t.bits == 32) return single(a, b, c);
  if (native) return builder_.CreateIntrinsic(llvm_op::fma, {a->getType()}, {a, b, c});
  return fused_double(builder_, a, b, c);
}

// x * 2^k by the one instruction that does so (Intel SDM volume 2, VSCALEFPS). It takes k as a float, which k often
// was.
KernelEmitter::V KernelEmitter::scale(const Call& n) {
  const V x = value(n.args[0]);
  const auto* converted = n.args[1].as<Cast>();
  const bool was_float = converted && converted->value->dtype == n.args[0]->dtype;
  const auto* rounding = was_float ? converted->value.as<Call>() : nullptr;
  const bool floors = rounding && rounding->op == &intrinsic::floor;  // it does so itself
  const V k = floors      ? value(rounding->args[0])
              : was_float ? value(converted->value)
                          : builder_.CreateSIToFP(value(n.args[1]), x->getType());
  constexpr uint32_t current_rounding = 4;
  return by_registers(16, {x, k}, [&](const std::vector<V>& parts) {
    V unused = llvm::PoisonValue::get(parts[0]->getType());
    return builder_.CreateIntrinsic(
        llvm_op::x86_avx512_mask_scalef_ps_512, {},
        {parts[0], parts[1], unused, builder_.getInt16(0xffff), builder_.getInt32(current_rounding)});
  });
}

// What `compute` makes of vectors by registers of `width` lanes, of which the last may be filled up.
KernelEmitter::V KernelEmitter::by_registers(int width, const std::vector<V>& vectors,
                                             support::function_ref<V(const std::vector<V>&)> compute) {
  const int lanes = lanes_of(vectors[0]);
  if (lanes == width) return compute(vectors);
  std::vector<llvm::Value*> computed;
  for (int first = 0; first < lanes; first += width) {
    std::vector<int> from(static_cast<size_t>(width));
    for (int lane = 0; lane < width; ++lane) from[static_cast<size_t>(lane)] = std::min(first + lane, lanes - 1);
    std::vector<V> parts;
    for (const V& v : vectors) parts.push_back(builder_.CreateShuffleVector(v, from));
    computed.push_back(compute(parts));
  }
  const V all = llvm::concatenateVectors(builder_, computed);
  if (lanes_of(all) == lanes) return all;
  return builder_.CreateShuffleVector(all, llvm::createSequentialMask(0, static_cast<unsigned>(lanes), 0));
}

// An entry of a constant table by the low bits of each lane's index, a register of lanes at a time: VPERMD, or VPERMI2D
// of a table in two registers. A scalar reads it from memory.
KernelEmitter::V KernelEmitter::lookup(const Call& n) {
  std::vector<uint32_t> entries;
  for (size_t i = 1; i < n.args.size(); ++i) entries.push_back(static_cast<uint32_t>(*as_int(n.args[i])));
  if (support::flip(llvm_lookup_entry)) std::swap(entries.front(), entries.back());
  llvm::Constant* table = llvm::ConstantDataVector::get(builder_.getContext(), entries);
  const V index = value(n.args[0]);
  if (lanes_of(index) == 1) return builder_.CreateExtractElement(table, builder_.CreateAnd(index, entries.size() - 1));
  const bool is_pair = entries.size() == 32;
  return by_registers(is_pair ? 16 : static_cast<int>(entries.size()), {index}, [&](const std::vector<V>& parts) -> V {
    if (!is_pair)
      return builder_.CreateIntrinsic(
          entries.size() == 16 ? llvm_op::x86_avx512_permvar_si_512 : llvm_op::x86_avx2_permd, {}, {table, parts[0]});
    const auto half = [&](size_t first) {
      return llvm::ConstantDataVector::get(builder_.getContext(), llvm::ArrayRef(entries).slice(first, 16));
    };
    return builder_.CreateIntrinsic(llvm_op::x86_avx512_vpermi2var_d_512, {}, {half(0), parts[0], half(16)});
  });
}

KernelEmitter::V KernelEmitter::inverse_root(const Call& n) {
  const V x = value(n.args[0]);
  const auto inverse = [&](V y) {
    return builder_.CreateFDiv(llvm::ConstantFP::get(y->getType(), 1.0),
                               builder_.CreateUnaryIntrinsic(llvm_op::sqrt, y));
  };
  return is_narrow(n.dtype) ? in_single(n.dtype, [&](auto w) { return inverse(w[0]); }, {x}) : inverse(x);
}

KernelEmitter::V KernelEmitter::copy_sign(const Call& n) {
  const V a = value(n.args[0]), b = value(n.args[1]);
  if (!is_narrow(n.dtype)) return builder_.CreateBinaryIntrinsic(llvm_op::copysign, a, b);
  const V sign = llvm::ConstantInt::get(a->getType(), uint64_t{1} << (n.dtype.bits - 1));
  return builder_.CreateOr(builder_.CreateAnd(a, builder_.CreateNot(sign)), builder_.CreateAnd(b, sign));
}

// isnan, isinf, isfinite.
KernelEmitter::V KernelEmitter::classify(const Call& n) {
  const DType from = n.args[0]->dtype;
  V x = value(n.args[0]);
  if (!from.is_floating()) return llvm::ConstantInt::get(register_type(n.dtype), n.op == &intrinsic::isfinite);
  if (is_narrow(from)) x = widen(from, x);
  if (n.op == &intrinsic::isnan) return builder_.CreateFCmpUNO(x, x);
  const V magnitude = builder_.CreateUnaryIntrinsic(llvm_op::fabs, x);
  const V infinity = llvm::ConstantFP::getInfinity(x->getType());
  return n.op == &intrinsic::isinf ? builder_.CreateFCmpOEQ(magnitude, infinity)
                                   : builder_.CreateFCmpOLT(magnitude, infinity);
}

KernelEmitter::PlacedElement KernelEmitter::placed_element(const Call& n) {
  const auto* element = n.args[0].as<BufferLoad>();
  support::require(element, "an address is taken of what is no element");
  const Expr& index = element->indices.at(0);
  return {element->buffer, index_value(index.is<Ramp>() ? index.as<Ramp>()->base : index)};
}

KernelEmitter::V KernelEmitter::address_of(const Call& n) {
  const auto [buffer, index] = placed_element(n);
  return address(buffer, index);
}

KernelEmitter::V KernelEmitter::prefetch(const Call& n) {
  const auto [buffer, index] = placed_element(n);
  // A hint may be of what lies behind the buffer's end.
  const V at = builder_.CreateGEP(memory_type(buffer->dtype), storage_of(buffer).address, index);
  const int64_t level = as_int(n.args[1]).value_or(1);
  builder_.CreateIntrinsic(
      llvm_op::prefetch, {builder_.getPtrTy()},
      {at, builder_.getInt32(0), builder_.getInt32(static_cast<uint32_t>(4 - std::clamp<int64_t>(level, 1, 3))),
       builder_.getInt32(1)});
  return zero(DType::int32());
}

KernelEmitter::V KernelEmitter::native_call(const Expr& e, const Call& n) {
  const Intrinsic* op = n.op;
  const DType t = n.dtype;
  const auto is = [&](const Intrinsic& row) { return op == &row; };
  const auto unary = [&](llvm_op::ID id) -> V {
    const V x = value(n.args[0]);
    if (!is_narrow(t)) return builder_.CreateUnaryIntrinsic(id, x);
    return in_single(t, [&](auto w) { return builder_.CreateUnaryIntrinsic(id, w[0]); }, {x});
  };
  if (is(intrinsic::abs)) {
    if (t.is_floating()) return unary(llvm_op::fabs);
    const V x = value(n.args[0]);
    return t.is_int() ? builder_.CreateBinaryIntrinsic(llvm_op::abs, x, builder_.getFalse()) : x;
  }
  if (is(intrinsic::sqrt)) return unary(llvm_op::sqrt);
  if (is(intrinsic::floor)) return t.is_floating() ? unary(llvm_op::floor) : value(n.args[0]);
  if (is(intrinsic::ceil)) return t.is_floating() ? unary(llvm_op::ceil) : value(n.args[0]);
  if (is(intrinsic::trunc)) return t.is_floating() ? unary(llvm_op::trunc) : value(n.args[0]);
  if (is(intrinsic::round)) return t.is_floating() ? unary(llvm_op::round) : value(n.args[0]);
  if (is(intrinsic::nearbyint)) return t.is_floating() ? unary(llvm_op::roundeven) : value(n.args[0]);
  if (is(intrinsic::ldexp)) return scale(n);
  if (is(math::lookup)) return lookup(n);
  if (is(intrinsic::rsqrt)) return inverse_root(n);
  if (is(intrinsic::copysign)) return copy_sign(n);
  if (is(intrinsic::isnan) || is(intrinsic::isinf) || is(intrinsic::isfinite)) return classify(n);
  if (is(intrinsic::fma)) return fused_multiply_add(n);
  if (is(intrinsic::pow)) {  // of integers; floats are expanded
    const V a = value(n.args[0]);
    return integer_power(t, a, value(n.args[1]));
  }
  const auto both = [&](llvm::Instruction::BinaryOps code) {
    const V a = value(n.args[0]);
    return builder_.CreateBinOp(code, a, value(n.args[1]));
  };
  if (is(intrinsic::bitwise_and)) return both(llvm::Instruction::And);
  if (is(intrinsic::bitwise_or)) return both(llvm::Instruction::Or);
  if (is(intrinsic::bitwise_xor)) return both(llvm::Instruction::Xor);
  if (is(intrinsic::bitwise_not)) return builder_.CreateNot(value(n.args[0]));
  if (is(intrinsic::shift_left)) return shift(n, true);
  if (is(intrinsic::shift_right)) return shift(n, false);
  if (is(intrinsic::popcount)) return cast_count(n, llvm_op::ctpop);
  if (is(intrinsic::clz)) return cast_count(n, llvm_op::ctlz);
  if (is(intrinsic::reinterpret)) return builder_.CreateBitCast(value(n.args[0]), register_type(t));
  if (is(intrinsic::likely)) return value(n.args[0]);
  if (is(intrinsic::if_then_else)) return choose(n);
  if (is(intrinsic::vector_reduce_add) || is(intrinsic::vector_reduce_max) || is(intrinsic::vector_reduce_min))
    return reduce_lanes(n);
  if (is(intrinsic::undef)) return zero(t);
  if (is(intrinsic::assume)) {
    builder_.CreateAssumption(value(n.args[0]));
    return zero(DType::int32());
  }
  if (is(intrinsic::address_of)) return address_of(n);
  if (is(intrinsic::prefetch)) return prefetch(n);
  if (is(intrinsic::ret)) {
    leave(value(n.args[0]));
    return nullptr;
  }
  if (is(intrinsic::raise_error)) {
    const V code = value(n.args[0]);
    const auto* message = n.args[1].as<StringImm>();
    raise(code, message ? message->value : "a check failed", node_name(e));
    return nullptr;
  }
  if (is(intrinsic::tvm_storage_sync)) return zero(DType::int32());  // one thread shares the scope on a CPU
  if (is(intrinsic::call_extern) || is(intrinsic::call_pure_extern)) return extern_call(n);
  if (is(intrinsic::call_packed)) return registered_call(n);
  if (is(intrinsic::call_llvm_intrin) || is(intrinsic::call_llvm_pure_intrin)) return llvm_call(n);
  support::unreachable(fmt::format("no code for the intrinsic {}", op->name));
}

KernelEmitter::V KernelEmitter::cast_count(const Call& n, llvm::Intrinsic::ID id) {
  const V x = value(n.args[0]);
  const V count = id == llvm_op::ctlz ? builder_.CreateBinaryIntrinsic(id, x, builder_.getFalse())
                                      : builder_.CreateUnaryIntrinsic(id, x);
  return builder_.CreateIntCast(count, register_type(n.dtype), false);
}

}  // namespace lathe::codegen
