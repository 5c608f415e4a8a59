// By libtiff: the first image of a file, in strips or tiles, turned as its orientation says. Samples of 16 bits lose
// their lower byte, alpha is left out. Which compressions there are, cmake/codecs.cmake says.
#include <tiffio.h>

#include "runtime/kernels/images/decoding.h"

namespace lathe::images {

namespace {

// What libtiff reads from.
struct File {
  Decoding& decoding;
  uint64_t at;
};

File& file_of(thandle_t handle) { return *static_cast<File*>(handle); }

tmsize_t read_file(thandle_t handle, void* to, tmsize_t count) {
  File& file = file_of(handle);
  const Bytes& bytes = file.decoding.encoded;
  const uint64_t left = file.at < bytes.count ? bytes.count - file.at : 0;
  const uint64_t taken = count < 0 ? 0 : static_cast<uint64_t>(count) < left ? static_cast<uint64_t>(count) : left;
  if (taken > 0) std::memcpy(to, bytes.at + file.at, taken);
  file.at += taken;
  return static_cast<tmsize_t>(taken);
}
tmsize_t write_file(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek_file(thandle_t handle, toff_t offset, int from) {
  File& file = file_of(handle);
  file.at = offset + (from == SEEK_CUR ? file.at : from == SEEK_END ? file.decoding.encoded.count : 0);
  return file.at;
}
int close_file(thandle_t) { return 0; }
toff_t size_of_file(thandle_t handle) { return file_of(handle).decoding.encoded.count; }
int map_file(thandle_t handle, void** base, toff_t* size) {
  // libtiff maps for reading only.
  *base = const_cast<uint8_t*>(file_of(handle).decoding.encoded.at);
  *size = file_of(handle).decoding.encoded.count;
  return 1;
}
void unmap_file(thandle_t, void*, toff_t) {}

int fail(TIFF*, void* decoding, const char*, const char* text, va_list arguments) {
  static_cast<Decoding*>(decoding)->refuse_list(text, arguments);
}
int say_nothing(TIFF*, void*, const char*, const char*, va_list) { return 1; }

struct Image {
  Decoding& decoding;
  TIFF* file;
  uint32_t width, height;
  uint16_t bits, samples, photometric, planes, orientation, compression;
  bool is_alpha_multiplied;
  uint16_t* palette[3];
  uint32_t colors;  // of the palette

  // Where the pixel at a column and a row of the file is seen. From 5 on rows and columns change places.
  void place(int64_t column, int64_t row, int64_t* x, int64_t* y) const {
    const bool is_mirrored = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool is_upside_down = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    if (orientation >= 5) {
      *x = is_upside_down ? height - 1 - row : row;
      *y = is_mirrored ? width - 1 - column : column;
    } else {
      *x = is_mirrored ? width - 1 - column : column;
      *y = is_upside_down ? height - 1 - row : row;
    }
  }
};

uint32_t field(TIFF* file, uint32_t tag, uint32_t otherwise) {
  uint32_t value = 0;
  return TIFFGetField(file, tag, &value) == 1 ? value : otherwise;
}
uint16_t short_field(TIFF* file, uint32_t tag, uint16_t otherwise) {
  uint16_t value = 0;
  return TIFFGetFieldDefaulted(file, tag, &value) == 1 ? value : otherwise;
}

void read_header(Image& image) {
  TIFF* file = image.file;
  image.width = field(file, TIFFTAG_IMAGEWIDTH, 0);
  image.height = field(file, TIFFTAG_IMAGELENGTH, 0);
  image.bits = short_field(file, TIFFTAG_BITSPERSAMPLE, 1);
  image.samples = short_field(file, TIFFTAG_SAMPLESPERPIXEL, 1);
  image.photometric = short_field(file, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISWHITE);
  image.planes = short_field(file, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) == PLANARCONFIG_SEPARATE ? image.samples
                                                                                                       : uint16_t{1};
  image.orientation = short_field(file, TIFFTAG_ORIENTATION, 1);
  image.compression = short_field(file, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  const uint16_t format = short_field(file, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
  if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID)
    image.decoding.refuse("its samples are no unsigned integers");
  uint16_t extras = 0, *kinds = nullptr;
  TIFFGetFieldDefaulted(file, TIFFTAG_EXTRASAMPLES, &extras, &kinds);
  image.is_alpha_multiplied = extras > 0 && kinds != nullptr && kinds[0] == EXTRASAMPLE_ASSOCALPHA;
}

// How many of a pixel's samples are looked at.
uint16_t samples_needed(Image& image) {
  const bool is_known_depth =
      image.bits == 1 || image.bits == 2 || image.bits == 4 || image.bits == 8 || image.bits == 16;
  if (!is_known_depth) image.decoding.refuse("it has %u bits a sample", image.bits);
  switch (image.photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
      return 1;
    case PHOTOMETRIC_PALETTE:
      if (image.bits > 8 ||
          !TIFFGetField(image.file, TIFFTAG_COLORMAP, &image.palette[0], &image.palette[1], &image.palette[2]))
        image.decoding.refuse("it has no palette");
      image.colors = 1u << image.bits;
      return 1;
    case PHOTOMETRIC_RGB:
      return image.is_alpha_multiplied && image.samples > 3 ? 4 : 3;
    case PHOTOMETRIC_SEPARATED:
      return 4;
    default:
      image.decoding.refuse("its colours are of kind %u, which is not read", image.photometric);
  }
}

void put(const Image& image, int64_t column, int64_t row, const uint32_t* sample) {
  int64_t x = 0, y = 0;
  image.place(column, row, &x, &y);
  const uint32_t most = (1u << image.bits) - 1;
  uint8_t value[4] = {};
  for (int k = 0; k < 4; ++k)
    value[k] = static_cast<uint8_t>(image.bits == 16 ? sample[k] >> 8 : sample[k] * 255 / most);
  const Decoding& decoding = image.decoding;
  switch (image.photometric) {
    case PHOTOMETRIC_MINISWHITE:
      return decoding.put(x, y, static_cast<uint8_t>(255 - value[0]));
    case PHOTOMETRIC_MINISBLACK:
      return decoding.put(x, y, value[0]);
    case PHOTOMETRIC_PALETTE: {
      const uint32_t index = sample[0];
      return decoding.put(x, y, image.palette[0][index] >> 8, image.palette[1][index] >> 8,
                          image.palette[2][index] >> 8);
    }
    case PHOTOMETRIC_SEPARATED:
      return decoding.put_inks(x, y, value[0], value[1], value[2], value[3]);
    default:
      break;
  }
  if (image.is_alpha_multiplied && image.samples > 3)
    for (int k = 0; k < 3; ++k) value[k] = value[3] == 0 ? 0 : clipped(value[k] * 255 / value[3]);
  decoding.put(x, y, value[0], value[1], value[2]);
}

// The part of the image that a strip or a tile holds.
struct Part {
  uint32_t column, row, columns, rows;
  uint64_t row_bytes;
};

void put_part(const Image& image, const Part& part, uint8_t* const* planes, uint16_t needed) {
  const uint64_t samples = image.planes == 1 ? image.samples : 1;
  for (uint32_t r = 0; r < part.rows; ++r) {
    image.decoding.check_stop();
    for (uint32_t c = 0; c < part.columns; ++c) {
      uint32_t value[4] = {};
      for (uint16_t k = 0; k < needed; ++k) {
        const uint8_t* row = planes[image.planes == 1 ? 0 : k] + r * part.row_bytes;
        const uint64_t at = (c * samples + (image.planes == 1 ? k : 0)) * image.bits, byte = at / 8;
        if (image.bits == 16)
          value[k] = static_cast<uint32_t>(row[byte] | row[byte + 1] << 8);
        else
          value[k] = row[byte] >> (8 - image.bits - at % 8) & ((1u << image.bits) - 1);
      }
      put(image, part.column + c, part.row + r, value);
    }
  }
}

void read_parts(Image& image) {
  Decoding& decoding = image.decoding;
  TIFF* file = image.file;
  const uint16_t needed = samples_needed(image);
  if (image.samples < needed) decoding.refuse("it has %u samples a pixel", image.samples);
  const bool is_tiled = TIFFIsTiled(file) != 0;
  uint32_t columns = image.width, rows = image.height;
  if (is_tiled) {
    columns = field(file, TIFFTAG_TILEWIDTH, 0);
    rows = field(file, TIFFTAG_TILELENGTH, 0);
  } else {
    TIFFGetFieldDefaulted(file, TIFFTAG_ROWSPERSTRIP, &rows);
    if (rows > image.height) rows = image.height;
  }
  const tmsize_t bytes = is_tiled ? TIFFTileSize(file) : TIFFStripSize(file);
  const tmsize_t row_bytes = is_tiled ? TIFFTileRowSize(file) : TIFFScanlineSize(file);
  const uint64_t samples = image.planes == 1 ? image.samples : 1;
  if (columns == 0 || rows == 0 || bytes <= 0 || row_bytes <= 0 ||
      static_cast<uint64_t>(row_bytes) < (uint64_t{columns} * samples * image.bits + 7) / 8 ||
      static_cast<uint64_t>(bytes) / static_cast<uint64_t>(row_bytes) < rows)
    decoding.refuse("its parts have no size");
  const uint16_t planes = image.planes == 1 ? uint16_t{1} : needed;
  uint8_t* plane[4] = {};
  for (uint16_t k = 0; k < planes; ++k) plane[k] = decoding.allocate<uint8_t>(static_cast<uint64_t>(bytes));
  for (uint32_t row = 0; row < image.height; row += rows) {
    for (uint32_t column = 0; column < image.width; column += columns) {
      const Part part{column, row, image.width - column < columns ? image.width - column : columns,
                      image.height - row < rows ? image.height - row : rows, static_cast<uint64_t>(row_bytes)};
      const auto wanted = static_cast<tmsize_t>(is_tiled ? static_cast<uint64_t>(bytes) : part.rows * part.row_bytes);
      for (uint16_t k = 0; k < planes; ++k) {
        const tmsize_t got = is_tiled
                                 ? TIFFReadEncodedTile(file, TIFFComputeTile(file, column, row, 0, k), plane[k], wanted)
                                 : TIFFReadEncodedStrip(file, TIFFComputeStrip(file, row, k), plane[k], wanted);
        if (got != wanted) decoding.refuse("the data end before the image does");
      }
      put_part(image, part, plane, needed);
      if (image.width - column <= columns) break;
    }
    if (image.height - row <= rows) break;
  }
}

// Colours as brightness and differences, which are rare without JPEG: by libtiff's own conversion.
void read_converted(Image& image) {
  Decoding& decoding = image.decoding;
  auto* raster = decoding.allocate<uint32_t>(uint64_t{image.width} * image.height);
  if (!TIFFReadRGBAImageOriented(image.file, image.width, image.height, raster, ORIENTATION_TOPLEFT, 1))
    decoding.refuse("the data are damaged");
  for (uint32_t y = 0; y < image.height; ++y)
    decoding.put_colors(y, reinterpret_cast<const uint8_t*>(raster + uint64_t{y} * image.width), 4);
}

}  // namespace

bool is_tiff(Bytes bytes) {
  return bytes.starts_with("II*\0", 4) || bytes.starts_with("MM\0*", 4) || bytes.starts_with("II+\0", 4) ||
         bytes.starts_with("MM\0+", 4);
}

void read_tiff(Decoding& decoding) {
  File source{decoding, 0};
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  TIFFOpenOptionsSetErrorHandlerExtR(options, fail, &decoding);
  TIFFOpenOptionsSetWarningHandlerExtR(options, say_nothing, nullptr);
  TIFF* file = TIFFClientOpenExt("", "r", &source, read_file, write_file, seek_file, close_file, size_of_file, map_file,
                                 unmap_file, options);
  if (file == nullptr) decoding.refuse("its header is damaged");
  Image image{.decoding = decoding, .file = file};
  read_header(image);
  const bool is_converted = image.photometric == PHOTOMETRIC_YCBCR && image.compression != COMPRESSION_JPEG;
  if (is_converted && image.orientation != 1) decoding.refuse("its colours are read in one orientation alone");
  if (image.photometric == PHOTOMETRIC_YCBCR && image.compression == COMPRESSION_JPEG) {
    TIFFSetField(file, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    image.photometric = PHOTOMETRIC_RGB;
  }
  const bool is_turned = image.orientation >= 5 && image.orientation <= 8;
  decoding.begin(is_turned ? image.height : image.width, is_turned ? image.width : image.height);
  if (is_converted)
    read_converted(image);
  else
    read_parts(image);
}

}  // namespace lathe::images
