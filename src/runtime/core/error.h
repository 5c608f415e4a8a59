// Failures inside the runtime are codes; the sentence that goes with one is kept per thread for lathe_last_error.
#pragma once

#include <cstdint>

#include "abi/lathe.h"

namespace lathe::runtime {

// Remembers the failure for this thread and returns `code`. node may be null.
[[gnu::format(printf, 3, 4), gnu::cold]] int32_t fail(int32_t code, const char* node, const char* format, ...);

const LatheError& last_error();
// Says which node the last failure is of, where it does not say one; gives its code.
[[gnu::cold]] int32_t at_node(const char* node);

// "[2, 3]", cut short when it does not fit.
struct ShapeText {
  char text[192];
};
ShapeText shape_text(const int64_t* shape, int32_t rank);

struct DTypeText {
  char text[32];
};
DTypeText dtype_text(DLDataType dtype);

}  // namespace lathe::runtime
