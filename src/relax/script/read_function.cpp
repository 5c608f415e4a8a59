#include "relax/script/read_function.h"

#include "relax/block_builder.h"
#include "relax/infer.h"
#include "script/parse.h"

namespace lathe::relax {

using script::Arguments;
namespace errors = script::codes;
using script::syntax::ExprKind;
using script::syntax::StmtKind;

namespace {

script::syntax::Expr place(uint32_t begin, uint32_t end) {
  script::syntax::Expr at;
  at.begin = begin;
  at.end = end;
  return at;
}

}  // namespace

// ---- the function ----

void FunctionReader::head(const Line& def) {
  for (const Syntax* decorator : def.decorators) {
    if (decorator->kind != ExprKind::call) continue;
    const Arguments arguments(*this, *decorator);
    arguments.check(0, {"pure", "private", "check_well_formed", "name"});
    if (const Syntax* e = arguments.named("pure")) is_pure_ = boolean(*e, "pure");
    if (const Syntax* e = arguments.named("private"); e && boolean(*e, "private")) attrs_.set("private", true);
  }
  const Lines symbols = script::declare_symbols(*this, def.body);
  declared_.insert(symbols.begin(), symbols.end());
  for (const script::syntax::Parameter& p : def.parameters) {
    StructInfo known = p.annotation ? info(*p.annotation) : StructInfo(make<ObjectStructInfo>());
    params_.push_back(relax_var(p.name, std::move(known)));
    scope.define(p.name, params_.back(), p.begin, p.end);
  }
  for (size_t i = 0; i < params_.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (def.parameters[i].name == def.parameters[j].name)
        fail(errors::defined_twice, place(def.parameters[i].begin, def.parameters[i].end),
             "'" + def.parameters[i].name + "' is defined twice");
  if (def.value) {
    result_info_ = info(*def.value);
    result_at_ = def.value;
  }
}

StructInfo FunctionReader::signature(const Line& def) {
  head(def);
  std::vector<StructInfo> params;
  for (const Var& param : params_) params.push_back(param->struct_info);
  return make<FuncStructInfo>(std::optional(std::move(params)),
                              result_info_ ? result_info_ : StructInfo(make<ObjectStructInfo>()), is_pure_);
}

Function FunctionReader::function(const Line& def) {
  head(def);
  Sequence body;
  sequence_ = &body;
  for (const Line* s : def.body) {
    if (body.result) fail(errors::misplaced, place(s->begin, s->head_end), "nothing follows a function's return");
    line(*s, body);
  }
  if (!body.result)
    fail(errors::misplaced, place(def.begin, def.head_end), "function '" + def.name + "' returns nothing");
  close(body, false);
  const StructInfo known = body.result->struct_info;
  const Expr sequence =
      with_struct_info(make<SeqExpr>(std::move(body.blocks), body.result), known ? known : result_info_);
  const StructInfo result = result_at_ ? agreed(known, result_info_, *result_at_) : known;
  return ir::with_origin(make<FunctionNode>(params_, sequence, result, is_pure_, attrs_),
                         origin(def.begin, def.head_end));
}

// Ends the open block; what follows goes into one of kind `dataflow`.
void FunctionReader::close(Sequence& s, bool dataflow) {
  if (!s.open.empty()) s.blocks.push_back(make<BindingBlockNode>(std::exchange(s.open, {}), s.dataflow));
  s.dataflow = dataflow;
}

// ---- lines ----

void FunctionReader::line(const Line& s, Sequence& into) {
  const Syntax at = place(s.begin, s.head_end);
  switch (s.kind) {
    case StmtKind::pass:
      return;
    case StmtKind::assign: {
      if (declared_.count(&s)) return;
      if (s.targets.size() != 1) fail(errors::misplaced, at, "one target is assigned at a time");
      const Syntax& target = *s.targets[0];
      if (target.kind == ExprKind::tuple) return bind_tuple(target, *s.value, into);
      if (target.kind != ExprKind::name) fail(errors::misplaced, target, "a name is assigned here");
      return bind(target.text, target, *s.value, nullptr, into);
    }
    case StmtKind::annotated:
      if (s.target->kind != ExprKind::name || !s.value) fail(errors::misplaced, at, "a name is given a value here");
      return bind(s.target->text, *s.target, *s.value, s.annotation, into);
    case StmtKind::expression:
      return expression(s, into);
    case StmtKind::with:
      return with(s, into);
    case StmtKind::if_:
      branch(s, into);
      return;
    case StmtKind::return_:
      if (into.dataflow) fail(errors::misplaced, at, "a dataflow block has no return");
      if (!s.value) fail(errors::misplaced, at, "a graph function returns a value");
      into.result = leaf(*s.value);
      if (!into.result) fail(errors::wrong_type, *s.value, "a graph function returns a value");
      return;
    default:
      fail(errors::misplaced, at, "this statement has no meaning in a graph function");
  }
}

Var FunctionReader::add_binding(std::string_view name, const Syntax& at, Expr bound, StructInfo known, Sequence& into) {
  const bool dataflow = into.dataflow && !outputs_.count(&at);
  const Var v = ir::with_origin(relax_var(std::string(name), std::move(known), dataflow), origin(at));
  const ir::Origin from = bound->origin() ? bound->origin() : origin(at);
  into.open.push_back(ir::with_origin<BindingNode>(make<VarBinding>(std::move(bound), v), from));
  scope.define(name, v, at.begin, at.end);
  return v;
}

void FunctionReader::bind(std::string_view name, const Syntax& at, const Syntax& given, const Syntax* annotation,
                          Sequence& into) {
  if (name == "cls" && given.kind == ExprKind::name && given.text == context.module_name) return;
  const Syntax* e = &given;
  std::string path = e->kind == ExprKind::call ? path_of(*e->items[0]) : "";
  if (path == "relax.emit") {
    e = &Arguments(*this, *e).need(0, "value");
    path = e->kind == ExprKind::call ? path_of(*e->items[0]) : "";
  }
  if (path == "relax.match_cast" || path == "relax.emit_match_cast") return match_cast(name, at, *e, annotation, into);
  if (path.starts_with("tir.")) {  // a symbolic dimension, declared late
    hint = name;
    scope.define(name, value(*e), at.begin, at.end);
    hint.clear();
    return;
  }
  const Expr bound = graph(*e);
  if (!bound) fail(errors::wrong_type, *e, "None is not bound to a name");
  const StructInfo declared = annotation ? info(*annotation) : StructInfo();
  add_binding(name, at, bound, agreed(bound->struct_info, declared, annotation ? *annotation : at), into);
}

void FunctionReader::bind_tuple(const Syntax& targets, const Syntax& given, Sequence& into) {
  const Expr whole = leaf(given);
  for (size_t i = 0; i < targets.items.size(); ++i) {
    const Syntax& target = *targets.items[i];
    if (target.kind != ExprKind::name) fail(errors::misplaced, target, "a name is assigned here");
    const Expr item = with_info(make<TupleGetItem>(whole, static_cast<int64_t>(i)), target);
    add_binding(target.text, target, item, item->struct_info, into);
  }
}

void FunctionReader::match_cast(std::string_view name, const Syntax& at, const Syntax& call, const Syntax* annotation,
                                Sequence& into) {
  const Arguments arguments(*this, call);
  arguments.check(2, {"value", "struct_info"});
  const Expr cast_value = leaf(arguments.need(0, "value"));
  const StructInfo target = info(arguments.need(1, "struct_info"));
  const Var v = ir::with_origin(
      relax_var(std::string(name), annotation ? info(*annotation) : target, into.dataflow && !outputs_.count(&at)),
      origin(at));
  into.open.push_back(ir::with_origin<BindingNode>(make<MatchCast>(cast_value, target, v), origin(call)));
  scope.define(name, v, at.begin, at.end);
}

void FunctionReader::expression(const Line& s, Sequence& into) {
  const Syntax& e = *s.value;
  if (e.kind == ExprKind::string) return;  // a docstring
  const std::string path = e.kind == ExprKind::call ? path_of(*e.items[0]) : "";
  if (path == "relax.func_attr") {
    for (const auto& [name, attribute] : attributes(Arguments(*this, e).need(0, "attrs"))) attrs_.set(name, attribute);
    return;
  }
  if (path == "relax.output") {
    if (!into.dataflow) fail(errors::misplaced, e, "R.output stands at the end of a dataflow block");
    return;  // its names are known from the start of the block
  }
  const Expr bound = graph(e);
  if (!bound || is_leaf(bound)) fail(errors::misplaced, e, "this value is not used");
  add_binding("_", e, bound, bound->struct_info, into);
}

void FunctionReader::with(const Line& s, Sequence& into) {
  const Syntax& call = *s.contexts[0].first;
  const std::string path = call.kind == ExprKind::call ? path_of(*call.items[0]) : "";
  const bool dataflow = path == "relax.dataflow";
  if ((!dataflow && path != "relax.bindings") || s.contexts.size() != 1 || s.contexts[0].second)
    fail(errors::misplaced, call, "`with` takes R.dataflow() in a graph function");
  if (into.dataflow) fail(errors::misplaced, call, "a dataflow block holds no other block");
  // The last assignment to each name in R.output outlives the block.
  const Line* outputs = nullptr;
  for (const Line* inner : s.body)
    if (inner->kind == StmtKind::expression && inner->value->kind == ExprKind::call &&
        path_of(*inner->value->items[0]) == "relax.output")
      outputs = inner;
  if (outputs)
    for (const Syntax* name : Arguments(*this, *outputs->value).positional) {
      const Syntax* last = nullptr;
      for (const Line* inner : s.body) {
        std::vector<const Syntax*> targets = inner->targets;
        if (inner->kind == StmtKind::annotated) targets = {inner->target};
        for (const Syntax* target : targets) {
          if (target->text == name->text) last = target;
          for (const Syntax* item : target->items)
            if (item && item->kind == ExprKind::name && item->text == name->text) last = item;
        }
      }
      if (name->kind != ExprKind::name || !last)
        fail(errors::unknown_name, *name, "'" + source_text(*name) + "' is not bound in this block");
      outputs_.insert(last);
    }
  close(into, dataflow);
  const size_t before = into.blocks.size();
  for (const Line* inner : s.body) line(*inner, into);
  const bool empty = into.open.empty() && into.blocks.size() == before;
  close(into, false);
  if (empty) into.blocks.push_back(make<BindingBlockNode>(std::vector<Binding>{}, dataflow));
}

// ---- branches ----

// The lines of one branch; the last one assigns the value, under the name that both branches share.
Expr FunctionReader::branch_body(const Lines& lines, const Line& s, std::string& name, StructInfo& declared) {
  if (lines.empty())
    fail(errors::misplaced, place(s.begin, s.head_end), "both branches assign the result, so both must be there");
  Sequence body;
  Sequence* const outer = std::exchange(sequence_, &body);
  scope.push();
  for (size_t i = 0; i + 1 < lines.size(); ++i) line(*lines[i], body);
  const Line& last = *lines.back();
  if (last.kind == StmtKind::if_) {
    const Var v = branch(last, body);
    name = v->name;
    body.result = v;
  } else {
    const Syntax* target = last.kind == StmtKind::annotated ? last.target
                           : last.kind == StmtKind::assign  ? last.targets[0]
                                                            : nullptr;
    if (!target || target->kind != ExprKind::name || !last.value)
      fail(errors::misplaced, place(last.begin, last.head_end), "a branch ends with an assignment of its value");
    name = target->text;
    if (last.annotation) declared = info(*last.annotation);
    body.result = leaf(*last.value);
    if (!body.result) fail(errors::wrong_type, *last.value, "a branch has a value");
    agreed(body.result->struct_info, declared, *last.value);
  }
  scope.pop();
  sequence_ = outer;
  close(body, false);
  const StructInfo known = body.result->struct_info;
  return with_struct_info(make<SeqExpr>(std::move(body.blocks), body.result), known);
}

Var FunctionReader::branch(const Line& s, Sequence& into) {
  const Syntax at = place(s.begin, s.head_end);
  if (into.dataflow) fail(errors::misplaced, at, "a dataflow block has no control flow");
  const Expr condition = leaf(*s.value);
  std::string first, second;
  StructInfo declared, other;
  Expr yes = branch_body(s.body, s, first, declared);
  Expr no = branch_body(s.other, s, second, other);
  if (first != second)
    fail(errors::misplaced, at, "the branches assign '" + first + "' and '" + second + "', not one name");
  if (const auto difference = contradiction(no->struct_info, yes->struct_info); difference && !declared)
    fail(errors::annotation_differs, at, "the branches differ: " + *difference);
  const StructInfo known = declared ? declared : yes->struct_info;
  const Expr choice = ir::with_origin<ExprNode>(
      with_struct_info(make<If>(condition, std::move(yes), std::move(no)), known), origin(at));
  return add_binding(first, at, choice, known, into);
}

}  // namespace lathe::relax
