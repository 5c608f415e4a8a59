#include "runtime/kernels/strings/kernels.h"

namespace lathe::strings {
namespace {

// What Python's str.split takes for a space, of the code points of one byte.
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f); }

uint64_t spaces_at(const Text& text, uint64_t at) {
  const uint64_t first = at;
  while (at < text.bytes && is_space(text.at[at])) ++at;
  return at - first;
}

// Where the delimiter is next from `at` on, or the text's end.
uint64_t find(const Text& text, uint64_t at, const Text& delimiter) {
  while (at + delimiter.bytes <= text.bytes) {
    const void* first = std::memchr(text.at + at, delimiter.at[0], text.bytes - at - delimiter.bytes + 1);
    if (first == nullptr) break;
    at = static_cast<uint64_t>(static_cast<const char*>(first) - text.at);
    if (std::memcmp(text.at + at, delimiter.at, delimiter.bytes) == 0) return at;
    ++at;
  }
  return text.bytes;
}

// Hands each part to `each`, which gives false to end early. `most` splits at most, the rest is the last part; < 0:
// any.
template <typename Each>
bool split_by_spaces(const Text& text, int64_t most, const Each& each) {
  uint64_t at = spaces_at(text, 0);
  for (int64_t parts = 0; at < text.bytes; ++parts) {
    uint64_t end = text.bytes;
    if (most >= 0 && parts == most) {  // as ONNX Runtime does: the rest loses its trailing spaces
      while (end > at && is_space(text.at[end - 1])) --end;
      return each(Text{text.at + at, end - at});
    }
    for (end = at; end < text.bytes && !is_space(text.at[end]);) ++end;
    if (!each(Text{text.at + at, end - at})) return false;
    at = end + spaces_at(text, end);
  }
  return true;
}

template <typename Each>
bool split_by(const Text& text, const Text& delimiter, int64_t most, const Each& each) {
  if (delimiter.bytes == 0) return split_by_spaces(text, most, each);
  uint64_t at = 0;
  for (int64_t parts = 0;; ++parts) {
    const uint64_t end = most >= 0 && parts == most ? text.bytes : find(text, at, delimiter);
    if (!each(Text{text.at + at, end - at})) return false;
    if (end == text.bytes) return true;
    at = end + delimiter.bytes;
  }
}

}  // namespace

int32_t split(const LatheRuntimeCall* given) {
  Call call(given);
  Text delimiter;
  int64_t most = 0;
  if (!call.attributes.text(&delimiter) || !call.attributes.word(&most)) return call.wrong_attributes();
  const DLTensor* x = call.operand(0, string_number);
  if (x == nullptr) return call.failed();
  if (x->ndim >= 64) return call.raise(LATHE_INVALID_ARTIFACT, "strings of 64 dimensions are split");
  auto* counts = static_cast<int64_t*>(call.result(1, int64_type, x->ndim, x->shape));
  if (counts == nullptr) return call.failed();
  int64_t shape[64], longest = 0;
  const int64_t count = count_of(*x);
  for (int64_t i = 0; i < count; ++i) {
    Text text;
    if (!call.text(numbers(*x)[i], &text)) return call.failed();
    counts[i] = 0;
    split_by(text, delimiter, most, [&](const Text&) { return ++counts[i] != 0; });
    if (counts[i] > longest) longest = counts[i];
    if (i % 1024 == 1023 && call.is_stopped()) return call.stop();
  }
  for (int32_t d = 0; d < x->ndim; ++d) shape[d] = x->shape[d];
  shape[x->ndim] = longest;
  auto* out = static_cast<int64_t*>(call.result(0, string_number, x->ndim + 1, shape));
  if (out == nullptr) return call.failed();
  for (int64_t i = 0; i < count; ++i) {
    Text text;
    if (!call.text(numbers(*x)[i], &text)) return call.failed();
    int64_t* row = out + i * longest;
    int64_t next = 0;
    const bool is_done = split_by(text, delimiter, most, [&](const Text& part) {
      row[next] = call.number_of(part.at, part.bytes);
      return row[next++] >= 0;
    });
    if (!is_done) return call.failed();
    for (; next < longest; ++next) row[next] = 0;
    if (i % 1024 == 1023 && call.is_stopped()) return call.stop();
  }
  return 0;
}

}  // namespace lathe::strings
