// blockize of several blocks: statements that follow one another become one block around them all. Nothing runs in
// another order, so all that is asked is that they are neighbours, and that no reduction is cut in two.
#include "schedule/analysis/access.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(blockize_blocks_keeps_variable, "schedule_test",
            "blockize: the blocks inside are all those of the first iteration around");

namespace {

// How many statements, from the root down, are around all the blocks.
size_t shared_length(const std::vector<Path>& paths) {
  size_t shared = paths[0].size();
  for (const Path& path : paths) {
    size_t same = 0;
    while (same < std::min(shared, path.size()) && path[same] == paths[0][same]) ++same;
    shared = same;
  }
  return shared;
}

// Whether a loop around the block at the path's end drives an axis of that type.
bool is_driven(const Path& path, IterType type) {
  const auto& realize = *path.back().as<BlockRealize>();
  for (const For* loop : loops_above(path))
    for (size_t i = 0; i < realize.iter_values.size(); ++i)
      if (realize.block->iter_vars[i]->type == type && uses_var(realize.iter_values[i], loop->loop_var)) return true;
  return false;
}

// The loops around that drive what is inside become variables of the new block.
struct Outside {
  std::vector<IterVar> iters;
  std::vector<Expr> values;
  VarMap inside;
};

Result<Outside> outside_of(const std::vector<const For*>& above, const Stmt& part, bool preserve_unit_iters) {
  Outside made;
  for (const For* loop : above) {
    if (!uses_var(part, loop->loop_var)) continue;
    IterType type = IterType::spatial;
    for (const For* other : above)
      if (uses_var(loop->min, other->loop_var) || uses_var(loop->extent, other->loop_var))
        return refuse(codes::not_nested, fmt::format("cannot make a block of several: the extent of {} depends on {}",
                                                     name_of(*loop), name_of(*other)));
    for (const Ref<BlockRealize>& realize : outer_blocks(part))
      for (size_t i = 0; i < realize->iter_values.size(); ++i) {
        if (!uses_var(realize->iter_values[i], loop->loop_var)) continue;
        if (realize->block->iter_vars[i]->type == IterType::reduce)
          return refuse(codes::dependence,
                        fmt::format("cannot make a block of several: {} around them drives a reduce axis of {}",
                                    name_of(*loop), name_of(*realize->block)));
        // The order of its iterations is kept as the axis inside keeps it.
        if (realize->block->iter_vars[i]->type != IterType::spatial) type = realize->block->iter_vars[i]->type;
      }
    if (!preserve_unit_iters && is_int(loop->extent, 1)) {
      made.inside[loop->loop_var] = loop->min;
      continue;
    }
    const Var v = var("v" + loop->loop_var->name, loop->loop_var->dtype);
    made.inside[loop->loop_var] = support::flip(blockize_blocks_keeps_variable) ? loop->min : Expr(v);
    made.iters.push_back(make<IterVarNode>(Range{loop->min, loop->extent}, v, type));
    made.values.push_back(loop->loop_var);
  }
  return made;
}

}  // namespace

Result<Edit> blockize_blocks(const Program& program, const std::vector<Id>& ids, bool preserve_unit_iters) {
  if (ids.empty()) return refuse(codes::bad_argument, "blockize needs at least one block");
  std::vector<Path> paths;
  for (const Id id : ids) paths.push_back(TRY(block_path(program, id)));
  // One reduction is a nest of no loops: its init goes to the block around.
  if (ids.size() == 1 && is_driven(paths[0], IterType::reduce)) return blockize(program, ids[0], preserve_unit_iters);
  const size_t shared = shared_length(paths);
  const Path& path = paths[0];
  std::string name;
  for (const Path& each : paths) {
    const Block& block = *each.back().as<BlockRealize>()->block;
    for (size_t i = shared; i + 1 < each.size(); ++i)
      if (each[i].is<Block>())
        return refuse(codes::not_nested,
                      fmt::format("cannot make a block of several: {} is in a block of its own", name_of(block)));
    name += block.name + "_";
  }
  // The statements between the first and the last, or the one block.
  const bool several = shared < path.size();
  const Stmt parent = several ? path[shared - 1] : path.back();
  if (several && !parent.is<SeqStmt>())
    return refuse(codes::not_nested, "cannot make a block of several: they do not follow one another");
  std::vector<Stmt> before, taken, after;
  if (several) {
    const std::vector<Stmt>& all = parent.as<SeqStmt>()->seq;
    size_t first = all.size(), last = 0;
    for (const Path& each : paths) {
      const auto at = static_cast<size_t>(std::find(all.begin(), all.end(), each[shared]) - all.begin());
      first = std::min(first, at);
      last = std::max(last, at);
    }
    for (size_t i = 0; i < all.size(); ++i) (i < first ? before : i > last ? after : taken).push_back(all[i]);
    for (const Stmt& s : taken)
      for (const Ref<BlockRealize>& realize : outer_blocks(s))
        if (std::find(ids.begin(), ids.end(), realize->block->id) == ids.end())
          return refuse(codes::not_nested,
                        fmt::format("cannot make a block of several: {} among them would be in it too",
                                    name_of(*realize->block)));
  } else {
    taken = {parent};
  }
  const Stmt part = seq(taken);
  const Outside outside = TRY(
      outside_of(loops_above(Path(path.begin(), path.begin() + static_cast<ptrdiff_t>(several ? shared + 1 : shared))),
                 part, preserve_unit_iters));
  Id next = program.next;
  const Id created = next++;
  const Ref<Block> made = make<Block>(outside.iters, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{},
                                      std::vector<BufferRegion>{}, std::vector<BufferRegion>{}, name + "o", Stmt(),
                                      substitute(part, outside.inside), Attributes(), created);
  std::vector<Stmt> all = before;
  all.push_back(realize(outside.values, boolean(true), with_regions(made)));
  all.insert(all.end(), after.begin(), after.end());
  return edit(program, parent, seq(all), next, {created});
}

}  // namespace lathe::schedule::primitives
