// The attributes of the operators that have some: one struct each, with the operator that takes it.
#pragma once

#include "relax/expr.h"

namespace lathe::ops {

using ir::field;
using relax::AttributesNode;

struct LeakyReluAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "LeakyReluAttributes";
  double alpha = 0.01;
  static constexpr auto fields() { return std::tuple{field("alpha", &LeakyReluAttributes::alpha)}; }
};

struct EluAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "EluAttributes";
  double alpha = 1;
  static constexpr auto fields() { return std::tuple{field("alpha", &EluAttributes::alpha)}; }
};

struct SeluAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "SeluAttributes";
  double alpha = 1.67326319217681884765625, gamma = 1.05070102214813232421875;  // ONNX's float32 defaults
  static constexpr auto fields() {
    return std::tuple{field("alpha", &SeluAttributes::alpha), field("gamma", &SeluAttributes::gamma)};
  }
};

struct HardSigmoidAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "HardSigmoidAttributes";
  double alpha = 0.2, beta = 0.5;
  static constexpr auto fields() {
    return std::tuple{field("alpha", &HardSigmoidAttributes::alpha), field("beta", &HardSigmoidAttributes::beta)};
  }
};

struct AstypeAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "AstypeAttributes";
  ir::DType dtype = ir::DType::float32();
  static constexpr auto fields() { return std::tuple{field("dtype", &AstypeAttributes::dtype)}; }
};

struct MatmulAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "MatmulAttributes";
  ir::DType out_dtype;          // void: the operands'
  std::string b_layout = "KN";  // or "NK{n}n": b is [ceil(N / n), K, n], zero padded
  int64_t columns = 0;          // N, where b is packed
  static constexpr auto fields() {
    return std::tuple{field("out_dtype", &MatmulAttributes::out_dtype), field("b_layout", &MatmulAttributes::b_layout),
                      field("columns", &MatmulAttributes::columns)};
  }
};

// n of a packed layout such as "NK16n" (prefix "NK", suffix "n"), 0 for another.
int64_t packed_lanes(std::string_view layout, std::string_view prefix, std::string_view suffix);

}  // namespace lathe::ops
