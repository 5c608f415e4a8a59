// Names from model files as they may appear in messages: printable, and not longer than a line.
#pragma once

#include <string>
#include <string_view>

namespace lathe::onnx {

// The text with unprintable characters and invalid UTF-8 replaced by '?', shortened in the middle past 80 characters.
std::string printable(std::string_view text);
// The same between quotes.
std::string in_quotes(std::string_view text);
// The text as an identifier: other characters become '_'; never empty.
std::string identifier(std::string_view text);

}  // namespace lathe::onnx
