#include "schedule/primitives/rewrite.h"

#include "ir/visit.h"
#include "schedule/analysis/dependence.h"

namespace lathe::schedule {

namespace {

// Whether statements other than loops and sequences stand outside blocks.
bool only_blocks(const Stmt& s) {
  if (const auto* loop = s.as<For>()) return only_blocks(loop->body);
  if (const auto* sequence = s.as<SeqStmt>())
    return std::all_of(sequence->seq.begin(), sequence->seq.end(), only_blocks);
  return s.is<BlockRealize>();
}

class ReplaceBuffer : public Rewriter {
 public:
  ReplaceBuffer(const Buffer& from, const Buffer& to) : from_(from), to_(to) {}

 protected:
  NodeRef visit(NodeRef node) override {
    if (node.get() == static_cast<const Node*>(from_.get())) return to_;
    if (node->node_class().has_identity) return node;
    return descend(std::move(node));
  }

 private:
  const Buffer &from_, &to_;
};

class Simplify : public Rewriter {
 public:
  // What is known of predicates, and of values.
  Simplify(arith::Analyzer& analyzer, arith::Analyzer& of_values) : analyzer_(analyzer), of_values_(of_values) {}

 protected:
  NodeRef visit(NodeRef node) override {
    if (node->node_class().family != "stmt") return node;
    if (const auto* loop = node.as<For>()) {
      analyzer_.bind(loop->loop_var, Range{loop->min, loop->extent});
      if (&of_values_ != &analyzer_ && !is_int(loop->extent, 1))
        of_values_.bind(loop->loop_var, Range{loop->min, loop->extent});
      return descend(std::move(node));
    }
    if (const auto* realize = node.as<BlockRealize>()) {
      std::vector<Expr> values;
      bool changed = false;
      for (const Expr& value : realize->iter_values) {
        values.push_back(of_values_.simplify(value));
        changed = changed || values.back().get() != value.get();
      }
      Expr predicate = analyzer_.simplify(realize->predicate);
      // It speaks of the same variables as the values, whose domains it may be.
      if (!is_int(predicate, 1)) predicate = of_values_.simplify(realize->predicate);
      if (!changed && predicate.get() == realize->predicate.get()) return node;
      return with(*realize, [&](BlockRealize& copy) {
        copy.iter_values = std::move(values);
        copy.predicate = predicate;
      });
    }
    return descend(std::move(node));
  }

 private:
  arith::Analyzer &analyzer_, &of_values_;
};

}  // namespace

std::string_view kind_name(ForKind kind) {
  switch (kind) {
    case ForKind::serial:
      return "serial";
    case ForKind::parallel:
      return "parallel";
    case ForKind::vectorized:
      return "vectorized";
    case ForKind::unrolled:
      return "unrolled";
    case ForKind::thread_binding:
      return "bound to a thread axis";
  }
  return "?";
}

Result<Path> serial_loop(const Program& program, Id loop, std::string_view verb) {
  Path path = path_to(program.function->body, loop);
  const For* node = path.empty() ? nullptr : path.back().as<For>();
  if (!node) return refuse(codes::gone, fmt::format("{}: the loop is not in the function", verb));
  if (node->kind != ForKind::serial)
    return refuse(codes::loop_kind,
                  fmt::format("cannot {} {}: it is already {}", verb, name_of(*node), kind_name(node->kind)));
  return path;
}

Result<Path> block_path(const Program& program, Id block) {
  Path path = path_to(program.function->body, block);
  if (path.empty() || !path.back().is<BlockRealize>()) return refuse(codes::gone, "the block is not in the function");
  return path;
}

bool in_init(const Path& path) {
  for (size_t i = 0; i + 1 < path.size(); ++i)
    if (const auto* block = path[i].as<Block>(); block && block->init == path[i + 1]) return true;
  return false;
}

std::optional<std::string> undecided_above(const Path& path, const For* inside) {
  for (size_t at = path.size() - 1; at-- > 0 && !path[at].is<Block>();) {
    if (path[at].is<IfThenElse>()) return "inside an if";
    if (path[at].is<While>()) return "inside a while loop";
    if (!path[at].is<For>() && !path[at].is<SeqStmt>() && !path[at].is<BlockRealize>())
      return fmt::format("inside a statement of kind {}", path[at]->node_class().name);
    if (path[at].as<For>() == inside && inside) break;
  }
  return std::nullopt;
}

Stmt guarded(const Stmt& body, const Expr& condition) {
  if (is_int(condition, 1)) return body;
  if (!only_blocks(body)) return make<IfThenElse>(condition, body, Stmt());
  std::vector<std::pair<Stmt, Stmt>> edits;
  for (const Ref<BlockRealize>& realize : outer_blocks(body))
    edits.emplace_back(realize, with(*realize, [&](BlockRealize& copy) {
                         copy.predicate =
                             is_int(copy.predicate, 1) ? condition : logical_and(copy.predicate, condition);
                       }));
  return replace_all(body, edits);
}

Stmt simplified(const Stmt& root, const Path& path, bool preserve_unit_iters) {
  arith::Analyzer analyzer, open;  // the second knows nothing of loops of one iteration
  for (const Stmt& s : path) {
    if (s == root) break;
    if (const auto* loop = s.as<For>()) {
      analyzer.bind(loop->loop_var, Range{loop->min, loop->extent});
      if (!is_int(loop->extent, 1)) open.bind(loop->loop_var, Range{loop->min, loop->extent});
    }
    if (const auto* block = s.as<Block>())
      for (const IterVar& iter : block->iter_vars)
        for (arith::Analyzer* each : {&analyzer, &open}) each->bind(iter->var, iter->dom);
  }
  return Simplify(analyzer, preserve_unit_iters ? open : analyzer)(root);
}

Stmt with_buffer(const Stmt& root, const Buffer& from, const Buffer& to) { return ReplaceBuffer(from, to)(root); }

Stmt with_allocation(const Stmt& root, const BlockRealize& scope, const Buffer& buffer) {
  return replace(root, Stmt(&scope), with(scope, [&](BlockRealize& copy) {
                   copy.block = with(*scope.block, [&](Block& block) { block.alloc_buffers.push_back(buffer); });
                 }));
}

Stmt realize(std::vector<Expr> values, Expr predicate, Ref<Block> block) {
  return make<BlockRealize>(std::move(values), std::move(predicate), std::move(block));
}

Edit edit(const Program& program, const Stmt& target, const Stmt& replacement, Id next, std::vector<Id> created) {
  return edited(program, with_body(program.function, replace(program.function->body, target, replacement)), next,
                std::move(created));
}

Stmt loop_over(const Var& v, Expr extent, Stmt body, Id id) {
  return make<For>(v, int64(0), std::move(extent), ForKind::serial, std::move(body), IterVar(), Attributes(), id);
}

Stmt copied_nest(const std::vector<const For*>& loops, const VarMap& fresh, Stmt body, Id& next) {
  for (size_t i = loops.size(); i-- > 0;)
    body = with(*loops[i], [&](For& copy) {
      copy.loop_var = cast<VarNode>(fresh.at(loops[i]->loop_var));
      copy.min = substitute(copy.min, fresh);
      copy.extent = substitute(copy.extent, fresh);
      if (copy.kind == ForKind::parallel) copy.kind = ForKind::serial;
      if (copy.thread_binding)
        copy.thread_binding =
            with(*copy.thread_binding, [](IterVarNode& iter) { iter.var = with(*iter.var, [](VarNode&) {}); });
      copy.body = body;
      copy.annotations = {};
      copy.id = next++;
    });
  return body;
}

std::optional<Diagnostic> refuse_touched_before(const Program& program, const For& loop, const Buffer& buffer,
                                                const Block& block, std::string_view verb) {
  if (!program.proves) return std::nullopt;
  const std::vector<Access> all = accesses(Stmt(&loop));
  const AccessList others = accesses_of_others(all, buffer, block);
  if (others.empty()) return std::nullopt;
  AccessList own;
  bool starts = false;
  for (const Access* access : accesses_of(all, buffer, block)) starts = starts || access->is_init;
  for (const Access* access : accesses_of(all, buffer, block))
    if (access->writes && access->is_init == starts) own.push_back(access);
  const Conflict conflict =
      find_conflict(others, own, {}, ranges_around(*program.function, loop.id),
                    [&](const Access& other, const VarMap& there, const Access& mine, const VarMap& here) {
                      Expr counts = comes_before(other, there, mine, here);
                      const BlockInstance& instance = *instance_of(mine, block);
                      for (size_t i = 0; mine.is_init && i < instance.values.size(); ++i)
                        if (const IterVar& iter = block.iter_vars[i]; iter->type != IterType::spatial)
                          counts = logical_and(counts, eq(substitute(instance.values[i], here), iter->dom.min));
                      return counts;
                    });
  if (!conflict) return std::nullopt;
  Diagnostic problem =
      refuse(codes::dependence, fmt::format("cannot {} {}: another block inside {} touches '{}' before", verb,
                                            name_of(block), name_of(loop), buffer->name));
  conflict.explain(problem);
  return problem;
}

std::optional<Diagnostic> refuse_dependent(const Program& program, const For& loop, std::string_view verb) {
  if (!program.proves) return std::nullopt;
  const std::vector<Carried> carried = carried_by(loop, *program.function, program.proofs);
  if (carried.empty()) return std::nullopt;
  Diagnostic problem =
      refuse(codes::dependence, fmt::format("cannot {} {}: {}", verb, name_of(loop), carried[0].reason));
  // Of a sum it is known that its terms meet, but not yet where.
  const bool sums = carried[0].is_reduction();
  const Conflict met = sums ? iterations_that_meet(loop, *program.function, carried[0].buffer) : carried[0].conflict;
  if (!sums || met.outcome == arith::PointSearch::found) met.explain(problem);
  for (size_t i = 1; i < carried.size(); ++i) problem.note(carried[i].reason);
  if (sums)
    problem.help = fmt::format("split the loop and use rfactor to give each {} its own partial result",
                               verb == "vectorize" ? "lane" : "iteration");
  return problem;
}

}  // namespace lathe::schedule
