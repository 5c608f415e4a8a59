#include "interchange/onnx/integers.h"

namespace lathe::onnx {

int64_t element_count(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

std::vector<int64_t> row_major(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

std::optional<ir::Expr> divide(const ir::Expr& a, const ir::Expr& b, const SymbolBounds& bounds) {
  const auto x = ir::as_int(a), y = ir::as_int(b);
  if (y == 0) return std::nullopt;
  if (x && y) return *y == -1 ? ir::int64(0) - a : ir::int64(*x / *y);
  if (!bounds.at_least(b, 0)) return std::nullopt;
  if (bounds.at_least(a, 0)) return bounds.simplified(ir::floordiv(a, b));
  // Towards zero: what is negative and less than the divisor is none of it.
  if (bounds.at_least(a + b, 1)) return bounds.simplified(ir::floordiv(ir::max(a, ir::int64(0)), b));
  return std::nullopt;
}

relax::Expr shape_expr(Integers values) { return ir::make<relax::ShapeExpr>(std::move(values)); }

bool fold_elementwise(NodeImport& c, DType result, const IntegerFunction& f) {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<int64_t> dims;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has(i)) return false;
    shapes.push_back(c.integer_dims(i));
    const std::vector<int64_t>& own = shapes.back();
    if (own.size() > dims.size()) dims.insert(dims.begin(), own.size() - dims.size(), 1);
    for (size_t d = 0; d < own.size(); ++d) {
      int64_t& extent = dims[dims.size() - own.size() + d];
      if (extent == 1)
        extent = own[d];
      else if (own[d] != 1 && own[d] != extent)
        return false;  // the tensor's type rule says it better
    }
  }
  for (const int64_t dim : dims)
    if (dim > most_integers) return false;
  if (dims.size() > 8) return false;
  const int64_t count = element_count(dims);
  if (count > most_integers) return false;
  const std::vector<int64_t> strides = row_major(dims);
  const DType dtype = result.is_void() ? c.dtype(0) : result;
  Integers values;
  for (int64_t at = 0; at < count; ++at) {
    std::vector<ir::Expr> operands;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const std::vector<int64_t> own = row_major(shapes[i]);
      int64_t index = 0;
      for (size_t d = 0; d < own.size(); ++d) {
        const size_t outer = dims.size() - own.size() + d;
        if (shapes[i][d] != 1) index += at / strides[outer] % dims[outer] * own[d];
      }
      operands.push_back((*c.known(i))[static_cast<size_t>(index)]);
    }
    const std::optional<ir::Expr> value = f(operands);
    if (!value) return false;
    const auto constant = ir::as_int(*value);
    values.push_back(constant ? ir::int64(ir::wrap_integer(*constant, dtype)) : *value);
  }
  c.set_integers(std::move(values), std::move(dims), dtype);
  return true;
}

}  // namespace lathe::onnx
