// Nodes from the values of their fields: what is derived for every kind leans on these conversions and checks.
#include "ir/build.h"
#include "ir/codes.h"

namespace lathe::ir::detail {
namespace {

[[noreturn]] void refuse_made(std::string message) {
  throw support::DiagnosticError(support::Diagnostic{.code = codes::field, .message = std::move(message)});
}

std::string_view with_article(std::string_view family) {
  if (family == "expr") return "an expression";
  if (family == "stmt") return "a statement";
  if (family == "relax_expr") return "a graph expression";
  return family;
}

std::string described(const Value& value) {
  if (value.empty()) return "nothing";
  if (value.get<bool>()) return *value.get<bool>() ? "True" : "False";
  if (const auto* x = value.get<int64_t>()) return std::to_string(*x);
  if (const auto* x = value.get<double>()) return fmt::format("{}", *x);
  if (const auto* x = value.get<std::string>()) return "'" + *x + "'";
  if (const auto* x = value.get<DType>()) return "the dtype " + x->str();
  if (value.get<Value::List>()) return "a list";
  if (value.get<Value::Map>()) return "a dict";
  const NodeRef& node = *value.get<NodeRef>();
  return node ? "a " + std::string(node->node_class().name) : "nothing";
}

// Logical kinds take bool, arithmetic takes numbers; addresses are compared at most.
void check_operand(std::string_view kind, DType dtype, bool logical, bool comparison) {
  const bool fits = logical ? dtype.is_bool() : comparison || !(dtype.is_handle() || dtype.is_void());
  if (!fits) refuse_made(fmt::format("{} of {}, which is no {}", kind, dtype.str(), logical ? "bool" : "number"));
}

// Sees the fields of a kind that has `a` and `b` of one dtype.
template <class... Kinds>
void check_operands(const Node& node, KindList<Kinds...>) {
  const auto check = [&]<class T>(std::type_identity<T>) {
    if (&node.node_class() != &node_class_of<T>()) return;
    const auto& n = static_cast<const T&>(node);
    if (n.a->dtype != n.b->dtype)
      throw support::DiagnosticError(support::Diagnostic{
          .code = codes::dtype_mismatch,
          .message = fmt::format("{} of {} and {}", T::kind_name, n.a->dtype.str(), n.b->dtype.str()),
          .help = "convert one of them with astype"});
    check_operand(T::kind_name, n.a->dtype, std::is_same_v<T, And> || std::is_same_v<T, Or>,
                  std::is_same_v<T, EQ> || std::is_same_v<T, NE>);
  };
  (check(std::type_identity<Kinds>{}), ...);
}

using Binary = KindList<Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, EQ, NE, LT, LE, GT, GE, And, Or>;

template <class T>
const T* node_as(const Node& node) {
  return &node.node_class() == &node_class_of<T>() ? static_cast<const T*>(&node) : nullptr;
}

void check_lanes(std::string_view kind, const Expr& value, int64_t lanes) {
  constexpr int64_t most = std::numeric_limits<uint16_t>::max();
  if (lanes < 1 || lanes > most) refuse_made(fmt::format("{} of {} lanes; there are 1 to {}", kind, lanes, most));
  if (!value->dtype.is_scalar())
    refuse_made(fmt::format("{} of {}, which is a vector already", kind, value->dtype.str()));
}

// A pair or a range whose parts are nothing: what None among the items of a list becomes. What an attribute says may be
// anything.
bool is_hollow(const Value& item) {
  const auto nothing = [](const Value& part) {
    const auto* node = part.get<NodeRef>();
    return part.empty() || (node && !*node);
  };
  if (const auto* pair = item.get<Value::List>()) return std::any_of(pair->begin(), pair->end(), nothing);
  if (const auto* parts = item.get<Value::Map>())
    return std::any_of(parts->begin(), parts->end(), [&](const auto& part) { return nothing(part.second); });
  return false;
}

void check_items(const Node& node) {
  node.node_class().visit_fields(node, [&](std::string_view name, const Value& value) {
    const auto* list = value.get<Value::List>();
    if (list && name != "node" && std::any_of(list->begin(), list->end(), is_hollow))
      refuse_made(fmt::format("{}: '{}' has an item of None", node.node_class().name, name));
  });
}

}  // namespace

const Value& nothing_given() {
  static const Value nothing;
  return nothing;
}

void refuse_field(FieldPlace place, std::string_view expected, const Value& found) {
  refuse_made(fmt::format("{}: '{}' takes {}, not {}", place.kind, place.field, expected, described(found)));
}

bool bool_from(FieldPlace place, const Value& value) {
  if (const auto* x = value.get<bool>()) return *x;
  refuse_field(place, "True or False", value);
}

int64_t integer_from(FieldPlace place, const Value& value, int64_t least, int64_t most) {
  std::optional<int64_t> x;
  if (const auto* given = value.get<int64_t>()) x = *given;
  if (const auto* given = value.get<bool>()) x = *given;
  if (const auto* node = value.get<NodeRef>(); node && node->as<IntImm>()) x = node->as<IntImm>()->value;
  if (!x) refuse_field(place, "an integer", value);
  if (*x < least || *x > most) refuse_field(place, fmt::format("an integer from {} to {}", least, most), value);
  return *x;
}

double float_from(FieldPlace place, const Value& value) {
  if (const auto* x = value.get<double>()) return *x;
  if (const auto* x = value.get<int64_t>()) return static_cast<double>(*x);
  refuse_field(place, "a number", value);
}

std::string string_from(FieldPlace place, const Value& value) {
  if (const auto* x = value.get<std::string>()) return *x;
  if (const auto* node = value.get<NodeRef>(); node && node->as<StringImm>()) return node->as<StringImm>()->value;
  refuse_field(place, "a string", value);
}

DType dtype_from(FieldPlace place, const Value& value) {
  if (const auto* x = value.get<DType>()) return *x;
  if (const auto* x = value.get<std::string>())
    if (const auto parsed = DType::parse(*x)) return *parsed;
  refuse_field(place, "a dtype such as \"float32\"", value);
}

NodeRef node_from(FieldPlace place, const Value& value, std::string_view family, const NodeClass* kind) {
  if (const auto* given = value.get<NodeRef>(); given && *given) {
    const NodeClass& found = (*given)->node_class();
    if (kind ? &found == kind : family.empty() || found.family == family) return *given;
  }
  if (!kind && family == ExprNode::family) {
    if (const auto* x = value.get<bool>()) return boolean(*x);
    if (const auto* x = value.get<int64_t>()) return int64(*x);
    if (const auto* x = value.get<double>()) return constant(DType::float32(), *x);
    if (const auto* x = value.get<std::string>()) return make<StringImm>(*x);
  }
  refuse_field(place, kind ? "a " + std::string(kind->name) : std::string(with_article(family)), value);
}

void check_made(const Node& node) {
  check_items(node);
  check_operands(node, Binary{});
  if (const auto* n = node_as<Not>(node)) check_operand(Not::kind_name, n->a->dtype, true, false);
  if (const auto* n = node_as<IntImm>(node); n && !(n->dtype.is_integer() || n->dtype.is_bool()))
    refuse_made("IntImm of " + n->dtype.str() + ", which is no integer type");
  if (const auto* n = node_as<FloatImm>(node); n && !n->dtype.is_floating())
    refuse_made("FloatImm of " + n->dtype.str() + ", which is no floating-point type");
  if (const auto* n = node_as<Ramp>(node)) check_lanes("Ramp", n->base, n->lanes);
  if (const auto* n = node_as<Broadcast>(node)) check_lanes("Broadcast", n->value, n->lanes);
  if (const auto* n = node_as<Select>(node); n && n->true_value->dtype != n->false_value->dtype)
    refuse_made(fmt::format("Select of {} and {}", n->true_value->dtype.str(), n->false_value->dtype.str()));
  if (const auto* n = node_as<Shuffle>(node); n && (n->vectors.empty() || n->indices.size() > 65535))
    refuse_made("Shuffle takes at least one vector and at most 65535 indices");
  if (const auto* n = node_as<Reduce>(node)) {
    const auto count = static_cast<int64_t>(n->sources.size());
    if (n->value_index < 0 || n->value_index >= count)
      refuse_made(fmt::format("Reduce: value {} of {}", n->value_index, count));
  }
  if (const auto* n = node_as<Call>(node)) {
    if (!n->op) refuse_made("Call: 'op' takes the name of an intrinsic");
    if (n->op->arity >= 0 && static_cast<size_t>(n->op->arity) != n->args.size())
      refuse_made(fmt::format("{} takes {} arguments, not {}", n->op->name, n->op->arity, n->args.size()));
  }
  if (const auto* n = node_as<BufferLoad>(node); n && n->indices.size() != n->buffer->shape.size())
    refuse_made(fmt::format("buffer '{}' has {} dimensions, not {}", n->buffer->name, n->buffer->shape.size(),
                            n->indices.size()));
}

}  // namespace lathe::ir::detail
