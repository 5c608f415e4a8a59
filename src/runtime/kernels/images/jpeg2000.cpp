// By OpenJPEG: files (JP2) and bare code streams. Samples of more than 8 bits are rounded to 8, alpha is left out.
#include <openjpeg.h>

#include "runtime/kernels/images/decoding.h"

namespace lathe::images {

namespace {

struct Stream {
  Decoding& decoding;
  uint64_t at;
  char first_error[200];
};

OPJ_SIZE_T read_stream(void* to, OPJ_SIZE_T count, void* user) {
  auto& stream = *static_cast<Stream*>(user);
  const Bytes& bytes = stream.decoding.encoded;
  const uint64_t left = bytes.count - stream.at, taken = count < left ? count : left;
  if (taken == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, bytes.at + stream.at, taken);
  stream.at += taken;
  return taken;
}
OPJ_BOOL seek_stream(OPJ_OFF_T to, void* user) {
  auto& stream = *static_cast<Stream*>(user);
  if (to < 0 || static_cast<uint64_t>(to) > stream.decoding.encoded.count) return OPJ_FALSE;
  stream.at = static_cast<uint64_t>(to);
  return OPJ_TRUE;
}
// By how far it went, less than asked for at the end.
OPJ_OFF_T skip_stream(OPJ_OFF_T count, void* user) {
  auto& stream = *static_cast<Stream*>(user);
  const uint64_t left = stream.decoding.encoded.count - stream.at;
  if (count < 0) return -1;
  const uint64_t taken = static_cast<uint64_t>(count) < left ? static_cast<uint64_t>(count) : left;
  stream.at += taken;
  return static_cast<OPJ_OFF_T>(taken);
}

// OpenJPEG goes on for a while behind an error: the first is kept, its last line break is not.
void keep_error(const char* text, void* user) {
  auto& stream = *static_cast<Stream*>(user);
  if (stream.first_error[0] != 0) return;
  std::strncpy(stream.first_error, text, sizeof(stream.first_error) - 1);
  for (size_t end = std::strlen(stream.first_error); end > 0 && stream.first_error[end - 1] <= ' ';)
    stream.first_error[--end] = 0;
}
void say_nothing(const char*, void*) {}

[[noreturn]] void refuse(const Stream& stream) {
  stream.decoding.refuse("%s", stream.first_error[0] != 0 ? stream.first_error : "the data are damaged");
}

// The sample of a component that covers a point of the image, as 8 bits.
uint8_t sample_at(const opj_image_t& image, const opj_image_comp_t& component, int64_t x, int64_t y) {
  const int64_t column = (image.x0 + x) / component.dx - component.x0,
                row = (image.y0 + y) / component.dy - component.y0;
  const int64_t c = column < 0 ? 0 : column < component.w ? column : component.w - 1;
  const int64_t r = row < 0 ? 0 : row < component.h ? row : component.h - 1;
  int64_t value = component.data[r * component.w + c];
  if (component.sgnd) value += int64_t{1} << (component.prec - 1);
  if (component.prec > 8) return clipped((value + (int64_t{1} << (component.prec - 9))) >> (component.prec - 8));
  return clipped(value << (8 - component.prec));
}

void put_image(const Decoding& decoding, const opj_image_t& image, int64_t x, int64_t y) {
  const auto sample = [&](uint32_t component) { return sample_at(image, image.comps[component], x, y); };
  if (image.numcomps < 3) return decoding.put(x, y, sample(0));
  if (image.color_space == OPJ_CLRSPC_CMYK && image.numcomps > 3)
    return decoding.put_inks(x, y, sample(0), sample(1), sample(2), sample(3));
  if (image.color_space != OPJ_CLRSPC_SYCC) return decoding.put(x, y, sample(0), sample(1), sample(2));
  // ITU-R BT.601 over the full range, in steps of 1/65536.
  const int64_t light = int64_t{sample(0)} << 16 | 0x8000, blue = sample(1) - 128, red = sample(2) - 128;
  decoding.put(x, y, clipped((light + 91881 * red) >> 16), clipped((light - 22554 * blue - 46802 * red) >> 16),
               clipped((light + 116130 * blue) >> 16));
}

}  // namespace

bool is_jpeg2000(Bytes bytes) {
  return bytes.starts_with("\0\0\0\x0CjP  \r\n\x87\n", 12) || bytes.starts_with("\xFF\x4F\xFF\x51", 4);
}

void read_jpeg2000(Decoding& decoding) {
  Stream source{decoding, 0, {}};
  opj_codec_t* codec = opj_create_decompress(decoding.encoded.at[0] == 0 ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
  opj_stream_t* stream = opj_stream_default_create(OPJ_TRUE);
  if (codec == nullptr || stream == nullptr) decoding.refuse("OpenJPEG cannot be used");
  opj_set_info_handler(codec, say_nothing, nullptr);
  opj_set_warning_handler(codec, say_nothing, nullptr);
  opj_set_error_handler(codec, keep_error, &source);
  opj_stream_set_read_function(stream, read_stream);
  opj_stream_set_seek_function(stream, seek_stream);
  opj_stream_set_skip_function(stream, skip_stream);
  opj_stream_set_user_data(stream, &source, nullptr);
  opj_stream_set_user_data_length(stream, decoding.encoded.count);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* image = nullptr;
  if (!opj_setup_decoder(codec, &parameters) || !opj_read_header(stream, codec, &image)) refuse(source);
  const int64_t width = int64_t{image->x1} - image->x0, height = int64_t{image->y1} - image->y0;
  decoding.begin(width, height);
  if (!opj_decode(codec, stream, image)) refuse(source);
  for (uint32_t i = 0; i < image->numcomps; ++i) {
    const opj_image_comp_t& component = image->comps[i];
    if (component.data == nullptr || component.w == 0 || component.h == 0 || component.dx == 0 || component.dy == 0 ||
        component.prec == 0 || component.prec > 31)
      decoding.refuse("component %u has no samples", i);
  }
  if (image->numcomps == 0) decoding.refuse("it has no components");
  for (int64_t y = 0; y < height; ++y) {
    decoding.check_stop();
    for (int64_t x = 0; x < width; ++x) put_image(decoding, *image, x, y);
  }
}

}  // namespace lathe::images
