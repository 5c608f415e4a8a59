// One call of the decoder: the encoded bytes, the pixels that come of them, and the way out.
//
// The bytes are a stranger's, and the codecs are C libraries that print, end the process or forget their memory where a
// file is damaged. So a decoding is left from anywhere, by `refuse`, with a jump to where it began: what codecs
// allocate is the decoding's (codec_world.cpp) and goes with it. Nothing with a destructor may live in a reader.
#pragma once

#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <cstring>

#include "abi/runtime_kernel.h"

namespace lathe::images {

struct Bytes {
  const uint8_t* at;
  uint64_t count;

  bool starts_with(const char* text, uint64_t length) const {
    return count >= length && std::memcmp(at, text, length) == 0;
  }
};

enum class PixelOrder : int64_t { rgb, bgr, gray };

// Brightness of a colour by ITU-R BT.601, as Pillow rounds it.
constexpr uint8_t brightness(uint32_t red, uint32_t green, uint32_t blue) {
  return static_cast<uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}
// a * b / 255, rounded.
constexpr uint32_t product_of_255ths(uint32_t a, uint32_t b) {
  const uint32_t product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}
constexpr uint8_t clipped(int64_t value) { return static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value); }

class Decoding {
 public:
  Decoding(const LatheRuntimeCall* call, Bytes bytes, PixelOrder pixel_order)
      : encoded(bytes), order(pixel_order), call_(*call) {}

  const Bytes encoded;
  const PixelOrder order;

  // Lets `read` decode, frees all that it allocated, and gives what the kernel returns. `format` is for messages.
  int32_t run(const char* format, void (*read)(Decoding&));

  // The way out: the image cannot be decoded, and why.
  [[noreturn]] __attribute__((format(printf, 2, 3))) void refuse(const char* why, ...);
  [[noreturn]] void refuse_list(const char* why, va_list arguments);
  // For a status that was said already.
  [[noreturn]] void leave(int32_t status);
  // Asked for each row, and with each allocation: leaves when the run is to end.
  void check_stop() {
    if (__atomic_load_n(&static_cast<const LatheCallState*>(call_.call_state)->stop, __ATOMIC_RELAXED) != 0)
      leave(call_.services->stop(call_.call_state));
  }

  // Memory that counts towards the run's limit, aligned for anything; freed when the decoding ends. Leaves where there
  // is none.
  void* allocate(uint64_t bytes);
  template <typename T>
  T* allocate(uint64_t count) {
    if (count > INT64_MAX / sizeof(T)) count = INT64_MAX / sizeof(T);
    return static_cast<T*>(allocate(count * sizeof(T)));
  }
  void* reallocate(void* memory, uint64_t bytes);
  void release(void* memory);

  // Makes the result, before anything is decoded: what the header says must be within the run's limit. All zeros.
  void begin(int64_t width, int64_t height);
  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  int64_t channels() const { return order == PixelOrder::gray ? 1 : 3; }
  uint8_t* pixel(int64_t x, int64_t y) const { return pixels_ + (y * width_ + x) * channels(); }

  void put(int64_t x, int64_t y, uint8_t red, uint8_t green, uint8_t blue) const {
    uint8_t* at = pixel(x, y);
    if (order == PixelOrder::gray) {
      *at = brightness(red, green, blue);
      return;
    }
    const bool is_rgb = order == PixelOrder::rgb;
    at[0] = is_rgb ? red : blue;
    at[1] = green;
    at[2] = is_rgb ? blue : red;
  }
  void put(int64_t x, int64_t y, uint8_t gray) const { std::memset(pixel(x, y), gray, channels()); }
  // Ink: 255 is full.
  void put_inks(int64_t x, int64_t y, uint8_t cyan, uint8_t magenta, uint8_t yellow, uint8_t black) const {
    const uint32_t light = 255u - black;
    const auto left = [light](uint8_t ink) { return static_cast<uint8_t>(light - product_of_255ths(ink, light)); };
    put(x, y, left(cyan), left(magenta), left(yellow));
  }
  // A whole row; a colour's three bytes lie every `step` bytes.
  void put_colors(int64_t y, const uint8_t* row, int step) {
    check_stop();
    for (int64_t x = 0; x < width_; ++x, row += step) put(x, y, row[0], row[1], row[2]);
  }
  void put_grays(int64_t y, const uint8_t* row) {
    check_stop();
    for (int64_t x = 0; x < width_; ++x) put(x, y, row[x]);
  }

 private:
  struct Block;
  void release_all();

  const LatheRuntimeCall& call_;
  const char* format_ = "";
  Block* blocks_ = nullptr;  // all that is allocated
  int32_t status_ = 0;
  std::jmp_buf begin_;
  uint8_t* pixels_ = nullptr;
  int64_t width_ = 0, height_ = 0;
};

// The decoding that this thread is in; what codecs call knows it by that.
Decoding& current_decoding();

// One reader a format: x.cpp. `is_x` looks at the first bytes.
#define LATHE_IMAGE_FORMATS(X) X(jpeg) X(png) X(webp) X(tiff) X(jpeg2000) X(bmp) X(pnm)
#define LATHE_DECLARE(format)    \
  bool is_##format(Bytes bytes); \
  void read_##format(Decoding& decoding);
LATHE_IMAGE_FORMATS(LATHE_DECLARE)
#undef LATHE_DECLARE

}  // namespace lathe::images
