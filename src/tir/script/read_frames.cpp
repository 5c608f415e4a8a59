// Statements that are written as frames ("with"): launches of threads, branches; and macros.
#include "tir/script/read_function.h"

namespace lathe::tir {

using script::Arguments;
using script::syntax::ExprKind;
using script::syntax::StmtKind;

// ---- threads ----

// tx = T.env_thread("threadIdx.x"): a variable that T.launch_thread gives its domain.
bool FunctionReader::env_thread(const Syntax& target, const Syntax& call) {
  if (target.kind != ExprKind::name) fail(script::codes::misplaced, target, "a thread's variable is a name");
  const Arguments arguments(*this, call);
  arguments.check(2, {"thread_tag", "dtype"});
  const Syntax* t = arguments.find(1, "dtype");
  const Var v = make<VarNode>(std::string(target.text), t ? dtype(*t, "T.env_thread") : DType::int64());
  env_threads_[v.get()] = string(arguments.need(0, "thread_tag"), "a thread axis");
  define(target.text, v, target);
  return true;
}

// T.launch_thread("threadIdx.x", n): what follows is run by n threads. The same as a loop of T.thread_binding.
std::function<Stmt(Stmt)> FunctionReader::launch_thread(const Syntax& call, const std::string& name) {
  const Arguments arguments(*this, call);
  arguments.check(2, {"thread", "extent"});
  const Syntax& thread = arguments.need(0, "thread");
  const Value given = value(thread);
  std::string tag, known = name;
  DType t = DType::int64();
  const Var variable = script::node_in<VarNode>(given);
  if (variable) {
    const auto it = env_threads_.find(variable.get());
    if (it == env_threads_.end())
      fail(script::codes::wrong_arguments, thread, "'" + variable->name + "' is no thread; T.env_thread makes one");
    tag = it->second;
    known = variable->name;
    t = variable->dtype;
  } else {
    tag = string(thread, "a thread axis");
    if (known.empty()) std::replace_copy(tag.begin(), tag.end(), std::back_inserter(known), '.', '_');
  }
  const Syntax& at = arguments.need(1, "extent");
  const Expr extent = variable ? expr_of(at, t, "the number of threads") : expr(at);
  if (!extent->dtype.is_integer())
    fail(script::codes::dtype_mismatch, at, "a number of threads is no " + extent->dtype.str());
  const Var v = make<VarNode>(known, extent->dtype);
  const Expr zero = constant(extent->dtype, int64_t{0});
  domains_[v.get()] = Range{zero, extent};
  if (variable) {
    env_threads_[v.get()] = tag;  // a second launch takes it as well
    define(thread.text, v, thread);
  }
  if (!name.empty()) define(name, v, call);
  const IterVar axis = make<IterVarNode>(Range{}, var(tag, extent->dtype), IterType::thread_index, tag);
  return [=](Stmt body) {
    return Stmt(make<For>(v, zero, extent, ForKind::thread_binding, std::move(body), axis, Attributes()));
  };
}

// with T.If(c): with T.Then(): … with T.Else(): …
Stmt FunctionReader::branch_frames(const Syntax& call, const Line& s) {
  const Expr holds = condition(Arguments(*this, call).need(0, "condition"));
  Stmt cases[2];
  for (const Line* part : s.body) {
    const bool frame =
        part->kind == StmtKind::with && part->contexts.size() == 1 && part->contexts[0].first->kind == ExprKind::call;
    const std::string path = frame ? path_of(*part->contexts[0].first->items[0]) : "";
    Syntax at;
    at.begin = part->begin;
    at.end = part->head_end;
    if (path != "tir.Then" && path != "tir.Else")
      fail(script::codes::misplaced, at, "T.If holds 'with T.Then()' and 'with T.Else()' only");
    Stmt& chosen = cases[path == "tir.Else"];
    if (chosen) fail(script::codes::defined_twice, at, "the branch has this case already");
    chosen = scoped_suite(part->body);
  }
  if (!cases[0]) fail(script::codes::misplaced, call, "T.If has no 'with T.Then()'");
  return placed(Stmt(make<IfThenElse>(holds, cases[0], cases[1])), s);
}

// ---- macros ----

namespace {

constexpr int most_macros = 64;

// Whether a callee can be a macro of the host: a name, or attributes of one.
const script::syntax::Expr* root_name(const script::syntax::Expr& e) {
  if (e.kind == ExprKind::name) return &e;
  return e.kind == ExprKind::attribute ? root_name(*e.items[0]) : nullptr;
}

}  // namespace

void FunctionReader::expand(const Syntax& call, const Line& def, FunctionReader& reader, Suite& into) {
  if (macro_depth_ >= most_macros)
    fail(script::codes::too_deep, call,
         "macros call one another more than " + std::to_string(most_macros) + " deep at '" + def.name + "'");
  reader.macro_depth_ = macro_depth_ + 1;
  reader.params_ = params_;
  reader.buffer_map_ = buffer_map_;
  reader.attrs_ = attrs_;
  reader.complete_ = complete_;
  reader.blocks_ = blocks_;
  reader.domains_ = domains_;
  reader.env_threads_ = env_threads_;
  const Arguments arguments(*this, call);
  if (arguments.count() > def.parameters.size())
    fail(script::codes::wrong_arguments, call,
         "macro '" + def.name + "' takes " + std::to_string(def.parameters.size()) + " arguments, not " +
             std::to_string(arguments.count()));
  for (const auto& [key, argument] : arguments.keywords)
    if (std::none_of(def.parameters.begin(), def.parameters.end(), [&](const auto& p) { return p.name == key; }))
      fail(script::codes::wrong_arguments, *argument, "macro '" + def.name + "' has no parameter '" + key + "'");
  // All arguments are read before any parameter is defined: a parameter's name may be one of the arguments'.
  std::vector<Value> values;
  for (size_t i = 0; i < def.parameters.size(); ++i) {
    const script::syntax::Parameter& p = def.parameters[i];
    if (p.name == "self" && i == 0 && arguments.count() + arguments.keywords.size() + 1 == def.parameters.size())
      fail(script::codes::wrong_arguments, call, "macros of objects are called with the object: m(self, …)");
    const Syntax* argument = arguments.find(i, p.name);
    if (!argument && !p.default_value) arguments.need(i, p.name);
    values.push_back(argument ? value(*argument) : reader.value(*p.default_value));
  }
  reader.scope.push();
  for (size_t i = 0; i < values.size(); ++i)
    reader.scope.define(def.parameters[i].name, std::move(values[i]), def.parameters[i].begin, def.parameters[i].end);
  for (const Line* s : def.body) {
    if (s->kind == StmtKind::return_)
      fail(script::codes::misplaced, call, "macro '" + def.name + "' returns, and macros do not");
    reader.line(*s, into);
  }
  reader.scope.pop();
  buffer_map_ = std::move(reader.buffer_map_);
  attrs_ = std::move(reader.attrs_);
  domains_ = std::move(reader.domains_);
}

bool FunctionReader::macro_call(const Syntax& call, Suite& into) {
  const Syntax& callee = *call.items[0];
  const Syntax* root = root_name(callee);
  if (!root || scope.find(root->text)) return false;
  if (callee.kind == ExprKind::name) {
    const auto own = context.macros.find(callee.text);
    if (own != context.macros.end()) {
      const Line& def = *own->second;
      bool hygienic = true;
      if (def.decorators[0]->kind == ExprKind::call)
        if (const Syntax* given = Arguments(*this, *def.decorators[0]).find(0, "hygienic"))
          hygienic = boolean(*given, "hygienic");
      FunctionReader inner(context), open(context, scope);
      expand(call, def, hygienic ? inner : open, into);
      return true;
    }
  }
  if (!context.options.host) return false;
  auto macro = context.options.host->macro(source_text(callee));
  if (!macro) return false;
  const auto source = std::make_shared<const support::SourceText>(std::move(macro->text));
  script::syntax::Tree tree = script::syntax::parse(source, macro->indented);
  if (tree.body.size() != 1 || tree.body[0]->kind != StmtKind::function)
    fail(script::codes::misplaced, call, "the macro's text is no function");
  script::ParseOptions options;
  options.host = macro->hygienic ? macro->host.get() : context.options.host;
  options.constants = context.options.constants;
  script::Context theirs{tree,
                         options,
                         macro->hygienic ? options.aliases : context.aliases,
                         context.module_name,
                         context.function_names,
                         context.signatures,
                         context.macros};
  for (const auto& [name, path] : macro->aliases) theirs.aliases[name] = path;
  FunctionReader inner(theirs), open(theirs, scope);
  expand(call, *tree.body[0], macro->hygienic ? inner : open, into);
  return true;
}

}  // namespace lathe::tir
