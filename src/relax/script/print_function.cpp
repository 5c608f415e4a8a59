#include "relax/script/print_function.h"

#include "ir/match.h"
#include "ir/visit.h"
#include "script/print.h"

namespace lathe::relax {

using script::join;
using script::string_literal;

void FunctionPrinter::define_missing(const NodeRef& node, std::string_view hint) {
  names.define_outermost(node, hint);
  if (!declares_) return;
  const std::string& name = *names.find(node.get());
  if (const auto* v = node.as<ir::VarNode>()) lines_.insert(top_++, top_level_, name + " = " + declaration(*v));
}

Document FunctionPrinter::other_node(const NodeRef& node) {
  const std::string_view family = node->node_class().family;
  if (family == StructInfoNode::family) return {info(ir::detail::narrow<StructInfoNode>(node))};
  if (family == ExprNode::family) return expression(ir::detail::narrow<ExprNode>(node));
  return ExprPrinter::other_node(node);
}

// ---- symbolic dimensions ----

// Declares the scalar variables in `root` that have no name yet, each on a line.
void FunctionPrinter::declare_symbols(const NodeRef& root) {
  ir::post_order(root, [&](const NodeRef& n) {
    if (!n.is<ir::VarNode>() || names.find(n.get())) return;
    const ir::Var v = ir::cast<ir::VarNode>(n);
    const std::string name = names.define(v, v->name);
    lines_.line(name + " = " + declaration(*v));
  });
}

void FunctionPrinter::function(const std::string& name, const FunctionNode& f) {
  for (const std::string& prefix : {options.ir_prefix, options.tir_prefix, options.relax_prefix, options.module_name})
    names.reserve(prefix);
  // Parameters are named before symbols, so that they keep their names.
  std::vector<std::string> parameters;
  for (const Var& param : f.params) parameters.push_back(names.define(param, param->name));
  std::vector<ir::Var> symbols;
  const auto collect = [&](const NodeRef& root) {
    if (!root) return;
    ir::post_order(root, [&](const NodeRef& n) {
      if (!n.is<ir::VarNode>() || names.find(n.get())) return;
      symbols.push_back(ir::cast<ir::VarNode>(n));
      names.define(n, symbols.back()->name);
    });
  };
  for (const Var& param : f.params) collect(param->struct_info);
  collect(f.ret_struct_info);

  in_signature_ = true;
  for (size_t i = 0; i < f.params.size(); ++i)
    if (f.params[i]->struct_info) parameters[i] += ": " + info(f.params[i]->struct_info);
  std::string signature = "(" + join(parameters) + ")";
  if (f.ret_struct_info) signature += " -> " + info(f.ret_struct_info);
  in_signature_ = false;

  std::vector<std::string> decoration;
  if (!f.is_pure) decoration.emplace_back("pure=False");
  script::print_header(lines_, relax("function"), std::move(decoration), name, signature + ":");
  lines_.indent();
  for (const ir::Var& v : symbols) lines_.line(*names.find(v.get()) + " = " + declaration(*v));
  top_ = lines_.count();
  top_level_ = lines_.level();
  if (!f.attrs.empty()) lines_.line(relax("func_attr") + "(" + attributes(f.attrs).text + ")");
  bool calls_functions = false;
  ir::pre_order(f.body, [&](const NodeRef& n) {
    calls_functions = calls_functions || n.is<GlobalVar>();
    return !calls_functions;
  });
  if (calls_functions) lines_.line("cls = " + options.module_name);
  if (const auto* seq = f.body.as<SeqExpr>())
    sequence(*seq);
  else
    lines_.line("return " + expression(f.body).text);
  lines_.dedent();
}

std::string FunctionPrinter::fragment(const NodeRef& node) {
  declares_ = false;
  if (node->node_class().family == BindingNode::family) {
    binding(ir::detail::narrow<BindingNode>(node));
    return lines_.str();
  }
  if (const auto* b = node.as<BindingBlockNode>()) {
    block(*b);
    return lines_.str();
  }
  if (const auto* seq = node.as<SeqExpr>()) {
    sequence(*seq);
    return lines_.str();
  }
  return other_node(node).text;
}

// ---- struct info ----

std::string FunctionPrinter::dimension(const ir::Expr& e) {
  const std::string text = index(e).within(script::Precedence::conditional);
  return in_signature_ && !(e.is<ir::IntImm>() && e->dtype == DType::int64()) ? string_literal(text).text : text;
}

std::vector<std::string> FunctionPrinter::dimensions(const std::vector<ir::Expr>& list) {
  std::vector<std::string> texts;
  for (const ir::Expr& e : list) texts.push_back(dimension(e));
  return texts;
}

std::string FunctionPrinter::info(const StructInfo& known) {
  if (!known) return "None";
  return ir::match_all(
      known, [&](const ObjectStructInfo&) { return relax("Object"); },
      [&](const PrimStructInfo& n) {
        const bool typed = !n.value || n.value->dtype != n.dtype;
        std::vector<std::string> parts;
        if (typed) parts.push_back(string_literal(n.dtype.str()).text);
        if (n.value)
          parts.push_back("value=" + (in_signature_ ? string_literal(expr(n.value).text).text : expr(n.value).text));
        return script::call(relax("Prim"), parts).text;
      },
      [&](const ShapeStructInfo& n) {
        if (n.values) return relax("Shape") + "(" + script::list(dimensions(*n.values)).text + ")";
        return relax("Shape") + (n.ndim < 0 ? "()" : "(ndim=" + std::to_string(n.ndim) + ")");
      },
      [&](const TensorStructInfo& n) {
        std::vector<std::string> parts;
        if (n.shape) parts.push_back(script::tuple(dimensions(*n.shape)).text);
        if (!n.dtype.is_void()) parts.push_back("dtype=" + string_literal(n.dtype.str()).text);
        if (!n.shape && n.ndim >= 0) parts.push_back("ndim=" + std::to_string(n.ndim));
        return script::call(relax("Tensor"), parts).text;
      },
      [&](const TupleStructInfo& n) {
        std::vector<std::string> parts;
        for (const StructInfo& item : n.items) parts.push_back(info(item));
        return script::call(relax("Tuple"), parts).text;
      },
      [&](const SequenceStructInfo& n) { return script::call(relax("Sequence"), std::vector{info(n.element)}).text; },
      [&](const OptionalStructInfo& n) { return script::call(relax("Optional"), std::vector{info(n.element)}).text; },
      [&](const FuncStructInfo& n) {
        std::vector<std::string> parts;
        if (n.params) {
          std::vector<std::string> items;
          for (const StructInfo& param : *n.params) items.push_back(info(param));
          parts.push_back(script::tuple(items).text);
        }
        if (n.result) parts.push_back("ret=" + info(n.result));
        if (!n.pure) parts.emplace_back("purity=False");
        return script::call(relax("Callable"), parts).text;
      });
}

// ---- bindings ----

void FunctionPrinter::sequence(const SeqExpr& seq) {
  blocks(seq.blocks);
  lines_.line("return " + expression(seq.body).text);
}

void FunctionPrinter::blocks(const std::vector<BindingBlock>& list) {
  bool after_plain = false;  // two ordinary blocks in a row need a border
  for (const BindingBlock& b : list) {
    const bool plain = !b->is_dataflow && !after_plain && !b->bindings.empty();
    if (plain) {
      for (const Binding& item : b->bindings) binding(item);
    } else {
      block(*b);
    }
    after_plain = plain;
  }
}

void FunctionPrinter::block(const BindingBlockNode& b) {
  lines_.line("with " + relax(b.is_dataflow ? "dataflow" : "bindings") + "():");
  lines_.indent();
  std::vector<std::string> outputs;
  std::vector<std::string>* const outer = std::exchange(outputs_, b.is_dataflow ? &outputs : nullptr);
  for (const Binding& item : b.bindings) binding(item);
  outputs_ = outer;
  if (!outputs.empty())
    lines_.line(script::call(relax("output"), outputs).text);
  else if (b.bindings.empty())
    lines_.line("pass");
  lines_.dedent();
}

void FunctionPrinter::assign(const Var& var, const std::string& value, bool annotated) {
  std::string target;
  if (annotated && var->struct_info && options.show_struct_info) {
    declare_symbols(var->struct_info);
    target = ": " + info(var->struct_info);
  }
  const std::string& name = names.define(var, var->name);
  if (outputs_ && !var->is_dataflow) outputs_->push_back(name);
  lines_.line(name + target + " = " + value);
}

void FunctionPrinter::binding(const Binding& b) {
  ir::match_all(
      b,
      [&](const VarBinding& n) {
        const auto* choice = n.value.as<If>();
        if (!choice) return assign(n.var, expression(n.value).text);
        const std::string condition = expression(choice->condition).text;
        names.define(n.var, n.var->name);
        if (outputs_ && !n.var->is_dataflow) outputs_->push_back(*names.find(n.var.get()));
        lines_.line("if " + condition + ":");
        branch(choice->true_branch, n.var);
        lines_.line("else:");
        branch(choice->false_branch, n.var);
      },
      [&](const MatchCast& n) {
        const std::string value = expression(n.value).text;
        declare_symbols(n.struct_info);
        const bool same = n.var->struct_info && ir::structural_equal(n.var->struct_info, n.struct_info);
        assign(n.var, script::call(relax("match_cast"), std::vector{value, info(n.struct_info)}).text, !same);
      });
}

// One branch of an If bound to `result`: its bindings, then its value under the name of the result.
void FunctionPrinter::branch(const Expr& body, const Var& result) {
  lines_.indent();
  names.push();
  std::vector<std::string>* const outer = std::exchange(outputs_, nullptr);
  const auto* seq = body.as<SeqExpr>();
  if (seq) blocks(seq->blocks);
  std::string target = *names.find(result.get());
  if (result->struct_info && options.show_struct_info) target += ": " + info(result->struct_info);
  const std::string value = expression(seq ? seq->body : body).text;
  lines_.line(target + " = " + value);
  outputs_ = outer;
  names.pop();
  lines_.dedent();
}

}  // namespace lathe::relax
