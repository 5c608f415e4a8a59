#include "ops/build/statements.h"

namespace lathe::ops::build {

tir::Stmt store(const ir::Buffer& buffer, Expr value, Indices at) {
  return ir::make<tir::BufferStore>(buffer, std::move(value), std::move(at));
}

tir::Stmt when(const Expr& condition, tir::Stmt then, tir::Stmt otherwise) {
  return ir::make<tir::IfThenElse>(condition, std::move(then), std::move(otherwise));
}

Indices VectorAccess::cell(const Expr& i) const {
  Indices at = lead;
  at.push_back(i);
  at.insert(at.end(), tail.begin(), tail.end());
  return at;
}

Expr VectorAccess::operator[](const Expr& i) const { return ir::load(buffer, cell(i)); }

tir::Stmt VectorAccess::set(const Expr& i, Expr value) const { return store(buffer, std::move(value), cell(i)); }

ir::Buffer scratch(const std::string& name, const Shape& shape, DType dtype) {
  const bool is_known =
      std::all_of(shape.begin(), shape.end(), [](const Expr& n) { return ir::as_int(n).has_value(); });
  return ir::buffer(name, shape, dtype, is_known ? "local" : "global");
}

tir::Stmt loops_over(const Shape& extents, const Statement& body) {
  std::vector<ir::Var> loops;
  Indices at;
  for (size_t d = 0; d < extents.size(); ++d) {
    loops.push_back(ir::var("s" + std::to_string(d)));
    at.push_back(loops.back());
  }
  tir::Stmt nest = body(at);
  for (size_t d = loops.size(); d-- > 0;)
    nest = ir::make<tir::For>(loops[d], ir::int64(0), extents[d], tir::ForKind::serial, std::move(nest));
  return nest;
}

Expr any_lane(const Expr& conditions) {
  const DType flag = DType::int32(), flags = flag.with_lanes(conditions->dtype.lanes);
  const Expr each = ir::select(conditions, ir::constant(flags, 1), ir::constant(flags, 0));
  return ir::ne(ir::call(flag, ir::intrinsic::vector_reduce_max, {each}), ir::constant(flag, 0));
}

tir::Stmt vectors_over(const Expr& extent, const std::function<tir::Stmt(const Expr&)>& body) {
  constexpr int64_t lanes = 16;
  const Expr groups = relax::simplified(ir::floordiv(extent, ir::int64(lanes)));
  const tir::Stmt vectors = loops_over({groups}, [&](const Indices& group) {
    const ir::Var lane = ir::var("lane");
    return ir::make<tir::For>(lane, ir::int64(0), ir::int64(lanes), tir::ForKind::vectorized,
                              body(group[0] * lanes + lane));
  });
  const tir::Stmt rest = loops_over({relax::simplified(extent - groups * lanes)},
                                    [&](const Indices& i) { return body(groups * lanes + i[0]); });
  return tir::seq({vectors, rest});
}

tir::BufferRegion part_of_buffer(const ir::Buffer& buffer, const std::vector<std::optional<Expr>>& at) {
  std::vector<ir::Range> ranges;
  for (size_t d = 0; d < buffer->shape.size(); ++d)
    ranges.push_back(d < at.size() && at[d] ? ir::Range{*at[d], ir::int64(1)}
                                            : ir::Range{ir::int64(0), buffer->shape[d]});
  return ir::make<tir::BufferRegionNode>(buffer, std::move(ranges));
}

tir::Stmt block_over(const Shape& extents, const std::string& name,
                     const std::function<Regions(const Indices&)>& regions, const Statement& body,
                     std::optional<size_t> step) {
  std::vector<ir::IterVar> iters;
  std::vector<ir::Var> loops;
  Indices values, at;
  for (size_t d = 0; d < extents.size(); ++d) {
    loops.push_back(ir::var("i" + std::to_string(d)));
    iters.push_back(ir::make<ir::IterVarNode>(ir::Range{ir::int64(0), extents[d]}, ir::var("v" + std::to_string(d)),
                                              step == d ? ir::IterType::scan : ir::IterType::spatial));
    values.push_back(loops.back());
    at.push_back(iters.back()->var);
  }
  Regions touched = regions(at);
  auto block = ir::make<tir::Block>(iters, std::move(touched.locals), std::vector<tir::MatchBufferRegion>{},
                                    std::move(touched.reads), std::move(touched.writes), name, tir::Stmt{}, body(at));
  tir::Stmt nest = ir::make<tir::BlockRealize>(values, ir::boolean(true), block);
  for (size_t d = loops.size(); d-- > 0;)
    nest = ir::make<tir::For>(loops[d], ir::int64(0), extents[d], tir::ForKind::serial, std::move(nest));
  return nest;
}

}  // namespace lathe::ops::build
