#include "tir/script/print_function.h"

#include "ir/visit.h"
#include "script/print.h"
#include "tir/script/root.h"

namespace lathe::tir {

using script::join;
using script::string_literal;

void FunctionPrinter::define_missing(const NodeRef& node, std::string_view hint) {
  names.define_outermost(node, hint);
  if (!declares_) return;
  std::string line;
  if (const auto* v = node.as<VarNode>())
    line = declaration(*v);
  else
    line = buffer_call(ir::cast<BufferNode>(node), "Buffer", {});
  lines_.insert(top_++, top_level_, *names.find(node.get()) + " = " + line);
}

// ---- buffers that no statement declares ----

void FunctionPrinter::collect_pending(const PrimFunc& f) {
  std::unordered_set<const Node*> declared, bound, seen;
  std::vector<Buffer> used;
  for (const auto& [param, buffer] : f.buffer_map) declared.insert(buffer.get());
  const auto declare = [&](const Buffer& b) {
    declared.insert(b.get());
    bound.insert(b->data.get());
  };
  ir::pre_order(f.body, [&](const NodeRef& n) {
    if (n.is<BufferNode>()) {
      if (seen.insert(n.get()).second) used.push_back(ir::cast<BufferNode>(n));
      return false;
    }
    if (n.is<VarNode>()) used_handles_.insert(n.get());
    if (const auto* x = n.as<For>()) bound.insert(x->loop_var.get());
    if (const auto* x = n.as<LetStmt>()) bound.insert(x->var.get());
    if (const auto* x = n.as<Allocate>()) bound.insert(x->buffer_var.get());
    if (const auto* x = n.as<AllocateConst>()) bound.insert(x->buffer_var.get());
    if (const auto* x = n.as<IterVarNode>()) bound.insert(x->var.get());
    if (const auto* x = n.as<DeclBuffer>()) declare(x->buffer);
    if (const auto* x = n.as<MatchBufferRegionNode>()) declare(x->buffer);
    if (const auto* x = n.as<Block>())
      for (const Buffer& b : x->alloc_buffers) declare(b);
    return true;
  });
  for (const Buffer& buffer : used) {
    if (declared.count(buffer.get())) continue;
    Pending entry{buffer};
    std::unordered_set<const Node*> vars;
    ir::post_order(buffer, [&](const NodeRef& n) {
      if (n.is<VarNode>() && bound.count(n.get())) vars.insert(n.get());
    });
    entry.missing = vars.size();
    for (const Node* v : vars) waiting_[v].push_back(pending_.size());
    pending_.push_back(std::move(entry));
  }
}

// `v` is defined now: buffers that waited for it may be declared.
void FunctionPrinter::announce(const Var& v) {
  const auto it = waiting_.find(v.get());
  if (it == waiting_.end()) return;
  // A variable that is bound in several places announces again: its buffers are declared in each.
  for (const size_t i : it->second) {
    Pending& entry = pending_[i];
    if (entry.missing > 0 && --entry.missing > 0) continue;
    if (!names.find(entry.buffer.get())) buffer_line(entry.buffer, "Buffer");
  }
}

// ---- definitions ----

std::string FunctionPrinter::define_var(const Var& v) { return names.define(v, v->name); }

std::string FunctionPrinter::define_buffer(const Buffer& b) {
  std::string name = names.define(b, b->name);
  if (!names.find(b->data.get())) names.set(b->data, name + ".data");
  return name;
}

// Variables first met in a buffer's shape, strides or offset are declared on lines before it.
void FunctionPrinter::declare_symbols(const Buffer& b) {
  const auto declare = [&](const Expr& e) {
    ir::post_order(e, [&](const NodeRef& n) {
      if (!n.is<VarNode>() || names.find(n.get())) return;
      const Var v = ir::cast<VarNode>(n);
      const std::string name = define_var(v);
      lines_.line(name + " = " + declaration(*v));
    });
  };
  for (const Expr& e : b->shape) declare(e);
  for (const Expr& e : b->strides) declare(e);
  if (b->elem_offset) declare(b->elem_offset);
}

std::string FunctionPrinter::buffer_call(const Buffer& b, std::string_view callee, std::vector<std::string> first) {
  const bool known = names.find(b->data.get()) || used_handles_.count(b->data.get());
  for (std::string& argument : buffer_arguments(*b, known)) first.push_back(std::move(argument));
  return script::call(tir(callee), first).text;
}

void FunctionPrinter::buffer_line(const Buffer& b, std::string_view callee, std::vector<std::string> first) {
  declare_symbols(b);
  const bool fresh = !names.find(b->data.get());
  if (fresh) used_handles_.erase(b->data.get());
  const std::string text = buffer_call(b, callee, std::move(first));
  const std::string name = define_buffer(b);
  lines_.line(name + " = " + text);
  if (fresh) announce(b->data);
}

// ---- the function ----

bool FunctionPrinter::is_plain_parameter(const PrimFunc& f, const Var& param, const Buffer& b) const {
  if (used_handles_.count(param.get()) || names.find(b->data.get())) return false;
  for (const auto& [other, buffer] : f.buffer_map)
    if (other != param && buffer->data == b->data) return false;
  for (const Expr& extent : b->shape)
    if (!extent.is<IntImm>()) return false;
  for (const Expr& e : b->strides)
    if (!e.is<IntImm>()) return false;
  return !b->elem_offset || b->elem_offset.is<IntImm>();
}

void FunctionPrinter::function(const std::string& name, const PrimFunc& f) {
  for (const std::string& prefix : {options.ir_prefix, options.tir_prefix, options.relax_prefix, options.module_name})
    names.reserve(prefix);
  collect_pending(f);
  std::unordered_set<const Node*> plain;
  std::vector<std::string> parameters;
  for (const Var& param : f.params) {
    const Buffer b = f.buffer_of(param);
    if (b && is_plain_parameter(f, param, b)) {
      used_handles_.erase(b->data.get());
      const std::string text = buffer_call(b, "Buffer", {});
      plain.insert(param.get());
      parameters.push_back(define_buffer(b) + ": " + text);
    } else {
      const std::string defined = define_var(param);
      const bool called = param->is_size || (!param->dtype.is_handle() && param->dtype.is_vector());
      parameters.push_back(defined + ": " + (called ? declaration(*param) : tir(param->dtype.str())));
    }
  }
  std::string signature = "(" + join(parameters) + ")";
  if (!f.ret_type.is_void()) signature += " -> " + tir(f.ret_type.str());

  const RootForm form = root_form(f);
  std::vector<std::string> decoration;
  if (form == RootForm::as_written) decoration.emplace_back("complete=False");
  script::print_header(lines_, tir("prim_func"), std::move(decoration), name, signature + ":");
  lines_.indent();
  top_ = lines_.count();
  top_level_ = lines_.level();
  if (!f.attrs.empty()) {
    const std::string text = attributes(f.attrs).text;
    lines_.line(tir("func_attr") + "(" + text + ")");
    top_ = lines_.count();
  }
  for (const auto& [param, buffer] : f.buffer_map)
    if (!plain.count(param.get())) buffer_line(buffer, "match_buffer", {variable(param)});
  for (size_t i = 0; i < pending_.size(); ++i)
    if (pending_[i].missing == 0 && !names.find(pending_[i].buffer.get())) buffer_line(pending_[i].buffer, "Buffer");
  body_of_function(f, form == RootForm::implied);
  lines_.dedent();
}

std::unordered_map<const Node*, size_t> FunctionPrinter::first_lines() const {
  std::unordered_map<const Node*, size_t> lines;
  for (const auto& [node, below] : begins_) lines.emplace(node, top_ + below);
  return lines;
}

void FunctionPrinter::body_of_function(const PrimFunc& f, bool sugar_root) {
  if (!sugar_root) return stmt(f.body, true);
  const Block& root = *root_of(f)->block;
  for (const Buffer& b : root.alloc_buffers) buffer_line(b, "alloc_buffer");
  stmt(root.body, true);
}

void FunctionPrinter::fragment(const Stmt& s) {
  declares_ = false;
  stmt(s, true);
}

}  // namespace lathe::tir
