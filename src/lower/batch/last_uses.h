// Where a function's variables are used last.
#pragma once

#include <algorithm>

#include "graph/rewrite_bindings.h"
#include "ir/visit.h"

namespace lathe::lower {

class LastUses {
 public:
  LastUses(const relax::Function& function, const std::vector<relax::Binding>& bindings) {
    for (size_t i = 0; i < bindings.size(); ++i) {
      const auto* bound = bindings[i].as<relax::VarBinding>();
      see(bound ? bound->value : bindings[i].as<relax::MatchCast>()->value, i);
    }
    see(function->body.as<relax::SeqExpr>()->body, bindings.size());
  }

  // The number of the binding that uses `var` last; of the function's result beyond all; nothing where nobody does.
  std::optional<size_t> operator()(const ir::Node* var) const {
    const auto it = last_.find(var);
    return it == last_.end() ? std::nullopt : std::optional(it->second);
  }

 private:
  void see(const relax::Expr& e, size_t at) {
    ir::post_order(e, [&](const ir::NodeRef& n) {
      if (n.is<relax::VarNode>()) last_[n.get()] = at;
    });
  }

  std::unordered_map<const ir::Node*, size_t> last_;
};

}  // namespace lathe::lower
