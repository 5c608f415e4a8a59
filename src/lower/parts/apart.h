// Kernels that read one part of a tensor and write another.
#pragma once

#include "tir/stmt.h"

namespace lathe::lower {

// Says of a kernel (PrimFunc attribute "apart") that it reads nothing through the parameters `read` of what it writes
// through `written`, so that they may be the same memory. What reads elements of that memory need not come first, and
// code is made as for different memory.
inline void set_apart(tir::PrimFunc& kernel, const std::vector<int64_t>& read, size_t written) {
  ir::Value::List pairs;
  for (const int64_t param : read)
    pairs.emplace_back(ir::Value::List{ir::Value(param), ir::Value(static_cast<int64_t>(written))});
  kernel.attrs.set("apart", std::move(pairs));
}

// Whether it says so of the two.
inline bool are_apart(const tir::PrimFunc& kernel, size_t read, size_t written) {
  const auto* pairs = kernel.attrs.get<ir::Value::List>("apart");
  return pairs && std::any_of(pairs->begin(), pairs->end(), [&](const ir::Value& pair) {
           const auto& both = *pair.get<ir::Value::List>();
           return *both[0].get<int64_t>() == static_cast<int64_t>(read) &&
                  *both[1].get<int64_t>() == static_cast<int64_t>(written);
         });
}

}  // namespace lathe::lower
