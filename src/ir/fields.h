// What derives from a node's declaration of its fields: children, rebuilding, structural equality and hash,
// reflection. Declares `field`, `make<T>` and `map_children`.
//
//   struct Add : ExprNode { Expr a, b;
//     static constexpr auto fields() { return std::tuple{field("a", &Add::a), field("b", &Add::b)}; } };
//   Expr sum = make<Add>(a, b);          // fields in declared order; trailing ones may be left out
//
// Legal field types: handles, Value, Attributes, bool, integers, enums, floating point, strings, DType, pointers to
// constant rows of a table (compared by address), structs with their own `fields()`, and vectors, optionals and
// pairs of these.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <tuple>

#include "ir/structural.h"
#include "ir/value.h"

namespace lathe::ir {

template <class C, class M>
struct Field {
  std::string_view name;
  M C::* member;
  Role role;
  bool may_be_null;
};
template <class C, class M>
constexpr Field<C, M> field(std::string_view name, M C::* member, Role role = Role::use) {
  return {name, member, role, false};
}
// A handle that may be null.
template <class C, class M>
constexpr Field<C, M> optional_field(std::string_view name, M C::* member, Role role = Role::use) {
  return {name, member, role, true};
}

namespace detail {

using ChildVisitor = support::function_ref<void(const NodeRef&)>;
using ChildMap = support::function_ref<NodeRef(NodeRef)>;

template <class T>
concept HasFields = requires { T::fields(); };
template <class T>
inline constexpr bool is_ref = false;
template <class T>
inline constexpr bool is_ref<Ref<T>> = true;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_pair = false;
template <class A, class B>
inline constexpr bool is_pair<std::pair<A, B>> = true;
// Scalars and strings: no nodes inside.
template <class T>
inline constexpr bool is_leaf = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
                                std::is_same_v<T, DType> || std::is_pointer_v<T>;

template <class T, class F>
constexpr void each_field(F&& f) {
  std::apply([&](const auto&... fields) { (f(fields), ...); }, T::fields());
}

// A handle to T from a handle to any node, checked.
template <class T>
Ref<T> narrow(NodeRef n) {
  if (!n) return {};
  if constexpr (std::is_same_v<T, Node>) {
    return n;
  } else {
    bool fits;
    if constexpr (HasFields<T>)
      fits = &n->node_class() == &node_class_of<T>();
    else
      fits = n->node_class().family == T::family;
    support::require(fits, "a rewrite put a node of another family in this field");
    Ref<T> typed(static_cast<const T*>(n.get()));
    return typed;
  }
}

void each_child_in_value(const Value& value, ChildVisitor visit);
bool map_value(Value& value, ChildMap map);

template <class M>
void each_child(const M& value, ChildVisitor visit) {
  if constexpr (is_ref<M>) {
    if (value) visit(value);
  } else if constexpr (is_vector<M>) {
    for (const auto& item : value) each_child(item, visit);
  } else if constexpr (is_optional<M>) {
    if (value) each_child(*value, visit);
  } else if constexpr (is_pair<M>) {
    each_child(value.first, visit);
    each_child(value.second, visit);
  } else if constexpr (std::is_same_v<M, Value>) {
    each_child_in_value(value, visit);
  } else if constexpr (std::is_same_v<M, Attributes>) {
    for (const auto& [name, item] : value) each_child_in_value(item, visit);
  } else if constexpr (HasFields<M>) {
    each_field<M>([&](const auto& f) { each_child(value.*f.member, visit); });
  } else {
    static_assert(is_leaf<M>, "unsupported field type");
  }
}

// Maps the children in `value`, which this call owns; true when something changed.
template <class M>
bool map_owned(M& value, ChildMap map) {
  if constexpr (is_ref<M>) {
    if (!value) return false;
    const auto* before = value.get();
    // Handing over the only reference lets the callee rebuild in place.
    value = narrow<typename M::node_type>(map(std::move(value)));
    return value.get() != before;
  } else if constexpr (is_vector<M>) {
    bool changed = false;
    if constexpr (!is_leaf<typename M::value_type>)
      for (auto& item : value) changed |= map_owned(item, map);
    return changed;
  } else if constexpr (is_optional<M>) {
    return value && map_owned(*value, map);
  } else if constexpr (is_pair<M>) {
    const bool first = map_owned(value.first, map);
    return map_owned(value.second, map) || first;
  } else if constexpr (std::is_same_v<M, Value>) {
    return map_value(value, map);
  } else if constexpr (std::is_same_v<M, Attributes>) {
    bool changed = false;
    for (auto& [name, item] : value.entries()) changed |= map_value(item, map);
    return changed;
  } else if constexpr (HasFields<M>) {
    bool changed = false;
    each_field<M>([&](const auto& f) { changed |= map_owned(value.*f.member, map); });
    return changed;
  } else {
    return false;
  }
}

template <class M>
Value to_value(const M& value);

template <class M>
bool equal(const M& a, const M& b, Equality& eq) {
  if constexpr (is_ref<M>) {
    return eq.nodes(a, b);
  } else if constexpr (is_vector<M>) {
    if (a.size() != b.size()) return eq.differ(std::to_string(a.size()) + " items, not " + std::to_string(b.size()));
    for (size_t i = 0; i < a.size(); ++i) {
      eq.enter_index(i);
      if (!equal<typename M::value_type>(a[i], b[i], eq)) return false;
      eq.leave_index();
    }
    return true;
  } else if constexpr (is_optional<M>) {
    if (a.has_value() != b.has_value()) return eq.differ("present on one side only");
    return !a || equal(*a, *b, eq);
  } else if constexpr (is_pair<M>) {
    return equal(a.first, b.first, eq) && equal(a.second, b.second, eq);
  } else if constexpr (std::is_same_v<M, Value>) {
    return eq.values(a, b);
  } else if constexpr (std::is_same_v<M, Attributes>) {
    return eq.values(Value(a.entries()), Value(b.entries()));
  } else if constexpr (HasFields<M>) {
    bool same = true;
    each_field<M>([&](const auto& f) {
      if (!same || f.role == Role::ignore) return;
      eq.enter(f.name, f.role);
      same = equal(a.*f.member, b.*f.member, eq);
      eq.leave(f.role);
    });
    return same;
  } else {
    return eq.values(to_value(a), to_value(b));
  }
}

template <class M>
void hash(const M& value, StructuralHasher& hasher) {
  if constexpr (is_ref<M>) {
    hasher.node(value);
  } else if constexpr (is_vector<M>) {
    hasher.word(value.size());
    for (size_t i = 0; i < value.size(); ++i) hash<typename M::value_type>(value[i], hasher);
  } else if constexpr (is_optional<M>) {
    hasher.word(value.has_value());
    if (value) hash(*value, hasher);
  } else if constexpr (is_pair<M>) {
    hash(value.first, hasher);
    hash(value.second, hasher);
  } else if constexpr (std::is_same_v<M, Attributes>) {
    hasher.value(Value(value.entries()));
  } else if constexpr (HasFields<M>) {
    each_field<M>([&](const auto& f) {
      if (f.role == Role::ignore) return;
      hasher.enter(f.role);
      hash(value.*f.member, hasher);
      hasher.leave(f.role);
    });
  } else {
    hasher.value(to_value(value));
  }
}

// A field as a Value, for reflection.
template <class M>
Value to_value(const M& value) {
  if constexpr (is_ref<M>) {
    return value ? Value(value) : Value();
  } else if constexpr (is_vector<M>) {
    Value::List list;
    for (size_t i = 0; i < value.size(); ++i) list.push_back(to_value<typename M::value_type>(value[i]));
    return list;
  } else if constexpr (is_optional<M>) {
    return value ? to_value(*value) : Value();
  } else if constexpr (is_pair<M>) {
    return Value::List{to_value(value.first), to_value(value.second)};
  } else if constexpr (std::is_same_v<M, Value>) {
    return value;
  } else if constexpr (std::is_same_v<M, Attributes>) {
    return value.entries();
  } else if constexpr (HasFields<M>) {
    Value::Map map;
    each_field<M>([&](const auto& f) { map[std::string(f.name)] = to_value(value.*f.member); });
    return map;
  } else if constexpr (std::is_same_v<M, bool> || std::is_same_v<M, std::string> || std::is_same_v<M, DType>) {
    return value;
  } else if constexpr (std::is_floating_point_v<M>) {
    return static_cast<double>(value);
  } else if constexpr (std::is_pointer_v<M>) {
    return value ? Value(value->name) : Value();  // a row of a table: by its name
  } else {
    return static_cast<int64_t>(value);
  }
}

void refuse_depth();
const Value& nothing_given();

// Sets what is derived from the fields: class, depth, dtype.
template <class T>
void seal(T& node) {
  node.class_ = &node_class_of<T>();
  uint32_t depth = 0;
  each_field<T>([&](const auto& f) {
    each_child(node.*f.member, [&](const NodeRef& child) { depth = child->depth() > depth ? child->depth() : depth; });
  });
  node.depth_ = depth + 1;
  if (node.depth_ > max_depth) refuse_depth();
  if constexpr (requires { node.derive(); }) node.derive();
}

// ---- from values: what `NodeClass::construct` derives from ----

// Where a value goes, for messages.
struct FieldPlace {
  std::string_view kind, field;
};
[[noreturn]] void refuse_field(FieldPlace place, std::string_view expected, const Value& found);

// The value as what a leaf or handle holds; a refusal names the field.
bool bool_from(FieldPlace place, const Value& value);
int64_t integer_from(FieldPlace place, const Value& value, int64_t least, int64_t most);
double float_from(FieldPlace place, const Value& value);
std::string string_from(FieldPlace place, const Value& value);
DType dtype_from(FieldPlace place, const Value& value);
// A node of that family, or of that kind where it is named; a number becomes a constant where expressions stand.
NodeRef node_from(FieldPlace place, const Value& value, std::string_view family, const NodeClass* kind);

template <class M>
void from_value(FieldPlace place, const Value& value, M& into) {
  if constexpr (is_ref<M>) {
    using T = typename M::node_type;
    const NodeClass* kind = nullptr;
    std::string_view family;
    if constexpr (HasFields<T>)
      kind = &node_class_of<T>();
    else if constexpr (!std::is_same_v<T, Node>)
      family = T::family;
    into = narrow<T>(node_from(place, value, family, kind));
  } else if constexpr (std::is_same_v<M, Value>) {
    into = value;
  } else if (value.empty()) {
    return;  // the default
  } else if constexpr (is_vector<M>) {
    const auto* list = value.get<Value::List>();
    if (!list) refuse_field(place, "a list", value);
    into.clear();
    for (const Value& item : *list) {
      typename M::value_type made{};
      from_value(place, item, made);
      into.push_back(std::move(made));
    }
  } else if constexpr (is_optional<M>) {
    from_value(place, value, into.emplace());
  } else if constexpr (is_pair<M>) {
    const auto* list = value.get<Value::List>();
    if (!list || list->size() != 2) refuse_field(place, "pairs", value);
    from_value(place, (*list)[0], into.first);
    from_value(place, (*list)[1], into.second);
  } else if constexpr (std::is_same_v<M, Attributes>) {
    const auto* map = value.get<Value::Map>();
    if (!map) refuse_field(place, "a dict", value);
    into.entries() = *map;
  } else if constexpr (HasFields<M>) {
    const auto* map = value.get<Value::Map>();
    if (!map) refuse_field(place, "its parts by name", value);
    each_field<M>([&](const auto& f) {
      const auto found = map->find(std::string(f.name));
      const Value part = found == map->end() ? Value() : found->second;
      if (!(f.may_be_null && part.empty())) from_value(place, part, into.*f.member);
    });
  } else if constexpr (std::is_same_v<M, bool>) {
    into = bool_from(place, value);
  } else if constexpr (std::is_same_v<M, std::string>) {
    into = string_from(place, value);
  } else if constexpr (std::is_same_v<M, DType>) {
    into = dtype_from(place, value);
  } else if constexpr (std::is_floating_point_v<M>) {
    into = static_cast<M>(float_from(place, value));
  } else if constexpr (std::is_enum_v<M>) {
    into = static_cast<M>(integer_from(place, value, 0, 255));
  } else if constexpr (std::is_integral_v<M>) {
    constexpr int64_t most = std::numeric_limits<int64_t>::max();
    into = static_cast<M>(integer_from(place, value, std::is_signed_v<M> ? -most - 1 : 0, most));
  } else if constexpr (requires { row_named(into, std::string_view()); }) {
    const std::string name = string_from(place, value);
    into = row_named(into, name);
    if (!into) refuse_field(place, "the name of a row that exists", value);
  } else {
    refuse_field(place, "what only the compiler makes", value);
  }
}

// What cannot be told from one field alone: operands of one dtype, lanes that a dtype can count, ….
void check_made(const Node& node);

template <class T>
NodeRef construct_from(std::span<const Value> values) {
  T* node = new T;
  Ref<T> handle(node);
  node->class_ = &node_class_of<T>();
  size_t index = 0;
  each_field<T>([&](const auto& f) {
    const Value& value = index < values.size() ? values[index] : nothing_given();
    ++index;
    if (!(f.may_be_null && value.empty())) from_value(FieldPlace{T::kind_name, f.name}, value, node->*f.member);
  });
  check_made(*node);
  seal(*node);
  return handle;
}

template <class T>
Value field_value_of(const Node& node, size_t index) {
  Value value;
  size_t at = 0;
  each_field<T>([&](const auto& f) {
    if (at++ == index) value = to_value(static_cast<const T&>(node).*f.member);
  });
  return value;
}

// The names of T's fields.
template <class T>
inline constexpr auto field_names_of = std::apply(
    [](const auto&... fields) { return std::array<std::string_view, sizeof...(fields)>{fields.name...}; }, T::fields());

template <class T>
NodeRef map_children_of(NodeRef handle, ChildMap map) {
  const T* node = static_cast<const T*>(handle.get());
  if (handle.get()->unique()) {
    T* mutable_node = const_cast<T*>(node);
    each_field<T>([&](const auto& f) { map_owned(mutable_node->*f.member, map); });
    seal(*mutable_node);
    return handle;
  }
  T* copy = nullptr;
  Ref<T> guard;
  each_field<T>([&](const auto& f) {
    using M = std::remove_cvref_t<decltype(node->*f.member)>;
    if constexpr (!is_leaf<M>) {
      M value = node->*f.member;
      if (!map_owned(value, map)) return;
      if (!copy) {
        copy = new T(*node);
        guard = Ref<T>(copy);
      }
      copy->*f.member = std::move(value);
    }
  });
  if (!copy) return handle;
  seal(*copy);
  return guard;
}

template <class T>
constexpr int kind_of();

template <class T>
constexpr bool identity_of() {
  if constexpr (requires { T::has_identity; })
    return T::has_identity;
  else
    return false;
}

}  // namespace detail

namespace detail {
template <class T>
constexpr int kind_of() {
  return FamilyKinds<typename T::family_type>::type::template index_of<T>();
}
}  // namespace detail

template <class T>
const NodeClass& node_class_of() {
  static_assert(std::is_base_of_v<Node, T>);
  static constexpr NodeClass node_class{
      .name = T::kind_name,
      .family = T::family,
      .kind = detail::kind_of<T>(),
      .destroy = [](const Node* n) { delete static_cast<const T*>(n); },
      .for_each_child =
          [](const Node& n, detail::ChildVisitor visit) {
            detail::each_field<T>(
                [&](const auto& f) { detail::each_child(static_cast<const T&>(n).*f.member, visit); });
          },
      .map_children = &detail::map_children_of<T>,
      .equal = [](const Node& a, const Node& b,
                  Equality& eq) { return detail::equal(static_cast<const T&>(a), static_cast<const T&>(b), eq); },
      .hash = [](const Node& n, StructuralHasher& hasher) { detail::hash(static_cast<const T&>(n), hasher); },
      .visit_fields =
          [](const Node& n, support::function_ref<void(std::string_view, const Value&)> visit) {
            detail::each_field<T>(
                [&](const auto& f) { visit(f.name, detail::to_value(static_cast<const T&>(n).*f.member)); });
          },
      .field_names = detail::field_names_of<T>,
      .field_value = &detail::field_value_of<T>,
      .construct = &detail::construct_from<T>,
      .has_identity = detail::identity_of<T>(),
  };
  return node_class;
}

// The rows of a family as KindList's arguments: KindsAfter<void ROWS(LATHE_KIND)>.
template <class First, class... Kinds>
using KindsAfter = KindList<Kinds...>;
#define LATHE_KIND(Kind) , Kind
// What derives from a kind's fields is compiled once: declared beside the kind, defined in one source file.
#define LATHE_DECLARE_KIND(Kind)                                                \
  extern template const lathe::ir::NodeClass& lathe::ir::node_class_of<Kind>(); \
  extern template void lathe::ir::detail::seal<Kind>(Kind&);
#define LATHE_DEFINE_KIND(Kind)                                          \
  template const lathe::ir::NodeClass& lathe::ir::node_class_of<Kind>(); \
  template void lathe::ir::detail::seal<Kind>(Kind&);

// A new node; arguments are its fields in declared order, trailing ones keep their defaults.
template <class T, class... Args>
Ref<T> make(Args&&... args) {
  T* node = new T;
  Ref<T> handle(node);
  node->class_ = &node_class_of<T>();
  [&]<size_t... I>(std::index_sequence<I...>, auto&& values) {
    constexpr auto fields = T::fields();
    static_assert(sizeof...(Args) <= std::tuple_size_v<decltype(fields)>, "more arguments than fields");
    // Each element is taken once. NOLINTNEXTLINE(bugprone-use-after-move)
    ((node->*(std::get<I>(fields).member) = std::get<I>(std::forward<decltype(values)>(values))), ...);
  }(std::index_sequence_for<Args...>{}, std::forward_as_tuple(std::forward<Args>(args)...));
  detail::seal(*node);
  return handle;
}

// A changed copy of a node: `with(loop, [&](For& copy) { copy.extent = n; })`. The origin is kept.
template <class T, class Change>
Ref<T> with(const T& node, Change&& change) {
  T* copy = new T(node);
  Ref<T> handle(copy);
  change(*copy);
  detail::seal(*copy);
  return handle;
}

// The node with `map` applied to each child: the same handle where nothing changed.
inline NodeRef map_children(NodeRef n, support::function_ref<NodeRef(NodeRef)> map) {
  const NodeClass& node_class = n->node_class();
  return node_class.map_children(std::move(n), map);
}

// A handle whose node carries `origin` (set in place where nobody else holds it and none is set).
template <class T>
Ref<T> with_origin(Ref<T> handle, const Origin& origin) {
  if (handle && origin && !handle->origin())
    const_cast<Node*>(static_cast<const Node*>(handle.get()))->origin_ = origin;
  return handle;
}

}  // namespace lathe::ir
