// Operators on encoded images.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/control/loop.h"
#include "interchange/onnx/operators/tables.h"
#include "relax/infer.h"

namespace lathe::onnx::operators {

namespace {

// The specification gives an empty tensor for what cannot be decoded; here the run fails and says why, as it does in
// the onnx package's own evaluator.
void image_decoder(NodeImport& c) {
  const std::string format = c.attributes.word("pixel_format", {"RGB", "BGR", "Grayscale"});
  if (c.rank(0) != 1)
    c.fail(codes::wrong_node, "an image is decoded from a vector of bytes, but the input has " +
                                  std::to_string(c.rank(0)) + " dimensions");
  const bool is_gray = format == "Grayscale";
  const Expr image = c.call(ops::image_decode, {c.input(0)},
                            {{"order", is_gray           ? "gray"
                                       : format == "BGR" ? "bgr"
                                                         : "rgb"}});
  c.set(named(c, image, {std::nullopt, std::nullopt, ir::int64(is_gray ? 1 : 3)}, "image"));
}

const OperatorRow image_rows[] = {
    {"ImageDecoder", {20}, 1, 1, 1, image_decoder},
};

}  // namespace

Table images() { return image_rows; }

}  // namespace lathe::onnx::operators
