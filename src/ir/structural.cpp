#include "ir/structural.h"

#include <bit>

#include "ir/codes.h"
#include "ir/fields.h"

namespace lathe::ir {

namespace detail {

void each_child_in_value(const Value& value, ChildVisitor visit) {
  if (const auto* node = value.get<NodeRef>()) {
    if (*node) visit(*node);
  } else if (const auto* list = value.get<Value::List>()) {
    for (const Value& item : *list) each_child_in_value(item, visit);
  } else if (const auto* map = value.get<Value::Map>()) {
    for (const auto& [name, item] : *map) each_child_in_value(item, visit);
  }
}

bool map_value(Value& value, ChildMap map) {
  bool changed = false;
  if (auto* node = std::get_if<NodeRef>(&value.data)) {
    if (!*node) return false;
    const Node* before = node->get();
    *node = map(std::move(*node));
    changed = node->get() != before;
  } else if (auto* list = std::get_if<Value::List>(&value.data)) {
    for (Value& item : *list) changed |= map_value(item, map);
  } else if (auto* entries = std::get_if<Value::Map>(&value.data)) {
    for (auto& [name, item] : *entries) changed |= map_value(item, map);
  }
  return changed;
}

void refuse_depth() {
  throw support::DiagnosticError(
      support::Diagnostic{.code = codes::too_deep,
                          .message = "the program is nested more than " + std::to_string(max_depth) + " levels deep",
                          .help = "bind intermediate results to names"});
}

}  // namespace detail

namespace {

std::string show(const Value& value) {
  if (const auto* v = value.get<bool>()) return *v ? "True" : "False";
  if (const auto* v = value.get<int64_t>()) return std::to_string(*v);
  if (const auto* v = value.get<double>()) return std::to_string(*v);
  if (const auto* v = value.get<std::string>()) return "\"" + *v + "\"";
  if (const auto* v = value.get<DType>()) return v->str();
  return value.empty() ? "None" : "a compound value";
}

}  // namespace

size_t EqualNodes::root(size_t member) {
  while (parent_[member] != member) member = parent_[member] = parent_[parent_[member]];
  return member;
}

size_t EqualNodes::member(std::unordered_map<const Node*, size_t>& side, const Node* n) {
  const auto [at, added] = side.emplace(n, parent_.size());
  if (added) parent_.push_back(at->second);
  return root(at->second);
}

bool EqualNodes::together(const Node* left, const Node* right) {
  const auto l = left_.find(left);
  const auto r = right_.find(right);
  return l != left_.end() && r != right_.end() && root(l->second) == root(r->second);
}

void EqualNodes::unite(const Node* left, const Node* right) { parent_[member(left_, left)] = member(right_, right); }

bool Equality::differ(std::string what) {
  if (!difference_) {
    std::string path;
    for (const std::string& part : path_) path += (path.empty() || part[0] == '[' ? "" : ".") + part;
    difference_ = (path.empty() ? "" : path + ": ") + std::move(what);
  }
  return false;
}

void Equality::enter(std::string_view field, Role role) {
  path_.emplace_back(field);
  defining_ += role == Role::define;
}
void Equality::leave(Role role) {
  if (difference_) return;
  path_.pop_back();
  defining_ -= role == Role::define;
}
void Equality::enter_index(size_t index) { path_.push_back("[" + std::to_string(index) + "]"); }
void Equality::leave_index() {
  if (!difference_) path_.pop_back();
}

bool Equality::nodes(const NodeRef& a, const NodeRef& b) {
  if (!a || !b) return (!a && !b) || differ(a ? "present on the left only" : "present on the right only");
  const NodeClass& kind = a->node_class();
  if (&kind != &b->node_class()) return differ(std::string(kind.name) + " is not " + std::string(b->node_class().name));
  if (!kind.has_identity) {
    // Variables are paired once and for all, so what was equal stays equal. A node with one reference, compared with
    // another such, is met once for each time that its parent is.
    const bool shared = a->depth() > 1 && !(a->unique() && b->unique());
    if (shared && equal_.together(a.get(), b.get())) return true;
    if (!kind.equal(*a, *b, *this)) return false;
    if (shared) equal_.unite(a.get(), b.get());
    return true;
  }

  const auto left = forward_.find(a.get());
  const auto right = backward_.find(b.get());
  if (left != forward_.end() || right != backward_.end()) {
    const bool paired = left != forward_.end() && left->second == b.get();
    return paired || differ("a different " + std::string(kind.name));
  }
  if (!defining_ && !map_free_vars_ && a.get() != b.get()) return differ("a different free " + std::string(kind.name));
  if (a.get() != b.get()) {
    ++defining_;
    const bool same = kind.equal(*a, *b, *this);
    --defining_;
    if (!same) return false;
  }
  forward_[a.get()] = b.get();
  backward_[b.get()] = a.get();
  return true;
}

bool Equality::values(const Value& a, const Value& b) {
  if (a.data.index() != b.data.index()) return differ(show(a) + " is not " + show(b));
  if (const auto* node = a.get<NodeRef>()) return nodes(*node, *b.get<NodeRef>());
  if (const auto* list = a.get<Value::List>()) {
    const auto& other = *b.get<Value::List>();
    if (list->size() != other.size()) return differ("lists of different length");
    for (size_t i = 0; i < list->size(); ++i) {
      enter_index(i);
      if (!values((*list)[i], other[i])) return false;
      leave_index();
    }
    return true;
  }
  if (const auto* map = a.get<Value::Map>()) {
    const auto& other = *b.get<Value::Map>();
    for (const auto& [name, item] : other)
      if (!map->count(name)) return differ("'" + name + "' is on the right only");
    for (const auto& [name, item] : *map) {
      const auto it = other.find(name);
      if (it == other.end()) return differ("'" + name + "' is on the left only");
      enter(name, Role::use);
      if (!values(item, it->second)) return false;
      leave(Role::use);
    }
    return true;
  }
  bool same = true;
  if (const auto* v = a.get<bool>()) same = *v == *b.get<bool>();
  if (const auto* v = a.get<int64_t>()) same = *v == *b.get<int64_t>();
  // Bits, so that NaN equals itself and 0.0 differs from -0.0.
  if (const auto* v = a.get<double>()) same = std::bit_cast<uint64_t>(*v) == std::bit_cast<uint64_t>(*b.get<double>());
  if (const auto* v = a.get<std::string>()) same = *v == *b.get<std::string>();
  if (const auto* v = a.get<DType>()) same = *v == *b.get<DType>();
  return same || differ(show(a) + " is not " + show(b));
}

void StructuralHasher::node(const NodeRef& n) {
  if (!n) return word(0);
  const NodeClass& kind = n->node_class();
  if (!kind.has_identity) {
    auto& kept = kept_[defining_ && !map_free_vars_];
    const bool shared = n->depth() > 1 && !n->unique();
    const auto found = shared ? kept.find(n.get()) : kept.end();
    support::Hash128 hash;
    if (found != kept.end()) {
      hash = found->second;
    } else {
      const size_t numbered = numbers_.size();
      const support::Hasher outer = std::exchange(hasher_, {});
      text(kind.name);
      kind.hash(*n, *this);
      hash = std::exchange(hasher_, outer).finish();
      // The first walk numbers variables and hashes what they are; from the second on it is their numbers alone.
      if (shared && numbers_.size() == numbered) kept.emplace(n.get(), hash);
    }
    word(hash.high);
    return word(hash.low);
  }
  if (const auto it = numbers_.find(n.get()); it != numbers_.end()) {
    word(it->second);
    return;
  }
  if (!defining_ && !map_free_vars_) {
    free_.insert(n.get());
    word(reinterpret_cast<uintptr_t>(n.get()));
    return;
  }
  text(kind.name);
  ++defining_;
  kind.hash(*n, *this);
  --defining_;
  numbers_.emplace(n.get(), 1 + numbers_.size());
  if (free_.erase(n.get()))
    for (auto& kept : kept_) kept.clear();
}

void StructuralHasher::value(const Value& v) {
  word(v.data.index());
  if (const auto* node = v.get<NodeRef>()) return this->node(*node);
  if (const auto* list = v.get<Value::List>()) {
    word(list->size());
    for (const Value& item : *list) value(item);
  }
  if (const auto* map = v.get<Value::Map>()) {
    word(map->size());
    for (const auto& [name, item] : *map) {
      text(name);
      value(item);
    }
  }
  if (const auto* x = v.get<bool>()) word(*x);
  if (const auto* x = v.get<int64_t>()) word(static_cast<uint64_t>(*x));
  if (const auto* x = v.get<double>()) word(std::bit_cast<uint64_t>(*x));
  if (const auto* x = v.get<std::string>()) text(*x);
  if (const auto* x = v.get<DType>())
    word(static_cast<uint64_t>(x->code) << 32 | static_cast<uint64_t>(x->bits) << 16 | x->lanes);
}

bool structural_equal(const NodeRef& a, const NodeRef& b, bool map_free_vars) {
  if (a.get() == b.get()) return true;
  if (!a || !b || &a->node_class() != &b->node_class()) return false;
  if (const auto *x = a.as<IntImm>(), *y = b.as<IntImm>(); x && y) return x->value == y->value && x->dtype == y->dtype;
  return Equality(map_free_vars).nodes(a, b);
}

std::optional<std::string> first_difference(const NodeRef& a, const NodeRef& b, bool map_free_vars) {
  Equality equality(map_free_vars);
  return equality.nodes(a, b) ? std::nullopt : equality.difference();
}

support::Hash128 structural_hash(const NodeRef& n, bool map_free_vars) {
  StructuralHasher hasher(map_free_vars);
  hasher.node(n);
  return hasher.finish();
}

}  // namespace lathe::ir
