// transform_layout: the elements of an intermediate lie elsewhere, by an index map that is one to one.
#include "ir/visit.h"
#include "schedule/index_map.h"
#include "schedule/primitives/cache/buffers.h"
#include "schedule/primitives/compute/inline.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(transform_layout_keeps_indices, "schedule_test",
            "transform_layout: indices are permuted and split, and then those in front change places again");

namespace {

// Writes `value` to the elements of `to` that no element of the old layout became.
Stmt padding(const Buffer& to, const IndexMap& map, const std::vector<Expr>& old_shape, const Image& image,
             const std::vector<Expr>& outputs, const Expr& value, Id& next) {
  arith::Analyzer analyzer;
  std::vector<IterVar> iters;
  for (size_t d = 0; d < outputs.size(); ++d) {
    iters.push_back(make<IterVarNode>(Range{int64(0), to->shape[d]}, cast<VarNode>(outputs[d]), IterType::spatial));
    analyzer.bind(iters[d]->var, iters[d]->dom);
  }
  Expr taken = boolean(true);
  const auto require_that = [&](const Expr& condition) {
    if (!analyzer.can_prove(condition)) taken = is_int(taken, 1) ? condition : logical_and(taken, condition);
  };
  for (size_t i = 0; i < old_shape.size(); ++i) {
    require_that(image.preimages[i] >= 0);
    require_that(image.preimages[i] < old_shape[i]);
  }
  const std::vector<Expr> again = map(image.preimages);
  for (size_t d = 0; d < outputs.size(); ++d) require_that(eq(analyzer.simplify(again[d]), outputs[d]));
  const Stmt store = make<IfThenElse>(logical_not(taken), make<BufferStore>(to, value, outputs, Expr()), Stmt());
  const Ref<Block> block =
      make<Block>(iters, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{},
                  std::vector<BufferRegion>{}, to->name + "_pad", Stmt{}, store, Attributes(), next++);
  std::vector<Var> loops;
  std::vector<Expr> values;
  for (size_t d = 0; d < outputs.size(); ++d) {
    loops.push_back(var(fmt::format("ax{}", d)));
    values.push_back(loops.back());
  }
  Stmt nest = realize(values, boolean(true), with_regions(block));
  for (size_t d = loops.size(); d-- > 0;) nest = loop_over(loops[d], to->shape[d], nest, next++);
  return nest;
}

}  // namespace

Result<Edit> transform_layout(const Program& program, Id id, BufferIndex which, const IndexMap& map,
                              const ir::Value& pad_value, bool assume_injective) {
  const Path path = TRY(block_path(program, id));
  const Buffer buffer = TRY(buffer_of(path, which));
  const auto problem = [&](std::string why) {
    return refuse(codes::bad_argument, fmt::format("cannot change the layout of '{}': {}", buffer->name, why));
  };
  if (auto refused = refuse_fixed(*program.function, buffer, "change the layout of")) return *std::move(refused);
  std::vector<Expr> outputs;
  for (size_t d = 0; d < map.to.size(); ++d) outputs.push_back(var(fmt::format("v{}", d)));
  const OneToOne shown = assume_injective || !program.proves ? OneToOne::by_word : OneToOne::by_pairs;
  const auto found = image_of(map, buffer->shape, outputs, shown);
  if (!found.ok()) return problem(found.diagnostics()[0].message);
  const Image& image = *found;
  if (!pad_value.empty() && image.preimages.size() != buffer->shape.size())
    return problem(fmt::format("which elements index map '{}' leaves out could not be told, so they cannot be padded",
                               map.text()));
  if (buffer->scope == "register" && !image.whole) return problem("registers are not padded");

  const Buffer moved = with(*buffer, [&](BufferNode& copy) {
    copy.shape = image.extents;
    copy.axis_separators.clear();
  });
  IndexMap moving = map;
  if (support::flip(transform_layout_keeps_indices) && moving.to.size() > 1) std::swap(moving.to[0], moving.to[1]);
  Stmt body = with_layout(program.function->body, buffer, moved, moving);
  Id next = program.next;
  if (!pad_value.empty() && !image.whole) {
    const Expr value = TRY(constant_of(pad_value, buffer->dtype));
    const Stmt pad = padding(moved, map, buffer->shape, image, outputs, value, next);
    const Path to_scope = path_to(body, allocating_block(*program.function, buffer)->id);
    const auto& realized = *to_scope.back().as<BlockRealize>();
    const Ref<Block> padded = with(*realized.block, [&](Block& copy) { copy.body = seq({pad, copy.body}); });
    body = replace(body, to_scope.back(), with(realized, [&](BlockRealize& copy) { copy.block = padded; }));
  }
  return edited(program, with_body(program.function, body), next);
}

}  // namespace lathe::schedule::primitives
