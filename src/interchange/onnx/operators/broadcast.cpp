#include "interchange/onnx/operators/broadcast.h"

namespace lathe::onnx::operators {

Expr aligned_at(NodeImport& c, const Expr& x, int64_t axis, int64_t rank) {
  Shape shape = *relax::as_tensor(x)->shape;
  for (int64_t d = axis + static_cast<int64_t>(shape.size()); d < rank; ++d) shape.push_back(ir::int64(1));
  return c.reshape(x, std::move(shape));
}

std::pair<Expr, Expr> broadcast_operands(NodeImport& c) {
  const Expr a = c.input(0);
  Expr b = c.input(1);
  if (c.version < 7) {
    c.attributes.ignore("broadcast");
    if (c.attributes.has("axis")) {
      const int64_t axis = c.axis(c.attributes.integer("axis"), c.rank(0));
      b = aligned_at(c, b, axis, c.rank(0));
    }
  }
  return {a, b};
}

}  // namespace lathe::onnx::operators
