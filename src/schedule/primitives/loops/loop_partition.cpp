// loop_partition, peel: one loop after another instead of one, each with its own copy of the body.
#include "ir/visit.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(partition_overlaps, "schedule_test", "loop_partition: the second part starts where the first did");
LATHE_FAULT(peel_forgets_last, "schedule_test", "peel: the rest is one iteration short");

namespace {

Edit in_parts(const Program& program, const Path& path, const std::vector<Expr>& extents, bool preserve_unit_iters) {
  const For& loop = *path.back().as<For>();
  arith::Analyzer analyzer;
  Id next = program.next;
  std::vector<Id> created;
  std::vector<Stmt> parts;
  Expr offset = loop.min;
  for (size_t i = 0; i < extents.size(); ++i) {
    const Var v = var(loop.loop_var->name);
    const Expr value = analyzer.simplify(offset + v);
    const Stmt body = i == 0 ? loop.body : duplicate(loop.body, next, fmt::format("_part{}", i));
    created.push_back(next++);
    Stmt part = loop_over(v, extents[i], substitute(body, {{loop.loop_var, value}}), created.back());
    parts.push_back(simplified(part, path, preserve_unit_iters));
    offset = analyzer.simplify(offset + extents[i]);
    if (support::flip(partition_overlaps)) offset = loop.min;
  }
  return edit(program, path.back(), seq(std::move(parts)), next, std::move(created));
}

}  // namespace

Result<Edit> loop_partition(const Program& program, Id id, const std::vector<Expr>& factors, bool preserve_unit_iters) {
  const Path path = TRY(serial_loop(program, id, "partition"));
  const For& loop = *path.back().as<For>();
  arith::Analyzer analyzer;
  Expr known = int64(0);
  size_t missing = factors.size();
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!factors[i]) {
      if (missing != factors.size())
        return refuse(codes::bad_argument,
                      fmt::format("cannot partition {}: more than one extent is None", name_of(loop)));
      missing = i;
    } else {
      if (const auto value = as_int(factors[i]); value && *value <= 0)
        return refuse(codes::bad_argument,
                      fmt::format("cannot partition {}: extent {} is not positive", name_of(loop), *value));
      known = analyzer.simplify(known + factors[i]);
    }
  }
  std::vector<Expr> extents = factors;
  const Expr rest = analyzer.simplify(loop.extent - known);
  if (factors.empty() || !analyzer.can_prove_greater_equal(rest, 0) || (missing == factors.size() && !is_int(rest, 0)))
    return refuse(codes::bad_argument,
                  fmt::format("cannot partition {}: the parts do not add up to its extent{}", name_of(loop),
                              as_int(loop.extent) ? fmt::format(" {}", *as_int(loop.extent)) : ""));
  if (missing != factors.size()) extents[missing] = rest;
  return in_parts(program, path, extents, preserve_unit_iters);
}

Result<Edit> peel(const Program& program, Id id, int64_t multiple) {
  const Path path = TRY(serial_loop(program, id, "peel"));
  const For& loop = *path.back().as<For>();
  if (multiple <= 0)
    return refuse(codes::bad_argument, fmt::format("cannot peel {}: {} is not positive", name_of(loop), multiple));
  arith::Analyzer analyzer;
  const Expr main = analyzer.simplify(floordiv(loop.extent, int64(multiple)) * multiple);
  Expr rest = analyzer.simplify(loop.extent - main);
  if (support::flip(peel_forgets_last)) rest = analyzer.simplify(max(rest - 1, int64(0)));
  if (is_int(rest, 0) || is_int(main, 0)) return in_parts(program, path, {loop.extent}, false);
  return in_parts(program, path, {main, rest}, false);
}

Result<Edit> add_unit_loop(const Program& program, Id block_or_loop) {
  const Path path = path_to(program.function->body, block_or_loop);
  if (path.empty()) return refuse(codes::gone, "the block or loop is not in the function");
  if (path.size() == 1) return refuse(codes::bad_argument, "cannot add a loop around the root block");
  Id next = program.next;
  const Id created = next++;
  return edit(program, path.back(), loop_over(var("u"), int64(1), path.back(), created), next, {created});
}

}  // namespace lathe::schedule::primitives
