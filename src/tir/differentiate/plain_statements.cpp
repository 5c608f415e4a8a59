#include "tir/differentiate/plain_statements.h"

#include "ir/match.h"
#include "ir/visit.h"
#include "tir/differentiate/reverse.h"

namespace lathe::tir {

namespace {

constexpr int longest_repeated = 24;  // nodes of a let's value that may be computed at each of its uses

int count_nodes(const NodeRef& root) {
  int n = 0;
  ir::post_order(root, [&](const NodeRef&) { ++n; });
  return n;
}

class Plain {
 public:
  Stmt visit(const Stmt& s) {
    return match(
        s,
        [&](const SeqStmt& n) {
          std::vector<Stmt> parts;
          for (const Stmt& part : n.seq) parts.push_back(visit(part));
          return seq(std::move(parts));
        },
        [&](const For& n) { return Stmt(ir::make<For>(n.loop_var, n.min, n.extent, ForKind::serial, visit(n.body))); },
        [&](const IfThenElse& n) { return branch(n); }, [&](const BufferStore& n) { return store(s, n); },
        [&](const LetStmt& n) { return let(n); }, [&](const BlockRealize& n) { return realize(n); },
        [&](const AttrStmt& n) { return visit(n.body); },
        [&](const DeclBuffer& n) {
          if (n.buffer->data) refuse_gradient("views of buffers");
          temporary_.push_back(n.buffer);
          return visit(n.body);
        },
        [&](const AssertStmt&) { return nop(); },
        [&](const Evaluate& n) {
          if (!is_nop(s) && n.value.is<Call>()) refuse_gradient("calls");
          return nop();
        },
        [&](const StmtNode& n) -> Stmt { refuse_gradient("the statement " + std::string(n.node_class().name)); });
  }

  std::vector<Buffer> temporary_;

 private:
  static Stmt store(const Stmt& s, const BufferStore& n) {
    if (n.predicate || n.value->dtype.is_vector()) refuse_gradient("vectors");
    return s;
  }

  // `value` in a buffer of its own, and how it is read there.
  std::pair<Stmt, Expr> kept(const Expr& value, const std::string& name) {
    const Buffer place = ir::buffer(name + std::to_string(temporary_.size()), {ir::int64(1)}, value->dtype);
    temporary_.push_back(place);
    return {ir::make<BufferStore>(place, value, std::vector<Expr>{ir::int64(0)}), ir::load(place, {ir::int64(0)})};
  }

  Stmt branch(const IfThenElse& n) {
    Stmt then = visit(n.then_case), otherwise = n.else_case ? visit(n.else_case) : Stmt();
    if (!reads_what_is_stored(n.condition, n.then_case) &&
        !(n.else_case && reads_what_is_stored(n.condition, n.else_case)))
      return ir::make<IfThenElse>(n.condition, std::move(then), std::move(otherwise));
    auto [keep, condition] = kept(n.condition, "condition");
    return seq({keep, ir::make<IfThenElse>(condition, std::move(then), std::move(otherwise))});
  }

  Stmt let(const LetStmt& n) {
    int uses = 0;
    ir::post_order(n.body, [&](const NodeRef& node) { uses += node.same_as(n.var); });
    const bool is_short = uses < 2 || count_nodes(n.value) <= longest_repeated;
    if (is_short && !reads_what_is_stored(n.value, n.body)) return visit(substitute(n.body, VarMap{{n.var, n.value}}));
    auto [keep, value] = kept(n.value, n.var->name);
    return seq({keep, visit(substitute(n.body, VarMap{{n.var, value}}))});
  }

  Stmt realize(const BlockRealize& n) {
    const Block& block = *n.block;
    if (!block.match_buffers.empty()) refuse_gradient("views of buffers");
    temporary_.insert(temporary_.end(), block.alloc_buffers.begin(), block.alloc_buffers.end());
    VarMap values;
    Expr is_first = ir::boolean(true);
    for (size_t k = 0; k < block.iter_vars.size(); ++k) {
      const IterVarNode& iter = *block.iter_vars[k];
      values[iter.var] = n.iter_values[k];
      if (iter.type == IterType::reduce) is_first = ir::logical_and(is_first, ir::eq(n.iter_values[k], iter.dom.min));
    }
    std::vector<Stmt> parts;
    if (block.init) {
      const Stmt init = visit(substitute(block.init, values));
      parts.push_back(ir::is_int(is_first, 1) ? init : Stmt(ir::make<IfThenElse>(is_first, init, Stmt())));
    }
    parts.push_back(visit(substitute(block.body, values)));
    Stmt all = seq(std::move(parts));
    return ir::is_int(n.predicate, 1) ? all : Stmt(ir::make<IfThenElse>(n.predicate, std::move(all), Stmt()));
  }
};

}  // namespace

bool reads_what_is_stored(const Expr& e, const Stmt& s) {
  const BufferSet stored = stored_in(s), read = read_in(e);
  return std::any_of(read.begin(), read.end(), [&](const auto& buffer) { return stored.count(buffer) != 0; });
}

PlainStatement plain_statement(const Stmt& s) {
  Plain plain;
  Stmt statement = plain.visit(s);
  return {std::move(statement), std::move(plain.temporary_)};
}

}  // namespace lathe::tir
