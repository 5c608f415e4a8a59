// Calls as TVM documents them, where an operator's own inputs and attributes stand in another order, have other names
// or mean less. What is printed is the operator's own; the arguments tell which of the two a text has.
#include "relax/infer.h"
#include "relax/script/read_function.h"

namespace lathe::relax {

using script::Arguments;
namespace errors = script::codes;

namespace {

bool is_left_out(const script::syntax::Expr* e) {
  return !e || (e->kind == script::syntax::ExprKind::constant && e->text == "None");
}

}  // namespace

const std::vector<FunctionReader::Signature>& FunctionReader::signatures() {
  static const std::vector<Signature> rows = {
      {"split", {{"x", true}, {"indices_or_sections", true}, {"axis"}}, &FunctionReader::documented_split},
      {"strided_slice",
       {{"x", true}, {"axes", true}, {"begin", true}, {"end", true}, {"strides"}, {"assume_inbound"}},
       &FunctionReader::documented_strided_slice},
      {"full", {{"shape", true}, {"fill_value", true}, {"dtype"}}, &FunctionReader::documented_full},
      {"take", {{"x", true}, {"indices", true}, {"axis"}, {"mode"}}, &FunctionReader::documented_take},
  };
  return rows;
}

// The arguments fit where none is too many, unknown or given twice, and none that is required is missing.
Expr FunctionReader::documented_call(const Operator& op, const Arguments& arguments) {
  for (const Signature& signature : signatures()) {
    if (signature.op != op.name) continue;
    Given given(signature.parameters.size());
    if (arguments.count() > given.size()) return {};
    for (size_t i = 0; i < arguments.count(); ++i) given[i] = arguments.positional[i];
    for (const auto& [name, e] : arguments.keywords) {
      size_t at = 0;
      while (at < given.size() && signature.parameters[at].name != name) ++at;
      if (at == given.size() || given[at]) return {};
      given[at] = e;
    }
    for (size_t i = 0; i < given.size(); ++i)
      if (signature.parameters[i].is_required && !given[i]) return {};
    return (this->*signature.read)(given, arguments.call);
  }
  return {};
}

const Operator& FunctionReader::known_operator(const std::string& name, const Syntax& at) const {
  const Operator* op = operators_.find(name);
  if (!op) unknown_operator(name, at);
  return *op;
}

// An integer: so many sections; a list: the positions to cut at.
Expr FunctionReader::documented_split(const Given& given, const Syntax& call) {
  const Value how = value(*given[1]);
  const bool is_count = how.get<int64_t>() != nullptr;
  if (!is_count && !how.get<Value::List>())
    fail(errors::wrong_type, *given[1],
         "`" + source_text(*given[1]) + "` is neither a number of sections nor a list of positions");
  Value::Map attributes{{is_count ? "sections" : "positions", how}};
  if (!is_left_out(given[2])) attributes["axis"] = value(*given[2]);
  return make_operator_call(known_operator(is_count ? "split" : "split_at", call), {leaf(*given[0])}, attributes, call);
}

// Positions outside are clamped, so that it changes nothing to know that there are none.
Expr FunctionReader::documented_strided_slice(const Given& given, const Syntax& call) {
  const Value axes = value(*given[1]);
  if (!axes.get<Value::List>() && !axes.get<int64_t>()) return {};  // R.shape([…]): begins come first
  Value::Map attributes{{"axes", axes}};
  if (!is_left_out(given[4])) attributes["strides"] = value(*given[4]);
  if (given[5]) boolean(*given[5], "assume_inbound");
  std::vector<Expr> args{leaf(*given[0]), argument(*given[2], Input::shape), argument(*given[3], Input::shape)};
  return make_operator_call(known_operator("strided_slice", call), std::move(args), attributes, call);
}

// A number is of the dtype given, or int64, or float32; a tensor is converted.
Expr FunctionReader::documented_full(const Given& given, const Syntax& call) {
  std::optional<DType> wanted;
  if (!is_left_out(given[2])) {
    wanted = dtype(*given[2], "the dtype of full");
    if (!wanted->is_scalar() || !(wanted->is_floating() || wanted->is_integer() || wanted->is_bool()))
      fail(errors::wrong_type, *given[2], "'" + wanted->str() + "' is no dtype of numbers or bool");
  }
  const Expr shape = argument(*given[0], Input::shape);
  Expr fill = argument(*given[1], Input::scalar);
  if (const auto* number = fill ? fill.as<PrimValue>() : nullptr) {
    const ir::Expr& own = number->value;
    if (ir::as_float(own) || ir::as_int(own)) {
      const DType dtype = wanted.value_or(own->dtype);
      const ir::Expr converted = ir::cast(dtype, own);
      const auto real = dtype.is_floating() ? ir::as_float(converted) : std::nullopt;
      const auto whole = ir::as_int(converted);
      if (!real && !whole)
        fail(errors::wrong_type, *given[1], "`" + source_text(*given[1]) + "` is no number of " + dtype.str());
      const uint64_t bits = real ? ir::encode_float(dtype, *real) : static_cast<uint64_t>(*whole);
      const std::string bytes(reinterpret_cast<const char*>(&bits), static_cast<size_t>(dtype.element_bytes()));
      fill = constant(ir::tensor_data(dtype, {}, bytes));
    } else {
      const Expr symbols = make<ShapeExpr>(std::vector<ir::Expr>{own});
      fill = to_leaf(make_operator_call(known_operator("shape_to_tensor", call), {symbols}, {}, *given[1]), *given[1]);
    }
  }
  const TensorStructInfo* info = fill ? as_tensor(fill) : nullptr;
  if (!info) fail(errors::wrong_type, *given[1], "`" + source_text(*given[1]) + "` is no number to fill with");
  if (wanted && *wanted != info->dtype) {
    const Value::Map attributes{{"dtype", Value(wanted->str())}};
    fill = to_leaf(make_operator_call(known_operator("astype", call), {fill}, attributes, *given[1]), *given[1]);
  }
  return make_operator_call(known_operator("full", call), {shape, fill}, {}, call);
}

// Without an axis the first; None is for vectors. Of an index outside "fast" says nothing.
Expr FunctionReader::documented_take(const Given& given, const Syntax& call) {
  const Expr x = leaf(*given[0]), indices = leaf(*given[1]);
  Value::Map attributes;
  if (!is_left_out(given[2])) attributes["axis"] = value(*given[2]);
  const TensorStructInfo* info = x ? as_tensor(x) : nullptr;
  if (given[2] && is_left_out(given[2]) && info && info->ndim >= 0 && info->ndim != 1)
    fail(errors::wrong_arguments, call,
         "take without an axis is from a vector, but x is " + text_of(*info) + "; axis=0 takes along the first");
  const std::string mode = given[3] ? string(*given[3], "the mode of take") : "fast";
  if (mode != "fast") attributes["mode"] = Value(mode);
  return make_operator_call(known_operator(mode == "fast" ? "take" : "take_by_mode", call), {x, indices}, attributes,
                            call);
}

}  // namespace lathe::relax
