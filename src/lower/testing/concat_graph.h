// For tests: random graphs that put matrices together and take them apart.
#pragma once

#include "lower/testing/random_graph.h"
#include "ops/attributes.h"

namespace lathe::lower::testing {

inline Expr concatenated(std::vector<Expr> parts, int64_t axis) {
  return relax::make_call(ops::concat, std::move(parts), ir::make<ops::AxisAttributes>(axis)).value_or_throw();
}

struct ConcatGraph {
  ir::IRModule module;
  std::vector<std::vector<int64_t>> shapes;
};

// Matrices that are computed, put together along either axis, read, viewed and put together again. Their rows are
// multiples of 3; of any number, they are as many times a symbol that the inputs, of 3 rows, have.
enum class Rows : uint8_t { known, any };
inline ConcatGraph concat_graph(int operators, std::mt19937_64& random, Rows number = Rows::known) {
  const auto pick = [&](size_t count) { return random() % count; };
  const ir::Expr symbol = ir::size_var("n");
  const auto extents_of = [&](int64_t rows, std::vector<int64_t> others) {
    std::vector<ir::Expr> shape{number == Rows::any ? symbol * (rows / 3) : ir::int64(rows)};
    for (const int64_t extent : others) shape.push_back(ir::int64(extent));
    return shape;
  };
  struct Matrix {
    Expr value;
    int64_t rows, columns;
  };
  ConcatGraph graph;
  std::vector<relax::Var> params;
  std::vector<Matrix> values;
  for (int i = 0; i < 2; ++i) {
    const int64_t rows = 3, columns = 16 * (1 + static_cast<int64_t>(pick(2)));
    graph.shapes.push_back({rows, columns});
    params.push_back(relax::relax_var("x" + std::to_string(i),
                                      relax::tensor_info(extents_of(rows, {columns}), ir::DType::float32())));
    values.push_back({params.back(), rows, columns});
  }
  relax::BlockBuilder b;
  b.begin_function("main", params);
  const auto emit = [&](Expr e) { return b.emit_output(std::move(e)); };
  const auto call = [&](const relax::Operator& op, std::vector<Expr> args) {
    return emit(relax::make_call(op, std::move(args)).value_or_throw());
  };
  const auto reshape = [&](const Expr& x, int64_t rows, std::vector<int64_t> others) {
    return call(ops::reshape, {x, ir::make<relax::ShapeExpr>(extents_of(rows, std::move(others)))});
  };
  for (int i = 0; i < operators; ++i) {
    const Matrix x = values[pick(2) ? values.size() - 1 : pick(values.size())];
    const auto [value, rows, columns] = x;
    switch (pick(10)) {
      case 8:
      case 9: {
        if (columns % 32 != 0) break;
        const Expr items =
            emit(relax::make_call(ops::split, {value},
                                  ir::make<ops::SplitAttributes>(int64_t{1}, std::vector<int64_t>{}, int64_t{2}))
                     .value_or_throw());
        for (int64_t k = pick(4) ? 0 : 1; k < 2; ++k) {
          const relax::StructInfo info = relax::tensor_info(extents_of(rows, {columns / 2}), ir::DType::float32());
          values.push_back(
              {emit(relax::with_struct_info(ir::make<relax::TupleGetItem>(items, k), info)), rows, columns / 2});
        }
        break;
      }
      case 0:
        values.push_back({call(ops::relu, {value}), rows, columns});
        break;
      case 1:
        values.push_back({call(ops::add, {value, relax::constant(random_data({1, columns}, random))}), rows, columns});
        break;
      case 2:
        values.push_back({call(ops::matmul, {value, relax::constant(random_data({columns, 16}, random))}), rows, 16});
        break;
      case 3:
        values.push_back(
            {reshape(call(ops::negative, {reshape(value, rows, {columns / 16, 16})}), rows, {columns}), rows, columns});
        break;
      case 4:
        values.push_back({reshape(value, rows * columns / 16, {16}), rows * columns / 16, 16});
        break;
      case 5:
      case 6:
      case 7: {
        const bool beside = pick(3) > 0;
        Matrix all{{}, rows, 0};
        if (!beside) all = {{}, 0, columns};
        std::vector<Expr> parts;
        for (size_t k = 0, tries = 0; k < 2 + pick(2) && tries < 20; ++tries) {
          const Matrix& part = values[pick(values.size())];
          if (beside ? part.rows != rows : part.columns != columns) continue;
          const bool is_constant = number == Rows::known && pick(8) == 0;
          parts.push_back(is_constant ? relax::constant(random_data({part.rows, part.columns}, random)) : part.value);
          (beside ? all.columns : all.rows) += beside ? part.columns : part.rows;
          ++k;
        }
        if (parts.size() < 2 || all.rows * all.columns > 4000) break;
        values.push_back({emit(concatenated(std::move(parts), beside ? 1 : 0)), all.rows, all.columns});
        break;
      }
      default:
        break;
    }
  }
  std::vector<Expr> results{values.back().value};
  if (pick(2)) results.push_back(values[pick(values.size())].value);
  b.end_function(relax::tuple_of(std::move(results)));
  graph.module = b.finish();
  return graph;
}

}  // namespace lathe::lower::testing
