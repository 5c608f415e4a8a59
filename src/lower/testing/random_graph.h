// For tests: small random graphs over float32 matrices, with views, constants, repeated uses and several results.
#pragma once

#include <random>

#include "ops/operators.h"
#include "relax/block_builder.h"

namespace lathe::lower::testing {

using ir::DType;
using relax::Expr;

inline ir::TensorData random_data(std::vector<int64_t> shape, std::mt19937_64& random) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 17) - 8) / 8;
  return ir::tensor_of<float>(DType::float32(), std::move(shape), values);
}

struct RandomGraph {
  ir::IRModule module;           // function "main"
  std::vector<int64_t> columns;  // input i has shape [rows, columns[i]]
  std::vector<ir::TensorData> inputs(int64_t rows, std::mt19937_64& random) const {
    std::vector<ir::TensorData> made;
    for (const int64_t n : columns) made.push_back(random_data({rows, n}, random));
    return made;
  }
};

// `rows` is the first extent of every input: a constant or a symbol.
inline RandomGraph random_graph(const ir::Expr& rows, int operators, std::mt19937_64& random) {
  RandomGraph graph;
  const int64_t extents[] = {1, 3, 5, 7, 16};
  const auto pick = [&](size_t count) { return random() % count; };
  struct Matrix {
    Expr value;
    int64_t columns;
  };
  std::vector<Matrix> values;
  std::vector<relax::Var> params;
  for (int i = 0; i < 2; ++i) {
    graph.columns.push_back(extents[pick(5)]);
    params.push_back(relax::relax_var("x" + std::to_string(i),
                                      relax::tensor_info({rows, ir::int64(graph.columns.back())}, DType::float32())));
    values.push_back({params.back(), graph.columns.back()});
  }
  relax::BlockBuilder b;
  b.begin_function("main", params);
  const auto call = [&](const relax::Operator& op, std::vector<Expr> args) {
    return b.emit_output(relax::make_call(op, std::move(args)).value_or_throw());
  };
  const auto reshape = [&](const Expr& x, std::vector<ir::Expr> shape) {
    return call(ops::reshape, {x, ir::make<relax::ShapeExpr>(std::move(shape))});
  };
  for (int i = 0; i < operators; ++i) {
    const Matrix x = values[pick(values.size())];
    const auto constant = [&](std::vector<int64_t> shape) {
      return relax::constant(random_data(std::move(shape), random));
    };
    switch (pick(7)) {
      case 0:
        values.push_back({call(ops::relu, {x.value}), x.columns});
        break;
      case 1:
        values.push_back({call(ops::negative, {x.value}), x.columns});
        break;
      case 2:
        values.push_back({call(ops::add, {x.value, constant({x.columns})}), x.columns});
        break;
      case 3: {
        const int64_t n = extents[pick(5)];
        values.push_back({call(ops::matmul, {x.value, constant({x.columns, n})}), n});
        break;
      }
      case 4: {  // a view of other rank, and one back
        const Expr wide = reshape(x.value, {rows, ir::int64(1), ir::int64(x.columns)});
        const Expr made = pick(2) ? call(ops::relu, {wide}) : wide;
        values.push_back({reshape(made, {rows, ir::int64(x.columns)}), x.columns});
        break;
      }
      case 5:  // another name of the same value
        values.push_back({b.emit_output(x.value), x.columns});
        break;
      default: {
        std::vector<Matrix> fitting;
        for (const Matrix& other : values)
          if (other.columns == x.columns) fitting.push_back(other);
        values.push_back({call(ops::subtract, {x.value, fitting[pick(fitting.size())].value}), x.columns});
      }
    }
  }
  std::vector<Expr> results;
  for (size_t i = 0, count = 1 + pick(3); i < count; ++i) results.push_back(values[pick(values.size())].value);
  results.push_back(values.back().value);
  std::vector<relax::StructInfo> infos;
  for (const Expr& result : results) infos.push_back(result->struct_info);
  b.end_function(relax::with_struct_info(ir::make<relax::Tuple>(std::move(results)),
                                         ir::make<relax::TupleStructInfo>(std::move(infos))));
  graph.module = b.finish();
  return graph;
}

}  // namespace lathe::lower::testing
