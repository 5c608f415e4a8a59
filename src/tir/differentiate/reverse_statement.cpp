// Statements undone one by one: the way of any program, whatever it overwrites.
#include "ir/match.h"
#include "ir/structural.h"
#include "ir/visit.h"
#include "support/mutation.h"
#include "tir/analysis/regions.h"
#include "tir/codes.h"
#include "tir/differentiate/reverse.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(gradient_keeps_overwritten, "tir_test graph_test", "what a store overwrites is not put back");

namespace {

// What a store adds to the element it overwrites, or null where it does not keep it: buffer[at] + rest.
Expr added_part(const BufferStore& store) {
  const auto* sum = store.value.as<Add>();
  if (!sum) return {};
  const Expr own = ir::load(store.buffer, store.indices);
  const bool first = ir::structural_equal(sum->a, own), second = ir::structural_equal(sum->b, own);
  if (first == second) return {};
  const Expr rest = first ? sum->b : sum->a;
  return read_in(rest).count(store.buffer.get()) ? Expr() : rest;
}

class StatementReversal {
 public:
  StatementReversal(const Adjoints& adjoints, const BufferSet& taped) : adjoints_(adjoints), taped_(taped) {}

  Stmt forward(const Stmt& s) {
    return match(
        s,
        [&](const SeqStmt& n) {
          std::vector<Stmt> parts;
          for (const Stmt& part : n.seq) parts.push_back(forward(part));
          return seq(std::move(parts));
        },
        [&](const For& n) {
          loops_.push_back(&n);
          Stmt body = forward(n.body);
          loops_.pop_back();
          return Stmt(ir::make<For>(n.loop_var, n.min, n.extent, ForKind::serial, std::move(body)));
        },
        [&](const IfThenElse& n) {
          return Stmt(
              ir::make<IfThenElse>(n.condition, forward(n.then_case), n.else_case ? forward(n.else_case) : Stmt()));
        },
        [&](const BufferStore& n) {
          if (!taped_.count(n.buffer.get())) return s;
          const Expr old = ir::load(n.buffer, n.indices);
          return seq({Stmt(ir::make<BufferStore>(tape_of(n), old, place_on_tape())), s});
        },
        [&](const StmtNode&) { return s; });
  }

  Stmt backward(const Stmt& s) {
    return match(
        s,
        [&](const SeqStmt& n) {
          std::vector<Stmt> parts;
          for (size_t k = n.seq.size(); k-- > 0;) parts.push_back(backward(n.seq[k]));
          return seq(std::move(parts));
        },
        [&](const For& n) { return last_turn_first(n); },
        [&](const IfThenElse& n) {
          const Stmt then = backward(n.then_case), otherwise = n.else_case ? backward(n.else_case) : nop();
          if (is_nop(then) && is_nop(otherwise)) return nop();
          return Stmt(ir::make<IfThenElse>(n.condition, then, is_nop(otherwise) ? Stmt() : otherwise));
        },
        [&](const BufferStore& n) { return undo(n); }, [&](const StmtNode&) { return nop(); });
  }

  std::vector<Buffer> tapes_;

 private:
  Stmt last_turn_first(const For& n) {
    loops_.push_back(&n);
    Stmt body = backward(n.body);
    loops_.pop_back();
    if (is_nop(body)) return body;
    const Var turn = ir::var(n.loop_var->name, n.loop_var->dtype);
    const Expr first = ir::cast(turn->dtype, n.min), count = ir::cast(turn->dtype, n.extent);
    body = substitute(body, VarMap{{n.loop_var, first + count - 1 - (turn - first)}});
    return ir::make<For>(turn, n.min, n.extent, ForKind::serial, std::move(body));
  }

  Stmt undo(const BufferStore& n) {
    std::vector<Stmt> parts;
    if (taped_.count(n.buffer.get()) && !support::flip(gradient_keeps_overwritten))
      parts.push_back(ir::make<BufferStore>(n.buffer, ir::load(tape_of(n), place_on_tape()), n.indices));
    if (!adjoints_.has(n.buffer)) return seq(std::move(parts));
    const auto active = [&](const Buffer& b) { return adjoints_.has(b); };
    const Buffer& own = adjoints_.of(n.buffer);
    const Var g = ir::var("adjoint", own->dtype);
    std::vector<Stmt> steps;
    const Expr added = added_part(n);
    if (!added) steps.push_back(ir::make<BufferStore>(own, ir::constant(own->dtype, 0), n.indices));
    for (const Contribution& c : contributions(added ? added : n.value, g, active))
      steps.push_back(add_to_adjoint(c, adjoints_));
    if (steps.empty()) return seq(std::move(parts));
    parts.push_back(ir::make<LetStmt>(g, ir::load(own, n.indices), seq(std::move(steps))));
    return seq(std::move(parts));
  }

  // One place for each turn of the loops around.
  Buffer tape_of(const BufferStore& store) {
    Buffer& tape = tape_by_store_[&store];
    if (tape) return tape;
    Domains domains;
    std::vector<Expr> shape;
    for (const For* loop : loops_) {
      if (!read_in(loop->extent).empty() || !read_in(loop->min).empty())
        refuse_gradient("a loop whose bounds are data, and that overwrites what the gradient needs");
      const auto range = interval_of(loop->extent, domains);
      if (!range) refuse_gradient("a loop of unknown extent that overwrites what the gradient needs");
      shape.push_back(range->max);
      domains[loop->loop_var.get()] = Range{loop->min, loop->extent};
    }
    if (shape.empty()) shape.push_back(ir::int64(1));
    tape = ir::buffer(store.buffer->name + "_before" + std::to_string(tapes_.size()), std::move(shape),
                      store.buffer->dtype);
    tapes_.push_back(tape);
    return tape;
  }

  std::vector<Expr> place_on_tape() const {
    std::vector<Expr> at;
    for (const For* loop : loops_) at.push_back(loop->loop_var - ir::cast(loop->loop_var->dtype, loop->min));
    if (at.empty()) at.push_back(ir::int64(0));
    return at;
  }

  const Adjoints& adjoints_;
  const BufferSet& taped_;
  std::vector<const For*> loops_;
  std::unordered_map<const BufferStore*, Buffer> tape_by_store_;
};

}  // namespace

Stmt add_to_adjoint(const Contribution& c, const Adjoints& adjoints) {
  const Buffer& adjoint = adjoints.of(c.element->buffer);
  const std::vector<Expr>& at = c.element->indices;
  Stmt add = ir::make<BufferStore>(adjoint, ir::load(adjoint, at) + c.amount, at);
  return c.guard ? Stmt(ir::make<IfThenElse>(c.guard, std::move(add), Stmt())) : add;
}

BufferSet read_in(const NodeRef& root) {
  BufferSet found;
  if (root)
    ir::post_order(root, [&](const NodeRef& node) {
      if (const auto* load = node.as<BufferLoad>()) found.insert(load->buffer.get());
    });
  return found;
}

BufferSet stored_in(const NodeRef& root) {
  BufferSet found;
  ir::post_order(root, [&](const NodeRef& node) {
    if (const auto* store = node.as<BufferStore>()) found.insert(store->buffer.get());
  });
  return found;
}

BufferSet needed_by_reversal(const Stmt& plain, const Adjoints& adjoints) {
  // What is undone without a tape reads what is needed; adjoints and what they are added to are of no interest.
  const BufferSet none;
  StatementReversal reversal(adjoints, none);
  BufferSet all = read_in(reversal.backward(plain)), needed;
  ir::post_order(plain, [&](const NodeRef& node) {
    const auto add = [&](const Buffer& b) {
      if (all.count(b.get())) needed.insert(b.get());
    };
    if (const auto* load = node.as<BufferLoad>()) add(load->buffer);
  });
  // Where something is put back, its place must be known, and the conditions around it.
  ir::post_order(plain, [&](const NodeRef& node) {
    if (const auto* store = node.as<BufferStore>())
      for (const Expr& index : store->indices) merge(needed, read_in(index));
    if (const auto* branch = node.as<IfThenElse>()) merge(needed, read_in(branch->condition));
  });
  return needed;
}

ReversedStatement reverse_statement(const Stmt& plain, const Adjoints& adjoints, const BufferSet& taped) {
  ir::post_order(plain, [&](const NodeRef& node) {
    const auto* store = node.as<BufferStore>();
    if (store && taped.count(store->buffer.get()))
      for (const Expr& index : store->indices)
        if (read_in(index).count(store->buffer.get())) refuse_gradient("a store whose place is read where it stores");
  });
  StatementReversal reversal(adjoints, taped);
  Stmt forward = reversal.forward(plain);
  Stmt backward = fresh_copy(reversal.backward(plain));
  return {std::move(forward), std::move(backward), std::move(reversal.tapes_)};
}

void refuse_gradient(const std::string& construct) {
  throw support::DiagnosticError(support::Diagnostic{
      .code = codes::no_gradient, .message = "no gradient is made of a tensor program with " + construct});
}

}  // namespace lathe::tir
