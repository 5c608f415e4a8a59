// Statements and blocks of tensor functions as text.
#include "ir/match.h"
#include "ir/visit.h"
#include "script/constant_text.h"
#include "tir/script/print_function.h"

namespace lathe::tir {

using script::join;
using script::string_literal;

void FunctionPrinter::suite(const Stmt& s) {
  lines_.indent();
  names.push();
  stmt(s, true);
  names.pop();
  lines_.dedent();
}

// Defines `v` as `text` for `body`: a line where nothing follows the scope in its suite, else a `with` suite.
void FunctionPrinter::scoped(const std::string& text, const Var& v, const Stmt& body, bool last) {
  if (!last) names.push();
  const std::string name = define_var(v);
  lines_.line(last ? name + " = " + text : "with " + text + " as " + name + ":");
  if (!last) lines_.indent();
  announce(v);
  stmt(body, true);
  if (last) return;
  lines_.dedent();
  names.pop();
}

// As `scoped`, for a buffer's declaration.
void FunctionPrinter::declared(const Buffer& b, const Stmt& body, bool last) {
  if (last) {
    buffer_line(b, "decl_buffer");
    return stmt(body, true);
  }
  declare_symbols(b);
  names.push();
  const bool fresh = !names.find(b->data.get());
  if (fresh) used_handles_.erase(b->data.get());
  const std::string text = buffer_call(b, "decl_buffer", {});
  lines_.line("with " + text + " as " + define_buffer(b) + ":");
  lines_.indent();
  if (fresh) announce(b->data);
  stmt(body, true);
  lines_.dedent();
  names.pop();
}

void FunctionPrinter::branch(const IfThenElse& n, std::string_view keyword) {
  const std::string condition = expr(n.condition).text;
  lines_.line(std::string(keyword) + " " + condition + ":");
  suite(n.then_case);
  if (!n.else_case) return;
  if (const auto* other = n.else_case.as<IfThenElse>()) return branch(*other, "elif");
  lines_.line("else:");
  suite(n.else_case);
}

void FunctionPrinter::stmt(const Stmt& s, bool last) {
  begins_here(*s.get());
  match_all(
      s,
      [&](const LetStmt& n) {
        std::vector<std::string> arguments{expr(n.value).text};
        if (n.var->dtype != n.value->dtype) arguments.push_back(string_literal(n.var->dtype.str()).text);
        if (n.var->is_size) arguments.emplace_back("is_size_var=True");
        scoped(script::call(tir("LetStmt"), arguments).text, n.var, n.body, last);
      },
      [&](const AttrStmt& n) {
        const std::string text =
            script::call(tir("attr"), std::vector{value(n.node).text, string_literal(n.key).text, expr(n.value).text})
                .text;
        lines_.line(last ? text : "with " + text + ":");
        if (last) return stmt(n.body, true);
        suite(n.body);
      },
      [&](const AssertStmt& n) {
        const std::string condition = expr(n.condition).within(script::Precedence::conditional);
        lines_.line("assert " + condition + ", " + string_literal(n.message).text);
      },
      [&](const BufferStore& n) {
        const std::string target = buffer(n.buffer), stored = expr(n.value).text;
        if (!n.predicate) return lines_.line(script::subscript(target, indices(n.indices)).text + " = " + stored);
        const std::string list = script::list(indices(n.indices)).text, predicate = expr(n.predicate).text;
        lines_.line(target + ".vstore(" + list + ", " + stored + ", predicate=" + predicate + ")");
      },
      [&](const DeclBuffer& n) { declared(n.buffer, n.body, last); },
      [&](const Allocate& n) {
        std::vector<std::string> arguments{script::list(indices(n.extents)).text, string_literal(n.dtype.str()).text,
                                           string_literal(n.scope).text};
        if (!n.annotations.empty()) arguments.push_back("annotations=" + attributes(n.annotations).text);
        scoped(script::call(tir("allocate"), arguments).text, n.buffer_var, n.body, last);
      },
      [&](const AllocateConst& n) {
        scoped(script::call(tir("allocate_const"), script::constant_arguments(*n.data, options)).text, n.buffer_var,
               n.body, last);
      },
      [&](const SeqStmt& n) {
        for (size_t i = 0; i < n.seq.size(); ++i) stmt(n.seq[i], last && i + 1 == n.seq.size());
      },
      [&](const IfThenElse& n) { branch(n, "if"); },
      [&](const Evaluate& n) {
        const Document text = expected(n.value, DType::int32());
        const bool bare = n.value.is<ir::Call>();
        lines_.line(bare ? text.text : tir("evaluate") + "(" + text.text + ")");
      },
      [&](const For& n) { loop(n); },
      [&](const While& n) {
        const std::string condition = expr(n.condition).text;
        lines_.line("while " + condition + ":");
        suite(n.body);
      },
      [&](const Block& n) { block(n, nullptr); }, [&](const BlockRealize& n) { block(*n.block, &n); });
}

// ---- loops ----

namespace {

bool is_plain_serial(const For& n) {
  return n.kind == ForKind::serial && n.annotations.empty() && !n.thread_binding && is_int(n.min, 0) &&
         n.min->dtype == DType::int64() && n.loop_var->dtype == DType::int64() && n.extent->dtype == DType::int64() &&
         !n.loop_var->is_size;
}

std::string_view loop_callee(ForKind kind) {
  switch (kind) {
    case ForKind::serial:
      return "serial";
    case ForKind::parallel:
      return "parallel";
    case ForKind::vectorized:
      return "vectorized";
    case ForKind::unrolled:
      return "unroll";
    case ForKind::thread_binding:
      return "thread_binding";
  }
  support::unreachable("a kind of loop without a name");
}

}  // namespace

std::string FunctionPrinter::loop_header(const For& n) {
  if (is_plain_serial(n) && options.syntax_sugar) return "range(" + index(n.extent).text + ")";
  std::vector<std::string> arguments;
  if (is_int(n.min, 0) && n.min->dtype == n.loop_var->dtype) {
    arguments.push_back(index(n.extent).text);
  } else {
    auto [begin, end] = bounds({n.min, n.extent});
    arguments = {std::move(begin), std::move(end)};
  }
  if (n.thread_binding) {
    const IterVarNode& thread = *n.thread_binding;
    const bool plain = !thread.dom.min && thread.type == IterType::thread_index && !thread.var->is_size &&
                       thread.var->dtype == n.loop_var->dtype;
    arguments.push_back("thread=" + (plain ? string_literal(thread.thread_tag).text : iter_var(thread).text));
  }
  if (!n.annotations.empty()) arguments.push_back("annotations=" + attributes(n.annotations).text);
  if (n.loop_var->dtype != n.extent->dtype)
    arguments.push_back("dtype=" + string_literal(n.loop_var->dtype.str()).text);
  return script::call(tir(loop_callee(n.kind)), arguments).text;
}

void FunctionPrinter::loop(const For& n) {
  // Nested plain loops whose extents do not depend on each other are one grid.
  std::vector<const For*> nest{&n};
  if (options.syntax_sugar && is_plain_serial(n)) {
    for (const For* inner = n.body.as<For>(); inner && is_plain_serial(*inner); inner = inner->body.as<For>()) {
      bool independent = true;
      for (const For* outer : nest) independent = independent && !ir::uses_var(inner->extent, outer->loop_var);
      if (!independent) break;
      nest.push_back(inner);
    }
  }
  std::string header;
  std::vector<std::string> extents;
  if (nest.size() == 1) {
    header = loop_header(n);
  } else {
    for (const For* l : nest) extents.push_back(index(l->extent).text);
    header = script::call(tir("grid"), extents).text;
  }
  names.push();
  std::vector<std::string> variables;
  for (const For* l : nest) {
    variables.push_back(define_var(l->loop_var));
    domains_[l->loop_var.get()] = {l->min, l->extent};
  }
  for (const For* l : nest) begins_here(*l);
  lines_.line("for " + join(variables) + " in " + header + ":");
  lines_.indent();
  for (const For* l : nest) announce(l->loop_var);
  stmt(nest.back()->body, true);
  lines_.dedent();
  for (const For* l : nest) domains_.erase(l->loop_var.get());
  names.pop();
}

}  // namespace lathe::tir
