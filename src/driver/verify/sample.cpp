#include "driver/verify/sample.h"

#include "ir/visit.h"
#include "tir/scalars.h"

namespace lathe::driver {
namespace {

using namespace ir;   // NOLINT: builds programs
using namespace tir;  // NOLINT

double extent_of(const Expr& extent, int64_t unknown) {
  const auto known = as_int(extent);
  return static_cast<double>(known ? *known : unknown);
}

double count(const Stmt& s, int64_t unknown) {
  if (!s) return 0;
  if (const auto* loop = s.as<For>()) return extent_of(loop->extent, unknown) * count(loop->body, unknown);
  if (const auto* seq = s.as<SeqStmt>()) {
    double total = 0;
    for (const Stmt& inner : seq->seq) total += count(inner, unknown);
    return total;
  }
  if (const auto* realize = s.as<BlockRealize>()) return count(realize->block->body, unknown);
  if (const auto* branch = s.as<IfThenElse>())
    return std::max(count(branch->then_case, unknown), count(branch->else_case, unknown));
  return 1;
}

// A perfect loop nest over one block.
struct Nest {
  std::vector<const For*> loops;
  const BlockRealize* realize = nullptr;
};

std::optional<Nest> nest_of(const Stmt& s) {
  Nest nest;
  Stmt at = s;
  while (const auto* loop = at.as<For>()) {
    nest.loops.push_back(loop);
    at = loop->body;
  }
  nest.realize = at.as<BlockRealize>();
  return nest.realize ? std::optional(nest) : std::nullopt;
}

bool mentions(const std::vector<BufferRegion>& regions, const BufferNode* buffer) {
  return std::any_of(regions.begin(), regions.end(),
                     [&](const BufferRegion& region) { return region->buffer.get() == buffer; });
}

// The nest over samples: `indices[s, d]` in place of the loop of the d-th spatial variable.
Stmt sampled_nest(const Nest& nest, const Buffer& indices, int64_t samples) {
  const Var sample = var("sample");
  VarMap point;
  std::unordered_set<const Node*> spatial;
  int64_t d = 0;
  const Block& block = *nest.realize->block;
  for (size_t k = 0; k < block.iter_vars.size(); ++k) {
    if (block.iter_vars[k]->type != IterType::spatial) continue;
    const Expr& value = nest.realize->iter_values[k];
    point[ir::cast<VarNode>(value)] = load(indices, {sample, int64(d++)});
    spatial.insert(value.get());
  }
  Stmt body = make<BlockRealize>(
      [&] {
        std::vector<Expr> values;
        for (const Expr& value : nest.realize->iter_values) values.push_back(substitute(value, point));
        return values;
      }(),
      nest.realize->predicate, nest.realize->block);
  for (size_t k = nest.loops.size(); k-- > 0;) {
    const For& loop = *nest.loops[k];
    if (!spatial.count(loop.loop_var.get()))
      body = make<For>(loop.loop_var, loop.min, loop.extent, ForKind::serial, body);
  }
  return make<For>(sample, int64(0), int64(samples), ForKind::serial, body);
}

// Whether every spatial variable is one loop's variable and the block's domain is rectangular in them.
bool can_sample(const Nest& nest, const Buffer& output) {
  const Block& block = *nest.realize->block;
  if (block.writes.size() != 1 || block.writes[0]->buffer.get() != output.get()) return false;
  size_t spatial = 0;
  for (size_t k = 0; k < block.iter_vars.size(); ++k) {
    if (block.iter_vars[k]->type != IterType::spatial) continue;
    ++spatial;
    if (!nest.realize->iter_values[k].as<VarNode>()) return false;
  }
  if (spatial != output->shape.size()) return false;
  // Spatial variable d writes index d, as tensor expressions do.
  const auto& region = block.writes[0]->region;
  for (size_t k = 0, d = 0; k < block.iter_vars.size(); ++k) {
    if (block.iter_vars[k]->type != IterType::spatial) continue;
    if (region[d++].min.get() != block.iter_vars[k]->var.get()) return false;
  }
  return true;
}

}  // namespace

double operations_of(const PrimFunc& function, int64_t unknown) { return count(function.body, unknown); }

SampledProgram sample_outputs(const Function& function, size_t outputs, int64_t samples) {
  const SampledProgram whole{function, false};
  const BlockRealize* root = root_of(*function);
  if (!root || function->buffer_map.size() < outputs) return whole;
  std::vector<Stmt> statements;
  if (const auto* seq = root->block->body.as<SeqStmt>())
    statements = seq->seq;
  else
    statements = {root->block->body};

  std::vector<Buffer> buffers;
  for (const auto& [param, buffer] : function->buffer_map) buffers.push_back(buffer);
  const size_t first = buffers.size() - outputs;
  for (size_t k = first; k < first + outputs; ++k) {
    const Buffer output = buffers[k];
    Stmt* writer = nullptr;
    for (Stmt& statement : statements) {
      const auto nest = nest_of(statement);
      if (!nest) return whole;
      const Block& block = *nest->realize->block;
      if (mentions(block.writes, output.get())) {
        if (writer || !can_sample(*nest, output)) return whole;
        writer = &statement;
      } else if (mentions(block.reads, output.get())) {
        return whole;
      }
    }
    if (!writer) return whole;
    const Buffer indices = buffer("points_" + std::to_string(k - first),
                                  {int64(samples), int64(static_cast<int64_t>(output->shape.size()))}, DType::int64());
    *writer = sampled_nest(*nest_of(*writer), indices, samples);
    buffers.push_back(indices);
  }
  Stmt body = root_block(seq(std::move(statements)), root->block->alloc_buffers);
  return {prim_func(std::move(buffers), std::move(body), scalar_params(*function)), true};
}

}  // namespace lathe::driver
