// This machine as a target, by CPUID: never by the name of its CPU.
#include "runtime/cpu/host.h"
#include "target/features.h"

namespace lathe::target {

Target native_target() {
  const runtime::Host& host = runtime::host();
  Target target;
  target.triple = std::string(host.architecture) + "-unknown-linux-gnu";
  for (int32_t f = 0; f < host.feature_count; ++f) target.features.insert(host.features[f]);
  target.cores = std::max<int32_t>(1, host.logical_cores);
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
