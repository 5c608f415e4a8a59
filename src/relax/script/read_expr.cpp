// Graph expressions: constants, tuples, and calls of operators, tensor programs and functions.
#include "ir/visit.h"
#include "relax/block_builder.h"
#include "relax/call_tir.h"
#include "relax/infer.h"
#include "relax/script/read_function.h"
#include "support/nearest.h"

namespace lathe::relax {

using script::Arguments;
namespace errors = script::codes;
using script::syntax::ExprKind;

namespace {

Expr graph_in(const Value& v) {
  const auto* n = v.get<NodeRef>();
  return n && *n && (*n)->node_class().family == ExprNode::family ? ir::detail::narrow<ExprNode>(*n) : Expr();
}

}  // namespace

std::optional<Value> FunctionReader::other_path(const std::string& path, const Syntax& e) {
  if (!path.starts_with("relax.")) return std::nullopt;
  if (is_info(e)) return Value(info(e));
  return std::nullopt;
}

// Struct info and graph expressions inside attribute values.
std::optional<Value> FunctionReader::other_call(const Syntax& e) {
  if (e.kind != ExprKind::call || !path_of(*e.items[0]).starts_with("relax.")) return std::nullopt;
  if (is_info(e)) return Value(info(e));
  return Value(graph(e));
}

Expr FunctionReader::with_info(Expr e, const Syntax& at) {
  if (!e->struct_info) {
    Result<StructInfo> known = infer_struct_info(e);
    if (!known.ok()) {
      support::Diagnostics diagnostics = known.diagnostics();
      for (support::Diagnostic& d : diagnostics)
        if (std::holds_alternative<std::monostate>(d.place)) d.place = range(at);
      throw support::DiagnosticError(std::move(diagnostics));
    }
    e = with_struct_info(std::move(e), *known);
  }
  return ir::with_origin(std::move(e), origin(at));
}

Expr FunctionReader::from_value(const Value& v, const Syntax& at) {
  if (v.empty()) return {};
  if (Expr e = graph_in(v)) return e;
  if (const ir::Expr scalar = script::expr_in(v)) return make<PrimValue>(scalar);
  if (const auto* text = v.get<std::string>()) return with_info(make<StringImm>(*text), at);
  if (const auto* t = v.get<DType>()) return with_info(make<DataTypeImm>(*t), at);
  if (const ir::TensorData data = script::node_in<ir::TensorDataNode>(v)) return constant(data);
  if (const auto* list = v.get<Value::List>()) {
    std::vector<Expr> items;
    for (const Value& item : *list) items.push_back(from_value(item, at));
    return with_info(make<Tuple>(std::move(items)), at);
  }
  fail(errors::wrong_type, at, "`" + source_text(at) + "` is no value of a graph",
       "a number is written R.const(1.0, \"float32\") or R.prim_value(1)");
}

Expr FunctionReader::to_leaf(Expr e, const Syntax& at) {
  if (!e || is_leaf(e) || e.is<Tuple>()) return e;
  const StructInfo known = e->struct_info;
  const std::string name = temporaries_++ == 0 ? "lv" : "lv_" + std::to_string(temporaries_ - 1);
  const Var v = ir::with_origin(relax_var(name, known, sequence_->dataflow), origin(at));
  sequence_->open.push_back(ir::with_origin<BindingNode>(make<VarBinding>(std::move(e), v), origin(at)));
  return v;
}

Expr FunctionReader::leaf(const Syntax& e) { return to_leaf(graph(e), e); }

Expr FunctionReader::graph(const Syntax& e) {
  switch (e.kind) {
    case ExprKind::tuple:
    case ExprKind::list: {
      std::vector<Expr> items;
      for (const Syntax* item : e.items) {
        items.push_back(leaf(*item));
        if (!items.back()) fail(errors::wrong_type, *item, "a tuple holds no None");
      }
      return with_info(make<Tuple>(std::move(items)), e);
    }
    case ExprKind::subscript: {
      const Expr whole = leaf(*e.items[0]);
      if (!whole) fail(errors::wrong_type, e, "None has no items");
      const int64_t at = integer(*e.items[1], "an index into a tuple");
      return with_info(make<TupleGetItem>(whole, at), e);
    }
    case ExprKind::call:
      return graph_call(e);
    case ExprKind::attribute:
      if (const auto function = module_function(e)) return global(*function);
      break;
    case ExprKind::name:
      // The bare name of a function of the module, as in 2022.
      if (!scope.find(e.text) && path_of(e).empty())
        if (const auto it = context.function_names.find(e.text); it != context.function_names.end())
          return global(it->second);
      break;
    case ExprKind::binary: {
      static const std::unordered_map<std::string_view, std::string_view> names = {
          {"+", "add"}, {"-", "subtract"}, {"*", "multiply"}, {"/", "divide"}, {"@", "matmul"}};
      const auto it = names.find(e.text);
      const Operator* op = it == names.end() ? nullptr : operators_.find(it->second);
      if (!op) break;
      const Expr a = leaf(*e.items[0]), b = leaf(*e.items[1]);
      Result<Expr> made = make_call(*op, {a, b}, {}, origin(e));
      return std::move(made).value_or_throw();
    }
    default:
      break;
  }
  return from_value(value(e), e);
}

Expr FunctionReader::global(const std::string& name) const {
  Expr e = global_var(name);
  const auto it = context.signatures.find(name);
  if (it != context.signatures.end())
    if (const auto known = script::node_in<FuncStructInfo>(it->second)) e = with_struct_info(std::move(e), known);
  return e;
}

Expr FunctionReader::graph_call(const Syntax& e) {
  const Syntax& callee = *e.items[0];
  const std::string path = path_of(callee);
  if (path.starts_with("relax.")) return relax_call(path.substr(path.find('.') + 1), e);
  if (path.starts_with("tir.") || path.starts_with("ir.")) return from_value(value(e), e);
  if (const auto function = module_function(callee)) return callee_call(global(*function), Arguments(*this, e));
  if (callee.kind == ExprKind::name) {
    if (const auto* entry = scope.find(callee.text))
      if (const Expr known = graph_in(entry->value)) return callee_call(known, Arguments(*this, e));
    if (const auto it = context.function_names.find(callee.text);
        it != context.function_names.end() && !scope.find(callee.text))
      return callee_call(global(it->second), Arguments(*this, e));
  }
  return from_value(value(e), e);
}

Expr FunctionReader::callee_call(Expr callee, const Arguments& arguments) {
  arguments.check(1000, {"sinfo_args"});
  std::vector<Expr> args;
  for (const Syntax* item : arguments.positional) args.push_back(leaf(*item));
  const Syntax* infos = arguments.named("sinfo_args");
  std::vector<StructInfo> info_args = infos ? info_list(*infos) : std::vector<StructInfo>{};
  const auto* function = callee->struct_info.as<FuncStructInfo>();
  if (function && function->params && function->params->size() != args.size())
    fail(errors::wrong_arguments, arguments.call,
         "the function takes " + std::to_string(function->params->size()) + " arguments, not " +
             std::to_string(args.size()));
  Expr call = make<Call>(std::move(callee), std::move(args), AttributesRef{}, std::move(info_args));
  // The result of another function speaks of its symbols, which mean nothing here: its rank stays.
  if (function && call.as<Call>()->struct_info_args.empty()) {
    StructInfo result = function->result;
    if (const auto* tensor = result.as<TensorStructInfo>(); tensor && tensor->shape && !ir::free_vars(result).empty())
      result = tensor_info_of_rank(tensor->ndim, tensor->dtype);
    else if (result && !ir::free_vars(result).empty())
      result = make<ObjectStructInfo>();
    if (result) call = with_struct_info(std::move(call), result);
  }
  return with_info(std::move(call), arguments.call);
}

Expr FunctionReader::relax_call(const std::string& name, const Syntax& e) {
  const Arguments arguments(*this, e);
  if (name == "const") return ir::with_origin(constant(constant_data(arguments)), origin(e));
  if (name == "shape" || name == "ShapeExpr")
    return ir::with_origin<ExprNode>(make<ShapeExpr>(expr_list(arguments.need(0, "values"), "R.shape")), origin(e));
  if (name == "prim_value")
    return ir::with_origin<ExprNode>(make<PrimValue>(expr(arguments.need(0, "value"))), origin(e));
  if (name == "str") return with_info(make<StringImm>(string(arguments.need(0, "value"), "R.str")), e);
  if (name == "dtype") return with_info(make<DataTypeImm>(dtype(arguments.need(0, "value"), "R.dtype")), e);
  if (name == "ExternFunc") return with_info(make<ExternFunc>(string(arguments.need(0, "name"), "R.ExternFunc")), e);
  if (name == "op") {
    const std::string known = string(arguments.need(0, "name"), "R.op");
    const Operator* op = operators_.find(known);
    if (!op) unknown_operator(known, e);
    return with_info(op_ref(*op), e);
  }
  if (name == "tuple") {
    std::vector<Expr> items;
    for (const Syntax* item : arguments.positional) items.push_back(leaf(*item));
    return with_info(make<Tuple>(std::move(items)), e);
  }
  if (name == "call_tir" || name == "call_dps_packed") return call_tir(arguments, call_tir_operator);
  if (name == "call_tir_inplace") return call_tir(arguments, call_tir_inplace_operator);
  if (name == "TupleGetItem") {
    const Expr whole = leaf(arguments.need(0, "tuple_value"));
    if (!whole) fail(errors::wrong_type, e, "None has no items");
    return with_info(make<TupleGetItem>(whole, integer(arguments.need(1, "index"), "an index into a tuple")), e);
  }
  if (name == "call_packed" || name == "call_pure_packed") {
    arguments.check(1000, {"sinfo_args"});
    std::vector<Expr> args;
    for (size_t i = 1; i < arguments.count(); ++i) args.push_back(leaf(*arguments.positional[i]));
    const Syntax* infos = arguments.named("sinfo_args");
    Expr callee = with_info(make<ExternFunc>(string(arguments.need(0, "func"), "R.call_packed")), e);
    return with_info(make<Call>(std::move(callee), std::move(args), AttributesRef{},
                                infos ? info_list(*infos) : std::vector<StructInfo>{}),
                     e);
  }
  if (name == "match_cast" || name == "emit_match_cast")
    fail(errors::misplaced, e, "R.match_cast is bound to a name of its own");
  if (name == "emit") return graph(arguments.need(0, "value"));
  if (const Operator* op = operators_.find(name)) return operator_call(*op, arguments);
  unknown_operator(name, *e.items[0]);
}

void FunctionReader::unknown_operator(const std::string& name, const Syntax& at) const {
  std::vector<std::string_view> known = {"call_dps_packed",
                                         "call_packed",
                                         "call_pure_packed",
                                         "call_tir",
                                         "call_tir_inplace",
                                         "const",
                                         "dtype",
                                         "emit",
                                         "emit_match_cast",
                                         "ExternFunc",
                                         "match_cast",
                                         "op",
                                         "prim_value",
                                         "shape",
                                         "ShapeExpr",
                                         "str",
                                         "tuple",
                                         "TupleGetItem"};
  for (const Operator* op : operators_.all()) known.push_back(op->name);
  fail(errors::unknown_function, at, "there is no operator '" + name + "'",
       "the nearest name is R." + std::string(support::nearest(name, known)));
}

// R.call_tir(cls.f, (x, y), out_sinfo=R.Tensor(…), tir_vars=R.shape([n])); in 2022 a shape and `dtype=` for out_sinfo.
// R.call_tir_inplace has its inplace_indices before out_sinfo.
Expr FunctionReader::call_tir(const Arguments& arguments, const Operator& op) {
  const bool in_place = &op == &call_tir_inplace_operator;
  const size_t shift = in_place ? 1 : 0;
  if (in_place)
    arguments.check(5, {"gvar", "args", "inplace_indices", "out_sinfo", "out_ty", "tir_vars", "dtype"});
  else
    arguments.check(4, {"gvar", "args", "out_sinfo", "out_ty", "tir_vars", "dtype"});
  const Syntax& at_callee = arguments.need(0, "gvar");
  Expr callee;
  if (at_callee.kind == ExprKind::string) {
    const auto it = context.function_names.find(at_callee.text);
    if (it == context.function_names.end())
      fail(errors::unknown_name, at_callee, fmt::format("the module has no function '{}'", at_callee.text));
    callee = global(it->second);
  } else {
    callee = graph(at_callee);
  }
  if (!callee || !callee.is<GlobalVar>())
    fail(errors::wrong_type, at_callee, std::string(op.name) + " calls a function of the module, as cls.f");
  const Syntax& at_args = arguments.need(1, "args");
  Expr args = leaf(at_args);
  if (!args) fail(errors::wrong_type, at_args, std::string(op.name) + " takes a tuple of tensors");
  if (!args.is<Tuple>()) args = with_info(make<Tuple>(std::vector<Expr>{args}), at_args);

  const Syntax* out = arguments.find(2 + shift, "out_sinfo");
  if (!out) out = arguments.named("out_ty");
  if (!out) fail(errors::wrong_arguments, arguments.call, "argument 'out_sinfo' is missing");
  std::vector<StructInfo> outputs;
  const bool several = (out->kind == ExprKind::list || out->kind == ExprKind::tuple) && !out->items.empty();
  if (is_info(*out) || (several && is_info(*out->items[0]))) {
    outputs = info_list(*out);
  } else {
    const Syntax* t = arguments.named("dtype");
    if (!t) fail(errors::wrong_arguments, *out, "the outputs are R.Tensor(…), or a shape with dtype=");
    const bool list_of_shapes = several && out->kind == ExprKind::list && out->items[0]->kind == ExprKind::tuple;
    const Syntax* const alone[] = {out};
    for (const Syntax* shape : list_of_shapes ? out->items : std::span(alone))
      outputs.push_back(tensor_info(dimensions(*shape), dtype(*t, "call_tir")));
  }
  std::vector<Expr> operands{callee, args};
  const Syntax* scalars = arguments.find(3 + shift, "tir_vars");
  if (scalars) operands.push_back(argument(*scalars, Input::shape));
  AttributesRef attributes;
  if (in_place)
    attributes =
        op.attributes->from_values({{"inplace_indices", value(arguments.need(2, "inplace_indices"))}}).value_or_throw();
  Result<Expr> made = make_call(op, std::move(operands), attributes, origin(arguments.call), std::move(outputs));
  return std::move(made).value_or_throw();
}

Expr FunctionReader::argument(const Syntax& e, Input::Sort sort) {
  if (sort == Input::shape && (e.kind == ExprKind::tuple || e.kind == ExprKind::list))
    return make<ShapeExpr>(expr_list(e, "a shape"));
  // One number is a shape of one dimension.
  if (sort == Input::shape && (e.kind == ExprKind::integer || e.kind == ExprKind::unary))
    return make<ShapeExpr>(std::vector{expr(e)});
  if (sort == Input::scalar && e.kind != ExprKind::call && e.kind != ExprKind::name &&
      !(e.kind == ExprKind::constant && e.text == "None"))
    return make<PrimValue>(expr(e));
  return leaf(e);
}

// What is given to an input of any number of them: one value, or all at once as a tuple, a list or a value that is a
// tuple; then true.
bool FunctionReader::variadic_items(const Syntax& e, Input::Sort sort, std::vector<Expr>& args) {
  if (e.kind == ExprKind::tuple || e.kind == ExprKind::list) {
    for (const Syntax* item : e.items) args.push_back(argument(*item, sort));
    return true;
  }
  Expr whole = argument(e, sort);
  const auto* items = whole ? whole->struct_info.as<TupleStructInfo>() : nullptr;
  if (!items) {
    args.push_back(std::move(whole));
    return false;
  }
  for (size_t i = 0; i < items->items.size(); ++i)
    args.push_back(to_leaf(with_info(make<TupleGetItem>(whole, static_cast<int64_t>(i)), e), e));
  return true;
}

// Arguments by position are the inputs, then the attributes in their order; the last input may be any number of them,
// one after the other or as one tuple, behind which attributes follow.
Expr FunctionReader::operator_call(const Operator& op, const Arguments& arguments) {
  if (Expr documented = documented_call(op, arguments)) return documented;
  std::vector<std::string> attribute_names;
  if (op.attributes) {
    const AttributesRef known = op.attributes->defaults();
    known->node_class().visit_fields(*known,
                                     [&](std::string_view name, const Value&) { attribute_names.emplace_back(name); });
  }
  std::vector<Expr> args;
  Value::Map given;
  size_t inputs = op.inputs.size();  // how many arguments by position are inputs
  const auto give = [&](const std::string& name, const Syntax& e) { given[name] = value(e); };
  for (size_t i = 0; i < arguments.count(); ++i) {
    const Syntax& e = *arguments.positional[i];
    if (i < inputs) {
      const Input& input = op.inputs[std::min(i, op.inputs.size() - 1)];
      if (input.presence != Input::variadic)
        args.push_back(argument(e, input.sort));
      else if (!variadic_items(e, input.sort, args))
        inputs = std::max(inputs, i + 2);  // others may follow
    } else if (i - inputs < attribute_names.size()) {
      give(attribute_names[i - inputs], e);
    } else {
      fail(errors::wrong_arguments, e, std::string(op.name) + " takes fewer arguments");
    }
  }
  std::vector<StructInfo> infos;
  const Syntax* named_items = nullptr;  // of the variadic input, which comes last
  for (const auto& [name, e] : arguments.keywords) {
    if (name == "sinfo_args") {
      infos = info_list(*e);
      continue;
    }
    size_t input = 0;
    while (input < op.inputs.size() && op.inputs[input].name != name) ++input;
    if (input == op.inputs.size()) {
      give(name, *e);
      continue;
    }
    if (op.inputs[input].presence == Input::variadic) {
      named_items = e;
      continue;
    }
    if (args.size() <= input) args.resize(input + 1);
    args[input] = argument(*e, op.inputs[input].sort);
  }
  if (named_items) {
    args.resize(std::max(args.size(), op.inputs.size() - 1));
    variadic_items(*named_items, op.inputs.back().sort, args);
  }
  for (size_t i = 0; i < op.inputs.size(); ++i)
    if (op.inputs[i].presence == Input::required && (i >= args.size() || !args[i]))
      fail(errors::wrong_arguments, arguments.call,
           "argument '" + std::string(op.inputs[i].name) + "' of " + std::string(op.name) + " is missing");
  return make_operator_call(op, std::move(args), given, arguments.call, std::move(infos));
}

Expr FunctionReader::make_operator_call(const Operator& op, std::vector<Expr> args, const Value::Map& given,
                                        const Syntax& at, std::vector<StructInfo> infos) {
  AttributesRef attributes;
  if (!given.empty()) {
    if (!op.attributes)
      fail(errors::wrong_arguments, at, std::string(op.name) + " has no attribute '" + given.begin()->first + "'");
    Result<AttributesRef> made = op.attributes->from_values(given);
    if (!made.ok()) {
      support::Diagnostics diagnostics = made.diagnostics();
      for (support::Diagnostic& d : diagnostics) d.place = range(at);
      throw support::DiagnosticError(std::move(diagnostics));
    }
    attributes = *made;
  }
  Result<Expr> made = make_call(op, std::move(args), std::move(attributes), origin(at), std::move(infos));
  return std::move(made).value_or_throw();
}

}  // namespace lathe::relax
