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

// What a place is computed from: elements around it, by their offsets in the plane of a channel (-1 for none), and what
// each counts. Both are [taps, points…], all channels share them.
struct Taps {
  Value offsets, weights;  // no weights where the nearest element is taken
  int64_t count = 1;
};

int64_t taps_of(Interpolation interpolation) {
  return interpolation == Interpolation::nearest ? 1 : interpolation == Interpolation::linear ? 2 : 4;
}

// Offsets are of 32 bits where the plane is known to be no larger: vectors of them are addresses of as many elements.
DType offset_dtype(const Shape& plane) {
  const auto elements = ir::as_int(ir::product(plane));
  return elements && *elements <= std::numeric_limits<int32_t>::max() ? DType::int32() : DType::int64();
}

Taps taps_around(BlockBuilder& b, const Value& grid, const std::vector<GridAxis>& axes, DType wide) {
  const Shape& where = shape_of(grid);
  const Shape points(where.begin(), where.end() - 1);
  const Interpolation interpolation = axes[0].how.interpolation;
  const int64_t each = taps_of(interpolation);
  const auto spatial = static_cast<int64_t>(axes.size());
  Taps taps;
  Shape tapped{ir::int64(1)}, placed{ir::int64(spatial)};
  for (int64_t d = 0; d < spatial; ++d) taps.count *= each;
  tapped[0] = ir::int64(taps.count);
  for (Shape* shape : {&tapped, &placed}) shape->insert(shape->end(), points.begin(), points.end());
  const auto places_of = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        placed,
        [&](const Indices& i) {
          Indices at(i.begin() + 1, i.end());
          at.push_back(spatial - 1 - i[0]);  // the last coordinate is that of the first dimension
          GridAxis axis = axes.back();
          for (size_t d = axes.size() - 1; d-- > 0;)
            axis.extent = ir::select(ir::eq(i[0], ir::int64(static_cast<int64_t>(d))), axes[d].extent, axis.extent);
          return axis.placed(as_place(in[0](std::move(at))));
        },
        in, "grid_places")};
  };
  const Value places = b.call_te("grid_places", {grid}, places_of).value_or_throw();
  // The place in one dimension, and the element there that a tap reads.
  const auto tap = [&](const Tensor& from, const Indices& i, size_t d) {
    Indices at{ir::int64(static_cast<int64_t>(d))};
    at.insert(at.end(), i.begin() + 1, i.end());
    const Expr place_of = from(std::move(at));
    int64_t inside = 1;
    for (size_t k = d + 1; k < axes.size(); ++k) inside *= each;
    const Expr number = ir::floormod(ir::floordiv(i[0], ir::int64(inside)), ir::int64(each));
    return std::pair(place_of, floor_of(place_of) + as_place(number - (each - 1) / 2));
  };
  Shape plane;
  for (const GridAxis& axis : axes) plane.push_back(axis.extent);
  const DType offset_type = offset_dtype(plane);
  const auto offsets_of = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        tapped,
        [&](const Indices& i) {
          Expr offset = ir::int64(0), is_there = ir::boolean(true);
          for (size_t d = 0; d < axes.size(); ++d) {
            const Expr element = axes[d].element(ir::cast(DType::int64(), tap(in[0], i, d).second));
            offset = offset * axes[d].extent + element;
            is_there = ir::logical_and(is_there, element >= 0);
          }
          return ir::cast(offset_type, ir::select(is_there, offset, ir::int64(-1)));
        },
        in, "grid_offsets")};
  };
  taps.offsets = b.call_te("grid_offsets", {places}, offsets_of).value_or_throw();
  if (interpolation == Interpolation::nearest) return taps;
  const auto weights_of = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        tapped,
        [&](const Indices& i) {
          Expr weight;
          for (size_t d = 0; d < axes.size(); ++d) {
            const auto [at, element] = tap(in[0], i, d);
            const Expr own = interpolation_weight(interpolation, -0.75, at - element);
            weight = weight ? weight * own : own;
          }
          return ir::cast(wide, weight);
        },
        in, "grid_weights")};
  };
  taps.weights = b.call_te("grid_weights", {places}, weights_of).value_or_throw();
  return taps;
}

Value sampled_grid(BlockBuilder& b, const Value& x, const Value& grid, const GridSampling& how, bool moves_places) {
  const Shape own = shape_of(x), where = shape_of(grid);
  const Shape plane(own.begin() + 2, own.end());
  expect_equal(b, where[0], own[0]);
  expect_equal(b, where.back(), ir::int64(static_cast<int64_t>(plane.size())));
  const DType dtype = dtype_of(x), wide = interpolation_dtype(dtype);
  std::vector<GridAxis> axes;
  for (const Expr& extent : plane) axes.push_back({how, extent, moves_places});
  const Shape points(where.begin() + 1, where.end() - 1);
  const Expr count = ir::product(points);
  const Taps taps = taps_around(b, reshape(b, grid, {where[0], count, where.back()}), axes, wide);
  // Where they are many, the channels of an element lie side by side and are read together.
  constexpr int64_t many = 8;
  const bool is_last = ir::as_int(own[1]).value_or(0) >= many;
  const auto turned = [&](const Value& value) { return is_last ? permuted(b, value, {0, 2, 1}) : value; };
  const Value elements = turned(reshape(b, x, {own[0], own[1], ir::product(plane)}));
  const auto number = ir::as_int(ir::product(plane));
  const bool has_elements = number && *number > 0;

  const auto build = [&](const std::vector<Tensor>& in) {
    // i is [batch, channel, place].
    const auto tap = [&](const Indices& i, const Expr& t) { return Indices{t, i[0], i[2]}; };
    const auto element = [&](const Indices& i, const Expr& t) {
      const Expr offset = in[1](tap(i, t)), zero = ir::constant(in[0].dtype(), 0), is_there = offset >= 0;
      const Expr at = ir::cast(DType::int64(), ir::max(offset, ir::constant(offset->dtype, 0)));
      const Expr read = is_last ? in[0]({i[0], at, i[1]}) : in[0]({i[0], i[1], at});
      if (!has_elements) return ir::if_then_else(is_there, read, zero);
      return how.outside == Outside::zeros ? ir::select(is_there, read, zero) : read;
    };
    const auto sum = [&](const Indices& i) {
      if (!taps.weights) return element(i, ir::int64(0));
      Expr all;
      for (int64_t t = 0; t < taps.count; ++t) {
        const Expr term = ir::cast(wide, element(i, ir::int64(t))) * in[2](tap(i, ir::int64(t)));
        all = all ? all + term : term;
      }
      return all;
    };
    const Tensor sampled = is_last ? te::compute(
                                         {own[0], count, own[1]},
                                         [&](const Indices& i) { return sum({i[0], i[2], i[1]}); }, in, "grid_sample")
                                   : te::compute({own[0], own[1], count}, sum, in, "grid_sample");
    return std::vector{taps.weights ? te::topi::cast(sampled, dtype, "grid_sample_result") : sampled};
  };
  std::vector<Value> operands{elements, taps.offsets};
  if (taps.weights) operands.push_back(taps.weights);
  Shape result{own[0], own[1]};
  result.insert(result.end(), points.begin(), points.end());
  return reshape(b, turned(b.call_te("grid_sample", operands, build).value_or_throw()), result);
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
  const Shape bins{shape_of(regions)[0], ir::int64(how.height), ir::int64(how.width)};
  const Shape shape{bins[0], bins[1], bins[2], own[1]};
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
    constexpr int64_t corners = 4;
    return block_over(
        bins, "region_align",
        [&](const Indices& at) {
          const tir::BufferRegion written = part_of_buffer(out[0], {at[0], at[1], at[2]});
          return Regions{
              {part_of_buffer(in[0], {}), part_of_buffer(in[1], {at[0]}), part_of_buffer(in[2], {at[0]}), written},
              {written}};
        },
        [&](const Indices& at) {
          const Side rows = side(at[0], 1, how.height, own[2]), columns = side(at[0], 0, how.width, own[3]);
          const Expr image = index_into(ir::load(in[2], {at[0]}), own[0]);
          const Expr total = ir::cast(wide, as_place(ir::max(rows.count * columns.count, ir::int64(1))));
          const auto result = [&](const Expr& channel) { return Indices{at[0], at[1], at[2], channel}; };
          const tir::Stmt steps = loops_over({rows.count, columns.count}, [&](const Indices& k) {
            const auto [y, on_rows] = sample(rows, at[1], k[0]);
            const auto [x_at, on_columns] = sample(columns, at[2], k[1]);
            const auto part = [](const Expr& place_of, int64_t next, const Expr& extent) {
              const Expr base = floor_of(place_of), fraction = place_of - base;
              const Expr index = ir::min(ir::cast(DType::int64(), base) + next, extent - 1);
              return std::pair(index, next ? fraction : place(1) - fraction);
            };
            // All channels share where a corner's elements are, and what they count.
            std::vector<std::pair<Expr, Expr>> read;
            for (int64_t corner = 0; corner < corners; ++corner) {
              const auto [row, height] = part(y, corner / 2, own[2]);
              const auto [column, width] = part(x_at, corner % 2, own[3]);
              read.emplace_back(row * own[3] + column, ir::cast(wide, height * width));
            }
            const auto element = [&](int64_t corner, const Expr& channel) {
              const auto& [place_of, weight] = read[static_cast<size_t>(corner)];
              return ir::cast(wide, ir::load(in[0], {image, place_of, channel})) * weight;
            };
            const Expr is_on = ir::logical_and(on_rows, on_columns);
            if (!how.takes_largest) {
              return when(is_on, vectors_over(own[1], [&](const Expr& channel) {
                            Expr sum = element(0, channel);
                            for (int64_t corner = 1; corner < corners; ++corner) sum = sum + element(corner, channel);
                            return store(out[0], ir::load(out[0], result(channel)) + ir::div(sum, total),
                                         result(channel));
                          }));
            }
            // The largest of the weighted elements, as ONNX's reference has it; one off the map counts as zero.
            const Expr is_first = ir::eq(k[0] + k[1], ir::int64(0));
            return vectors_over(own[1], [&](const Expr& channel) {
              Expr largest = element(0, channel);
              for (int64_t corner = 1; corner < corners; ++corner) largest = ir::max(largest, element(corner, channel));
              const Expr value = ir::select(is_on, largest, ir::constant(wide, 0));
              const Expr so_far = ir::load(out[0], result(channel));
              return store(out[0], ir::select(is_first, value, ir::max(so_far, value)), result(channel));
            });
          });
          const tir::Stmt start = vectors_over(
              own[1], [&](const Expr& channel) { return store(out[0], ir::constant(wide, 0), result(channel)); });
          return tir::seq({start, steps});
        });
  };
  const auto tensors = [&](const std::vector<Tensor>& in) {
    return te::extern_op({{shape, wide}}, in, build, "region_align");
  };
  // The channels of an element lie side by side, and are read together.
  const Value elements = reshape(b, permuted(b, x, {0, 2, 3, 1}), {own[0], own[2] * own[3], own[1]});
  const Value pooled = b.call_te("region_align", {elements, regions, batches}, tensors).value_or_throw();
  return cast(b, permuted(b, pooled, {0, 3, 1, 2}), dtype);
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
