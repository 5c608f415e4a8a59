#include "te/loops/read_loops.h"

#include "ir/visit.h"
#include "te/codes.h"

namespace lathe::te {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Value;
using ir::Var;
using script::Arguments;
using script::syntax::ExprKind;
using script::syntax::StmtKind;
using tir::Stmt;

namespace {

// The array functions of NumPy that make an array, and what they fill it with.
struct NewArray {
  std::string_view name;
  bool like;  // takes its shape from an array
  std::optional<double> value;
};
constexpr NewArray new_arrays[] = {
    {"empty", false, {}},     {"zeros", false, 0.0},     {"ones", false, 1.0},
    {"empty_like", true, {}}, {"zeros_like", true, 0.0}, {"ones_like", true, 1.0},
};

}  // namespace

bool reads_arrays(const Expr& e) {
  bool found = false;
  ir::post_order(e, [&](const ir::NodeRef& n) { found = found || n.as<ir::BufferLoad>(); });
  return found;
}

script::ByName<std::string> LoopReader::builtins() {
  script::ByName<std::string> aliases{{"np", "python.numpy"}};
  for (const char* name : {"max", "min", "abs", "len", "float", "int", "math", "numpy"})
    aliases[name] = std::string("python.") + name;
  return aliases;
}

void LoopReader::refuse(const Line& s, std::string message, std::string help) const {
  Syntax at;
  at.begin = s.begin;
  at.end = s.head_end;
  fail(codes::not_loops, at, std::move(message), std::move(help));
}

// ---- parameters and locals ----

void LoopReader::take_parameters(const Line& def, const std::vector<ParameterSpec>& given) {
  std::unordered_map<std::string, Var> symbols;
  for (const ParameterSpec& spec : given) {
    const auto is_it = [&](const script::syntax::Parameter& p) { return p.name == spec.name; };
    if (std::none_of(def.parameters.begin(), def.parameters.end(), is_it))
      throw support::DiagnosticError(support::Diagnostic{
          .code = codes::parameters, .message = "'" + def.name + "' has no parameter '" + spec.name + "'"});
  }
  bool typed = false;
  for (const script::syntax::Parameter& p : def.parameters) {
    Syntax at;
    at.begin = p.begin;
    at.end = p.end;
    const auto spec = std::find_if(given.begin(), given.end(), [&](const auto& s) { return s.name == p.name; });
    if (spec == given.end())
      fail(codes::parameters, at, "nothing says what '" + p.name + "' is",
           p.name + "=((rows, columns), \"float32\"), or " + p.name + "=\"int64\" for a number");
    if (spec->dtype.is_floating() && !std::exchange(typed, true)) float_ = spec->dtype;
    if (!spec->shape) {
      const Var v = ir::var(p.name, spec->dtype);
      params_.push_back(v);
      scalars_.push_back(v);
      scope.define(p.name, v, p.begin, p.end);
      continue;
    }
    std::vector<Expr> shape;
    for (const auto& extent : *spec->shape) {
      if (const auto* number = std::get_if<int64_t>(&extent)) {
        if (*number < 0) fail(codes::parameters, at, "an extent of '" + p.name + "' is negative");
        shape.push_back(ir::int64(*number));
      } else {
        const auto& symbol = std::get<std::string>(extent);
        shape.push_back(symbols.try_emplace(symbol, ir::size_var(symbol)).first->second);
      }
    }
    const Buffer b = ir::buffer(p.name, std::move(shape), spec->dtype);
    params_.push_back(b->data);
    buffers_.push_back(b);
    scope.define(p.name, b, p.begin, p.end);
  }
  for (const auto& [name, symbol] : symbols)
    if (!scope.find(name)) scope.define(name, symbol, def.begin, def.head_end);
}

// Notes that the names in `e` stand in the innermost suite of `path`.
void LoopReader::mention(const Syntax& e, const std::vector<const Lines*>& path) {
  if (e.kind == ExprKind::name) {
    const auto [it, first] = locals_.try_emplace(e.text);
    std::vector<const Lines*>& shared = it->second.suites;
    if (first) {
      shared = path;
    } else {
      size_t same = 0;
      while (same < shared.size() && same < path.size() && shared[same] == path[same]) ++same;
      shared.resize(same);
    }
  }
  for (const Syntax* item : e.items)
    if (item) mention(*item, path);
}

void LoopReader::find_locals(const Lines& body, std::vector<const Lines*>& path) {
  path.push_back(&body);
  const auto assigned = [&](const Syntax& target, bool updated) {
    if (target.kind != ExprKind::name) return;
    Local& local = locals_[target.text];
    ++local.assignments;
    local.updated = local.updated || updated;
  };
  for (const Line* s : body) {
    for (const Syntax* e : {s->value, s->message})
      if (e) mention(*e, path);
    // A loop's variable is no local: it is known in its body alone.
    if (s->target && s->kind != StmtKind::for_) mention(*s->target, path);
    for (const Syntax* target : s->targets) mention(*target, path);
    if (s->kind == StmtKind::augmented) assigned(*s->target, true);
    if (s->kind == StmtKind::annotated && s->value) assigned(*s->target, false);
    if (s->kind == StmtKind::assign)
      for (const Syntax* target : s->targets) {
        assigned(*target, false);
        if (target->kind == ExprKind::tuple)
          for (const Syntax* item : target->items) assigned(*item, false);
      }
    find_locals(s->body, path);
    find_locals(s->other, path);
  }
  path.pop_back();
}

tir::Function LoopReader::function(const Line& def, const std::vector<ParameterSpec>& given) {
  take_parameters(def, given);
  std::vector<const Lines*> path;
  find_locals(def.body, path);
  std::erase_if(locals_, [](const auto& entry) { return entry.second.assignments == 0; });
  for (const auto& [name, local] : locals_) {
    if (const auto* known = scope.find(name)) {
      Syntax at;
      at.begin = known->begin;
      at.end = known->end;
      fail(codes::not_loops, at, fmt::format("the parameter or dimension '{}' is assigned to", name),
           "use another name for it");
    }
    context.aliases[std::string(name)] = fmt::format("local.{}", name);
  }
  const Stmt body = infer_blocks(suite(def.body));
  std::vector<std::pair<Var, Buffer>> map;
  for (const Buffer& b : buffers_) map.emplace_back(b->data, b);
  // Parameters keep the function's order; a buffer's handle is a variable of its own.
  for (auto& [param, b] : map) {
    const Var handle = ir::var(b->name + "_handle", DType::handle());
    std::replace(params_.begin(), params_.end(), param, handle);
    param = handle;
  }
  return placed(ir::make<tir::PrimFunc>(params_, std::move(map), tir::root_block(body, arrays_)), def);
}

// ---- what holds where something is read ----

// Values in arrays may change before they are looked at again: conditions on them tell nothing.
template <class Read>
auto LoopReader::where(const Expr& condition, bool holds, Read&& read) {
  const Expr known = reads_arrays(condition) ? ir::boolean(true) : holds ? condition : ir::logical_not(condition);
  const arith::Analyzer::Constraint constraint(analyzer_, known);
  conditions_.push_back(known);
  auto result = read();
  conditions_.pop_back();
  return result;
}

Value LoopReader::logical(const Syntax& e) {
  const bool both = e.text == "and";
  Value left = value(*e.items[0]);
  for (size_t i = 1; i < e.items.size(); ++i) {
    const Syntax& at = *e.items[i];
    if (const auto* known = left.get<bool>()) {
      if (*known == both) left = value(at);
      continue;
    }
    const auto condition = [&](const Value& v, const Syntax& where_it_is) {
      const Expr found = to_expr(v, where_it_is, DType::int64());
      if (!found->dtype.is_bool())
        fail(codes::not_loops, where_it_is, fmt::format("'{}' takes bool, not {}", e.text, found->dtype.str()));
      return found;
    };
    const Expr a = condition(left, *e.items[0]);
    const Expr b = where(a, both, [&] { return condition(value(at), at); });
    const Expr chosen = both ? ir::call(b->dtype, ir::intrinsic::if_then_else, {a, b, ir::boolean(false)})
                             : ir::call(b->dtype, ir::intrinsic::if_then_else, {a, ir::boolean(true), b});
    left = ir::with_origin(reads_arrays(b) ? chosen : both ? ir::logical_and(a, b) : ir::logical_or(a, b), origin(e));
  }
  return left;
}

Value LoopReader::conditional(const Syntax& e) {
  const Value given = value(*e.items[0]);
  if (const auto* known = given.get<bool>()) return value(*e.items[*known ? 1 : 2]);
  const Expr c = to_expr(given, *e.items[0], DType::int64());
  if (!c->dtype.is_bool()) fail(codes::not_loops, *e.items[0], "a condition is bool, not " + c->dtype.str());
  const Value yes = where(c, true, [&] { return value(*e.items[1]); });
  const Value no = where(c, false, [&] { return value(*e.items[2]); });
  auto [a, b] = unify(yes, *e.items[1], no, *e.items[2]);
  return ir::with_origin(ir::call(a->dtype, ir::intrinsic::if_then_else, {c, a, b}), origin(e));
}

// ---- statements ----

Stmt LoopReader::suite(const Lines& lines) {
  depth_[&lines] = loops_.size();
  std::vector<Stmt> made;
  for (const Line* s : lines) {
    try {
      if (Stmt statement = line(*s); !tir::is_nop(statement)) made.push_back(std::move(statement));
    } catch (support::DiagnosticError& error) {
      for (support::Diagnostic& d : error.diagnostics)
        if (std::holds_alternative<std::monostate>(d.place))
          d.place = support::TextRange{context.tree.source, s->begin, s->head_end};
      throw;
    }
  }
  return tir::seq(std::move(made));
}

Stmt LoopReader::line(const Line& s) {
  switch (s.kind) {
    case StmtKind::pass:
      return tir::nop();
    case StmtKind::for_:
      return for_loop(s);
    case StmtKind::if_:
      return branch(s);
    case StmtKind::assign:
      if (s.targets.size() != 1) refuse(s, "one target is assigned at a time");
      return assign(s, *s.targets[0]);
    case StmtKind::annotated:
      return s.value ? assign(s, *s.target) : tir::nop();
    case StmtKind::augmented:
      return update(s);
    case StmtKind::expression:
      if (s.value->kind == ExprKind::string || s.value->kind == ExprKind::constant) return tir::nop();
      refuse(s, "this value is not used");
    case StmtKind::return_:
      if (!s.value || (s.value->kind == ExprKind::constant && s.value->text == "None")) {
        if (loops_.empty()) return tir::nop();
        refuse(s, "a tensor function runs to its end: there is no 'return' inside loops");
      }
      refuse(s, "a tensor function returns nothing", "write the result into an array that is a parameter");
    case StmtKind::while_:
      refuse(s, "'while' has no bound that is known before it runs", "use 'for … in range(…)'");
    case StmtKind::break_:
    case StmtKind::continue_:
      refuse(s, "a tensor function's loops run all their iterations", "put the rest under an 'if'");
    default:
      refuse(s, "this statement has no meaning in loops over arrays");
  }
}

Stmt LoopReader::for_loop(const Line& s) {
  const Syntax& iterable = *s.value;
  const bool ranges = iterable.kind == ExprKind::call && iterable.items[0]->kind == ExprKind::name &&
                      iterable.items[0]->text == "range";
  if (!ranges) fail(codes::not_loops, iterable, "a loop runs over range(…) here");
  if (s.target->kind != ExprKind::name) fail(codes::not_loops, *s.target, "a loop has one variable");
  if (!s.other.empty()) refuse(s, "loops have no 'else' here");
  if (locals_.count(s.target->text))
    fail(codes::not_loops, *s.target,
         fmt::format("'{}' is a loop's variable and assigned to elsewhere", s.target->text));
  const Arguments arguments(*this, iterable);
  arguments.check(3, {});
  if (arguments.count() == 0) fail(codes::not_loops, iterable, "range takes one to three arguments");
  const bool one = arguments.count() == 1;
  const Expr start = one ? ir::int64(0) : expr_of(*arguments.positional[0], DType::int64(), "a bound of range");
  const Expr stop = expr_of(*arguments.positional[one ? 0 : 1], DType::int64(), "a bound of range");
  const int64_t step = arguments.count() == 3 ? integer(*arguments.positional[2], "the step of range") : 1;
  if (step == 0) fail(codes::not_loops, *arguments.positional[2], "the step of range is 0");
  for (const Expr& bound : {start, stop})
    if (reads_arrays(bound))
      fail(codes::not_loops, iterable, "the bounds of a loop do not depend on an array's values");
  const Expr span = step > 0 ? stop - start : start - stop;
  const Expr count = ir::ceildiv(ir::max(span, ir::int64(0)), ir::int64(std::abs(step)));
  const Expr extent = analyzer_.simplify(count), min = step == 1 ? analyzer_.simplify(start) : ir::int64(0);

  const Var v = ir::var(std::string(s.target->text));
  const std::set<std::string_view> before = assigned_;
  const bool surely_runs = analyzer_.can_prove_greater_equal(extent, 1);  // asked before its variable is known
  arith::Analyzer::Scope known(analyzer_);
  analyzer_.bind(v, ir::Range{min, extent});
  loops_.emplace_back(v, ir::Range{min, extent});
  scope.push();
  scope.define(s.target->text, step == 1 ? Expr(v) : analyzer_.simplify(start + v * step), s.target->begin,
               s.target->end);
  Stmt body = suite(s.body);
  scope.pop();
  loops_.pop_back();
  if (!surely_runs) assigned_ = before;
  return placed(Stmt(ir::make<tir::For>(v, min, extent, tir::ForKind::serial, std::move(body))), s);
}

Stmt LoopReader::branch(const Line& s) {
  const Value given = value(*s.value);
  if (const auto* known = given.get<bool>()) return suite(*known ? s.body : s.other);  // decided by Python
  const Expr holds = to_expr(given, *s.value, DType::int64());
  if (!holds->dtype.is_bool()) fail(codes::not_loops, *s.value, "a condition is bool, not " + holds->dtype.str());
  const std::set<std::string_view> before = assigned_;
  Stmt then_case = where(holds, true, [&] { return suite(s.body); });
  const std::set<std::string_view> after_then = std::exchange(assigned_, before);
  Stmt else_case = s.other.empty() ? Stmt() : where(holds, false, [&] { return suite(s.other); });
  std::erase_if(assigned_, [&](std::string_view name) { return !after_then.count(name); });
  return placed(Stmt(ir::make<tir::IfThenElse>(holds, std::move(then_case), std::move(else_case))), s);
}

// ---- assignments ----

Stmt LoopReader::assign(const Line& s, const Syntax& target) {
  if (target.kind == ExprKind::subscript) {
    const Buffer b = buffer(*target.items[0], "an assignment with indices");
    return store(s, b, load_indices(b, *target.items[1]), value(*s.value));
  }
  if (target.kind == ExprKind::tuple) return assign_tuple(s, target);
  if (target.kind != ExprKind::name)
    fail(codes::not_loops, target, "a variable or an array's element is assigned here");
  if (auto made = new_array(s, target)) return *std::move(made);
  return assign_local(s, target, value(*s.value));
}

// rows, columns = x.shape
Stmt LoopReader::assign_tuple(const Line& s, const Syntax& targets) {
  const Value all = value(*s.value);
  const auto* list = all.get<Value::List>();
  if (!list || list->size() != targets.items.size())
    fail(codes::not_loops, *s.value, "the targets take a tuple of " + std::to_string(targets.items.size()));
  for (size_t i = 0; i < list->size(); ++i) {
    const Syntax& target = *targets.items[i];
    if (target.kind != ExprKind::name) fail(codes::not_loops, target, "a variable is assigned here");
    Local& local = locals_.at(target.text);
    const Expr e = script::expr_in((*list)[i]);
    if (local.assignments > 1 || (e && reads_arrays(e)))
      fail(codes::not_loops, target, "several variables at once are assigned numbers that never change");
    local.value = (*list)[i];
    assigned_.insert(target.text);
  }
  return tir::nop();
}

Stmt LoopReader::assign_local(const Line& s, const Syntax& target, const Value& given) {
  Local& local = locals_.at(target.text);
  const Expr e = script::expr_in(given);
  const auto end = static_cast<bool>(e) && reads_arrays(e);
  if (local.assignments == 1 && !local.updated && !end) {
    local.value = given;
    assigned_.insert(target.text);
    return tir::nop();
  }
  if (!local.buffer) {
    const bool number = given.get<double>() || given.get<int64_t>() || given.get<bool>();
    if (!e && !number) fail(codes::not_loops, *s.value, "a variable is a number here");
    make_buffer(local, target.text,
                e                     ? e->dtype
                : given.get<double>() ? float_
                : given.get<bool>()   ? DType::boolean()
                                      : DType::int64());
  }
  assigned_.insert(target.text);
  return store(s, local.buffer, local.indices, given);
}

void LoopReader::make_buffer(Local& local, std::string_view name, DType dtype) {
  const size_t around = local.suites.empty() ? 0 : depth_.at(local.suites.back());
  std::vector<Expr> shape;
  for (size_t l = 0; l < around; ++l) {
    const ir::Range range = range_of_loop(loops_, l, analyzer_);
    shape.push_back(range.extent);
    local.indices.push_back(analyzer_.simplify(Expr(loops_[l].first) - range.min));
  }
  if (shape.empty()) {
    shape.push_back(ir::int64(1));
    local.indices.push_back(ir::int64(0));
  }
  local.buffer = ir::buffer(std::string(name), std::move(shape), dtype);
  arrays_.push_back(local.buffer);
}

Stmt LoopReader::update(const Line& s) {
  Syntax at = *s.target;
  at.end = s.value->end;
  if (s.target->kind == ExprKind::name) {
    const Value before = value(*s.target);
    return assign_local(s, *s.target, combine(at, s.name, before, *s.target, value(*s.value), *s.value));
  }
  if (s.target->kind != ExprKind::subscript)
    fail(codes::not_loops, *s.target, "a variable or an array's element is changed here");
  const Buffer b = buffer(*s.target->items[0], "an assignment with indices");
  std::vector<Expr> indices = load_indices(b, *s.target->items[1]);
  const Value before = Expr(ir::make<ir::BufferLoad>(b, indices));
  return store(s, b, std::move(indices), combine(at, s.name, before, *s.target, value(*s.value), *s.value));
}

Stmt LoopReader::store(const Line& s, const Buffer& b, std::vector<Expr> indices, const Value& given) {
  Expr e = to_expr(given, *s.value, b->dtype);
  if (e->dtype != b->dtype) {
    const bool narrows = e->dtype.is_floating() && !b->dtype.is_floating();
    if (narrows || !e->dtype.is_scalar())
      fail(codes::not_loops, *s.value, e->dtype.str() + " does not fit into '" + b->name + "' of " + b->dtype.str(),
           narrows ? "int(…) cuts the fraction off" : "");
    e = ir::cast(b->dtype, e);
  }
  return placed(Stmt(ir::make<tir::BufferStore>(b, e, std::move(indices))), s);
}

std::optional<Stmt> LoopReader::new_array(const Line& s, const Syntax& target) {
  if (s.value->kind != ExprKind::call) return std::nullopt;
  const std::string path = path_of(*s.value->items[0]);
  if (!path.starts_with("python.numpy.")) return std::nullopt;
  const auto* row = std::find_if(std::begin(new_arrays), std::end(new_arrays),
                                 [&](const NewArray& r) { return path.substr(13) == r.name; });
  const bool full = path == "python.numpy.full";
  if (row == std::end(new_arrays) && !full) return std::nullopt;
  if (!loops_.empty()) refuse(s, "an array is made before the loops, not in them");
  if (locals_.at(target.text).assignments > 1) refuse(s, fmt::format("'{}' is assigned more than once", target.text));
  const Arguments arguments(*this, *s.value);
  arguments.check(full ? 3 : 2, {"dtype", "shape", "fill_value"});
  const bool like = !full && row->like;
  std::vector<Expr> shape;
  DType element = DType::float_(64);  // NumPy's default
  if (like) {
    const Buffer other = buffer(arguments.need(0, "a"), "an array");
    shape = other->shape;
    element = other->dtype;
  } else {
    for (const Expr& extent : expr_list(arguments.need(0, "shape"), "a shape")) shape.push_back(extent);
  }
  if (const Syntax* given = arguments.find(full ? 2 : 1, "dtype")) element = dtype(*given, "an array");
  const Buffer b = ir::buffer(std::string(target.text), std::move(shape), element);
  arrays_.push_back(b);
  context.aliases.erase(std::string(target.text));
  scope.define(target.text, b, target.begin, target.end);
  if (full) return fill(s, b, value(arguments.need(1, "fill_value")));
  return row->value ? fill(s, b, *row->value) : tir::nop();
}

Stmt LoopReader::fill(const Line& s, const Buffer& array, const Value& given) {
  std::vector<Expr> indices;
  std::vector<Var> vars;
  for (size_t d = 0; d < array->shape.size(); ++d) {
    vars.push_back(ir::var("i" + std::to_string(d)));
    indices.emplace_back(vars.back());
  }
  const auto* number = given.get<double>();
  const Value typed = number && !array->dtype.is_floating() ? Value(static_cast<int64_t>(*number)) : given;
  Stmt made = store(s, array, indices, typed);
  for (size_t d = vars.size(); d-- > 0;)
    made = placed(Stmt(ir::make<tir::For>(vars[d], ir::int64(0), array->shape[d], tir::ForKind::serial, made)), s);
  return made;
}

// ---- what Python takes for granted ----

std::optional<Value> LoopReader::other_path(const std::string& path, const Syntax& e) {
  if (path.starts_with("local.")) {
    const Local& local = locals_.at(path.substr(6));
    if (!assigned_.count(path.substr(6)))
      fail(codes::unassigned, e, "'" + path.substr(6) + "' may be read here before it has a value",
           "assign it first, on a line that always runs");
    if (local.value) return local.value;
    return Expr(ir::make<ir::BufferLoad>(local.buffer, local.indices));
  }
  if (path == "python.math.pi" || path == "python.numpy.pi") return 3.14159265358979323846;
  if (path == "python.math.inf" || path == "python.numpy.inf") return std::numeric_limits<double>::infinity();
  if (path.starts_with("python.numpy."))
    if (const auto type = DType::parse(path == "python.numpy.bool_" ? "bool" : path.substr(13))) return *type;
  if (path == "python.float") return DType::float_(64);
  if (path == "python.int") return DType::int64();
  fail(codes::not_loops, e, "'" + source_text(e) + "' has no meaning in loops over arrays");
}

// The largest or the smallest of two or more.
Value LoopReader::extreme(bool largest, const Syntax& e) {
  const Arguments arguments(*this, e);
  arguments.check(1000, {});
  if (arguments.count() < 2) fail(codes::not_loops, e, "two or more numbers are compared here");
  Value best = value(*arguments.positional[0]);
  for (size_t i = 1; i < arguments.count(); ++i) {
    const Syntax& at = *arguments.positional[i];
    const Value next = value(at);
    const auto *x = best.get<int64_t>(), *y = next.get<int64_t>();
    if (x && y) {
      best = largest ? std::max(*x, *y) : std::min(*x, *y);
      continue;
    }
    const auto [left, right] = unify(best, *arguments.positional[i - 1], next, at);
    best = largest ? ir::max(left, right) : ir::min(left, right);
  }
  return best;
}

std::optional<Value> LoopReader::other_call(const Syntax& e) {
  const std::string path = path_of(*e.items[0]);
  if (!path.starts_with("python.")) fail(codes::not_loops, e, "'" + source_text(*e.items[0]) + "' is no function");
  const std::string name = path.substr(path.rfind('.') + 1);
  if (name == "max" || name == "maximum") return extreme(true, e);
  if (name == "min" || name == "minimum") return extreme(false, e);
  const Arguments arguments(*this, e);
  if (path == "python.len") {
    const Buffer b = buffer(arguments.need(0, "array"), "len");
    if (b->shape.empty()) fail(codes::not_loops, e, "'" + b->name + "' has no dimension");
    return b->shape[0];
  }
  if (name == "where") {
    const Value c = value(arguments.need(0, "condition"));
    auto [a, b] = unify(arguments.need(1, "x"), arguments.need(2, "y"));
    return ir::select(to_expr(c, *arguments.positional[0], DType::boolean()), a, b);
  }
  if (name == "power" || name == "pow") {
    auto [a, b] = unify(arguments.need(0, "x"), arguments.need(1, "y"));
    return ir::call(a->dtype, ir::intrinsic::pow, {a, b});
  }
  arguments.check(1, {});
  const Syntax& operand = arguments.need(0, "x");
  if (path == "python.float" || path == "python.int")
    return ir::cast(path == "python.float" ? float_ : DType::int64(), expr(operand));
  if (const auto type = DType::parse(name); type && path.starts_with("python.numpy."))
    return typed_.emplace_back(ir::make<ir::Cast>(*type, to_expr(value(operand), operand, *type)));
  const ir::Intrinsic* op = ir::find_intrinsic(name == "fabs" || name == "absolute" ? "abs" : name);
  if (!op || op->arity != 1 || op->effect != ir::Effect::pure)
    fail(codes::not_loops, *e.items[0], "'" + source_text(*e.items[0]) + "' has no meaning in loops over arrays");
  const Expr x = to_expr(value(operand), operand, float_);
  if (!x->dtype.is_floating() && op != &ir::intrinsic::abs)
    fail(codes::not_loops, operand, "'" + name + "' takes a float, not " + x->dtype.str(), "float(…) converts it");
  return ir::call(*op, x);
}

}  // namespace lathe::te
