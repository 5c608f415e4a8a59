// Rewriting a whole kernel, the shapes of its buffers included.
#pragma once

#include "ir/visit.h"

namespace lathe::lower {

// What is declared once (buffers, blocks' variables) stays one wherever it is used.
class KernelRewriter : public ir::Rewriter {
 protected:
  // What a node without an identity becomes; its parts are rewritten already.
  virtual ir::NodeRef changed(ir::NodeRef node) = 0;

  ir::NodeRef visit(ir::NodeRef node) override {
    if (!node->node_class().has_identity) return changed(descend(std::move(node)));
    const auto known = declared_.find(node.get());
    if (known != declared_.end()) return known->second.second;
    ir::NodeRef rewritten = descend(node);
    declared_.emplace(node.get(), std::pair(node, rewritten));
    return rewritten;
  }

 private:
  std::unordered_map<const ir::Node*, std::pair<ir::NodeRef, ir::NodeRef>> declared_;  // before and after
};

}  // namespace lathe::lower
