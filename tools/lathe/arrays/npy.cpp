#include "npy.h"

#include <zip.h>

#include <charconv>
#include <filesystem>
#include <fstream>

#include "codes.h"
#include "support/std.h"

namespace lathe::tool {
namespace {

using support::Result;

support::Diagnostic refuse(const std::string& path, const std::string& message) {
  return support::Diagnostic{.code = codes::npy, .message = path + ": " + message};
}

struct NamedType {
  std::string_view descr;  // without the byte order
  ir::DType dtype;
};
constexpr NamedType types[] = {
    {"b1", ir::DType::boolean()},  {"i1", ir::DType::int_(8)},    {"i2", ir::DType::int_(16)},
    {"i4", ir::DType::int_(32)},   {"i8", ir::DType::int_(64)},   {"u1", ir::DType::uint(8)},
    {"u2", ir::DType::uint(16)},   {"u4", ir::DType::uint(32)},   {"u8", ir::DType::uint(64)},
    {"f2", ir::DType::float_(16)}, {"f4", ir::DType::float_(32)}, {"f8", ir::DType::float_(64)},
};

// The text between quotes after `key`, or what follows it up to a comma or bracket.
std::string_view field(std::string_view header, std::string_view key) {
  const size_t at = header.find("'" + std::string(key) + "'");
  if (at == std::string_view::npos) return {};
  size_t begin = header.find(':', at);
  if (begin == std::string_view::npos) return {};
  begin = header.find_first_not_of(' ', begin + 1);
  if (begin == std::string_view::npos) return {};
  const char close = header[begin] == '\'' ? '\'' : header[begin] == '(' ? ')' : ',';
  if (close != ',') ++begin;
  const size_t end = header.find(close, begin);
  return end == std::string_view::npos ? std::string_view() : header.substr(begin, end - begin);
}

std::optional<std::vector<int64_t>> parse_shape(std::string_view text) {
  std::vector<int64_t> shape;
  while (true) {
    const size_t begin = text.find_first_not_of(" ,");
    if (begin == std::string_view::npos) return shape;
    text.remove_prefix(begin);
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || extent < 0) return std::nullopt;
    shape.push_back(extent);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
}

// Column-major bytes in row-major order.
std::string transpose(std::string_view bytes, const std::vector<int64_t>& shape, size_t item) {
  std::string out(bytes.size(), '\0');
  std::vector<int64_t> index(shape.size(), 0);
  for (size_t to = 0; to < bytes.size(); to += item) {
    int64_t from = 0;
    for (size_t d = shape.size(); d-- > 0;) from = from * shape[d] + index[d];
    std::memcpy(out.data() + to, bytes.data() + static_cast<size_t>(from) * item, item);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

}  // namespace

Result<ir::TensorData> read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code failure;
  if (!file || std::filesystem::is_directory(path, failure)) return refuse(path, "there is no such file");
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  return read_npy_bytes(all, path);
}

Result<ir::TensorData> read_npy_bytes(std::string_view all, const std::string& path) {
  if (all.size() < 10 || all.compare(0, 6, "\x93NUMPY") != 0) return refuse(path, "this is not a .npy file");
  const int version = static_cast<uint8_t>(all[6]);
  size_t length = static_cast<uint8_t>(all[8]) | static_cast<size_t>(static_cast<uint8_t>(all[9])) << 8;
  size_t begin = 10;
  if (version > 1) {
    if (all.size() < 12) return refuse(path, "the file ends inside its header");
    length |= static_cast<size_t>(static_cast<uint8_t>(all[10])) << 16 |
              static_cast<size_t>(static_cast<uint8_t>(all[11])) << 24;
    begin = 12;
  }
  if (version < 1 || version > 3 || length > all.size() - begin) return refuse(path, "the header is damaged");
  const std::string_view header(all.data() + begin, length);
  std::string_view descr = field(header, "descr");
  if (descr.empty()) return refuse(path, "the header names no dtype");
  if (descr[0] == '>') return refuse(path, "big-endian arrays are not read");
  if (descr[0] == '<' || descr[0] == '|' || descr[0] == '=') descr.remove_prefix(1);
  const auto type =
      std::find_if(std::begin(types), std::end(types), [&](const NamedType& t) { return t.descr == descr; });
  if (type == std::end(types)) return refuse(path, "arrays of dtype '" + std::string(descr) + "' are not read");
  const auto shape = parse_shape(field(header, "shape"));
  if (!shape) return refuse(path, "the header's shape is damaged");
  const std::string_view payload = all.substr(begin + length);
  const int64_t item = type->dtype.element_bytes();
  // Sizes are multiplied as if none were zero, so that no product of a part of them is beyond what is counted.
  int64_t bytes = item;
  for (const int64_t extent : *shape)
    if (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes))
      return refuse(path, "the file is shorter than its shape says");
  if (std::find(shape->begin(), shape->end(), 0) != shape->end()) bytes = 0;
  if (bytes != static_cast<int64_t>(payload.size()))
    return refuse(path, fmt::format("{} bytes of data, but the shape takes {}", payload.size(), bytes));
  const bool fortran = field(header, "fortran_order").starts_with("True");
  return ir::tensor_data(type->dtype, *shape,
                         fortran ? transpose(payload, *shape, static_cast<size_t>(item)) : std::string(payload));
}

std::string npy_bytes(const ir::TensorDataNode& array) {
  std::string descr = fmt::format("|V{}", array.dtype.element_bytes());
  for (const NamedType& type : types)
    if (type.dtype == array.dtype) descr = (array.dtype.element_bytes() == 1 ? "|" : "<") + std::string(type.descr);
  std::string shape = "(";
  for (const int64_t extent : array.shape) shape += std::to_string(extent) + ",";
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + "), }";
  header.append(63 - (header.size() + 10) % 64, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 255);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes += array.view();
  return bytes;
}

support::Status write_npy(const std::string& path, const ir::TensorDataNode& array) {
  std::ofstream file(path, std::ios::binary);
  file << npy_bytes(array);
  if (!file.flush()) return refuse(path, "the file cannot be written");
  return support::success();
}

support::Status write_npz(const std::string& path, const std::vector<std::pair<std::string, ir::TensorData>>& arrays) {
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (!archive) return refuse(path, "the file cannot be written");
  std::vector<std::string> contents;
  contents.reserve(arrays.size());
  bool ok = true;
  for (const auto& [name, array] : arrays) {
    contents.push_back(npy_bytes(*array));
    zip_source_t* source = zip_source_buffer(archive, contents.back().data(), contents.back().size(), 0);
    const zip_int64_t index =
        zip_file_add(archive, (name + ".npy").c_str(), source, ZIP_FL_OVERWRITE | ZIP_FL_ENC_UTF_8);
    ok = ok && index >= 0 && zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) == 0;
  }
  if (!ok || zip_close(archive) != 0) {
    zip_discard(archive);
    return refuse(path, "the file cannot be written");
  }
  return support::success();
}

}  // namespace lathe::tool
