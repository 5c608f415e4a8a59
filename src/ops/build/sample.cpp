// Reading between elements, at places that other tensors give. Places are computed in float64.
#include "ops/build/sample.h"

#include "ops/build/statements.h"

namespace lathe::ops::build {

namespace {

const DType place_type = DType::float_(64);

Expr place(double value) { return ir::constant(place_type, value); }
Expr as_place(const Expr& x) { return ir::cast(place_type, x); }
Expr floor_of(const Expr& x) { return ir::call(ir::intrinsic::floor, x); }

// Within [low, high], a NaN low: what is cast to an integer afterwards is one.
Expr bounded(const Expr& x, const Expr& low, const Expr& high) {
  const Expr from_below = ir::select(x > low, x, low);
  return ir::select(from_below < high, from_below, high);
}

// x thrown back at the ends of [low, high] until it is inside.
Expr reflected(const Expr& x, const Expr& low, const Expr& high) {
  const Expr span = high - low, is_below = x < low;
  const Expr beyond = ir::select(is_below, low - x, x - high);
  const Expr times = floor_of(ir::div(beyond, span)), rest = beyond - times * span;
  const Expr is_even = ir::eq(times - floor_of(times * place(0.5)) * place(2), place(0));
  const Expr from_low = ir::select(is_even, is_below, ir::logical_not(is_below));
  const Expr inside = ir::select(from_low, low + rest, high - rest);
  return ir::select(span > place(0), ir::select(beyond > place(0), inside, x), low);
}

// How grid_sample sees one dimension.
struct GridAxis {
  const GridSampling& how;
  Expr extent;
  bool moves_places;  // to the border

  Expr last() const { return as_place(extent) - place(1); }
  Expr low() const { return place(how.align_corners ? 0 : -0.5); }
  Expr high() const { return how.align_corners ? last() : as_place(extent) - place(0.5); }

  // From [-1, 1] to elements, brought inside where the mode says so, and near enough to be an integer in any case.
  Expr placed(const Expr& given) const {
    const Expr scaled = (given + place(1)) * (how.align_corners ? last() : as_place(extent));
    Expr at = (how.align_corners ? scaled : scaled - place(1)) * place(0.5);
    if (how.interpolation == Interpolation::nearest) at = ir::call(ir::intrinsic::nearbyint, at);
    const Expr is_outside = ir::logical_or(at<low(), at> high());
    if (how.outside == Outside::border && moves_places) at = ir::select(is_outside, bounded(at, place(0), last()), at);
    if (how.outside == Outside::reflection) at = ir::select(is_outside, reflected(at, low(), high()), at);
    return bounded(at, place(-4), as_place(extent) + place(4));
  }

  // The element that is read for an index, or -1 for none.
  Expr element(const Expr& index) const {
    Expr at = index;
    if (how.outside == Outside::zeros) return ir::select(ir::logical_and(at >= 0, at < extent), at, ir::int64(-1));
    if (how.outside == Outside::reflection) {
      const Expr is_outside = ir::logical_or(at < 0, at >= extent);
      at = ir::select(is_outside, ir::cast(DType::int64(), reflected(as_place(at), low(), high())), at);
    }
    return ir::min(ir::max(at, ir::int64(0)), extent - 1);  // of no elements: -1
  }
};

// x[batch, channel, elements…], or 0 where one of the elements is -1.
Expr element_or_zero(const Tensor& x, Indices at, const Indices& elements) {
  Expr is_there = ir::boolean(true);
  for (const Expr& each : elements) {
    is_there = ir::logical_and(is_there, each >= 0);
    at.push_back(ir::max(each, ir::int64(0)));
  }
  return ir::if_then_else(is_there, x(std::move(at)), ir::constant(x.dtype(), 0));
}

DType interpolation_dtype(DType dtype) { return dtype.is_floating() ? relax::accumulation_dtype(dtype) : place_type; }

Value sampled_grid(BlockBuilder& b, const Value& x, const Value& grid, const GridSampling& how, bool moves_places) {
  const Shape own = shape_of(x), where = shape_of(grid);
  const size_t spatial = own.size() - 2;
  expect_equal(b, where[0], own[0]);
  expect_equal(b, where.back(), ir::int64(static_cast<int64_t>(spatial)));
  const int64_t taps = how.interpolation == Interpolation::nearest  ? 1
                       : how.interpolation == Interpolation::linear ? 2
                                                                    : 4;
  const Shape points(where.begin(), where.end() - 1);
  Shape shape{own[0], own[1]}, tapped = points;
  shape.insert(shape.end(), where.begin() + 1, where.end() - 1);
  tapped.push_back(ir::int64(taps));
  const DType dtype = dtype_of(x), wide = interpolation_dtype(dtype);

  const auto build = [&](const std::vector<Tensor>& in) {
    std::vector<Tensor> elements, weights, read{in[0]};
    for (size_t d = 0; d < spatial; ++d) {
      const GridAxis axis{how, own[d + 2], moves_places};
      const Tensor places = te::compute(
          points,
          [&](Indices i) {
            i.push_back(ir::int64(static_cast<int64_t>(spatial - 1 - d)));
            return axis.placed(as_place(in[1](std::move(i))));
          },
          {in[1]}, "grid_places");
      const auto tap = [&](const Indices& i) {
        const Expr at = places({i.begin(), i.end() - 1});
        return std::pair(at, floor_of(at) + as_place(i.back() - (taps - 1) / 2));
      };
      elements.push_back(te::compute(
          tapped, [&](const Indices& i) { return axis.element(ir::cast(DType::int64(), tap(i).second)); }, {places},
          "grid_elements"));
      read.push_back(elements.back());
      if (taps == 1) continue;
      weights.push_back(te::compute(
          tapped,
          [&](const Indices& i) {
            const auto [at, element] = tap(i);
            return ir::cast(wide, interpolation_weight(how.interpolation, -0.75, at - element));
          },
          {places}, "grid_weights"));
      read.push_back(weights.back());
    }
    std::vector<te::IterVar> axes;
    for (size_t d = 0; d < spatial; ++d)
      axes.push_back(te::reduce_axis(ir::int64(0), ir::int64(taps), "t" + std::to_string(d)));
    const auto cell = [&](const Indices& i, size_t d) {
      Indices at{i[0]};
      at.insert(at.end(), i.begin() + 2, i.end());
      at.push_back(taps == 1 ? ir::int64(0) : Expr(axes[d]->var));
      return at;
    };
    const auto element = [&](const Indices& i) {
      Indices at;
      for (size_t d = 0; d < spatial; ++d) at.push_back(elements[d](cell(i, d)));
      return element_or_zero(in[0], {i[0], i[1]}, at);
    };
    if (taps == 1) return std::vector{te::compute(shape, element, read, "grid_sample")};
    const Tensor sums = te::compute(
        shape,
        [&](const Indices& i) {
          Expr value = ir::cast(wide, element(i));
          for (size_t d = 0; d < spatial; ++d) value = value * weights[d](cell(i, d));
          return te::sum(value, axes);
        },
        read, "grid_sample");
    return std::vector{te::topi::cast(sums, dtype, "grid_sample_result")};
  };
  return b.call_te("grid_sample", {x, grid}, build).value_or_throw();
}

}  // namespace

Value grid_sample(BlockBuilder& b, const Value& x, const Value& grid, const GridSampling& how) {
  return sampled_grid(b, x, grid, how, true);
}

Value grid_sample_by_elements(BlockBuilder& b, const Value& x, const Value& grid, const GridSampling& how) {
  return sampled_grid(b, x, grid, how, false);
}

Value affine_grid(BlockBuilder& b, const Value& matrices, const Shape& extents, bool align_corners) {
  const size_t spatial = extents.size();
  Shape shape{shape_of(matrices)[0]};
  shape.insert(shape.end(), extents.begin(), extents.end());
  shape.push_back(ir::int64(static_cast<int64_t>(spatial)));
  const DType dtype = dtype_of(matrices);
  const auto build = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const Indices& i) {
          const auto factor = [&](size_t k) {
            return as_place(in[0]({i[0], i.back(), ir::int64(static_cast<int64_t>(k))}));
          };
          Expr sum = factor(spatial);
          for (size_t k = 0; k < spatial; ++k) {
            const size_t d = spatial - k;  // the last dimension is x
            const Expr index = as_place(i[d]);
            // A single element lies at the beginning where corners are aligned.
            const Expr at = align_corners
                                ? ir::div(place(2) * index, as_place(ir::max(shape[d] - 1, ir::int64(1)))) - place(1)
                                : ir::div(place(2) * index + place(1), as_place(shape[d])) - place(1);
            sum = sum + factor(k) * at;
          }
          return ir::cast(dtype, sum);
        },
        in, "affine_grid")};
  };
  return b.call_te("affine_grid", {matrices}, build).value_or_throw();
}

Value region_align(BlockBuilder& b, const Value& x, const Value& regions, const Value& batches,
                   const RegionPooling& how) {
  const Shape own = shape_of(x);
  expect_equal(b, shape_of(batches)[0], shape_of(regions)[0]);
  expect_equal(b, shape_of(regions)[1], ir::int64(4));
  const Shape shape{shape_of(regions)[0], own[1], ir::int64(how.height), ir::int64(how.width)};
  const DType dtype = dtype_of(x), wide = relax::accumulation_dtype(dtype);

  // One side of a region: where it begins, and how its bins are sampled.
  struct Side {
    Expr start, bin, count, extent;
  };
  const auto build = [&](const Buffers& in, const Buffers& out) {
    const auto side = [&](const Expr& region, int64_t first, int64_t bins, const Expr& extent) {
      const auto end = [&](int64_t k) {
        const Expr given = as_place(ir::load(in[1], {region, ir::int64(k)}));
        return given * place(how.scale) - place(how.half_pixel ? 0.5 : 0);
      };
      Expr length = end(first + 2) - end(first);
      if (!how.half_pixel) length = ir::select(length > place(1), length, place(1));
      const Expr bin = ir::div(length, place(static_cast<double>(bins)));
      const Expr count = how.samples > 0 ? ir::int64(how.samples)
                                         : ir::cast(DType::int64(), bounded(ir::call(ir::intrinsic::ceil, bin),
                                                                            place(0), as_place(extent) + place(1e6)));
      return Side{end(first), bin, count, extent};
    };
    // Where a sample lies, and whether it is on the map.
    const auto sample = [](const Side& s, const Expr& bin, const Expr& k) {
      const Expr within = ir::div((as_place(k) + place(0.5)) * s.bin, as_place(s.count));
      const Expr at = s.start + as_place(bin) * s.bin + within;
      const Expr is_on = ir::logical_and(at >= place(-1), at <= as_place(s.extent));
      return std::pair(bounded(at, place(0), as_place(s.extent) - place(1)), is_on);
    };
    return block_over(
        shape, "region_align",
        [&](const Indices& at) {
          return Regions{{part_of_buffer(in[0], {}), part_of_buffer(in[1], {at[0]}), part_of_buffer(in[2], {at[0]}),
                          tir::point_region(out[0], at)},
                         {tir::point_region(out[0], at)}};
        },
        [&](const Indices& at) {
          const Side rows = side(at[0], 1, how.height, own[2]), columns = side(at[0], 0, how.width, own[3]);
          const Expr image = index_into(ir::load(in[2], {at[0]}), own[0]);
          const Expr total = as_place(ir::max(rows.count * columns.count, ir::int64(1)));
          const tir::Stmt steps = loops_over({rows.count, columns.count}, [&](const Indices& k) {
            const auto [y, on_rows] = sample(rows, at[2], k[0]);
            const auto [x_at, on_columns] = sample(columns, at[3], k[1]);
            const auto corner = [&](int64_t down, int64_t right) {
              const auto part = [](const Expr& place_of, int64_t next, const Expr& extent) {
                const Expr base = floor_of(place_of), fraction = place_of - base;
                const Expr index = ir::min(ir::cast(DType::int64(), base) + next, extent - 1);
                return std::pair(index, next ? fraction : place(1) - fraction);
              };
              const auto [row, height] = part(y, down, own[2]);
              const auto [column, width] = part(x_at, right, own[3]);
              return ir::cast(wide, ir::load(in[0], {image, at[1], row, column})) * ir::cast(wide, height * width);
            };
            const std::array corners{corner(0, 0), corner(0, 1), corner(1, 0), corner(1, 1)};
            const Expr so_far = ir::load(out[0], at);
            if (!how.takes_largest) {
              const Expr sum = corners[0] + corners[1] + corners[2] + corners[3];
              const Expr share = ir::div(sum, ir::cast(wide, total));
              return when(ir::logical_and(on_rows, on_columns), store(out[0], so_far + share, at));
            }
            // The largest of the weighted elements, as ONNX's reference has it; one off the map counts as zero.
            const Expr largest = ir::max(ir::max(corners[0], corners[1]), ir::max(corners[2], corners[3]));
            const Expr value = ir::if_then_else(ir::logical_and(on_rows, on_columns), largest, ir::constant(wide, 0));
            const Expr is_first = ir::eq(k[0] + k[1], ir::int64(0));
            return store(out[0], ir::if_then_else(is_first, value, ir::max(so_far, value)), at);
          });
          return tir::seq({store(out[0], ir::constant(wide, 0), at), steps});
        });
  };
  const auto tensors = [&](const std::vector<Tensor>& in) {
    return te::extern_op({{shape, wide}}, in, build, "region_align");
  };
  return cast(b, b.call_te("region_align", {x, regions, batches}, tensors).value_or_throw(), dtype);
}

Value deformed_convolution(BlockBuilder& b, const Value& x, const Value& kernel, const Value& offset, const Value& mask,
                           const DeformedConvolution& how) {
  const Shape own = shape_of(x), weights = shape_of(kernel), moved = shape_of(offset);
  const size_t spatial = own.size() - 2;
  const Shape window(weights.begin() + 2, weights.end()), out(moved.begin() + 2, moved.end());
  const Expr points = relax::simplified(ir::product(window));
  const auto dimensions = static_cast<int64_t>(spatial);
  expect_equal(b, moved[0], own[0]);
  expect_equal(b, moved[1], relax::simplified(points * (how.offset_groups * dimensions)));
  expect_equal(b, relax::simplified(weights[1] * how.groups), own[1]);
  expect_equal(b, relax::simplified(ir::floormod(own[1], ir::int64(how.offset_groups))), ir::int64(0));
  expect_equal(b, relax::simplified(ir::floormod(weights[0], ir::int64(how.groups))), ir::int64(0));
  if (mask) {
    expect_equal(b, shape_of(mask)[0], own[0]);
    expect_equal(b, shape_of(mask)[1], relax::simplified(points * how.offset_groups));
    for (size_t d = 0; d < spatial; ++d) expect_equal(b, shape_of(mask)[d + 2], out[d]);
  }
  const Expr per_offset = relax::simplified(ir::floordiv(own[1], ir::int64(how.offset_groups)));
  const Expr outputs = relax::simplified(ir::floordiv(weights[0], ir::int64(how.groups)));
  const DType dtype = dtype_of(x), wide = relax::accumulation_dtype(dtype);
  Shape gathered{own[0], own[1]}, shape{own[0], weights[0]};
  gathered.insert(gathered.end(), window.begin(), window.end());
  gathered.insert(gathered.end(), out.begin(), out.end());
  shape.insert(shape.end(), out.begin(), out.end());
  std::vector<Value> args{x, kernel, offset};
  if (mask) args.push_back(mask);

  const auto build = [&](const std::vector<Tensor>& in) {
    std::vector<te::IterVar> corners;
    for (size_t d = 0; d < spatial; ++d)
      corners.push_back(te::reduce_axis(ir::int64(0), ir::int64(2), "t" + std::to_string(d)));
    // What the windows see: [N, C, window…, out…].
    const Tensor seen = te::compute(
        gathered,
        [&](const Indices& i) {
          const Expr group = ir::floordiv(i[1], ir::max(per_offset, ir::int64(1)));
          Expr point = ir::int64(0);
          for (size_t d = 0; d < spatial; ++d) point = point * window[d] + i[d + 2];
          const auto at_output = [&](const Expr& channel) {
            Indices at{i[0], channel};
            at.insert(at.end(), i.begin() + 2 + dimensions, i.end());
            return at;
          };
          Indices elements;
          Expr weight = ir::constant(wide, 1);
          for (size_t d = 0; d < spatial; ++d) {
            const Expr plain =
                i[d + 2 + spatial] * how.strides[d] + i[d + 2] * how.dilations[d] - ir::int64(how.pad_begin[d]);
            const Expr channel = (group * points + point) * dimensions + static_cast<int64_t>(d);
            const Expr extent = as_place(own[d + 2]);
            const Expr at =
                bounded(as_place(plain) + as_place(in[2](at_output(channel))), place(-2), extent + place(1));
            const Expr element = floor_of(at) + as_place(corners[d]->var);
            weight = weight * ir::cast(wide, interpolation_weight(Interpolation::linear, 0, at - element));
            const Expr index = ir::cast(DType::int64(), element);
            elements.push_back(ir::select(ir::logical_and(index >= 0, index < own[d + 2]), index, ir::int64(-1)));
          }
          Expr value = ir::cast(wide, element_or_zero(in[0], {i[0], i[1]}, elements)) * weight;
          if (mask) value = value * ir::cast(wide, in[3](at_output(group * points + point)));
          return te::sum(value, corners);
        },
        in, "deformed_windows");
    std::vector<te::IterVar> axes{te::reduce_axis(ir::int64(0), weights[1], "rc")};
    for (size_t d = 0; d < spatial; ++d)
      axes.push_back(te::reduce_axis(ir::int64(0), window[d], "k" + std::to_string(d)));
    const Tensor sums = te::compute(
        shape,
        [&](const Indices& i) {
          const Expr group = ir::floordiv(i[1], ir::max(outputs, ir::int64(1)));
          Indices at{i[0], group * weights[1] + axes[0]->var}, cell{i[1], axes[0]->var};
          for (size_t d = 0; d < spatial; ++d) {
            at.push_back(axes[d + 1]->var);
            cell.push_back(axes[d + 1]->var);
          }
          at.insert(at.end(), i.begin() + 2, i.end());
          return te::sum(seen(std::move(at)) * ir::cast(wide, in[1](std::move(cell))), axes);
        },
        {seen, in[1]}, "deformed_convolution");
    return std::vector{te::topi::cast(sums, dtype, "deformed_convolution_result")};
  };
  return b.call_te("deformed_convolution", std::move(args), build).value_or_throw();
}

Value fold_blocks(BlockBuilder& b, const Value& blocks, const Folding& how) {
  const Shape own = shape_of(blocks);
  const size_t spatial = how.image.size();
  const Expr points = relax::simplified(ir::product(how.block));
  Shape counts, shape{own[0], relax::simplified(ir::floordiv(own[1], ir::max(points, ir::int64(1))))};
  for (size_t d = 0; d < spatial; ++d) {
    const Expr reach = (how.block[d] - 1) * how.dilations[d] + 1;
    const Expr span = how.image[d] + (how.pad_begin[d] + how.pad_end[d]) - reach;
    counts.push_back(relax::non_negative(ir::floordiv(span, ir::int64(how.strides[d])) + 1));
    shape.push_back(how.image[d]);
  }
  expect_equal(b, relax::simplified(shape[1] * points), own[1]);
  expect_equal(b, own[2], relax::simplified(ir::product(counts)));
  const DType dtype = dtype_of(blocks);
  const DType wide = dtype.is_bool() ? DType::int_(32) : relax::accumulation_dtype(dtype);
  std::vector<te::IterVar> axes;
  for (size_t d = 0; d < spatial; ++d)
    axes.push_back(te::reduce_axis(ir::int64(0), how.block[d], "k" + std::to_string(d)));
  const auto build = [&](const std::vector<Tensor>& in) {
    const Tensor sums = te::compute(
        shape,
        [&](const Indices& i) {
          Expr point = ir::int64(0), block = ir::int64(0), meets = ir::boolean(true);
          for (size_t d = 0; d < spatial; ++d) {
            const Expr at = i[d + 2] + how.pad_begin[d] - axes[d]->var * how.dilations[d];
            const Expr stride = ir::int64(how.strides[d]), index = ir::floordiv(at, stride);
            meets = ir::logical_and(meets, ir::eq(ir::floormod(at, stride), ir::int64(0)));
            meets = ir::logical_and(meets, ir::logical_and(at >= 0, index < counts[d]));
            point = point * how.block[d] + axes[d]->var;
            block = block * counts[d] + index;
          }
          const Expr value = ir::cast(wide, in[0]({i[0], i[1] * points + point, block}));
          return te::sum(ir::if_then_else(meets, value, ir::constant(wide, 0)), axes);
        },
        in, "fold_blocks");
    return std::vector{te::topi::cast(sums, dtype, "fold_blocks_result")};
  };
  return b.call_te("fold_blocks", {blocks}, build).value_or_throw();
}

}  // namespace lathe::ops::build
