#include "ops/layouts.h"

namespace lathe::ops {

Result<te::topi::Layout> layout_of(const InferContext& c, const std::string& name, size_t rank) {
  if (name != "NCHW" && name != "NHWC")
    return relax::wrong(codes::wrong_attribute, std::string(c.op.name) + " has no layout '" + name + "'");
  if (rank < 3)
    return relax::wrong(codes::wrong_rank, std::string(c.op.name) + " takes [batch, channels, spatial…], not " +
                                               relax::text_of(*c.tensor(0)));
  return te::topi::Layout{.channels_last = name == "NHWC", .rank = rank};
}

Shape spatial_extents(const Shape& shape, const te::topi::Layout& layout) {
  Shape extents;
  for (size_t d = 0; d < layout.spatial_rank(); ++d) extents.push_back(shape[layout.spatial(d)]);
  return extents;
}

}  // namespace lathe::ops
