#include "runtime/kernels/strings/call.h"

#include <cstdlib>

namespace lathe::strings {

const DLTensor* Call::any_operand(int64_t i) {
  const DLTensor* tensor = i < call_.input_count ? values_.tensor(call_.inputs[i]) : nullptr;
  if (tensor == nullptr) raise(LATHE_INVALID_ARTIFACT, "an operand of the kernel is no tensor");
  return tensor;
}

const DLTensor* Call::operand(int64_t i, DLDataType dtype) {
  const DLTensor* tensor = any_operand(i);
  if (tensor == nullptr) return nullptr;
  if (tensor->dtype.code == dtype.code && tensor->dtype.bits == dtype.bits && tensor->dtype.lanes == 1) return tensor;
  raise(LATHE_INVALID_ARTIFACT, "an operand of the kernel is of another type");
  return nullptr;
}

bool Call::text(int64_t number, Text* text) {
  text->at = values_.text(call_.call_state, number, &text->bytes);
  if (text->at != nullptr) return true;
  raise(LATHE_CHECK_FAILED, "a tensor of strings holds what is no string's number");
  return false;
}

void* Call::result(int64_t i, DLDataType dtype, int32_t rank, const int64_t* shape) {
  if (i >= call_.output_count) {
    raise(LATHE_INVALID_ARTIFACT, "the kernel has more results than the program takes");
    return nullptr;
  }
  LatheValue* value = call_.outputs[i] = values_.make_tensor(dtype, rank, shape);
  return value == nullptr ? nullptr : values_.tensor(value)->data;
}

void* Call::scratch(uint64_t count, uint64_t element) {
  if (count > INT64_MAX / (element + 1)) count = INT64_MAX / (element + 1);  // what no memory has
  return call_.services->allocate(call_.call_state, static_cast<int64_t>((count == 0 ? 1 : count) * element), 64);
}

int32_t Call::raise(int32_t code, const char* message) {
  return call_.services->raise_error(call_.call_state, code, message, call_.node);
}

Buffer::~Buffer() { std::free(bytes_); }

bool Buffer::add(const char* bytes, uint64_t count) {
  if (count > capacity_ - count_) {
    uint64_t wanted = capacity_ * 2 < 64 ? 64 : capacity_ * 2;
    if (wanted < count_ + count) wanted = count_ + count;
    void* moved = std::realloc(bytes_, wanted);
    if (moved == nullptr) return false;
    bytes_ = static_cast<char*>(moved);
    capacity_ = wanted;
  }
  if (count > 0) std::memcpy(bytes_ + count_, bytes, count);
  count_ += count;
  return true;
}

uint32_t decode(const char** at, const char* end) {
  constexpr uint32_t replacement = 0xFFFD;
  const auto* bytes = reinterpret_cast<const unsigned char*>(*at);
  const uint32_t first = bytes[0];
  ++*at;
  if (first < 0x80) return first;
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  if (first < 0xC2 || first > 0xF4 || end - *at < more) return replacement;
  uint32_t code = first & (0x3Fu >> more);
  for (int i = 1; i <= more; ++i) {
    if ((bytes[i] & 0xC0u) != 0x80) return replacement;
    code = code << 6 | (bytes[i] & 0x3Fu);
  }
  constexpr uint32_t least[] = {0, 0x80, 0x800, 0x10000};
  if (code < least[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return replacement;
  *at += more;
  return code;
}

int encode(uint32_t code, char* bytes) {
  if (code < 0x80) {
    bytes[0] = static_cast<char>(code);
    return 1;
  }
  const int more = code >= 0x10000 ? 3 : code >= 0x800 ? 2 : 1;
  constexpr uint32_t marks[] = {0, 0xC0, 0xE0, 0xF0};
  for (int i = more; i > 0; --i, code >>= 6) bytes[i] = static_cast<char>(0x80 | (code & 0x3F));
  bytes[0] = static_cast<char>(marks[more] | code);
  return more + 1;
}

namespace {

// Code points [first, last], every `step`-th of them, and how far the other case is.
struct CaseRange {
  uint32_t first, last;
  int32_t distance;
  uint32_t step;
};
constexpr CaseRange to_lower[] = {
#define LATHE_TO_LOWER(first, last, distance, step) {first, last, distance, step},
#define LATHE_TO_UPPER(first, last, distance, step)
#include "runtime/kernels/strings/letter_case.def"
#undef LATHE_TO_LOWER
#undef LATHE_TO_UPPER
};
constexpr CaseRange to_upper[] = {
#define LATHE_TO_LOWER(first, last, distance, step)
#define LATHE_TO_UPPER(first, last, distance, step) {first, last, distance, step},
#include "runtime/kernels/strings/letter_case.def"
#undef LATHE_TO_LOWER
#undef LATHE_TO_UPPER
};

template <int count>
uint32_t mapped(const CaseRange (&ranges)[count], uint32_t code) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (ranges[middle].last < code)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == count || code < ranges[low].first || (code - ranges[low].first) % ranges[low].step != 0) return code;
  return static_cast<uint32_t>(static_cast<int32_t>(code) + ranges[low].distance);
}

}  // namespace

uint32_t lower_case(uint32_t code) { return mapped(to_lower, code); }
uint32_t upper_case(uint32_t code) { return mapped(to_upper, code); }

}  // namespace lathe::strings
