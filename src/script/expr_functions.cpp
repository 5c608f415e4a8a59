// Calls of T that are no scalar functions of their arguments: those that name types, memory or functions, bind
// variables, or stand for several nodes.
#include "script/expr_printer.h"
#include "script/expr_reader.h"

namespace lathe::script {

using namespace ir;  // NOLINT: this file is about ir's kinds
using syntax::ExprKind;

std::optional<Value> ExprReader::function_call(std::string_view name, const Arguments& arguments) {
  using Reads = Value (ExprReader::*)(const Arguments&);
  static const std::unordered_map<std::string_view, Reads> readers = {
      {"Call", &ExprReader::call_node},
      {"Let", &ExprReader::let},
      {"Reduce", &ExprReader::reduce},
      {"call_intrin", &ExprReader::named_intrinsic},
      {"comm_reducer", &ExprReader::reducer},
      {"get_active_lane_mask", &ExprReader::lane_mask},
      {"handle_add_byte_offset", &ExprReader::address_beyond},
      {"ignore_loop_partition", &ExprReader::predicate_alone},
      {"index_map", &ExprReader::index_map},
      {"isnullptr", &ExprReader::is_null},
      {"iter_var", &ExprReader::iter_var},
      {"let", &ExprReader::let},
      {"q_multiply_shift", &ExprReader::fixed_point_product},
      {"reduce_axis", &ExprReader::iter_var},
      {"target", &ExprReader::target},
      {"tvm_access_ptr", &ExprReader::access_pointer_of_memory},
      {"vectorcombine", &ExprReader::vector_part},
      {"vectorhigh", &ExprReader::vector_part},
      {"vectorlow", &ExprReader::vector_part},
  };
  const auto it = readers.find(name);
  if (it == readers.end()) return std::nullopt;
  return (this->*it->second)(arguments);
}

// T.get_active_lane_mask("boolx4", base, limit): which of the lanes base, base + 1, … lie below the limit.
Value ExprReader::lane_mask(const Arguments& arguments) {
  arguments.check(3, {"dtype", "base", "limit"});
  const Syntax& at = arguments.need(0, "dtype");
  const DType mask = dtype(at, "T.get_active_lane_mask");
  if (!mask.is_vector() || !(mask.is_bool() || mask.element() == DType::uint(1)))
    fail(codes::dtype_mismatch, at, "a mask is a vector of bool, not " + mask.str());
  auto [base, limit] = unify(arguments.need(1, "base"), arguments.need(2, "limit"));
  if (!base->dtype.is_integer() || base->dtype.is_vector())
    fail(codes::dtype_mismatch, arguments.need(1, "base"), "lanes are counted in integers, not " + base->dtype.str());
  const Expr lanes = make<Ramp>(base, constant(base->dtype, int64_t{1}), int64_t{mask.lanes});
  return with_origin<ExprNode>(make<LT>(lanes, Expr(make<Broadcast>(limit, int64_t{mask.lanes}))),
                               origin(arguments.call));
}

// T.ignore_loop_partition(predicate): loops are split where that pays, whatever is asked.
Value ExprReader::predicate_alone(const Arguments& arguments) {
  arguments.check(1, {"predicate"});
  return expr_of(arguments.need(0, "predicate"), DType::boolean(), "a predicate");
}

// T.isnullptr(a): memory of a buffer is there.
Value ExprReader::is_null(const Arguments& arguments) {
  arguments.check(1, {"x"});
  const Syntax& at = arguments.need(0, "x");
  if (memory_of(at)) return ir::boolean(false);
  const Expr address = expr(at);
  if (!address->dtype.is_handle())
    fail(codes::dtype_mismatch, at, "an address is a handle, not " + address->dtype.str());
  const DType word = DType::uint(64);
  return with_origin<ExprNode>(make<EQ>(Expr(make<Cast>(word, address)), constant(word, int64_t{0})),
                               origin(arguments.call));
}

// The buffer whose memory `A.data` names.
Buffer ExprReader::memory_of(const Syntax& e) {
  const bool named = e.kind == ExprKind::attribute && e.text == "data" && path_of(e).empty();
  return named ? node_in<BufferNode>(value(*e.items[0])) : Buffer();
}

// T.handle_add_byte_offset(A.data, bytes): the address of a later element of a buffer of one dimension.
Value ExprReader::address_beyond(const Arguments& arguments) {
  arguments.check(2, {"handle", "offset"});
  const Syntax &memory = arguments.need(0, "handle"), &at = arguments.need(1, "offset");
  const Buffer b = memory_of(memory);
  if (!b) fail(codes::wrong_type, memory, "the memory of T.handle_add_byte_offset is a buffer's, as A.data");
  const Expr bytes = expr(at, DType::int64());
  const int64_t size = b->dtype.storage_bytes(1);
  const auto known = as_int(bytes);
  const auto* product = bytes.as<Mul>();
  const auto factor = product ? as_int(product->b) : std::nullopt;
  const bool whole = known ? *known % size == 0 : factor && *factor % size == 0;
  if (!whole || b->dtype.storage_bits() % 8 != 0)
    fail(codes::wrong_arguments, at,
         "the bytes are a multiple of those of an element, " + std::to_string(size) + ", as in i * " +
             std::to_string(size));
  const Expr element =
      known ? constant(bytes->dtype, *known / size) : mul(product->a, constant(bytes->dtype, *factor / size));
  return address_of_element(b, element, at, arguments);
}

// T.target("llvm"), T.target({"kind": "llvm"}): as an attribute of a function says what it is compiled for.
Value ExprReader::target(const Arguments& arguments) {
  arguments.check(2, {"target_config", "host"});
  const Syntax& at = arguments.need(0, "target_config");
  Value config = value(at);
  if (!config.get<std::string>() && !config.get<Value::Map>())
    fail(codes::wrong_type, at, "a target is its text, or a dict of its parts");
  return config;
}

// T.q_multiply_shift(x, y, q, s): x * y * 2^-(q + s) of int32 numbers with q bits behind the point, halves upward.
Value ExprReader::fixed_point_product(const Arguments& arguments) {
  arguments.check(4, {"x", "y", "q", "s"});
  const DType single = DType::int32();
  const Expr x = expr_of(arguments.need(0, "x"), single, "x"), y = expr_of(arguments.need(1, "y"), single, "y");
  const int64_t q = integer(arguments.need(2, "q"), "q"), s = integer(arguments.need(3, "s"), "s");
  const int64_t right = q + std::max<int64_t>(s, 0), left = std::max<int64_t>(-s, 0);
  if (q < 0 || right < 1 || right > 62 || left > 31)
    fail(codes::wrong_arguments, arguments.call, "the bits behind the point and the shift lie within the numbers");
  const auto wide = [](const Expr& e) { return ir::cast(DType::int64(), e); };
  const auto shift = [](const Intrinsic& op, Expr e, int64_t by) {
    return by == 0 ? e : ir::call(DType::int64(), op, {e, ir::int64(by)});
  };
  const Expr product = shift(intrinsic::shift_left, wide(x), left) * wide(y);
  const Expr rounded = shift(intrinsic::shift_right, product + ir::int64(int64_t{1} << (right - 1)), right);
  return with_origin(ir::cast(single, rounded), origin(arguments.call));
}

// T.call_intrin(dtype, "tir.exp", x), T.Call(dtype, "tir.exp", [x]): a scalar function by its name.
Value ExprReader::named_intrinsic(const Arguments& arguments) {
  const DType t = dtype(arguments.need(0, "dtype"), "T.call_intrin");
  const Syntax& at = arguments.need(1, "func_name");
  std::vector<Expr> args;
  for (size_t i = 2; i < arguments.count(); ++i) args.push_back(expr(*arguments.positional[i], DType::int32()));
  return intrinsic_named(t, at, std::move(args), arguments);
}
Value ExprReader::call_node(const Arguments& arguments) {
  arguments.check(3, {"dtype", "op", "args"});
  const DType t = dtype(arguments.need(0, "dtype"), "T.Call");
  return intrinsic_named(t, arguments.need(1, "op"), expr_list(arguments.need(2, "args"), "T.Call"), arguments);
}
Value ExprReader::intrinsic_named(DType t, const Syntax& at, std::vector<Expr> args, const Arguments& arguments) {
  std::string name = string(at, "the name of a scalar function");
  if (name.starts_with("tir.")) name = name.substr(4);
  const Intrinsic* op = find_intrinsic(name);
  if (!op || op->arity < 0 || op->effect != Effect::pure)
    fail(codes::unknown_function, at, "there is no scalar function '" + name + "'");
  if (static_cast<size_t>(op->arity) != args.size())
    fail(codes::wrong_arguments, arguments.call,
         "T." + name + " takes " + std::to_string(op->arity) + " arguments, not " + std::to_string(args.size()));
  return with_origin(ir::call(t, *op, std::move(args)), origin(arguments.call));
}

// T.vectorlow(dtype, v), T.vectorhigh(dtype, v): half of the lanes; T.vectorcombine(dtype, a, b): those of both.
Value ExprReader::vector_part(const Arguments& arguments) {
  const std::string path = path_of(*arguments.call.items[0]), name = path.substr(path.rfind('.') + 1);
  const bool combines = name == "vectorcombine";
  arguments.check(combines ? 3 : 2, {"dtype"});
  const DType wanted = dtype(arguments.need(0, "dtype"), "T." + name);
  std::vector<Expr> vectors = {expr(arguments.need(1, "vec"))};
  if (combines) vectors.push_back(expr(arguments.need(2, "vec2")));
  const int lanes = vectors[0]->dtype.lanes, total = combines ? lanes * 2 : lanes / 2;
  if (combines && vectors[1]->dtype != vectors[0]->dtype)
    fail(codes::dtype_mismatch, arguments.call, "the parts of a vector have one type");
  if ((!combines && lanes % 2 != 0) || wanted != vectors[0]->dtype.element().with_lanes(total))
    fail(codes::dtype_mismatch, arguments.call,
         "T." + name + " of " + vectors[0]->dtype.str() + " is not " + wanted.str());
  std::vector<int64_t> chosen(static_cast<size_t>(total));
  std::iota(chosen.begin(), chosen.end(), name == "vectorhigh" ? total : 0);
  return with_origin<ExprNode>(make<Shuffle>(std::move(vectors), std::move(chosen)), origin(arguments.call));
}

// ---- binders inside expressions ----

// T.Let(body, where={x: value}).
Value ExprReader::let(const Arguments& arguments) {
  arguments.check(3, {"where", "is_size_var"});
  if (arguments.count() == 3) {  // T.let(x, value, body)
    const Syntax& name = *arguments.positional[0];
    if (name.kind != ExprKind::name) fail(codes::wrong_arguments, name, "T.let binds a name");
    const Expr bound = expr(*arguments.positional[1], DType::int32());
    const Var v = make<VarNode>(name.text, bound->dtype);
    scope.push();
    scope.define(v->name, v, name.begin, name.end);
    const Expr body = expr(*arguments.positional[2], DType::int32());
    scope.pop();
    return with_origin<ExprNode>(make<Let>(v, bound, body), origin(arguments.call));
  }
  const Syntax& where = arguments.need(1, "where");
  if (where.kind != ExprKind::dict || where.items.size() != 2 || !where.items[0] ||
      where.items[0]->kind != ExprKind::name)
    fail(codes::wrong_arguments, where, "T.Let binds one name: where={x: value}");
  const Expr bound = expr(*where.items[1], DType::int32());
  const Syntax* size = arguments.named("is_size_var");
  const Var v = make<VarNode>(where.items[0]->text, bound->dtype, size && boolean(*size, "is_size_var"));
  scope.push();
  scope.define(v->name, v, where.items[0]->begin, where.items[0]->end);
  const Expr body = expr(arguments.need(0, "expr"), DType::int32());
  scope.pop();
  return with_origin<ExprNode>(make<Let>(v, bound, body), origin(arguments.call));
}

// T.comm_reducer(lambda x, y: (…,), [identity, …]).
Value ExprReader::reducer(const Arguments& arguments) {
  arguments.check(2, {"combiner", "identity"});
  const Syntax& lambda = arguments.need(0, "combiner");
  const std::vector<Expr> identity = expr_list(arguments.need(1, "identity"), "T.comm_reducer");
  if (lambda.kind != ExprKind::lambda || lambda.labels.size() != 2 * identity.size())
    fail(codes::wrong_arguments, lambda,
         "the combiner is a lambda of " + std::to_string(2 * identity.size()) + " parameters: two for each identity");
  std::vector<Var> sides[2];
  scope.push();
  for (size_t i = 0; i < lambda.labels.size(); ++i) {
    const Var v = make<VarNode>(std::string(lambda.labels[i]), identity[i % identity.size()]->dtype);
    sides[i / identity.size()].push_back(v);
    scope.define(v->name, v, lambda.begin, lambda.end);
  }
  std::vector<Expr> result = expr_list(*lambda.items[0], "the combiner");
  scope.pop();
  if (result.size() != identity.size())
    fail(codes::wrong_arguments, *lambda.items[0],
         std::to_string(result.size()) + " results, but " + std::to_string(identity.size()) + " identities");
  return make<CommReducerNode>(sides[0], sides[1], std::move(result), identity);
}

// T.index_map(lambda i, j: (j, i // 4, i % 4)): the map's text, which R.layout_transform reads.
Value ExprReader::index_map(const Arguments& arguments) {
  arguments.check(1, {"mapping", "inverse_index_map", "index_dtype"});
  const Syntax& lambda = arguments.need(0, "mapping");
  if (lambda.kind != ExprKind::lambda)
    fail(codes::wrong_arguments, lambda, "an index map is a lambda of indices",
         "what Python makes is captured: m = T.index_map(f) before the function, and m in it");
  for (const char* ignored : {"inverse_index_map", "index_dtype"})
    if (const Syntax* given = arguments.named(ignored);
        given && given->text != "None" && given->kind != ExprKind::string)
      fail(codes::wrong_arguments, *given, "the inverse of a map is found, not given");
  std::string text = "lambda ", results;
  for (size_t i = 0; i < lambda.labels.size(); ++i) text += (i ? ", " : "") + std::string(lambda.labels[i]);
  const Syntax& body = *lambda.items[0];
  const Syntax* const alone[] = {&body};
  const bool several = body.kind == ExprKind::tuple || body.kind == ExprKind::list;
  for (const Syntax* result : several ? body.items : std::span(alone))
    results += (results.empty() ? "" : ", ") + std::string(source_text(*result));
  return Value(text + ": (" + results + (several ? ")" : ",)"));
}

// T.reduce_axis("k", (0, n), "reduce"[, tag]), and T.iter_var(v, T.Range(…), "thread_index", tag).
Value ExprReader::iter_var(const Arguments& arguments) {
  arguments.check(4, {"var", "dom", "type", "thread_tag", "dtype"});
  const Syntax &first = arguments.need(0, "var"), &dom = arguments.need(1, "dom");
  const std::string kind = string(arguments.need(2, "type"), "an axis");
  IterType type = IterType::spatial;
  bool found = false;
  for (const IterType t :
       {IterType::spatial, IterType::reduce, IterType::scan, IterType::opaque, IterType::thread_index})
    if (iter_type_name(t) == kind) type = t, found = true;
  if (!found) fail(codes::wrong_arguments, arguments.need(2, "type"), "there is no axis of type '" + kind + "'");
  const Syntax* tag = arguments.find(3, "thread_tag");
  Range range;
  if (dom.kind == ExprKind::call && path_of(*dom.items[0]) == "tir.Range") {
    const Arguments bounds(*this, dom);
    range = {expr(bounds.need(0, "min")), expr(bounds.need(1, "extent"))};
  } else if (!(dom.kind == ExprKind::constant && dom.text == "None")) {
    range = domain(dom, DType::int64());
  }
  const Value v = value(first);
  Var var = node_in<VarNode>(v);
  if (const auto* text = v.get<std::string>()) {
    const Syntax* t = arguments.named("dtype");
    var = make<VarNode>(*text, t ? dtype(*t, "dtype") : DType::int64());
    scope.define(*text, var, first.begin, first.end);
  }
  if (!var) fail(codes::wrong_type, first, "an axis takes a variable or its name");
  return make<IterVarNode>(std::move(range), var, type, tag ? string(*tag, "a thread tag") : std::string());
}

Value ExprReader::reduce(const Arguments& arguments) {
  arguments.check(5, {"combiner", "source", "axis", "condition", "value_index", "init"});
  const Value combiner = value(arguments.need(0, "combiner"));
  const CommReducer known = node_in<CommReducerNode>(combiner);
  if (!known) fail(codes::wrong_type, arguments.need(0, "combiner"), "T.Reduce takes a T.comm_reducer");
  scope.push();  // the axes name variables of the sources
  const Value axes = value(arguments.need(2, "axis"));
  std::vector<IterVar> axis;
  if (const auto* list = axes.get<Value::List>())
    for (const Value& v : *list)
      if (const IterVar one = node_in<IterVarNode>(v)) axis.push_back(one);
  std::vector<Expr> sources = expr_list(arguments.need(1, "source"), "T.Reduce");
  const Syntax* condition = arguments.find(3, "condition");
  const Expr when = condition ? expr(*condition) : Expr();
  scope.pop();
  const Syntax *index = arguments.find(4, "value_index"), *init = arguments.named("init");
  const int64_t at = index ? integer(*index, "value_index") : 0;
  if (at < 0 || at >= static_cast<int64_t>(sources.size()))
    fail(codes::wrong_arguments, arguments.call,
         "result " + std::to_string(at) + " of " + std::to_string(sources.size()));
  return with_origin<ExprNode>(make<Reduce>(known, std::move(axis), std::move(sources), when, at,
                                            init ? expr_list(*init, "init") : std::vector<Expr>{}),
                               origin(arguments.call));
}

}  // namespace lathe::script
