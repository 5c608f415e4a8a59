#include "tir/script/numpy_text.h"

#include "ir/match.h"
#include "ir/visit.h"
#include "script/document.h"
#include "script/expr_printer.h"
#include "script/names.h"
#include "tir/analysis/effects.h"
#include "tir/codes.h"
#include "tir/stmt.h"

namespace lathe::tir {
namespace {

using script::Document;
using script::Precedence;

constexpr std::string_view prelude = R"(# Tensor programs as loops over NumPy arrays, one element at a time.
import math

import numpy as np


def cast(x, dtype):
    return np.asarray(x).astype(dtype)[()]


def truncdiv(a, b):
    q = a // b
    return q + 1 if q < 0 and q * b != a else q


def truncmod(a, b):
    return a - truncdiv(a, b) * b


def round_away(x):
    half = np.nextafter(type(x)(0.5), type(x)(0))
    return np.trunc(x + np.copysign(half, x))
)";

[[noreturn]] void refuse(const NodeRef& at, std::string message) {
  throw support::DiagnosticError(support::Diagnostic{.code = codes::no_numpy,
                                                     .place = at && at->origin() ? *at->origin() : support::Place(),
                                                     .message = std::move(message)});
}

std::string dtype_text(DType t, const NodeRef& at) {
  const bool known = t.is_scalar() && (t.is_bool() || (t.is_integer() && t.bits >= 8) || t == DType::float_(16) ||
                                       t == DType::float_(32) || t == DType::float_(64));
  if (!known) refuse(at, "NumPy has no " + t.str());
  return t.is_bool() ? "np.bool_" : "np." + t.str();
}

// How NumPy calls an intrinsic of one argument, where the name is not the same.
std::string_view numpy_name(const Intrinsic& op) {
  static const std::unordered_map<const Intrinsic*, std::string_view> other = {
      {&intrinsic::asin, "arcsin"},   {&intrinsic::acos, "arccos"},   {&intrinsic::atan, "arctan"},
      {&intrinsic::asinh, "arcsinh"}, {&intrinsic::acosh, "arccosh"}, {&intrinsic::atanh, "arctanh"},
      {&intrinsic::nearbyint, "rint"}};
  static const std::unordered_set<const Intrinsic*> same = {
      &intrinsic::abs,  &intrinsic::ceil,  &intrinsic::cos,      &intrinsic::cosh,  &intrinsic::exp,
      &intrinsic::exp2, &intrinsic::expm1, &intrinsic::floor,    &intrinsic::log,   &intrinsic::log10,
      &intrinsic::log2, &intrinsic::log1p, &intrinsic::isfinite, &intrinsic::isinf, &intrinsic::isnan,
      &intrinsic::sin,  &intrinsic::sinh,  &intrinsic::sqrt,     &intrinsic::tan,   &intrinsic::tanh,
      &intrinsic::trunc};
  if (const auto it = other.find(&op); it != other.end()) return it->second;
  return same.count(&op) ? op.name : std::string_view();
}

// Of two arguments: a function of NumPy's.
std::string_view numpy_pair(const Intrinsic& op) {
  static const std::unordered_map<const Intrinsic*, std::string_view> rows = {{&intrinsic::atan2, "arctan2"},
                                                                              {&intrinsic::hypot, "hypot"},
                                                                              {&intrinsic::ldexp, "ldexp"},
                                                                              {&intrinsic::nextafter, "nextafter"},
                                                                              {&intrinsic::copysign, "copysign"},
                                                                              {&intrinsic::pow, "power"},
                                                                              {&intrinsic::bitwise_and, "bitwise_and"},
                                                                              {&intrinsic::bitwise_or, "bitwise_or"},
                                                                              {&intrinsic::bitwise_xor, "bitwise_xor"},
                                                                              {&intrinsic::shift_left, "left_shift"},
                                                                              {&intrinsic::shift_right, "right_shift"}};
  const auto it = rows.find(&op);
  return it == rows.end() ? std::string_view() : it->second;
}

class NumpyPrinter {
 public:
  explicit NumpyPrinter(script::Lines& lines) : lines_(lines) {
    for (const char* name : {"np", "math", "cast", "truncdiv", "truncmod", "round_away", "range", "min", "max"})
      names_.reserve(name);
  }

  void function(const std::string& name, const PrimFunc& f) {
    std::vector<std::string> parameters;
    for (const Var& param : f.params) {
      const Buffer b = f.buffer_of(param);
      if (b) check(b);
      parameters.push_back(names_.define(b ? NodeRef(b) : NodeRef(param), b ? b->name : param->name));
    }
    lines_.line("def " + script::Names::legal(name) + "(" + script::join(parameters) + "):");
    lines_.indent();
    for (const auto& [param, b] : f.buffer_map)
      for (size_t d = 0; d < b->shape.size(); ++d)
        if (const auto* symbol = b->shape[d].as<VarNode>(); symbol && !names_.find(symbol))
          lines_.line(names_.define(Var(symbol), symbol->name) + " = " + text_of(b) + ".shape[" + std::to_string(d) +
                      "]");
    lines_.line("with np.errstate(all=\"ignore\"):");
    suite(f.body);
    lines_.dedent();
  }

 private:
  static void check(const Buffer& b) {
    if (!b->strides.empty() || b->elem_offset) refuse(b, "the buffer '" + b->name + "' has strides or an offset");
    (void)dtype_text(b->dtype, b);
  }
  std::string text_of(const NodeRef& n) {
    if (const std::string* text = names_.find(n.get())) return *text;
    const auto* v = n.as<VarNode>();
    if (v) refuse(n, "the variable '" + v->name + "' has no value that an argument tells");
    refuse(n, "the memory of '" + n.as<BufferNode>()->name + "' is laid out already");
  }

  // ---- statements ----

  void suite(const Stmt& s) {
    lines_.indent();
    names_.push();
    const size_t before = lines_.count();
    stmt(s);
    if (lines_.count() == before) lines_.line("pass");
    names_.pop();
    lines_.dedent();
  }

  void new_array(const Buffer& b) {
    check(b);
    std::vector<std::string> extents;
    for (const Expr& e : b->shape) extents.push_back(expr(e).text);
    const std::string shape = script::tuple(extents).text, type = dtype_text(b->dtype, b);
    lines_.line(names_.define(b, b->name) + " = np.empty(" + shape + ", " + type + ")");
  }

  void stmt(const Stmt& s) {
    match_all(
        s,
        [&](const LetStmt& n) {
          const std::string value = expr(n.value).text;
          lines_.line(names_.define(n.var, n.var->name) + " = " + value);
          stmt(n.body);
        },
        [&](const AttrStmt& n) { stmt(n.body); },
        [&](const AssertStmt& n) {
          lines_.line("assert " + expr(n.condition).text + ", " + script::string_literal(n.message).text);
        },
        [&](const BufferStore& n) {
          if (n.predicate) refuse(s, "a store of some lanes of a vector has no form in NumPy");
          lines_.line(element(n.buffer, n.indices) + " = " + expr(n.value).text);
        },
        [&](const DeclBuffer& n) { refuse(s, "the memory of '" + n.buffer->name + "' is laid out already"); },
        [&](const Allocate& n) { refuse(s, "the memory of '" + n.buffer_var->name + "' is laid out already"); },
        [&](const AllocateConst& n) { refuse(s, "the memory of '" + n.buffer_var->name + "' is laid out already"); },
        [&](const SeqStmt& n) {
          for (const Stmt& each : n.seq) stmt(each);
        },
        [&](const IfThenElse& n) {
          lines_.line("if " + expr(n.condition).text + ":");
          suite(n.then_case);
          if (!n.else_case) return;
          lines_.line("else:");
          suite(n.else_case);
        },
        [&](const Evaluate& n) { effect(n.value); }, [&](const For& n) { loop(n); },
        [&](const While& n) {
          lines_.line("while " + expr(n.condition).text + ":");
          suite(n.body);
        },
        [&](const Block& n) { block(n, nullptr); }, [&](const BlockRealize& n) { block(*n.block, &n); });
  }

  void effect(const Expr& e) {
    const auto* call = e.as<Call>();
    if (!call || call->op->effect == Effect::pure) return;
    if (call->op == &intrinsic::break_loop) return lines_.line("break");
    if (call->op == &intrinsic::continue_loop) return lines_.line("continue");
    if (call->op == &intrinsic::assume) return lines_.line("assert " + expr(call->args[0]).text);
    if (is_hint(*call)) return;
    refuse(e, "a call of '" + std::string(call->op->name) + "' has no form in NumPy");
  }

  void loop(const For& n) {
    static constexpr const char* remarks[] = {"", "  # parallel", "  # vectorized", "  # unrolled", ""};
    if (n.kind == ForKind::thread_binding)
      refuse(Stmt(&n), "loop '" + n.loop_var->name + "' runs on a device's threads");
    const std::string end = expr(n.min + n.extent).text;
    const std::string bounds = is_int(n.min, 0) ? expr(n.extent).text : expr(n.min).text + ", " + end;
    names_.push();
    const std::string name = names_.define(n.loop_var, n.loop_var->name);
    lines_.line("for " + name + " in range(" + bounds + "):" + remarks[static_cast<int>(n.kind)]);
    suite(n.body);
    names_.pop();
  }

  void block(const Block& b, const BlockRealize* realize) {
    if (!realize) refuse(Stmt(&b), "the block '" + b.name + "' is not realized");
    const bool guarded = !is_int(realize->predicate, 1);
    if (guarded) lines_.line("if " + expr(realize->predicate).text + ":");
    if (guarded) lines_.indent();
    names_.push();
    std::vector<std::string> values, variables;
    for (const Expr& value : realize->iter_values) values.push_back(expr(value).within(Precedence::conditional));
    for (const IterVar& axis : b.iter_vars) variables.push_back(names_.define(axis->var, axis->var->name));
    const std::string remark = "  # block " + script::string_literal(b.name).text;
    if (!values.empty()) lines_.line(script::join(variables) + " = " + script::join(values) + remark);
    for (const Buffer& allocated : b.alloc_buffers) new_array(allocated);
    for (const MatchBufferRegion& match : b.match_buffers) view(*match);
    if (b.init) initialise(b);
    stmt(b.body);
    names_.pop();
    if (guarded) lines_.dedent();
  }

  void initialise(const Block& b) {
    std::string first;
    for (const IterVar& axis : b.iter_vars) {
      if (axis->type != IterType::reduce) continue;
      first += (first.empty() ? "" : " and ") + *names_.find(axis->var.get()) +
               " == " + expr(axis->dom.min).within(Precedence::sum);
    }
    if (first.empty()) return stmt(b.init);
    lines_.line("if " + first + ":");
    suite(b.init);
  }

  // A region of another buffer under a name of its own; the leading dimensions that it lacks are of extent 1.
  void view(const MatchBufferRegionNode& match) {
    if (!match.buffer->strides.empty()) {
      for (const Expr& stride : match.buffer->strides)
        if (!stride.is<VarNode>()) refuse(match.buffer, "the buffer '" + match.buffer->name + "' has strides");
    }
    const std::vector<Range>& region = match.source->region;
    const size_t dropped = region.size() - std::min(region.size(), match.buffer->shape.size());
    std::vector<std::string> parts;
    for (size_t d = 0; d < region.size(); ++d)
      parts.push_back(d < dropped ? expr(region[d].min).text
                                  : expr(region[d].min).text + ":" + expr(region[d].min + region[d].extent).text);
    const std::string source = script::subscript(text_of(match.source->buffer), parts).text;
    lines_.line(names_.define(match.buffer, match.buffer->name) + " = " + source);
  }

  // ---- expressions ----

  std::string element(const Buffer& b, const std::vector<Expr>& indices) {
    std::vector<std::string> texts;
    for (const Expr& e : indices) texts.push_back(expr(e).within(Precedence::conditional));
    return script::subscript(text_of(b), texts).text;
  }

  Document typed(DType t, const std::string& text, const NodeRef& at) {
    return script::call(dtype_text(t, at), std::vector{text});
  }

  Document infix(const Expr& a, std::string_view symbol, const Expr& b, Precedence precedence) {
    return script::infix(expr(a), symbol, expr(b), precedence);
  }

  Document function(std::string_view name, const std::vector<Expr>& args) {
    std::vector<std::string> texts;
    for (const Expr& e : args) texts.push_back(expr(e).text);
    return script::call(name, texts);
  }

  Document choose(const Expr& condition, const Expr& a, const Expr& b) {
    return {expr(a).within(Precedence::or_) + " if " + expr(condition).within(Precedence::or_) + " else " +
                expr(b).within(Precedence::or_),
            Precedence::conditional};
  }

  Document expr(const Expr& e) {
    const auto division = [&](const Expr& a, const Expr& b, std::string_view symbol, std::string_view name) {
      return e->dtype.is_floating() ? infix(a, symbol, b, Precedence::product) : function(name, {a, b});
    };
    const auto extreme = [&](const Expr& a, const Expr& b, std::string_view name) {
      const std::string numpy = "np." + std::string(name) + "imum";  // of floats: NaN stays
      return function(e->dtype.is_floating() ? numpy : name, {a, b});
    };
    return match_all(
        e, [&](const VarNode& n) -> Document { return {text_of(Var(&n))}; },
        [&](const IntImm& n) -> Document {
          if (n.dtype.is_bool()) return {n.value ? "True" : "False"};
          if (n.dtype == DType::int64()) return script::integer(n.value);
          const bool wide = n.dtype == DType::uint(64);
          return typed(n.dtype, wide ? std::to_string(static_cast<uint64_t>(n.value)) : std::to_string(n.value), e);
        },
        [&](const FloatImm& n) -> Document { return typed(n.dtype, script::floating(n.value, n.dtype).text, e); },
        [&](const StringImm&) -> Document { refuse(e, "a text is no number"); },
        [&](const GlobalVar&) -> Document { refuse(e, "a function is no number"); },
        [&](const Cast& n) -> Document {
          return script::call("cast", std::vector{expr(n.value).text, dtype_text(n.dtype, e)});
        },
        [&](const Add& n) { return infix(n.a, "+", n.b, Precedence::sum); },
        [&](const Sub& n) { return infix(n.a, "-", n.b, Precedence::sum); },
        [&](const Mul& n) { return infix(n.a, "*", n.b, Precedence::product); },
        [&](const Div& n) { return division(n.a, n.b, "/", "truncdiv"); },
        [&](const Mod& n) {
          return e->dtype.is_floating() ? function("np.fmod", {n.a, n.b}) : function("truncmod", {n.a, n.b});
        },
        [&](const FloorDiv& n) { return infix(n.a, "//", n.b, Precedence::product); },
        [&](const FloorMod& n) { return infix(n.a, "%", n.b, Precedence::product); },
        [&](const Min& n) { return extreme(n.a, n.b, "min"); }, [&](const Max& n) { return extreme(n.a, n.b, "max"); },
        [&](const EQ& n) { return infix(n.a, "==", n.b, Precedence::comparison); },
        [&](const NE& n) { return infix(n.a, "!=", n.b, Precedence::comparison); },
        [&](const LT& n) { return infix(n.a, "<", n.b, Precedence::comparison); },
        [&](const LE& n) { return infix(n.a, "<=", n.b, Precedence::comparison); },
        [&](const GT& n) { return infix(n.a, ">", n.b, Precedence::comparison); },
        [&](const GE& n) { return infix(n.a, ">=", n.b, Precedence::comparison); },
        [&](const And& n) { return infix(n.a, "and", n.b, Precedence::and_); },
        [&](const Or& n) { return infix(n.a, "or", n.b, Precedence::or_); },
        [&](const Not& n) -> Document { return {"not " + expr(n.a).within(Precedence::not_), Precedence::not_}; },
        [&](const Select& n) { return choose(n.condition, n.true_value, n.false_value); },
        [&](const Let& n) -> Document {
          const std::string value = expr(n.value).text;
          names_.push();
          const std::string name = names_.define(n.var, n.var->name);
          const std::string body = expr(n.body).within(Precedence::conditional);
          names_.pop();
          return script::call("(lambda " + name + ": " + body + ")", std::vector{value});
        },
        [&](const BufferLoad& n) -> Document {
          if (n.predicate) refuse(e, "a load of some lanes of a vector has no form in NumPy");
          return {element(n.buffer, n.indices)};
        },
        [&](const Ramp&) -> Document { refuse(e, "vectors have no form in NumPy"); },
        [&](const Broadcast&) -> Document { refuse(e, "vectors have no form in NumPy"); },
        [&](const Shuffle&) -> Document { refuse(e, "vectors have no form in NumPy"); },
        [&](const Call& n) { return call(n); },
        [&](const Reduce&) -> Document { refuse(e, "a reduction inside an expression is no tensor program"); });
  }

  Document call(const Call& n) {
    const Expr e(&n);
    const auto constant = [&](int64_t value) { return expr(ir::constant(n.dtype, static_cast<double>(value))).text; };
    if (n.op == &intrinsic::likely) return expr(n.args[0]);
    if (n.op == &intrinsic::if_then_else) return choose(n.args[0], n.args[1], n.args[2]);
    if (n.op == &intrinsic::bitwise_not) return {"~" + expr(n.args[0]).within(Precedence::unary), Precedence::unary};
    if (n.op == &intrinsic::exp10) return script::call("np.power", std::vector{constant(10), expr(n.args[0]).text});
    if (n.op == &intrinsic::round) return function("round_away", n.args);
    if (n.op == &intrinsic::rsqrt)
      return {constant(1) + " / np.sqrt(" + expr(n.args[0]).text + ")", Precedence::product};
    if (n.op == &intrinsic::sigmoid)
      return {constant(1) + " / (" + constant(1) + " + np.exp(-" + expr(n.args[0]).within(Precedence::unary) + "))",
              Precedence::product};
    if (n.op == &intrinsic::erf)
      return script::call("cast", std::vector{"math.erf(" + expr(n.args[0]).text + ")", dtype_text(n.dtype, e)});
    if (n.op == &intrinsic::reinterpret)
      return {"np.asarray(" + expr(n.args[0]).text + ").view(" + dtype_text(n.dtype, e) + ")[()]"};
    if (const std::string_view name = numpy_name(*n.op); !name.empty())
      return function("np." + std::string(name), n.args);
    if (const std::string_view name = numpy_pair(*n.op); !name.empty())
      return function("np." + std::string(name), n.args);
    refuse(e, "a call of '" + std::string(n.op->name) + "' has no form in NumPy");
  }

  script::Lines& lines_;
  script::Names names_;
};

}  // namespace

support::Result<std::string> numpy_text(const ir::IRModule& module) {
  return support::catch_diagnostics([&]() -> support::Result<std::string> {
    script::Lines lines(4);
    for (const auto& [name, function] : module) {
      const auto* f = function.as<PrimFunc>();
      if (!f) continue;
      lines.blank();
      lines.blank();
      NumpyPrinter(lines).function(name, *f);
    }
    return std::string(prelude) + lines.str();
  });
}

}  // namespace lathe::tir
