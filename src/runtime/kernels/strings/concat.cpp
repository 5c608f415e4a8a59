#include "runtime/kernels/strings/kernels.h"

namespace lathe::strings {

int32_t concat(const LatheRuntimeCall* given) {
  Call call(given);
  const DLTensor* a = call.operand(0, string_number);
  const DLTensor* b = a == nullptr ? nullptr : call.operand(1, string_number);
  if (b == nullptr) return call.failed();
  if (count_of(*a) != count_of(*b)) return call.raise(LATHE_CHECK_FAILED, "strings of two shapes are joined");
  auto* out = static_cast<int64_t*>(call.result(0, string_number, a->ndim, a->shape));
  if (out == nullptr) return call.failed();
  Buffer joined;
  for (int64_t i = 0; i < count_of(*a); ++i) {
    Text left, right;
    if (!call.text(numbers(*a)[i], &left) || !call.text(numbers(*b)[i], &right)) return call.failed();
    joined.clear();
    if (!joined.add(left.at, left.bytes) || !joined.add(right.at, right.bytes))
      return call.raise(LATHE_OUT_OF_MEMORY, "there is no memory for a string");
    out[i] = call.number_of(joined.data(), joined.size());
    if (out[i] < 0) return call.failed();
    if (i % 1024 == 1023 && call.is_stopped()) return call.stop();
  }
  return 0;
}

}  // namespace lathe::strings
