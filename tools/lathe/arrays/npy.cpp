#include "npy.h"

#include <zip.h>

#include <charconv>
#include <filesystem>
#include <fstream>

#include "codes.h"
#include "support/std.h"
#include "support/utf8.h"

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

// Elements of no bytes (empty strings) take no room in a file, so that a few bytes could ask for any number of them.
constexpr int64_t largest_count_of_nothing = 1 << 20;

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

// The bytes of an element, or nothing where such elements are not read.
std::optional<int64_t> item_of(std::string_view descr) {
  for (const NamedType& type : types)
    if (type.descr == descr) return type.dtype.element_bytes();
  int64_t count = 0;
  if (descr.size() < 2 || std::string_view("USV").find(descr[0]) == std::string_view::npos) return std::nullopt;
  const auto [end, error] = std::from_chars(descr.data() + 1, descr.data() + descr.size(), count);
  if (error != std::errc() || end != descr.data() + descr.size() || count < 0 || count > INT32_MAX) return std::nullopt;
  return descr[0] == 'U' ? 4 * count : count;
}

int64_t count_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

Result<NpyArray> read_npy_array(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code failure;
  if (!file || std::filesystem::is_directory(path, failure)) return refuse(path, "there is no such file");
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  return parse_npy(all, path);
}

Result<NpyArray> parse_npy(std::string_view all, const std::string& path) {
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
  const std::optional<int64_t> item = item_of(descr);
  if (!item) return refuse(path, "arrays of dtype '" + std::string(descr) + "' are not read");
  const auto shape = parse_shape(field(header, "shape"));
  if (!shape) return refuse(path, "the header's shape is damaged");
  const std::string_view payload = all.substr(begin + length);
  // Sizes are multiplied as if none were zero, so that no product of a part of them is beyond what is counted.
  int64_t bytes = std::max<int64_t>(*item, 1);
  for (const int64_t extent : *shape)
    if (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes))
      return refuse(path, "the file is shorter than its shape says");
  if (*item == 0 || std::find(shape->begin(), shape->end(), 0) != shape->end()) bytes = 0;
  if (*item == 0 && count_of(*shape) > largest_count_of_nothing)
    return refuse(path, fmt::format("more than {} elements of no bytes", largest_count_of_nothing));
  if (bytes != static_cast<int64_t>(payload.size()))
    return refuse(path, fmt::format("{} bytes of data, but the shape takes {}", payload.size(), bytes));
  const bool fortran = field(header, "fortran_order").starts_with("True");
  std::string ordered =
      fortran && bytes > 0 ? transpose(payload, *shape, static_cast<size_t>(*item)) : std::string(payload);
  return NpyArray{std::string(descr), *shape, *item, std::move(ordered)};
}

std::string npy_bytes(const NpyArray& array) {
  const bool has_order = array.item > 1 && array.descr[0] != 'V' && array.descr[0] != 'S';
  std::string shape = "(";
  for (const int64_t extent : array.shape) shape += std::to_string(extent) + ",";
  std::string header = "{'descr': '" + std::string(has_order ? "<" : "|") + array.descr +
                       "', 'fortran_order': False, 'shape': " + shape + "), }";
  header.append(63 - (header.size() + 10) % 64, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 255);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes += array.bytes;
  return bytes;
}

bool numpy_names(ir::DType dtype) {
  return std::any_of(std::begin(types), std::end(types), [&](const NamedType& type) { return type.dtype == dtype; });
}

Result<ir::TensorData> tensor_of(NpyArray array, const std::string& path, std::optional<ir::DType> wanted) {
  for (const NamedType& type : types)
    if (type.descr == array.descr) return ir::tensor_data(type.dtype, std::move(array.shape), std::move(array.bytes));
  if (array.descr[0] != 'V' || !wanted || array.item != wanted->element_bytes())
    return refuse(path, "no number has the dtype '" + array.descr + "'" +
                            (wanted ? ", and no " + wanted->str() + " is so long" : ""));
  if (wanted->storage_bits() >= 8) return ir::tensor_data(*wanted, std::move(array.shape), std::move(array.bytes));
  const int64_t count = static_cast<int64_t>(array.bytes.size());
  std::string packed(static_cast<size_t>(wanted->storage_bytes(count)), '\0');
  ir::pack_elements(reinterpret_cast<const uint8_t*>(array.bytes.data()), count, wanted->bits,
                    reinterpret_cast<uint8_t*>(packed.data()));
  return ir::tensor_data(*wanted, std::move(array.shape), std::move(packed));
}

NpyArray npy_array(const ir::TensorDataNode& tensor) {
  const ir::DType dtype = tensor.dtype;
  for (const NamedType& type : types)
    if (type.dtype == dtype)
      return {std::string(type.descr), tensor.shape, dtype.element_bytes(), std::string(tensor.view())};
  NpyArray array{fmt::format("V{}", dtype.element_bytes()), tensor.shape, dtype.element_bytes(),
                 std::string(tensor.view())};
  if (dtype.storage_bits() >= 8) return array;
  array.bytes.resize(static_cast<size_t>(tensor.elements()));
  ir::unpack_elements(reinterpret_cast<const uint8_t*>(tensor.bytes), tensor.elements(), dtype.bits, dtype.is_int(),
                      reinterpret_cast<uint8_t*>(array.bytes.data()));
  return array;
}

Result<std::vector<std::string>> strings_of(const NpyArray& array, const std::string& path) {
  if (array.descr[0] != 'U' && array.descr[0] != 'S')
    return refuse(path, "an array of dtype '" + array.descr + "' holds no strings");
  std::vector<std::string> strings(static_cast<size_t>(count_of(array.shape)));
  const char* at = array.bytes.data();
  for (std::string& text : strings) {
    for (int64_t i = 0; i < array.item; i += array.descr[0] == 'U' ? 4 : 1) {
      uint32_t code = static_cast<uint8_t>(at[i]);
      if (array.descr[0] == 'S') {
        text += static_cast<char>(code);
        continue;
      }
      std::memcpy(&code, at + i, 4);
      if (code > 0x10ffff) return refuse(path, fmt::format("{:#x} is no character", code));
      support::append_utf8(text, code);
    }
    text.resize(text.find_last_not_of('\0') + 1);
    at += array.item;
  }
  return strings;
}

NpyArray npy_array(const std::vector<std::string>& strings, std::vector<int64_t> shape) {
  std::vector<std::string> elements;
  size_t longest = 4;
  bool is_text = true;
  for (const std::string& text : strings) {
    std::string& codes = elements.emplace_back();
    for (size_t i = 0; i < text.size() && is_text;) {
      const size_t length = support::utf8_length(text, i);
      is_text = length > 0;
      const uint32_t code = is_text ? support::utf8_code(text, i, length) : 0;
      codes.append(reinterpret_cast<const char*>(&code), 4);
      i += length;
    }
    longest = std::max(longest, codes.size());
  }
  if (!is_text) {
    elements = strings;
    longest = 1;
    for (const std::string& text : strings) longest = std::max(longest, text.size());
  }
  NpyArray array{fmt::format("{}{}", is_text ? "U" : "S", is_text ? longest / 4 : longest), std::move(shape),
                 static_cast<int64_t>(longest), ""};
  for (std::string& element : elements) {
    element.resize(longest, '\0');
    array.bytes += element;
  }
  return array;
}

Result<ir::TensorData> read_npy(const std::string& path) { return tensor_of(TRY(read_npy_array(path)), path); }

support::Status write_npy(const std::string& path, const NpyArray& array) {
  std::ofstream file(path, std::ios::binary);
  file << npy_bytes(array);
  if (!file.flush()) return refuse(path, "the file cannot be written");
  return support::success();
}

Result<NamedArrays> read_npz(const std::string& path) {
  const std::unique_ptr<zip_t, void (*)(zip_t*)> archive(zip_open(path.c_str(), ZIP_RDONLY, nullptr), zip_discard);
  if (!archive) return refuse(path, "there is no such archive");
  NamedArrays arrays;
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(count); ++i) {
    zip_stat_t entry{};
    if (zip_stat_index(archive.get(), i, 0, &entry) != 0 || !(entry.valid & ZIP_STAT_NAME))
      return refuse(path, "the archive is damaged");
    std::string name = entry.name;
    const std::string place = path + "/" + name;
    if (!name.ends_with(".npy")) return refuse(place, "this is not a .npy file");
    const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(zip_fopen_index(archive.get(), i, 0), zip_fclose);
    std::string bytes;
    std::vector<char> part(1 << 16);
    zip_int64_t got = file ? 0 : -1;
    while (got >= 0 && (got = zip_fread(file.get(), part.data(), part.size())) > 0)
      bytes.append(part.data(), static_cast<size_t>(got));
    if (got < 0) return refuse(place, "the archive is damaged");
    name.resize(name.size() - 4);
    arrays.emplace_back(std::move(name), TRY(parse_npy(bytes, place)));
  }
  return arrays;
}

support::Status write_npz(const std::string& path, const NamedArrays& arrays) {
  if (arrays.empty()) {  // libzip leaves no file of an archive without entries
    std::ofstream file(path, std::ios::binary);
    file << std::string("PK\x05\x06", 4) + std::string(18, '\0');
    return file.flush() ? support::success() : support::Status(refuse(path, "the file cannot be written"));
  }
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (!archive) return refuse(path, "the file cannot be written");
  std::vector<std::string> contents;
  contents.reserve(arrays.size());
  bool ok = true;
  for (const auto& [name, array] : arrays) {
    contents.push_back(npy_bytes(array));
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
