// image_decode: the pixels of an encoded image, by a kernel of the runtime (src/runtime/kernels/images).
#include "abi/kernel_attributes_writer.h"
#include "ops/rule.h"
#include "relax/infer.h"

namespace lathe::ops {

namespace {

// The kernel knows an order by its place.
constexpr std::string_view pixel_orders[] = {"rgb", "bgr", "gray"};

Result<StructInfo> infer_image_decode(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  if (x.dtype != DType::uint(8))
    return relax::wrong(codes::dtype_not_supported, "image_decode takes bytes of uint8, not " + relax::text_of(x));
  if (x.ndim >= 0 && x.ndim != 1)
    return relax::wrong(codes::wrong_rank, "image_decode takes a vector of bytes, not " + relax::text_of(x));
  const auto& order = c.attrs<ImageDecodeAttributes>().order;
  if (std::find(std::begin(pixel_orders), std::end(pixel_orders), order) == std::end(pixel_orders))
    return relax::wrong(codes::wrong_attribute, "order is '" + order + "', not rgb, bgr or gray");
  return relax::tensor_info_of_rank(3, DType::uint(8));
}

std::string image_decode_attributes(const relax::Call& call) {
  const auto& a = static_cast<const ImageDecodeAttributes&>(*call.attributes);
  const auto* place = std::find(std::begin(pixel_orders), std::end(pixel_orders), a.order);
  return abi::AttributeWriter().word(place - std::begin(pixel_orders)).take();
}

}  // namespace

const relax::Operator image_decode{
    .name = "image_decode",
    .inputs = {{"encoded"}},
    .attributes = relax::attributes_of<ImageDecodeAttributes>(),
    .infer = infer_image_decode,
    .meaning = relax::RuntimeKernel{"images.decode", image_decode_attributes},
    .reference = "PIL.Image.open(io.BytesIO(encoded)).convert(order)",
};

}  // namespace lathe::ops
