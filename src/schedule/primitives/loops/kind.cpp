// parallel, vectorize, unroll: how a loop's iterations run.
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(parallel_ignores_dependences, "schedule_test",
            "parallel: iterations that depend on one another are let through");
LATHE_FAULT(vectorize_ignores_dependences, "schedule_test",
            "vectorize: iterations that depend on one another are let through");

namespace {

Edit with_kind(const Program& program, const Path& path, ForKind kind) {
  const Stmt changed = with(*path.back().as<For>(), [&](For& copy) { copy.kind = kind; });
  return edit(program, path.back(), changed, program.next);
}

std::optional<Diagnostic> refuse_extent(const For& loop, std::string_view verb) {
  if (as_int(loop.extent)) return std::nullopt;
  return refuse(codes::bad_argument, fmt::format("cannot {} {}: its extent is not a constant", verb, name_of(loop)));
}

// A loop of that kind inside `loop`.
const For* inner_of_kind(const For& loop, ForKind kind) {
  const For* found = nullptr;
  each_statement(loop.body, [&](const Stmt& s) {
    const auto* inner = s.as<For>();
    if (inner && inner->kind == kind) found = inner;
  });
  return found;
}

}  // namespace

Result<Edit> parallel(const Program& program, Id id) {
  const Path path = TRY(serial_loop(program, id, "parallelize"));
  auto problem = refuse_dependent(program, *path.back().as<For>(), "parallelize");
  if (problem && !support::flip(parallel_ignores_dependences)) return *std::move(problem);
  const For& loop = *path.back().as<For>();
  for (const Stmt& s : path)
    if (const auto* outer = s.as<For>();
        outer && (outer->kind == ForKind::vectorized || outer->kind == ForKind::thread_binding))
      return refuse(codes::loop_kind, fmt::format("cannot parallelize {}: it is inside {}, which is {}", name_of(loop),
                                                  name_of(*outer), kind_name(outer->kind)));
  if (const For* inner = inner_of_kind(loop, ForKind::thread_binding))
    return refuse(codes::loop_kind, fmt::format("cannot parallelize {}: {} inside it is {}", name_of(loop),
                                                name_of(*inner), kind_name(inner->kind)));
  return with_kind(program, path, ForKind::parallel);
}

Result<Edit> vectorize(const Program& program, Id id) {
  const Path path = TRY(serial_loop(program, id, "vectorize"));
  const For& loop = *path.back().as<For>();
  if (auto problem = refuse_extent(loop, "vectorize")) return *std::move(problem);
  for (const ForKind kind : {ForKind::vectorized, ForKind::parallel, ForKind::thread_binding})
    if (const For* inner = inner_of_kind(loop, kind))
      return refuse(codes::loop_kind, fmt::format("cannot vectorize {}: {} inside it is {}", name_of(loop),
                                                  name_of(*inner), kind_name(kind)));
  for (const Stmt& outer : path)
    if (const auto* above = outer.as<For>(); above && above->kind == ForKind::vectorized)
      return refuse(codes::loop_kind,
                    fmt::format("cannot vectorize {}: it is inside the vectorized {}", name_of(loop), name_of(*above)));
  auto problem = refuse_dependent(program, loop, "vectorize");
  if (problem && !support::flip(vectorize_ignores_dependences)) return *std::move(problem);
  return with_kind(program, path, ForKind::vectorized);
}

Result<Edit> unroll(const Program& program, Id id) {
  const Path path = TRY(serial_loop(program, id, "unroll"));
  if (auto problem = refuse_extent(*path.back().as<For>(), "unroll")) return *std::move(problem);
  return with_kind(program, path, ForKind::unrolled);
}

}  // namespace lathe::schedule::primitives
