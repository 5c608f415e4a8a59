// By libpng. Samples of 16 bits lose their lower byte, alpha is left out, palettes become their colours.
#include <png.h>

#include "runtime/kernels/images/decoding.h"

namespace lathe::images {

namespace {

void fail(png_structp png, png_const_charp text) { static_cast<Decoding*>(png_get_error_ptr(png))->refuse("%s", text); }
void say_nothing(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, size_t count) {
  auto& left = *static_cast<Bytes*>(png_get_io_ptr(png));
  if (count > left.count) png_error(png, "the data end before the image does");
  std::memcpy(to, left.at, count);
  left.at += count;
  left.count -= count;
}

}  // namespace

bool is_png(Bytes bytes) { return bytes.starts_with("\x89PNG\r\n\x1A\n", 8); }

void read_png(Decoding& decoding) {
  Bytes left = decoding.encoded;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoding, fail, say_nothing);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) decoding.refuse("libpng cannot be used");
  png_set_read_fn(png, &left, read_bytes);
  png_read_info(png, info);
  decoding.begin(png_get_image_width(png, info), png_get_image_height(png, info));
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  const int channels = png_get_channels(png, info);
  const uint64_t row_bytes = png_get_rowbytes(png, info);
  if ((channels != 1 && channels != 3) || row_bytes != static_cast<uint64_t>(decoding.width() * channels))
    decoding.refuse("libpng gives %d channels", channels);
  // Passes of an interlaced image build on each other.
  const uint64_t kept = passes > 1 ? static_cast<uint64_t>(decoding.height()) : 1;
  auto* rows = decoding.allocate<uint8_t>(kept * row_bytes);
  for (int pass = 0; pass < passes; ++pass)
    for (int64_t y = 0; y < decoding.height(); ++y) {
      uint8_t* row = passes > 1 ? rows + static_cast<uint64_t>(y) * row_bytes : rows;
      png_read_row(png, row, nullptr);
      if (pass + 1 < passes)
        decoding.check_stop();
      else if (channels == 1)
        decoding.put_grays(y, row);
      else
        decoding.put_colors(y, row, 3);
    }
}

}  // namespace lathe::images
