// By libjpeg-turbo, with its defaults, which are what the specification asks for: the exact inverse transform, and
// smooth ("fancy") upsampling of colours.
#include <cstddef>
#include <cstdio>
// The header of libjpeg names FILE and size_t.
#include <jpeglib.h>

#include "runtime/kernels/images/decoding.h"

namespace lathe::images {

namespace {

// Files of a few kilobytes can have thousands of scans, each over the whole image.
constexpr int most_scans = 500;

Decoding& decoding_of(j_common_ptr info) { return *static_cast<Decoding*>(info->client_data); }

void fail(j_common_ptr info) {
  char text[JMSG_LENGTH_MAX];
  info->err->format_message(info, text);
  decoding_of(info).refuse("%s", text);
}
void say_nothing(j_common_ptr) {}
void emit_nothing(j_common_ptr, int) {}

boolean end_of_bytes(j_decompress_ptr info) {
  decoding_of(reinterpret_cast<j_common_ptr>(info)).refuse("the data end before the image does");
}

void watch(j_common_ptr info) {
  Decoding& decoding = decoding_of(info);
  decoding.check_stop();
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > most_scans)
    decoding.refuse("it has more than %d scans", most_scans);
}

}  // namespace

bool is_jpeg(Bytes bytes) { return bytes.starts_with("\xFF\xD8\xFF", 3); }

void read_jpeg(Decoding& decoding) {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  info.err = jpeg_std_error(&errors);
  errors.error_exit = fail;
  errors.output_message = say_nothing;
  errors.emit_message = emit_nothing;
  info.client_data = &decoding;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, decoding.encoded.at, decoding.encoded.count);
  info.src->fill_input_buffer = end_of_bytes;
  progress.progress_monitor = watch;
  info.progress = &progress;
  jpeg_read_header(&info, TRUE);
  if (info.num_components != 1 && info.num_components != 3 && info.num_components != 4)
    decoding.refuse("it has %d components", info.num_components);
  decoding.begin(info.image_width, info.image_height);
  jpeg_start_decompress(&info);
  auto* row = decoding.allocate<uint8_t>(uint64_t{info.output_width} * static_cast<uint64_t>(info.output_components));
  while (info.output_scanline < info.output_height) {
    const int64_t y = info.output_scanline;
    JSAMPROW rows[] = {row};
    jpeg_read_scanlines(&info, rows, 1);
    if (info.output_components == 1) decoding.put_grays(y, row);
    if (info.output_components == 3) decoding.put_colors(y, row, 3);
    if (info.output_components != 4) continue;
    // Adobe's programs write inks inverted, and say that they wrote the file.
    const uint8_t flip = info.saw_Adobe_marker ? 0xFF : 0;
    for (int64_t x = 0; x < decoding.width(); ++x) {
      const uint8_t* inks = row + 4 * x;
      decoding.put_inks(x, y, inks[0] ^ flip, inks[1] ^ flip, inks[2] ^ flip, inks[3] ^ flip);
    }
  }
}

}  // namespace lathe::images
