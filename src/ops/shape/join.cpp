// concat joins tensors along an axis, split takes one apart.
#include <limits>

#include "ops/rule.h"
#include "support/mutation.h"
#include "tir/parts.h"

namespace lathe::ops {

LATHE_FAULT(ops_concat_offset, "ops_test", "concat: the third tensor is written over the second");

namespace {

// The tensors, given one by one or as a tuple.
Result<std::vector<const TensorStructInfo*>> tensors_of(const InferContext& c) {
  std::vector<const TensorStructInfo*> tensors;
  for (size_t i = 0; i < c.args.size(); ++i) {
    const auto* tuple = c.args[i] ? c.args[i]->struct_info.as<relax::TupleStructInfo>() : nullptr;
    if (!tuple) {
      tensors.push_back(TRY(relax::tensor_argument(c, i)));
      continue;
    }
    for (const StructInfo& item : tuple->items) {
      if (!item.as<TensorStructInfo>())
        return relax::wrong(codes::wrong_arguments, "concat of a value that is no tensor");
      tensors.push_back(item.as<TensorStructInfo>());
    }
  }
  if (tensors.empty()) return relax::wrong(codes::wrong_arguments, "concat of no tensors");
  return tensors;
}

Result<StructInfo> infer_concat(const InferContext& c) {
  const auto tensors = TRY(tensors_of(c));
  const TensorStructInfo& first = *tensors[0];
  for (const TensorStructInfo* t : tensors) {
    if (t->dtype != first.dtype)
      return relax::wrong(codes::dtype_mismatch,
                          "concat of " + relax::text_of(first) + " with " + relax::text_of(*t) + ": the dtypes differ");
    if (t->ndim != first.ndim)
      return relax::wrong(codes::wrong_rank,
                          "concat of " + relax::text_of(first) + " with " + relax::text_of(*t) + ": the ranks differ");
    if (!t->shape) return relax::tensor_info_of_rank(t->ndim, t->dtype);
  }
  const auto axis = static_cast<size_t>(TRY(relax::normalize_axis(c, c.attrs<AxisAttributes>().axis, first.ndim)));
  Shape shape = *first.shape;
  for (size_t k = 1; k < tensors.size(); ++k)
    for (size_t d = 0; d < shape.size(); ++d) {
      const Expr& extent = (*tensors[k]->shape)[d];
      if (d == axis)
        shape[d] = shape[d] + extent;
      else if (!relax::may_be(extent, shape[d], c.assumptions))
        return relax::wrong(codes::shape_mismatch, "concat of " + relax::text_of(first) + " with " +
                                                       relax::text_of(*tensors[k]) + " along axis " +
                                                       std::to_string(axis) + ": they differ in dimension " +
                                                       std::to_string(d));
    }
  shape[axis] = relax::simplified(shape[axis]);
  return relax::tensor_info(std::move(shape), first.dtype);
}

// Whether the tensors have one element each along the last axis, the joined one: a stack along a new axis.
bool puts_elements_beside(const std::vector<Tensor>& tensors, size_t axis, size_t rank) {
  constexpr size_t most = 4;
  return axis > 0 && axis + 1 == rank && tensors.size() > 1 && tensors.size() <= most &&
         std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& t) { return ir::is_int(t.shape()[axis], 1); });
}

// A loop nest a tensor, each writing its part: no choice for every element. Single elements are put into one another
// by one nest, whose vectors are shuffled together.
std::vector<Tensor> lower_concat(const LowerContext& c) {
  const TensorStructInfo& out = c.output();
  const int64_t given = c.attrs<AxisAttributes>().axis;
  const auto axis = static_cast<size_t>(given < 0 ? given + out.ndim : given);
  std::vector<Tensor> inputs;
  for (const auto& tensor : c.tensors)
    if (tensor) inputs.push_back(*tensor);
  if (puts_elements_beside(inputs, axis, static_cast<size_t>(out.ndim)))
    return {te::compute(
        *out.shape,
        [&](Indices i) {
          const Expr place = std::exchange(i.back(), ir::int64(0));
          Expr value = inputs.back()(i);
          for (size_t k = inputs.size() - 1; k-- > 0;)
            value = ir::select(ir::eq(place, ir::int64(static_cast<int64_t>(k))), inputs[k](i), value);
          return value;
        },
        inputs, "concat")};
  const auto build = [&](const std::vector<ir::Buffer>& in, const std::vector<ir::Buffer>& outputs) {
    std::vector<tir::Stmt> nests;
    Expr offset = ir::int64(0);
    for (size_t k = 0; k < in.size(); ++k) {
      nests.push_back(tir::copy_into_part("concat_" + std::to_string(k), in[k], outputs[0], axis, offset));
      if (!(support::flip(ops_concat_offset) && k == 1)) offset = offset + in[k]->shape[axis];
    }
    return tir::seq(std::move(nests));
  };
  return te::extern_op({{*out.shape, inputs[0].dtype()}}, inputs, build, "concat");
}

// The parts' extents along the axis.
Result<Shape> parts_of(const InferContext& c, const TensorStructInfo& x, size_t axis) {
  const auto& a = c.attrs<SplitAttributes>();
  const Expr& extent = (*x.shape)[axis];
  Shape parts;
  if (!a.sizes.empty()) {
    int64_t total = 0;
    for (const int64_t size : a.sizes) {
      if (size < 0) return relax::wrong(codes::wrong_attribute, "split into a part of " + std::to_string(size));
      if (size > std::numeric_limits<int64_t>::max() - total)
        return relax::wrong(codes::wrong_attribute, "the parts of split add up to more than a tensor can have");
      total += size;
      parts.push_back(ir::int64(size));
    }
    if (!relax::may_be(extent, ir::int64(total), c.assumptions))
      return relax::wrong(codes::shape_mismatch, "the parts of split add up to " + std::to_string(total) +
                                                     ", but axis " + std::to_string(axis) + " of " + relax::text_of(x) +
                                                     " has " + relax::text_of(extent));
    return parts;
  }
  if (a.sections < 1)
    return relax::wrong(codes::wrong_attribute, "split into " + std::to_string(a.sections) + " parts");
  constexpr int64_t most_sections = 65536;  // each is a tensor of the graph
  if (a.sections > most_sections)
    return relax::wrong(codes::wrong_attribute, "split into " + std::to_string(a.sections) + " parts, but at most " +
                                                    std::to_string(most_sections) + " are possible");
  const Expr part = ir::ceildiv(extent, ir::int64(a.sections));
  for (int64_t k = 0; k < a.sections; ++k) parts.push_back(relax::non_negative(ir::min(part, extent - part * k)));
  return parts;
}

Result<StructInfo> infer_split(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  if (!x.shape) return relax::wrong(codes::wrong_rank, "split of " + relax::text_of(x) + ", whose shape is not known");
  const auto axis = static_cast<size_t>(TRY(relax::normalize_axis(c, c.attrs<SplitAttributes>().axis, x.ndim)));
  std::vector<StructInfo> parts;
  for (const Expr& part : TRY(parts_of(c, x, axis))) {
    Shape shape = *x.shape;
    shape[axis] = part;
    parts.push_back(relax::tensor_info(std::move(shape), x.dtype));
  }
  return StructInfo(ir::make<relax::TupleStructInfo>(std::move(parts)));
}

std::vector<Tensor> lower_split(const LowerContext& c) {
  const Tensor& x = c.tensor(0);
  const int64_t given = c.attrs<SplitAttributes>().axis;
  const auto axis = static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(x.ndim()) : given);
  const size_t count = c.call.struct_info.as<relax::TupleStructInfo>()->items.size();
  std::vector<Tensor> parts;
  Expr offset = ir::int64(0);
  for (size_t k = 0; k < count; ++k) {
    const Shape& shape = *c.output(k).shape;
    parts.push_back(te::compute(
        shape,
        [&](Indices i) {
          i[axis] = i[axis] + offset;
          return x(std::move(i));
        },
        {x}, "split_" + std::to_string(k)));
    offset = offset + shape[axis];
  }
  return parts;
}

}  // namespace

const Operator concat{
    .name = "concat",
    .inputs = {{"tensors", Input::variadic}},
    .attributes = relax::attributes_of<AxisAttributes>(),
    .infer = infer_concat,
    .meaning = relax::TeExpression(lower_concat),
    .fusion = FusionKind::opaque,
    .reference = "numpy.concatenate(tensors, axis)",
};

const Operator split{
    .name = "split",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<SplitAttributes>(),
    .infer = infer_split,
    .meaning = relax::TeExpression(lower_split),
    .fusion = FusionKind::injective,
    .reference = "numpy.split(x, numpy.cumsum(sizes)[:-1], axis)",
};

}  // namespace lathe::ops
