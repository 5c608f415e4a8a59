#include "script/print.h"

#include "script/expr_printer.h"

namespace lathe::script {
namespace {

void print_one(const std::string& name, const ir::BaseFunc& function, Lines& lines, const PrintOptions& options,
               Dialects dialects) {
  for (const Dialect* dialect : dialects)
    if (dialect->owns(function)) return dialect->print_function(name, function, lines, options);
  lines.line("# " + name + ": a function of a dialect that was not given");
}

void print_preamble(Lines& lines, const PrintOptions& o) {
  lines.line(version_line());
  lines.line("from lathe.script import ir as " + o.ir_prefix + ", relax as " + o.relax_prefix + ", tir as " +
             o.tir_prefix);
  lines.blank();
  lines.blank();
}

}  // namespace

std::string version_line() { return "# lathe script " + std::to_string(format_version); }

std::string print(const ir::IRModule& module, const PrintOptions& options, Dialects dialects) {
  Lines lines(options.indent_spaces);
  print_preamble(lines, options);
  lines.line("@" + options.ir_prefix + ".ir_module");
  lines.line("class " + options.module_name + ":");
  lines.indent();
  if (!module.attrs.empty()) {
    Names names;
    ExprPrinter printer(options, names);
    lines.line(options.ir_prefix + ".module_attrs(" + printer.attributes(module.attrs).text + ")");
  }
  bool first = module.attrs.empty();
  for (const auto& [name, function] : module) {
    if (!std::exchange(first, false)) lines.blank();
    print_one(name, function, lines, options, dialects);
  }
  if (first) lines.line("pass");
  return lines.str();
}

std::string print_function(const std::string& name, const ir::BaseFunc& function, const PrintOptions& options,
                           Dialects dialects) {
  Lines lines(options.indent_spaces);
  print_preamble(lines, options);
  print_one(name, function, lines, options, dialects);
  return lines.str();
}

std::string print(const ir::NodeRef& node, const PrintOptions& options, Dialects dialects) {
  if (!node) return "None";
  for (const Dialect* dialect : dialects)
    if (auto text = dialect->print_fragment(node, options)) return *text;
  Names names;
  ExprPrinter printer(options, names);
  return printer.value(ir::Value(node)).text;
}

void print_header(Lines& lines, const std::string& decorator, std::vector<std::string> decoration,
                  const std::string& name, const std::string& signature) {
  const bool plain = is_identifier(name);
  if (!plain) decoration.push_back("name=" + string_literal(name).text);
  lines.line("@" + decorator + (decoration.empty() ? "" : "(" + join(decoration) + ")"));
  lines.line("def " + (plain ? name : Names::legal(name)) + signature);
}

}  // namespace lathe::script
