// Conversion of element types.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/integers.h"
#include "interchange/onnx/operators/tables.h"

namespace lathe::onnx::operators {

namespace {

void read_rounding(NodeImport& c) {
  // They matter for 8-bit floats alone, which are refused by their type.
  c.attributes.ignore("saturate");
  c.attributes.ignore("round_mode");
}

DType target(NodeImport& c) {
  read_rounding(c);
  return element_type(c.attributes.integer("to"), "the result", c.place()).value_or_throw();
}

void cast(NodeImport& c) { c.set(c.cast(c.input(0), target(c))); }

void cast_like(NodeImport& c) {
  read_rounding(c);
  c.set(c.cast(c.input(0), c.dtype(1)));
}

bool fold_to(NodeImport& c, DType dtype) {
  const bool narrows = dtype == DType::int32();
  if (dtype.is_bool() && !c.dtype(0).is_bool()) {
    Integers values;
    for (const ir::Expr& e : *c.known(0))
      values.push_back(ir::select(relax::simplified(ir::ne(e, ir::int64(0))), ir::int64(1), ir::int64(0)));
    c.set_integers(std::move(values), c.integer_dims(0), dtype);
    return true;
  }
  if (dtype != DType::int64() && !narrows) return false;
  Integers values = *c.known(0);
  if (narrows)
    for (ir::Expr& e : values)
      if (const auto value = ir::as_int(e)) e = ir::int64(ir::wrap_integer(*value, dtype));
  c.set_integers(std::move(values), c.integer_dims(0), dtype);
  return true;
}
bool fold_cast(NodeImport& c) { return fold_to(c, target(c)); }
bool fold_cast_like(NodeImport& c) {
  read_rounding(c);
  return fold_to(c, c.dtype(1));
}

const OperatorRow conversion_rows[] = {
    {"Cast", {6, 9, 13, 19, 21, 23, 24, 25}, 1, 1, 1, cast, fold_cast},
    {"CastLike", {15, 19, 21, 23, 24, 25}, 2, 2, 1, cast_like, fold_cast_like},
};

}  // namespace

Table conversion() { return conversion_rows; }

}  // namespace lathe::onnx::operators
