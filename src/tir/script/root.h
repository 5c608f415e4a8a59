// How a function's outermost block appears in its text.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

enum class RootForm : uint8_t {
  implied,     // the root block has nothing but allocations, and its text leaves it out
  plain,       // the body stands as it is, and reading it adds nothing
  as_written,  // the body stands as it is, and must be read with `complete=False`
};
RootForm root_form(const PrimFunc& function);

// Whether `body`, read as a function's whole body, gets a root block around it.
bool needs_root(const Stmt& body);

}  // namespace lathe::tir
