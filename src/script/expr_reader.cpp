#include "script/expr_reader.h"

#include <charconv>

#include "script/expr_printer.h"

namespace lathe::script {

using namespace ir;  // NOLINT: this file is about ir's kinds
using syntax::ExprKind;

// ---- places and names ----

void ExprReader::fail(support::Code code, const Syntax& at, std::string message, std::string help) const {
  script::fail(code, context.tree.source, at.begin, at.end, std::move(message), std::move(help));
}

std::string ExprReader::source_text(const Syntax& e) const {
  constexpr size_t most = 60;
  std::string text = context.tree.source->text.substr(e.begin, e.end - e.begin);
  if (const size_t line = text.find('\n'); line != std::string::npos || text.size() > most)
    text = text.substr(0, std::min(line, most)) + "…";
  return text;
}

Origin ExprReader::origin(uint32_t begin, uint32_t end) const {
  return std::allocate_shared<const support::Place>(support::SlabAllocator<support::Place>(),
                                                    support::TextRange{context.tree.source, begin, end});
}

std::string ExprReader::path_of(const Syntax& e) const {
  if (e.kind == ExprKind::name) {
    if (scope.find(e.text)) return {};
    const auto it = context.aliases.find(e.text);
    return it == context.aliases.end() ? std::string() : it->second;
  }
  if (e.kind != ExprKind::attribute) return {};
  std::string path = path_of(*e.items[0]);
  if (!path.empty()) (path += '.') += e.text;
  return path;
}

std::optional<std::string> ExprReader::module_function(const Syntax& e) const {
  if (e.kind != ExprKind::attribute || e.items[0]->kind != ExprKind::name) return std::nullopt;
  const std::string_view object = e.items[0]->text;
  if (scope.find(object) || (object != "cls" && object != context.module_name)) return std::nullopt;
  const auto it = context.function_names.find(e.text);
  if (it == context.function_names.end())
    fail(codes::unknown_name, e, fmt::format("the module has no function '{}'", e.text));
  return it->second;
}

// ---- literals ----

Value ExprReader::number(const Syntax& e) {
  const std::string_view text = e.text;
  if (e.kind == ExprKind::floating) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) value = std::strtod(std::string(text).c_str(), nullptr);
    return value;
  }
  int base = 10;
  size_t skip = 0;
  if (text.size() > 1 && text[0] == '0' && (text[1] < '0' || text[1] > '9')) {
    base = (text[1] | 32) == 'x' ? 16 : (text[1] | 32) == 'o' ? 8 : 2;
    skip = 2;
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + skip, text.data() + text.size(), value, base);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument)
    fail(codes::syntax, e, fmt::format("'{}' is no number", text));
  if (error == std::errc() && value < uint64_t{1} << 63) return static_cast<int64_t>(value);
  fail(codes::number_too_large, e, fmt::format("{} does not fit in 64 bits with a sign", text));
}

Value ExprReader::name(const Syntax& e) {
  if (const Scope::Entry* entry = scope.find(e.text)) return entry->value;
  if (const std::string path = path_of(e); !path.empty()) {
    if (auto known = other_path(path, e)) return *std::move(known);
    fail(codes::wrong_type, e, fmt::format("'{}' is a module, not a value", e.text));
  }
  if (context.options.host)
    if (auto value = context.options.host->captured(e.text)) return *std::move(value);
  fail(codes::unknown_name, e, fmt::format("'{}' is not defined", e.text));
}

// ---- dispatch ----

Value ExprReader::value(const Syntax& e) {
  switch (e.kind) {
    case ExprKind::name:
      return name(e);
    case ExprKind::integer:
    case ExprKind::floating:
      return number(e);
    case ExprKind::string:
      return std::string(e.text);
    case ExprKind::constant:
      if (e.text == "None") return {};
      if (e.text != "...") return e.text == "True";
      break;
    case ExprKind::tuple:
    case ExprKind::list: {
      Value::List list;
      for (const Syntax* item : e.items) {
        if (item->kind == ExprKind::starred) return host(e);
        list.push_back(value(*item));
      }
      return list;
    }
    case ExprKind::dict: {
      Value::Map map;
      for (size_t i = 0; i < e.items.size(); i += 2) {
        if (!e.items[i]) return host(e);
        map[string(*e.items[i], "a key")] = value(*e.items[i + 1]);
      }
      return map;
    }
    case ExprKind::unary:
      return unary(e);
    case ExprKind::binary:
      return binary(e);
    case ExprKind::logical:
      return logical(e);
    case ExprKind::compare:
      return compare(e);
    case ExprKind::conditional:
      return conditional(e);
    case ExprKind::call:
      return call(e);
    case ExprKind::attribute:
      return attribute(e);
    case ExprKind::subscript:
      return subscript(e);
    default:
      break;
  }
  return host(e);
}

namespace {

// The names that occur in an expression.
void collect_names(const syntax::Expr& e, std::vector<std::string_view>& names) {
  if (e.kind == ExprKind::name) names.push_back(e.text);
  for (const syntax::Expr* item : e.items)
    if (item) collect_names(*item, names);
}

}  // namespace

// Hands a sub-expression to the host language.
Value ExprReader::host(const Syntax& e) {
  if (!context.options.host)
    fail(codes::needs_python, e,
         "`" + source_text(e) + "` must be evaluated by Python, and this text has none around it");
  HostRequest request{.range = range(e),
                      .text = std::string_view(context.tree.source->text).substr(e.begin, e.end - e.begin)};
  std::vector<std::string_view> names;
  collect_names(e, names);
  for (const std::string_view known : names)
    if (const Scope::Entry* entry = scope.find(known)) request.names[std::string(known)] = entry->value;
  support::Result<Value> result = context.options.host->evaluate(request);
  if (result.ok()) return *std::move(result);
  support::Diagnostics diagnostics = result.diagnostics();
  for (support::Diagnostic& d : diagnostics)
    if (std::holds_alternative<std::monostate>(d.place)) d.place = request.range;
  throw support::DiagnosticError(std::move(diagnostics));
}

// ---- typed views ----

namespace {

std::string kind_of_value(const Value& v) {
  if (v.empty()) return "None";
  if (v.get<bool>()) return "a bool";
  if (v.get<int64_t>()) return "an integer";
  if (v.get<double>()) return "a float";
  if (v.get<std::string>()) return "a string";
  if (v.get<DType>()) return "a dtype";
  if (v.get<Value::List>()) return "a list";
  if (v.get<Value::Map>()) return "a dict";
  const NodeRef& n = *v.get<NodeRef>();
  if (const Expr e = expr_in(v)) return "an expression of " + e->dtype.str();
  if (const auto* b = n.as<BufferNode>()) return "the buffer '" + b->name + "'";
  return n ? "a " + std::string(n->node_class().name) : "nothing";
}

}  // namespace

Expr ExprReader::to_expr(const Value& v, const Syntax& at, DType integer) {
  if (Expr e = expr_in(v)) return e;
  if (const auto* x = v.get<bool>()) return ir::boolean(*x);
  if (const auto* x = v.get<double>()) return constant(integer.is_floating() ? integer : DType::float32(), *x);
  if (const auto* x = v.get<int64_t>()) {
    if (integer.is_integer() && integer.bits < 64 && wrap_integer(*x, integer.element()) != *x)
      fail(codes::number_too_large, at, std::to_string(*x) + " does not fit in " + integer.str());
    return constant(integer.is_handle() || integer.is_void() ? DType::int64() : integer, *x);
  }
  if (const auto b = node_in<BufferNode>(v); b && b->shape.empty()) return load(b, {});
  std::string help;
  if (node_in<BufferNode>(v)) help = "an element of a buffer is written with indices, as A[i, j]";
  fail(codes::wrong_type, at, "expected a scalar expression, found " + kind_of_value(v), help);
}

Expr ExprReader::expr(const Syntax& e, DType integer) { return to_expr(value(e), e, integer); }

namespace {

// A choice between literals, which have no dtype of their own, as one of `dtype`; null where it is something else.
Expr choice_as(const Expr& e, DType dtype) {
  if (const auto* number = e.as<IntImm>(); number && number->dtype == DType::int64()) {
    const bool fits = dtype.is_floating() || wrap_integer(number->value, dtype) == number->value;
    return fits && !dtype.is_bool() ? constant(dtype, number->value) : Expr();
  }
  const auto* call = e.as<Call>();
  const auto* select = e.as<Select>();
  if (!select && !(call && call->op == &intrinsic::if_then_else)) return {};
  const Expr yes = choice_as(select ? select->true_value : call->args[1], dtype),
             no = choice_as(select ? select->false_value : call->args[2], dtype);
  if (!yes || !no) return {};
  return select ? Expr(make<Select>(select->condition, yes, no)) : ir::call(dtype, *call->op, {call->args[0], yes, no});
}

}  // namespace

Expr ExprReader::expr_of(const Syntax& e, DType dtype, std::string_view what) {
  const Value v = value(e);
  if (v.get<bool>() && !dtype.is_bool()) return constant(dtype, int64_t{*v.get<bool>()});
  Expr result = to_expr(v, e, dtype);
  if (result->dtype == dtype) return result;
  if (result->dtype == dtype.element() && dtype.is_vector()) return make<Broadcast>(result, int64_t{dtype.lanes});
  if (!result.is<IntImm>() && dtype.is_scalar())
    if (const Expr choice = choice_as(result, dtype)) return with_origin(choice, origin(e));
  fail(codes::dtype_mismatch, e, std::string(what) + " is " + result->dtype.str() + ", not " + dtype.str(),
       "convert it with T." + dtype.str() + "(…)");
}

std::vector<Expr> ExprReader::expr_list(const Syntax& e, std::string_view what) {
  std::vector<Expr> list;
  if (e.kind == ExprKind::tuple || e.kind == ExprKind::list) {
    for (const Syntax* item : e.items) list.push_back(expr(*item));
    return list;
  }
  const Value v = value(e);
  if (const auto* items = v.get<Value::List>()) {
    for (const Value& item : *items) list.push_back(to_expr(item, e, DType::int64()));
    return list;
  }
  if (!v.get<int64_t>() && !expr_in(v))
    fail(codes::wrong_type, e, std::string(what) + " takes a tuple, not " + kind_of_value(v));
  return {to_expr(v, e, DType::int64())};
}

int64_t ExprReader::integer(const Syntax& e, std::string_view what) {
  const Value v = value(e);
  if (const auto* x = v.get<int64_t>()) return *x;
  if (const auto imm = node_in<IntImm>(v)) return imm->value;
  fail(codes::wrong_type, e, std::string(what) + " takes an integer, not " + kind_of_value(v));
}

std::string ExprReader::string(const Syntax& e, std::string_view what) {
  const Value v = value(e);
  if (const auto* x = v.get<std::string>()) return *x;
  if (const auto imm = node_in<StringImm>(v)) return imm->value;
  fail(codes::wrong_type, e, std::string(what) + " takes a string, not " + kind_of_value(v));
}

bool ExprReader::boolean(const Syntax& e, std::string_view what) {
  const Value v = value(e);
  if (const auto* x = v.get<bool>()) return *x;
  fail(codes::wrong_type, e, std::string(what) + " takes True or False, not " + kind_of_value(v));
}

DType ExprReader::dtype(const Syntax& e, std::string_view what) {
  const Value v = value(e);
  if (const auto* x = v.get<DType>()) return *x;
  if (const auto* x = v.get<std::string>()) {
    if (const auto parsed = DType::parse(*x)) return *parsed;
    if (*x == "boolean") return DType::boolean();
    fail(codes::wrong_type, e, "there is no dtype '" + *x + "'");
  }
  fail(codes::wrong_type, e, std::string(what) + " takes a dtype, not " + kind_of_value(v));
}

Attributes ExprReader::attributes(const Syntax& e) {
  const Value v = value(e);
  const auto* map = v.get<Value::Map>();
  if (!map) fail(codes::wrong_type, e, "attributes are a dict, not " + kind_of_value(v));
  Attributes result;
  result.entries() = *map;
  return result;
}

Buffer ExprReader::buffer(const Syntax& e, std::string_view what) {
  const Value v = value(e);
  if (auto b = node_in<BufferNode>(v)) return b;
  fail(codes::wrong_type, e, std::string(what) + " takes a buffer, not " + kind_of_value(v));
}

// ---- operators ----

std::pair<Expr, Expr> ExprReader::unify(const Value& a, const Syntax& at_a, const Value& b, const Syntax& at_b) {
  Expr left = expr_in(a), right = expr_in(b);
  const auto weak = [&](const Value& v, const Syntax& at, const Expr& other) {
    const DType t = other->dtype;
    if (v.get<bool>() && !t.is_bool()) return constant(t, int64_t{*v.get<bool>()});
    if (v.get<double>() && !t.is_floating()) return to_expr(v, at, float_literal());
    return to_expr(v, at, t.is_integer() || t.is_floating() ? t.element() : DType::int64());
  };
  if (!left && right) left = weak(a, at_a, right);
  if (!right && left) right = weak(b, at_b, left);
  if (!left) {
    const bool floats = a.get<double>() || b.get<double>();
    left = to_expr(a, at_a, floats ? float_literal() : DType::int64());
    right = to_expr(b, at_b, floats ? float_literal() : DType::int64());
  }
  DType x = left->dtype, y = right->dtype;
  if (x.lanes != y.lanes) {
    if (x.is_scalar())
      left = make<Broadcast>(left, int64_t{y.lanes});
    else if (y.is_scalar())
      right = make<Broadcast>(right, int64_t{x.lanes});
    x = left->dtype, y = right->dtype;
  }
  if (x != y) {
    std::tie(left, right) = converted(left, right);
    x = left->dtype, y = right->dtype;
  }
  // As in TVMScript, the narrower of two integers of one sign is widened.
  if (x != y && x.lanes == y.lanes && x.code == y.code && x.is_integer()) {
    if (x.bits < y.bits)
      left = make<Cast>(y, left);
    else
      right = make<Cast>(x, right);
    return {left, right};
  }
  if (x != y)
    throw support::DiagnosticError(
        support::Diagnostic{.code = codes::dtype_mismatch,
                            .place = support::TextRange{context.tree.source, at_a.begin, std::max(at_a.end, at_b.end)},
                            .message = "operands of " + x.str() + " and " + y.str(),
                            .notes = {{range(at_b), "this is " + y.str()}},
                            .help = "convert one of them, as " + converter() + x.str() + "(…)"});
  return {left, right};
}

std::pair<Expr, Expr> ExprReader::unify(const Syntax& a, const Syntax& b) {
  const Value left = value(a);
  return unify(left, a, value(b), b);
}

Value ExprReader::unary(const Syntax& e) {
  const Syntax& operand = *e.items[0];
  if (e.text == "-" && operand.kind == ExprKind::integer && operand.text == "9223372036854775808")
    return std::numeric_limits<int64_t>::min();
  const Value v = value(operand);
  if (e.text == "not") {
    if (const auto* x = v.get<bool>()) return !*x;
    Expr a = to_expr(v, operand, DType::int64());
    if (!a->dtype.is_bool()) fail(codes::dtype_mismatch, operand, "'not' takes bool, not " + a->dtype.str());
    return with_origin<ExprNode>(make<Not>(a), origin(e));
  }
  if (const auto* x = v.get<int64_t>()) {
    if (e.text == "-" && *x == std::numeric_limits<int64_t>::min())
      fail(codes::number_too_large, e, "the result does not fit in 64 bits");
    return e.text == "-" ? -*x : e.text == "~" ? ~*x : *x;
  }
  if (const auto* x = v.get<double>(); x && e.text != "~") return e.text == "-" ? -*x : *x;
  const Expr a = to_expr(v, operand, DType::int64());
  if (e.text == "+") return a;
  if (e.text == "~") return with_origin<ExprNode>(ir::call(intrinsic::bitwise_not, a), origin(e));
  return with_origin<ExprNode>(make<Sub>(constant(a->dtype, int64_t{0}), a), origin(e));
}

namespace {

// Python's arithmetic of two integers; nothing where it does not fit in 64 bits or is no integer.
std::optional<int64_t> fold(std::string_view op, int64_t a, int64_t b) {
  int64_t r = 0;
  if (op == "+") return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
  if (op == "-") return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional(r);
  if (op == "*") return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
  if (op == "&") return a & b;
  if (op == "|") return a | b;
  if (op == "^") return a ^ b;
  if (op == "//" || op == "%") {
    if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return std::nullopt;
    const int64_t q = a / b - ((a % b != 0) && ((a % b < 0) != (b < 0)));
    return op == "%" ? a - q * b : q;
  }
  if (op == "<<" && b >= 0 && b < 63 && std::abs(a) < int64_t{1} << (62 - b)) return a * (int64_t{1} << b);
  if (op == ">>" && b >= 0) return a >> std::min<int64_t>(b, 63);
  if (op == "**" && b >= 0 && b < 64) {
    r = 1;
    for (int64_t i = 0; i < b; ++i)
      if (__builtin_mul_overflow(r, a, &r)) return std::nullopt;
    return r;
  }
  return std::nullopt;
}

std::optional<double> fold(std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "/" && b != 0) return a / b;
  if (op == "//" && b != 0) return std::floor(a / b);
  if (op == "**") return std::pow(a, b);
  return std::nullopt;
}

const std::unordered_map<std::string_view, const Intrinsic*> operator_intrinsics = {
    {"<<", &intrinsic::shift_left}, {">>", &intrinsic::shift_right}, {"&", &intrinsic::bitwise_and},
    {"|", &intrinsic::bitwise_or},  {"^", &intrinsic::bitwise_xor},  {"**", &intrinsic::pow}};

}  // namespace

Value ExprReader::binary(const Syntax& e) {
  // The left operands of a chain are walked in a loop: it may be long.
  std::vector<const Syntax*> chain{&e};
  while (chain.back()->items[0]->kind == ExprKind::binary) chain.push_back(chain.back()->items[0]);
  Value left = value(*chain.back()->items[0]);
  for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
    const Syntax& at = **it;
    left = combine(at, at.text, left, *at.items[0], value(*at.items[1]), *at.items[1]);
  }
  return left;
}

Value ExprReader::combine(const Syntax& e, std::string_view op, const Value& a, const Syntax& at_a, const Value& b,
                          const Syntax& at_b) {
  const auto as_double = [](const Value& v) -> std::optional<double> {
    if (const auto* x = v.get<double>()) return *x;
    if (const auto* x = v.get<int64_t>()) return static_cast<double>(*x);
    return std::nullopt;
  };
  const auto *x = a.get<int64_t>(), *y = b.get<int64_t>();
  if (x && y && op != "/") {
    if (const auto folded = fold(op, *x, *y)) return *folded;
    fail(codes::number_too_large, e, "the result is no integer of 64 bits");
  }
  if (const auto p = as_double(a), q = as_double(b); p && q) {
    if (const auto folded = fold(op, *p, *q)) return *folded;
    fail(codes::number_too_large, e, "the result is no number");
  }
  if (op == "@") return host(e);
  auto [left, right] = unify(a, at_a, b, at_b);
  const DType t = left->dtype;
  if (t.is_handle() || t.is_void())
    fail(codes::dtype_mismatch, e, fmt::format("'{}' takes numbers, not {}", op, t.str()));
  const auto made = [&](Expr result) { return Value(with_origin(std::move(result), origin(e))); };
  if (op == "+") return made(make<Add>(left, right));
  if (op == "-") return made(make<Sub>(left, right));
  if (op == "*") return made(make<Mul>(left, right));
  if (op == "//") return made(make<FloorDiv>(left, right));
  if (op == "%") return made(make<FloorMod>(left, right));
  if (op == "/") {
    if (t.is_floating()) return made(make<Div>(left, right));
    if (Expr known = quotient(left, right)) return made(std::move(known));
    fail(codes::dtype_mismatch, e, "'/' of " + t.str() + " does not say how to round",
         "use // to round down, T.truncdiv to round toward zero");
  }
  return made(ir::call(t, *operator_intrinsics.at(op), {left, right}));
}

Value ExprReader::logical(const Syntax& e) {
  Value left = value(*e.items[0]);
  for (size_t i = 1; i < e.items.size(); ++i) {
    const Value right = value(*e.items[i]);
    const auto *x = left.get<bool>(), *y = right.get<bool>();
    if (x && y) {
      left = e.text == "and" ? *x && *y : *x || *y;
      continue;
    }
    auto [a, b] = unify(left, *e.items[i - 1], right, *e.items[i]);
    if (!a->dtype.is_bool())
      fail(codes::dtype_mismatch, e, fmt::format("'{}' takes bool, not {}", e.text, a->dtype.str()));
    const Expr made = e.text == "and" ? Expr(make<And>(a, b)) : Expr(make<Or>(a, b));
    left = with_origin(made, origin(e));
  }
  return left;
}

namespace {

template <class T>
bool compare_numbers(std::string_view op, T a, T b) {
  return op == "<"    ? a < b
         : op == "<=" ? a <= b
         : op == ">"  ? a > b
         : op == ">=" ? a >= b
         : op == "==" ? a == b
                      : a != b;
}

Expr comparison(std::string_view op, Expr a, Expr b) {
  if (op == "<") return make<LT>(a, b);
  if (op == "<=") return make<LE>(a, b);
  if (op == ">") return make<GT>(a, b);
  if (op == ">=") return make<GE>(a, b);
  return op == "==" ? Expr(make<EQ>(a, b)) : Expr(make<NE>(a, b));
}

}  // namespace

// a < b < c is a < b and b < c.
Value ExprReader::compare(const Syntax& e) {
  std::vector<Value> values;
  for (const Syntax* item : e.items) values.push_back(value(*item));
  Value result;
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const std::string_view op = e.labels[i];
    if (op == "in" || op == "not in" || op == "is" || op == "is not") return host(e);
    const Value &a = values[i], &b = values[i + 1];
    Value one;
    const auto weak = [](const Value& v) { return v.get<int64_t>() || v.get<double>() || v.get<bool>(); };
    const auto number = [](const Value& v) {
      return v.get<double>() ? *v.get<double>()
             : v.get<bool>() ? *v.get<bool>()
                             : static_cast<double>(*v.get<int64_t>());
    };
    if (a.get<int64_t>() && b.get<int64_t>()) {
      one = compare_numbers(op, *a.get<int64_t>(), *b.get<int64_t>());
    } else if (weak(a) && weak(b)) {
      one = compare_numbers(op, number(a), number(b));
    } else if (a.get<std::string>() && b.get<std::string>()) {
      one = compare_numbers(op, *a.get<std::string>(), *b.get<std::string>());
    } else {
      auto [left, right] = unify(a, *e.items[i], b, *e.items[i + 1]);
      one = with_origin(comparison(op, left, right), origin(e));
    }
    if (i == 0) {
      result = one;
    } else if (result.get<bool>() && one.get<bool>()) {
      result = *result.get<bool>() && *one.get<bool>();
    } else {
      result = Expr(make<And>(to_expr(result, e, DType::boolean()), to_expr(one, e, DType::boolean())));
    }
  }
  return result;
}

// `a if c else b` is if_then_else; with a condition that Python knows, one of the two.
Value ExprReader::conditional(const Syntax& e) {
  const Value condition = value(*e.items[0]);
  if (const auto* known = condition.get<bool>()) return value(*e.items[*known ? 1 : 2]);
  const Expr c = to_expr(condition, *e.items[0], DType::int64());
  if (!c->dtype.is_bool()) fail(codes::dtype_mismatch, *e.items[0], "a condition is bool, not " + c->dtype.str());
  auto [a, b] = unify(*e.items[1], *e.items[2]);
  const DType t = a->dtype;
  return with_origin(ir::call(t, intrinsic::if_then_else, {c, a, b}), origin(e));
}

}  // namespace lathe::script
