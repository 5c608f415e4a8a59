// Graph expressions as text.
#include "ir/match.h"
#include "relax/call_tir.h"
#include "relax/script/print_function.h"
#include "script/constant_text.h"

namespace lathe::relax {

using script::join;
using script::string_literal;

std::string FunctionPrinter::variable_of(const Expr& e) {
  if (!names.find(e.get())) names.define_outermost(e, e.as<VarNode>()->name);
  return *names.find(e.get());
}

std::vector<std::string> FunctionPrinter::arguments(const std::vector<Expr>& args) {
  std::vector<std::string> texts;
  for (const Expr& arg : args) texts.push_back(arg ? expression(arg).text : "None");
  return texts;
}

// Attributes as keywords, those that have the operator's default left out.
void FunctionPrinter::add_attributes(const Call& n, std::vector<std::string>& arguments) {
  if (!n.attributes) return;
  const Operator* op = callee_operator(n);
  ir::Value::Map defaults;
  if (op && op->attributes) {
    const AttributesRef known = op->attributes->defaults();
    known->node_class().visit_fields(*known,
                                     [&](std::string_view name, const Value& v) { defaults[std::string(name)] = v; });
  }
  n.attributes->node_class().visit_fields(*n.attributes, [&](std::string_view name, const Value& v) {
    const auto it = defaults.find(std::string(name));
    if (it != defaults.end() && ir::Equality(false).values(v, it->second)) return;
    const auto* dtype = v.get<DType>();
    arguments.push_back(std::string(name) + "=" + (dtype ? string_literal(dtype->str()).text : value(v).text));
  });
}

Document FunctionPrinter::call_of(const Call& n) {
  std::vector<std::string> infos;
  for (const StructInfo& known : n.struct_info_args) infos.push_back(info(known));
  const std::string all_infos = infos.size() == 1 ? infos[0] : script::list(infos).text;

  const Operator* op = callee_operator(n);
  if (op && as_call_tir(Expr(&n))) {
    std::vector<std::string> parts = arguments({n.args[0], n.args[1]});
    parts.push_back("out_sinfo=" + all_infos);
    if (n.args.size() > 2) parts.push_back("tir_vars=" + arguments({n.args[2]})[0]);
    add_attributes(n, parts);
    return script::call(relax(op->name), parts);
  }
  std::vector<std::string> parts = arguments(n.args);
  std::string callee;
  if (const auto* external = n.callee.as<ExternFunc>()) {
    callee = relax("call_packed");
    parts.insert(parts.begin(), string_literal(external->name).text);
  } else if (const auto* ref = n.callee.as<OpRef>()) {
    callee = relax(ref->name);
  } else {
    callee = expression(n.callee).within(script::Precedence::postfix);
  }
  add_attributes(n, parts);
  if (!infos.empty()) parts.push_back("sinfo_args=" + script::list(infos).text);
  return script::call(callee, parts);
}

Document FunctionPrinter::expression(const Expr& e) {
  const auto text_call = [&](std::string_view name, const std::string& text) {
    return script::call(relax(name), std::vector{string_literal(text).text});
  };
  return ir::match_all(
      e, [&](const VarNode&) -> Document { return {variable_of(e), script::Precedence::postfix}; },
      [&](const Constant& n) { return script::call(relax("const"), script::constant_arguments(*n.data, options)); },
      [&](const Tuple& n) { return script::tuple(arguments(n.items)); },
      [&](const TupleGetItem& n) {
        return script::subscript(expression(n.tuple).within(script::Precedence::postfix),
                                 std::vector{std::to_string(n.index)});
      },
      [&](const ShapeExpr& n) {
        return script::call(relax("shape"), std::vector{script::list(indices(n.values)).text});
      },
      [&](const PrimValue& n) { return script::call(relax("prim_value"), std::vector{expr(n.value).text}); },
      [&](const StringImm& n) { return text_call("str", n.value); },
      [&](const DataTypeImm& n) { return text_call("dtype", n.value.str()); },
      [&](const GlobalVar& n) { return symbol(n.name, "cls"); },
      [&](const ExternFunc& n) { return text_call("ExternFunc", n.name); },
      [&](const OpRef& n) { return text_call("op", n.name); }, [&](const Call& n) { return call_of(n); },
      [&](const SeqExpr& n) { return expression(n.body); },  // outside normal form: its value
      [&](const If& n) {
        return script::call(relax("If"), std::vector{expression(n.condition).text, expression(n.true_branch).text,
                                                     expression(n.false_branch).text});
      });
}

}  // namespace lathe::relax
