// Loops: serial ones, the questions that long ones ask (whether the call is to end: codegen/emit/polls.h), and parallel
// ones, whose body becomes `void body(void* closure, int64 begin, int64 end)`, run by services->parallel_for.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/MDBuilder.h>

#include "abi/services.h"
#include "codegen/llvm/emitter.h"
#include "ir/visit.h"
#include "support/mutation.h"

namespace lathe::codegen {

LATHE_FAULT(llvm_run_overlaps, "codegen_llvm_test", "a loop that is cut into runs repeats an iteration");

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

// Reads the word that the call's state begins with: leaves when it is set, else goes on. Ends the block.
void KernelEmitter::ask(llvm::BasicBlock* go_on) {
  // Volatile: every question is asked anew, but stores to buffers need no order with it.
  llvm::LoadInst* word = builder_.CreateLoad(builder_.getInt32Ty(), frame_.call_state, /*isVolatile=*/true, "stop");
  llvm::BasicBlock* stops = block("stops");
  builder_.CreateCondBr(builder_.CreateIsNull(word), go_on, stops,
                        llvm::MDBuilder(context_).createBranchWeights(1 << 20, 1));
  builder_.SetInsertPoint(stops);
  auto* type = llvm::FunctionType::get(builder_.getInt32Ty(), {builder_.getPtrTy()}, false);
  leave(service(offsetof(LatheServices, stop), type, {frame_.call_state}));
}

namespace {

bool has_loops(const Stmt& body) {
  bool found = false;
  post_order(body, [&](const NodeRef& n) { found = found || n.is<For>() || n.is<While>(); });
  return found;
}

// `v` as something of which LLVM does not know how it was computed.
llvm::Value* opaque(llvm::IRBuilder<>& builder, llvm::Value* v) {
  auto* type = llvm::FunctionType::get(v->getType(), {v->getType()}, false);
  return builder.CreateCall(type, llvm::InlineAsm::get(type, "", "=r,0", /*hasSideEffects=*/false), {v});
}

}  // namespace

// The iterations from begin, which is below end, bottom-tested: invariants can be hoisted without a further rotation.
// Gives the first block; the insertion point is lost.
llvm::BasicBlock* KernelEmitter::run_of(const For& n, V begin, V end, bool asks, llvm::BasicBlock* after) {
  llvm::BasicBlock *before = builder_.GetInsertBlock(), *body = block(n.loop_var->name.c_str());
  builder_.SetInsertPoint(body);
  llvm::PHINode* counter = builder_.CreatePHI(begin->getType(), 2, n.loop_var->name);
  counter->addIncoming(begin, before);
  // In what a thread's iterations do, addresses are sums of the loops inside. LLVM would have pointers of its own for
  // them that go on from iteration to iteration, one for each constant distance, more than there are registers.
  counters_.insert(n.loop_var.get());
  frame_.values[n.loop_var.get()] =
      n.kind == ForKind::parallel && has_loops(n.body) ? opaque(builder_, counter) : counter;
  statement(n.body);
  if (terminated()) return body;
  const V next = builder_.CreateAdd(counter, llvm::ConstantInt::get(begin->getType(), 1), "", false, true);
  const V more = builder_.CreateICmpSLT(next, end);
  if (asks) {
    llvm::BasicBlock *question = block("question"), *again = block("again");
    builder_.CreateCondBr(more, question, after);
    builder_.SetInsertPoint(question);
    ask(again);
    builder_.SetInsertPoint(again);
    builder_.CreateBr(body);
    counter->addIncoming(next, again);
  } else {
    counter->addIncoming(next, builder_.GetInsertBlock());
    builder_.CreateCondBr(more, body, after);
  }
  return body;
}

// A loop around runs of `every` iterations. What a run needs beside the loop itself does not change in it.
void KernelEmitter::iterate_in_runs(const For& n, V begin, V end, int64_t every, llvm::BasicBlock* after) {
  llvm::BasicBlock *before = builder_.GetInsertBlock(), *run = block("run"), *done = block("run_done"),
                   *question = block("question"), *again = block("again");
  builder_.CreateBr(run);
  builder_.SetInsertPoint(run);
  llvm::PHINode* first = builder_.CreatePHI(begin->getType(), 2, "first");
  first->addIncoming(begin, before);
  const V length = llvm::ConstantInt::get(begin->getType(), static_cast<uint64_t>(every));
  const V left = builder_.CreateSub(end, first, "", false, true);
  const V stop =
      builder_.CreateAdd(first, builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, length), "", false, true);
  llvm::BasicBlock* body = run_of(n, first, stop, false, done);
  builder_.SetInsertPoint(run);
  builder_.CreateBr(body);
  builder_.SetInsertPoint(done);
  builder_.CreateCondBr(builder_.CreateICmpSLT(stop, end), question, after);
  builder_.SetInsertPoint(question);
  ask(again);
  builder_.SetInsertPoint(again);
  V next = stop;
  if (support::flip(llvm_run_overlaps)) next = builder_.CreateSub(stop, llvm::ConstantInt::get(stop->getType(), 1));
  first->addIncoming(next, again);
  builder_.CreateBr(run);
}

namespace {

// Memory of the heap that each iteration asks for before anything else, as much of it in all of them.
std::vector<const Allocate*> memory_of_iterations(const For& n) {
  std::vector<const Allocate*> found;
  std::unordered_set<const VarNode*> inner{n.loop_var.get()};
  for (const Stmt* s = &n.body;;) {
    if (const auto* a = s->as<Allocate>()) {
      bool is_steady = lies_on_heap(*a);
      for (const Expr& extent : a->extents)
        for (const Var& v : free_vars(extent)) is_steady = is_steady && inner.count(v.get()) == 0;
      if (is_steady) found.push_back(a);
      s = &a->body;
    } else if (const auto* let = s->as<LetStmt>()) {
      inner.insert(let->var.get());
      s = &let->body;
    } else if (const auto* data = s->as<AllocateConst>()) {
      s = &data->body;
    } else {
      return found;
    }
  }
}

}  // namespace

// Of a loop with at least one iteration; the insertion point is lost.
void KernelEmitter::iterate_entered(const For& n, V begin, V end, llvm::BasicBlock* after) {
  const auto poll = polls_.find(&n);
  if (poll != polls_.end() && poll->second.every > 1) return iterate_in_runs(n, begin, end, poll->second.every, after);
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* body = run_of(n, begin, end, poll != polls_.end(), after);
  builder_.SetInsertPoint(before);
  builder_.CreateBr(body);
}

// Goes to `after` when all is done. `is_entered`: there is at least one iteration. What each iteration allocates alike
// is allocated once.
void KernelEmitter::iterate(const For& n, V begin, V end, bool is_entered, llvm::BasicBlock* after) {
  if (!is_entered) {
    llvm::BasicBlock* enter = block("enter");
    builder_.CreateCondBr(builder_.CreateICmpSLT(begin, end), enter, after);
    builder_.SetInsertPoint(enter);
  }
  const std::vector<const Allocate*> memory = memory_of_iterations(n);
  if (memory.empty()) return iterate_entered(n, begin, end, after);
  llvm::BasicBlock* done = block("loop_done");
  for (const Allocate* a : memory) {
    allocate_on_heap(*a);
    frame_.allocated_ahead.insert(a->buffer_var.get());
  }
  iterate_entered(n, begin, end, done);
  builder_.SetInsertPoint(done);
  for (const Allocate* a : memory) {
    release(frame_.storages.at(a->buffer_var.get()).address);
    frame_.allocated_ahead.erase(a->buffer_var.get());
  }
  builder_.CreateBr(after);
}

// ---- parallel loops ----

namespace {

// What a body uses from outside, in order of first use.
struct Captures {
  std::vector<const VarNode*> variables;
  std::vector<llvm::Value*> values;
};

Captures captures_of(const For& n, const Frame& frame) {
  Captures captures;
  std::unordered_set<const VarNode*> seen;
  const auto look = [&](const NodeRef& node) {
    if (&node->node_class() != &node_class_of<VarNode>()) return;
    const auto* v = static_cast<const VarNode*>(node.get());
    if (!seen.insert(v).second) return;
    const auto storage = frame.storages.find(v);
    const auto value = frame.values.find(v);
    if (storage != frame.storages.end() && storage->second.address) {
      captures.variables.push_back(v);
      captures.values.push_back(storage->second.address);
    } else if (value != frame.values.end()) {
      captures.variables.push_back(v);
      captures.values.push_back(value->second);
    }
  };
  post_order(n.body, look);
  return captures;
}

}  // namespace

void KernelEmitter::parallel_loop(const For& n) {
  const V min = index_value(n.min), extent = index_value(n.extent);
  const Captures captures = captures_of(n, frame_);

  std::vector<llvm::Type*> fields = {builder_.getPtrTy(), builder_.getPtrTy(), min->getType()};
  for (const V v : captures.values) fields.push_back(v->getType());
  auto* closure_type = llvm::StructType::get(context_, fields);
  llvm::AllocaInst* closure =
      stack_slot(closure_type, "closure", module_.getDataLayout().getPrefTypeAlign(closure_type));
  const auto field = [&](V base, size_t number) {
    return builder_.CreateStructGEP(closure_type, base, static_cast<unsigned>(number));
  };
  builder_.CreateStore(frame_.services, field(closure, 0));
  builder_.CreateStore(frame_.call_state, field(closure, 1));
  builder_.CreateStore(min, field(closure, 2));
  for (size_t c = 0; c < captures.values.size(); ++c) builder_.CreateStore(captures.values[c], field(closure, c + 3));

  // The body, as a function of its own.
  auto* body_type = llvm::FunctionType::get(builder_.getVoidTy(),
                                            {builder_.getPtrTy(), builder_.getInt64Ty(), builder_.getInt64Ty()}, false);
  llvm::Function* body = declare(body_type, symbol_ + ".parallel", true);
  Frame outer = frame_;
  const auto return_to = builder_.saveIP();
  frame_.function = body;
  frame_.parallel_body = true;
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", body));
  const llvm::DebugLoc place = builder_.getCurrentDebugLocation();
  if (lines_) builder_.SetCurrentDebugLocation(lines_->begin(*body, kernel_.name + ".parallel", kernel_, &n));
  llvm::MDNode* invariant = llvm::MDNode::get(context_, {});
  const auto captured = [&](size_t number) {
    llvm::LoadInst* v = builder_.CreateLoad(fields[number], field(body->getArg(0), number));
    v->setMetadata(llvm::LLVMContext::MD_invariant_load, invariant);
    return v;
  };
  body->getArg(0)->addAttr(llvm::Attribute::NoAlias);
  frame_.services = captured(0);
  frame_.call_state = captured(1);
  const V first = captured(2);
  for (size_t c = 0; c < captures.variables.size(); ++c) {
    const V v = captured(c + 3);
    const auto storage = frame_.storages.find(captures.variables[c]);
    if (storage != frame_.storages.end()) {
      storage->second.address = v;
      storage->second.shared = true;
    } else {
      frame_.values[captures.variables[c]] = v;
    }
  }
  const V begin =
      builder_.CreateAdd(first, builder_.CreateIntCast(body->getArg(1), first->getType(), true), "", false, true);
  const V end =
      builder_.CreateAdd(first, builder_.CreateIntCast(body->getArg(2), first->getType(), true), "", false, true);
  begin_tiles(n.body);
  // A loop of one iteration a call would not be recognised from a constant extent: ranges vary.
  llvm::BasicBlock* after = block("after");
  iterate(n, begin, end, false, after);
  builder_.SetInsertPoint(after);
  builder_.CreateRetVoid();
  frame_ = std::move(outer);
  builder_.restoreIP(return_to);
  builder_.SetCurrentDebugLocation(place);

  auto* service_type = llvm::FunctionType::get(
      builder_.getInt32Ty(),
      {builder_.getPtrTy(), builder_.getPtrTy(), builder_.getPtrTy(), builder_.getInt64Ty(), builder_.getInt64Ty()},
      false);
  const V code = service(offsetof(LatheServices, parallel_for), service_type,
                         {frame_.call_state, body, closure, builder_.CreateIntCast(extent, builder_.getInt64Ty(), true),
                          builder_.getInt64(1)});
  llvm::BasicBlock *failed = block("parallel_failed"), *done = block("parallel_done");
  builder_.CreateCondBr(builder_.CreateIsNull(code), done, failed);
  builder_.SetInsertPoint(failed);
  leave(code);
  builder_.SetInsertPoint(done);
  restore_tiles();  // this thread may have run a part, and freed them
}

}  // namespace lathe::codegen
