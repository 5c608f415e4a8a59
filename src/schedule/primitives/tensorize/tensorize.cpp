// tensorize: what a block computes is found to be what an intrinsic describes, and its body becomes the intrinsic's
// implementation, over views of the buffers. What the block means, the description goes on saying: the interpreter runs
// it, and the block's regions are its regions.
#include "ir/visit.h"
#include "schedule/analysis/access.h"
#include "schedule/primitives/rewrite.h"
#include "schedule/primitives/tensorize/match_intrin.h"
#include "support/mutation.h"
#include "tir/analysis/regions.h"
#include "tir/rewrite.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(tensorize_moves_view, "schedule_test", "tensorize: a view begins one element further on");

namespace {

// The parts of the implementation that take the place of a block's own.
struct Implementation {
  std::vector<MatchBufferRegion> views;
  std::vector<Buffer> buffers;
  Stmt body;
};

// With variables, loops, blocks and buffers of its own, and its open sizes filled in.
Implementation instantiate(const TensorIntrin& intrin, const IntrinMatch& match, Id& next) {
  const PrimFunc& f = *intrin.implementation;
  VarMap fresh;
  std::vector<MatchBufferRegion> views;
  for (size_t i = 0; i < f.buffer_map.size(); ++i) {
    const Buffer &described = intrin.description->buffer_map[i].second, &own = f.buffer_map[i].second;
    // The sizes left open are the same in both functions, under names of their own.
    for (size_t d = 0; d < own->shape.size(); ++d) {
      const std::vector<Var> theirs = free_vars(described->shape[d]), ours = free_vars(own->shape[d]);
      for (size_t s = 0; s < ours.size() && s < theirs.size(); ++s)
        fresh[ours[s]] = cast(ours[s]->dtype, match.symbols.at(theirs[s]));
    }
    std::vector<Expr> layout = own->strides;
    if (own->elem_offset) layout.push_back(own->elem_offset);
    for (const Expr& e : layout)
      if (const auto* symbol = e.as<VarNode>()) fresh.emplace(Var(symbol), var(symbol->name, symbol->dtype));
    std::vector<Range> region = match.buffers[i].region;
    if (support::flip(tensorize_moves_view) && !region.empty()) region[0].min = region[0].min + 1;
    views.push_back(
        make<MatchBufferRegionNode>(own, make<BufferRegionNode>(match.buffers[i].buffer, std::move(region))));
  }
  const BlockRealize* root = root_of(f);
  std::vector<Buffer> buffers = root ? root->block->alloc_buffers : std::vector<Buffer>();
  Stmt body = intrin_body(f);
  // An implementation in one block of its own, without variables, is that block's body.
  if (const auto* only = body.as<BlockRealize>(); only && only->block->iter_vars.empty() && !only->block->init) {
    buffers.insert(buffers.end(), only->block->alloc_buffers.begin(), only->block->alloc_buffers.end());
    body = only->block->body;
  }
  const Stmt whole = make<Block>(std::vector<IterVar>{}, buffers, views, std::vector<BufferRegion>{},
                                 std::vector<BufferRegion>{}, std::string("views"), Stmt(), body);
  const Stmt copied = duplicate(fresh_copy(whole, fresh), next, "");
  const Block& made = *copied.as<Block>();
  return {made.match_buffers, made.alloc_buffers, made.body};
}

// What the description reads and writes, in the program's buffers.
void set_regions(Block& block, const TensorIntrin& intrin, const IntrinMatch& match, bool accumulates) {
  const Regions described = access_regions(intrin_body(*intrin.description));
  const auto into = [&](std::vector<BufferRegion>& list, const std::vector<BufferRegion>& from, bool skip_written) {
    list.clear();
    for (size_t i = 0; i < match.buffers.size(); ++i) {
      const auto touches = [&](const std::vector<BufferRegion>& regions) {
        return std::any_of(regions.begin(), regions.end(), [&](const BufferRegion& r) {
          return r->buffer == intrin.description->buffer_map[i].second;
        });
      };
      if (touches(from) && !(skip_written && touches(described.writes)))
        list.push_back(make<BufferRegionNode>(match.buffers[i].buffer, match.buffers[i].region));
    }
  };
  into(block.reads, described.reads, accumulates);
  into(block.writes, described.writes, false);
}

Result<Edit> of_block(const Program& program, Id id, const std::string& name, const TensorIntrin& intrin) {
  const Path path = TRY(block_path(program, id));
  const auto& realize = *path.back().as<BlockRealize>();
  const Block& block = *realize.block;
  if (!block.match_buffers.empty() || !block.alloc_buffers.empty())
    return refuse(codes::intrin_mismatch,
                  fmt::format("cannot tensorize {}: it has buffers of its own", name_of(block)));
  const IntrinMatch match = TRY(match_intrin(name, intrin, realize, loops_above(path)));
  // A reduction reads of what it writes what it wrote, and does not say so.
  const bool accumulates = block.init && updates_own_element(block);
  Id next = program.next;
  Implementation implementation = instantiate(intrin, match, next);
  const Stmt tensorized = with(realize, [&](BlockRealize& copy) {
    copy.block = with(block, [&](Block& changed) {
      changed.match_buffers = std::move(implementation.views);
      changed.alloc_buffers = std::move(implementation.buffers);
      changed.body = std::move(implementation.body);
      changed.annotations.set(tensor_intrin_key, name);
      set_regions(changed, intrin, match, accumulates);
    });
  });
  return edit(program, path.back(), tensorized, next, {id});
}

}  // namespace

Result<Edit> tensorize(const Program& program, Id id, const std::string& name, const TensorIntrin& intrin,
                       bool preserve_unit_iters) {
  if (find_block(*program.function, id)) return of_block(program, id, name, intrin);
  const Edit outer = TRY(blockize(program, id, preserve_unit_iters));
  Program between = outer.program;
  between.proofs = program.proofs;
  const Edit inner = TRY(of_block(between, outer.created.at(0), name, intrin));
  return edited(program, inner.program.function, inner.program.next, outer.created);
}

}  // namespace lathe::schedule::primitives
