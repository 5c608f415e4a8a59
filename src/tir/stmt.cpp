#include "tir/stmt.h"

namespace lathe::tir {

Buffer PrimFunc::buffer_of(const Var& param) const {
  for (const auto& [var, buffer] : buffer_map)
    if (var == param) return buffer;
  return {};
}

Stmt nop() { return make<Evaluate>(int32(0)); }

bool is_nop(const Stmt& s) {
  const auto* evaluate = s.as<Evaluate>();
  return evaluate && as_int(evaluate->value).has_value();
}

Stmt seq(std::vector<Stmt> statements) {
  std::vector<Stmt> flat;
  for (Stmt& s : statements) {
    if (!s || is_nop(s)) continue;
    if (const auto* inner = s.as<SeqStmt>())
      flat.insert(flat.end(), inner->seq.begin(), inner->seq.end());
    else
      flat.push_back(std::move(s));
  }
  if (flat.empty()) return nop();
  if (flat.size() == 1) return flat[0];
  return make<SeqStmt>(std::move(flat));
}

Function prim_func(std::vector<Buffer> buffers, Stmt body, std::vector<Var> scalars, Attributes attrs) {
  std::vector<Var> params;
  std::vector<std::pair<Var, Buffer>> map;
  for (Buffer& buffer : buffers) {
    Var handle = var(buffer->name + "_handle", DType::handle());
    params.push_back(handle);
    map.emplace_back(handle, std::move(buffer));
  }
  params.insert(params.end(), scalars.begin(), scalars.end());
  return make<PrimFunc>(std::move(params), std::move(map), std::move(body), DType::void_(), std::move(attrs));
}

Stmt root_block(Stmt body, std::vector<Buffer> alloc_buffers) {
  Ref<Block> block = make<Block>(std::vector<IterVar>{}, std::move(alloc_buffers), std::vector<MatchBufferRegion>{},
                                 std::vector<BufferRegion>{}, std::vector<BufferRegion>{}, std::string("root"), Stmt{},
                                 std::move(body));
  return make<BlockRealize>(std::vector<Expr>{}, boolean(true), std::move(block));
}

const BlockRealize* root_of(const PrimFunc& function) { return function.body.as<BlockRealize>(); }

BufferRegion region_of(const Buffer& buffer) {
  std::vector<Range> ranges;
  for (const Expr& extent : buffer->shape) ranges.push_back({constant(extent->dtype, int64_t{0}), extent});
  return make<BufferRegionNode>(buffer, std::move(ranges));
}

BufferRegion point_region(const Buffer& buffer, std::vector<Expr> indices) {
  std::vector<Range> ranges;
  for (Expr& index : indices) {
    Expr one = constant(index->dtype, int64_t{1});
    ranges.push_back({std::move(index), std::move(one)});
  }
  return make<BufferRegionNode>(buffer, std::move(ranges));
}

}  // namespace lathe::tir

LATHE_STMT_KINDS(LATHE_DEFINE_KIND)
LATHE_STMT_PARTS(LATHE_DEFINE_KIND)
LATHE_DEFINE_KIND(lathe::tir::PrimFunc)
