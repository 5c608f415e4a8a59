// Statements of tensor functions.
#include "tir/script/read_function.h"

namespace lathe::tir {

using script::Arguments;
using script::syntax::ExprKind;
using script::syntax::StmtKind;

namespace {

Stmt sequence(std::vector<Stmt> list) {
  std::vector<Stmt> flat;
  for (Stmt& s : list) {
    if (const auto* inner = s.as<SeqStmt>())
      flat.insert(flat.end(), inner->seq.begin(), inner->seq.end());
    else
      flat.push_back(std::move(s));
  }
  if (flat.empty()) return nop();
  return flat.size() == 1 ? flat[0] : Stmt(make<SeqStmt>(std::move(flat)));
}

}  // namespace

Stmt FunctionReader::Suite::finish() {
  Stmt body = sequence(std::move(statements));
  for (; !frames.empty(); frames.pop_back()) {
    std::vector<Stmt> before = std::move(frames.back().before);
    before.push_back(frames.back().wrap(std::move(body)));
    body = sequence(std::move(before));
  }
  return body;
}

Stmt FunctionReader::suite(const Lines& lines) {
  Suite into;
  for (const Line* s : lines) line(*s, into);
  return into.finish();
}

Stmt FunctionReader::scoped_suite(const Lines& lines) {
  scope.push();
  Stmt body = suite(lines);
  scope.pop();
  return body;
}

void FunctionReader::line(const Line& s, Suite& into) {
  Syntax at;
  at.begin = s.begin;
  at.end = s.head_end;
  switch (s.kind) {
    case StmtKind::pass:
      return;
    case StmtKind::assign:
      if (declared_.count(&s)) return;
      if (s.targets.size() != 1) fail(script::codes::misplaced, at, "one target is assigned at a time");
      return assign(s, *s.targets[0], into);
    case StmtKind::annotated:
      return annotated(s, into);
    case StmtKind::augmented:
      return augmented(s, into);
    case StmtKind::expression:
      return expression(s, into);
    case StmtKind::with:
      return with(s, 0, into);
    case StmtKind::for_:
      return into.statements.push_back(for_loop(s));
    case StmtKind::while_: {
      if (!s.other.empty()) fail(script::codes::not_in_scripts, at, "loops of scripts have no 'else'");
      const Expr holds = condition(*s.value);
      return into.statements.push_back(placed(Stmt(make<While>(holds, scoped_suite(s.body))), s));
    }
    case StmtKind::if_: {
      const Value known = value(*s.value);
      if (const auto* chosen = known.get<bool>()) {  // decided by Python: one branch stays
        if (Stmt body = scoped_suite(*chosen ? s.body : s.other); !is_nop(body)) into.statements.push_back(body);
        return;
      }
      return into.statements.push_back(branch(s));
    }
    case StmtKind::assert_: {
      const Expr holds = condition(*s.value);
      const std::string message = s.message ? string(*s.message, "a message") : std::string();
      return into.statements.push_back(placed(Stmt(make<AssertStmt>(holds, message)), s));
    }
    case StmtKind::return_: {
      if (!s.value) fail(script::codes::misplaced, at, "a tensor function returns at its end only");
      const Expr result = expr(*s.value, DType::int32());
      return into.statements.push_back(
          placed(Stmt(make<Evaluate>(ir::call(DType::void_(), intrinsic::ret, {result}))), s));
    }
    case StmtKind::break_:
      return into.statements.push_back(
          placed(Stmt(make<Evaluate>(ir::call(DType::void_(), intrinsic::break_loop, {}))), s));
    case StmtKind::continue_:
      return into.statements.push_back(
          placed(Stmt(make<Evaluate>(ir::call(DType::void_(), intrinsic::continue_loop, {}))), s));
    case StmtKind::function:
    case StmtKind::class_:
      fail(script::codes::misplaced, at, "a tensor function holds no other definitions");
    case StmtKind::import_:
      fail(script::codes::misplaced, at, "imports stand at the top of the text");
  }
}

Expr FunctionReader::condition(const Syntax& e) {
  const Expr holds = expr(e);
  if (!holds->dtype.is_bool() || holds->dtype.is_vector())
    fail(script::codes::dtype_mismatch, e, "a condition is bool, not " + holds->dtype.str());
  return holds;
}

Stmt FunctionReader::branch(const Line& s) {
  const Expr holds = condition(*s.value);
  Stmt then_case = scoped_suite(s.body);
  Stmt else_case = s.other.empty() ? Stmt() : scoped_suite(s.other);
  return placed(Stmt(make<IfThenElse>(holds, std::move(then_case), std::move(else_case))), s);
}

// ---- assignments ----

void FunctionReader::bind_let(std::string_view name, const Syntax& at, Expr bound, Suite& into) {
  const Var v = make<VarNode>(std::string(name), bound->dtype);
  define(name, v, at);
  into.define([v, bound](Stmt body) { return Stmt(make<LetStmt>(v, bound, std::move(body))); });
}

void FunctionReader::assign(const Line& s, const Syntax& target, Suite& into) {
  if (target.kind == ExprKind::subscript) return store(target, *s.value, into, s);
  if (s.value->kind == ExprKind::call && assign_call(target, *s.value, into)) return;
  if (target.kind == ExprKind::tuple && s.value->kind == ExprKind::tuple &&
      target.items.size() == s.value->items.size()) {
    // vi, vj = T.axis.spatial(…), T.axis.reduce(…)
    const auto is_axis = [&](const Syntax* e) {
      return e->kind == ExprKind::call && path_of(*e->items[0]).starts_with("tir.axis.");
    };
    if (std::all_of(s.value->items.begin(), s.value->items.end(), is_axis)) {
      for (size_t i = 0; i < target.items.size(); ++i) assign_call(*target.items[i], *s.value->items[i], into);
      return;
    }
  }
  if (target.kind == ExprKind::tuple || target.kind == ExprKind::list) {
    const Value all = value(*s.value);
    const auto* list = all.get<Value::List>();
    if (!list || list->size() != target.items.size())
      fail(script::codes::wrong_type, *s.value, "the targets take a tuple of " + std::to_string(target.items.size()));
    for (size_t i = 0; i < list->size(); ++i) {
      if (target.items[i]->kind != ExprKind::name)
        fail(script::codes::misplaced, *target.items[i], "a name is assigned here");
      if (const Expr e = script::expr_in((*list)[i]); e && !e.is<VarNode>())
        bind_let(target.items[i]->text, *target.items[i], e, into);
      else
        define(target.items[i]->text, (*list)[i], *target.items[i]);
    }
    return;
  }
  if (target.kind != ExprKind::name)
    fail(script::codes::misplaced, target, "a name or an element of a buffer is assigned here");
  // "cls = Module": another name of the module.
  if (s.value->kind == ExprKind::name && s.value->text == context.module_name && target.text == "cls") return;
  hint = target.text;
  const Value bound = value(*s.value);
  hint.clear();
  const bool declares = s.value->kind == ExprKind::call && script::node_in<VarNode>(bound) &&
                        path_of(*s.value->items[0]).starts_with("tir.");
  const Expr e = script::expr_in(bound);
  if (e && !declares && path_of(*s.value).empty()) return bind_let(target.text, target, e, into);
  define(target.text, bound, target);
}

void FunctionReader::annotated(const Line& s, Suite& into) {
  if (s.target->kind != ExprKind::name) fail(script::codes::misplaced, *s.target, "a name is declared here");
  const DType t = dtype(*s.annotation, "a declaration");
  if (!s.value) return define(s.target->text, make<VarNode>(std::string(s.target->text), t), *s.target);
  bind_let(s.target->text, *s.target, expr_of(*s.value, t, "the value"), into);
}

void FunctionReader::store(const Syntax& target, const Syntax& stored, Suite& into, const Line& s) {
  const Buffer b = buffer(*target.items[0], "an assignment with indices");
  std::vector<Expr> indices = load_indices(b, *target.items[1]);
  int lanes = b->dtype.lanes;
  if (!indices.empty()) lanes *= indices.back()->dtype.lanes;
  const Expr e = expr_of(stored, b->dtype.with_lanes(lanes), "the value stored into '" + b->name + "'");
  into.statements.push_back(placed(Stmt(make<BufferStore>(b, e, std::move(indices))), s));
}

void FunctionReader::augmented(const Line& s, Suite& into) {
  if (s.target->kind != ExprKind::subscript)
    fail(script::codes::misplaced, *s.target, "'" + s.name + "=' changes an element of a buffer only");
  const Buffer b = buffer(*s.target->items[0], "an assignment with indices");
  std::vector<Expr> indices = load_indices(b, *s.target->items[1]);
  const Expr before = make<BufferLoad>(b, indices);
  Syntax at = *s.target;
  at.end = s.value->end;
  const Expr after = to_expr(combine(at, s.name, before, *s.target, value(*s.value), *s.value), at, b->dtype);
  if (after->dtype != before->dtype)
    fail(script::codes::dtype_mismatch, at, "the result is " + after->dtype.str() + ", not " + before->dtype.str());
  into.statements.push_back(placed(Stmt(make<BufferStore>(b, after, std::move(indices))), s));
}

// Assignments whose value is a statement or declaration of the dialect.
bool FunctionReader::assign_call(const Syntax& target, const Syntax& call, Suite& into) {
  const std::string path = path_of(*call.items[0]);
  if (!path.starts_with("tir.")) return false;
  if (path == "tir.axis.remap") return remap(target, call), true;
  if (path == "tir.env_thread") return env_thread(target, call);
  if (path.starts_with("tir.axis.")) return axis(target, call, path.substr(9)), true;
  if (target.kind != ExprKind::name) return false;
  const std::string name(target.text);
  if (path == "tir.Buffer" || path == "tir.buffer_decl")
    return define(name, make_buffer(Arguments(*this, call), 0, name), target), true;
  if (path == "tir.alloc_buffer") {
    const Buffer b = make_buffer(Arguments(*this, call), 0, name);
    blocks_.back()->alloc_buffers.push_back(b);
    return define(name, b, target), true;
  }
  if (path == "tir.match_buffer") {
    const Arguments arguments(*this, call);
    const Syntax& source = arguments.need(0, "param");
    if (source.kind == ExprKind::name) {
      const Value v = value(source);
      if (const Var param = script::node_in<VarNode>(v)) {
        if (std::find(params_.begin(), params_.end(), param) == params_.end())
          fail(script::codes::wrong_arguments, source,
               fmt::format("'{}' is no parameter of this function", source.text));
        for (const auto& [bound, buffer] : buffer_map_)
          if (bound == param)
            fail(script::codes::defined_twice, source, fmt::format("'{}' is matched twice", source.text));
        const Buffer b = make_buffer(arguments, 1, name);
        buffer_map_.emplace_back(param, b);
        return define(name, b, target), true;
      }
    }
    auto [whole, ranges] = region(source);
    OpenBlock& open = block_for(call, "T.match_buffer of a region");
    const Buffer b = make_buffer(arguments, 1, name);
    open.match_buffers.push_back(make<MatchBufferRegionNode>(b, make<BufferRegionNode>(whole, std::move(ranges))));
    return define(name, b, target), true;
  }
  hint = name;
  auto wrap = opener(call, path, name);
  hint.clear();
  if (!wrap) return false;
  into.define(std::move(wrap));
  return true;
}

// A statement whose body is what follows or its suite; it defines `name` unless that is empty.
std::function<Stmt(Stmt)> FunctionReader::opener(const Syntax& call, const std::string& path, const std::string& name) {
  const auto needs_name = [&] {
    if (name.empty()) fail(script::codes::misplaced, call, "the result of this has no name");
  };
  if (path == "tir.allocate") {
    needs_name();
    const Arguments arguments(*this, call);
    arguments.check(5, {"extents", "dtype", "scope", "condition", "annotations"});
    std::vector<Expr> extents = expr_list(arguments.need(0, "extents"), "T.allocate");
    const DType t = dtype(arguments.need(1, "dtype"), "T.allocate");
    const Syntax *where = arguments.find(2, "scope"), *notes = arguments.find(4, "annotations");
    if (const Syntax* when = arguments.find(3, "condition");
        when && when->text != "None" && !is_int(condition(*when), 1))
      fail(script::codes::wrong_arguments, *when, "memory is allocated on no condition",
           "an `if` around the statements that use it does the same");
    const std::string memory = where ? string(*where, "a scope") : "global";
    const Attributes annotations = notes ? attributes(*notes) : Attributes();
    const Var v = make<VarNode>(name, DType::handle());
    define(name, v, call);
    return [=](Stmt body) { return Stmt(make<Allocate>(v, t, extents, memory, std::move(body), annotations)); };
  }
  if (path == "tir.allocate_const") {
    needs_name();
    const TensorData data = constant_data(Arguments(*this, call));
    const Var v = make<VarNode>(name, DType::handle());
    define(name, v, call);
    return [=](Stmt body) { return Stmt(make<AllocateConst>(v, data, std::move(body))); };
  }
  if (path == "tir.decl_buffer") {
    needs_name();
    const Buffer b = make_buffer(Arguments(*this, call), 0, name);
    define(name, b, call);
    return [=](Stmt body) { return Stmt(make<DeclBuffer>(b, std::move(body))); };
  }
  if (path == "tir.LetStmt" || path == "tir.let") {
    const Arguments arguments(*this, call);
    arguments.check(2, {"value", "type_annotation", "is_size_var", "var"});
    std::string bound_name = name;
    size_t at = 0;
    if (const Syntax* var = arguments.named("var"); var && var->kind == ExprKind::name) {
      bound_name = var->text;  // with T.LetStmt(value, var=x):
    } else if (path == "tir.let" && arguments.count() == 2 && arguments.positional[0]->kind == ExprKind::name) {
      bound_name = arguments.positional[0]->text;  // with T.let(x, value):
      at = 1;
    } else {
      needs_name();
    }
    const Expr bound = expr(arguments.need(at, "value"), DType::int32());
    const Syntax *type = at == 0 ? arguments.find(1, "type_annotation") : nullptr,
                 *size = arguments.named("is_size_var");
    const Var v = make<VarNode>(bound_name, type ? dtype(*type, "T.LetStmt") : bound->dtype,
                                size && boolean(*size, "is_size_var"));
    define(bound_name, v, call);
    return [=](Stmt body) { return Stmt(make<LetStmt>(v, bound, std::move(body))); };
  }
  if (path == "tir.launch_thread") return launch_thread(call, name);
  if (path == "tir.While") {
    const Expr holds = condition(Arguments(*this, call).need(0, "condition"));
    return [=](Stmt body) { return Stmt(make<While>(holds, std::move(body))); };
  }
  if (path == "tir.attr") {
    const Arguments arguments(*this, call);
    arguments.check(3, {"node", "attr_key", "value"});
    const Value node = value(arguments.need(0, "node"));
    const std::string key = string(arguments.need(1, "attr_key"), "an attribute's name");
    const Value given = value(arguments.need(2, "value"));
    const auto* text = given.get<std::string>();
    const Expr e = text ? Expr(make<StringImm>(*text)) : to_expr(given, arguments.need(2, "value"), DType::int32());
    return [=](Stmt body) { return Stmt(make<AttrStmt>(node, key, e, std::move(body))); };
  }
  return nullptr;
}

// ---- expressions as statements ----

void FunctionReader::expression(const Line& s, Suite& into) {
  const Syntax& e = *s.value;
  if (e.kind == ExprKind::string) return;  // a docstring
  if (e.kind == ExprKind::call && expression_call(e, s, into)) return;
  const Expr evaluated = expr(e, DType::int32());
  if (!evaluated.is<Call>())
    fail(script::codes::misplaced, e, "this value is not used", "T.evaluate(…) evaluates it for its effect");
  into.statements.push_back(placed(Stmt(make<Evaluate>(evaluated)), s));
}

bool FunctionReader::expression_call(const Syntax& call, const Line& s, Suite& into) {
  const Syntax& callee = *call.items[0];
  const std::string path = path_of(callee);
  const auto add = [&](Stmt made) { into.statements.push_back(placed(std::move(made), s)); };
  if (path.empty() || !path.starts_with("tir.")) {
    if (callee.kind != ExprKind::attribute || callee.text != "vstore") return macro_call(call, into);
    const Arguments arguments(*this, call);
    arguments.check(2, {"indices", "value", "predicate"});
    return add(store_call(buffer(*callee.items[0], "vstore"), arguments.need(0, "indices"), arguments.need(1, "value"),
                          arguments.named("predicate"))),
           true;
  }
  if (path == "tir.buffer_store") {
    const Arguments arguments(*this, call);
    arguments.check(3, {"buffer", "value", "indices", "predicate"});
    return add(store_call(buffer(arguments.need(0, "buffer"), "T.buffer_store"), arguments.need(2, "indices"),
                          arguments.need(1, "value"), arguments.named("predicate"))),
           true;
  }
  if (path == "tir.evaluate") {
    const Arguments arguments(*this, call);
    arguments.check(1, {"value"});
    return add(make<Evaluate>(expr(arguments.need(0, "value"), DType::int32()))), true;
  }
  if (path == "tir.func_attr") {
    if (!blocks_.back()->is_function)
      fail(script::codes::misplaced, call, "T.func_attr stands at the top of a function");
    const Attributes more = attributes(Arguments(*this, call).need(0, "attrs"));
    for (const auto& [name, attribute] : more) attrs_.set(name, attribute);
    return true;
  }
  if (path == "tir.Assert") {
    const Arguments arguments(*this, call);
    const Expr holds = condition(arguments.need(0, "condition"));
    return add(make<AssertStmt>(holds, string(arguments.need(1, "message"), "a message"))), true;
  }
  if (block_line(path, call)) return true;
  auto wrap = opener(call, path, "");
  if (!wrap) return false;
  into.define(std::move(wrap));
  return true;
}

Stmt FunctionReader::store_call(const Buffer& b, const Syntax& at_indices, const Syntax& stored,
                                const Syntax* predicate) {
  std::vector<Expr> indices = expr_list(at_indices, "a store");
  if (indices.size() != b->shape.size())
    fail(script::codes::wrong_arguments, at_indices,
         "buffer '" + b->name + "' has " + std::to_string(b->shape.size()) + " dimensions, not " +
             std::to_string(indices.size()));
  int lanes = b->dtype.lanes;
  if (!indices.empty()) lanes *= indices.back()->dtype.lanes;
  const Expr e = expr_of(stored, b->dtype.with_lanes(lanes), "the value stored into '" + b->name + "'");
  return make<BufferStore>(b, e, std::move(indices), predicate ? expr(*predicate) : Expr());
}

// ---- with ----

void FunctionReader::with(const Line& s, size_t at, Suite& into) {
  if (at == s.contexts.size()) {
    const Stmt body = suite(s.body);
    if (!s.body.empty() && !(is_nop(body) && s.body[0]->kind == StmtKind::pass)) into.statements.push_back(body);
    return;
  }
  const auto [context_expr, target] = s.contexts[at];
  const std::string path = context_expr->kind == ExprKind::call ? path_of(*context_expr->items[0]) : "";
  if (target && target->kind != ExprKind::name)
    fail(script::codes::misplaced, *target, "a name stands after 'as' here");
  if (path == "tir.block" || path == "tir.sblock") {
    if (target) fail(script::codes::misplaced, *target, "a block binds its variables by T.axis");
    if (at + 1 != s.contexts.size()) fail(script::codes::misplaced, *context_expr, "a block has a 'with' of its own");
    return into.statements.push_back(block(*context_expr, s));
  }
  if (path == "tir.init") {
    OpenBlock& open = block_for(*context_expr, "T.init");
    if (open.init) fail(script::codes::defined_twice, *context_expr, "the block has an init already");
    open.init = scoped_suite(s.body);
    return;
  }
  if (path == "tir.If") return into.statements.push_back(branch_frames(*context_expr, s));
  const std::string name(target ? target->text : "");
  scope.push();
  Suite inner;
  if (path == "tir.Assert") {
    expression_call(*context_expr, s, into);
  } else {
    hint = name;
    auto wrap = path.empty() ? nullptr : opener(*context_expr, path, name);
    hint.clear();
    if (!wrap)
      fail(script::codes::misplaced, *context_expr,
           "'with' has no meaning for `" + source_text(*context_expr) + "` here");
    inner.define(std::move(wrap));
  }
  with(s, at + 1, inner);
  scope.pop();
  Stmt made = inner.finish();
  into.statements.push_back(placed(std::move(made), s));
}

}  // namespace lathe::tir
