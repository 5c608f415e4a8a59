#include "tir/plain_nest.h"

#include "ir/visit.h"

namespace lathe::tir {

std::optional<PlainNest> as_plain_nest(const Stmt& s) {
  PlainNest nest;
  Stmt inner = s;
  while (const auto* loop = inner.as<For>()) {
    if (loop->kind != ForKind::serial || !is_int(loop->min, 0) || !loop->annotations.empty()) return std::nullopt;
    nest.loops.emplace_back(loop);
    inner = loop->body;
  }
  const auto* realize = inner.as<BlockRealize>();
  if (!realize || !is_int(realize->predicate, 1) || !realize->block->match_buffers.empty() ||
      !realize->block->alloc_buffers.empty())
    return std::nullopt;
  nest.realize = Ref<BlockRealize>(realize);
  return nest;
}

Stmt to_stmt(const PlainNest& nest) {
  Stmt s = nest.realize;
  for (auto loop = nest.loops.rbegin(); loop != nest.loops.rend(); ++loop)
    s = with(**loop, [&](For& copy) { copy.body = s; });
  return s;
}

}  // namespace lathe::tir
