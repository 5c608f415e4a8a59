#include <locale.h>
#include <strings.h>

#include <cstdio>
#include <cstdlib>

#include "runtime/kernels/strings/kernels.h"

namespace lathe::strings {
namespace {

constexpr size_t most_bytes = 64;  // of a number as text

// Numbers are read and written with a point, whatever the process's locale says.
class PlainNumbers {
 public:
  PlainNumbers() : plain_(newlocale(LC_ALL_MASK, "C", nullptr)), before_(plain_ ? uselocale(plain_) : nullptr) {}
  PlainNumbers(const PlainNumbers&) = delete;
  PlainNumbers& operator=(const PlainNumbers&) = delete;
  ~PlainNumbers() {
    if (plain_ == nullptr) return;
    uselocale(before_);
    freelocale(plain_);
  }

 private:
  locale_t plain_, before_;
};

// The shortest decimal that reads back as the same number; plain from 1e-4 up to 1e16, as Python's str has it.
template <typename Real, Real (*read)(const char*, char**)>
int write_real(Real value, int most_digits, char* text) {
  const auto number = static_cast<double>(value);
  if (value != value) return std::snprintf(text, most_bytes, "NaN");
  if (value - value != 0) return std::snprintf(text, most_bytes, value > 0 ? "INF" : "-INF");
  int digits = 1, written = 0;
  for (; digits <= most_digits; ++digits) {
    written = std::snprintf(text, most_bytes, "%.*e", digits - 1, number);
    if (read(text, nullptr) == value) break;
  }
  const char* exponent_at = std::strchr(text, 'e');
  const int exponent = exponent_at == nullptr ? 0 : std::atoi(exponent_at + 1);
  if (exponent < -4 || exponent >= 16) return written;
  const int decimals = digits - 1 - exponent;
  return std::snprintf(text, most_bytes, "%.*f", decimals < 1 ? 1 : decimals, number);
}

int write_number(const DLTensor& x, int64_t i, char* text) {
  const void* data = x.data;
  switch (x.dtype.code << 8 | x.dtype.bits) {
    case kDLFloat << 8 | 32:
      return write_real<float, std::strtof>(static_cast<const float*>(data)[i], 9, text);
    case kDLFloat << 8 | 64:
      return write_real<double, std::strtod>(static_cast<const double*>(data)[i], 17, text);
    case kDLInt << 8 | 64:
      return std::snprintf(text, most_bytes, "%lld", static_cast<long long>(static_cast<const int64_t*>(data)[i]));
    case kDLUInt << 8 | 64:
      return std::snprintf(text, most_bytes, "%llu",
                           static_cast<unsigned long long>(static_cast<const uint64_t*>(data)[i]));
    case kDLBool << 8 | 8:
      return std::snprintf(text, most_bytes, "%s", static_cast<const uint8_t*>(data)[i] != 0 ? "True" : "False");
    default:
      return -1;
  }
}

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The text between its spaces, with a zero behind it, for the C library; false where it is too long for a number.
bool trimmed(Text text, char* copy, size_t room) {
  while (text.bytes > 0 && is_blank(text.at[0])) ++text.at, --text.bytes;
  while (text.bytes > 0 && is_blank(text.at[text.bytes - 1])) --text.bytes;
  if (text.bytes == 0 || text.bytes >= room || std::memchr(text.at, 0, text.bytes) != nullptr) return false;
  std::memcpy(copy, text.at, text.bytes);
  copy[text.bytes] = 0;
  return true;
}

// Decimal digits, or the words that ONNX gives; nothing of what C's strtod takes beside them.
bool read_real(const Text& text, double* value) {
  char copy[1100];  // the longest double that is exact has 1,077 characters
  if (!trimmed(text, copy, sizeof(copy))) return false;
  const char* word = copy[0] == '+' || copy[0] == '-' ? copy + 1 : copy;
  const bool is_word =
      strcasecmp(word, "inf") == 0 || strcasecmp(word, "infinity") == 0 || strcasecmp(word, "nan") == 0;
  if (!is_word && std::strspn(copy, "0123456789+-.eE") != std::strlen(copy)) return false;
  char* end = nullptr;
  *value = std::strtod(copy, &end);
  return end != copy && *end == 0;
}

bool read_integer(const Text& text, int64_t least, int64_t greatest, int64_t* value) {
  char copy[64];
  if (!trimmed(text, copy, sizeof(copy))) return false;
  const bool is_negative = copy[0] == '-';
  const char* at = is_negative || copy[0] == '+' ? copy + 1 : copy;
  if (*at == 0) return false;
  __int128 number = 0;
  for (; *at >= '0' && *at <= '9' && number < (__int128{1} << 64); ++at) number = number * 10 + (*at - '0');
  if (*at != 0) {  // "2.0" and "1e3"
    double real = 0;
    if (!read_real(text, &real) || !(real > -9.2e18 && real < 9.2e18)) return false;
    number = static_cast<int64_t>(real);
  } else if (is_negative) {
    number = -number;
  }
  // Least above greatest: unsigned, as its bits.
  const bool is_unsigned = least > greatest;
  const __int128 low = is_unsigned ? 0 : least, high = is_unsigned ? static_cast<uint64_t>(greatest) : greatest;
  if (number < low || number > high) return false;
  *value = static_cast<int64_t>(number);
  return true;
}

int32_t no_number(Call& call, const Text& text) {
  char message[160];
  std::snprintf(message, sizeof(message), "the string '%.*s' is not a number that fits the result",
                static_cast<int>(text.bytes < 64 ? text.bytes : 64), text.at);
  return call.raise(LATHE_CHECK_FAILED, message);
}

}  // namespace

int32_t from_numbers(const LatheRuntimeCall* given) {
  const PlainNumbers locale;
  Call call(given);
  const DLTensor* x = call.any_operand(0);
  if (x == nullptr) return call.failed();
  auto* out = static_cast<int64_t*>(call.result(0, string_number, x->ndim, x->shape));
  if (out == nullptr) return call.failed();
  for (int64_t i = 0; i < count_of(*x); ++i) {
    char text[most_bytes];
    const int bytes = write_number(*x, i, text);
    if (bytes < 0) return call.raise(LATHE_INVALID_ARTIFACT, "an operand of the kernel is of another type");
    out[i] = call.number_of(text, static_cast<uint64_t>(bytes));
    if (out[i] < 0) return call.failed();
    if (i % 1024 == 1023 && call.is_stopped()) return call.stop();
  }
  return 0;
}

int32_t to_numbers(const LatheRuntimeCall* given) {
  const PlainNumbers locale;
  Call call(given);
  int64_t is_real = 0, least = 0, greatest = 0;
  if (!call.attributes.word(&is_real) || !call.attributes.word(&least) || !call.attributes.word(&greatest))
    return call.wrong_attributes();
  const DLTensor* x = call.operand(0, string_number);
  if (x == nullptr) return call.failed();
  const DLDataType dtype = {static_cast<uint8_t>(is_real != 0 ? kDLFloat : kDLInt), 64, 1};
  void* out = call.result(0, dtype, x->ndim, x->shape);
  if (out == nullptr) return call.failed();
  for (int64_t i = 0; i < count_of(*x); ++i) {
    Text text;
    if (!call.text(numbers(*x)[i], &text)) return call.failed();
    const bool is_number = is_real != 0 ? read_real(text, &static_cast<double*>(out)[i])
                                        : read_integer(text, least, greatest, &static_cast<int64_t*>(out)[i]);
    if (!is_number) return no_number(call, text);
    if (i % 1024 == 1023 && call.is_stopped()) return call.stop();
  }
  return 0;
}

}  // namespace lathe::strings
