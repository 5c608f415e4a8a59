#include <map>

#include "schedule/analysis/linear.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(bind_ignores_dependences, "schedule_test", "bind: iterations that depend on one another become threads");

namespace {

constexpr std::string_view thread_axes[] = {"blockIdx.x",  "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y",
                                            "threadIdx.z", "vthread",    "vthread.x",  "vthread.y",   "vthread.z"};

bool is_bound(const For& loop) { return loop.kind == ForKind::thread_binding; }

}  // namespace

Result<Edit> bind(const Program& program, Id id, const std::string& axis) {
  const Path path = TRY(serial_loop(program, id, "bind"));
  const For& loop = *path.back().as<For>();
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("cannot bind {} to '{}': {}", name_of(loop), axis, why));
  };
  if (std::find(std::begin(thread_axes), std::end(thread_axes), axis) == std::end(thread_axes)) {
    Diagnostic unknown = problem(codes::bad_argument, "there is no such thread axis");
    unknown.note(fmt::format("the thread axes are {}", fmt::join(thread_axes, ", ")));
    return unknown;
  }
  // The number of blocks may be decided at the call, that of threads not.
  if (!as_int(loop.extent) && axis.rfind("blockIdx", 0) != 0)
    return problem(codes::bad_argument, "its extent is not a constant");
  if (!is_int(loop.min, 0)) return problem(codes::bad_argument, "it does not start at 0");

  // The loops that run in one launch: those in the outermost bound loop.
  const For* launch = &loop;
  for (const Stmt& s : path) {
    const auto* outer = s.as<For>();
    if (!outer || outer == &loop) continue;
    if (outer->kind == ForKind::vectorized || outer->kind == ForKind::parallel)
      return problem(codes::loop_kind,
                     fmt::format("it is inside {}, which is {}", name_of(*outer), kind_name(outer->kind)));
    if (is_bound(*outer) && launch == &loop) launch = outer;
    if (is_bound(*outer) && outer->thread_binding->thread_tag == axis)
      return problem(codes::loop_kind, fmt::format("{} around it is bound to that axis", name_of(*outer)));
  }
  std::optional<Diagnostic> refused;
  each_statement(loop.body, [&](const Stmt& s) {
    const auto* inner = s.as<For>();
    if (inner && !refused && is_bound(*inner) && inner->thread_binding->thread_tag == axis)
      refused = problem(codes::loop_kind, fmt::format("{} inside it is bound to that axis", name_of(*inner)));
  });
  std::map<std::string, const For*> first{{axis, &loop}};
  each_statement(Stmt(launch), [&](const Stmt& s) {
    const auto* inner = s.as<For>();
    if (!inner || refused) return;
    if (inner->kind == ForKind::parallel)
      refused = problem(codes::loop_kind, fmt::format("{} inside it is parallel", name_of(*inner)));
    if (!is_bound(*inner)) return;
    const auto [other, fresh] = first.try_emplace(inner->thread_binding->thread_tag, inner);
    if (!fresh && !same(other->second->extent, inner->extent))
      refused = problem(codes::loop_kind, fmt::format("{} and {} would be one axis of one launch, with other extents",
                                                      name_of(*other->second), name_of(*inner)));
  });
  if (refused) return *std::move(refused);
  auto dependent = refuse_dependent(program, loop, "bind");
  if (dependent && !support::flip(bind_ignores_dependences)) return *std::move(dependent);

  const Stmt changed = with(loop, [&](For& copy) {
    copy.kind = ForKind::thread_binding;
    copy.thread_binding = make<IterVarNode>(Range{}, var(axis, loop.loop_var->dtype), IterType::thread_index, axis);
  });
  return edit(program, path.back(), changed, program.next);
}

}  // namespace lathe::schedule::primitives
