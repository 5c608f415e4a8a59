// Structural equality and hash of programs, up to the renaming of bound variables and buffers. Origins, ids, names of
// variables and derived fields do not count.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/node.h"
#include "ir/value.h"
#include "support/hash.h"

namespace lathe::ir {

// How a field takes part in equality and hashing.
enum class Role : uint8_t {
  use,     // compared
  define,  // variables and buffers inside are definitions: the two sides' are paired
  ignore,  // outside equality: names, ids, derived facts
};

// Which nodes of two programs were found equal: classes that grow, by union-find with path halving. A node on the left
// is another member than the same node on the right.
class EqualNodes {
 public:
  bool together(const Node* left, const Node* right);
  void unite(const Node* left, const Node* right);

 private:
  size_t member(std::unordered_map<const Node*, size_t>& side, const Node* n);
  size_t root(size_t member);
  std::unordered_map<const Node*, size_t> left_, right_;
  std::vector<size_t> parent_;
};

// One comparison of two programs; remembers which variables of the left are which of the right, and which shared nodes
// were found equal: it takes time linear in distinct nodes, however often they are shared.
class Equality {
 public:
  explicit Equality(bool map_free_vars) : map_free_vars_(map_free_vars) {}

  bool nodes(const NodeRef& a, const NodeRef& b);
  bool values(const Value& a, const Value& b);
  // Records `a` and `b` as the first difference, with the path that leads there.
  bool differ(std::string what);

  // Scope guards used by the derived comparison of fields.
  void enter(std::string_view field, Role role);
  void leave(Role role);
  void enter_index(size_t index);
  void leave_index();

  const std::optional<std::string>& difference() const { return difference_; }

 private:
  bool map_free_vars_;
  int defining_ = 0;
  std::unordered_map<const Node*, const Node*> forward_, backward_;
  EqualNodes equal_;
  std::vector<std::string> path_;
  std::optional<std::string> difference_;
};

// One hash of a program. Each node without identity is hashed by itself, so that what a shared node gave is kept; how
// nodes are shared does not count.
class StructuralHasher {
 public:
  explicit StructuralHasher(bool map_free_vars) : map_free_vars_(map_free_vars) {}
  void node(const NodeRef& n);
  void value(const Value& v);
  void word(uint64_t w) { hasher_.add(w); }
  void text(std::string_view t) { hasher_.add(t); }
  void enter(Role role) { defining_ += role == Role::define; }
  void leave(Role role) { defining_ -= role == Role::define; }
  support::Hash128 finish() const { return hasher_.finish(); }

 private:
  bool map_free_vars_;
  int defining_ = 0;
  std::unordered_map<const Node*, uint64_t> numbers_;
  // Free variables met so far; one that is defined after all makes what was kept worthless.
  std::unordered_set<const Node*> free_;
  // Hashes of shared nodes: outside definitions, and inside, where free variables are numbered.
  std::array<std::unordered_map<const Node*, support::Hash128>, 2> kept_;
  support::Hasher hasher_;
};

// Whether two programs are the same up to bound names; with `map_free_vars`, free variables may be paired too.
bool structural_equal(const NodeRef& a, const NodeRef& b, bool map_free_vars = false);
// Where two programs first differ ("main.body.extent: 4 is not 8"), or nothing when they are equal.
std::optional<std::string> first_difference(const NodeRef& a, const NodeRef& b, bool map_free_vars = false);
// Equal programs have equal hashes. Free variables hash by identity unless `map_free_vars`: then the hash is stable
// across processes.
support::Hash128 structural_hash(const NodeRef& n, bool map_free_vars = true);

}  // namespace lathe::ir
