// BMP of Windows and OS/2: palettes, 16 to 32 bits with masks, run lengths.
#include "runtime/kernels/images/decoding.h"

namespace lathe::images {

namespace {

enum Compression : uint32_t { plain = 0, runs_of_8 = 1, runs_of_4 = 2, masks = 3, masks_with_alpha = 6 };

struct Bitmap {
  Decoding& decoding;
  Bytes bytes;
  uint32_t header_bytes, bits, compression;
  int64_t width, height;
  bool is_top_down;
  uint64_t data;               // where the pixels begin
  uint8_t palette[256][3];     // red, green, blue
  uint32_t shift[3], most[3];  // of the masks

  uint32_t number(uint64_t at, int count) const {
    if (at > bytes.count || bytes.count - at < static_cast<uint64_t>(count))
      decoding.refuse("the data end before the image does");
    uint32_t value = 0;
    for (int i = 0; i < count; ++i) value |= static_cast<uint32_t>(bytes.at[at + static_cast<uint64_t>(i)]) << 8 * i;
    return value;
  }
  int64_t row(int64_t y) const { return is_top_down ? y : height - 1 - y; }
  void put_index(int64_t x, int64_t y, uint32_t index) const {
    const uint8_t* color = palette[index];
    decoding.put(x, row(y), color[0], color[1], color[2]);
  }
};

void read_header(Bitmap& b) {
  b.data = b.number(10, 4);
  b.header_bytes = b.number(14, 4);
  const bool is_old = b.header_bytes == 12;
  if (!is_old && (b.header_bytes < 40 || b.header_bytes > 124))
    b.decoding.refuse("its header has %u bytes", b.header_bytes);
  b.width = is_old ? b.number(18, 2) : int64_t{static_cast<int32_t>(b.number(18, 4))};
  b.height = is_old ? b.number(20, 2) : int64_t{static_cast<int32_t>(b.number(22, 4))};
  b.is_top_down = b.height < 0;
  if (b.is_top_down) b.height = -b.height;
  b.bits = b.number(is_old ? 24 : 28, 2);
  b.compression = is_old ? static_cast<uint32_t>(plain) : b.number(30, 4);
  const uint32_t bits = b.bits;
  const bool is_indexed = bits == 1 || bits == 2 || bits == 4 || bits == 8;
  const bool is_direct = bits == 16 || bits == 24 || bits == 32;
  const bool fits = b.compression == plain       ? is_indexed || is_direct
                    : b.compression == runs_of_8 ? bits == 8
                    : b.compression == runs_of_4 ? bits == 4
                                                 : bits == 16 || bits == 32;
  const bool is_known = b.compression <= masks || b.compression == masks_with_alpha;
  if (!fits || !is_known) b.decoding.refuse("%u bits a pixel with compression %u", bits, b.compression);
}

void read_palette(Bitmap& b) {
  std::memset(b.palette, 0, sizeof(b.palette));
  const bool is_old = b.header_bytes == 12;
  uint64_t count = is_old ? 0 : b.number(46, 4);
  if (count == 0 || count > uint64_t{1} << b.bits) count = uint64_t{1} << b.bits;
  const uint64_t entry = is_old ? 3 : 4, first = 14 + uint64_t{b.header_bytes};
  // Some files have fewer colours than they say; then the pixels begin earlier.
  if (b.data >= first && (b.data - first) / entry < count) count = (b.data - first) / entry;
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t color = b.number(first + i * entry, 3);
    for (int k = 0; k < 3; ++k) b.palette[i][k] = static_cast<uint8_t>(color >> (16 - 8 * k));
  }
}

void read_masks(Bitmap& b) {
  constexpr uint32_t usual[2][3] = {{0x7C00, 0x3E0, 0x1F}, {0xFF0000, 0xFF00, 0xFF}};
  const bool is_given = b.compression == masks || b.compression == masks_with_alpha;
  for (int k = 0; k < 3; ++k) {
    // In longer headers they are fields, behind a short one they follow: at the same place.
    const uint32_t mask = is_given ? b.number(54 + 4 * static_cast<uint64_t>(k), 4) : usual[b.bits == 16 ? 0 : 1][k];
    b.shift[k] = mask == 0 ? 0 : static_cast<uint32_t>(__builtin_ctz(mask));
    b.most[k] = mask >> b.shift[k];
    if ((b.most[k] & (uint64_t{b.most[k]} + 1)) != 0) b.decoding.refuse("the mask %08x has gaps", mask);
  }
}

void read_rows(Bitmap& b) {
  const uint64_t stride = (static_cast<uint64_t>(b.width) * b.bits + 31) / 32 * 4;
  if (b.data > b.bytes.count || stride > (b.bytes.count - b.data) / static_cast<uint64_t>(b.height))
    b.decoding.refuse("the data end before the image does");
  b.decoding.begin(b.width, b.height);
  for (int64_t y = 0; y < b.height; ++y) {
    b.decoding.check_stop();
    const uint8_t* row = b.bytes.at + b.data + static_cast<uint64_t>(y) * stride;
    for (int64_t x = 0; x < b.width; ++x) {
      if (b.bits <= 8) {
        const int64_t bit = x * b.bits;
        b.put_index(x, y, row[bit / 8] >> (8 - b.bits - bit % 8) & ((1u << b.bits) - 1));
      } else if (b.bits == 24) {
        b.decoding.put(x, b.row(y), row[3 * x + 2], row[3 * x + 1], row[3 * x]);
      } else {
        const int64_t at = x * b.bits / 8;
        const uint32_t low = row[at] | static_cast<uint32_t>(row[at + 1]) << 8;
        const uint32_t pixel = b.bits == 16 ? low : low | row[at + 2] << 16 | static_cast<uint32_t>(row[at + 3]) << 24;
        uint8_t color[3];
        for (int k = 0; k < 3; ++k) {
          const uint64_t value = pixel >> b.shift[k] & b.most[k];
          color[k] = b.most[k] == 0 ? 0 : static_cast<uint8_t>(value * 255 / b.most[k]);
        }
        b.decoding.put(x, b.row(y), color[0], color[1], color[2]);
      }
    }
  }
}

// Pairs of a count and a value; a count of 0 is an order: end of the row, end of the image, a jump, or pixels as they
// are. What is jumped over has the first colour.
void read_runs(Bitmap& b) {
  b.decoding.begin(b.width, b.height);
  for (int64_t y = 0; y < b.height; ++y)
    for (int64_t x = 0; x < b.width; ++x) b.put_index(x, y, 0);
  const bool is_nibbles = b.bits == 4;
  int64_t x = 0, y = 0;
  const auto put = [&](uint32_t index) {
    if (x < b.width && y < b.height) b.put_index(x, y, index);
    ++x;
  };
  for (uint64_t at = b.data; y < b.height;) {
    b.decoding.check_stop();
    const uint32_t count = b.number(at, 1), value = b.number(at + 1, 1);
    at += 2;
    if (count > 0) {
      for (uint32_t i = 0; i < count; ++i) put(!is_nibbles ? value : i % 2 == 0 ? value >> 4 : value & 15);
    } else if (value == 0) {
      x = 0;
      ++y;
    } else if (value == 1) {
      return;
    } else if (value == 2) {
      x += b.number(at, 1);
      y += b.number(at + 1, 1);
      at += 2;
    } else {
      for (uint32_t i = 0; i < value; ++i) {
        const uint32_t pair = b.number(at + (is_nibbles ? i / 2 : i), 1);
        put(!is_nibbles ? pair : i % 2 == 0 ? pair >> 4 : pair & 15);
      }
      const uint64_t taken = is_nibbles ? (value + 1) / 2 : value;
      at += taken + taken % 2;
    }
  }
}

}  // namespace

bool is_bmp(Bytes bytes) { return bytes.starts_with("BM", 2); }

void read_bmp(Decoding& decoding) {
  Bitmap bitmap{.decoding = decoding, .bytes = decoding.encoded};
  read_header(bitmap);
  if (bitmap.width <= 0 || bitmap.height <= 0) decoding.begin(bitmap.width, bitmap.height);  // refuses
  if (bitmap.bits <= 8)
    read_palette(bitmap);
  else
    read_masks(bitmap);
  if (bitmap.compression == runs_of_8 || bitmap.compression == runs_of_4)
    read_runs(bitmap);
  else
    read_rows(bitmap);
}

}  // namespace lathe::images
