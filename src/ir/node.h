// Node: the base of everything in both IRs, and Ref<T>: a one-word, reference-counted handle to an immutable node.
//
// A node kind is one struct that declares its fields once, by `static constexpr auto fields()`, and one row in its
// family's list. Children, structural equality and hash, rebuilding in rewrites and reflection derive from the
// declaration (ir/fields.h). Nodes are immutable once shared; a rewrite may update a uniquely owned node in place.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "support/diagnostic.h"
#include "support/function_ref.h"
#include "support/slabs.h"

namespace lathe::ir {

struct NodeClass;
class Node;
class Equality;          // ir/structural.h
class StructuralHasher;  // ir/structural.h
struct Value;            // ir/value.h

// Where a node came from: a text range or a node of a model file. Outside structural equality; kept by every pass.
using Origin = std::shared_ptr<const support::Place>;

// Nesting past this depth is refused when the node is built, so that no visitor or destructor overflows the stack.
inline constexpr uint32_t max_depth = 4096;

class Node {
 public:
  const NodeClass& node_class() const { return *class_; }
  uint32_t depth() const { return depth_; }
  const Origin& origin() const { return origin_; }
  bool unique() const { return references_.load(std::memory_order_acquire) == 1; }

  void retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() const;

  Node() = default;
  // A copy is a new node: nobody refers to it yet.
  Node(const Node& other) : class_(other.class_), depth_(other.depth_), origin_(other.origin_) {}
  Node& operator=(const Node&) = delete;

  static void* operator new(size_t bytes) { return support::slab_allocate(bytes); }
  static void operator delete(void* at, size_t bytes) noexcept { support::slab_free(at, bytes); }

  // For builders and rewriters only (ir/fields.h).
  const NodeClass* class_ = nullptr;
  uint32_t depth_ = 1;
  Origin origin_;

 private:
  mutable std::atomic<uint32_t> references_{0};
};

// A handle to a node of type T (or derived from T); may be null.
template <class T>
class Ref {
 public:
  using node_type = T;
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(const T* node) : node_(node) {
    if (node_) node_->retain();
  }
  Ref(const Ref& other) : Ref(other.node_) {}
  Ref(Ref&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  template <class U>
    requires(std::is_base_of_v<T, U> && !std::is_same_v<T, U>)
  Ref(const Ref<U>& other) : Ref(static_cast<const T*>(other.get())) {}
  template <class U>
    requires(std::is_base_of_v<T, U> && !std::is_same_v<T, U>)
  Ref(Ref<U>&& other) noexcept : node_(other.take()) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Ref() {
    if (node_) node_->release();
  }

  const T* get() const { return node_; }
  const T* operator->() const { return node_; }
  const T& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }
  // Gives the reference up to the caller.
  const T* take() { return std::exchange(node_, nullptr); }

  // The node as kind U, or null when it is another kind.
  template <class U>
  const U* as() const;
  template <class U>
  bool is() const {
    return as<U>() != nullptr;
  }
  bool same_as(const Ref& other) const { return node_ == other.node_; }
  // Equality of handles is identity; structural equality is `structural_equal` (ir/structural.h).
  friend bool operator==(const Ref& a, const Ref& b) { return a.node_ == b.node_; }

 private:
  const T* node_ = nullptr;
};

using NodeRef = Ref<Node>;

// What the compiler knows about a node kind, derived from its declaration.
struct NodeClass {
  std::string_view name;    // "Add"
  std::string_view family;  // "expr", "stmt", "relax_expr", …
  int kind;                 // index in the family's list; -1 in open families
  void (*destroy)(const Node*);
  void (*for_each_child)(const Node&, support::function_ref<void(const NodeRef&)>);
  // Applies the function to each child; the same handle where nothing changed, in place where uniquely owned.
  NodeRef (*map_children)(NodeRef, support::function_ref<NodeRef(NodeRef)>);
  bool (*equal)(const Node&, const Node&, Equality&);
  void (*hash)(const Node&, StructuralHasher&);
  // Field names and values, in declaration order.
  void (*visit_fields)(const Node&, support::function_ref<void(std::string_view, const Value&)>);
  std::span<const std::string_view> field_names;
  // The value of field number `index`.
  Value (*field_value)(const Node&, size_t index);
  // A new node from the values of its fields, in declaration order; an empty value, or none, leaves the default. A
  // DiagnosticError ("ir-field") says which field took what it cannot hold.
  NodeRef (*construct)(std::span<const Value>);
  bool has_identity;  // compared by binding, not by content: variables and buffers
};

template <class T>
const NodeClass& node_class_of();  // defined in ir/fields.h

// A closed family of node kinds, in order.
template <class... Kinds>
struct KindList {
  static constexpr int size = sizeof...(Kinds);
  template <class T>
  static constexpr int index_of() {
    int index = 0;
    const bool found = ((std::is_same_v<T, Kinds> ? true : (++index, false)) || ...);
    return found ? index : -1;
  }
  template <class T>
  static constexpr bool contains = (std::is_same_v<T, Kinds> || ...);
};

// The kinds of a closed family: specialised beside the family's list. Open families have none.
template <class Base>
struct FamilyKinds {
  using type = KindList<>;
};

template <class T>
template <class U>
const U* Ref<T>::as() const {
  static_assert(std::is_base_of_v<T, U>, "this handle can never hold that kind");
  if (!node_) return nullptr;
  if constexpr (FamilyKinds<T>::type::template contains<U>)  // within a closed family the kind's number tells
    return node_->node_class().kind == FamilyKinds<T>::type::template index_of<U>() ? static_cast<const U*>(node_)
                                                                                    : nullptr;
  else
    return &node_->node_class() == &node_class_of<U>() ? static_cast<const U*>(node_) : nullptr;
}

// A handle known to hold kind U, as a handle of U.
template <class U, class T>
Ref<U> cast(const Ref<T>& handle) {
  support::require(handle && &handle->node_class() == &node_class_of<U>(), "cast to a kind the node does not have");
  return Ref<U>(static_cast<const U*>(handle.get()));
}

inline void Node::release() const {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) class_->destroy(this);
}

}  // namespace lathe::ir

// Lists of handles are most of what nodes hold beside themselves: a short one lies where nodes do.
template <class T>
struct std::allocator<lathe::ir::Ref<T>> {
  using value_type = lathe::ir::Ref<T>;
  using size_type = size_t;
  using difference_type = ptrdiff_t;
  using propagate_on_container_move_assignment = std::true_type;
  using is_always_equal = std::true_type;
  allocator() = default;
  template <class U>
  allocator(const allocator<U>&) noexcept {}
  [[nodiscard]] value_type* allocate(size_t n) {
    return static_cast<value_type*>(lathe::support::slab_allocate(n * sizeof(value_type)));
  }
  void deallocate(value_type* at, size_t n) noexcept { lathe::support::slab_free(at, n * sizeof(value_type)); }
  friend bool operator==(const allocator&, const allocator&) { return true; }
};

template <class T>
struct std::hash<lathe::ir::Ref<T>> {
  size_t operator()(const lathe::ir::Ref<T>& handle) const { return std::hash<const void*>()(handle.get()); }
};
