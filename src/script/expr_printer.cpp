#include "script/expr_printer.h"

#include "ir/build.h"
#include "ir/match.h"
#include "ir/structural.h"
#include "script/intrinsic_types.h"

namespace lathe::script {

using namespace ir;  // NOLINT: this file is about ir's kinds

namespace {

// An integer literal that may stand without its dtype, where the reader knows it.
const IntImm* plain_integer(const Expr& e) {
  const auto* imm = e.as<IntImm>();
  return imm && imm->dtype.is_integer() && !(imm->dtype == DType::uint(64) && imm->value < 0) ? imm : nullptr;
}

}  // namespace

std::string_view iter_type_name(IterType type) {
  switch (type) {
    case IterType::spatial:
      return "spatial";
    case IterType::reduce:
      return "reduce";
    case IterType::scan:
      return "scan";
    case IterType::opaque:
      return "opaque";
    case IterType::thread_index:
      return "thread_index";
  }
  support::unreachable("an iteration type without a name");
}

std::string ExprPrinter::variable(const Var& v) {
  if (const std::string* text = names.find(v.get())) return *text;
  define_missing(v, v->name);
  return *names.find(v.get());
}

std::string ExprPrinter::buffer(const Buffer& b) {
  if (const std::string* text = names.find(b.get())) return *text;
  define_missing(b, b->name);
  return *names.find(b.get());
}

std::string ExprPrinter::declaration(const VarNode& v) {
  return tir(v.dtype.str()) + (v.is_size ? "(is_size_var=True)" : "()");
}

Document ExprPrinter::literal(const IntImm& n) {
  std::string text = std::to_string(n.value);
  if (n.dtype.is_bool()) text = n.value ? "True" : "False";
  if (n.dtype == DType::uint(64)) text = std::to_string(static_cast<uint64_t>(n.value));
  return call(tir(n.dtype.str()), std::vector{text});
}

Document ExprPrinter::expected(const Expr& e, DType dtype) {
  const IntImm* imm = plain_integer(e);
  return imm && imm->dtype == dtype ? integer(imm->value) : expr(e);
}

// The operands of a pair of one dtype: a literal beside a typed operand stands bare.
std::pair<Document, Document> ExprPrinter::pair(const Expr& a, const Expr& b) {
  const bool left_bare = plain_integer(a) && !plain_integer(b);
  return {left_bare ? expected(a, b->dtype) : expr(a), expected(b, a->dtype)};
}

Document ExprPrinter::binary(const Expr& a, std::string_view symbol, const Expr& b, Precedence precedence) {
  const auto [left, right] = pair(a, b);
  return infix(left, symbol, right, precedence);
}

Document ExprPrinter::function(std::string_view name, const Expr& a, const Expr& b) {
  const auto [left, right] = pair(a, b);
  return call(tir(name), std::vector{left.text, right.text});
}

std::vector<std::string> ExprPrinter::indices(const std::vector<Expr>& list) {
  std::vector<std::string> texts;
  for (const Expr& e : list) texts.push_back(index(e).within(Precedence::conditional));
  return texts;
}

std::pair<std::string, std::string> ExprPrinter::bounds(const Range& range) {
  const Expr &min = range.min, &extent = range.extent;
  const auto bound = [&](const Document& d) { return d.within(Precedence::or_); };
  std::string begin = bound(index(min));
  if (is_int(min, 0) && min->dtype == extent->dtype) return {begin, bound(index(extent))};
  if (plain_integer(min) && plain_integer(extent) && min->dtype == DType::int64() && extent->dtype == min->dtype)
    return {begin, integer(wrap_integer(*as_int(min) + *as_int(extent), min->dtype)).text};
  return {begin, bound(binary(min, "+", extent, Precedence::sum))};
}

std::string ExprPrinter::range(const Range& range) {
  if (is_int(range.extent, 1) && range.extent->dtype == range.min->dtype && range.extent.is<IntImm>())
    return index(range.min).within(Precedence::conditional);
  const auto [begin, end] = bounds(range);
  return begin + ":" + end;
}

std::string ExprPrinter::region(const std::vector<Range>& ranges) {
  std::vector<std::string> parts;
  for (const Range& r : ranges) parts.push_back(range(r));
  return parts.empty() ? "[()]" : "[" + join(parts) + "]";
}

Document ExprPrinter::let(const Let& n) {
  const Document value = expr(n.value);
  names.push();
  const std::string name = names.define(n.var, n.var->name);
  const Document body = expr(n.body);
  names.pop();
  std::vector<std::string> arguments{body.text, "where={" + name + ": " + value.text + "}"};
  if (n.var->is_size) arguments.push_back("is_size_var=True");
  return call(tir("Let"), arguments);
}

Document ExprPrinter::symbol(const std::string& name, std::string_view module) {
  if (is_identifier(name)) return {std::string(module) + "." + name, Precedence::postfix};
  return call(options.ir_prefix + ".GlobalVar", std::vector{string_literal(name).text});
}

Document ExprPrinter::iter_var(const IterVarNode& v) {
  std::vector<std::string> arguments{variable(v.var), "None", string_literal(iter_type_name(v.type)).text,
                                     string_literal(v.thread_tag).text};
  if (v.dom.min) arguments[1] = call(tir("Range"), std::vector{expr(v.dom.min).text, expr(v.dom.extent).text}).text;
  return call(tir("iter_var"), arguments);
}

Document ExprPrinter::reduce(const Reduce& n) {
  names.push();
  std::vector<std::string> parameters, results, identities, axes, sources, inits;
  for (const Var& v : n.combiner->lhs) parameters.push_back(names.define(v, v->name));
  for (const Var& v : n.combiner->rhs) parameters.push_back(names.define(v, v->name));
  for (const Expr& e : n.combiner->result) results.push_back(expr(e).within(Precedence::conditional));
  names.pop();
  for (const Expr& e : n.combiner->identity) identities.push_back(expr(e).text);
  const std::string combiner =
      call(tir("comm_reducer"),
           std::vector{"lambda " + join(parameters) + ": " + tuple(results).text, list(identities).text})
          .text;
  names.push();
  for (const IterVar& axis : n.axis) {
    const auto [begin, end] = bounds(axis->dom);
    const std::string name = names.define(axis->var, axis->var->name);
    std::vector<std::string> arguments{string_literal(name).text, "(" + begin + ", " + end + ")",
                                       string_literal(iter_type_name(axis->type)).text};
    if (!axis->thread_tag.empty()) arguments.push_back(string_literal(axis->thread_tag).text);
    if (axis->var->dtype != DType::int64()) arguments.push_back("dtype=" + string_literal(axis->var->dtype.str()).text);
    axes.push_back(call(tir("reduce_axis"), arguments).text);
  }
  for (const Expr& e : n.sources) sources.push_back(expr(e).text);
  std::vector<std::string> arguments{combiner, list(sources).text, list(axes).text};
  if (n.condition) arguments.push_back("condition=" + expr(n.condition).text);
  names.pop();
  if (n.value_index) arguments.push_back("value_index=" + std::to_string(n.value_index));
  for (const Expr& e : n.init) inits.push_back(expr(e).text);
  if (!inits.empty()) arguments.push_back("init=" + list(inits).text);
  return call(tir("Reduce"), arguments);
}

Document ExprPrinter::call_of(const Call& n) {
  const std::string_view name = n.op->name;
  const bool dtype_first = is_dtype_first(*n.op);
  std::vector<std::string> arguments;
  if (dtype_first) arguments.push_back(string_literal(n.dtype.str()).text);
  const bool is_function = name == "call_function" && !n.args.empty() && n.args[0].is<GlobalVar>();
  for (size_t i = is_function; i < n.args.size(); ++i) {
    const auto* text = n.args[i].as<StringImm>();
    // A buffer that is passed is written as itself.
    const auto* address = n.args[i].as<Call>();
    if (name == "call_packed" && address && address->op == &intrinsic::tvm_stack_make_array && !address->args.empty())
      address = address->args[0].as<Call>();
    const auto* element =
        address && address->op == &intrinsic::address_of ? address->args[0].as<BufferLoad>() : nullptr;
    if (element && is_first_element(*element) &&
        (is_function || (name == "call_packed" && structural_equal(n.args[i], array_of(element->buffer))))) {
      arguments.push_back(buffer(element->buffer));
      continue;
    }
    arguments.push_back(text ? string_literal(text->value).text : expr(n.args[i]).text);
  }
  if (!dtype_first && n.dtype != default_call_type(*n.op, n.args))
    arguments.push_back("dtype=" + string_literal(n.dtype.str()).text);
  return call(is_function ? expr(n.args[0]).text : tir(name), arguments);
}

Document ExprPrinter::expr(const Expr& e) {
  using P = Precedence;
  return match_all(
      e, [&](const VarNode&) -> Document { return {variable(cast<VarNode>(e)), P::postfix}; },
      [&](const IntImm& n) { return literal(n); },
      [&](const FloatImm& n) { return call(tir(n.dtype.str()), std::vector{floating(n.value, n.dtype).text}); },
      [&](const StringImm& n) { return call(tir("StringImm"), std::vector{string_literal(n.value).text}); },
      [&](const GlobalVar& n) { return symbol(n.name, options.module_name); },
      [&](const Cast& n) {
        if (n.dtype.is_vector() || n.dtype.is_handle() || n.dtype == n.value->dtype || n.value.is<IntImm>() ||
            n.value.is<FloatImm>())
          return call(tir("Cast"), std::vector{string_literal(n.dtype.str()).text, expr(n.value).text});
        return call(tir(n.dtype.str()), std::vector{expr(n.value).text});
      },
      [&](const Add& n) { return binary(n.a, "+", n.b, P::sum); },
      [&](const Sub& n) { return binary(n.a, "-", n.b, P::sum); },
      [&](const Mul& n) { return binary(n.a, "*", n.b, P::product); },
      [&](const Div& n) {
        return n.dtype.is_floating() ? binary(n.a, "/", n.b, P::product) : function("truncdiv", n.a, n.b);
      },
      [&](const Mod& n) { return function("truncmod", n.a, n.b); },
      [&](const FloorDiv& n) { return binary(n.a, "//", n.b, P::product); },
      [&](const FloorMod& n) { return binary(n.a, "%", n.b, P::product); },
      [&](const Min& n) { return function("min", n.a, n.b); }, [&](const Max& n) { return function("max", n.a, n.b); },
      [&](const EQ& n) { return binary(n.a, "==", n.b, P::comparison); },
      [&](const NE& n) { return binary(n.a, "!=", n.b, P::comparison); },
      [&](const LT& n) { return binary(n.a, "<", n.b, P::comparison); },
      [&](const LE& n) { return binary(n.a, "<=", n.b, P::comparison); },
      [&](const GT& n) { return binary(n.a, ">", n.b, P::comparison); },
      [&](const GE& n) { return binary(n.a, ">=", n.b, P::comparison); },
      [&](const And& n) { return binary(n.a, "and", n.b, P::and_); },
      [&](const Or& n) { return binary(n.a, "or", n.b, P::or_); },
      [&](const Not& n) -> Document { return {"not " + expr(n.a).within(P::not_), P::not_}; },
      [&](const Select& n) {
        const auto [yes, no] = pair(n.true_value, n.false_value);
        return call(tir("Select"), std::vector{expr(n.condition).text, yes.text, no.text});
      },
      [&](const Ramp& n) {
        const auto [base, stride] = pair(n.base, n.stride);
        return call(tir("Ramp"), std::vector{base.text, stride.text, std::to_string(n.lanes)});
      },
      [&](const Broadcast& n) {
        return call(tir("Broadcast"), std::vector{expr(n.value).text, std::to_string(n.lanes)});
      },
      [&](const Shuffle& n) {
        std::vector<std::string> vectors, lanes;
        for (const Expr& v : n.vectors) vectors.push_back(expr(v).text);
        for (const int64_t i : n.indices) lanes.push_back(std::to_string(i));
        return call(tir("Shuffle"), std::vector{list(vectors).text, list(lanes).text});
      },
      [&](const Let& n) { return let(n); },
      [&](const BufferLoad& n) {
        if (!n.predicate) return subscript(buffer(n.buffer), indices(n.indices));
        return call(buffer(n.buffer) + ".vload",
                    std::vector{list(indices(n.indices)).text, "predicate=" + expr(n.predicate).text});
      },
      [&](const Call& n) { return call_of(n); }, [&](const Reduce& n) { return reduce(n); });
}

Document ExprPrinter::other_node(const NodeRef& node) {
  if (const auto* v = node.as<IterVarNode>()) return iter_var(*v);
  if (node.is<BufferNode>()) return {buffer(ir::cast<BufferNode>(node)), Precedence::postfix};
  return call(options.ir_prefix + ".node", std::vector{string_literal(node->node_class().name).text});
}

Document ExprPrinter::value(const Value& v) {
  if (const auto* x = v.get<bool>()) return {*x ? "True" : "False"};
  if (const auto* x = v.get<int64_t>()) return integer(*x);
  if (const auto* x = v.get<double>()) {
    Document text = floating(*x, DType::float_(64));
    return text.text[0] == '"' ? call("float", std::vector{text.text}) : text;
  }
  if (const auto* x = v.get<std::string>()) return string_literal(*x);
  if (const auto* x = v.get<DType>())
    return call(options.ir_prefix + ".dtype", std::vector{string_literal(x->str()).text});
  if (const auto* x = v.get<Value::List>()) {
    std::vector<std::string> items;
    for (const Value& item : *x) items.push_back(value(item).text);
    return list(items);
  }
  if (const auto* x = v.get<Value::Map>()) {
    std::vector<std::string> items;
    for (const auto& [key, item] : *x) items.push_back(string_literal(key).text + ": " + value(item).text);
    return {"{" + join(items) + "}"};
  }
  if (const auto* x = v.get<NodeRef>(); x && *x) {
    if ((*x)->node_class().family == ExprNode::family) return expr(ir::detail::narrow<ExprNode>(*x));
    return other_node(*x);
  }
  return {"None"};
}

Document ExprPrinter::attributes(const Attributes& attributes) { return value(Value(attributes.entries())); }

std::vector<std::string> ExprPrinter::buffer_arguments(const BufferNode& b, bool data_is_known) {
  std::vector<std::string> arguments{tuple(indices(b.shape)).text, string_literal(b.dtype.str()).text};
  if (data_is_known) arguments.push_back("data=" + variable(b.data));
  if (!b.strides.empty()) arguments.push_back("strides=" + tuple(indices(b.strides)).text);
  if (b.elem_offset) arguments.push_back("elem_offset=" + index(b.elem_offset).text);
  if (b.scope != "global") arguments.push_back("scope=" + string_literal(b.scope).text);
  if (b.data_alignment != 64) arguments.push_back("align=" + std::to_string(b.data_alignment));
  if (b.offset_factor != 0) arguments.push_back("offset_factor=" + std::to_string(b.offset_factor));
  if (!b.axis_separators.empty()) {
    std::vector<std::string> separators;
    for (const int64_t s : b.axis_separators) separators.push_back(std::to_string(s));
    arguments.push_back("axis_separators=" + list(separators).text);
  }
  return arguments;
}

namespace {

// For messages: literals without dtypes, names as they are.
class MessagePrinter : public ExprPrinter {
 public:
  using ExprPrinter::ExprPrinter;

 protected:
  void define_missing(const NodeRef& node, std::string_view hint) override {
    names.set(node, hint.empty() ? "v" : std::string(hint));
  }
};

}  // namespace

std::string expression_text(const Expr& e) {
  if (!e) return "None";
  Names names;
  const PrintOptions options;
  MessagePrinter printer(options, names);
  const DType bare = e->dtype;
  return printer.expected(e, bare).text;
}

std::string shape_text(const std::vector<Expr>& shape) {
  std::vector<std::string> parts;
  for (const Expr& e : shape) parts.push_back(expression_text(e));
  return list(parts).text;
}

}  // namespace lathe::script
