// The convolution that undoes one.
//
// Element o of the result takes x[q - j] * kernel[r + stride * j] for each j, where q and r are the quotient and the
// remainder of o + pad_begin by the stride. So all elements of one remainder are a convolution of x with every
// stride-th cell of the kernel, turned around. Remainders with as many cells share one convolution, as channels of its
// result.
#include "ir/floor.h"
#include "ops/attributes.h"
#include "ops/build.h"
#include "ops/operators.h"

namespace lathe::ops::build {

namespace {

// Along one dimension the remainders from `first`, `count` of them, to each of which `cells` cells of the kernel
// belong.
struct Remainders {
  int64_t first = 0, count = 0, cells = 0;
};

// One dimension: its stride, the quotient of the first element of the result, what follows the last of x.
struct Along {
  int64_t stride = 0, first_quotient = 0, after = 0;
  std::vector<Remainders> remainders;
};

// The extent where it is not cut off at zero; where it is, nothing is computed.
Expr unclamped(const Expr& extent) {
  const auto* clamped = extent.as<ir::Max>();
  return clamped && ir::is_int(clamped->b, 0) ? clamped->a : extent;
}

// Nothing where the sizes of the kernel, or how far the result reaches beyond x, are not known, or cells lie apart.
std::optional<std::vector<Along>> dimensions_of(const Shape& own, const Shape& weights,
                                                const TransposedConvolution& how) {
  std::vector<Along> result;
  for (size_t d = 0; d < how.out.size(); ++d) {
    const auto size = ir::as_int(weights[d + 2]), begin = ir::as_int(how.pad_begin[d]);
    const int64_t stride = how.strides[d];
    if (!size || *size < 1 || !begin || how.dilations[d] != 1) return std::nullopt;
    if (ir::is_int(own[d + 2], 0) || ir::is_int(how.out[d], 0)) return std::nullopt;
    const auto end = ir::as_int(relax::simplified(unclamped(how.out[d]) + *begin - own[d + 2] * stride));
    if (!end) return std::nullopt;
    Along along{stride, ir::floor_div(*begin, stride), -ir::floor_div(-*end, stride), {}};
    const int64_t more = *size % stride, cells = *size / stride;
    if (more > 0) along.remainders.push_back({0, more, cells + 1});
    if (cells > 0) along.remainders.push_back({more, stride - more, cells});
    result.push_back(std::move(along));
  }
  return result;
}

// One convolution: for each dimension its remainders.
using Part = std::vector<Remainders>;

std::vector<Part> parts_of(const std::vector<Along>& dimensions) {
  std::vector<Part> parts{{}};
  for (const Along& along : dimensions) {
    std::vector<Part> longer;
    for (const Part& part : parts)
      for (const Remainders& each : along.remainders) {
        longer.push_back(part);
        longer.back().push_back(each);
      }
    parts = std::move(longer);
  }
  return parts;
}

int64_t channels_for_each(const Part& part) {
  int64_t count = 1;
  for (const Remainders& each : part) count *= each.count;
  return count;
}

// [groups * remainders * M, C / groups, cells…] of a kernel [C, M, size…]: by operators, which fold where it is
// constant.
Value part_of_kernel(BlockBuilder& b, const Value& kernel, const Part& part, const std::vector<Along>& dimensions,
                     int64_t groups) {
  const Expr channels = shape_of(kernel)[0], outputs = shape_of(kernel)[1];
  const Expr inputs = relax::simplified(ir::floordiv(channels, ir::int64(groups)));
  const size_t rank = part.size();
  // As many sizes as whole strides of cells have, cut off or filled up.
  Shape none(rank + 2, ir::int64(0)), missing = none, whole = shape_of(kernel);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t size = *ir::as_int(whole[d + 2]), wanted = part[d].cells * dimensions[d].stride;
    missing[d + 2] = ir::int64(std::max<int64_t>(0, wanted - size));
    whole[d + 2] = ir::int64(wanted);
  }
  const auto sliced = [&](const Value& x, Axes axes, Shape from, Shape to, Axes steps) {
    return b
        .call(ops::strided_slice,
              {x, ir::make<relax::ShapeExpr>(std::move(from)), ir::make<relax::ShapeExpr>(std::move(to))},
              ir::make<StridedSliceAttributes>(std::move(axes), std::move(steps)))
        .value_or_throw();
  };
  Value cells = b.call(ops::pad, {kernel, ir::make<relax::ShapeExpr>(none), ir::make<relax::ShapeExpr>(missing)},
                       ir::make<PadAttributes>(std::string("constant")))
                    .value_or_throw();
  Axes all;
  for (size_t d = 0; d < rank + 2; ++d) all.push_back(static_cast<int64_t>(d));
  cells = sliced(cells, all, none, whole, Axes(rank + 2, 1));
  // [groups, C / groups, M, cells, stride, …], then the strides before M, the cells behind C.
  Shape apart{ir::int64(groups), inputs, outputs};
  Axes order{0}, remainders, behind{2, 1};
  for (size_t d = 0; d < rank; ++d) {
    apart.push_back(ir::int64(part[d].cells));
    apart.push_back(ir::int64(dimensions[d].stride));
    behind.push_back(static_cast<int64_t>(3 + 2 * d));
    order.push_back(static_cast<int64_t>(4 + 2 * d));
  }
  order.insert(order.end(), behind.begin(), behind.end());
  cells = permuted(b, reshape(b, cells, std::move(apart)), std::move(order));
  // The remainders of this part, and the cells from the last to the first.
  Axes axes, steps;
  Shape from, to, shape{relax::simplified(outputs * (groups * channels_for_each(part))), inputs};
  const auto cut = [&](size_t axis, int64_t first, int64_t end, int64_t step) {
    axes.push_back(static_cast<int64_t>(axis));
    from.push_back(ir::int64(first));
    to.push_back(ir::int64(end));
    steps.push_back(step);
  };
  for (size_t d = 0; d < rank; ++d) {
    cut(1 + d, part[d].first, part[d].first + part[d].count, 1);
    cut(3 + rank + d, part[d].cells - 1, -part[d].cells - 1, -1);
    shape.push_back(ir::int64(part[d].cells));
  }
  return reshape(b, sliced(cells, std::move(axes), std::move(from), std::move(to), std::move(steps)), std::move(shape));
}

Value convolve_part(BlockBuilder& b, const Value& x, const Value& kernel, const Part& part,
                    const std::vector<Along>& dimensions, int64_t groups) {
  std::vector<int64_t> begins, ends;
  for (size_t d = 0; d < part.size(); ++d) {
    begins.push_back(std::max<int64_t>(0, part[d].cells - 1 - dimensions[d].first_quotient));
    ends.push_back(std::max<int64_t>(0, dimensions[d].after));
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  const std::vector<int64_t> ones(part.size(), 1);
  return b
      .call(ops::conv, {x, part_of_kernel(b, kernel, part, dimensions, groups)},
            ir::make<ConvAttributes>(ones, begins, ones, groups, std::string("NOTSET"), std::string("NCHW"),
                                     std::string("OIHW"), int64_t{0}, DType(), std::string()))
      .value_or_throw();
}

// [batch, channels, spatial…] with the channels last, or back.
Value with_channels_last(BlockBuilder& b, const Value& x, bool back = false) {
  Axes order;
  for (size_t d = 0; d < shape_of(x).size(); ++d) order.push_back(static_cast<int64_t>(d));
  if (back)
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
  else
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return permuted(b, x, std::move(order));
}

// The parts' elements side by side; where no cell meets an element it is zero. Channels that are many are moved
// together, which is why they are last then.
Value interleave(BlockBuilder& b, std::vector<Value> convolved, const std::vector<Part>& parts,
                 const std::vector<Along>& dimensions, Shape shape, const Expr& outputs,
                 const TransposedConvolution& how) {
  constexpr int64_t many = 8;
  const bool last = ir::as_int(shape[1]).value_or(0) >= many;
  if (last) {
    for (Value& part : convolved) part = with_channels_last(b, part);
    std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
  }
  const auto build = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](Indices i) {
          if (last) std::rotate(i.begin() + 1, i.end() - 1, i.end());
          const Expr group = how.groups == 1 ? ir::int64(0) : ir::floordiv(i[1], outputs);
          Expr value = ir::constant(dtype_of(convolved[0]), 0);
          for (size_t p = parts.size(); p-- > 0;) {
            Expr channel = group, here = ir::boolean(true);
            Indices from{i[0], Expr()};
            for (size_t d = 0; d < dimensions.size(); ++d) {
              const auto& [stride, first_quotient, after, remainders] = dimensions[d];
              const Remainders& own = parts[p][d];
              const Expr at = i[d + 2] + how.pad_begin[d], remainder = ir::floormod(at, ir::int64(stride));
              if (own.first > 0) here = ir::logical_and(here, remainder >= own.first);
              if (own.first + own.count < stride) here = ir::logical_and(here, remainder < own.first + own.count);
              channel = channel * own.count + (remainder - own.first);
              // The convolution may start before the first quotient that is asked for.
              const int64_t before = std::max<int64_t>(0, first_quotient - (own.cells - 1));
              from.push_back(ir::floordiv(at, ir::int64(stride)) - (first_quotient - before));
            }
            from[1] = channel * outputs + (i[1] - group * outputs);
            if (last) std::rotate(from.begin() + 1, from.begin() + 2, from.end());
            value = ir::if_then_else(here, in[p](std::move(from)), value);
          }
          return value;
        },
        in, "interleave")};
  };
  const Value together = b.call_te("interleave", convolved, build).value_or_throw();
  return last ? with_channels_last(b, together, true) : together;
}

// All of x and the kernel for each element of the result, and zero for what does not meet.
Value sum_what_meets(BlockBuilder& b, const Value& x, const Value& kernel, const TransposedConvolution& how) {
  const Shape &own = shape_of(x), &weights = shape_of(kernel);
  const size_t spatial = how.out.size();
  const Expr per_group = relax::simplified(ir::floordiv(own[1], ir::int64(how.groups)));
  const Expr outputs = weights[1];
  Shape shape{own[0], relax::simplified(outputs * how.groups)};
  shape.insert(shape.end(), how.out.begin(), how.out.end());
  const DType dtype = dtype_of(x), wide = relax::accumulation_dtype(dtype);
  std::vector<te::IterVar> axes{te::reduce_axis(ir::int64(0), per_group, "rc")};
  for (size_t d = 0; d < spatial; ++d)
    axes.push_back(te::reduce_axis(ir::int64(0), weights[d + 2], "k" + std::to_string(d)));
  const auto build = [&](const std::vector<Tensor>& in) {
    const Tensor sums = te::compute(
        shape,
        [&](const Indices& i) {
          const Expr group = how.groups == 1 ? ir::int64(0) : ir::floordiv(i[1], outputs);
          const Expr channel = group * per_group + axes[0]->var;
          Indices from{i[0], channel}, cell{channel, i[1] - group * outputs};
          Expr meets = ir::boolean(true);
          for (size_t d = 0; d < spatial; ++d) {
            const Expr at = i[d + 2] + how.pad_begin[d] - axes[d + 1]->var * how.dilations[d];
            const Expr stride = ir::int64(how.strides[d]), position = ir::floordiv(at, stride);
            meets = ir::logical_and(meets, ir::eq(ir::floormod(at, stride), ir::int64(0)));
            meets = ir::logical_and(meets, ir::logical_and(at >= 0, position < own[d + 2]));
            from.push_back(position);
            cell.push_back(axes[d + 1]->var);
          }
          const Expr product = ir::cast(wide, in[0](std::move(from))) * ir::cast(wide, in[1](std::move(cell)));
          return te::sum(ir::if_then_else(meets, product, ir::constant(wide, 0)), axes);
        },
        in, "conv_transpose");
    return std::vector{te::topi::cast(sums, dtype, "conv_transpose_result")};
  };
  return b.call_te("conv_transpose", {x, kernel}, build).value_or_throw();
}

}  // namespace

Value conv_transpose(BlockBuilder& b, const Value& x, const Value& kernel, const TransposedConvolution& how) {
  const Shape &own = shape_of(x), &weights = shape_of(kernel);
  expect_equal(b, weights[0], own[1]);
  const auto dimensions = dimensions_of(own, weights, how);
  if (!dimensions) return sum_what_meets(b, x, kernel, how);
  const std::vector<Part> parts = parts_of(*dimensions);
  std::vector<Value> convolved;
  for (const Part& part : parts) convolved.push_back(convolve_part(b, x, kernel, part, *dimensions, how.groups));
  Shape shape{own[0], relax::simplified(weights[1] * how.groups)};
  shape.insert(shape.end(), how.out.begin(), how.out.end());
  return interleave(b, std::move(convolved), parts, *dimensions, std::move(shape), weights[1], how);
}

}  // namespace lathe::ops::build
