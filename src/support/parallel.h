// Independent pieces of work on several threads.
#pragma once

#include <cstddef>

#include "support/function_ref.h"

namespace lathe::support {

// Calls work(i) for each i below `count`, on up to `threads` threads, the caller among them; returns when all are
// done. What the least i threw, if any did, is thrown again. Which thread takes which i is not determined.
void parallel_for(size_t count, int threads, function_ref<void(size_t)> work);

}  // namespace lathe::support
