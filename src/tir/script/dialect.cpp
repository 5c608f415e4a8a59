#include "tir/script/dialect.h"

#include <set>
#include <sstream>

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

// Notes where statements begin while it prints.
class NotingDialect : public TirDialect {
 public:
  explicit NotingDialect(std::map<std::string, TextWithLines::Lines>& lines) : lines_(lines) {}

  void print_function(const std::string& name, const ir::BaseFunc& function, script::Lines& lines,
                      const script::PrintOptions& options) const override {
    const size_t decorator = lines.count();
    FunctionPrinter printer(lines, options);
    printer.function(name, *function.as<PrimFunc>());
    TextWithLines::Lines& noted = lines_[name];
    for (const auto& [node, line] : printer.first_lines()) noted.emplace(node, static_cast<uint32_t>(line + 1));
    noted[function.get()] = static_cast<uint32_t>(decorator + 2);
  }

 private:
  std::map<std::string, TextWithLines::Lines>& lines_;
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

TextWithLines text_with_lines(const ir::IRModule& module) {
  TextWithLines made;
  const NotingDialect noting(made.lines);
  const script::Dialect* dialects[] = {&noting};
  made.text = script::print(module, {}, dialects);
  return made;
}

std::string excerpt(const Function& function, const std::string& name, const std::vector<const Node*>& statements) {
  constexpr size_t around = 2;
  script::Lines lines(4);
  FunctionPrinter printer(lines, {});
  printer.function(name, *function);
  const std::unordered_map<const Node*, size_t> begins = printer.first_lines();
  std::set<size_t> marked, shown;
  for (const Node* statement : statements)
    if (const auto it = begins.find(statement); it != begins.end()) {
      marked.insert(it->second);
      for (size_t line = it->second < around ? 0 : it->second - around; line <= it->second + around; ++line)
        shown.insert(line);
    }
  std::string text;
  std::istringstream all(lines.str());
  std::string line;
  bool skipped = false;
  for (size_t number = 0; std::getline(all, line); ++number) {
    if (!shown.count(number)) {
      skipped = true;
      continue;
    }
    if (skipped && !text.empty()) text += "\n  ...";
    skipped = false;
    if (!text.empty()) text += "\n";
    text += fmt::format("{} {}", marked.count(number) ? ">" : " ", line);
  }
  return text;
}

std::string statement_text(const Stmt& s) { return *script_dialect().print_fragment(s, {}); }

}  // namespace lathe::tir
