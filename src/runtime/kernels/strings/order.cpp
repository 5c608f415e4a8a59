#include <cstdlib>

#include "runtime/kernels/strings/kernels.h"

namespace lathe::strings {
namespace {

struct Placed {
  Text text;
  int64_t at;
};

int compare_texts(const Text& a, const Text& b) {
  const uint64_t least = a.bytes < b.bytes ? a.bytes : b.bytes;
  const int order = least == 0 ? 0 : std::memcmp(a.at, b.at, least);
  return order != 0 ? order : a.bytes < b.bytes ? -1 : a.bytes > b.bytes;
}
int compare(const void* a, const void* b) {
  return compare_texts(static_cast<const Placed*>(a)->text, static_cast<const Placed*>(b)->text);
}

}  // namespace

int32_t order(const LatheRuntimeCall* given) {
  Call call(given);
  const DLTensor* x = call.operand(0, string_number);
  if (x == nullptr) return call.failed();
  const int64_t count = count_of(*x);
  auto* out = static_cast<int64_t*>(call.result(0, int64_type, x->ndim, x->shape));
  auto* all = static_cast<Placed*>(call.scratch(static_cast<uint64_t>(count), sizeof(Placed)));
  if (out == nullptr || all == nullptr) return call.failed();
  for (int64_t i = 0; i < count; ++i) {
    all[i].at = i;
    if (!call.text(numbers(*x)[i], &all[i].text)) return call.failed();
  }
  std::qsort(all, static_cast<size_t>(count), sizeof(Placed), compare);
  int64_t place = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0 && compare_texts(all[i - 1].text, all[i].text) != 0) ++place;
    out[all[i].at] = place;
  }
  return 0;
}

}  // namespace lathe::strings
