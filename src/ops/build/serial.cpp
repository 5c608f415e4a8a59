// Tensor programs whose steps follow each other: scattering, cumulation, selection of the largest. Each is a block over
// what is independent, with plain loops inside.
#include "ops/build/statements.h"

namespace lathe::ops::build {

namespace {

Expr combined(Combine combine, const Expr& old, const Expr& update) {
  switch (combine) {
    case Combine::replace:
      return update;
    case Combine::add:
      return old + update;
    case Combine::multiply:
      return old * update;
    case Combine::minimum:
      return ir::min(old, update);
    case Combine::maximum:
      return ir::max(old, update);
  }
  support::unreachable("a way to combine without a case");
}

// A copy of x, then `updates` elements in order, each at the place that `target` gives.
Value scatter(BlockBuilder& b, const Value& x, const Value& indices, const Value& updates, Combine combine,
              const std::function<Indices(const ir::Buffer& indices, const Indices& update)>& target) {
  const auto build = [&](const Buffers& in, const Buffers& out) {
    const tir::Stmt copy = block_over(
        in[0]->shape, "scatter_copy",
        [&](const Indices& at) { return Regions{{tir::point_region(in[0], at)}, {tir::point_region(out[0], at)}}; },
        [&](const Indices& at) { return store(out[0], ir::load(in[0], at), at); });
    const tir::Stmt update = block_over(
        {}, "scatter_update",
        [&](const Indices&) {
          return Regions{{part_of_buffer(in[1], {}), part_of_buffer(in[2], {}), part_of_buffer(out[0], {})},
                         {part_of_buffer(out[0], {})}};
        },
        [&](const Indices&) {
          return loops_over(in[2]->shape, [&](const Indices& i) {
            const Indices to = target(in[1], i);
            return store(out[0], combined(combine, ir::load(out[0], to), ir::load(in[2], i)), to);
          });
        });
    return tir::seq({copy, update});
  };
  const auto tensors = [&](const std::vector<Tensor>& in) {
    return te::extern_op({{shape_of(x), in[0].dtype()}}, in, build, "scatter");
  };
  return b.call_te("scatter", {x, indices, updates}, tensors).value_or_throw();
}

}  // namespace

Value scatter_elements(BlockBuilder& b, const Value& x, const Value& indices, const Value& updates, int64_t axis,
                       Combine combine) {
  const Shape& own = shape_of(x);
  for (size_t d = 0; d < own.size(); ++d) expect_equal(b, shape_of(updates)[d], shape_of(indices)[d]);
  return scatter(b, x, indices, updates, combine, [&](const ir::Buffer& where, const Indices& i) {
    Indices to = i;
    // The other coordinates are those of the update, which the specification keeps within x.
    for (size_t d = 0; d < to.size(); ++d)
      to[d] = d == static_cast<size_t>(axis) ? index_into(ir::load(where, i), own[d]) : ir::min(to[d], own[d] - 1);
    return to;
  });
}

Value scatter_nd(BlockBuilder& b, const Value& x, const Value& indices, const Value& updates, Combine combine) {
  const Shape &own = shape_of(x), &where = shape_of(indices);
  const auto width = where.empty() ? std::nullopt : ir::as_int(where.back());
  const size_t outer = where.empty() ? 0 : where.size() - 1;
  if (!width || *width < 1 || static_cast<size_t>(*width) > own.size() ||
      shape_of(updates).size() != outer + own.size() - static_cast<size_t>(*width))
    throw support::DiagnosticError(
        relax::wrong(codes::shape_mismatch, "cannot scatter " + relax::text_of(shape_of(updates)) + " into " +
                                                relax::text_of(own) + " by the indices " + relax::text_of(where)));
  for (size_t d = 0; d < shape_of(updates).size(); ++d)
    expect_equal(b, shape_of(updates)[d], d < outer ? where[d] : own[d - outer + static_cast<size_t>(*width)]);
  return scatter(b, x, indices, updates, combine, [&](const ir::Buffer& from, const Indices& i) {
    Indices to;
    for (int64_t k = 0; k < *width; ++k) {
      Indices cell(i.begin(), i.begin() + static_cast<int64_t>(outer));
      cell.push_back(ir::int64(k));
      to.push_back(index_into(ir::load(from, std::move(cell)), own[static_cast<size_t>(k)]));
    }
    to.insert(to.end(), i.begin() + static_cast<int64_t>(outer), i.end());
    return to;
  });
}

Value cumulate(BlockBuilder& b, const Value& x, const Cumulation& how) {
  const DType dtype = dtype_of(x);
  const Shape shape = shape_of(x);  // [outer, n, inner]
  const auto build = [&](const Buffers& in, const Buffers& out) {
    // Step k of the axis, from the end where that is asked.
    const auto at_step = [&](const Indices& at, const Expr& k) {
      return Indices{at[0], how.reverse ? shape[1] - 1 - k : k, at[2]};
    };
    const auto element = [&](const Indices& at, const Expr& k) { return ir::load(in[0], at_step(at, k)); };
    const auto points = [&](const Indices& at, const std::vector<Expr>& read, const Expr& written, const Expr& so_far) {
      Regions touched;
      for (const Expr& k : read) touched.reads.push_back(tir::point_region(in[0], at_step(at, k)));
      if (so_far) touched.reads.push_back(tir::point_region(out[0], at_step(at, so_far)));
      touched.writes.push_back(tir::point_region(out[0], at_step(at, written)));
      return touched;
    };
    const Expr one = ir::int64(1);
    const Shape first{shape[0], relax::simplified(ir::min(shape[1], one)), shape[2]};
    const Shape rest{shape[0], relax::simplified(ir::max(shape[1] - 1, ir::int64(0))), shape[2]};
    const Expr neutral = ir::constant(dtype, how.product ? 1 : 0);
    return tir::seq(
        {block_over(
             first, "cumulate_first",
             [&](const Indices& at) {
               return points(at, how.exclusive ? std::vector<Expr>{} : std::vector{at[1]}, at[1], {});
             },
             [&](const Indices& at) {
               return store(out[0], how.exclusive ? neutral : element(at, at[1]), at_step(at, at[1]));
             }),
         block_over(
             rest, "cumulate",
             [&](const Indices& at) { return points(at, {how.exclusive ? at[1] : at[1] + 1}, at[1] + 1, at[1]); },
             [&](const Indices& at) {
               const Expr so_far = ir::load(out[0], at_step(at, at[1]));
               const Expr next = element(at, how.exclusive ? at[1] : at[1] + 1);
               return store(out[0], how.product ? so_far * next : so_far + next, at_step(at, at[1] + 1));
             },
             1)});
  };
  const auto tensors = [&](const std::vector<Tensor>& in) {
    return te::extern_op({{shape, dtype}}, in, build, "cumulate");
  };
  return b.call_te("cumulate", {x}, tensors).value_or_throw();
}

std::pair<Value, Value> top_k(BlockBuilder& b, const Value& x, const Expr& count, int64_t axis, bool largest) {
  const DType dtype = dtype_of(x);
  const Shape own = shape_of(x);
  const auto d = static_cast<size_t>(axis);
  Shape shape = own, rows = own;
  shape[d] = count;
  rows.erase(rows.begin() + axis);
  const Expr extent = own[d];
  expect_equal(b, ir::min(count, extent), count);
  const auto better = [&](const Expr& a, const Expr& than) {
    const Expr beats = largest ? a > than : a < than;
    if (!dtype.is_floating()) return beats;
    const Expr is_nan = ir::ne(a, a), other_is = ir::ne(than, than);
    return largest ? ir::logical_or(beats, ir::logical_and(is_nan, ir::logical_not(other_is)))
                   : ir::logical_or(beats, ir::logical_and(other_is, ir::logical_not(is_nan)));
  };
  const auto build = [&](const Buffers& in, const Buffers& out) {
    const auto at_axis = [&](Indices row, const Expr& k) {
      row.insert(row.begin() + axis, k);
      return row;
    };
    const auto line = [&](const ir::Buffer& buffer, const Indices& row) {
      std::vector<std::optional<Expr>> at(row.begin(), row.end());
      at.insert(at.begin() + axis, std::nullopt);
      return part_of_buffer(buffer, at);
    };
    return block_over(
        rows, "top_k",
        [&](const Indices& row) {
          return Regions{{line(in[0], row), line(out[0], row), line(out[1], row)},
                         {line(out[0], row), line(out[1], row)}};
        },
        [&](const Indices& row) {
          // Insertion: the list of the best so far is kept in order, from its end a place is made for each element that
          // is better than the last of a full list.
          const auto make_place = [&](const Expr& j, const Expr& element) {
            return loops_over({count}, [&](const Indices& step) {
              const Expr r = count - 1 - step[0];
              const Expr before = ir::max(r - 1, ir::int64(0));
              const Expr previous = ir::load(out[0], at_axis(row, before)), old = ir::load(out[0], at_axis(row, r));
              const auto both = [&](const Expr& value, const Expr& index) {
                // The value last: the conditions around read it.
                return tir::seq({store(out[1], index, at_axis(row, r)), store(out[0], value, at_axis(row, r))});
              };
              const tir::Stmt shift = both(previous, ir::load(out[1], at_axis(row, before)));
              const tir::Stmt insert = both(element, j);
              const tir::Stmt at_end = when(r < j, when(better(element, old), insert), insert);
              return when(r <= j, when(r > 0, when(better(element, previous), shift, at_end), at_end));
            });
          };
          return loops_over({extent}, [&](const Indices& step) {
            const Expr element = ir::load(in[0], at_axis(row, step[0]));
            const Expr last = ir::load(out[0], at_axis(row, count - 1));
            return when(ir::if_then_else(step[0] < count, ir::boolean(true), better(element, last)),
                        make_place(step[0], element));
          });
        });
  };
  const auto tensors = [&](const std::vector<Tensor>& in) {
    return te::extern_op({{shape, dtype}, {shape, DType::int64()}}, in, build, "top_k");
  };
  const Value both = b.call_te("top_k", {x}, tensors).value_or_throw();
  return {b.tuple_item(both, 0), b.tuple_item(both, 1)};
}

}  // namespace lathe::ops::build
