// What only the run can tell of values, asked before they are used.
#include "ops/build.h"
#include "relax/mismatch.h"
#include "relax/tensor_to_shape.h"
#include "support/mutation.h"

namespace lathe::ops::build {

LATHE_FAULT(ops_find_element, "ops_test", "the scan for a wrong element leaves the last one out");

void expect_equal(BlockBuilder& b, const Expr& actual, const Expr& expected) {
  if (relax::same_extent(actual, expected)) return;
  if (relax::different_extents(actual, expected))
    throw support::DiagnosticError(relax::wrong(
        codes::shape_mismatch, "the extent " + relax::text_of(actual) + " must be " + relax::text_of(expected)));
  expect(b, ir::eq(actual, expected), relax::Message() << relax::mismatch(actual, expected) << b.operands());
}

void expect(BlockBuilder& b, const Expr& condition, const relax::Message& message) {
  b.emit(relax::make_assert(condition, message, b.origin()).value_or_throw(), "checked");
}

Finding find_element(BlockBuilder& b, const Value& x, const Judgement& is_wrong) {
  const Expr count = relax::simplified(ir::product(shape_of(x)));
  if (ir::is_int(count, 0)) return {ir::int64(-1), ir::int64(0)};
  const Value flat = reshape(b, x, {count});
  const auto scan = [&](const std::vector<Tensor>& in) {
    const ir::IterVar k = te::reduce_axis(ir::int64(0), support::flip(ops_find_element) ? count - 1 : count, "k");
    const Tensor first = te::compute(
        {}, [&](const Indices&) { return te::min(ir::select(is_wrong(in[0]({k->var}), k->var), k->var, count), {k}); },
        in, "first_wrong");
    const Tensor finding = te::compute(
        {ir::int64(2)},
        [&](const Indices& i) {
          // Of no elements nothing was computed.
          const Expr place = ir::if_then_else(count > 0, first(Indices{}), count);
          const Expr value = ir::if_then_else(
              place < count, ir::cast(DType::int64(), in[0]({ir::min(place, count - 1)})), ir::int64(0));
          return ir::if_then_else(ir::eq(i[0], ir::int64(1)), value, ir::select(place < count, place, ir::int64(-1)));
        },
        {first, in[0]}, "finding");
    return std::vector{finding};
  };
  const Value finding = b.call_te("find_element", {flat}, scan).value_or_throw();
  const Value numbers = b.call(relax::tensor_to_shape_operator, {finding}).value_or_throw();
  const Finding found{ir::var("position"), ir::var("found")};
  b.match_cast(numbers, ir::make<relax::ShapeStructInfo>(relax::OptionalShape(Shape{found.position, found.value})),
               "found");
  return found;
}

}  // namespace lathe::ops::build
