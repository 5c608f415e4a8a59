// split, strip_mine: several loops, one inside the other, instead of one.
#include "ir/visit.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(split_drops_predicate, "schedule_test", "split: the tail of a non-dividing split is not cut off");
LATHE_FAULT(strip_mine_lengthens_last, "schedule_test", "strip_mine: the last strip is as long as the others");

namespace {

// The factors with the missing one inferred, and whether their product may exceed the extent.
struct Sizes {
  std::vector<Expr> factors;
  bool exact = false;
};

Result<Sizes> sizes_of(const For& loop, const std::vector<Expr>& factors, arith::Analyzer& analyzer) {
  Expr known = int64(1);
  size_t missing = factors.size();
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!factors[i]) {
      if (missing != factors.size())
        return refuse(codes::bad_argument, fmt::format("cannot split {}: more than one factor is None", name_of(loop)));
      missing = i;
      continue;
    }
    if (const auto value = as_int(factors[i]); value && *value <= 0)
      return refuse(codes::bad_argument,
                    fmt::format("cannot split {}: factor {} is not positive", name_of(loop), *value));
    known = analyzer.simplify(known * factors[i]);
  }
  Sizes sizes{factors, false};
  if (missing != factors.size()) {
    sizes.factors[missing] = analyzer.simplify(ceildiv(loop.extent, known));
    sizes.exact = analyzer.can_prove_equal(floormod(loop.extent, known), int64(0));
    return sizes;
  }
  sizes.exact = analyzer.can_prove_equal(known, loop.extent);
  if (!sizes.exact && !analyzer.can_prove(known >= loop.extent)) {
    const auto product = as_int(known), extent = as_int(loop.extent);
    return refuse(codes::bad_argument,
                  fmt::format("cannot split {}: the factors' product{} does not cover the extent{}", name_of(loop),
                              product ? fmt::format(" {}", *product) : "", extent ? fmt::format(" {}", *extent) : ""));
  }
  return sizes;
}

}  // namespace

Result<Edit> split(const Program& program, Id id, const std::vector<Expr>& factors, bool disable_predication,
                   bool preserve_unit_iters) {
  const Path path = TRY(serial_loop(program, id, "split"));
  const For& loop = *path.back().as<For>();
  if (factors.empty())
    return refuse(codes::bad_argument, fmt::format("cannot split {}: no factors given", name_of(loop)));
  arith::Analyzer analyzer;
  const Sizes sizes = TRY(sizes_of(loop, factors, analyzer));
  // Numbers are known not to divide; what symbols come to, the caller knows.
  if (disable_predication && !sizes.exact && program.proves && as_int(loop.extent))
    return refuse(codes::region, fmt::format("cannot split {} without a predicate: the factors' product is not its "
                                             "extent {}",
                                             name_of(loop), *as_int(loop.extent)));

  std::vector<Var> vars;
  Expr value = int64(0);
  for (size_t i = 0; i < factors.size(); ++i) {
    vars.push_back(var(fmt::format("{}_{}", loop.loop_var->name, i)));
    if (!preserve_unit_iters || !is_int(sizes.factors[i], 1)) analyzer.bind(vars[i], Range{int64(0), sizes.factors[i]});
    value = analyzer.simplify(value * sizes.factors[i] + vars[i]);
  }
  Stmt body = substitute(loop.body, {{loop.loop_var, is_int(loop.min, 0) ? value : loop.min + value}});
  if (!sizes.exact && !disable_predication && !support::flip(split_drops_predicate))
    body = guarded(body, value < loop.extent);

  Id next = program.next;
  std::vector<Id> created;
  for (size_t i = 0; i < factors.size(); ++i) created.push_back(next++);
  for (size_t i = factors.size(); i-- > 0;) body = loop_over(vars[i], sizes.factors[i], body, created[i]);
  return edit(program, path.back(), simplified(body, path, preserve_unit_iters), next, std::move(created));
}

Result<Edit> strip_mine(const Program& program, Id id, int64_t size) {
  const Path path = TRY(serial_loop(program, id, "strip-mine"));
  const For& loop = *path.back().as<For>();
  if (size <= 0)
    return refuse(codes::bad_argument, fmt::format("cannot strip-mine {}: {} is not positive", name_of(loop), size));
  arith::Analyzer analyzer;
  const Expr strips = analyzer.simplify(ceildiv(loop.extent, int64(size)));
  const Var strip = var(loop.loop_var->name + "_0"), inside = var(loop.loop_var->name + "_1");
  const bool even = analyzer.can_prove_equal(floormod(loop.extent, int64(size)), int64(0));
  const bool whole = even || support::flip(strip_mine_lengthens_last);
  if (!is_int(strips, 1)) analyzer.bind(strip, Range{int64(0), strips});
  const Expr start = analyzer.simplify(strip * size);
  const Expr length = whole ? int64(size) : analyzer.simplify(min(int64(size), loop.extent - start));
  const Expr value = start + inside;
  Id next = program.next;
  const std::vector<Id> created{next, next + 1};
  next += 2;
  Stmt body = substitute(loop.body, {{loop.loop_var, is_int(loop.min, 0) ? value : loop.min + value}});
  body = loop_over(strip, strips, loop_over(inside, length, body, created[1]), created[0]);
  return edit(program, path.back(), simplified(body, path, true), next, created);
}

}  // namespace lathe::schedule::primitives
