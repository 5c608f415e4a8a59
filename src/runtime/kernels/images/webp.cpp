// By libwebp. Of an animation the first frame, on black. Alpha is left out.
#include <webp/decode.h>
#include <webp/demux.h>

#include "runtime/kernels/images/decoding.h"

namespace lathe::images {

namespace {

const char* text_of(int status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "there is no memory";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it uses a feature that libwebp does not have";
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "the data end before the image does";
    default:
      return "the data are damaged";
  }
}

// A picture of `width` by `height` to `x`, `y`.
void read_frame(Decoding& decoding, Bytes bytes, int64_t x, int64_t y, int64_t width, int64_t height) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) decoding.refuse("libwebp is of another version");
  const bool is_gray = decoding.order == PixelOrder::gray;
  uint8_t* colors = is_gray ? decoding.allocate<uint8_t>(static_cast<uint64_t>(3 * width * height)) : nullptr;
  const int64_t stride = 3 * (is_gray ? width : decoding.width());
  config.output.colorspace = decoding.order == PixelOrder::bgr ? MODE_BGR : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = is_gray ? colors : decoding.pixel(x, y);
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size = static_cast<size_t>(stride * (height - 1) + 3 * width);
  const int status = WebPDecode(bytes.at, bytes.count, &config);
  if (status != VP8_STATUS_OK) decoding.refuse("%s", text_of(status));
  for (int64_t row = 0; is_gray && row < height; ++row)
    for (int64_t column = 0; column < width; ++column) {
      const uint8_t* color = colors + row * stride + 3 * column;
      decoding.put(x + column, y + row, color[0], color[1], color[2]);
    }
}

void read_first_frame(Decoding& decoding, int64_t width, int64_t height) {
  const WebPData data{decoding.encoded.at, decoding.encoded.count};
  WebPDemuxer* demuxer = WebPDemux(&data);
  WebPIterator frame;
  if (demuxer == nullptr || !WebPDemuxGetFrame(demuxer, 1, &frame)) decoding.refuse("it has no whole frame");
  if (frame.x_offset < 0 || frame.y_offset < 0 || frame.width < 1 || frame.height < 1 ||
      frame.width > width - frame.x_offset || frame.height > height - frame.y_offset)
    decoding.refuse("its first frame is not within it");
  read_frame(decoding, {frame.fragment.bytes, frame.fragment.size}, frame.x_offset, frame.y_offset, frame.width,
             frame.height);
}

}  // namespace

bool is_webp(Bytes bytes) {
  return bytes.starts_with("RIFF", 4) && bytes.count >= 12 && std::memcmp(bytes.at + 8, "WEBP", 4) == 0;
}

void read_webp(Decoding& decoding) {
  const Bytes bytes = decoding.encoded;
  WebPBitstreamFeatures features;
  const int status = WebPGetFeatures(bytes.at, bytes.count, &features);
  if (status != VP8_STATUS_OK) decoding.refuse("%s", text_of(status));
  decoding.begin(features.width, features.height);
  if (features.has_animation)
    read_first_frame(decoding, features.width, features.height);
  else
    read_frame(decoding, bytes, 0, 0, features.width, features.height);
}

}  // namespace lathe::images
