// Bytes as text, in base 64 with padding (RFC 4648, section 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lathe::driver::saved {

std::string to_base64(std::string_view bytes);
// The bytes, or nothing where the text is not what `to_base64` writes.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace lathe::driver::saved
