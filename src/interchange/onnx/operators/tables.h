// The tables of operators, one a family. A frontend operator is a row in one of them.
#pragma once

#include <span>

#include "interchange/onnx/node.h"

namespace lathe::onnx::operators {

using Table = std::span<const OperatorRow>;

Table arithmetic();
Table activation();
Table comparison();
Table conversion();
Table create();
Table linear();
Table normalize();
Table pool();
Table reduce();
Table arrange();
Table reshape();
Table select();

inline std::array<Table, 12> tables() {
  return {arithmetic(), activation(), comparison(), conversion(), create(),  linear(),
          normalize(),  pool(),       reduce(),     arrange(),    reshape(), select()};
}

}  // namespace lathe::onnx::operators
