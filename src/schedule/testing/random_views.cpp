// Nests over memory seen in other ways: views of a part of a buffer, vectors, rows that lie apart, truth values.
#include "schedule/testing/nest_source.h"

namespace lathe::schedule::testing {

namespace {

using Along = NestSource::Along;

// A view of the part of the buffer that begins at `corner`. With strides of its own where it has several rows.
MatchBufferRegion view(const std::string& name, const Buffer& of, const std::vector<Expr>& corner,
                       const std::vector<Expr>& extents, bool rows) {
  std::vector<Range> region;
  std::vector<Expr> shape;
  for (size_t d = 0; d < corner.size(); ++d) {
    region.push_back(Range{corner[d], extents[d]});
    if (rows || d + 1 == corner.size()) shape.push_back(extents[d]);
  }
  const Buffer seen = with(*buffer(name, shape, of->dtype), [&](BufferNode& copy) {
    for (size_t d = 0; rows && d < shape.size(); ++d) copy.strides.push_back(var(fmt::format("{}_s{}", name, d)));
    copy.elem_offset = var(name + "_offset");
  });
  return make<MatchBufferRegionNode>(seen, make<BufferRegionNode>(of, region));
}

// Rows of X turned around into rows of Y, both seen through views, and a reader of Y.
void rows_in_view(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = s.extent();
  const Buffer x = s.source({m, n}), t = s.middle(name + "t", {m, n}), y = s.memory(name, {m, n});
  const Along i = s.along(name + "i", m), k = s.along(name + "k", m), l = s.along(name + "l", n);
  const std::vector<Expr> corner{i.variable, int64(0)}, row{int64(1), n};
  const MatchBufferRegion from = view(name + "f", x, corner, row, false), to = view(name + "g", t, corner, row, false);
  const Var j = var(name + "j");
  const Stmt turn = make<For>(j, int64(0), n, ForKind::serial,
                              s.store(to->buffer, load(from->buffer, {n - 1 - j}) * s.number(2), {j}));
  s.builder.add(s.block(name + "t", {i}, turn, {}, 0, {}, {from, to}));
  const std::vector<Expr> at{k.variable, l.variable};
  s.builder.add(s.block(name, {k, l}, s.store(y, load(t, at) + s.number(1), at)));
}

// Tiles of two rows and three columns, through views whose rows are as far apart as the buffer's.
void tiles_in_view(NestSource& s, const std::string& name) {
  const Expr m = int64(s.small()), n = int64(s.small());
  const Buffer x = s.source({m * 2, n * 3}), y = s.memory(name, {m * 2, n * 3});
  const Along i = s.along(name + "i", m), j = s.along(name + "j", n);
  const std::vector<Expr> corner{i.variable * 2, j.variable * 3}, tile{int64(2), int64(3)};
  const MatchBufferRegion from = view(name + "f", x, corner, tile, true), to = view(name + "g", y, corner, tile, true);
  const Var a = var(name + "a"), b = var(name + "b");
  Stmt body = s.store(to->buffer, load(from->buffer, {a, b}) + s.number(3), {a, b});
  body = make<For>(a, int64(0), int64(2), ForKind::serial, make<For>(b, int64(0), int64(3), ForKind::serial, body));
  s.builder.add(s.block(name, {i, j}, body, {}, 0, {}, {from, to}));
}

// Four neighbours at a time, and a block that reads them one by one.
void vectors(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = int64(1 + s.small() % 3);
  const Buffer x = s.source({m, n * 4}), t = s.middle(name + "t", {m, n * 4}), y = s.memory(name, {m, n * 4});
  const Along i = s.along(name + "i", m), j = s.along(name + "j", n), k = s.along(name + "k", m),
              l = s.along(name + "l", n * 4);
  const std::vector<Expr> four{i.variable, make<Ramp>(j.variable * 4, int64(1), 4)}, one{k.variable, l.variable};
  s.builder.add(s.block(name + "t", {i, j}, s.store(t, load(x, four) * make<Broadcast>(s.number(3), 4), four)));
  s.builder.add(s.block(name, {k, l}, s.store(y, load(t, one) + s.number(1), one)));
}

// Rows that lie further apart than they are long.
void rows_apart(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = s.extent();
  const Buffer x = s.source({m, n}), y = s.memory(name, {m, n});
  const Buffer t = s.builder.inner(
      with(*buffer(name + "t", {m, n}, s.element()), [&](BufferNode& copy) { copy.strides = {n + 3, int64(1)}; }));
  const Along i = s.along(name + "i", m), j = s.along(name + "j", n), k = s.along(name + "k", m),
              l = s.along(name + "l", n);
  const std::vector<Expr> first{i.variable, j.variable}, second{k.variable, l.variable};
  s.builder.add(s.block(name + "t", {i, j}, s.store(t, load(x, first) * s.number(2), first)));
  s.builder.add(s.block(name, {k, l}, s.store(y, load(t, second) + s.number(1), second)));
}

// Which elements are positive, and what is made of it.
void flags(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = s.extent();
  const Buffer x = s.source({m, n}), y = s.memory(name, {m, n});
  const Buffer t = s.builder.inner(name + "t", {m, n}, DType::boolean());
  const Along i = s.along(name + "i", m), j = s.along(name + "j", n), k = s.along(name + "k", m),
              l = s.along(name + "l", n);
  const std::vector<Expr> first{i.variable, j.variable}, second{k.variable, l.variable};
  s.builder.add(s.block(name + "t", {i, j}, s.store(t, load(x, first) > s.number(0), first)));
  s.builder.add(s.block(name, {k, l}, s.store(y, make<Select>(load(t, second), load(x, second), s.number(5)), second)));
}

constexpr NamedNest nests_of_views[] = {{"rows_in_view", rows_in_view},
                                        {"tiles_in_view", tiles_in_view},
                                        {"vectors", vectors},
                                        {"rows_apart", rows_apart},
                                        {"flags", flags}};

}  // namespace

std::span<const NamedNest> nests_with_views() { return nests_of_views; }

}  // namespace lathe::schedule::testing
