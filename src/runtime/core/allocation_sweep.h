// For tests: a piece of work is done again and again, each time with another request for memory failing.
#pragma once

#include <cstdint>
#include <functional>

namespace lathe::runtime::testing {

struct Swept {
  int64_t places = 0;   // requests that were made to fail
  int64_t refused = 0;  // how often the work then gave an error; else it did without
};

// The work gives the status of what it calls and gives back all that it got, so that nothing stays allocated. A status
// other than LATHE_OK must be of memory or of files, with a sentence, and the work must succeed afterwards.
Swept sweep(const std::function<int32_t()>& work);

}  // namespace lathe::runtime::testing
