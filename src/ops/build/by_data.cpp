#include "ops/build/by_data.h"

#include "ops/build/merge_sort.h"
#include "ops/build/places.h"
#include "ops/build/radix_sort.h"
#include "relax/tensor_to_shape.h"

namespace lathe::ops::build {

namespace {

using Buffers = std::vector<ir::Buffer>;

// Statements over whole buffers, in short.
tir::Stmt write(const ir::Buffer& buffer, Expr value, Indices at) {
  return ir::make<tir::BufferStore>(buffer, std::move(value), std::move(at));
}
tir::Stmt in_order(std::vector<tir::Stmt> statements) { return tir::seq(std::move(statements)); }
tir::Stmt where(Expr condition, tir::Stmt then, tir::Stmt otherwise = {}) {
  return ir::make<tir::IfThenElse>(std::move(condition), std::move(then), std::move(otherwise));
}
tir::Stmt while_true(Expr condition, tir::Stmt body) {
  return ir::make<tir::While>(std::move(condition), std::move(body));
}
tir::Stmt count_to(const Expr& extent, const std::function<tir::Stmt(const Expr&)>& body) {
  const ir::Var i = ir::var("i");
  return ir::make<tir::For>(i, ir::int64(0), extent, tir::ForKind::serial, body(i));
}
tir::Stmt over_all(const Shape& extents, const std::function<tir::Stmt(const Indices&)>& body, Indices at = {}) {
  if (at.size() == extents.size()) return body(at);
  return count_to(extents[at.size()], [&](const Expr& i) {
    Indices inner = at;
    inner.push_back(i);
    return over_all(extents, body, std::move(inner));
  });
}

// One block that reads and writes all of the buffers, and has `locals` for itself.
tir::Stmt whole_block(const std::string& name, const Buffers& in, const Buffers& out, std::vector<tir::Stmt> body,
                      Buffers locals = {}) {
  std::vector<tir::BufferRegion> reads, writes;
  for (const ir::Buffer& buffer : in) reads.push_back(tir::region_of(buffer));
  for (const ir::Buffer& buffer : out) {
    reads.push_back(tir::region_of(buffer));
    writes.push_back(tir::region_of(buffer));
  }
  auto block =
      ir::make<tir::Block>(std::vector<ir::IterVar>{}, std::move(locals), std::vector<tir::MatchBufferRegion>{},
                           std::move(reads), std::move(writes), name, tir::Stmt{}, in_order(std::move(body)));
  return ir::make<tir::BlockRealize>(Indices{}, ir::boolean(true), block);
}

// The first `count` elements of a vector.
Value first_elements(BlockBuilder& b, const Value& x, const Expr& count) {
  const auto build = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute({count}, [&](const Indices& i) { return in[0](i); }, in, "first_elements")};
  };
  return b.call_te("first_elements", {x}, build).value_or_throw();
}

std::vector<Value> items_of(BlockBuilder& b, const Value& tuple, int64_t count) {
  std::vector<Value> items;
  for (int64_t i = 0; i < count; ++i) items.push_back(b.tuple_item(tuple, i));
  return items;
}

// The coordinates of what is not zero in a constant, [rank, n].
ir::TensorData nonzero_of(const ir::TensorDataNode& x) {
  const bool is_float = x.dtype.is_floating();
  std::vector<std::vector<int64_t>> along(x.shape.size());  // an axis, the coordinates of what is set
  int64_t count = 0;
  each_place(x.shape, [&](int64_t place, const std::vector<int64_t>& at) {
    if (is_float ? ir::float_at(x, place) == 0 : ir::int_at(x, place) == 0) return true;
    for (size_t d = 0; d < at.size(); ++d) along[d].push_back(at[d]);
    ++count;
    return true;
  });
  std::vector<int64_t> coordinates;
  for (const std::vector<int64_t>& axis : along) coordinates.insert(coordinates.end(), axis.begin(), axis.end());
  return ir::tensor_of(DType::int64(), {static_cast<int64_t>(along.size()), count}, coordinates);
}

// ---- unique rows ----

// Leaves in register MergeSort::compared -1, 0 or 1: how row a stands to row b.
tir::Stmt compare_rows(const ir::Buffer& rows, const VectorAccess& r, const Expr& a, const Expr& b) {
  constexpr int64_t compared = MergeSort::compared;
  const tir::Stmt columns = count_to(rows->shape[1], [&](const Expr& c) {
    const Expr x = ir::load(rows, {a, c}), y = ir::load(rows, {b, c});
    const tir::Stmt larger = where(comes_before(y, x), r.set(compared, ir::int64(1)));
    return where(ir::eq(r[compared], ir::int64(0)), where(comes_before(x, y), r.set(compared, ir::int64(-1)), larger));
  });
  return in_order({r.set(compared, ir::int64(0)), columns});
}

}  // namespace

Expr extent_at_run_time(BlockBuilder& b, const Value& count, const std::string& name) {
  const ir::Var symbol = ir::var(name);
  b.match_cast(b.call(relax::tensor_to_shape_operator, {count}).value_or_throw(),
               ir::make<relax::ShapeStructInfo>(relax::OptionalShape(Shape{symbol})));
  return symbol;
}

Value nonzero(BlockBuilder& b, const Value& x) {
  constexpr int64_t most_constants = 1 << 20;  // of which there are as many coordinates, in eight bytes each
  if (const auto* known = x.as<relax::Constant>(); known && known->data->elements() <= most_constants)
    return relax::constant(nonzero_of(*known->data));
  const Shape own = shape_of(x);
  const auto is_set = [](const Expr& e) { return e->dtype.is_bool() ? e : ir::ne(e, ir::constant(e->dtype, 0)); };
  const Value flags = elementwise(
      b, {x}, own, [&](const Indices& e, const Indices&) { return ir::cast(DType::int64(), is_set(e[0])); }, "is_set");
  const Value count = own.empty() ? flags : b.call(ops::sum, {flags}, ir::make<ReduceAttributes>()).value_or_throw();
  const Expr n = extent_at_run_time(b, count, "nonzero");
  const Shape shape{ir::int64(static_cast<int64_t>(own.size())), n};
  const auto build = [&](const Buffers& in, const Buffers& out) {
    const VectorAccess r{out[1], {}};
    const tir::Stmt find = over_all(own, [&](const Indices& at) {
      std::vector<tir::Stmt> found;
      for (size_t d = 0; d < at.size(); ++d)
        found.push_back(write(out[0], at[d], {ir::int64(static_cast<int64_t>(d)), r[0]}));
      found.push_back(r.set(0, r[0] + 1));
      return where(is_set(ir::load(in[0], at)), in_order(std::move(found)));
    });
    return whole_block("nonzero", in, out, {r.set(0, ir::int64(0)), find});
  };
  const auto tensors = [&](const std::vector<Tensor>& in) {
    if (own.empty()) return std::vector{te::compute(shape, [](const Indices& i) { return i[1]; }, in, "nonzero")};
    std::vector<Tensor> made =
        te::extern_op({{shape, DType::int64()}, {{ir::int64(1)}, DType::int64()}}, in, build, "nonzero");
    made.resize(1);
    return made;
  };
  return b.call_te("nonzero", {x}, tensors).value_or_throw();
}

UniqueRows unique_rows(BlockBuilder& b, const Value& x, bool sorted) {
  const Expr n = shape_of(x)[0];
  const DType index = DType::int64();
  const auto build = [&](const Buffers& in, const Buffers& out) {
    const ir::Buffer &first = out[0], &inverse = out[1], &counts = out[2], &order = out[4], &other = out[5];
    const VectorAccess groups{out[3], {}}, registers{out[6], {}};
    const auto compare = [&](const Expr& a, const Expr& b) { return compare_rows(in[0], registers, a, b); };
    // Places k in sorted order: a row that differs from the one before begins a group.
    const auto number = [&](const Expr& k) {
      const Expr row = ir::load(order, {k}), before = ir::load(order, {ir::max(k - 1, ir::int64(0))});
      const Expr last = groups[0] - 1;
      const tir::Stmt begin = in_order(
          {write(first, row, {groups[0]}), write(counts, ir::int64(0), {groups[0]}), groups.set(0, groups[0] + 1)});
      return in_order({compare(before, row),
                       where(ir::logical_or(ir::eq(k, ir::int64(0)), registers[MergeSort::compared] < 0), begin),
                       write(counts, ir::load(counts, {last}) + 1, {last}), write(inverse, last, {row})});
    };
    // Rows of one element have keys.
    const bool is_one = ir::is_int(in[0]->shape[1], 1);
    const RadixSort::Memory memory(in[0]->dtype, n);
    const RadixSort by_key(memory);
    const auto put = [&](const Expr& i) {
      return by_key.put(i, order_key(ir::load(in[0], {i, ir::int64(0)}), false), i);
    };
    const auto ordered = [&](const Expr& i) { return write(order, by_key.place(i), {i}); };
    const tir::Stmt sort = is_one ? in_order({by_key.start(), count_to(n, put), by_key.sort(n), count_to(n, ordered)})
                                  : MergeSort(n, {order, {}}, {other, {}}, registers).sort(compare);
    std::vector<tir::Stmt> all{sort, groups.set(0, ir::int64(0)), groups.set(1, ir::int64(0)), count_to(n, number)};
    if (!sorted) {
      // Groups by their first row: `order` gets the new number of each, `other` takes what moves.
      const auto rename = [&](const Expr& i) {
        const Expr group = ir::load(inverse, {i});
        return where(ir::eq(ir::load(first, {group}), i),
                     in_order({write(order, groups[1], {group}), groups.set(1, groups[1] + 1)}));
      };
      const auto moved = [&](const ir::Buffer& buffer) {
        return std::vector{
            count_to(n,
                     [&](const Expr& g) {
                       return where(g < groups[0], write(other, ir::load(buffer, {g}), {ir::load(order, {g})}));
                     }),
            count_to(n, [&](const Expr& g) { return where(g < groups[0], write(buffer, ir::load(other, {g}), {g})); })};
      };
      all.push_back(count_to(n, rename));
      for (const ir::Buffer& buffer : {first, counts})
        for (tir::Stmt& step : moved(buffer)) all.push_back(std::move(step));
      all.push_back(
          count_to(n, [&](const Expr& i) { return write(inverse, ir::load(order, {ir::load(inverse, {i})}), {i}); }));
    }
    // What no group takes is written too.
    all.push_back(count_to(n, [&](const Expr& g) {
      return where(g >= groups[0], in_order({write(first, ir::int64(0), {g}), write(counts, ir::int64(0), {g})}));
    }));
    return whole_block("unique_rows", in, out, std::move(all), is_one ? memory.all() : Buffers());
  };
  const auto tensors = [&](const std::vector<Tensor>& in) {
    const std::pair<Shape, DType> rows{{n}, index};
    std::vector<Tensor> made = te::extern_op(
        {rows, rows, rows, {{ir::int64(2)}, index}, rows, rows, {{ir::int64(MergeSort::registers)}, index}}, in, build,
        "unique_rows");
    made.resize(4);
    return made;
  };
  const auto all = items_of(b, b.call_te("unique_rows", {x}, tensors).value_or_throw(), 4);
  const Expr count = extent_at_run_time(b, first_elements(b, all[3], ir::int64(1)), "unique");
  return {first_elements(b, all[0], count), all[1], first_elements(b, all[2], count)};
}

Value rows_along(BlockBuilder& b, const Value& x, int64_t axis) {
  const Shape own = shape_of(x);
  Shape inner = own;
  inner.erase(inner.begin() + axis);
  Value rows = x;
  if (axis != 0) {
    Axes order{axis};
    for (int64_t d = 0; d < static_cast<int64_t>(own.size()); ++d)
      if (d != axis) order.push_back(d);
    rows = permuted(b, x, std::move(order));
  }
  return reshape(b, rows, {own[static_cast<size_t>(axis)], relax::simplified(ir::product(inner))});
}

Value slice_by(BlockBuilder& b, const Value& x, const Shape& starts, const Shape& ends, const Shape& steps) {
  const Shape own = shape_of(x);
  const Expr zero = ir::int64(0);
  Shape begins, strides, shape;
  for (size_t d = 0; d < own.size(); ++d) {
    const Expr &extent = own[d], &step = steps[d];
    const Expr forward = step > 0;
    const Expr low = ir::select(forward, zero, ir::int64(-1));
    const Expr high = ir::select(forward, extent, extent - 1);
    const auto clamped = [&](const Expr& at) {
      return ir::max(ir::min(ir::select(at < 0, at + extent, at), high), low);
    };
    const Expr begin = clamped(starts[d]), stop = clamped(ends[d]);
    const Expr span = ir::select(forward, stop - begin, begin - stop);
    const Expr size = ir::max(ir::select(forward, step, zero - step), ir::int64(1));
    begins.push_back(relax::simplified(begin));
    strides.push_back(relax::simplified(step));
    shape.push_back(relax::non_negative(ir::floordiv(span + (size - 1), size)));
  }
  const auto part = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](Indices i) {
          for (size_t d = 0; d < i.size(); ++d) i[d] = begins[d] + i[d] * strides[d];
          return in[0](std::move(i));
        },
        in, "slice")};
  };
  return b.call_te("slice", {x}, part).value_or_throw();
}

namespace {

// What is compared of a box: along both axes where it begins and where it ends, and its area.
enum : int64_t { begin, end = 2, area = 4, box_measures };
// Boxes that are looked at together.
constexpr int64_t boxes_together = 16;
// What the selection of boxes remembers.
enum : int64_t { left, rank, first, candidate, is_hit, k, selection_registers };

}  // namespace

Value non_max_suppression(BlockBuilder& b, const Value& boxes, const Value& scores, const BoxSelection& how) {
  const Shape shape = shape_of(scores);  // [batches, classes, boxes]
  const Expr batches = shape[0], classes = shape[1], n = shape[2];
  const DType index = DType::int64();
  std::vector<Value> args{boxes, scores, how.most, how.iou_threshold};
  if (how.score_threshold) args.push_back(how.score_threshold);

  const auto build = [&](const Buffers& in, const Buffers& out) {
    const ir::Buffer& chosen = out[0];
    const VectorAccess count{out[1], {}},
        r{ir::buffer("numbers", {ir::int64(selection_registers)}, index, "local"), {}};
    const RadixSort::Memory memory(in[1]->dtype, n);
    const RadixSort candidates(memory);
    const VectorAccess own{ir::buffer("box", {ir::int64(box_measures)}, in[0]->dtype, "local"), {}};
    const auto taken = [&](const Expr& i) { return VectorAccess{out[2], {}, {i}}; };
    const auto measure = [&](const Expr& batch, const Expr& i) {
      const auto at = [&](int64_t k) { return ir::load(in[0], {batch, i, ir::int64(k)}); };
      std::vector<tir::Stmt> all;
      for (const int64_t axis : {0, 1}) {
        Expr low = ir::min(at(axis), at(axis + 2)), high = ir::max(at(axis), at(axis + 2));
        if (how.by_center) {
          const Expr half = at(3 - axis) * ir::constant(in[0]->dtype, 0.5), middle = at(1 - axis);
          low = middle - half, high = middle + half;
        }
        all.push_back(own.set(begin + axis, low));
        all.push_back(own.set(end + axis, high));
      }
      all.push_back(own.set(area, (own[end] - own[begin]) * (own[end + 1] - own[begin + 1])));
      return in_order(std::move(all));
    };
    // Whether the box measured overlaps one of these of those taken, behind which boxes of no size lie.
    const auto overlaps = [&](const Expr& those) {
      const VectorAccess other = taken(those);
      const DType dtype = in[0]->dtype, numbers = dtype.with_lanes(boxes_together);
      const Expr zero = ir::constant(numbers, 0);
      Expr both = ir::constant(numbers, 1);
      for (const int64_t axis : {0, 1})
        both = both *
               ir::max(ir::min(own[end + axis], other[end + axis]) - ir::max(own[begin + axis], other[begin + axis]),
                       zero);
      const Expr all = own[area] + other[area] - both;
      const Expr limit = ir::cast(dtype, ir::load(in[3], {ir::int64(0)}));
      return any_lane(ir::logical_and(ir::logical_and(own[area] > zero, other[area] > zero),
                                      ir::logical_and(all > zero, ir::div(both, all) > limit)));
    };
    const auto one_class = [&](const Indices& at) {
      const Expr &batch = at[0], &of = at[1];
      const auto score = [&](const Expr& i) { return ir::load(in[1], {batch, of, i}); };
      // Those in question, the best first, each taken unless one that was taken before overlaps it.
      const auto find = [&](const Expr& i) {
        const tir::Stmt keep =
            in_order({candidates.put(r[left], order_key(score(i), true), i), r.set(left, r[left] + 1)});
        return in.size() > 4 ? where(score(i) > ir::cast(in[1]->dtype, ir::load(in[4], {ir::int64(0)})), keep) : keep;
      };
      const Expr box = r[candidate], number = count[0] - r[first];  // of those taken
      const tir::Stmt look =
          where(overlaps(ir::make<ir::Ramp>(r[k], ir::int64(1), boxes_together)), r.set(is_hit, ir::int64(1)));
      std::vector<tir::Stmt> keep_box;
      const Expr behind = ir::make<ir::Ramp>(number + 1, ir::int64(1), boxes_together);
      const Expr none = ir::constant(in[0]->dtype.with_lanes(boxes_together), 0);
      for (int64_t m = 0; m < box_measures; ++m) {
        keep_box.push_back(taken(number).set(m, own[m]));
        keep_box.push_back(taken(behind).set(m, none));
      }
      const tir::Stmt take = in_order({in_order(std::move(keep_box)), write(chosen, batch, {count[0], ir::int64(0)}),
                                       write(chosen, of, {count[0], ir::int64(1)}),
                                       write(chosen, box, {count[0], ir::int64(2)}), count.set(0, count[0] + 1)});
      const tir::Stmt best = in_order({r.set(candidate, candidates.place(r[rank])), r.set(rank, r[rank] + 1)});
      const tir::Stmt round = in_order({best, measure(batch, box), r.set(is_hit, ir::int64(0)), r.set(k, ir::int64(0)),
                                        while_true(ir::logical_and(r[k] < number, ir::eq(r[is_hit], ir::int64(0))),
                                                   in_order({look, r.set(k, r[k] + boxes_together)})),
                                        where(ir::eq(r[is_hit], ir::int64(0)), take)});
      const Expr goes_on = ir::logical_and(number < ir::load(in[2], {ir::int64(0)}), r[rank] < r[left]);
      return in_order({candidates.start(), r.set(left, ir::int64(0)), r.set(rank, ir::int64(0)), count_to(n, find),
                       candidates.sort(r[left]), r.set(first, count[0]), while_true(goes_on, round)});
    };
    const tir::Stmt start = over_all(chosen->shape, [&](const Indices& at) { return write(chosen, ir::int64(0), at); });
    Buffers locals = memory.all();
    locals.insert(locals.end(), {r.buffer, own.buffer});
    return whole_block("non_max_suppression", in, out,
                       {start, count.set(0, ir::int64(0)), over_all({batches, classes}, one_class)}, std::move(locals));
  };
  const auto tensors = [&](const std::vector<Tensor>& in) {
    // A class gives no more than it may, where that is known.
    const auto* told = how.most.as<relax::Constant>();
    const Expr of_class = told && told->data->elements() > 0
                              ? ir::min(n, ir::int64(std::max<int64_t>(ir::int_at(*told->data, 0), 0)))
                              : n;
    const Expr most = relax::simplified(batches * classes * of_class);
    std::vector<Tensor> made = te::extern_op({{{most, ir::int64(3)}, index},
                                              {{ir::int64(1)}, index},
                                              {{ir::int64(box_measures), n + boxes_together}, dtype_of(boxes)}},
                                             in, build, "non_max_suppression");
    made.resize(2);
    return made;
  };
  const auto all = items_of(b, b.call_te("non_max_suppression", std::move(args), tensors).value_or_throw(), 2);
  const Expr count = extent_at_run_time(b, all[1], "selected");
  const auto cut = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute({count, ir::int64(3)}, [&](const Indices& i) { return in[0](i); }, in, "selected")};
  };
  return b.call_te("selected", {all[0]}, cut).value_or_throw();
}

}  // namespace lathe::ops::build
