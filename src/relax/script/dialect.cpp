#include "relax/script/dialect.h"

#include "relax/script/print_function.h"
#include "relax/script/read_function.h"

namespace lathe::relax {
namespace {

class RelaxDialect : public script::Dialect {
 public:
  explicit RelaxDialect(const OperatorTable* operators) : operators_(operators) {}

  bool owns(const ir::BaseFunc& function) const override { return function.is<FunctionNode>(); }

  void print_function(const std::string& name, const ir::BaseFunc& function, script::Lines& lines,
                      const script::PrintOptions& options) const override {
    FunctionPrinter(lines, options).function(name, *function.as<FunctionNode>());
  }

  std::optional<std::string> print_fragment(const NodeRef& node, const script::PrintOptions& options) const override {
    script::Lines lines(options.indent_spaces);
    FunctionPrinter printer(lines, options);
    if (const auto* f = node.as<FunctionNode>()) {
      printer.function("main", *f);
      return lines.str();
    }
    static constexpr std::string_view families[] = {StructInfoNode::family, ExprNode::family, BindingNode::family,
                                                    BindingBlockNode::family};
    if (std::find(std::begin(families), std::end(families), node->node_class().family) == std::end(families))
      return std::nullopt;
    return printer.fragment(node);
  }

  std::string_view name() const override { return "relax"; }
  bool reads(std::string_view decorator) const override { return decorator == "function"; }
  Value declare(script::Context& context, const script::syntax::Stmt& def) const override {
    return FunctionReader(context, *operators_).signature(def);
  }
  ir::BaseFunc read_function(script::Context& context, const script::syntax::Stmt& def) const override {
    return FunctionReader(context, *operators_).function(def);
  }

 private:
  const OperatorTable* operators_;
};

}  // namespace

std::unique_ptr<script::Dialect> script_dialect(const OperatorTable& operators) {
  return std::make_unique<RelaxDialect>(&operators);
}

std::string graph_text(const NodeRef& node) {
  static const OperatorTable none;
  return script_dialect(none)->print_fragment(node, {}).value_or(std::string(node->node_class().name));
}

}  // namespace lathe::relax
