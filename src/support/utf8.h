// UTF-8 (RFC 3629): its well-formed sequences, read and written.
#pragma once

#include "support/std.h"

namespace lathe::support {

// The bytes of the well-formed sequence that starts at `at`, 1 to 4; 0 where none does.
size_t utf8_length(std::string_view text, size_t at);
// The code point of the `length` bytes there, as utf8_length gave them.
uint32_t utf8_code(std::string_view text, size_t at, size_t length);
// Appends the sequence of a code point below 2^21.
void append_utf8(std::string& text, uint32_t code);

}  // namespace lathe::support
