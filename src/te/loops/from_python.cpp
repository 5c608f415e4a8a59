#include "te/loops/from_python.h"

#include "te/codes.h"
#include "te/loops/read_loops.h"

namespace lathe::te {
namespace {

// x[i][j] as x[i, j], from the inside out: the tree's nodes come after their operands.
void merge_subscripts(script::syntax::Tree& tree) {
  using script::syntax::ExprKind;
  using Syntax = script::syntax::Expr;
  for (size_t i = 0, given = tree.exprs.size(); i < given; ++i) {
    Syntax& e = tree.exprs[i];
    if (e.kind != ExprKind::subscript || e.items[0]->kind != ExprKind::subscript) continue;
    const Syntax& inner = *e.items[0];
    if (inner.items[0]->kind != ExprKind::name) continue;
    Syntax& both = tree.exprs.add();
    both.kind = ExprKind::tuple;
    both.begin = inner.items[1]->begin;
    both.end = e.items[1]->end;
    std::vector<const Syntax*> indices;
    for (const Syntax* index : {inner.items[1], e.items[1]}) {
      both.depth = std::max(both.depth, index->depth + 1);
      if (index->kind == ExprKind::tuple)
        indices.insert(indices.end(), index->items.begin(), index->items.end());
      else
        indices.push_back(index);
    }
    both.items = tree.items.keep(indices);
    const Syntax* const parts[] = {inner.items[0], &both};
    e.items = tree.items.keep(parts);
  }
}

const script::syntax::Stmt& only_function(const script::syntax::Tree& tree) {
  std::vector<const script::syntax::Stmt*> found;
  for (const script::syntax::Stmt* s : tree.body)
    if (s->kind == script::syntax::StmtKind::function) found.push_back(s);
  if (found.size() != 1)
    throw support::DiagnosticError(
        support::Diagnostic{.code = codes::not_loops,
                            .place = support::TextRange{tree.source, 0, 0},
                            .message = found.empty() ? "the text has no function" : "the text has several functions"});
  return *found[0];
}

}  // namespace

support::Result<ir::IRModule> from_python(support::SourceText text, const std::vector<ParameterSpec>& parameters,
                                          const script::ParseOptions& options) {
  const auto source = std::make_shared<const support::SourceText>(std::move(text));
  return support::catch_diagnostics([&]() -> support::Result<ir::IRModule> {
    script::syntax::Tree tree = script::syntax::parse(source, options.indented);
    merge_subscripts(tree);
    const script::syntax::Stmt& def = only_function(tree);
    script::Context context{tree, options, LoopReader::builtins(), {}, {}, {}, {}};
    script::Scope scope;
    ir::IRModule module;
    module.set(def.name, LoopReader(context, scope).function(def, parameters));
    return module;
  });
}

}  // namespace lathe::te
