#include "graph/padding/zeros.h"

#include "ops/attributes.h"

namespace lathe::graph {

bool pads_zeros(const relax::Call& pad) {
  if (static_cast<const ops::PadAttributes*>(pad.attributes.get())->mode != "constant") return false;
  if (pad.args.size() <= 3 || !pad.args[3]) return true;
  const auto* value = pad.args[3].as<relax::Constant>();
  return value && value->data->view().find_first_not_of('\0') == std::string_view::npos;
}

}  // namespace lathe::graph
