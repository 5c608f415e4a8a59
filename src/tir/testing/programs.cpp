#include "tir/testing/programs.h"

#include "tir/analysis/regions.h"

namespace lathe::tir::testing {

IterVar iter(const Var& v, Expr extent, IterType type) {
  return make<IterVarNode>(Range{int64(0), std::move(extent)}, v, type);
}

Stmt loop(const Var& v, Expr extent, Stmt body, ForKind kind) {
  return make<For>(v, int64(0), std::move(extent), kind, std::move(body));
}

Stmt block(std::string name, std::vector<IterVar> iters, std::vector<Expr> values, Stmt body, Stmt init,
           Expr predicate) {
  Ref<Block> b = make<Block>(std::move(iters), std::vector<Buffer>{}, std::vector<MatchBufferRegion>{},
                             std::vector<BufferRegion>{}, std::vector<BufferRegion>{}, std::move(name), std::move(init),
                             std::move(body));
  const Regions regions = infer_regions(*b);
  b = with(*b, [&](Block& copy) {
    copy.reads = regions.reads;
    copy.writes = regions.writes;
  });
  return make<BlockRealize>(std::move(values), std::move(predicate), std::move(b));
}

Function matmul(Expr m, Expr n, Expr k, int64_t tile, ForKind inner, DType dtype) {
  const Buffer a = buffer("A", {m, k}, dtype), b = buffer("B", {k, n}, dtype), c = buffer("C", {m, n}, dtype);
  const Var i = var("i"), jo = var("jo"), ji = var("ji"), kk = var("kk");
  const Var vi = var("vi"), vj = var("vj"), vk = var("vk");
  const Stmt init = make<BufferStore>(c, constant(dtype, 0), std::vector<Expr>{vi, vj});
  const Stmt update =
      make<BufferStore>(c, load(c, {vi, vj}) + load(a, {vi, vk}) * load(b, {vk, vj}), std::vector<Expr>{vi, vj});
  const Expr column = jo * tile + ji;
  Stmt body = block("matmul", {iter(vi, m), iter(vj, n), iter(vk, k, IterType::reduce)}, {i, column, kk}, update, init,
                    lt(column, n));
  body = loop(kk, k, loop(ji, int64(tile), body, inner));
  body = loop(i, m, loop(jo, ceildiv(n, int64(tile)), body), ForKind::parallel);
  return prim_func({a, b, c}, root_block(body));
}

Function padded_stencil(int64_t n, ForKind kind) {
  const DType f = DType::float32();
  const Buffer x = buffer("X", {int64(n)}, f), a = buffer("A", {int64(n)}, f), b = buffer("B", {int64(n)}, f);
  const Var i = var("i"), j = var("j"), vi = var("vi"), vj = var("vj");
  const Stmt twice = block("twice", {iter(vi, int64(n))}, {i},
                           make<BufferStore>(a, load(x, {vi}) * constant(f, 2), std::vector<Expr>{vi}));
  const auto at = [&](const Expr& index) {
    return if_then_else(logical_and(ge(index, int64(0)), lt(index, int64(n))), load(a, {index}), constant(f, 0));
  };
  const Stmt sum = block("sum", {iter(vj, int64(n))}, {j},
                         make<BufferStore>(b, at(vj - 1) + at(vj) + at(vj + 1), std::vector<Expr>{vj}));
  return prim_func({x, b}, root_block(seq({loop(i, int64(n), twice, kind), loop(j, int64(n), sum, kind)}), {a}));
}

}  // namespace lathe::tir::testing
