#include "ops/build/merge_sort.h"

namespace lathe::ops::build {

namespace {

tir::Stmt steps(std::vector<tir::Stmt> statements) { return tir::seq(std::move(statements)); }
tir::Stmt repeat_while(Expr condition, tir::Stmt body) {
  return ir::make<tir::While>(std::move(condition), std::move(body));
}

}  // namespace

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

}  // namespace lathe::ops::build
