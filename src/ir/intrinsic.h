// Intrinsics: the scalar functions and built-in operations that `Call` names. One row each, in intrinsic.def.
#pragma once

#include <cstdint>
#include <string_view>

namespace lathe::ir {

enum class Effect : uint8_t {
  pure,    // depends on its arguments only
  reads,   // reads memory or state
  updates  // changes memory or state; never moved or dropped
};

struct Intrinsic {
  std::string_view name;  // "exp": printed as T.exp
  int arity;              // -1: any
  Effect effect;
  std::string_view meaning;
};

// Each row as a constant: `intrinsic::exp`.
namespace intrinsic {
#define LATHE_INTRINSIC(NAME, ARITY, EFFECT, MEANING) \
  inline constexpr Intrinsic NAME{#NAME, ARITY, Effect::EFFECT, MEANING};
#include "ir/intrinsic.def"
#undef LATHE_INTRINSIC
}  // namespace intrinsic

// The row with that name, or null.
const Intrinsic* find_intrinsic(std::string_view name);
// The same, as fields that hold a row are read (ir/fields.h).
inline const Intrinsic* row_named(const Intrinsic*, std::string_view name) { return find_intrinsic(name); }

}  // namespace lathe::ir
