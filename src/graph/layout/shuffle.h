// Channels of an image that are taken for several axes, some of which go elsewhere: a shuffle of the channels, or parts
// of them that go among the pixels, as depth to space puts them.
#pragma once

#include "graph/layout/forms.h"

namespace lathe::graph {

struct Shuffle {
  Expr source;                              // [batch, channels, spatial…]
  Shape parts;                              // of its channels
  std::vector<int64_t> channels;            // those that stay, in their new order
  std::vector<std::vector<int64_t>> among;  // for each spatial axis, those that go behind it into one axis

  bool moves_pixels() const { return channels.size() < parts.size(); }
};

// What a reshape to `result` merges, where it ends such a shuffle.
std::optional<Shuffle> shuffle_of(const Emitter& emitter, const Call& merging, const Shape& result);

// The same of the source with its channels last, which gives the result with its channels last.
Result<Expr> shuffled(Emitter& emitter, const Expr& source_last, const Shuffle& shuffle, const Shape& result);

}  // namespace lathe::graph
