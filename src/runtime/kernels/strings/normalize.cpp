#include <cstdlib>

#include "runtime/kernels/strings/kernels.h"

namespace lathe::strings {
namespace {

enum LetterCase : int64_t { as_it_is, lower, upper };

// The text in another case, in `buffer`.
bool to_case(const Text& text, int64_t wanted, Buffer* buffer) {
  buffer->clear();
  const char* const end = text.at + text.bytes;
  for (const char* at = text.at; at < end;) {
    const char* first = at;
    const uint32_t code = decode(&at, end);
    char bytes[4];
    const uint32_t other = wanted == lower ? lower_case(code) : upper_case(code);
    // What is no letter stays byte for byte, also where it is no UTF-8.
    if (!(other == code ? buffer->add(first, static_cast<uint64_t>(at - first))
                        : buffer->add(bytes, static_cast<uint64_t>(encode(other, bytes)))))
      return false;
  }
  return true;
}

int compare_numbers(const void* a, const void* b) {
  const int64_t x = *static_cast<const int64_t*>(a), y = *static_cast<const int64_t*>(b);
  return x < y ? -1 : x > y;
}

class Normalization {
 public:
  explicit Normalization(Call& call) : call_(call) {}

  // 0, or the code of what failed.
  int32_t read() {
    int64_t count = 0;
    if (!call_.attributes.word(&case_) || !call_.attributes.word(&is_sensitive_) || !call_.attributes.word(&count) ||
        case_ < as_it_is || case_ > upper || count < 0)
      return call_.wrong_attributes();
    stop_words_ = static_cast<int64_t*>(call_.scratch(static_cast<uint64_t>(count), sizeof(int64_t)));
    if (stop_words_ == nullptr) return call_.failed();
    for (; stop_count_ < count; ++stop_count_) {
      Text word;
      if (!call_.attributes.text(&word)) return call_.wrong_attributes();
      stop_words_[stop_count_] = compared(word);
      if (stop_words_[stop_count_] < 0) return call_.failed();
    }
    std::qsort(stop_words_, static_cast<size_t>(count), sizeof(int64_t), compare_numbers);
    return 0;
  }

  // The number of the string as the result has it, -1 of a stop word, -2 of a failure.
  int64_t normalized(int64_t number) {
    Text text;
    if (!call_.text(number, &text)) return -2;
    const int64_t word = stop_count_ == 0 ? 0 : is_sensitive_ != 0 ? number : compared(text);
    if (word < 0) return -2;
    if (stop_count_ > 0 &&
        std::bsearch(&word, stop_words_, static_cast<size_t>(stop_count_), sizeof(int64_t), compare_numbers) != nullptr)
      return -1;
    if (case_ == as_it_is) return number;
    if (!to_case(text, case_, &buffer_)) return out_of_memory();
    const int64_t made = call_.number_of(buffer_.data(), buffer_.size());
    return made < 0 ? -2 : made;
  }

 private:
  // The number of what stands for the word when words are compared.
  int64_t compared(const Text& word) {
    if (is_sensitive_ != 0) return call_.number_of(word.at, word.bytes);
    if (!to_case(word, lower, &buffer_)) return out_of_memory();
    return call_.number_of(buffer_.data(), buffer_.size());
  }
  int64_t out_of_memory() {
    call_.raise(LATHE_OUT_OF_MEMORY, "there is no memory for a string");
    return -2;
  }

  Call& call_;
  Buffer buffer_;
  int64_t case_ = as_it_is, is_sensitive_ = 0, stop_count_ = 0;
  int64_t* stop_words_ = nullptr;
};

}  // namespace

int32_t normalize(const LatheRuntimeCall* given) {
  Call call(given);
  Normalization how(call);
  if (const int32_t status = how.read()) return status;
  const DLTensor* x = call.operand(0, string_number);
  if (x == nullptr) return call.failed();
  if (x->ndim < 1 || x->ndim > 2 || (x->ndim == 2 && x->shape[0] != 1))
    return call.raise(LATHE_CHECK_FAILED, "strings are normalized in a vector, or in one row");
  const int64_t count = count_of(*x);
  auto* kept = static_cast<int64_t*>(call.scratch(static_cast<uint64_t>(count), sizeof(int64_t)));
  if (kept == nullptr) return call.failed();
  int64_t left = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t number = how.normalized(numbers(*x)[i]);
    if (number < -1) return call.failed();
    if (number >= 0) kept[left++] = number;
    if (i % 1024 == 1023 && call.is_stopped()) return call.stop();
  }
  if (left == 0) kept[left++] = 0;  // of nothing one empty string
  const int64_t shape[] = {x->ndim == 2 ? 1 : left, left};
  auto* out = static_cast<int64_t*>(call.result(0, string_number, x->ndim, shape));
  if (out == nullptr) return call.failed();
  std::memcpy(out, kept, static_cast<size_t>(left) * sizeof(int64_t));
  return 0;
}

}  // namespace lathe::strings
