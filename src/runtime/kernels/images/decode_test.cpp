// The decoder as a program calls it, on the files of decode_fuzz_seeds: all show one picture, by the first word of
// their names in its colours, near them, as grays or as bits. Against others' decoders: tests/operators/images.py and
// tests/operators/test_images.py.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/kernels/images/decoding_fixture.h"

namespace lathe::images {
namespace {

using namespace testing;  // NOLINT

constexpr int64_t picture_height = 5, picture_width = 7;

std::map<std::string, std::string> files() {
  std::map<std::string, std::string> found;
  const auto folder = std::filesystem::path(__FILE__).parent_path() / "decode_fuzz_seeds";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    found[entry.path().filename()] = std::string(std::istreambuf_iterator<char>(file), {});
  }
  return found;
}

std::array<int, 3> color_at(const std::string& kind, int x, int y) {
  if (kind == "gray") return {36 * x, 36 * x, 36 * x};
  if (kind == "bits") return x < 3 ? std::array{0, 0, 0} : std::array{255, 255, 255};
  return {36 * x, 60 * y, 255 - 36 * x};
}

const Decoder& decoder(PixelOrder order) {
  static const Decoder all[] = {Decoder(PixelOrder::rgb), Decoder(PixelOrder::bgr), Decoder(PixelOrder::gray)};
  return all[static_cast<size_t>(order)];
}

// What the run says of a file that it refuses.
std::string refusal(const std::string& bytes) {
  if (decoder(PixelOrder::rgb).decode(bytes) != nullptr) return "it was decoded";
  EXPECT_STREQ(lathe_last_error()->node, "Decoder_1");
  EXPECT_EQ(lathe_last_error()->code, LATHE_CHECK_FAILED);
  return last_message();
}

void expect_picture(const std::string& name, const std::string& bytes, PixelOrder order) {
  const Value image = decoder(order).decode(bytes);
  ASSERT_NE(image, nullptr) << name << ": " << last_message();
  const DLTensor& tensor = *lathe_value_tensor(image.get());
  const int64_t channels = order == PixelOrder::gray ? 1 : 3;
  ASSERT_EQ(shape_of(tensor), (std::vector<int64_t>{picture_height, picture_width, channels})) << name;
  const std::string kind = name.substr(0, name.find_first_of("_."));
  if (kind == "near" && name.ends_with("webp")) return;  // a plain colour, which is not the picture's
  const int tolerance = kind == "near" ? 48 : 0;
  const auto* pixel = static_cast<const uint8_t*>(tensor.data);
  for (int y = 0; y < picture_height; ++y)
    for (int x = 0; x < picture_width; ++x, pixel += channels) {
      std::array<int, 3> wanted = color_at(name.find("near_gray") == 0 ? "gray" : kind, x, y);
      if (order == PixelOrder::bgr) std::swap(wanted[0], wanted[2]);
      if (order == PixelOrder::gray)
        wanted[0] = (wanted[0] * 19595 + wanted[1] * 38470 + wanted[2] * 7471 + 32768) >> 16;
      for (int64_t k = 0; k < channels; ++k)
        EXPECT_NEAR(pixel[k], wanted[static_cast<size_t>(k)], tolerance) << name << " at " << x << ", " << y;
    }
}

TEST(image_kernels, every_format_shows_the_picture_in_every_order) {
  EXPECT_GE(files().size(), 30u);
  for (const auto& [name, bytes] : files())
    for (const PixelOrder order : {PixelOrder::rgb, PixelOrder::bgr, PixelOrder::gray})
      expect_picture(name, bytes, order);
}

TEST(image_kernels, a_file_that_ends_early_is_refused_or_all_there) {
  for (const auto& [name, bytes] : files()) {
    int decoded = 0;
    for (size_t count = 0; count < bytes.size(); ++count) {
      const Value image = decoder(PixelOrder::rgb).decode(bytes.substr(0, count));
      decoded += image != nullptr;
      if (image == nullptr) {
        EXPECT_EQ(lathe_last_error()->code, LATHE_CHECK_FAILED) << name << " " << count << last_message();
      }
    }
    // What is behind the pixels may be missing: checks, ends, padding, tags that have defaults.
    EXPECT_LT(decoded, 64) << name;
  }
}

TEST(image_kernels, changed_bytes_end_in_an_image_or_a_refusal) {
  for (const auto& [name, bytes] : files())
    for (size_t at = 0; at < bytes.size(); at += bytes.size() < 300 ? 1 : 3)
      for (const int flip : {0x01, 0x80, 0xFF}) {
        std::string changed = bytes;
        changed[at] = static_cast<char>(changed[at] ^ flip);
        const Value image = decoder(at % 2 == 0 ? PixelOrder::rgb : PixelOrder::gray).decode(changed);
        if (image == nullptr) {
          EXPECT_NE(last_message(), "") << name << " at " << at;
        }
      }
}

TEST(image_kernels, a_refusal_names_the_format_and_the_node) {
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const std::map<std::string, std::string> all = files();
  const auto cut = [&](const char* name, size_t count) { return refusal(all.at(name).substr(0, count)); };
  EXPECT_EQ(refusal(""), "there are no bytes of an image to decode");
  has(refusal("GIF89a"), "no image of a known format: BMP, JPEG, JPEG 2000, PNG, PNM (P1 to P6), TIFF or WebP");
  has(cut("near.jpg", 600), "the JPEG image cannot be decoded: the data end before the image does");
  has(cut("color.png", 60), "the PNG image cannot be decoded: the data end before the image does");
  has(cut("color.webp", 40), "the WebP image cannot be decoded: the data end before the image does");
  has(cut("color_raw.tif", 100), "the TIFF image cannot be decoded: ");
  has(cut("color.jp2", 100), "the JPEG 2000 image cannot be decoded: ");
  has(cut("color_24.bmp", 100), "the BMP image cannot be decoded: the data end before the image does");
  has(cut("color.ppm", 100), "the PNM image cannot be decoded: the data end before the image does");
  has(refusal("P2 2 1 9 1 10 "), "its sample is above 9");
  has(refusal("P2 2 1 9 1 x "), "its sample has a character that is no digit");
  has(refusal("P1 2 1 2 0"), "a bit of it is neither 0 nor 1");
  has(refusal("P5 0 1 255 "), "it is 0 wide and 1 high");
  has(refusal("P5 1 1 0 "), "its greatest value is 0");
  std::string png = all.at("color.png");
  png[20] = 9;  // the checksum of the header no longer fits
  has(refusal(png), "the PNG image cannot be decoded: IHDR: CRC error");
  std::string tiff = all.at("color_raw.tif");
  const size_t compression = tiff.find(std::string("\x03\x01\x03\0", 4));
  ASSERT_NE(compression, std::string::npos);
  tiff.replace(compression + 8, 2, "\x6d\x88");  // 34925
  has(refusal(tiff), "LZMA");
}

// Headers that promise what no machine has; the rest of the file is short.
TEST(image_kernels, a_size_is_checked_before_anything_is_decoded) {
  std::map<std::string, std::string> all = files();
  const auto big = [&](const char* name, size_t at, const std::string& size) {
    std::string bytes = all.at(name).replace(at, size.size(), size);
    EXPECT_EQ(decoder(PixelOrder::rgb).decode(bytes), nullptr) << name;
    EXPECT_STREQ(lathe_last_error()->node, "Decoder_1") << name;
    return last_message();
  };
  const auto is_limit = [](const std::string& text) { return text.find("limit") != std::string::npos; };
  EXPECT_TRUE(is_limit(big("near.jpg", all.at("near.jpg").find("\xFF\xC0") + 5, "\xFF\x10\xFF\x10"))) << last_message();
  EXPECT_TRUE(is_limit(big("gray_runs.bmp", 18, std::string("\xFF\xFF\x0F\0\xFF\xFF\x0F\0", 8)))) << last_message();
  const size_t width = all.at("color_tiles.tif").find(std::string("\1\0\0\4\0\0\0\1", 8)) + 8;
  EXPECT_NE(big("color_tiles.tif", width, "\x0F\xFF\xFF\xFF").find("the TIFF image cannot be"), std::string::npos);
  big("color_24.bmp", 18, std::string("\xFF\xFF\xFF\x7F\xFF\xFF\xFF\x7F", 8));
  EXPECT_NE(big("color.ppm", 0, "P6 99999 99999 255 ").find("end before"), std::string::npos);
  big("color.jp2", all.at("color.jp2").find("\xFF\x51") + 6, std::string("\x7F\xFF\xFF\xFF\x7F\xFF\xFF\xFF", 8));
}

TEST(image_kernels, all_memory_counts_towards_the_runs_limit) {
  const std::string bytes = files().at("near_progressive.jpg");
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  EXPECT_EQ(decoder(PixelOrder::rgb).decode(at, bytes.size(), {.max_memory = 6000}), nullptr);
  EXPECT_EQ(lathe_last_error()->code, LATHE_LIMIT_REACHED) << last_message();
  EXPECT_STREQ(lathe_last_error()->node, "Decoder_1");
}

TEST(image_kernels, a_run_that_takes_too_long_ends) {
  std::string bytes = "P2 3000 3000 9\n";
  for (int i = 0; i < 9000000; ++i) bytes += "1 ";
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  EXPECT_EQ(decoder(PixelOrder::rgb).decode(at, bytes.size(), {.timeout = 1'000'000}), nullptr);
  EXPECT_EQ(lathe_last_error()->code, LATHE_LIMIT_REACHED) << last_message();
}

// A scan costs a few bytes and as much time as the image has pixels.
TEST(image_kernels, an_image_of_too_many_scans_is_refused) {
  const std::string bytes = files().at("near_progressive.jpg");
  const size_t scan = bytes.rfind("\xFF\xDA"), end = bytes.rfind("\xFF\xD9");
  std::string many = bytes.substr(0, end);
  for (int i = 0; i < 600; ++i) many += bytes.substr(scan, end - scan);
  EXPECT_EQ(refusal(many), "the JPEG image cannot be decoded: it has more than 500 scans");
}

TEST(image_kernels, samples_that_are_no_unsigned_integers_are_refused) {
  std::string tiff = files().at("color_tiles.tif");
  const std::string planes("\x01\x1C\0\x03\0\0\0\x01\0\x02", 10), floats("\x01\x53\0\x03\0\0\0\x01\0\x03", 10);
  const size_t at = tiff.find(planes);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(refusal(tiff.replace(at, planes.size(), floats)),
            "the TIFF image cannot be decoded: its samples are no unsigned integers");
}

TEST(image_kernels, threads_decode_at_once) {
  const std::map<std::string, std::string> all = files();
  std::vector<std::thread> threads;
  std::atomic<int> decoded = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (const auto& [name, bytes] : all) {
        decoded += decoder(PixelOrder::rgb).decode(bytes) != nullptr;
        decoded -= decoder(PixelOrder::rgb).decode(bytes.substr(0, bytes.size() / 2)) != nullptr;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(decoded, 4 * static_cast<int>(all.size()));
}

TEST(image_kernels, damaged_attributes_are_refused) {
  const Decoder damaged(static_cast<PixelOrder>(3));
  EXPECT_EQ(damaged.decode(files().at("gray.pgm")), nullptr);
  EXPECT_EQ(lathe_last_error()->code, LATHE_INVALID_ARTIFACT) << last_message();
}

}  // namespace
}  // namespace lathe::images
