// A call stands for the statements of the function that it is of. Where a whole buffer is passed for one of the same
// shape, the statements are over that buffer itself; else over a view of its memory.
#include "arith/analyzer.h"
#include "support/mutation.h"
#include "tir/analysis/calls.h"
#include "tir/analysis/regions.h"
#include "tir/codes.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(inline_calls_offset, "tir_test", "memory that is passed from an element on is taken from the first");
LATHE_FAULT(inline_calls_late_value, "tir_test", "a number is read where it is used, not where the call stands");

namespace {

// Calls of calls multiply: past this many in one function, something is wrong with the program.
constexpr int64_t most_calls = 10'000;

[[noreturn]] void refuse_call(const NodeRef& at, std::string message) {
  throw support::DiagnosticError(support::Diagnostic{.code = codes::wrong_call,
                                                     .place = at->origin() ? *at->origin() : support::Place(),
                                                     .message = std::move(message)});
}

Expr to_index(const Expr& e) { return cast(DType::int64(), e); }

// Elements from one step of each dimension to the next.
std::vector<Expr> strides_of(const BufferNode& buffer) {
  std::vector<Expr> strides(buffer.shape.size());
  Expr stride = int64(1);
  for (size_t d = strides.size(); d-- > 0;) {
    strides[d] = buffer.strides.empty() ? stride : to_index(buffer.strides[d]);
    stride = stride * to_index(buffer.shape[d]);
  }
  return strides;
}

// One call: what its arguments make of the callee's parameters.
class InlinedCall {
 public:
  using Buffers = std::unordered_map<const VarNode*, Buffer>;  // of the caller, by their addresses
  using Views = std::unordered_set<const BufferNode*>;         // of the caller's blocks
  InlinedCall(const Call& call, const Function& callee, const Buffers& buffers, const Views& views)
      : call_(call), callee_(*callee), name_(*callee_of(call)), buffers_(buffers), block_views_(views) {}

  Stmt statements() {
    for (size_t i = 0; i < callee_.params.size(); ++i)
      if (!callee_.buffer_of(callee_.params[i])) number(callee_.params[i], call_.args[i + 1]);
    for (const bool binds : {true, false})
      for (size_t i = 0; i < callee_.params.size(); ++i)
        if (const Buffer wanted = callee_.buffer_of(callee_.params[i])) memory(wanted, call_.args[i + 1], binds);
    Stmt body = without_root(fresh_copy(Memories(*this)(callee_.body), values_));
    for (auto view = views_.rbegin(); view != views_.rend(); ++view) body = make<DeclBuffer>(*view, std::move(body));
    checks_.push_back(std::move(body));
    body = seq(std::move(checks_));
    for (auto let = lets_.rbegin(); let != lets_.rend(); ++let)
      body = make<LetStmt>(let->first, let->second, std::move(body));
    return body;
  }

 private:
  // A root says nothing of what it touches. Where it allocates, it becomes a block of the caller's, which says it.
  Stmt without_root(Stmt body) const {
    const auto* root = body.as<BlockRealize>();
    if (!root || !root->iter_values.empty()) return body;
    const Block& block = *root->block;
    if (block.alloc_buffers.empty() && block.match_buffers.empty() && !block.init && block.annotations.empty())
      return block.body;
    return with(*root, [&](BlockRealize& copy) {
      copy.block = with(block, [&](Block& named) {
        named.name = name_;
        Regions touched = infer_regions(block);
        named.reads = std::move(touched.reads);
        named.writes = std::move(touched.writes);
      });
    });
  }

  void number(const Var& param, const Expr& given) {
    Expr value = given;
    if (const auto* whole = given.as<IntImm>()) value = constant(param->dtype, whole->value);
    if (const auto* real = given.as<FloatImm>()) value = constant(param->dtype, real->value);
    // What the callee stores must not change the number.
    bool reads = false;
    pre_order(value, [&](const NodeRef& n) {
      const auto* call = n.as<Call>();
      reads |= n.is<BufferLoad>() || (call && call->op->effect != Effect::pure);
      return !reads;
    });
    if (reads && !support::flip(inline_calls_late_value)) {
      lets_.emplace_back(var(param->name, param->dtype), value);
      value = lets_.back().first;
    }
    values_[param] = value;
  }

  // A symbol of the callee's layout takes the value that it has here.
  void bind(const Expr& symbol, const Expr& value) {
    const auto* name = symbol ? symbol.as<VarNode>() : nullptr;
    if (name && !values_.count(Var(name))) values_[Var(name)] = cast(symbol->dtype, value);
  }
  Expr known(const Buffer& wanted, const Expr& e) {
    for (const Var& v : free_vars(e))
      if (!values_.count(v))
        refuse_call(NodeRef(&call_), fmt::format("'{}' of buffer '{}' of '{}' cannot be told from this call", v->name,
                                                 wanted->name, name_));
    return to_index(ir::substitute(e, values_));
  }

  // First the symbols are bound, by all arguments, then the views are made.
  void memory(const Buffer& wanted, const Expr& given, bool binds) {
    const BufferLoad* element = passed_element(given);
    const auto found = element ? buffers_.end() : buffers_.find(given.as<VarNode>());
    if (!element && found == buffers_.end())
      refuse_call(NodeRef(&call_), fmt::format("'{}' is the address of no buffer that is known here",
                                               given.is<VarNode>() ? given.as<VarNode>()->name : "an argument"));
    const Buffer buffer = element ? element->buffer : found->second;
    std::vector<Expr> from = element ? element->indices : std::vector<Expr>(buffer->shape.size(), int64(0));
    const std::vector<Expr> strides = strides_of(*buffer);
    const size_t rank = wanted->shape.size();
    const bool same_rank = rank == buffer->shape.size();
    Expr offset = buffer->elem_offset ? to_index(buffer->elem_offset) : int64(0), first = int64(0);
    for (size_t d = 0; d < from.size(); ++d) first = first + to_index(from[d]) * strides[d];
    offset = offset + first;
    if (support::flip(inline_calls_offset)) offset = int64(0);
    if (binds) {
      for (size_t d = 0; same_rank && d < rank; ++d)
        bind(wanted->shape[d], to_index(buffer->shape[d]) - to_index(from[d]));
      for (size_t d = 0; same_rank && d < wanted->strides.size(); ++d) bind(wanted->strides[d], strides[d]);
      bind(wanted->elem_offset, offset);
      return;
    }
    std::vector<Expr> shape, steps;
    for (const Expr& extent : wanted->shape) shape.push_back(known(wanted, extent));
    for (const Expr& stride : wanted->strides) steps.push_back(known(wanted, stride));
    const bool compact = buffer->strides.empty() || all_equal(strides, strides_of(*without_strides(buffer)));
    if (!compact && (!same_rank || steps.empty() || !all_equal(steps, strides)))
      refuse_call(NodeRef(&call_), fmt::format("the rows of '{}' do not lie as '{}' of '{}' wants them", buffer->name,
                                               wanted->name, name_));
    check_size(wanted, buffer, shape, steps, from, first, compact);
    // Its own offset, where it is a number, comes on top.
    const bool told = wanted->elem_offset && wanted->elem_offset.is<VarNode>();
    if (wanted->elem_offset && !told) offset = offset + known(wanted, wanted->elem_offset);
    const bool same = steps.empty() && !wanted->elem_offset && !lies_apart(*buffer) && is_int(offset, 0) && same_rank &&
                      all_equal(shape, to_indices(buffer->shape)) && wanted->dtype == buffer->dtype;
    if (!same && block_views_.count(buffer.get()))
      refuse_call(NodeRef(&call_), fmt::format("'{}' is a view, and '{}' of '{}' is none of its shape", buffer->name,
                                               wanted->name, name_));
    if (!same)
      views_.push_back(with(*wanted, [&](BufferNode& copy) {
        copy.data = buffer->data;
        copy.shape = shape;
        copy.strides = steps;
        copy.elem_offset = is_int(offset, 0) ? Expr() : offset;
        copy.scope = buffer->scope;
      }));
    stands_for_[wanted.get()] = same ? buffer : views_.back();
    passed_[wanted->data.get()] = {wanted, buffer, offset};
  }

  // The callee's buffers in the caller's memory, before the callee's variables are replaced.
  class Memories : public Rewriter {
   public:
    explicit Memories(InlinedCall& call) : call_(call) {}

   protected:
    NodeRef visit(NodeRef node) override {
      if (const auto* buffer = node.as<BufferNode>()) return call_.here(Buffer(buffer));
      if (const auto* address = node.as<VarNode>())
        if (const auto it = call_.passed_.find(address); it != call_.passed_.end()) return call_.address(it->second);
      return descend(std::move(node));
    }

   private:
    InlinedCall& call_;
  };

  struct Passed {
    Buffer wanted, buffer;
    Expr offset;
  };

  Buffer here(const Buffer& buffer) {
    if (const auto it = stands_for_.find(buffer.get()); it != stands_for_.end()) return it->second;
    const auto passed = passed_.find(buffer->data.get());
    if (passed == passed_.end()) return buffer;
    // A view of a parameter's memory moves with it.
    const int64_t bits = passed->second.wanted->dtype.storage_bits(), own = buffer->dtype.storage_bits();
    Expr offset = passed->second.offset * int64(bits);
    offset = is_int(offset, 0) ? offset : arith::Analyzer().simplify(floordiv(offset, int64(own)));
    return stands_for_[buffer.get()] = with(*buffer, [&](BufferNode& copy) {
             copy.data = passed->second.buffer->data;
             copy.elem_offset = copy.elem_offset ? to_index(copy.elem_offset) + offset : offset;
             if (is_int(copy.elem_offset, 0)) copy.elem_offset = Expr();
           });
  }
  Expr address(const Passed& passed) {
    if (is_int(passed.offset, 0)) return passed.buffer->data;
    const Buffer view = stands_for_.at(passed.wanted.get());
    return ir::call(DType::handle(), intrinsic::address_of,
                    {load(view, std::vector<Expr>(view->shape.size(), int64(0)))});
  }

  // A whole buffer has the shape that is wanted; else what is reached lies inside the memory that is passed. Shown
  // here, or asserted where the call runs.
  void check_size(const Buffer& wanted, const Buffer& buffer, const std::vector<Expr>& shape,
                  const std::vector<Expr>& steps, const std::vector<Expr>& from, const Expr& first, bool compact) {
    const bool passes_all = std::all_of(from.begin(), from.end(), [](const Expr& i) { return is_int(i, 0); });
    Expr inside = constant(DType::boolean(), int64_t{1});
    const bool all = passes_all && shape.size() == buffer->shape.size();
    if (all) {
      for (size_t d = 0; d < shape.size(); ++d) inside = logical_and(inside, eq(shape[d], to_index(buffer->shape[d])));
    } else if (compact) {
      Expr needed = int64(1), there = int64(1);
      for (size_t d = 0; d < shape.size(); ++d)
        needed = steps.empty() ? needed * shape[d] : needed + (shape[d] - int64(1)) * steps[d];
      for (const Expr& extent : buffer->shape) there = there * to_index(extent);
      inside = le(first + needed, there);
    } else {
      for (size_t d = 0; d < shape.size(); ++d)
        inside = logical_and(inside, le(to_index(from[d]) + shape[d], to_index(buffer->shape[d])));
    }
    arith::Analyzer analyzer;
    inside = analyzer.simplify(inside);
    if (is_int(inside, 1)) return;
    const std::string message = fmt::format("'{}' of '{}' {} '{}'", wanted->name, name_,
                                            all ? "has another shape than" : "reaches past the end of", buffer->name);
    if (is_int(inside, 0)) refuse_call(NodeRef(&call_), message);
    checks_.push_back(make<AssertStmt>(inside, message));
  }

  static bool lies_apart(const BufferNode& buffer) { return !buffer.strides.empty() || buffer.elem_offset; }
  static Buffer without_strides(const Buffer& buffer) {
    return with(*buffer, [](BufferNode& copy) { copy.strides.clear(); });
  }
  static std::vector<Expr> to_indices(const std::vector<Expr>& shape) {
    std::vector<Expr> all;
    for (const Expr& extent : shape) all.push_back(to_index(extent));
    return all;
  }
  static bool all_equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    arith::Analyzer analyzer;
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const Expr& x, const Expr& y) {
      return structural_equal(x, y) || analyzer.can_prove_equal(x, y);
    });
  }

  const Call& call_;
  const PrimFunc& callee_;
  const std::string& name_;
  const Buffers& buffers_;
  const Views& block_views_;
  VarMap values_;
  std::vector<std::pair<Var, Expr>> lets_;
  std::vector<Stmt> checks_;
  std::vector<Buffer> views_;
  std::unordered_map<const BufferNode*, Buffer> stands_for_;  // of the callee, in the caller
  std::unordered_map<const VarNode*, Passed> passed_;         // by the callee's addresses
};

class CallInlining {
 public:
  explicit CallInlining(const IRModule& module) : module_(module) {}

  Function done(const std::string& name) {
    if (const auto it = done_.find(name); it != done_.end()) return it->second.function;
    const Function function = module_.find_as<PrimFunc>(name);
    Statements statements(*this, *function);
    const Stmt body = statements(function->body);
    const Function result =
        body.same_as(function->body) ? function : with(*function, [&](PrimFunc& copy) { copy.body = body; });
    done_[name] = {result, statements.calls};
    return result;
  }

 private:
  struct Statements : TirRewriter {
    Statements(CallInlining& module, const PrimFunc& function) : module(module) {
      const auto know = [&](const Buffer& buffer) { buffers.emplace(buffer->data.get(), buffer); };
      for (const auto& [param, buffer] : function.buffer_map) know(buffer);
      pre_order(function.body, [&](const NodeRef& n) {
        if (const auto* declared = n.as<DeclBuffer>()) know(declared->buffer);
        if (const auto* block = n.as<Block>()) {
          for (const Buffer& buffer : block->alloc_buffers) know(buffer);
          for (const MatchBufferRegion& view : block->match_buffers) views.insert(view->buffer.get());
        }
        return true;
      });
    }

    Stmt visit_stmt(Stmt s) override {
      const auto* evaluate = s.as<Evaluate>();
      const auto* call = evaluate ? evaluate->value.as<Call>() : nullptr;
      const std::string* callee = call ? callee_of(*call) : nullptr;
      if (!callee) return children(std::move(s));
      const Function function = module.done(*callee);
      calls += 1 + module.done_.at(*callee).calls;
      if (calls > most_calls)
        refuse_call(NodeRef(call), fmt::format("this function comes to more than {} calls", most_calls));
      return InlinedCall(*call, function, buffers, views).statements();
    }

    CallInlining& module;
    InlinedCall::Buffers buffers;
    InlinedCall::Views views;
    int64_t calls = 0;
  };

  struct Done {
    Function function;
    int64_t calls = 0;
  };
  const IRModule& module_;
  std::unordered_map<std::string, Done> done_;
};

}  // namespace

Result<IRModule> inline_calls(IRModule module, const PassContext&) {
  if (support::Diagnostics found = check_calls(module); !found.empty()) return found;
  return support::catch_diagnostics([&]() -> Result<IRModule> {
    IRModule result = module;
    CallInlining inlining(module);
    for (const auto& [name, function] : module)
      if (function.is<PrimFunc>()) result.set(name, inlining.done(name));
    return result;
  });
}

}  // namespace lathe::tir
