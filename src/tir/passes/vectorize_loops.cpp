#include "ir/match.h"
#include "support/mutation.h"
#include "tir/codes.h"
#include "tir/passes/passes.h"
#include "tir/passes/vectorize_expr.h"

namespace lathe::tir {

LATHE_FAULT(vectorize_loops_mask, "tir_test", "a guard inside a vectorized loop masks no store");

namespace {

// A loop of more lanes runs as a serial loop over vectors of this many, and a tail.
constexpr int64_t max_lanes = 64, chunk_lanes = 16;

// What a statement that cannot run in lanes says; caught where the loop falls back to a serial one.
struct NotVectorizable {
  std::string reason;
};

bool loads(const Expr& e) {
  bool found = false;
  post_order(e, [&](const NodeRef& n) { found |= n.is<BufferLoad>(); });
  return found;
}

// One body in lanes. `mask` is the condition under which a lane is active: null, or a bool vector.
class LaneStatements {
 public:
  LaneStatements(const Var& var, const Expr& min, int64_t lanes) : lanes_(lanes), values_(lanes) {
    values_.bind(var, make<Ramp>(min, constant(min->dtype, int64_t{1}), lanes));
  }

  Stmt run(const Stmt& s) {
    return match(
        s, [&](const BufferStore& n) { return store(n); },
        [&](const SeqStmt& n) {
          std::vector<Stmt> all;
          for (const Stmt& each : n.seq) all.push_back(run(each));
          return seq(std::move(all));
        },
        [&](const IfThenElse& n) { return guarded(n); },
        [&](const For& n) -> Stmt {
          const Expr min = lanes_of(n.min), extent = lanes_of(n.extent);
          if (min->dtype.is_vector() || extent->dtype.is_vector())
            throw NotVectorizable{
                fmt::format("loop '{}' inside runs a different number of times in each lane", n.loop_var->name)};
          if (n.kind == ForKind::thread_binding) throw NotVectorizable{"a loop over device threads is inside"};
          return with(n, [&](For& copy) {
            copy.min = min;
            copy.extent = extent;
            copy.body = run(n.body);
          });
        },
        [&](const LetStmt& n) {
          const Expr value = lanes_of(n.value);
          Var var = n.var;
          if (value->dtype.is_vector()) {
            var = make<VarNode>(n.var->name, value->dtype);
            values_.bind(n.var, var);
          }
          return Stmt(make<LetStmt>(var, value, run(n.body)));
        },
        [&](const AttrStmt& n) { return Stmt(with(n, [&](AttrStmt& copy) { copy.body = run(n.body); })); },
        [&](const Evaluate& n) -> Stmt {
          if (is_nop(s)) return s;
          const auto* call = n.value.as<Call>();
          if (call && call->op->effect == Effect::pure) return nop();
          throw NotVectorizable{fmt::format("'{}' has an effect of its own in every iteration",
                                            call ? call->op->name : std::string_view("an expression"))};
        },
        [&](const Allocate& n) { return allocate(n); },
        [&](const AllocateConst& n) { return Stmt(with(n, [&](AllocateConst& copy) { copy.body = run(n.body); })); },
        [&](const StmtNode& n) -> Stmt {
          throw NotVectorizable{fmt::format("it holds a {} statement", n.node_class().name)};
        });
  }

 private:
  Expr lanes_of(const Expr& e) {
    values_.mask = mask_;
    Expr result = values_(e);
    if (!values_.refusal.empty()) throw NotVectorizable{std::exchange(values_.refusal, {})};
    return result;
  }

  Stmt store(const BufferStore& n) {
    if (n.buffer->dtype.is_vector() || n.indices.size() != 1 || n.predicate || n.value->dtype.is_vector())
      throw NotVectorizable{fmt::format("'{}' is stored in vectors already", n.buffer->name)};
    const Expr value = lanes_of(n.value);
    const Expr index = lanes_of(n.indices[0]);
    if (index->dtype.is_scalar()) {
      // Every lane stores to one element.
      bool reads_itself = false;
      post_order(n.value, [&](const NodeRef& e) {
        if (const auto* load = e.as<BufferLoad>()) reads_itself |= load->buffer->data == n.buffer->data;
      });
      if (reads_itself)
        throw support::DiagnosticError(support::Diagnostic{
            .code = codes::vectorized_reduction,
            .message = fmt::format("a vectorized loop of {} iterations accumulates into one element of '{}'", lanes_,
                                   n.buffer->name),
            .help = "vectorize a spatial loop, or accumulate into one element a lane and combine them after the loop"});
      if (value->dtype.is_vector() || mask_)
        throw NotVectorizable{fmt::format("every iteration stores to the same element of '{}'", n.buffer->name)};
      return make<BufferStore>(n.buffer, value, std::vector<Expr>{index});
    }
    Expr predicate = mask_;
    if (support::flip(vectorize_loops_mask)) predicate = {};
    return make<BufferStore>(n.buffer, widen(value, lanes_), std::vector<Expr>{index}, predicate);
  }

  Stmt guarded(const IfThenElse& n) {
    const Expr condition = lanes_of(n.condition);
    if (condition->dtype.is_scalar())
      return make<IfThenElse>(condition, run(n.then_case), n.else_case ? run(n.else_case) : Stmt());
    // The stores under it may change what the condition reads: it is computed once, before them.
    const Var held = loads(condition) ? var("active", condition->dtype) : Var();
    const Expr active = held ? Expr(held) : condition;
    const Expr outer = mask_;
    const auto under = [&](const Expr& here, const Stmt& body) {
      mask_ = outer ? logical_and(outer, here) : here;
      Stmt result = run(body);
      mask_ = outer;
      return result;
    };
    std::vector<Stmt> cases{under(active, n.then_case)};
    if (n.else_case) cases.push_back(under(logical_not(active), n.else_case));
    const Stmt body = seq(std::move(cases));
    return held ? Stmt(make<LetStmt>(held, condition, body)) : body;
  }

  // Memory of each lane's own: element i of lane k is element i * lanes + k.
  Stmt allocate(const Allocate& n) {
    if (n.dtype.is_vector() || n.extents.size() != 1)
      throw NotVectorizable{fmt::format("'{}' inside it is allocated as vectors", n.buffer_var->name)};
    for (const Expr& extent : n.extents)
      if (lanes_of(extent)->dtype.is_vector())
        throw NotVectorizable{fmt::format("'{}' inside it has another size in each lane", n.buffer_var->name)};
    values_.own.insert(n.buffer_var.get());
    Stmt body = run(own_memory(n.body, n.buffer_var));
    return with(n, [&](Allocate& copy) {
      copy.extents = {mul(copy.extents[0], constant(copy.extents[0]->dtype, lanes_))};
      copy.body = std::move(body);
    });
  }

  // Accesses of the memory at `address` moved to this lane's element; the lane's number is a placeholder variable that
  // stands for the ramp of lanes.
  Stmt own_memory(const Stmt& body, const Var& address) {
    const Var lane = var("lane");
    values_.bind(lane, make<Ramp>(int64(0), int64(1), lanes_));
    std::unordered_map<const Node*, std::pair<NodeRef, Buffer>> grown;
    const auto larger = [&](const Buffer& buffer) {
      auto& slot = grown[buffer.get()];
      if (!slot.second) {
        slot.first = buffer;
        slot.second = with(*buffer, [&](BufferNode& copy) { copy.shape = {mul(copy.shape[0], int64(lanes_))}; });
      }
      return slot.second;
    };
    return rewrite_post_order(body, [&](NodeRef e) -> NodeRef {
      if (const auto* load = e.as<BufferLoad>(); load && load->buffer->data == address)
        return with(*load, [&](BufferLoad& copy) {
          copy.buffer = larger(copy.buffer);
          copy.indices = {copy.indices[0] * int64(lanes_) + lane};
        });
      if (const auto* store = e.as<BufferStore>(); store && store->buffer->data == address)
        return with(*store, [&](BufferStore& copy) {
          copy.buffer = larger(copy.buffer);
          copy.indices = {copy.indices[0] * int64(lanes_) + lane};
        });
      return e;
    });
  }

  int64_t lanes_;
  Expr mask_;
  LaneValues values_;
};

class LoopVectorization : public TirRewriter {
 public:
  explicit LoopVectorization(const PassContext& context) : context_(context) {}

 protected:
  Stmt visit_stmt(Stmt s) override {
    const Stmt rewritten = children(std::move(s));
    const auto* loop = rewritten.as<For>();
    if (!loop || loop->kind != ForKind::vectorized) return rewritten;
    const auto extent = as_int(loop->extent);
    if (!extent) return serial(*loop, "its extent is not constant");
    if (*extent <= 0) return nop();
    if (*extent == 1) return fold_constants(substitute(loop->body, {{loop->loop_var, loop->min}}));
    try {
      if (*extent <= max_lanes) return in_lanes(*loop, loop->body, loop->min, *extent);
      return in_chunks(*loop, *extent);
    } catch (const NotVectorizable& refusal) {
      return serial(*loop, refusal.reason);
    }
  }

 private:
  static Stmt in_lanes(const For& loop, const Stmt& body, const Expr& min, int64_t lanes) {
    return LaneStatements(loop.loop_var, min, lanes).run(body);
  }

  static Stmt in_chunks(const For& loop, int64_t extent) {
    const Var chunk = make<VarNode>(loop.loop_var->name + "_chunk", loop.loop_var->dtype);
    const Expr first = loop.min + chunk * constant(chunk->dtype, chunk_lanes);
    Stmt main = make<For>(chunk, constant(chunk->dtype, int64_t{0}), constant(chunk->dtype, extent / chunk_lanes),
                          ForKind::serial, in_lanes(loop, loop.body, first, chunk_lanes));
    const int64_t tail = extent % chunk_lanes, done = extent - tail;
    if (tail == 0) return main;
    const Expr rest = loop.min + constant(loop.min->dtype, done);
    const Stmt body = fresh_copy(loop.body);
    if (tail == 1) return seq({main, fold_constants(substitute(body, {{loop.loop_var, rest}}))});
    return seq({main, in_lanes(loop, body, rest, tail)});
  }

  Stmt serial(const For& loop, std::string reason) {
    context_.remark("vectorize_loops", loop.loop_var->name, std::move(reason));
    return with(loop, [](For& copy) { copy.kind = ForKind::serial; });
  }

  const PassContext& context_;
};

}  // namespace

Result<IRModule> vectorize_loops(IRModule module, const PassContext& context) {
  return on_each_body(std::move(module), context,
                      [](const Stmt& body, const PassContext& own) { return LoopVectorization(own)(body); });
}

}  // namespace lathe::tir
