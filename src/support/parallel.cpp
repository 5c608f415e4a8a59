#include "support/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace lathe::support {

void parallel_for(size_t count, int threads, function_ref<void(size_t)> work) {
  const size_t wanted = std::min(count, static_cast<size_t>(std::max(threads, 1)));
  if (wanted <= 1) {
    for (size_t i = 0; i < count; ++i) work(i);
    return;
  }
  std::atomic<size_t> next{0};
  std::vector<std::exception_ptr> thrown(count);
  const auto take = [&]() {
    for (size_t i = next++; i < count; i = next++) try {
        work(i);
      } catch (...) {
        thrown[i] = std::current_exception();
      }
  };
  std::vector<std::jthread> others;
  for (size_t t = 1; t < wanted; ++t) others.emplace_back(take);
  take();
  others.clear();
  for (const std::exception_ptr& failure : thrown)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace lathe::support
