#include "graph/channels_first.h"

#include "ops/operators.h"
#include "relax/infer.h"

namespace lathe::graph {

bool puts_channels_first(const relax::Call& call) {
  constexpr int64_t large = 512 << 10;  // bytes: half of what a second cache of 1 MB holds
  const auto* info = callee_operator(call) == &ops::permute_dims ? as_tensor(call.args[0]) : nullptr;
  const auto shape = info && info->shape ? constant_shape(*info->shape) : std::nullopt;
  if (!shape || shape->size() < 4) return false;
  const int64_t elements = std::accumulate(shape->begin(), shape->end(), int64_t{1}, std::multiplies<>());
  if (info->dtype.storage_bytes(elements) < large) return false;
  const std::vector<int64_t> axes = permuted_axes(call);
  const auto last = static_cast<int64_t>(axes.size()) - 1;
  std::vector<int64_t> wanted{0, last};
  for (int64_t axis = 1; axis < last; ++axis) wanted.push_back(axis);
  return axes == wanted;
}

}  // namespace lathe::graph
