// Bindings that become a function of their own, called where they stood.
#pragma once

#include "relax/expr.h"

namespace lathe::graph {

// Operators' calls with their variables, in program order; only the last one's value is used outside.
using Group = std::span<const relax::VarBinding* const>;

class Outliner {
 public:
  explicit Outliner(ir::IRModule& module) : module_(module) {}

  // The call that replaces the group: of a private function with the attribute "primitive", whose parameters are the
  // tensors that the group uses, or of an equal one that is there already (layers repeat; only where all extents are
  // known). The origin is that of binding number `anchor`, or of the first.
  relax::Binding call_of(Group group, size_t anchor);

 private:
  // What a group computes, by the order in which its values come up: equal where these are.
  struct Signature {
    std::vector<uint64_t> words;
    std::vector<ir::NodeRef> nodes;  // compared by structure
  };
  struct Outlined {
    Signature signature;
    std::string name;
  };
  struct Reading;  // of one group

  std::string name_of(const Reading& reading, Group group, const ir::Origin& origin);
  std::string unique_name(Group group) const;

  ir::IRModule& module_;
  std::unordered_map<support::Hash128, std::vector<Outlined>> outlined_;
};

}  // namespace lathe::graph
