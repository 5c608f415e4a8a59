// PBM, PGM and PPM, as text (P1 to P3) and as bytes (P4 to P6).
#include "runtime/kernels/images/decoding.h"

namespace lathe::images {

namespace {

bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

struct Reader {
  Decoding& decoding;
  Bytes left;

  uint8_t next() {
    if (left.count == 0) decoding.refuse("the data end before the image does");
    --left.count;
    return *left.at++;
  }
  // The next character that is in no comment and no space.
  uint8_t next_sign() {
    for (;;) {
      const uint8_t c = next();
      if (c == '#')
        while (left.count > 0 && *left.at != '\n' && *left.at != '\r') next();
      else if (!is_space(c))
        return c;
    }
  }
  // Up to the character behind it, which is taken, too: one space parts the header from the bytes.
  int64_t number(int64_t most, const char* what) {
    int64_t value = 0;
    for (uint8_t c = next_sign();; c = next()) {
      if (is_space(c)) return value;
      if (c < '0' || c > '9') decoding.refuse("its %s has a character that is no digit", what);
      value = value * 10 + (c - '0');
      if (value > most) decoding.refuse("its %s is above %lld", what, static_cast<long long>(most));
      if (left.count == 0) return value;
    }
  }
};

}  // namespace

bool is_pnm(Bytes bytes) {
  return bytes.count > 2 && bytes.at[0] == 'P' && bytes.at[1] >= '1' && bytes.at[1] <= '6' &&
         (is_space(bytes.at[2]) || bytes.at[2] == '#');
}

void read_pnm(Decoding& decoding) {
  const int kind = decoding.encoded.at[1] - '1';
  const bool is_text = kind < 3, is_bits = kind % 3 == 0, is_color = kind % 3 == 2;
  Reader reader{decoding, {decoding.encoded.at + 2, decoding.encoded.count - 2}};
  const int64_t width = reader.number(INT32_MAX, "width"), height = reader.number(INT32_MAX, "height");
  const int64_t most = is_bits ? 1 : reader.number(65535, "greatest value");
  if (most == 0) decoding.refuse("its greatest value is 0");
  // The least that so many samples take, so that a short file does not get a large image.
  const int64_t samples = is_color ? 3 : 1, bytes = most > 255 ? 2 : 1;
  const uint64_t row_bytes = is_bits && !is_text ? static_cast<uint64_t>(width + 7) / 8
                                                 : static_cast<uint64_t>(width * samples * (is_text ? 1 : bytes));
  if (height > 0 && row_bytes > reader.left.count / static_cast<uint64_t>(height))
    decoding.refuse("the data end before the image does");
  decoding.begin(width, height);
  for (int64_t y = 0; y < height; ++y) {
    decoding.check_stop();
    uint8_t packed = 0;
    for (int64_t x = 0; x < width; ++x) {
      if (is_bits) {
        if (is_text || x % 8 == 0) packed = is_text ? reader.next_sign() : reader.next();
        if (is_text && packed != '0' && packed != '1') decoding.refuse("a bit of it is neither 0 nor 1");
        decoding.put(x, y, (is_text ? packed == '1' : (packed >> (7 - x % 8) & 1) != 0) ? 0 : 255);
        continue;
      }
      uint8_t color[3];
      for (int64_t k = 0; k < samples; ++k) {
        int64_t value = is_text ? reader.number(most, "sample") : reader.next();
        if (!is_text && bytes == 2) value = value << 8 | reader.next();
        color[k] = clipped((value * 255 + most / 2) / most);
      }
      if (is_color)
        decoding.put(x, y, color[0], color[1], color[2]);
      else
        decoding.put(x, y, color[0]);
    }
  }
}

}  // namespace lathe::images
