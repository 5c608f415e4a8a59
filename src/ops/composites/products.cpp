// Sums of products: linear, outer, einsum.
#include "ops/composites/operands.h"

namespace lathe::ops::composites {

namespace {

struct LinearAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "LinearAttributes";
  std::optional<DType> out_dtype;  // nothing: the data's
  static constexpr auto fields() { return std::tuple{field("out_dtype", &LinearAttributes::out_dtype)}; }
};

struct EinsumAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "EinsumAttributes";
  std::optional<std::string> subscripts;
  static constexpr auto fields() { return std::tuple{field("subscripts", &EinsumAttributes::subscripts)}; }
};

// data @ weight.T + bias; weight is [N, K], or [K] for one column that is left out.
Value expand_linear(const Expansion& e) {
  const Value &data = e.tensor(0), &weight = e.tensor(1);
  expect_dtype(e, 0, "data", DTypeSet::numeric);
  expect_one_dtype(e, {data, weight});
  const size_t rank = build::shape_of(weight).size();
  if (rank != 1 && rank != 2)
    e.refuse(codes::wrong_rank, "the argument 'weight' is of rank " + std::to_string(rank) +
                                    ", but it must be a matrix [out_features, in_features] or a vector");
  const DType dtype = element_dtype(e, e.attrs<LinearAttributes>().out_dtype, build::dtype_of(data));
  const Value right = rank == 2 ? e.permute(weight, {1, 0}) : weight;
  auto how = ir::make<MatmulAttributes>();
  const_cast<MatmulAttributes&>(*how).out_dtype = dtype;
  const Value product = e.call(ops::matmul, {data, right}, how);
  if (!e.has(2)) return product;
  const Value& bias = e.tensor(2);
  if (build::dtype_of(bias) != dtype && build::dtype_of(bias) != build::dtype_of(data))
    e.refuse(codes::dtype_mismatch,
             "the bias is " + build::dtype_of(bias).str() + ", but the result is " + dtype.str());
  if (!relax::broadcasts_to(build::shape_of(bias), build::shape_of(product), nullptr))
    e.refuse(codes::cannot_broadcast, "cannot broadcast the bias " + relax::text_of(build::shape_of(bias)) + " to " +
                                          relax::text_of(build::shape_of(product)));
  return e.call(ops::add, {product, e.cast(bias, dtype)});
}

Value expand_outer(const Expansion& e) {
  expect_dtype(e, 0, "x1", DTypeSet::numeric);
  expect_one_dtype(e, {e.tensor(0), e.tensor(1)});
  for (const size_t i : {size_t(0), size_t(1)})
    if (const Shape& shape = build::shape_of(e.tensor(i)); shape.size() != 1)
      e.refuse(codes::wrong_rank, "the argument 'x" + std::to_string(i + 1) + "' is " + relax::text_of(shape) +
                                      ", but it must be a vector");
  const Value column = e.reshape(e.tensor(0), {build::shape_of(e.tensor(0))[0], ir::int64(1)});
  return e.call(ops::multiply, {column, e.tensor(1)});
}

Value expand_einsum(const Expansion& e) {
  const std::vector<Value> operands = e.tensors();
  if (operands.empty()) e.refuse(codes::wrong_arguments, "there are no operands");
  expect_one_dtype(e, operands);
  if (!relax::contains(DTypeSet::numeric, build::dtype_of(operands[0])))
    e.refuse(codes::dtype_not_supported,
             "the operands are " + build::dtype_of(operands[0]).str() + ", but they must be of numbers");
  const auto& subscripts = e.attrs<EinsumAttributes>().subscripts;
  if (!subscripts) e.refuse(codes::wrong_attribute, "the attribute 'subscripts' is missing");
  return build::einsum(e.b, operands, *subscripts);
}

}  // namespace

const Operator linear = composite("linear", {{"data"}, {"weight"}, {"bias", Input::optional}},
                                  relax::attributes_of<LinearAttributes>(), expand_linear, "data @ weight.T + bias");
const Operator outer = composite("outer", {{"x1"}, {"x2"}}, nullptr, expand_outer, "numpy.outer(x1, x2)");
const Operator einsum = composite("einsum", {{"operands", Input::variadic}}, relax::attributes_of<EinsumAttributes>(),
                                  expand_einsum, "numpy.einsum(subscripts, *operands)");

}  // namespace lathe::ops::composites
