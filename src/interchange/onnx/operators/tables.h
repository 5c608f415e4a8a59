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
Table index();
Table along();
Table loss();
Table quantize();
Table resize();
Table attention();
Table statistics();
Table recurrent();
Table by_data();
Table sampling();
Table signal();
Table control();
Table collection();
Table random();
Table classical();
Table trees();
Table text();
Table images();
Table other_domains();
Table differentiate();

inline std::array<Table, 32> tables() {
  return {arithmetic(), activation(), comparison(),    conversion(),   create(),     linear(),    normalize(),
          pool(),       reduce(),     arrange(),       reshape(),      select(),     index(),     along(),
          loss(),       quantize(),   resize(),        attention(),    statistics(), recurrent(), by_data(),
          sampling(),   signal(),     control(),       collection(),   random(),     classical(), trees(),
          text(),       images(),     other_domains(), differentiate()};
}

}  // namespace lathe::onnx::operators
