// What tensor programs with steps are made of: stores, loops, and blocks over what is independent.
#pragma once

#include "ops/build.h"

namespace lathe::ops::build {

using Buffers = std::vector<ir::Buffer>;
using Statement = std::function<tir::Stmt(const Indices&)>;

tir::Stmt store(const ir::Buffer& buffer, Expr value, Indices at);
tir::Stmt when(const Expr& condition, tir::Stmt then, tir::Stmt otherwise = {});
// A vector in a buffer: its elements between leading and following coordinates.
struct VectorAccess {
  ir::Buffer buffer;
  Indices lead, tail = {};

  Expr operator[](const Expr& i) const;
  Expr operator[](int64_t i) const { return (*this)[ir::int64(i)]; }
  tir::Stmt set(const Expr& i, Expr value) const;
  tir::Stmt set(int64_t i, Expr value) const { return set(ir::int64(i), std::move(value)); }

  Indices cell(const Expr& i) const;
};

// Memory of a block's own: local where its size is known.
ir::Buffer scratch(const std::string& name, const Shape& shape, DType dtype);
// Loops over `extents`, one inside the other, in row-major order.
tir::Stmt loops_over(const Shape& extents, const Statement& body);

// Whether one of a vector of conditions holds.
Expr any_lane(const Expr& conditions);

// Independent iterations, most of them side by side in vectors.
tir::Stmt vectors_over(const Expr& extent, const std::function<tir::Stmt(const Expr&)>& body);

// The region of one instance: the point along what the block iterates, all of the rest.
tir::BufferRegion part_of_buffer(const ir::Buffer& buffer, const std::vector<std::optional<Expr>>& at);

// A block over `extents`; `body` gets its variables, `regions` its reads and writes. The instances of variable number
// `step`, if one is named, follow each other.
struct Regions {
  std::vector<tir::BufferRegion> reads, writes;
  Buffers locals = {};  // memory that an instance has for itself
};
tir::Stmt block_over(const Shape& extents, const std::string& name,
                     const std::function<Regions(const Indices&)>& regions, const Statement& body,
                     std::optional<size_t> step = std::nullopt);

}  // namespace lathe::ops::build
