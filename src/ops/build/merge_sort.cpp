#include "ops/build/merge_sort.h"

#include "ops/build/statements.h"

namespace lathe::ops::build {

namespace {

tir::Stmt steps(std::vector<tir::Stmt> statements) { return tir::seq(std::move(statements)); }
tir::Stmt repeat_while(Expr condition, tir::Stmt body) {
  return ir::make<tir::While>(std::move(condition), std::move(body));
}

}  // namespace

Indices VectorAccess::cell(const Expr& i) const {
  Indices at = lead;
  at.push_back(i);
  at.insert(at.end(), tail.begin(), tail.end());
  return at;
}

Expr VectorAccess::operator[](const Expr& i) const { return ir::load(buffer, cell(i)); }

tir::Stmt VectorAccess::set(const Expr& i, Expr value) const { return store(buffer, std::move(value), cell(i)); }

Expr comes_before(const Expr& a, const Expr& b) {
  if (a->dtype.is_bool()) return ir::logical_and(ir::logical_not(a), b);
  if (!a->dtype.is_floating()) return a < b;
  return ir::logical_or(a < b, ir::logical_and(ir::ne(b, b), ir::eq(a, a)));
}

tir::Stmt MergeSort::sort(const CompareElements& compare) const {
  const tir::Stmt start = loops_over({n_}, [&](const Indices& i) { return order_.set(i[0], i[0]); });
  const tir::Stmt copy_back = loops_over({n_}, [&](const Indices& i) { return order_.set(i[0], other_[i[0]]); });
  const tir::Stmt merge_runs =
      repeat_while(r_[low] < n_, steps({r_.set(left, r_[low]), r_.set(middle, ir::min(r_[low] + r_[width], n_)),
                                        r_.set(right, r_[middle]), r_.set(high, ir::min(r_[low] + r_[width] * 2, n_)),
                                        r_.set(out, r_[low]), merge(compare), r_.set(low, r_[high])}));
  return steps({start, r_.set(width, ir::int64(1)),
                repeat_while(r_[width] < n_,
                             steps({r_.set(low, ir::int64(0)), merge_runs, copy_back, r_.set(width, r_[width] * 2)}))});
}

tir::Stmt MergeSort::merge(const CompareElements& compare) const {
  const auto take = [&](int64_t from) {
    return steps({other_.set(r_[out], order_[r_[from]]), r_.set(from, r_[from] + 1)});
  };
  const Expr last = n_ - 1;
  const Expr a = order_[ir::min(r_[left], last)], b = order_[ir::min(r_[right], last)];
  const tir::Stmt choose = when(
      r_[left] >= r_[middle], take(right),
      when(r_[right] >= r_[high], take(left), steps({compare(b, a), when(r_[compared] < 0, take(right), take(left))})));
  return repeat_while(r_[out] < r_[high], steps({choose, r_.set(out, r_[out] + 1)}));
}

Value sorted_places(BlockBuilder& b, const Value& x, int64_t axis, bool descending) {
  const Shape own = shape_of(x);
  const auto rank = static_cast<int64_t>(own.size());
  Axes there, back;  // the axis goes last and returns
  for (int64_t d = 0; d < rank; ++d)
    if (d != axis) there.push_back(d);
  there.push_back(axis);
  for (int64_t d = 0; d < rank; ++d) back.push_back(d < axis ? d : d == axis ? rank - 1 : d - 1);
  const Value moved = permuted(b, x, there);
  const Expr count = own[static_cast<size_t>(axis)];
  const Shape moved_shape = shape_of(moved);
  const Shape outer(moved_shape.begin(), moved_shape.end() - 1);
  const Expr lines = relax::simplified(ir::product(outer));
  const DType index = DType::int64();
  const auto build = [&](const Buffers& in, const Buffers& out) {
    return block_over(
        {lines}, "sort_line",
        [&](const Indices& line) {
          Regions touched{{part_of_buffer(in[0], {line[0]})}, {}};
          for (const ir::Buffer& buffer : out) {
            touched.reads.push_back(part_of_buffer(buffer, {line[0]}));
            touched.writes.push_back(part_of_buffer(buffer, {line[0]}));
          }
          return touched;
        },
        [&](const Indices& line) {
          const VectorAccess elements{in[0], line}, registers{out[2], line};
          return MergeSort(count, {out[0], line}, {out[1], line}, registers)
              .sort([&](const Expr& one, const Expr& other) {
                const Expr p = elements[one], q = elements[other];
                const Expr is_before = descending ? comes_before(q, p) : comes_before(p, q);
                return registers.set(MergeSort::compared, ir::select(is_before, ir::int64(-1), ir::int64(0)));
              });
        });
  };
  const auto tensors = [&](const std::vector<Tensor>& in) {
    const std::pair<Shape, DType> places{{lines, count}, index};
    std::vector<Tensor> made =
        te::extern_op({places, places, {{lines, ir::int64(MergeSort::registers)}, index}}, in, build, "sorted_places");
    made.resize(1);
    return made;
  };
  const Value places = b.call_te("sorted_places", {reshape(b, moved, {lines, count})}, tensors).value_or_throw();
  return permuted(b, reshape(b, places, moved_shape), back);
}

}  // namespace lathe::ops::build
