// Struct info in scripts: R.Tensor((n, 4), dtype="float32") and its kin; how annotations agree with values.
#include "relax/infer.h"
#include "relax/script/dialect.h"
#include "relax/script/read_function.h"

namespace lathe::relax {

using script::Arguments;
namespace errors = script::codes;
using script::syntax::ExprKind;

namespace {

bool is_none(const script::syntax::Expr* e) { return !e || (e->kind == ExprKind::constant && e->text == "None"); }

// The name of a struct info's constructor, or "". Bare names are the spelling of 2022.
std::string constructor(const FunctionReader& reader, const script::syntax::Expr& callee) {
  static constexpr std::string_view names[] = {"Tensor",   "Shape",  "Prim",     "Tuple",
                                               "Callable", "Object", "Sequence", "Optional"};
  std::string path = reader.path_of(callee);
  if (path.starts_with("relax."))
    path = path.substr(6);
  else if (callee.kind == ExprKind::name && path.empty() && !reader.scope.find(callee.text))
    path = callee.text;
  return std::find(std::begin(names), std::end(names), path) == std::end(names) ? "" : path;
}

}  // namespace

// The expression inside a string literal: the name of a symbolic dimension, or arithmetic of some.
const FunctionReader::Syntax& FunctionReader::inside(const Syntax& literal) {
  const std::string& text = context.tree.source->text;
  const bool plain = literal.end - literal.begin == literal.text.size() + 2 &&
                     text.compare(literal.begin + 1, literal.text.size(), literal.text) == 0;
  if (!plain) fail(errors::wrong_type, literal, "a symbolic dimension is a plain string");
  return script::syntax::parse_expression(context.tree, literal.begin + 1, literal.end - 1);
}

ir::Expr FunctionReader::dimension(const Syntax& e) {
  const Syntax* inner = &e;
  if (e.kind == ExprKind::string) {
    inner = &inside(e);
    // Names that are new here are symbolic dimensions of the function.
    std::vector<const Syntax*> open{inner};
    while (!open.empty()) {
      const Syntax* at = open.back();
      open.pop_back();
      if (at->kind == ExprKind::name && !scope.find(at->text) && path_of(*at).empty())
        scope.define(at->text, ir::size_var(std::string(at->text)), at->begin, at->end);
      for (const Syntax* item : at->items)
        if (item && (at->kind != ExprKind::call || item != at->items[0])) open.push_back(item);
    }
  }
  ir::Expr extent = expr(*inner);
  if (!extent->dtype.is_integer() || extent->dtype.is_vector())
    fail(errors::dtype_mismatch, e, "a dimension is an integer, not " + extent->dtype.str());
  return extent;
}

std::vector<ir::Expr> FunctionReader::dimensions(const Syntax& e) {
  std::vector<ir::Expr> list;
  if (e.kind == ExprKind::tuple || e.kind == ExprKind::list) {
    for (const Syntax* item : e.items) list.push_back(dimension(*item));
    return list;
  }
  if (e.kind == ExprKind::string || e.kind == ExprKind::integer) return {dimension(e)};
  return expr_list(e, "a shape");
}

bool FunctionReader::is_info(const Syntax& e) const {
  return !constructor(*this, e.kind == ExprKind::call ? *e.items[0] : e).empty();
}

std::vector<StructInfo> FunctionReader::info_list(const Syntax& e) {
  std::vector<StructInfo> list;
  if (e.kind == ExprKind::list || e.kind == ExprKind::tuple) {
    for (const Syntax* item : e.items) list.push_back(info(*item));
    return list;
  }
  return {info(e)};
}

StructInfo FunctionReader::info(const Syntax& e) {
  if (e.kind == ExprKind::call) {
    if (const std::string name = constructor(*this, *e.items[0]); !name.empty())
      return info_call(name, Arguments(*this, e));
  } else if (constructor(*this, e) == "Object") {
    return make<ObjectStructInfo>();
  } else if (constructor(*this, e) == "Shape") {
    return make<ShapeStructInfo>();
  } else if (constructor(*this, e) == "Tensor") {
    return make<TensorStructInfo>();
  }
  fail(errors::wrong_type, e,
       "expected the type of a value, as R.Tensor((2, 3), \"float32\"), R.Tuple, R.Shape, R.Prim, "
       "R.Sequence, R.Optional, R.Callable or R.Object");
}

StructInfo FunctionReader::info_call(std::string_view name, const Arguments& arguments) {
  if (name == "Object") {
    arguments.check(0, {});
    return make<ObjectStructInfo>();
  }
  if (name == "Tuple") {
    std::vector<StructInfo> items;
    for (const Syntax* item : arguments.positional)
      for (StructInfo& one : info_list(*item)) items.push_back(std::move(one));
    return make<TupleStructInfo>(std::move(items));
  }
  if (name == "Sequence" || name == "Optional") {
    arguments.check(1, {"element"});
    StructInfo element = info(arguments.need(0, "element"));
    if (name == "Sequence") return make<SequenceStructInfo>(std::move(element));
    return make<OptionalStructInfo>(std::move(element));
  }
  if (name == "Prim") {
    arguments.check(1, {"dtype", "value"});
    const Syntax *t = arguments.find(0, "dtype"), *v = arguments.named("value");
    ir::Expr known;
    if (v) known = dimension_of_any_type(*v);
    if (is_none(t) && !known) fail(errors::wrong_arguments, arguments.call, "R.Prim takes a dtype or a value");
    const DType type = is_none(t) ? known->dtype : dtype(*t, "R.Prim");
    return make<PrimStructInfo>(type, known);
  }
  if (name == "Shape") {
    arguments.check(1, {"values", "ndim"});
    const Syntax *values = arguments.find(0, "values"), *rank = arguments.named("ndim");
    if (is_none(values))
      return make<ShapeStructInfo>(std::optional<std::vector<ir::Expr>>{}, rank ? integer(*rank, "ndim") : -1);
    return make<ShapeStructInfo>(std::optional(dimensions(*values)));
  }
  if (name == "Tensor") {
    arguments.check(2, {"shape", "dtype", "ndim", "vdevice"});
    const Syntax *shape = arguments.find(0, "shape"), *t = arguments.find(1, "dtype"), *rank = arguments.named("ndim");
    const DType type = is_none(t) ? DType::void_() : dtype(*t, "R.Tensor");
    if (!is_none(shape)) return tensor_info(dimensions(*shape), type);
    return tensor_info_of_rank(rank ? integer(*rank, "ndim") : -1, type);
  }
  arguments.check(3, {"params", "ret", "purity"});
  const Syntax *params = arguments.find(0, "params"), *result = arguments.find(1, "ret"),
               *pure = arguments.find(2, "purity");
  std::optional<std::vector<StructInfo>> items;
  if (!is_none(params)) items = info_list(*params);
  return make<FuncStructInfo>(std::move(items), is_none(result) ? StructInfo() : info(*result),
                              !pure || boolean(*pure, "purity"));
}

// A scalar's value in R.Prim: any dtype, and symbols in a string.
ir::Expr FunctionReader::dimension_of_any_type(const Syntax& e) {
  return e.kind == ExprKind::string ? expr(inside(e)) : expr(e);
}

// ---- agreement ----

namespace {

std::string text(const StructInfo& info) {
  const auto* tensor = info.as<TensorStructInfo>();
  return tensor ? text_of(*tensor) : graph_text(info);
}

bool shapes_contradict(const std::optional<std::vector<ir::Expr>>& a, const std::optional<std::vector<ir::Expr>>& b) {
  if (!a || !b) return false;
  for (size_t i = 0; i < a->size() && i < b->size(); ++i)
    if (different_extents((*a)[i], (*b)[i])) return true;
  return a->size() != b->size();
}

bool contradicts(const StructInfo& a, const StructInfo& b) {
  if (!a || !b || a.is<ObjectStructInfo>() || b.is<ObjectStructInfo>()) return false;
  if (&a->node_class() != &b->node_class()) return true;
  if (const auto *x = a.as<TensorStructInfo>(), *y = b.as<TensorStructInfo>(); x && y)
    return (!x->dtype.is_void() && !y->dtype.is_void() && x->dtype != y->dtype) ||
           (x->ndim >= 0 && y->ndim >= 0 && x->ndim != y->ndim) || shapes_contradict(x->shape, y->shape);
  if (const auto *x = a.as<TupleStructInfo>(), *y = b.as<TupleStructInfo>(); x && y) {
    if (x->items.size() != y->items.size()) return true;
    for (size_t i = 0; i < x->items.size(); ++i)
      if (contradicts(x->items[i], y->items[i])) return true;
  }
  if (const auto *x = a.as<ShapeStructInfo>(), *y = b.as<ShapeStructInfo>(); x && y)
    return (x->ndim >= 0 && y->ndim >= 0 && x->ndim != y->ndim) || shapes_contradict(x->values, y->values);
  if (const auto *x = a.as<SequenceStructInfo>(), *y = b.as<SequenceStructInfo>(); x && y)
    return contradicts(x->element, y->element);
  if (const auto *x = a.as<OptionalStructInfo>(), *y = b.as<OptionalStructInfo>(); x && y)
    return contradicts(x->element, y->element);
  if (const auto *x = a.as<PrimStructInfo>(), *y = b.as<PrimStructInfo>(); x && y) return x->dtype != y->dtype;
  return false;
}

}  // namespace

std::optional<std::string> contradiction(const StructInfo& value, const StructInfo& declared) {
  if (!contradicts(value, declared)) return std::nullopt;
  return "the value is " + text(value) + ", not " + text(declared);
}

StructInfo FunctionReader::agreed(const StructInfo& inferred, const StructInfo& declared, const Syntax& at) const {
  if (!declared) return inferred;
  if (const auto difference = contradiction(inferred, declared)) fail(errors::annotation_differs, at, *difference);
  return declared;
}

}  // namespace lathe::relax
