// join: loops that follow one another run as one, which does the iterations of the first, then those of the next.
#include "ir/visit.h"
#include "schedule/analysis/access.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(join_starts_late, "schedule_test", "join: a later loop starts one iteration late");

Result<Edit> join(const Program& program, const std::vector<Id>& ids) {
  if (ids.size() < 2) return refuse(codes::bad_argument, "join needs at least two loops");
  std::vector<Path> paths;
  for (const Id id : ids) paths.push_back(TRY(serial_loop(program, id, "join")));
  const For& first = *paths[0].back().as<For>();
  const auto problem = [&](const support::Code& code, const For& loop, std::string_view why) {
    return refuse(code, fmt::format("cannot join {} with {}: {}", name_of(loop), name_of(first), why));
  };
  const Path& above = paths[0];
  const auto* sequence = above.size() > 1 ? above[above.size() - 2].as<SeqStmt>() : nullptr;
  const auto place = [&](const Stmt& s) { return std::find(sequence->seq.begin(), sequence->seq.end(), s); };
  for (size_t i = 1; i < paths.size(); ++i) {
    const For& loop = *paths[i].back().as<For>();
    const bool siblings = sequence && paths[i].size() == above.size() && paths[i][above.size() - 2].get() == sequence;
    if (!siblings || place(paths[i].back()) - place(above.back()) != static_cast<ptrdiff_t>(i))
      return problem(codes::not_nested, loop, "it does not come right behind");
  }
  arith::Analyzer analyzer;
  for (const auto& [variable, range] : ranges_around(*program.function, first.id)) analyzer.bind(variable, range);
  for (const Path& path : paths) {
    const For& loop = *path.back().as<For>();
    if (!loop.annotations.empty()) return problem(codes::loop_kind, loop, "it has annotations");
    if (!analyzer.can_prove_greater_equal(loop.extent, 0))
      return problem(codes::bad_argument, loop, "how many iterations it has may be less than none");
  }

  const Var joined = var(first.loop_var->name + "_joined", first.loop_var->dtype);
  std::vector<Expr> begins;  // of each loop, among the iterations
  Expr extent = int64(0);
  for (const Path& path : paths) {
    begins.push_back(extent);
    extent = analyzer.simplify(extent + path.back().as<For>()->extent);
  }
  Stmt body;
  for (size_t i = paths.size(); i-- > 0;) {
    const For& loop = *paths[i].back().as<For>();
    const int64_t late = i > 0 && support::flip(join_starts_late) ? 1 : 0;
    const Expr value = analyzer.simplify(loop.min + (Expr(joined) - begins[i] - int64(late)));
    const Stmt own = substitute(loop.body, {{loop.loop_var, value}});
    body = body ? make<IfThenElse>(Expr(joined) < begins[i + 1], own, body) : own;
  }
  Id next = program.next;
  const Id created = next++;
  std::vector<std::pair<Stmt, Stmt>> edits{{above.back(), loop_over(joined, extent, body, created)}};
  for (size_t i = 1; i < paths.size(); ++i) edits.emplace_back(paths[i].back(), nop());
  return edited(program, with_body(program.function, replace_all(program.function->body, edits)), next, {created});
}

}  // namespace lathe::schedule::primitives
