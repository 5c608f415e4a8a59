// Names with dots, indices and calls in expressions: the vocabulary of `T` as far as it makes scalar expressions.
#include <charconv>

#include "script/constant_text.h"
#include "script/expr_printer.h"
#include "script/expr_reader.h"
#include "script/intrinsic_types.h"
#include "script/vocabulary.h"

namespace lathe::script {

using namespace ir;  // NOLINT: this file is about ir's kinds
using syntax::ExprKind;

// ---- arguments ----

Arguments::Arguments(const ExprReader& reader, const syntax::Expr& call) : reader(reader), call(call) {
  for (size_t i = 0; i < call.labels.size(); ++i) {
    const syntax::Expr* argument = call.items[i + 1];
    if (call.labels[i] == "**" || argument->kind == ExprKind::starred)
      reader.fail(codes::wrong_arguments, *argument, "arguments are written out here, one by one");
    if (call.labels[i].empty()) {
      if (!keywords.empty()) reader.fail(codes::syntax, *argument, "an argument by position follows one by name");
      positional = call.items.subspan(1, i + 1);
    } else {
      if (named(call.labels[i]))
        reader.fail(codes::wrong_arguments, *argument, "'" + std::string(call.labels[i]) + "' is given twice");
      keywords.emplace_back(call.labels[i], argument);
    }
  }
}

const syntax::Expr* Arguments::named(std::string_view name) const {
  for (const auto& [key, argument] : keywords)
    if (key == name) return argument;
  return nullptr;
}
const syntax::Expr* Arguments::find(size_t position, std::string_view name) const {
  const syntax::Expr* by_name = named(name);
  if (position >= positional.size()) return by_name;
  if (by_name) reader.fail(codes::wrong_arguments, *by_name, "'" + std::string(name) + "' is given twice");
  return positional[position];
}
const syntax::Expr& Arguments::need(size_t position, std::string_view name) const {
  const syntax::Expr* found = find(position, name);
  if (!found) reader.fail(codes::wrong_arguments, call, "argument '" + std::string(name) + "' is missing");
  return *found;
}
void Arguments::check(size_t most, std::initializer_list<std::string_view> names) const {
  if (positional.size() > most)
    reader.fail(codes::wrong_arguments, *positional[most],
                "at most " + std::to_string(most) + " arguments are taken by position, not " +
                    std::to_string(positional.size()));
  for (const auto& [key, argument] : keywords)
    if (std::find(names.begin(), names.end(), key) == names.end())
      reader.fail(codes::wrong_arguments, *argument, "there is no argument '" + key + "' here");
}

// ---- names with dots ----

std::optional<Value> ExprReader::other_path(const std::string&, const Syntax&) { return std::nullopt; }
std::optional<Value> ExprReader::other_call(const Syntax&) { return std::nullopt; }

namespace {

std::optional<DType> type_named(std::string_view name) {
  if (name == "boolean") return DType::boolean();
  return DType::parse(name);
}

std::string_view after_dot(std::string_view path) { return path.substr(path.rfind('.') + 1); }

Value exprs(const std::vector<Expr>& list) {
  Value::List values;
  for (const Expr& e : list) values.emplace_back(e);
  return values;
}

}  // namespace

// Whether only Python knows what it is: an object around the script that programs have no value for, or a part of one.
bool ExprReader::is_host_object(const Syntax& e) const {
  if (e.kind == ExprKind::attribute || e.kind == ExprKind::subscript)
    return path_of(e).empty() && is_host_object(*e.items[0]);
  if (e.kind != ExprKind::name || !context.options.host || scope.find(e.text) || !path_of(e).empty()) return false;
  const auto known = context.options.host->captured(e.text);
  return known && known->empty();
}

Value ExprReader::attribute(const Syntax& e) {
  if (const std::string path = path_of(e); !path.empty()) {
    if (path.starts_with("tir."))
      if (const auto known = type_named(path.substr(4))) return *known;
    if (auto known = other_path(path, e)) return *std::move(known);
    if (!path.starts_with("tir.") && !path.starts_with("relax.") && !path.starts_with("ir.")) return host(e);
    fail(codes::unknown_function, e, "there is no '" + source_text(e) + "'", nearest_help(path));
  }
  if (const auto function = module_function(e)) return make<GlobalVar>(*function);
  if (is_host_object(*e.items[0])) return host(e);
  const Value object = value(*e.items[0]);
  if (const Buffer b = node_in<BufferNode>(object)) {
    if (e.text == "data") return b->data;
    if (e.text == "shape") return exprs(b->shape);
    if (e.text == "strides") return exprs(b->strides);
    if (e.text == "dtype") return b->dtype;
    if (e.text == "elem_offset") return b->elem_offset ? b->elem_offset : ir::int64(0);
    if (e.text == "name") return b->name;
    fail(codes::unknown_function, e, fmt::format("a buffer has no '{}'", e.text));
  }
  if (const Expr x = expr_in(object)) {
    if (e.text == "dtype") return x->dtype;
    fail(codes::unknown_function, e, fmt::format("a scalar expression has no '{}'", e.text));
  }
  return host(e);
}

// ---- indices ----

namespace {

std::vector<const syntax::Expr*> index_items(const syntax::Expr& index) {
  if (index.kind == ExprKind::tuple) return {index.items.begin(), index.items.end()};
  return {&index};
}

}  // namespace

// [begin, end) as a range, written so that what was printed comes back: "m:m + n" has the extent n.
Range ExprReader::between(Expr begin, Expr end) {
  const auto *low = begin.as<IntImm>(), *high = end.as<IntImm>();
  if (low && high) return {begin, constant(end->dtype, wrap_integer(high->value - low->value, end->dtype))};
  if (low && low->value == 0) return {begin, end};
  if (const auto* sum = end.as<Add>(); sum && structural_equal(sum->a, begin)) return {begin, sum->b};
  Expr extent = make<Sub>(end, begin);
  return {begin, std::move(extent)};
}

Range ExprReader::domain(const Syntax& e, DType literal) {
  if (e.kind == ExprKind::tuple && e.items.size() == 2) {
    const Value low = value(*e.items[0]), high = value(*e.items[1]);
    if (!expr_in(low) && !expr_in(high))
      return between(to_expr(low, *e.items[0], literal), to_expr(high, *e.items[1], literal));
    auto [begin, end] = unify(low, *e.items[0], high, *e.items[1]);
    return between(begin, end);
  }
  const Value v = value(e);
  Expr extent = to_expr(v, e, literal);
  if (!extent->dtype.is_integer() || extent->dtype.is_vector())
    fail(codes::dtype_mismatch, e, "an extent is an integer, not " + extent->dtype.str());
  Expr zero = constant(extent->dtype, int64_t{0});
  return {std::move(zero), std::move(extent)};
}

std::pair<Buffer, std::vector<Range>> ExprReader::region(const Syntax& e) {
  std::vector<Range> ranges;
  if (e.kind != ExprKind::subscript) {
    const Buffer whole = buffer(e, "a region");
    for (const Expr& extent : whole->shape) ranges.push_back({constant(extent->dtype, int64_t{0}), extent});
    return {whole, std::move(ranges)};
  }
  const Buffer b = buffer(*e.items[0], "a region");
  const auto items = index_items(*e.items[1]);
  if (items.size() != b->shape.size())
    fail(codes::wrong_arguments, e,
         "buffer '" + b->name + "' has " + std::to_string(b->shape.size()) + " dimensions, not " +
             std::to_string(items.size()));
  for (size_t i = 0; i < items.size(); ++i) {
    const Syntax& item = *items[i];
    if (item.kind != ExprKind::slice) {
      Expr at = expr(item);
      Expr one = constant(at->dtype, int64_t{1});
      ranges.push_back({std::move(at), std::move(one)});
      continue;
    }
    if (item.items[2]) fail(codes::wrong_arguments, *item.items[2], "a region has no step");
    const Value low = item.items[0] ? value(*item.items[0]) : Value(0);
    const Syntax& at_low = item.items[0] ? *item.items[0] : item;
    const Value high = item.items[1] ? value(*item.items[1]) : Value(b->shape[i]);
    const Syntax& at_high = item.items[1] ? *item.items[1] : item;
    auto [begin, end] = unify(low, at_low, high, at_high);
    ranges.push_back(between(begin, end));
  }
  return {b, std::move(ranges)};
}

std::vector<Expr> ExprReader::load_indices(const Buffer& b, const Syntax& index) {
  const auto items = index_items(index);
  if (items.size() != b->shape.size())
    fail(codes::wrong_arguments, index,
         "buffer '" + b->name + "' has " + std::to_string(b->shape.size()) + " dimensions, not " +
             std::to_string(items.size()));
  std::vector<Expr> indices;
  for (const Syntax* item : items) {
    if (item->kind != ExprKind::slice) {
      indices.push_back(expr(*item));
      if (!indices.back()->dtype.is_integer())
        fail(codes::dtype_mismatch, *item, "an index is an integer, not " + indices.back()->dtype.str());
      continue;
    }
    // A slice of constant length is a vector.
    if (!item->items[0] || !item->items[1]) fail(codes::wrong_arguments, *item, "a slice in an index has both bounds");
    auto [begin, end] = unify(*item->items[0], *item->items[1]);
    const Range bounds = between(begin, end);
    const auto length = as_int(bounds.extent);
    const int64_t step = item->items[2] ? integer(*item->items[2], "a step") : 1;
    if (!length || step == 0 || *length % step != 0 || *length / step < 1 || *length / step > 65535)
      fail(codes::wrong_arguments, *item, "a slice in an index has a constant length");
    indices.push_back(make<Ramp>(begin, constant(begin->dtype, step), *length / step));
  }
  return indices;
}

Value ExprReader::subscript(const Syntax& e) {
  const std::string path = path_of(*e.items[0]);
  if (!path.empty())
    if (auto known = other_call(e)) return *std::move(known);
  const Value object = value(*e.items[0]);
  if (const Buffer b = node_in<BufferNode>(object))
    return with_origin<ExprNode>(make<BufferLoad>(b, load_indices(b, *e.items[1])), origin(e));
  if (const auto* list = object.get<Value::List>(); list && e.items[1]->kind != ExprKind::slice) {
    const int64_t at = integer(*e.items[1], "an index into a tuple");
    const auto size = static_cast<int64_t>(list->size());
    if (at < -size || at >= size)
      fail(codes::wrong_arguments, *e.items[1], "item " + std::to_string(at) + " of " + std::to_string(size));
    return (*list)[static_cast<size_t>(at < 0 ? at + size : at)];
  }
  if (const auto* map = object.get<Value::Map>()) {
    const auto it = map->find(string(*e.items[1], "a key"));
    if (it != map->end()) return it->second;
  }
  if (expr_in(object)) fail(codes::wrong_type, *e.items[0], "a scalar expression has no items");
  return host(e);
}

// ---- calls ----

Value ExprReader::call(const Syntax& e) {
  const Syntax& callee = *e.items[0];
  if (const std::string path = path_of(callee); !path.empty()) {
    if (auto known = other_call(e)) return *std::move(known);
    const std::string_view name = after_dot(path);
    if (path.starts_with("tir.") && path.find('.', 4) == std::string::npos) return tir_call(std::string(name), e);
    if (path == "ir.dtype" || path == "relax.dtype") return dtype(Arguments(*this, e).need(0, "dtype"), "dtype");
    if (path == "ir.GlobalVar") return make<GlobalVar>(string(Arguments(*this, e).need(0, "name"), "GlobalVar"));
    if (!path.starts_with("tir") && !path.starts_with("relax") && !path.starts_with("ir.")) return host(e);
    fail(codes::unknown_function, callee, "there is no '" + source_text(callee) + "'", nearest_help(path));
  }
  if (const auto function = module_function(callee)) {
    const Arguments arguments(*this, e);
    arguments.check(1000, {"dtype"});
    std::vector<Expr> args{make<GlobalVar>(*function)};
    for (const Syntax* argument : arguments.positional) args.push_back(passed(*argument));
    const Syntax* result = arguments.named("dtype");
    return with_origin(ir::call(result ? dtype(*result, "dtype") : DType::void_(), intrinsic::call_function, args),
                       origin(e));
  }
  if (callee.kind == ExprKind::name && callee.text == "float" && !scope.find("float")) {
    const Arguments arguments(*this, e);
    return float_imm_value(arguments.need(0, "value"));
  }
  if (callee.kind == ExprKind::attribute) {
    const Value object = value(*callee.items[0]);
    const Arguments arguments(*this, e);
    if (const Buffer b = node_in<BufferNode>(object)) return buffer_method(b, callee.text, arguments);
    if (const Expr x = expr_in(object); x && callee.text == "astype")
      return ir::cast(dtype(arguments.need(0, "dtype"), "astype"), x);
    return host(e);
  }
  if (callee.kind == ExprKind::name && !scope.find(callee.text)) {
    const bool captured = context.options.host && context.options.host->captured(callee.text).has_value();
    if (!captured) fail(codes::unknown_name, callee, fmt::format("'{}' is not defined", callee.text));
  }
  return host(e);
}

// What a function of the module is given: a buffer by the address of its first element.
Expr ExprReader::passed(const Syntax& e) {
  const Value v = address_or_value(e);
  if (const Buffer b = node_in<BufferNode>(v))
    return with_origin(ir::call(DType::handle(), intrinsic::address_of, {first_element(b)}), origin(e));
  return to_expr(v, e, DType::int32());
}

// A.data that a call outside of the program is given, as the address of A's first element: so it is known whose it is.
Value ExprReader::address_or_value(const Syntax& e) {
  if (const Buffer b = memory_of(e))
    return with_origin(ir::call(DType::handle(), intrinsic::address_of, {first_element(b)}), origin(e));
  return value(e);
}

Value ExprReader::buffer_method(const Buffer& b, std::string_view name, const Arguments& arguments) {
  if (name == "access_ptr") return access_pointer(b, arguments);
  if (name != "vload") {
    if (name == "scope") return b->scope;
    fail(codes::unknown_function, *arguments.call.items[0], fmt::format("a buffer has no '{}' in an expression", name));
  }
  arguments.check(2, {"indices", "dtype", "predicate"});
  const Syntax& at = arguments.need(0, "indices");
  std::vector<Expr> indices = expr_list(at, "vload");
  if (indices.size() != b->shape.size())
    fail(codes::wrong_arguments, at,
         "buffer '" + b->name + "' has " + std::to_string(b->shape.size()) + " dimensions, not " +
             std::to_string(indices.size()));
  const Syntax* predicate = arguments.named("predicate");
  return with_origin<ExprNode>(make<BufferLoad>(b, std::move(indices), predicate ? expr(*predicate) : Expr()),
                               origin(arguments.call));
}

// The address of a buffer's first element, or of one further on. What is done through it, the block's declared regions
// say; the mask is read for its form alone.
Value ExprReader::access_pointer(const Buffer& b, const Arguments& arguments) {
  arguments.check(5, {"access_mask", "ptr_type", "content_lanes", "offset", "extent"});
  check_access_mask(arguments.need(0, "access_mask"));
  const Syntax* at = arguments.find(3, "offset");
  return address_of_element(b, at ? expr(*at, DType::int64()) : ir::int64(0), at ? *at : arguments.call, arguments);
}

// T.tvm_access_ptr(T.type_annotation("float32"), A.data, A.elem_offset, extent, 1): the same, where the offset counts
// from the beginning of the memory.
Value ExprReader::access_pointer_of_memory(const Arguments& arguments) {
  arguments.check(5, {"ptype", "data", "offset", "extent", "rw_mask"});
  const Syntax &type_at = arguments.need(0, "ptype"), &data = arguments.need(1, "data");
  const bool annotated = type_at.kind == ExprKind::call && path_of(*type_at.items[0]) == "tir.type_annotation";
  const DType type =
      dtype(annotated ? Arguments(*this, type_at).need(0, "dtype") : type_at, "the type that a pointer points to");
  const Buffer b = memory_of(data);
  if (!b) fail(codes::wrong_type, data, "the memory of T.tvm_access_ptr is a buffer's, as A.data");
  if (b->dtype != type)
    fail(codes::dtype_mismatch, type_at, "buffer '" + b->name + "' holds " + b->dtype.str() + ", not " + type.str());
  check_access_mask(arguments.need(4, "rw_mask"));
  const Syntax& at = arguments.need(2, "offset");
  Expr offset = expr(at, DType::int64());
  if (b->elem_offset && !is_int(b->elem_offset, 0))
    offset = structural_equal(offset, b->elem_offset) ? ir::int64(0) : offset - ir::cast(offset->dtype, b->elem_offset);
  return address_of_element(b, offset, at, arguments);
}

void ExprReader::check_access_mask(const Syntax& e) {
  const Value mask = value(e);
  const auto* letters = mask.get<std::string>();
  const auto* bits = mask.get<int64_t>();
  if (!(bits && *bits >= 1 && *bits <= 3) && !(letters && (*letters == "r" || *letters == "w" || *letters == "rw")))
    fail(codes::wrong_arguments, e, "an access is \"r\", \"w\" or \"rw\"");
}

Value ExprReader::address_of_element(const Buffer& b, const Expr& offset, const Syntax& at,
                                     const Arguments& arguments) {
  std::vector<Expr> indices(b->shape.size(), ir::int64(0));
  if (b->shape.size() != 1 && !is_int(offset, 0))
    fail(codes::wrong_arguments, at,
         "an offset is of a buffer of one dimension, not " + std::to_string(b->shape.size()) +
             ": take the address of an element");
  if (!indices.empty()) indices.back() = offset;
  return with_origin(ir::call(DType::handle(), intrinsic::address_of, {ir::load(b, std::move(indices))}),
                     origin(arguments.call));
}

// ---- T.name(...) ----

namespace {

using Maker = Expr (*)(Expr, Expr);
template <class Kind>
Expr binary_node(Expr a, Expr b) {
  return make<Kind>(std::move(a), std::move(b));
}
Expr divide(Expr a, Expr b) { return make<Div>(std::move(a), std::move(b)); }

const std::unordered_map<std::string_view, Maker> binary_functions = {{"Add", binary_node<Add>},
                                                                      {"Sub", binary_node<Sub>},
                                                                      {"Mul", binary_node<Mul>},
                                                                      {"Div", divide},
                                                                      {"div", divide},
                                                                      {"truncdiv", divide},
                                                                      {"Mod", binary_node<Mod>},
                                                                      {"truncmod", binary_node<Mod>},
                                                                      {"fmod", binary_node<Mod>},
                                                                      {"FloorDiv", binary_node<FloorDiv>},
                                                                      {"floordiv", binary_node<FloorDiv>},
                                                                      {"FloorMod", binary_node<FloorMod>},
                                                                      {"floormod", binary_node<FloorMod>},
                                                                      {"Min", binary_node<Min>},
                                                                      {"min", binary_node<Min>},
                                                                      {"Max", binary_node<Max>},
                                                                      {"max", binary_node<Max>},
                                                                      {"EQ", binary_node<EQ>},
                                                                      {"NE", binary_node<NE>},
                                                                      {"LT", binary_node<LT>},
                                                                      {"LE", binary_node<LE>},
                                                                      {"GT", binary_node<GT>},
                                                                      {"GE", binary_node<GE>},
                                                                      {"And", binary_node<And>},
                                                                      {"Or", binary_node<Or>},
                                                                      {"ceildiv", ir::ceildiv}};

bool is_logical(std::string_view name) { return name == "And" || name == "Or"; }

// The double that a float's text names: "inf", "-inf", "nan", "nan(0x…)".
std::optional<double> special_float(const std::string& text) {
  if (text == "inf" || text == "+inf" || text == "infinity") return std::numeric_limits<double>::infinity();
  if (text == "-inf" || text == "-infinity") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::bit_cast<double>(uint64_t{0x7ff8000000000000});
  if (!text.starts_with("nan(0x") || text.back() != ')') return std::nullopt;
  uint64_t bits = 0;
  const auto [end, error] = std::from_chars(text.data() + 6, text.data() + text.size() - 1, bits, 16);
  const auto value = std::bit_cast<double>(bits);
  if (error != std::errc() || end != text.data() + text.size() - 1 || !std::isnan(value)) return std::nullopt;
  return value;
}

}  // namespace

double ExprReader::float_imm_value(const Syntax& e) {
  const Value v = value(e);
  if (const auto* x = v.get<double>()) return *x;
  if (const auto* x = v.get<int64_t>()) return static_cast<double>(*x);
  if (const auto* x = v.get<std::string>())
    if (const auto special = special_float(*x)) return *special;
  fail(codes::wrong_type, e, "`" + source_text(e) + "` is no float");
}

// T.float32(x): a constant, a conversion, or without argument a new variable.
Value ExprReader::typed_literal(DType t, const Arguments& arguments) {
  arguments.check(t.is_handle() ? 2 : 1, {"is_size_var", "expr", "dtype", "storage_scope"});
  const Syntax* argument = t.is_handle() ? nullptr : arguments.find(0, "expr");
  if (!argument) {
    const Syntax* size = arguments.named("is_size_var");
    return make<VarNode>(hint.empty() ? "v" : hint, t, size && boolean(*size, "is_size_var"));
  }
  if (t.element() == DType::uint(64) && argument->kind == ExprKind::integer && argument->text.size() >= 19) {
    uint64_t wide = 0;
    const std::string_view text = argument->text;
    if (std::from_chars(text.data(), text.data() + text.size(), wide).ec != std::errc())
      fail(codes::number_too_large, *argument, fmt::format("{} does not fit in 64 bits", text));
    return constant(t, static_cast<int64_t>(wide));
  }
  const Value v = value(*argument);
  if (const auto* text = v.get<std::string>()) {
    const auto special = t.is_floating() ? special_float(*text) : std::nullopt;
    if (!special) fail(codes::wrong_type, *argument, "'" + *text + "' is no value of " + t.str());
    // Kept bit by bit: a conversion would quieten a NaN.
    Expr imm = make<FloatImm>(t.element(), *special);
    return t.is_vector() ? make<Broadcast>(imm, int64_t{t.lanes}) : imm;
  }
  if (const Expr x = expr_in(v)) {
    if (x->dtype == t) return x;
    if (t.is_vector() && x->dtype == t.element()) return make<Broadcast>(x, int64_t{t.lanes});
    return with_origin<ExprNode>(make<Cast>(t, x), origin(arguments.call));
  }
  if (t.is_handle() || t.is_void()) fail(codes::wrong_type, *argument, "there are no literals of " + t.str());
  if (const auto* x = v.get<bool>()) return constant(t, int64_t{*x});
  if (const auto* x = v.get<double>(); x && t.is_floating()) return constant(t, *x);
  if (const auto* x = v.get<int64_t>()) {
    if (t.is_integer() && wrap_integer(*x, t.element()) != *x)
      fail(codes::number_too_large, *argument, std::to_string(*x) + " does not fit in " + t.str());
    return constant(t, *x);
  }
  fail(codes::wrong_type, *argument, "`" + source_text(*argument) + "` is no value of " + t.str());
}

Value ExprReader::intrinsic_call(const Intrinsic& op, const Arguments& arguments) {
  const bool dtype_first = is_dtype_first(op);
  arguments.check(1000, {"dtype"});
  const Syntax* named = arguments.named("dtype");
  std::optional<DType> result;
  if (named) result = dtype(*named, "dtype");
  size_t first = 0;
  if (dtype_first && !named) {
    result = dtype(arguments.need(0, "dtype"), op.name);
    first = 1;
  }
  // Literals take the dtype of the first argument that has one.
  std::vector<Value> values;
  DType known = DType::void_();
  for (size_t i = first; i < arguments.count(); ++i) {
    const Syntax& at = *arguments.positional[i];
    values.push_back(op.arity < 0 ? address_or_value(at) : value(at));
    const Expr x = expr_in(values.back());
    const bool condition = op.name == "if_then_else" && i == 0;
    if (x && known.is_void() && !x.is<StringImm>() && !condition) known = x->dtype;
  }
  const bool elementwise = op.effect == Effect::pure && op.arity > 0;
  std::vector<Expr> args;
  for (size_t i = 0; i < values.size(); ++i) {
    const Syntax& at = *arguments.positional[first + i];
    if (const auto* text = values[i].get<std::string>()) {
      args.push_back(make<StringImm>(*text));
      continue;
    }
    if (const Buffer b = &op == &intrinsic::call_packed ? node_in<BufferNode>(values[i]) : Buffer()) {
      args.push_back(with_origin(array_of(b), origin(at)));
      continue;
    }
    const bool exponent = op.name == "ldexp" && i == 1;
    const bool typed = elementwise && !exponent && !known.is_void() && !(op.name == "if_then_else" && i == 0);
    args.push_back(to_expr(values[i], at,
                           typed                      ? known.element()
                           : elementwise && !exponent ? DType::int64()
                                                      : DType::int32()));
    if (exponent && (args[0]->dtype.lanes != args[1]->dtype.lanes || !args[1]->dtype.is_integer()))
      fail(codes::dtype_mismatch, at, "the exponent of T.ldexp is an integer, not " + args[1]->dtype.str());
  }
  if (op.arity >= 0 && static_cast<size_t>(op.arity) != args.size())
    fail(codes::wrong_arguments, arguments.call,
         "T." + std::string(op.name) + " takes " + std::to_string(op.arity) + " arguments, not " +
             std::to_string(args.size()));
  const DType t = result ? *result : default_call_type(op, args);
  return with_origin(ir::call(t, op, std::move(args)), origin(arguments.call));
}

Value ExprReader::tir_call(const std::string& name, const Syntax& e) {
  const Arguments arguments(*this, e);
  const auto made = [&](Expr result) { return Value(with_origin(std::move(result), origin(e))); };
  if (const auto t = type_named(name == "Ptr" ? "handle" : name)) return typed_literal(*t, arguments);
  if (const auto it = binary_functions.find(name); it != binary_functions.end()) {
    arguments.check(2, {"a", "b"});
    const Syntax &at_a = arguments.need(0, "a"), &at_b = arguments.need(1, "b");
    auto [a, b] = unify(at_a, at_b);
    if ((is_logical(name) && !a->dtype.is_bool()) || a->dtype.is_handle())
      fail(codes::dtype_mismatch, e, "T." + name + " does not take " + a->dtype.str());
    return made(it->second(a, b));
  }
  if (name == "Cast" || name == "cast") {
    arguments.check(2, {"dtype", "value"});
    const bool value_first = name == "cast";
    const DType t = dtype(arguments.need(value_first ? 1 : 0, "dtype"), "Cast");
    const Expr x = expr(arguments.need(value_first ? 0 : 1, "value"), DType::int32());
    return made(make<Cast>(t, x));
  }
  if (name == "var") {
    arguments.check(1, {"dtype"});
    return make<VarNode>(hint.empty() ? "v" : hint, dtype(arguments.need(0, "dtype"), "T.var"));
  }
  if (name == "StringImm") return make<StringImm>(string(arguments.need(0, "value"), "T.StringImm"));
  if (name == "Not") return made(make<Not>(expr_of(arguments.need(0, "a"), DType::boolean(), "the operand")));
  if (name == "Select") {
    arguments.check(3, {"condition", "true_value", "false_value"});
    const Expr condition = expr(arguments.need(0, "condition"));
    if (!condition->dtype.is_bool())
      fail(codes::dtype_mismatch, arguments.need(0, "condition"), "a condition is bool, not " + condition->dtype.str());
    auto [a, b] = unify(arguments.need(1, "true_value"), arguments.need(2, "false_value"));
    return made(make<Select>(condition, a, b));
  }
  if (name == "Ramp" || name == "ramp" || name == "Broadcast" || name == "broadcast") {
    const bool ramp = name[0] == 'R' || name[0] == 'r';
    arguments.check(ramp ? 3 : 2, {"base", "stride", "lanes", "value"});
    const Syntax& at = arguments.need(ramp ? 2 : 1, "lanes");
    const int64_t lanes = integer(at, "lanes");
    if (lanes < 1 || lanes > 65535)
      fail(codes::wrong_arguments, at, "a vector has 1 to 65535 lanes, not " + std::to_string(lanes));
    if (!ramp) {
      const Expr x = expr(arguments.need(0, "value"), DType::int32());
      return made(make<Broadcast>(x, lanes));
    }
    auto [base, stride] = unify(arguments.need(0, "base"), arguments.need(1, "stride"));
    if (!base->dtype.is_integer() || base->dtype.is_vector())
      fail(codes::dtype_mismatch, e, "a ramp is of scalar integers, not " + base->dtype.str());
    return made(make<Ramp>(base, stride, lanes));
  }
  if (name == "Shuffle") {
    std::vector<Expr> vectors = expr_list(arguments.need(0, "vectors"), "T.Shuffle");
    std::vector<int64_t> indices;
    const Syntax& at = arguments.need(1, "indices");
    int64_t total = 0;
    for (const Expr& v : vectors) total += v->dtype.lanes;
    for (const Expr& i : expr_list(at, "T.Shuffle")) indices.push_back(as_int(i).value_or(-1));
    for (const int64_t i : indices)
      if (i < 0 || i >= total)
        fail(codes::wrong_arguments, at, "a lane is a constant from 0 to " + std::to_string(total - 1));
    if (vectors.empty() || indices.empty()) fail(codes::wrong_arguments, e, "a shuffle has vectors and lanes");
    for (const Expr& v : vectors)
      if (v->dtype.element() != vectors[0]->dtype.element())
        fail(codes::dtype_mismatch, e, "a shuffle of " + vectors[0]->dtype.str() + " and " + v->dtype.str());
    return made(make<Shuffle>(std::move(vectors), std::move(indices)));
  }
  if (auto known = function_call(name, arguments)) return *std::move(known);
  if (name == "min_value") return ir::min_value(dtype(arguments.need(0, "dtype"), "T.min_value"));
  if (name == "max_value") return ir::max_value(dtype(arguments.need(0, "dtype"), "T.max_value"));
  if (name == "infinity") return ir::infinity(dtype(arguments.need(0, "dtype"), "T.infinity"));
  if (name == "meta_var") return value(arguments.need(0, "value"));
  if (name == "fabs") return intrinsic_call(intrinsic::abs, arguments);
  if (name == "BufferLoad") {
    arguments.check(3, {"buffer", "indices", "predicate"});
    const Buffer b = buffer(arguments.need(0, "buffer"), "T.BufferLoad");
    const Syntax& at = arguments.need(1, "indices");
    const Syntax* predicate = arguments.find(2, "predicate");
    std::vector<Expr> indices = expr_list(at, "T.BufferLoad");
    if (indices.size() != b->shape.size())
      fail(codes::wrong_arguments, at,
           "buffer '" + b->name + "' has " + std::to_string(b->shape.size()) + " dimensions, not " +
               std::to_string(indices.size()));
    return made(make<BufferLoad>(b, std::move(indices), predicate ? expr(*predicate) : Expr()));
  }
  if (const Intrinsic* op = find_intrinsic(name)) return intrinsic_call(*op, arguments);
  fail(codes::unknown_function, *e.items[0], "there is no '" + source_text(*e.items[0]) + "' in an expression",
       nearest_help("tir." + name));
}

}  // namespace lathe::script
