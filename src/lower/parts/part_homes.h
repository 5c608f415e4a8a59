// Where the parts of concatenations and splits lie, so that they need no copy.
#pragma once

#include <unordered_set>

#include "ir/function.h"
#include "relax/call_tir.h"
#include "tir/parts.h"

namespace lathe::lower {

// Where a value lies in a whole, which is rows of `pitch` elements: in each, `width` of them behind the first `begin`.
struct Home {
  const ir::Node* whole = nullptr;  // the variable
  int64_t pitch = 0, begin = 0, width = 0;

  bool operator==(const Home&) const = default;
  bool is_beside(const Home& other) const {
    return whole == other.whole && pitch == other.pitch &&
           (begin + width <= other.begin || other.begin + other.width <= begin);
  }
};

// Finds homes for what a function's kernels compute: parts of concatenations in the whole, parts that splits take in
// what they are taken from.
class PartHomes {
 public:
  PartHomes(const ir::IRModule& module, const relax::Function& function);

  bool is_empty() const { return homes_.empty(); }
  // Where the value lies, or what it is a view of; null where it has memory of its own.
  const Home* find(const relax::Expr& e) const;
  // What `e` is a view of, or itself.
  const ir::Node* origin_of(const relax::Expr& e) const;
  // The call that the variable is bound to, of a kernel that may be changed; null of anything else.
  const relax::CallTir* call_of(const relax::Var& var) const;

  // Concatenations with parts in place, and splits all of whose parts are read where they come from.
  bool is_joined(const relax::Var& var) const { return joins_.count(var.get()) > 0; }
  bool is_split_in_place(const relax::CallTir& call) const { return splits_in_place_.count(&call) > 0; }
  // What a concatenation is made of, and where all of it lies.
  const tir::Parts& parts_of_joined(const relax::Var& var) const;
  Home home_of_joined(const relax::Var& var) const;

  // "12 values are computed or read where they are parts: 4096 bytes are not copied"
  std::string text() const;

 private:
  // One result of a kernel, views of it included.
  struct Computed {
    relax::Var var;
    const relax::CallTir* call;
    size_t output;  // of the kernel's
    std::vector<const relax::CallTir*> readers = {};
    bool has_other_uses = false;

    size_t param() const { return call->args.size() + output; }
  };
  using PartsOf = std::optional<tir::Parts> (*)(const tir::PrimFunc&);
  using KnownParts = std::unordered_map<std::string, std::optional<tir::Parts>>;  // by function

  // ---- what there is ----
  void look_at(const relax::Function& function);
  void add(const relax::Var& var, const relax::CallTir& call, size_t output);
  Computed* computed_at(const relax::Expr& e);
  void use(const relax::Expr& e);
  const tir::PrimFunc* kernel(const relax::CallTir& call) const;
  const tir::Parts* parts_of(const relax::CallTir& call, KnownParts& known, PartsOf parts) const;
  const tir::Parts* concatenation(const relax::CallTir& call) const;
  const tir::Parts* split(const relax::CallTir& call) const;

  // ---- where values lie ----
  const ir::Node* find_homes(const std::set<const ir::Node*>& excluded);
  std::optional<Home> home_of_parts(const Computed& joined, const tir::Parts& parts) const;
  void find_splits(const std::set<const ir::Node*>& excluded);
  void settle(const Computed& value, const Home& home);
  std::optional<Home> rows_of(const relax::Expr& tensor, const tir::Parts& parts) const;
  bool can_be_read_at(const Computed& value, const Home& home) const;
  bool is_part_of(const relax::CallTir& call, size_t param, const relax::Expr& tensor, const Home& home) const;
  const ir::Node* read_and_written() const;
  bool lies_in(const Home& home, const Computed& whole, size_t param) const;

  const ir::IRModule& module_;
  std::unordered_map<const ir::Node*, relax::CallTir> calls_;  // by the variable that they are bound to
  std::unordered_map<const ir::Node*, Computed> computed_;
  std::vector<const ir::Node*> order_;
  std::unordered_map<const ir::Node*, const ir::Node*> origin_;  // what a view is of
  std::unordered_map<const ir::Node*, Home> homes_;              // by the variable of what was computed
  std::unordered_set<const ir::Node*> joins_;
  std::unordered_set<const relax::CallTir*> splits_in_place_;
  std::unordered_set<const relax::CallTir*> wanted_;  // whose results, all at once, others than kernels use
  int64_t bytes_ = 0;                                 // that need no copy
  int64_t of_unknown_size_ = 0;                       // values that need none beside those
  mutable KnownParts concatenations_, splits_;
};

// The shape of a tensor; nothing where it is not known.
std::optional<relax::Shape> known_shape(const relax::Expr& e);

}  // namespace lathe::lower
