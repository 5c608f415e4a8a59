#include "script/evaluate.h"

#include "script/expr_reader.h"

namespace lathe::script {

support::Result<ir::Value> evaluate(support::SourceText text, const std::map<std::string, ir::Value>& names,
                                    const ParseOptions& options) {
  return support::catch_diagnostics([&]() -> support::Result<ir::Value> {
    syntax::Tree tree;
    tree.source = std::make_shared<const support::SourceText>(std::move(text));
    const auto size = static_cast<uint32_t>(tree.source->text.size());
    const syntax::Expr& expression = syntax::parse_expression(tree, 0, size);
    Context context{tree, options, options.aliases, {}, {}, {}, {}};
    Scope scope;
    for (const auto& [name, value] : names) scope.define(name, value, 0, size);
    return ExprReader(context, scope).value(expression);
  });
}

}  // namespace lathe::script
