// Tensors of strings. Their element is `handle`: inside a run a string is a number of that run, 0 the empty string, and
// equal strings have equal numbers. So operators that move or compare elements need not know strings; as loops they
// work on int64 (`loop_dtype`). What looks into strings is a kernel of the runtime.
//
//   s = R.strings(texts=["a", "b"], shape=[2])     t = R.as_strings(numbers)
#pragma once

#include "relax/operator.h"

namespace lathe::relax {

inline constexpr DType string_dtype = DType::handle();

// What loops see of elements of that dtype.
constexpr DType loop_dtype(DType dtype) { return dtype == string_dtype ? DType::int64() : dtype; }

// Whether a value of that type may hold strings, in a tensor or further inside.
bool holds_strings(const StructInfo& info);

// A constant tensor of strings, in row-major order. Strings are bytes.
struct StringsAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "StringsAttributes";
  std::vector<std::string> texts;
  std::vector<int64_t> shape;
  static constexpr auto fields() {
    return std::tuple{field("texts", &StringsAttributes::texts), field("shape", &StringsAttributes::shape)};
  }
};
extern const Operator strings_operator;
Expr strings(std::vector<std::string> texts, std::vector<int64_t> shape, ir::Origin origin = {});

// A tensor of int64 whose elements are numbers of strings of this run, as those strings.
extern const Operator as_strings_operator;

}  // namespace lathe::relax
