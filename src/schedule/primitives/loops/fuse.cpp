#include "ir/visit.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(fuse_swaps_digits, "schedule_test", "fuse: an inner loop gets the outer digit");

Result<Edit> fuse(const Program& program, const std::vector<Id>& ids, bool preserve_unit_iters) {
  const Path path = TRY(serial_loop(program, ids.at(0), "fuse"));
  std::vector<const For*> loops;
  for (const Id id : ids) {
    const Path inner = TRY(serial_loop(program, id, "fuse"));
    const For* loop = inner.back().as<For>();
    if (!loops.empty()) {
      if (loops.back()->body.get() != loop)
        return refuse(codes::not_nested, fmt::format("cannot fuse {} with {}: the second is not the only statement in "
                                                     "the first",
                                                     name_of(*loops.back()), name_of(*loop)));
      for (const For* outer : loops)
        if (uses_var(loop->min, outer->loop_var) || uses_var(loop->extent, outer->loop_var))
          return refuse(codes::not_nested,
                        fmt::format("cannot fuse {} with {}: the second's extent depends on the first", name_of(*outer),
                                    name_of(*loop)));
    }
    loops.push_back(loop);
  }

  arith::Analyzer analyzer;
  std::string name;
  Expr extent = int64(1);
  for (const For* loop : loops) {
    name += loop->loop_var->name + "_";
    extent = analyzer.simplify(extent * loop->extent);
  }
  const Var fused = var(name + "fused");
  // The only iteration of all of them is the outermost's.
  const bool preserved = preserve_unit_iters && is_int(extent, 1);
  if (!preserved) analyzer.bind(fused, Range{int64(0), extent});
  // From the innermost out: each loop's variable is a digit of the fused one.
  VarMap digits;
  Expr rest = fused;
  for (size_t i = loops.size(); i-- > 0;) {
    const For& loop = *loops[i];
    Expr digit = rest;
    if ((is_int(loop.extent, 1) && !(preserved && i == 0)) || is_int(extent, 0)) {
      digit = int64(0);
    } else if (i > 0) {
      digit = support::flip(fuse_swaps_digits) ? floordiv(rest, loop.extent) : floormod(rest, loop.extent);
      rest = floordiv(rest, loop.extent);
    }
    digits[loop.loop_var] = analyzer.simplify(loop.min + digit);
  }
  Id next = program.next;
  const Id created = next++;
  const Stmt body = loop_over(fused, extent, substitute(loops.back()->body, digits), created);
  return edit(program, path.back(), simplified(body, path, preserve_unit_iters), next, {created});
}

}  // namespace lathe::schedule::primitives
