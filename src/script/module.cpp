// Whole scripts: imports, the module's class, and its functions, declared first and read after.
#include <charconv>

#include "script/expr_reader.h"
#include "script/parse.h"
#include "script/print.h"

namespace lathe::script {
namespace {

using syntax::Stmt;
using syntax::StmtKind;

struct Found {
  const Stmt* def;
  const Dialect* dialect;
  std::string name;
};

class ModuleReader {
 public:
  ModuleReader(syntax::Tree& tree, Dialects dialects, const ParseOptions& options)
      : dialects_(dialects), context_{tree, options, options.aliases, {}, {}, {}, {}}, reader_(context_, scope_) {}

  Result<ir::IRModule> run() {
    collect(context_.tree.body, false);
    if (found_.empty() && !has_class_) {
      const auto end = static_cast<uint32_t>(context_.tree.source->text.size());
      fail(codes::no_function, context_.tree.source, 0, std::min<uint32_t>(end, 1),
           "the text has no function and no module");
    }
    support::Diagnostics wrong;
    const auto attempt = [&](auto&& step) {
      try {
        step();
      } catch (support::DiagnosticError& error) {
        for (support::Diagnostic& d : error.diagnostics) wrong.push_back(std::move(d));
      }
    };
    for (const Found& f : found_) attempt([&] { context_.signatures[f.name] = f.dialect->declare(context_, *f.def); });
    if (!wrong.empty()) return wrong;
    for (const Found& f : found_) attempt([&] { module_.set(f.name, read(f)); });
    if (!wrong.empty()) return wrong;
    return std::move(module_);
  }

 private:
  // Failures of builders get the place of the function, when they have none.
  ir::BaseFunc read(const Found& f) {
    try {
      return f.dialect->read_function(context_, *f.def);
    } catch (support::DiagnosticError& error) {
      for (support::Diagnostic& d : error.diagnostics)
        if (std::holds_alternative<std::monostate>(d.place))
          d.place = support::TextRange{context_.tree.source, f.def->begin, f.def->head_end};
      throw;
    }
  }

  void import(const Stmt& s) {
    for (const syntax::Import& i : s.imports) {
      const std::string last = i.path.substr(i.path.rfind('.') + 1);
      context_.aliases[i.alias] = last == "tir" || last == "relax" || last == "ir" ? last : i.path;
    }
  }

  // The last part of a decorator's name, as "prim_func".
  std::string_view decorator_name(const syntax::Expr& e) const {
    const syntax::Expr& callee = e.kind == syntax::ExprKind::call ? *e.items[0] : e;
    return callee.kind == syntax::ExprKind::attribute || callee.kind == syntax::ExprKind::name ? callee.text : "";
  }

  void collect(const std::vector<const Stmt*>& body, bool in_class) {
    for (const Stmt* s : body) {
      switch (s->kind) {
        case StmtKind::import_:
          import(*s);
          break;
        case StmtKind::pass:
          break;
        case StmtKind::function:
          function(*s);
          break;
        case StmtKind::class_:
          if (in_class || has_class_)
            fail(codes::misplaced, context_.tree.source, s->begin, s->head_end, "a text holds one module");
          if (s->decorators.size() != 1 || decorator_name(*s->decorators[0]) != "ir_module")
            fail(codes::misplaced, context_.tree.source, s->begin, s->head_end,
                 "class '" + s->name + "' is not decorated as a module", "write @I.ir_module above it");
          has_class_ = true;
          context_.module_name = s->name;
          collect(s->body, true);
          break;
        case StmtKind::expression:
          if (module_attributes(*s->value) || s->value->kind == syntax::ExprKind::string) break;
          [[fallthrough]];
        default:
          fail(codes::misplaced, context_.tree.source, s->begin, s->head_end,
               std::string("this statement has no meaning in a ") + (in_class ? "module" : "script"));
      }
    }
  }

  bool module_attributes(const syntax::Expr& e) {
    const std::string path = e.kind == syntax::ExprKind::call ? reader_.path_of(*e.items[0]) : "";
    if (path == "ir.module_attrs") {
      module_.attrs = reader_.attributes(Arguments(reader_, e).need(0, "attrs"));
    } else if (path == "ir.module_set_attr") {
      const Arguments arguments(reader_, e);
      arguments.check(3, {"attr_key", "attr_value", "allow_overwrite"});
      const syntax::Expr& at = arguments.need(0, "attr_key");
      const std::string key = reader_.string(at, "the name of an attribute");
      const syntax::Expr* overwrites = arguments.find(2, "allow_overwrite");
      if (module_.attrs.contains(key) && !(overwrites && reader_.boolean(*overwrites, "allow_overwrite")))
        reader_.fail(codes::defined_twice, at, "the module has an attribute '" + key + "' already",
                     "allow_overwrite=True replaces it");
      module_.attrs.set(key, reader_.value(arguments.need(1, "attr_value")));
    } else {
      return false;
    }
    return true;
  }

  void function(const Stmt& s) {
    if (s.decorators.size() == 1 && decorator_name(*s.decorators[0]) == "macro") {
      context_.macros[s.name] = &s;
      return;
    }
    Found found{&s, nullptr, s.name};
    for (const syntax::Expr* decorator : s.decorators)
      for (const Dialect* dialect : dialects_)
        if (dialect->reads(decorator_name(*decorator))) {
          found.dialect = dialect;
          if (decorator->kind != syntax::ExprKind::call) continue;
          if (const syntax::Expr* name = Arguments(reader_, *decorator).named("name"))
            found.name = reader_.string(*name, "a function's name");
        }
    if (!found.dialect)
      fail(codes::misplaced, context_.tree.source, s.begin, s.head_end,
           "function '" + s.name + "' has no decorator of a dialect", "write @T.prim_func or @R.function above it");
    expect_new(found, names_, found.name);
    expect_new(found, written_names_, s.name);
    context_.function_names[s.name] = found.name;
    found_.push_back(std::move(found));
  }

  // That no other function has a name, in the module or in the text.
  void expect_new(const Found& found, std::unordered_map<std::string, const Stmt*>& known, const std::string& name) {
    const auto [first, is_new] = known.emplace(name, found.def);
    if (is_new) return;
    const Stmt &s = *found.def, &other = *first->second;
    throw support::DiagnosticError(support::Diagnostic{
        .code = codes::defined_twice,
        .place = support::TextRange{context_.tree.source, s.begin, s.head_end},
        .message = "function '" + found.name + "' is defined twice",
        .notes = {{support::TextRange{context_.tree.source, other.begin, other.head_end}, "first here"}}});
  }

  Dialects dialects_;
  Context context_;
  Scope scope_;
  ExprReader reader_;
  ir::IRModule module_;
  std::vector<Found> found_;
  std::unordered_map<std::string, const Stmt*> names_, written_names_;  // of functions, with their definitions
  bool has_class_ = false;
};

// The first line may say which version of the text form follows.
void check_version(const Source& source) {
  constexpr std::string_view prefix = "# lathe script ";
  const std::string& text = source->text;
  if (!text.starts_with(prefix)) return;
  int version = 0;
  const char* const digits = text.data() + prefix.size();
  const auto [end, error] = std::from_chars(digits, text.data() + text.size(), version);
  const auto stop = static_cast<uint32_t>(end - text.data());
  if (error == std::errc() && version >= 1 && version <= format_version) return;
  fail(codes::version, source, 0, stop,
       "this text is of another version of the form than " + std::to_string(format_version) +
           ", which this Lathe reads");
}

}  // namespace

Result<ir::IRModule> parse(support::SourceText text, Dialects dialects, const ParseOptions& options) {
  const auto source = std::make_shared<const support::SourceText>(std::move(text));
  return support::catch_diagnostics([&]() -> Result<ir::IRModule> {
    check_version(source);
    syntax::Tree tree = syntax::parse(source, options.indented);
    return ModuleReader(tree, dialects, options).run();
  });
}

Result<ir::BaseFunc> parse_function(support::SourceText text, Dialects dialects, const ParseOptions& options) {
  const std::string name = text.name;
  const ir::IRModule module = TRY(parse(std::move(text), dialects, options));
  if (module.size() == 1) return module.functions()[0].second;
  return support::Diagnostic{.code = codes::no_function,
                             .message = name + " has " + std::to_string(module.size()) + " functions, not one"};
}

std::vector<const Stmt*> declare_symbols(ExprReader& reader, const std::vector<const Stmt*>& body) {
  std::vector<const Stmt*> lines;
  for (const Stmt* s : body) {
    if (s->kind != StmtKind::assign || s->targets.size() != 1 || s->targets[0]->kind != syntax::ExprKind::name)
      continue;
    const syntax::Expr& value = *s->value;
    if (value.kind != syntax::ExprKind::call) continue;
    const std::string path = reader.path_of(*value.items[0]);
    if (!path.starts_with("tir.") || reader.scope.find(s->targets[0]->text)) continue;
    const bool is_type = ir::DType::parse(path.substr(4)).has_value() || path == "tir.boolean";
    const bool by_name_only = std::none_of(value.labels.begin(), value.labels.end(), [](auto& l) { return l.empty(); });
    if (!is_type || !by_name_only) {
      if (path != "tir.var") continue;
    }
    reader.hint = s->targets[0]->text;
    reader.scope.define(reader.hint, reader.value(value), s->targets[0]->begin, s->targets[0]->end);
    reader.hint.clear();
    lines.push_back(s);
  }
  return lines;
}

}  // namespace lathe::script
