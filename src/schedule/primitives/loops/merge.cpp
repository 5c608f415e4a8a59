// merge: loops that follow one another run as one, each iteration doing what theirs did in turn.
#include "ir/visit.h"
#include "schedule/analysis/dependence.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(merge_ignores_order, "schedule_test",
            "merge: an iteration may read what a later one of the first loop writes");

namespace {

// The loops from a child of a sequence down to the one that is merged, each the only statement of the one above.
using Nest = std::vector<const For*>;

Result<Nest> nest_of(const Path& path, size_t from, const For& first) {
  Nest nest;
  for (size_t i = from; i < path.size(); ++i) {
    const For* loop = path[i].as<For>();
    if (!loop || (!nest.empty() && nest.back()->body.get() != loop))
      return refuse(codes::not_nested,
                    fmt::format("cannot merge {} with {}: it is not alone in the loops that only one of them is in",
                                name_of(*path.back().as<For>()), name_of(first)));
    nest.push_back(loop);
  }
  return nest;
}

std::optional<Diagnostic> refuse_shapes(const Nest& a, const Nest& b, VarMap& map) {
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("cannot merge {} with {}: {}", name_of(*b.back()), name_of(*a.back()), why));
  };
  if (a.size() != b.size()) return problem(codes::not_nested, "they are not in equally many loops of their own");
  arith::Analyzer analyzer;
  for (size_t level = 0; level < a.size(); ++level) {
    for (const For* loop : {a[level], b[level]})
      if (loop->kind != ForKind::serial || !loop->annotations.empty())
        return problem(codes::loop_kind, fmt::format("{} is not serial, or has annotations", name_of(*loop)));
    map[b[level]->loop_var] = a[level]->loop_var;
    if (!analyzer.can_prove_equal(a[level]->min, substitute(b[level]->min, map)) ||
        !analyzer.can_prove_equal(a[level]->extent, substitute(b[level]->extent, map)))
      return problem(codes::bad_argument,
                     fmt::format("{} and {} do not run over the same values", name_of(*a[level]), name_of(*b[level])));
  }
  return std::nullopt;
}

bool touches(const std::vector<Buffer>& list, const Buffer& buffer) {
  return std::find(list.begin(), list.end(), buffer) != list.end();
}

// Buffers that one part writes and another touches.
std::vector<Buffer> shared_buffers(const std::vector<Stmt>& parts) {
  std::vector<Buffer> found;
  for (const Stmt& a : parts)
    for (const Buffer& written : buffers_written(a))
      for (const Stmt& b : parts)
        if (a != b && !touches(found, written) &&
            (touches(buffers_read(b), written) || touches(buffers_written(b), written)))
          found.push_back(written);
  return found;
}

AccessList touching(const std::vector<Access>& all, const Buffer& buffer) {
  AccessList list;
  for (const Access& access : all)
    if (access.buffer == buffer) list.push_back(&access);
  return list;
}

// All of `later`, a loop that is merged, now runs before what stands between: they must touch different elements.
std::optional<Diagnostic> refuse_between(const Program& program, const Stmt& between, const Stmt& later,
                                         const For& merged) {
  const auto problem = [&] {
    return refuse(codes::dependence,
                  fmt::format("cannot merge {}: what it touches is touched between the loops", name_of(merged)));
  };
  if (effect_in(between)) return problem();
  if (!conflict(between, later)) return std::nullopt;
  const std::vector<Access> before = accesses(between), after = accesses(later);
  for (const Buffer& buffer : shared_buffers({between, later})) {
    const Conflict meeting = find_conflict(touching(before, buffer), touching(after, buffer), {},
                                           ranges_around(*program.function, later.as<For>()->id), any_pair);
    if (!meeting) continue;
    Diagnostic refused = problem();
    meeting.explain(refused);
    return refused;
  }
  return std::nullopt;
}

// Iteration i of a later loop now runs before iteration i + 1 of an earlier one. `bodies` are those of the parts in the
// variables of the merged nest.
std::optional<Diagnostic> refuse_order(const Program& program, const std::vector<Stmt>& bodies,
                                       const std::vector<Stmt>& alone, const Stmt& merged, const Nest& last) {
  if (!program.proves) return std::nullopt;
  Nest nest;
  for (const For* loop = merged.as<For>(); nest.size() < last.size(); loop = loop->body.as<For>()) nest.push_back(loop);
  std::vector<std::vector<Access>> touched;
  for (const Stmt& body : bodies) touched.push_back(accesses(body));
  for (const Buffer& buffer : shared_buffers(alone)) {
    if (std::all_of(nest.begin(), nest.end(),
                    [&](const For* level) { return disjoint_across(*level, buffer, program.proofs); }))
      continue;
    for (size_t earlier = 0; earlier < bodies.size(); ++earlier)
      for (size_t later = earlier + 1; later < bodies.size(); ++later) {
        const Conflict conflict =
            find_conflict(touching(touched[earlier], buffer), touching(touched[later], buffer), nest,
                          ranges_around(*program.function, nest[0]->id),
                          [&](const Access&, const VarMap& first, const Access&, const VarMap& second) {
                            return comes_before(nest, second, first);
                          });
        if (!conflict) continue;
        Diagnostic problem = refuse(
            codes::dependence,
            fmt::format("cannot merge {} with {}: {}", name_of(*last.back()), name_of(*nest.back()),
                        conflict.outcome == arith::PointSearch::found
                            ? fmt::format("an iteration would touch an element of '{}' before an earlier loop does",
                                          buffer->name)
                            : conflict.reason(name_of(*nest.back()), buffer)));
        conflict.explain(problem);
        return problem;
      }
  }
  return std::nullopt;
}

}  // namespace

Result<Edit> merge(const Program& program, const std::vector<Id>& ids) {
  if (ids.size() < 2) return refuse(codes::bad_argument, "merge needs at least two loops");
  std::vector<Path> paths;
  for (const Id id : ids) paths.push_back(TRY(serial_loop(program, id, "merge")));
  const For& first = *paths[0].back().as<For>();
  size_t common = 0;
  const auto all_at = [&](size_t at) {
    return std::all_of(paths.begin(), paths.end(),
                       [&](const Path& path) { return at < path.size() && path[at] == paths[0][at]; });
  };
  while (all_at(common)) ++common;
  const auto* sequence = common > 0 ? paths[0][common - 1].as<SeqStmt>() : nullptr;
  if (!sequence)
    return refuse(codes::not_nested,
                  fmt::format("cannot merge {}: the loops do not follow one another", name_of(first)));

  struct Part {
    size_t position;
    Nest nest;
  };
  std::vector<Part> parts;
  for (const Path& path : paths) {
    const auto at = std::find(sequence->seq.begin(), sequence->seq.end(), path.at(common));
    const auto position = static_cast<size_t>(at - sequence->seq.begin());
    for (const Part& other : parts)
      if (other.position == position)
        return refuse(codes::not_nested, fmt::format("cannot merge {} with {}: they do not follow one another",
                                                     name_of(*path.back().as<For>()), name_of(*other.nest.back())));
    parts.push_back({position, TRY(nest_of(path, common, first))});
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.position < b.position; });
  std::vector<Stmt> bodies, alone;
  for (const Part& part : parts) {
    VarMap map;
    if (auto refused = refuse_shapes(parts[0].nest, part.nest, map)) return *std::move(refused);
    bodies.push_back(substitute(part.nest.back()->body, map));
    alone.emplace_back(part.nest[0]);
    if (const Call* call = effect_in(alone.back()); call && program.proves)
      return refuse(codes::dependence,
                    fmt::format("cannot merge {}: it contains a call of '{}', whose effects are not known",
                                name_of(*part.nest.back()), call->op->name));
  }

  // Later loops move to the first: past what stands between.
  for (size_t i = parts[0].position; program.proves && i < parts.back().position; ++i) {
    const Stmt& between = sequence->seq[i];
    if (std::find(alone.begin(), alone.end(), between) != alone.end()) continue;
    for (size_t p = 1; p < parts.size(); ++p) {
      if (parts[p].position < i) continue;
      if (auto refused = refuse_between(program, between, alone[p], *parts[p].nest.back())) return *std::move(refused);
    }
  }

  Id next = program.next;
  const Id created = next++;
  Stmt merged = with(*parts[0].nest.back(), [&](For& copy) {
    copy.body = seq(bodies);
    copy.id = created;
  });
  for (size_t i = parts[0].nest.size() - 1; i-- > 0;)
    merged = with(*parts[0].nest[i], [&](For& copy) { copy.body = merged; });
  auto problem = refuse_order(program, bodies, alone, merged, parts[1].nest);
  if (problem && !support::flip(merge_ignores_order)) return *std::move(problem);
  std::vector<std::pair<Stmt, Stmt>> edits{{alone[0], merged}};
  for (size_t p = 1; p < parts.size(); ++p) edits.emplace_back(alone[p], nop());
  return edited(program, with_body(program.function, replace_all(program.function->body, edits)), next, {created});
}

}  // namespace lathe::schedule::primitives
