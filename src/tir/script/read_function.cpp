#include "tir/script/read_function.h"

#include "script/parse.h"
#include "tir/script/root.h"

namespace lathe::tir {

using script::Arguments;
using script::syntax::ExprKind;

void FunctionReader::define(std::string_view name, Value value, const Syntax& at) {
  scope.define(name, std::move(value), at.begin, at.end);
}

void FunctionReader::decorations(const Line& def) {
  for (const Syntax* decorator : def.decorators) {
    if (decorator->kind != ExprKind::call) continue;
    const Arguments arguments(*this, *decorator);
    arguments.check(0, {"complete", "name", "private", "check_well_formed", "s_tir"});
    if (const Syntax* e = arguments.named("complete")) complete_ = boolean(*e, "complete");
  }
}

Buffer FunctionReader::make_buffer(const Arguments& arguments, size_t first, const std::string& name) {
  arguments.check(first + 2, {"shape", "dtype", "data", "strides", "elem_offset", "scope", "align", "offset_factor",
                              "buffer_type", "axis_separators"});
  std::vector<Expr> shape = expr_list(arguments.need(first, "shape"), "a shape");
  for (const Expr& extent : shape)
    if (const auto known = as_int(extent); known && *known < 0)
      fail(script::codes::wrong_arguments, arguments.need(first, "shape"),
           "an extent is not negative, as " + std::to_string(*known) + " is");
  const Syntax* t = arguments.find(first + 1, "dtype");
  const DType element = t ? dtype(*t, "a buffer") : DType::float32();
  const auto named = [&](const char* argument) {
    const Syntax* e = arguments.named(argument);
    return e && !(e->kind == ExprKind::constant && e->text == "None") ? e : nullptr;
  };
  Var data;
  if (const Syntax* e = named("data")) {
    const Value v = value(*e);
    data = script::node_in<VarNode>(v);
    if (!data) fail(script::codes::wrong_type, *e, "a buffer's data is a variable");
  }
  if (!data) data = make<VarNode>(name, DType::handle());
  const Syntax *strides = named("strides"), *offset = named("elem_offset"), *scope_name = named("scope");
  const Syntax *align = named("align"), *factor = named("offset_factor"), *separators = named("axis_separators");
  std::vector<int64_t> separator_list;
  if (separators)
    for (const Expr& e : expr_list(*separators, "axis separators")) separator_list.push_back(as_int(e).value_or(0));
  std::vector<Expr> stride_list;
  if (strides && (strides->kind == ExprKind::list || strides->kind == ExprKind::tuple)) {
    // A text among them is a size that nothing else knows.
    for (const Syntax* e : strides->items)
      stride_list.push_back(
          e->kind == ExprKind::string
              ? Expr(make<VarNode>(string(*e, "a stride"), shape.empty() ? DType::int64() : shape[0]->dtype))
              : expr(*e));
  } else if (strides) {
    stride_list = expr_list(*strides, "strides");
  }
  const int64_t alignment = align ? integer(*align, "align") : 0;
  return make<BufferNode>(name, data, element, std::move(shape), std::move(stride_list),
                          offset ? expr(*offset) : Expr(), scope_name ? string(*scope_name, "a scope") : "global",
                          alignment > 0 ? alignment : 64, factor ? integer(*factor, "offset_factor") : 0,
                          std::move(separator_list));
}

// T.Buffer[(m, n), "float32"], the spelling of 2022.
Buffer FunctionReader::buffer_from_index(const Syntax& index, const std::string& name) {
  const Syntax* shape = &index;
  DType element = DType::float32();
  if (index.kind == ExprKind::tuple && index.items.size() == 2 && index.items[1]->kind == ExprKind::string) {
    shape = index.items[0];
    element = dtype(*index.items[1], "a buffer");
  }
  return ir::buffer(name, expr_list(*shape, "a shape"), element);
}

void FunctionReader::parameter(const script::syntax::Parameter& p) {
  Syntax at;
  at.begin = p.begin;
  at.end = p.end;
  if (scope.find(p.name)) fail(script::codes::defined_twice, at, "'" + p.name + "' is defined twice");
  const Syntax* annotation = p.annotation;
  const auto bound = [&](Buffer b) {
    const Var handle = make<VarNode>(p.name + "_handle", DType::handle());
    params_.push_back(handle);
    buffer_map_.emplace_back(handle, b);
    define(p.name, b, at);
  };
  if (annotation && annotation->kind == ExprKind::call && path_of(*annotation->items[0]) == "tir.Buffer")
    return bound(make_buffer(Arguments(*this, *annotation), 0, p.name));
  if (annotation && annotation->kind == ExprKind::subscript) {
    const std::string path = path_of(*annotation->items[0]);
    if (path == "tir.Buffer") return bound(buffer_from_index(*annotation->items[1], p.name));
    if (path == "tir.Ptr") annotation = nullptr;
  }
  hint = p.name;
  Var v;
  if (!annotation) {
    v = make<VarNode>(p.name, DType::handle());
  } else if (annotation->kind == ExprKind::call) {
    v = script::node_in<VarNode>(value(*annotation));
  } else {
    v = make<VarNode>(p.name, dtype(*annotation, "a parameter"));
  }
  hint.clear();
  if (!v) fail(script::codes::wrong_type, *annotation, "a parameter is a T.Buffer, T.handle or a scalar type");
  params_.push_back(v);
  define(p.name, v, at);
}

Function FunctionReader::function(const Line& def) {
  decorations(def);
  const Lines symbols = script::declare_symbols(*this, def.body);
  declared_.insert(symbols.begin(), symbols.end());
  for (const script::syntax::Parameter& p : def.parameters) parameter(p);
  const DType result = def.value ? dtype(*def.value, "the result") : DType::void_();

  OpenBlock root{.is_function = true};
  blocks_.push_back(&root);
  Stmt body = suite(def.body);
  blocks_.pop_back();
  if (complete_ && (!root.alloc_buffers.empty() || needs_root(body)))
    body = placed(root_block(std::move(body), std::move(root.alloc_buffers)), def);

  // The buffers in order of the parameters, as they are kept.
  std::vector<std::pair<Var, Buffer>> map;
  for (const Var& param : params_)
    for (auto& [bound, buffer] : buffer_map_)
      if (bound == param) map.emplace_back(bound, buffer);
  return placed(make<PrimFunc>(params_, std::move(map), std::move(body), result, attrs_), def);
}

}  // namespace lathe::tir
