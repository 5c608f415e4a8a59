// This machine as a target, by CPUID: never by the name of its CPU.
#include <algorithm>

#include "runtime/cpu/host.h"
#include "runtime/cpu/thread_count.h"
#include "target/features.h"

namespace lathe::target {

Target native_target() {
  const runtime::Host& host = runtime::host();
  Target target;
  target.triple = std::string(host.architecture) + "-unknown-linux-gnu";
  for (int32_t f = 0; f < host.feature_count; ++f) target.features.insert(host.features[f]);
  // A container or an affinity mask leaves fewer than there are: work is cut for those that will do it.
  target.cores = std::max<int32_t>(1, std::min(host.logical_cores, runtime::usable_cores()));
  for (const runtime::CacheInfo& cache : host.caches) {
    if (cache.level == 0) break;
    if (cache.instructions) continue;
    target.caches.push_back({.level = cache.level,
                             .bytes = static_cast<int64_t>(cache.bytes),
                             .line_bytes = cache.line_bytes,
                             .shared_by = std::max<int32_t>(1, cache.threads)});
  }
  derive_vectors(target);
  return target;
}

}  // namespace lathe::target
