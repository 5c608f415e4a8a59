#include "tir/script/numpy_expr.h"

#include "ir/match.h"
#include "tir/codes.h"

namespace lathe::tir {
namespace {

using script::Document;
using script::Precedence;
using ValueInterval = NumpyExpressions::Interval;

bool is_narrow_float(DType t) { return t.is_floating() && t.bits < 32; }
bool is_numpy_float(DType t) { return t.is_ieee_float(); }
// In a buffer of ours several share a byte; ml_dtypes has one in each.
bool is_packed(DType t) { return t.is_integer() && t.bits < 8; }

bool fits(ValueInterval i, DType t) {
  // Doubles of 64 bits are inexact: a bit less than the whole range.
  if (t.is_uint()) return i.low >= 0 && i.high <= (t.bits == 64 ? 0x1p63 : std::ldexp(1, t.bits) - 1);
  const double half = t.bits == 64 ? 0x1p62 : std::ldexp(1, t.bits - 1);
  return i.low >= -half && i.high <= half - 1;
}

double magnitude(ValueInterval i) { return std::max(std::fabs(i.low), std::fabs(i.high)); }

ValueInterval product(ValueInterval a, ValueInterval b) {
  const auto times = [](double x, double y) { return x == 0 || y == 0 ? 0.0 : x * y; };
  const double all[] = {times(a.low, b.low), times(a.low, b.high), times(a.high, b.low), times(a.high, b.high)};
  return {*std::min_element(std::begin(all), std::end(all)), *std::max_element(std::begin(all), std::end(all))};
}

ValueInterval floor_quotient(ValueInterval a, ValueInterval b) {
  if (b.low != b.high || b.low <= 0) return {-magnitude(a), magnitude(a)};
  return {std::floor(a.low / b.low), std::floor(a.high / b.low)};
}

ValueInterval floor_rest(ValueInterval a, ValueInterval b) {
  if (b.low > 0) return a.low >= 0 ? ValueInterval{0, std::min(a.high, b.high - 1)} : ValueInterval{0, b.high - 1};
  return {-magnitude(b), magnitude(b)};
}

// How NumPy calls an intrinsic of floats where nothing but the name is another, by the number of arguments.
std::string_view numpy_name(const Intrinsic& op) {
  static const std::unordered_map<const Intrinsic*, std::string_view> other = {
      {&intrinsic::asin, "arcsin"},        {&intrinsic::acos, "arccos"},   {&intrinsic::atan, "arctan"},
      {&intrinsic::asinh, "arcsinh"},      {&intrinsic::acosh, "arccosh"}, {&intrinsic::atanh, "arctanh"},
      {&intrinsic::nearbyint, "rint"},     {&intrinsic::atan2, "arctan2"}, {&intrinsic::pow, "power"},
      {&intrinsic::exp_nonpositive, "exp"}};
  static const std::unordered_set<const Intrinsic*> same = {
      &intrinsic::abs,   &intrinsic::ceil,  &intrinsic::cos,      &intrinsic::cosh,      &intrinsic::exp,
      &intrinsic::exp2,  &intrinsic::expm1, &intrinsic::floor,    &intrinsic::log,       &intrinsic::log10,
      &intrinsic::log2,  &intrinsic::log1p, &intrinsic::isfinite, &intrinsic::isinf,     &intrinsic::isnan,
      &intrinsic::sin,   &intrinsic::sinh,  &intrinsic::sqrt,     &intrinsic::tan,       &intrinsic::tanh,
      &intrinsic::trunc, &intrinsic::hypot, &intrinsic::ldexp,    &intrinsic::nextafter, &intrinsic::copysign};
  if (const auto it = other.find(&op); it != other.end()) return it->second;
  return same.count(&op) ? op.name : std::string_view();
}

bool rounds(const Intrinsic& op) {
  return &op == &intrinsic::ceil || &op == &intrinsic::floor || &op == &intrinsic::trunc || &op == &intrinsic::round ||
         &op == &intrinsic::nearbyint;
}

// Of integers alone.
std::string_view bit_function(const Intrinsic& op) {
  static const std::unordered_map<const Intrinsic*, std::string_view> rows = {{&intrinsic::bitwise_and, "bitwise_and"},
                                                                              {&intrinsic::bitwise_or, "bitwise_or"},
                                                                              {&intrinsic::bitwise_xor, "bitwise_xor"},
                                                                              {&intrinsic::shift_left, "left_shift"},
                                                                              {&intrinsic::shift_right, "right_shift"}};
  const auto it = rows.find(&op);
  return it == rows.end() ? std::string_view() : it->second;
}

}  // namespace

void refuse_numpy(const NodeRef& at, std::string message) {
  throw support::DiagnosticError(support::Diagnostic{.code = codes::no_numpy,
                                                     .place = at && at->origin() ? *at->origin() : support::Place(),
                                                     .message = std::move(message)});
}

// ---- names ----

std::string NumpyExpressions::dtype(DType t, const NodeRef& at) {
  const DType scalar = t.element();
  if (scalar.is_bool()) return "np.bool_";
  const bool numpy = (scalar.is_integer() && scalar.bits >= 8) || is_numpy_float(scalar);
  if (numpy) return "np." + scalar.str();
  const bool narrow = scalar.is_floating() || (scalar.is_integer() && (scalar.bits == 2 || scalar.bits == 4));
  if (!narrow) refuse_numpy(at, "NumPy has no " + scalar.str());
  use("ml_dtypes");
  return "ml_dtypes." + scalar.str();
}

std::string NumpyExpressions::shape(const std::vector<Expr>& extents) {
  std::vector<std::string> texts;
  for (const Expr& e : extents) texts.push_back(exact(e).text);
  return script::tuple(texts).text;
}

std::string NumpyExpressions::define_integer(const Var& v, ValueInterval interval) {
  plain_[v.get()] = interval;
  return names.define(v, v->name);
}

std::pair<std::string, std::string> NumpyExpressions::define(const Var& v, const Expr& e) {
  const Piece p = settled(e, piece(e));
  if (p.plain) return {define_integer(v, p.interval), p.text.within(Precedence::conditional)};
  plain_.erase(v.get());
  return {names.define(v, v->name), p.text.within(Precedence::conditional)};
}

std::string NumpyExpressions::define_array(const Buffer& b) {
  if (b->dtype.is_vector()) refuse_numpy(b, "the elements of '" + b->name + "' are vectors");
  (void)dtype(b->dtype, b);
  const std::string name = names.define(b, b->name);
  if (b->data) names.set(b->data, name);
  return name;
}

std::string NumpyExpressions::memory(const Var& data, const Buffer& used_by) {
  if (const std::string* text = names.find(data.get())) return *text;
  refuse_numpy(used_by, "nothing here has the memory of '" + used_by->name + "'");
}

// Memory is an array that begins where `b` does, less its offset.
std::string NumpyExpressions::laid_out(const std::string& memory, const Buffer& b) {
  if (is_packed(b->dtype)) refuse_numpy(b, "several elements of '" + b->name + "' share a byte, which NumPy's do not");
  std::vector<std::string> args = {memory, dtype(b->dtype, b), shape(b->shape)};
  if (!b->strides.empty()) args.push_back(shape(b->strides));
  if (b->elem_offset && !is_int(b->elem_offset, 0)) args.push_back("offset=" + exact(b->elem_offset).text);
  return script::call(use("laid_out"), args).text;
}

std::string NumpyExpressions::array(const Buffer& b) {
  if (const std::string* text = names.find(b.get())) return *text;
  if (!b->data) refuse_numpy(b, "nothing here has the memory of '" + b->name + "'");
  const std::string text = laid_out(memory(b->data, b), b), name = names.define(b, b->name);
  lines_.line(name + " = " + text);
  return name;
}

// ---- integers of Python's, and those of NumPy's ----

Document NumpyExpressions::exact(const Expr& e) {
  const bool before = std::exchange(exact_, true);
  Document text = piece(e).text;
  exact_ = before;
  return text;
}

std::pair<std::string, ValueInterval> NumpyExpressions::whole(const Expr& e) {
  const bool before = std::exchange(exact_, true);
  const Piece p = piece(e);
  exact_ = before;
  if (p.plain) return {p.text.within(Precedence::conditional), p.interval};
  return {"int(" + p.text.text + ")", {}};
}

NumpyExpressions::Piece NumpyExpressions::settled(const Expr& e, Piece p) {
  if (!p.plain || exact_ || fits(p.interval, e->dtype)) return p;
  return {script::call(use("wrap"), std::vector{p.text.text, dtype(e->dtype, e)}), false, {}};
}

Document NumpyExpressions::value(const Expr& e) { return settled(e, piece(e)).text; }

Document NumpyExpressions::typed(DType t, const std::string& text, const NodeRef& at) {
  return script::call(dtype(t, at), std::vector{text});
}

Document NumpyExpressions::typed(const Expr& e) {
  Piece p = settled(e, piece(e));
  return p.plain ? typed(e->dtype, p.text.text, e) : p.text;
}

// Two operands, both of Python's or both of NumPy's; integers of 64 bits mix.
void NumpyExpressions::settle(const Expr& a, Piece& x, const Expr& b, Piece& y) {
  x = settled(a, std::move(x));
  y = settled(b, std::move(y));
  if (x.plain == y.plain || a->dtype == DType::int64()) return;
  Piece& other = x.plain ? x : y;
  other.text = typed(a->dtype, other.text.text, x.plain ? a : b);
}

NumpyExpressions::Piece NumpyExpressions::integer(const IntImm& n) {
  if (n.dtype.is_bool()) return {{n.value ? "True" : "False"}, false, {}};
  if (n.dtype == DType::uint(64) && n.value < 0)
    return {typed(n.dtype, std::to_string(static_cast<uint64_t>(n.value)), Expr(&n)), false, {}};
  const auto wide = static_cast<double>(n.value);
  if (fits({wide, wide}, n.dtype)) return {script::integer(n.value), true, {wide, wide}};
  return {typed(n.dtype, std::to_string(n.value), Expr(&n)), false, {}};
}

// Sums, differences and products stay exact as long as both sides are Python's; everything else needs proper values.
NumpyExpressions::Piece NumpyExpressions::arithmetic(const Expr& e, const Expr& a, const Expr& b) {
  const DType t = e->dtype;
  if (t.is_bool() && !e.is<Min>() && !e.is<Max>()) refuse_numpy(e, "arithmetic of bools has no form in NumPy");
  if (t.is_handle()) refuse_numpy(e, "arithmetic of addresses has no form in NumPy");
  const bool ring = e.is<Add>() || e.is<Sub>() || e.is<Mul>();
  Piece x = piece(a), y = piece(b);
  const ValueInterval i = x.interval, j = y.interval;
  if (ring && x.plain && y.plain) {
    if (e.is<Mul>()) return {script::infix(x.text, "*", y.text, Precedence::product), true, product(i, j)};
    const bool sum = e.is<Add>();
    return {script::infix(x.text, sum ? "+" : "-", y.text, Precedence::sum), true,
            sum ? ValueInterval{i.low + j.low, i.high + j.high} : ValueInterval{i.low - j.high, i.high - j.low}};
  }
  settle(a, x, b, y);
  if (is_packed(t.element()) && !(x.plain && y.plain))
    return {narrowed(e, binary(e, {widened(a, x.text)}, {widened(b, y.text)}).text), false, {}};
  return binary(e, std::move(x), std::move(y));
}

// Integers of fewer than eight bits are computed with as ones of eight.
Document NumpyExpressions::widened(const Expr& e, const Document& text) {
  return script::call(use("cast"), std::vector{text.text, std::string(e->dtype.is_uint() ? "np.uint8" : "np.int8")});
}
Document NumpyExpressions::narrowed(const Expr& e, const Document& text) {
  return script::call(use("cast"), std::vector{text.text, dtype(e->dtype, e)});
}

NumpyExpressions::Piece NumpyExpressions::binary(const Expr& e, Piece x, Piece y) {
  const DType t = e->dtype;
  const ValueInterval i = x.interval, j = y.interval;
  const bool plain = x.plain && y.plain, floating = t.is_floating();
  const auto infix = [&](std::string_view symbol, Precedence precedence, ValueInterval interval = {}) -> Piece {
    return {script::infix(x.text, symbol, y.text, precedence), plain, interval};
  };
  const auto named = [&](std::string_view name, ValueInterval interval = {}) -> Piece {
    return {script::call(name, std::vector{x.text.text, y.text.text}), plain, interval};
  };
  if (e.is<Add>()) return infix("+", Precedence::sum);
  if (e.is<Sub>()) return infix("-", Precedence::sum);
  if (e.is<Mul>()) return infix("*", Precedence::product);
  if (e.is<Div>() && floating) return infix("/", Precedence::product);
  if (e.is<Mod>() && floating) return named("np.fmod");
  const ValueInterval no_larger{-magnitude(i), magnitude(i)};
  if (e.is<Div>()) return named(use("truncdiv"), no_larger);
  if (e.is<Mod>()) return named(use("truncmod"), no_larger);
  if (e.is<FloorDiv>())
    return floating ? named(use("floor_divide")) : infix("//", Precedence::product, floor_quotient(i, j));
  if (e.is<FloorMod>())
    return floating ? named(use("floor_modulo")) : infix("%", Precedence::product, floor_rest(i, j));
  const bool least = e.is<Min>();
  // NaN stays.
  if (floating || t.is_vector()) return named(least ? "np.minimum" : "np.maximum");
  return least ? named("min", {std::min(i.low, j.low), std::min(i.high, j.high)})
               : named("max", {std::max(i.low, j.low), std::max(i.high, j.high)});
}

// ---- the rest ----

Document NumpyExpressions::of(std::string_view function, const std::vector<Expr>& args) {
  std::vector<std::string> texts;
  for (const Expr& e : args) texts.push_back(typed(e).text);
  return script::call(function, texts);
}

NumpyExpressions::Piece NumpyExpressions::choose(const Expr& condition, const Expr& a, const Expr& b) {
  if (condition->dtype.is_vector())
    return {script::call("np.where", std::vector{value(condition).text, typed(a).text, typed(b).text}), false, {}};
  Piece x = piece(a), y = piece(b);
  const ValueInterval either{std::min(x.interval.low, y.interval.low), std::max(x.interval.high, y.interval.high)};
  settle(a, x, b, y);
  return {{x.text.within(Precedence::or_) + " if " + value(condition).within(Precedence::or_) + " else " +
               y.text.within(Precedence::or_),
           Precedence::conditional},
          x.plain && y.plain,
          either};
}

Document NumpyExpressions::logical(const Expr& a, const Expr& b, std::string_view word, std::string_view function,
                                   Precedence precedence) {
  if (a->dtype.is_vector()) return script::call(function, std::vector{value(a).text, value(b).text});
  return script::infix(value(a), word, value(b), precedence);
}

Document NumpyExpressions::converted(const Cast& n) {
  const Expr e(&n);
  const DType to = n.dtype.element(), from = n.value->dtype.element();
  std::string text = value(n.value).text;
  const std::string type = dtype(to, e);
  const auto through = [&](std::string_view helper) { return script::call(use(helper), std::vector{text, type}); };
  if (from.is_floating() && to.is_integer()) return through("to_integer");
  if (is_packed(from) && is_packed(to))
    text = script::call(use("cast"), std::vector{text, std::string("np.int8")}).text;
  const bool wide = from.is_integer() || (is_numpy_float(from) && from.bits == 64);
  if (!wide || !is_narrow_float(to)) return through("cast");
  if (!is_numpy_float(to)) return through("narrow");
  if (from.is_integer()) text = script::call(use("cast"), std::vector{text, std::string("np.float64")}).text;
  return through("cast");
}

std::vector<std::string> NumpyExpressions::positions(const std::vector<Expr>& indices) {
  std::vector<std::string> texts;
  for (const Expr& e : indices) texts.push_back(exact(e).within(Precedence::conditional));
  return texts;
}

std::string NumpyExpressions::element(const Buffer& b, const std::vector<Expr>& indices) {
  const std::string object = array(b);
  return script::subscript(object, positions(indices)).text;
}

Document NumpyExpressions::load(const BufferLoad& n) {
  if (!n.predicate) return {element(n.buffer, n.indices)};
  if (n.predicate->dtype.is_scalar())
    return {element(n.buffer, n.indices) + " if " + value(n.predicate).within(Precedence::or_) + " else " +
                typed(n.dtype, "0", Expr(&n)).text,
            Precedence::conditional};
  std::vector<std::string> args = positions(n.indices);
  args.insert(args.begin(), {array(n.buffer), value(n.predicate).text});
  return script::call(use("load_lanes"), args);
}

NumpyExpressions::Piece NumpyExpressions::piece(const Expr& e) {
  const auto computed = [](Document text) -> Piece { return {std::move(text), false, {}}; };
  const auto compared = [&](const Expr& a, const Expr& b, std::string_view symbol) {
    Piece x = piece(a), y = piece(b);
    settle(a, x, b, y);
    return computed(script::infix(x.text, symbol, y.text, Precedence::comparison));
  };
  const auto lanes = [&](int64_t count) { return std::to_string(count); };
  return match_all(
      e,
      [&](const VarNode& n) -> Piece {
        const std::string* text = names.find(&n);
        if (!text) refuse_numpy(e, "the variable '" + n.name + "' has no value that an argument tells");
        const auto it = plain_.find(&n);
        return {{*text}, it != plain_.end(), it == plain_.end() ? ValueInterval() : it->second};
      },
      [&](const IntImm& n) { return integer(n); },
      [&](const FloatImm& n) { return computed(typed(n.dtype, script::floating(n.value, n.dtype).text, e)); },
      [&](const StringImm&) -> Piece { refuse_numpy(e, "a text is no number"); },
      [&](const GlobalVar&) -> Piece { refuse_numpy(e, "a function is no number"); },
      [&](const Cast& n) -> Piece {
        // Between integers, one of Python's that fits stays what it is.
        if (n.dtype.is_scalar() && n.dtype.is_integer() && n.value->dtype.is_integer()) {
          const Piece p = settled(n.value, piece(n.value));
          if (p.plain && (exact_ || fits(p.interval, n.dtype))) return p;
          if (p.plain) return computed(script::call(use("wrap"), std::vector{p.text.text, dtype(n.dtype, e)}));
        }
        return computed(converted(n));
      },
      [&](const Add& n) { return arithmetic(e, n.a, n.b); }, [&](const Sub& n) { return arithmetic(e, n.a, n.b); },
      [&](const Mul& n) { return arithmetic(e, n.a, n.b); }, [&](const Div& n) { return arithmetic(e, n.a, n.b); },
      [&](const Mod& n) { return arithmetic(e, n.a, n.b); }, [&](const FloorDiv& n) { return arithmetic(e, n.a, n.b); },
      [&](const FloorMod& n) { return arithmetic(e, n.a, n.b); }, [&](const Min& n) { return arithmetic(e, n.a, n.b); },
      [&](const Max& n) { return arithmetic(e, n.a, n.b); }, [&](const EQ& n) { return compared(n.a, n.b, "=="); },
      [&](const NE& n) { return compared(n.a, n.b, "!="); }, [&](const LT& n) { return compared(n.a, n.b, "<"); },
      [&](const LE& n) { return compared(n.a, n.b, "<="); }, [&](const GT& n) { return compared(n.a, n.b, ">"); },
      [&](const GE& n) { return compared(n.a, n.b, ">="); },
      [&](const And& n) { return computed(logical(n.a, n.b, "and", "np.logical_and", Precedence::and_)); },
      [&](const Or& n) { return computed(logical(n.a, n.b, "or", "np.logical_or", Precedence::or_)); },
      [&](const Not& n) -> Piece {
        if (e->dtype.is_vector()) return computed(of("np.logical_not", {n.a}));
        return computed({"not " + value(n.a).within(Precedence::not_), Precedence::not_});
      },
      [&](const Select& n) { return choose(n.condition, n.true_value, n.false_value); },
      [&](const Let& n) -> Piece {
        names.push();
        const auto [name, given] = define(n.var, n.value);
        const Piece body = piece(n.body);
        const std::string text = body.text.within(Precedence::conditional);
        names.pop();
        return {script::call("(lambda " + name + ": " + text + ")", std::vector{given}), body.plain, body.interval};
      },
      [&](const BufferLoad& n) { return computed(load(n)); },
      [&](const Ramp& n) -> Piece {
        return computed(script::call(
            use("ramp"), std::vector{value(n.base).text, value(n.stride).text, lanes(n.lanes), dtype(e->dtype, e)}));
      },
      [&](const Broadcast& n) -> Piece {
        return computed(script::call("np.full", std::vector{lanes(n.lanes), value(n.value).text, dtype(e->dtype, e)}));
      },
      [&](const Shuffle& n) -> Piece {
        std::vector<std::string> parts, chosen;
        for (const Expr& each : n.vectors) parts.push_back(typed(each).text);
        for (const int64_t index : n.indices) chosen.push_back(std::to_string(index));
        const std::string at = n.indices.size() == 1 ? chosen[0] : script::list(chosen).text;
        return computed({script::call("np.hstack", std::vector{script::tuple(parts).text}).text + "[" + at + "]"});
      },
      [&](const Call& n) -> Piece {
        if (n.op == &intrinsic::likely) return piece(n.args[0]);
        if (n.op == &intrinsic::if_then_else) return choose(n.args[0], n.args[1], n.args[2]);
        // Rounding leaves an integer as it is.
        if (rounds(*n.op) && !n.args[0]->dtype.is_floating()) return piece(n.args[0]);
        return computed(call(n));
      },
      [&](const Reduce&) -> Piece { refuse_numpy(e, "a reduction inside an expression is no tensor program"); });
}

Document NumpyExpressions::call(const Call& n) {
  const Expr e(&n);
  const DType t = n.args.empty() ? n.dtype : n.args[0]->dtype;
  const auto one = [&] { return typed(n.dtype, "1", e).text; };
  const auto with_dtype = [&](std::string_view helper) {
    return script::call(use(helper), std::vector{typed(n.args[0]).text, dtype(n.dtype, e)});
  };
  const auto over_lanes = [&](std::string_view ufunc) {
    return Document{"np." + std::string(ufunc) + ".accumulate(" + typed(n.args[0]).text +
                    ", dtype=" + dtype(n.dtype, e) + ")[-1]"};
  };
  if (n.op == &intrinsic::undef)
    return n.dtype.is_scalar() ? typed(n.dtype, "0", e)
                               : Document{"np.zeros(" + std::to_string(n.dtype.lanes) + ", " + dtype(n.dtype, e) + ")"};
  if (n.op == &intrinsic::reinterpret)
    return script::call(use("same_bits"),
                        std::vector{typed(n.args[0]).text, dtype(n.dtype, e), std::to_string(n.dtype.lanes)});
  if (n.op == &intrinsic::vector_reduce_add) return over_lanes("add");
  if (n.op == &intrinsic::vector_reduce_max) return over_lanes("maximum");
  if (n.op == &intrinsic::vector_reduce_min) return over_lanes("minimum");
  const auto integers = [&](std::string_view function) {
    if (!is_packed(t.element())) return of(function, n.args);
    std::vector<std::string> wide;
    for (const Expr& arg : n.args) wide.push_back(widened(arg, typed(arg)).text);
    return narrowed(e, script::call(function, wide));
  };
  if (!t.is_floating()) {
    if (n.op == &intrinsic::bitwise_not && t.is_bool()) return of("np.logical_not", n.args);
    if (n.op == &intrinsic::bitwise_not) return integers("np.invert");
    if (n.op == &intrinsic::popcount || n.op == &intrinsic::clz) {
      if (t.is_bool() || is_packed(t.element())) refuse_numpy(e, "bits of " + t.str() + " cannot be counted in NumPy");
      return with_dtype(n.op == &intrinsic::clz ? "leading_zeros" : "popcount");
    }
    if (n.op == &intrinsic::pow) return integers(use("power"));
    if (n.op == &intrinsic::abs) return integers("np.abs");
    if (const std::string_view name = bit_function(*n.op); !name.empty()) {
      if (t.is_bool() && name.ends_with("shift")) refuse_numpy(e, "bools are not shifted in NumPy");
      return integers("np." + std::string(name));
    }
  } else {
    if (n.op == &intrinsic::exp10)
      return script::call("np.power", std::vector{typed(n.dtype, "10", e).text, typed(n.args[0]).text});
    if (n.op == &intrinsic::round) return of(use("round_away"), n.args);
    if (n.op == &intrinsic::rsqrt) return {one() + " / np.sqrt(" + typed(n.args[0]).text + ")", Precedence::product};
    if (n.op == &intrinsic::sigmoid) return of(use("sigmoid"), n.args);
    if (n.op == &intrinsic::erf) return of(use("erf"), n.args);
    if (n.op == &intrinsic::fma) return of(use("fma"), n.args);
  }
  if (const std::string_view name = numpy_name(*n.op); !name.empty()) return of("np." + std::string(name), n.args);
  if (n.op == &intrinsic::call_packed || n.op == &intrinsic::call_extern || n.op == &intrinsic::call_pure_extern ||
      n.op == &intrinsic::call_llvm_intrin || n.op == &intrinsic::call_llvm_pure_intrin) {
    const auto* name = n.args.empty() ? nullptr : n.args[0].as<StringImm>();
    refuse_numpy(e, "'" + (name ? name->value : std::string(n.op->name)) +
                        "' is a function outside the program, of which the text knows nothing");
  }
  refuse_numpy(e, "a call of '" + std::string(n.op->name) + "' has no form in NumPy");
}

}  // namespace lathe::tir
