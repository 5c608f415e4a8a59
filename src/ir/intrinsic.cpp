#include "ir/intrinsic.h"

namespace lathe::ir {

const Intrinsic* find_intrinsic(std::string_view name) {
  static constexpr const Intrinsic* rows[] = {
#define LATHE_INTRINSIC(NAME, ARITY, EFFECT, MEANING) &intrinsic::NAME,
#include "ir/intrinsic.def"
#undef LATHE_INTRINSIC
  };
  for (const Intrinsic* row : rows)
    if (row->name == name) return row;
  return nullptr;
}

}  // namespace lathe::ir
