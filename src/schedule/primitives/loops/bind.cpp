#include <map>

#include "schedule/analysis/access.h"
#include "schedule/analysis/linear.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(bind_ignores_dependences, "schedule_test", "bind: iterations that depend on one another become threads");

namespace {

constexpr std::string_view thread_axes[] = {"blockIdx.x",  "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y",
                                            "threadIdx.z", "vthread",    "vthread.x",  "vthread.y",   "vthread.z"};

bool is_bound(const For& loop) { return loop.kind == ForKind::thread_binding; }
bool is_thread(const For& loop) { return is_bound(loop) && loop.thread_binding->thread_tag.rfind("threadIdx", 0) == 0; }

// Whether a node's value may differ among threads: it names one of their variables.
bool differs(const NodeRef& node, const std::vector<Var>& of_threads) {
  return std::any_of(of_threads.begin(), of_threads.end(), [&](const Var& v) { return uses_var(node, v); });
}

// Why threads may not share the iterations of `path`'s last loop, each taking its own: every thread would have to run
// all of them and do the same. Then what one of them writes into shared memory is what all of them would have written.
std::optional<std::string> not_shared(const Path& path) {
  const For& loop = *path.back().as<For>();
  std::vector<Var> of_threads;  // what differs among threads
  const For* launch = nullptr;
  for (const Stmt& s : path) {
    if (const auto* outer = s.as<For>(); outer && outer != &loop) {
      if (is_bound(*outer) && !launch) launch = outer;
      if (differs(outer->min, of_threads) || differs(outer->extent, of_threads))
        return fmt::format("threads run {} differently often", name_of(*outer));
      if (is_thread(*outer)) of_threads.push_back(outer->loop_var);
    } else if (const auto* branch = s.as<IfThenElse>()) {
      if (differs(branch->condition, of_threads)) return "not every thread gets there";
    } else if (const auto* let = s.as<LetStmt>()) {
      if (differs(let->value, of_threads)) of_threads.push_back(let->var);
    } else if (const auto* realize = s.as<BlockRealize>()) {
      if (differs(realize->predicate, of_threads)) return "not every thread gets there";
      for (size_t k = 0; k < realize->iter_values.size(); ++k)
        if (differs(realize->iter_values[k], of_threads)) of_threads.push_back(realize->block->iter_vars[k]->var);
    } else if (s.is<While>()) {
      return "a while loop is around it";
    }
  }
  if (differs(Stmt(&loop), of_threads)) return "what it does depends on the thread";
  if (effect_in(Stmt(&loop))) return "it calls what is not known";
  for (const Buffer& buffer : buffers_written(Stmt(&loop)))
    if (buffer->scope.rfind("shared", 0) != 0)
      return fmt::format("it writes '{}', which is in scope '{}', not shared", buffer->name, buffer->scope);
  const std::vector<Buffer> changing = buffers_written(Stmt(launch));
  for (const Buffer& buffer : buffers_read(Stmt(&loop)))
    if (std::find(changing.begin(), changing.end(), buffer) != changing.end())
      return fmt::format("it reads '{}', which the threads write", buffer->name);
  return std::nullopt;
}

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
    if (!is_bound(*outer) || outer->thread_binding->thread_tag != axis) continue;
    const auto why = is_thread(*outer) ? not_shared(path) : std::optional<std::string>("a launch has one of it");
    if (why)
      return problem(codes::loop_kind,
                     fmt::format("{} around it is bound to that axis, and {}", name_of(*outer), *why));
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
