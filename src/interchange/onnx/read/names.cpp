#include "interchange/onnx/read/names.h"

namespace lathe::onnx {

namespace {

// Length of the valid UTF-8 sequence of a printable character at the start of `text`, or 0. Control characters,
// separators and private use are told by ranges: enough to keep a terminal safe.
size_t printable_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc2 ? 2 : 0;
  if (length == 0 || byte(0) > 0xf4 || text.size() < length) return 0;
  uint32_t point = byte(0) & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    point = point << 6 | (byte(i) & 0x3f);
  }
  if (length == 3 && (point < 0x800 || (point >= 0xd800 && point < 0xe000))) return 0;
  if (point < 0xa1 || point == 0xad || (point >= 0x2000 && point < 0x2010) || (point >= 0x2028 && point < 0x2070))
    return 0;
  // Beyond the common scripts assignments are sparse; such a name is shown with marks instead.
  return point < 0x250 || (point >= 0x391 && point < 0x3ca) || (point >= 0x410 && point < 0x450) ||
                 (point >= 0x4e00 && point < 0x9fa6)
             ? length
             : 0;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr size_t longest = 80;
  std::string out;
  std::string shortened;
  if (text.size() > 2 * longest) {
    shortened = std::string(text.substr(0, longest)) + "..." + std::string(text.substr(text.size() - longest / 2));
    text = shortened;
  }
  while (!text.empty()) {
    const size_t length = printable_length(text);
    if (length == 0)
      out += '?';
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string in_quotes(std::string_view text) { return "'" + printable(text) + "'"; }

std::string identifier(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 80)) {
    const bool keeps = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    out += keeps ? c : '_';
  }
  if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out.insert(out.begin(), '_');
  return out;
}

}  // namespace lathe::onnx
