// Conversion of element types.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/integers.h"
#include "interchange/onnx/operators/convert.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/operators/text/text.h"
#include "ops/build.h"
#include "relax/strings.h"

namespace lathe::onnx::operators {

namespace {

DType target(NodeImport& c) {
  return element_type(c.attributes.integer("to"), "the result", c.place()).value_or_throw();
}

void convert_to(NodeImport& c, DType to) {
  const Conversion how = read_conversion(c);
  const bool is_text = to == relax::string_dtype, was_text = c.dtype(0) == relax::string_dtype;
  if (is_text && was_text) return c.pass_on(0);
  if (is_text) return c.set(as_text(c, c.input(0)));
  if (was_text) return c.set(as_number(c, c.input(0), to));
  c.set(converted(c, c.input(0), to, how));
}
void cast(NodeImport& c) { convert_to(c, target(c)); }
void cast_like(NodeImport& c) { convert_to(c, c.dtype(1)); }

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
bool fold_cast(NodeImport& c) {
  read_conversion(c);
  return fold_to(c, target(c));
}
bool fold_cast_like(NodeImport& c) {
  read_conversion(c);
  return fold_to(c, c.dtype(1));
}

// The same bits as a type of the same width. A bool is a byte that is 0 or 1; of other bytes the lowest bit counts.
void bit_cast(NodeImport& c) {
  const DType from = c.dtype(0), to = target(c);
  if (from.storage_bits() != to.storage_bits())
    c.fail(codes::wrong_node, "BitCast of " + from.str() + " to " + to.str() + ", which has another width");
  if (from == to) return c.set(c.input(0));
  c.set(ops::build::elementwise(
      c.builder(), {c.input(0)}, c.shape(0),
      [&](const ops::Indices& element, const ops::Indices&) {
        const DType byte = DType::uint(8);
        ir::Expr bits = from.is_bool() ? ir::cast(byte, element[0]) : element[0];
        if (!to.is_bool()) return bits->dtype == to ? bits : ir::call(to, ir::intrinsic::reinterpret, {bits});
        if (bits->dtype != byte) bits = ir::call(byte, ir::intrinsic::reinterpret, {bits});
        return ir::ne(ir::floormod(bits, ir::constant(byte, int64_t{2})), ir::constant(byte, int64_t{0}));
      },
      "bit_cast"));
}

const OperatorRow conversion_rows[] = {
    {"Cast", {6, 9, 13, 19, 21, 23, 24, 25}, 1, 1, 1, cast, fold_cast},
    {"CastLike", {15, 19, 21, 23, 24, 25}, 2, 2, 1, cast_like, fold_cast_like},
    {"BitCast", {26}, 1, 1, 1, bit_cast},
};

}  // namespace

Table conversion() { return conversion_rows; }

}  // namespace lathe::onnx::operators
