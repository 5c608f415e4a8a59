#include "ir/node_name.h"

#include "support/diagnostic.h"

namespace lathe::ir {

std::string node_name(const NodeRef& node) {
  if (!node || !node->origin()) return "";
  const auto* model = std::get_if<support::ModelNode>(node->origin().get());
  return model ? model->node : support::render(*node->origin());
}

}  // namespace lathe::ir
