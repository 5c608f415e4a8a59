// Tensor programs whose steps follow each other: scattering, cumulation, selection of the largest. Each is a block over
// what is independent, with plain loops inside.
#include "ops/build/box.h"
#include "ops/build/statements.h"
#include "relax/strings.h"

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

// The loops over all elements of `shape`; over the last dimension in vectors where they are asked for.
tir::Stmt each_element(const Shape& shape, bool in_vectors, const Statement& body) {
  if (!in_vectors) return loops_over(shape, body);
  return loops_over(Shape(shape.begin(), shape.end() - 1), [&](const Indices& row) {
    return vectors_over(shape.back(), [&](const Expr& i) {
      Indices at = row;
      at.push_back(i);
      return body(at);
    });
  });
}

// A copy of x, then `updates` elements in order, each at the place that `target` gives; in vectors where `in_rows` says
// that the last dimension of the updates is one of x.
Value scatter(BlockBuilder& b, const Value& x, const Value& indices, const Value& updates, Combine combine,
              bool in_rows, const std::function<Indices(const ir::Buffer& indices, const Indices& update)>& target) {
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
          const bool in_vectors = in_rows && dtype_of(x).storage_bits() >= 8 && dtype_of(x) != relax::string_dtype;
          return each_element(in[2]->shape, in_vectors, [&](const Indices& i) {
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

// Whether elements of numbers are put in the place of others.
bool replaces(const Value& x, Combine combine) {
  return combine == Combine::replace && dtype_of(x) != relax::string_dtype;
}

}  // namespace

Value scatter_elements(BlockBuilder& b, const Value& x, const Value& indices, const Value& updates, int64_t axis,
                       Combine combine) {
  const Shape& own = shape_of(x);
  for (size_t d = 0; d < own.size(); ++d) expect_equal(b, shape_of(updates)[d], shape_of(indices)[d]);
  if (const auto box = replaces(x, combine) ? box_of_elements(own, indices, axis) : std::nullopt)
    return with_box(b, x, *box, updates);
  return scatter(b, x, indices, updates, combine, false, [&](const ir::Buffer& where, const Indices& i) {
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
  if (const auto box = replaces(x, combine) ? box_of_coordinates(own, indices) : std::nullopt)
    return with_box(b, x, *box, updates);
  const bool in_rows = static_cast<size_t>(*width) < own.size();
  return scatter(b, x, indices, updates, combine, in_rows, [&](const ir::Buffer& from, const Indices& i) {
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

}  // namespace lathe::ops::build
