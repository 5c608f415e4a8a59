#include "tir/script/dialect.h"

#include "script/print.h"
#include "tir/script/print_function.h"
#include "tir/script/read_function.h"

namespace lathe::tir {
namespace {

class TirDialect : public script::Dialect {
 public:
  bool owns(const ir::BaseFunc& function) const override { return function.is<PrimFunc>(); }

  void print_function(const std::string& name, const ir::BaseFunc& function, script::Lines& lines,
                      const script::PrintOptions& options) const override {
    FunctionPrinter(lines, options).function(name, *function.as<PrimFunc>());
  }

  std::optional<std::string> print_fragment(const NodeRef& node, const script::PrintOptions& options) const override {
    script::Lines lines(options.indent_spaces);
    if (const auto* f = node.as<PrimFunc>())
      FunctionPrinter(lines, options).function("main", *f);
    else if (node->node_class().family == StmtNode::family)
      FunctionPrinter(lines, options).fragment(ir::detail::narrow<StmtNode>(node));
    else
      return std::nullopt;
    return lines.str();
  }

  std::string_view name() const override { return "tir"; }
  bool reads(std::string_view decorator) const override { return decorator == "prim_func"; }
  Value declare(script::Context&, const script::syntax::Stmt&) const override { return {}; }
  ir::BaseFunc read_function(script::Context& context, const script::syntax::Stmt& def) const override {
    return FunctionReader(context).function(def);
  }
};

}  // namespace

const script::Dialect& script_dialect() {
  static const TirDialect dialect;
  return dialect;
}

std::string function_text(const Function& function, const std::string& name) {
  const script::Dialect* dialects[] = {&script_dialect()};
  return script::print_function(name, function, {}, dialects);
}

std::string statement_text(const Stmt& s) { return *script_dialect().print_fragment(s, {}); }

}  // namespace lathe::tir
