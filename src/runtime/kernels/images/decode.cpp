#include "abi/kernel_attributes.h"
#include "runtime/kernels/images/decoding.h"
#include "runtime/kernels/images/kernels.h"

namespace lathe::images {

namespace {

struct Format {
  const char* name;
  bool (*is)(Bytes bytes);
  void (*read)(Decoding& decoding);
};
constexpr Format formats[] = {
    {"JPEG", is_jpeg, read_jpeg},
    {"PNG", is_png, read_png},
    {"WebP", is_webp, read_webp},
    {"TIFF", is_tiff, read_tiff},
    {"JPEG 2000", is_jpeg2000, read_jpeg2000},
    {"BMP", is_bmp, read_bmp},
    {"PNM", is_pnm, read_pnm},
};

int32_t raise(const LatheRuntimeCall& call, int32_t code, const char* message) {
  return call.services->raise_error(call.call_state, code, message, call.node);
}

}  // namespace

int32_t decode(const LatheRuntimeCall* call) {
  int64_t order = 0;
  abi::AttributeReader attributes(call->attributes, call->attribute_bytes);
  if (!attributes.word(&order) || order < 0 || order > static_cast<int64_t>(PixelOrder::gray))
    return raise(*call, LATHE_INVALID_ARTIFACT, "the attributes of the kernel are damaged");
  const DLTensor* encoded = call->input_count == 1 ? call->values->tensor(call->inputs[0]) : nullptr;
  if (encoded == nullptr || encoded->ndim != 1 || encoded->dtype.code != kDLUInt || encoded->dtype.bits != 8 ||
      encoded->dtype.lanes != 1 || call->output_count != 1)
    return raise(*call, LATHE_INVALID_ARTIFACT, "the kernel takes bytes and gives one image");
  const Bytes bytes{static_cast<const uint8_t*>(encoded->data) + encoded->byte_offset,
                    static_cast<uint64_t>(encoded->shape[0])};
  for (const Format& format : formats) {
    if (!format.is(bytes)) continue;
    Decoding decoding(call, bytes, static_cast<PixelOrder>(order));
    return decoding.run(format.name, format.read);
  }
  return raise(*call, LATHE_CHECK_FAILED,
               bytes.count == 0
                   ? "there are no bytes of an image to decode"
                   : "the bytes are no image of a known format: BMP, JPEG, JPEG 2000, PNG, PNM (P1 to P6), "
                     "TIFF or WebP");
}

}  // namespace lathe::images
