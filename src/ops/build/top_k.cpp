// The largest or smallest elements along an axis, in order: a few are kept in order while the elements pass, more in a
// heap; where most of an axis is wanted, all are sorted.
#include "ops/build/heap.h"
#include "ops/build/statements.h"

namespace lathe::ops::build {

namespace {

// The program of one block over the rows, which lie along an axis.
class Selection {
 public:
  Selection(ir::Buffer x, const Buffers& out, Expr count, int64_t axis, bool largest)
      : x_(std::move(x)),
        values_(out.at(1)),
        places_(out.at(0)),
        count_(std::move(count)),
        axis_(axis),
        largest_(largest),
        hand_(x_->dtype) {}

  tir::Stmt statement(bool by_insertion) const {
    Shape rows = x_->shape;
    rows.erase(rows.begin() + axis_);
    return block_over(
        rows, "top_k",
        [&](const Indices& row) {
          Regions touched{{line(x_, row), line(values_, row), line(places_, row)},
                          {line(values_, row), line(places_, row)}};
          if (!by_insertion) touched.locals = {hand_.value, hand_.numbers};
          return touched;
        },
        [&](const Indices& row) { return by_insertion ? insertion(row) : heap(row); });
  }

 private:
  Expr extent() const { return x_->shape[static_cast<size_t>(axis_)]; }

  tir::BufferRegion line(const ir::Buffer& buffer, const Indices& row) const {
    std::vector<std::optional<Expr>> at(row.begin(), row.end());
    at.insert(at.begin() + axis_, std::nullopt);
    return part_of_buffer(buffer, at);
  }
  VectorAccess vector(const ir::Buffer& buffer, const Indices& row) const {
    return {buffer, Indices(row.begin(), row.begin() + axis_), Indices(row.begin() + axis_, row.end())};
  }

  Expr is_better(const Expr& a, const Expr& than) const {
    return largest_ ? comes_before(than, a) : comes_before(a, than);
  }

  // The list of the best so far is kept in order; from its end a place is made for each element that is better than the
  // last of a full list.
  tir::Stmt insertion(const Indices& row) const {
    const VectorAccess x = vector(x_, row), values = vector(values_, row), places = vector(places_, row);
    const auto make_place = [&](const Expr& j, const Expr& element) {
      return loops_over({count_}, [&](const Indices& step) {
        const Expr r = count_ - 1 - step[0];
        const Expr before = ir::max(r - 1, ir::int64(0));
        const auto both = [&](const Expr& value, const Expr& index) {
          // The value last: the conditions around read it.
          return tir::seq({places.set(r, index), values.set(r, value)});
        };
        const tir::Stmt shift = both(values[before], places[before]), insert = both(element, j);
        const tir::Stmt at_end = when(r < j, when(is_better(element, values[r]), insert), insert);
        return when(r <= j, when(r > 0, when(is_better(element, values[before]), shift, at_end), at_end));
      });
    };
    return loops_over({extent()}, [&](const Indices& j) {
      const Expr element = x[j[0]];
      return when(ir::if_then_else(j[0] < count_, ir::boolean(true), is_better(element, values[count_ - 1])),
                  make_place(j[0], element));
    });
  }

  // The worst of the best so far is at the top, of equals the last; what follows replaces it where it is better.
  tir::Stmt heap(const Indices& row) const {
    const VectorAccess x = vector(x_, row), values = vector(values_, row), places = vector(places_, row);
    const Heap best(values, places, hand_, [&](const Heap::Element& a, const Heap::Element& b) {
      const Expr is_equal = ir::logical_not(is_better(a.value, b.value));
      return ir::logical_or(is_better(b.value, a.value), ir::logical_and(is_equal, a.origin > b.origin));
    });
    const auto first = loops_over(
        {count_}, [&](const Indices& i) { return tir::seq({places.set(i[0], i[0]), values.set(i[0], x[i[0]])}); });
    const Expr left = ir::max(extent() - count_, ir::int64(0));
    const Expr following = ir::select(count_ > 0, left, ir::int64(0));  // of none there is no worst
    const auto others = loops_over({relax::simplified(following)}, [&](const Indices& i) {
      const Expr j = i[0] + count_;
      return when(is_better(x[j], values[0]), best.replace_top(count_, {x[j], j}));
    });
    return tir::seq({first, best.make(count_), others, best.sort(count_)});
  }

  const ir::Buffer x_, values_, places_;
  const Expr count_;
  const int64_t axis_;
  const bool largest_;
  const Heap::Hand hand_;
};

}  // namespace

std::pair<Value, Value> top_k(BlockBuilder& b, const Value& x, const Expr& count, int64_t axis, bool largest) {
  constexpr int64_t a_few = 8, one_in = 4;  // so many are inserted; of more than one in so many all are sorted
  const DType dtype = dtype_of(x);
  Shape shape = shape_of(x);
  const Expr extent = std::exchange(shape[static_cast<size_t>(axis)], count);
  expect_equal(b, ir::min(count, extent), count);
  const auto known = ir::as_int(count), all = ir::as_int(extent);
  if (known && all && *known > a_few && *known * one_in > *all) {
    Value places = sorted_places(b, x, axis, largest);
    if (*known < *all) {
      const auto first = [&](const std::vector<Tensor>& in) {
        return std::vector{te::compute(shape, [&](const Indices& i) { return in[0](i); }, in, "first_places")};
      };
      places = b.call_te("first_places", {places}, first).value_or_throw();
    }
    return {gather_elements(b, x, places, axis), places};
  }
  const bool is_few = known && *known <= a_few;
  const auto build = [&](const Buffers& in, const Buffers& out) {
    return Selection(in[0], out, count, axis, largest).statement(is_few);
  };
  // A heap's own values are left to it: read by their places they have a gradient.
  const auto tensors = [&](const std::vector<Tensor>& in) {
    std::vector<Tensor> made = te::extern_op({{shape, DType::int64()}, {shape, dtype}}, in, build, "top_k");
    if (!is_few) made.resize(1);
    return made;
  };
  const Value made = b.call_te("top_k", {x}, tensors).value_or_throw();
  if (!is_few) return {gather_elements(b, x, made, axis), made};
  return {b.tuple_item(made, 1), b.tuple_item(made, 0)};
}

}  // namespace lathe::ops::build
