// Nests whose bodies are more than one store: what transparent bodies may hold, and what a proof can only give up on.
#include "schedule/testing/nest_source.h"

namespace lathe::schedule::testing {

namespace {

using Along = NestSource::Along;

Expr counted(int64_t value) { return constant(DType::int_(32), value); }

// An index from an array of numbers, inside of [0, n).
Expr found_by(const Buffer& numbers, const Expr& at, const Expr& n) {
  return floormod(cast(DType::int64(), load(numbers, {at})), n);
}

// Even rows and odd rows are made by two blocks, under an if outside of them.
void branches_outside(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = s.extent();
  const Buffer x = s.source({m, n}), y = s.memory(name, {m, n});
  const Along i = s.along(name + "i", m), j = s.along(name + "j", n), k = s.along(name + "k", n);
  const Along even = NestSource::again(i, name + "e"), odd = NestSource::again(i, name + "o");
  const std::vector<Expr> at_even{even.variable, j.variable}, at_odd{odd.variable, k.variable};
  const Stmt first = s.block(name + "a", {even, j}, s.store(y, load(x, at_even) * s.number(2), at_even), {}, 1);
  const Stmt second = s.block(name + "b", {odd, k}, s.store(y, load(x, at_odd) + s.number(4), at_odd), {}, 1);
  const Expr condition = s.pick(2) ? eq(floormod(i.value, int64(2)), int64(0)) : i.value < int64(2);
  const Expr whole = i.inside ? logical_and(i.inside, condition) : condition;
  s.builder.add(s.around({i}, make<IfThenElse>(whole, first, s.pick(2) ? second : Stmt())));
}

// A block that writes one of two buffers.
void branches_inside(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = int64(s.small());
  const Buffer x = s.source({m, n}), y = s.memory(name, {m, n}), z = s.memory(name + "z", {m});
  const Along i = s.along(name + "i", m), j = s.along(name + "j", n);
  const std::vector<Expr> at{i.variable, j.variable};
  const Expr left = load(x, at), condition = s.pick(3) ? i.variable >= j.variable : left > s.number(0);
  s.builder.add(s.block(name, {i, j},
                        make<IfThenElse>(condition, s.store(y, left + s.number(1), at),
                                         s.pick(2) ? s.store(z, left, {i.variable}) : Stmt())));
}

// Y[i] = X[i] + X[i + 1] + …, as many as a while loop counts.
void counts(NestSource& s, const std::string& name) {
  const Expr m = s.extent();
  const Buffer x = s.source({m + 3}), y = s.memory(name, {m}), z = s.memory(name + "z", {m});
  const Buffer count = buffer(name + "count", {int64(1)}, DType::int_(32));
  const Along i = s.along(name + "i", m);
  const std::vector<Expr> at{i.variable};
  const Expr so_far = load(count, {int64(0)});
  const Expr limit = s.pick(2) ? counted(3) : cast(DType::int_(32), floormod(Expr(i.variable), int64(3)) + 1);
  const Stmt step =
      seq({s.store(y, load(y, at) + load(x, {i.variable + cast(DType::int64(), so_far)}) * s.number(3), at),
           s.store(count, so_far + counted(1), {int64(0)})});
  const Stmt body =
      seq({s.store(y, s.number(0), at), s.store(count, counted(0), {int64(0)}), make<While>(so_far < limit, step)});
  s.builder.add(s.block(name, {i}, body, {}, 0, {count}));
  const Along o = s.along(name + "o", m);
  s.builder.add(s.block(name + "z", {o}, s.store(z, load(y, {o.variable}) + s.number(1), {o.variable})));
}

// T from X, and Y[i] = T[where the numbers say].
void gathers(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = s.extent();
  const Buffer x = s.source({n}), t = s.middle(name + "t", {n}), y = s.memory(name, {m}), numbers = s.numbers({m});
  const Along k = s.along(name + "k", n), i = s.along(name + "i", m);
  s.builder.add(s.block(name + "t", {k}, s.store(t, load(x, {k.variable}) * s.number(2), {k.variable})));
  s.builder.add(
      s.block(name, {i}, s.store(y, load(t, {found_by(numbers, i.variable, n)}) + s.number(1), {i.variable})));
}

// Y[where the numbers say] = X[i], or added to it: the later of two wins.
void scatters(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = s.extent();
  const Buffer x = s.source({m}), y = s.memory(name, {n}), numbers = s.numbers({m});
  const Along i = s.along(name + "i", m);
  const std::vector<Expr> at{found_by(numbers, i.variable, n)};
  Expr value = load(x, {i.variable});
  if (s.pick(2)) value = value + load(y, at);
  s.builder.add(s.block(name, {i}, s.store(y, value, at)));
}

// A let, and two buffers written from it.
void lets(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = s.extent();
  const Buffer x = s.source({m, n}), y = s.memory(name, {m, n}), z = s.memory(name + "z", {n, m});
  const Along i = s.along(name + "i", m), j = s.along(name + "j", n);
  const Var value = var(name + "let", s.element());
  s.builder.add(s.block(name, {i, j},
                        make<LetStmt>(value, load(x, {i.variable, j.variable}) * s.number(2),
                                      seq({s.store(y, Expr(value) + s.number(1), {i.variable, j.variable}),
                                           s.store(z, value, {j.variable, i.variable})}))));
}

// A row turned around in memory of the block's own, in plain loops.
void local_row(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = int64(s.small());
  const Buffer x = s.source({m, n}), y = s.memory(name, {m, n}), row = buffer(name + "row", {n}, s.element());
  const Along i = s.along(name + "i", m);
  const Var j = var(name + "j"), k = var(name + "k");
  const Stmt in = make<For>(j, int64(0), n, ForKind::serial, s.store(row, load(x, {i.variable, j}) * s.number(2), {j}));
  const Stmt out =
      make<For>(k, int64(0), n, ForKind::serial, s.store(y, load(row, {n - 1 - k}) + s.number(1), {i.variable, k}));
  s.builder.add(s.block(name, {i}, seq({in, out}), {}, 0, {row}));
}

// Sums in a block inside of a block, whose result the outer one's next block uses.
void blocks_inside(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = int64(s.small());
  const Buffer x = s.source({m, n}), y = s.memory(name, {m}), total = s.middle(name + "t", {m});
  const Along i = s.along(name + "i", m), row = s.along(name + "r", int64(1)),
              k = s.along(name + "k", n, IterType::reduce);
  const Expr at = i.variable + row.variable;
  const Stmt sum = s.block(name + "s", {row, k}, s.store(total, load(total, {at}) + load(x, {at, k.variable}), {at}),
                           s.store(total, s.number(0), {at}));
  s.builder.add(s.block(name + "o", {i}, sum));
  const Along o = s.along(name + "u", m);
  s.builder.add(s.block(name, {o}, s.store(y, load(total, {o.variable}) * s.number(2), {o.variable})));
}

// U[t + 1] from U[t], along an axis that says so, or says nothing.
void scans(NestSource& s, const std::string& name) {
  const Expr n = s.extent(), m = int64(s.small());
  const Buffer x = s.source({n, m}), u = s.memory(name, {n + 1, m});
  const Along t = s.along(name + "t", n, s.pick(2) ? IterType::scan : IterType::opaque), i = s.along(name + "i", m);
  s.builder.add(s.block(
      name, {t, i},
      s.store(u, load(u, {t.variable, i.variable}) + load(x, {t.variable, i.variable}), {t.variable + 1, i.variable})));
}

// A value, and the sum over windows of it: what rolling_buffer, compute_at and the inlines are for.
void windows(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = s.extent();
  const int64_t width = 2 + static_cast<int64_t>(s.pick(2));
  const Buffer x = s.source({m + width - 1, n}), t = s.middle(name + "t", {m + width - 1, n}),
               y = s.memory(name, {m, n});
  const Along i = s.along(name + "i", m + width - 1), j = s.along(name + "j", n), k = s.along(name + "k", m),
              l = s.along(name + "l", n);
  s.builder.add(s.block(name + "t", {i, j},
                        s.store(t, load(x, {i.variable, j.variable}) * s.number(3), {i.variable, j.variable})));
  Expr sum = load(t, {k.variable, l.variable});
  for (int64_t w = 1; w < width; ++w) sum = sum + load(t, {k.variable + w, l.variable}) * s.number(w);
  s.builder.add(s.block(name, {k, l}, s.store(y, sum, {k.variable, l.variable})));
}

// A product of matrices, and what is made of it.
void product(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = s.extent(), k = s.extent();
  const Buffer a = s.source({m, k}), b = s.source({k, n}), c = s.middle(name, {m, n}), d = s.memory(name + "d", {m, n});
  const Along i = s.along(name + "i", m), j = s.along(name + "j", n), r = s.along(name + "r", k, IterType::reduce);
  const std::vector<Expr> at{i.variable, j.variable};
  const bool largest = s.pick(3) == 0;
  const Expr term = load(a, {i.variable, r.variable}) * load(b, {r.variable, j.variable});
  std::vector<Along> order{i, j, r};
  if (s.pick(2)) order = {i, r, j};
  s.builder.add(s.block(name, order, s.store(c, largest ? ir::max(load(c, at), term) : load(c, at) + term, at),
                        s.store(c, largest ? min_value(s.element()) : constant(s.element(), 0), at)));
  const Along o = s.along(name + "o", m), p = s.along(name + "p", n);
  const std::vector<Expr> here{o.variable, p.variable};
  s.builder.add(s.block(name + "d", {o, p}, s.store(d, ir::max(load(c, here), s.number(0)), here)));
}

// The largest of a row and where it is first: two results of one reduction, whose terms may come in any order.
void largest_and_where(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = s.extent();
  const Buffer x = s.source({m, n}), best = s.memory(name, {m}),
               where = s.builder.output(name + "w", {m}, DType::int_(32));
  const Along i = s.along(name + "i", m), k = s.along(name + "k", n, IterType::reduce);
  const std::vector<Expr> at{i.variable};
  const Var larger = var(name + "larger", DType::boolean());
  const Expr value = load(x, {i.variable, k.variable});
  const Expr place = cast(DType::int_(32), k.variable);
  const Expr first = logical_and(eq(value, load(best, at)), place < load(where, at));
  const Stmt body = make<LetStmt>(larger, logical_or(value > load(best, at), first),
                                  seq({s.store(where, make<Select>(larger, place, load(where, at)), at),
                                       s.store(best, make<Select>(larger, value, load(best, at)), at)}));
  s.builder.add(
      s.block(name, {i, k}, body, seq({s.store(where, counted(0), at), s.store(best, min_value(s.element()), at)})));
}

constexpr NamedNest nests_of_bodies[] = {{"branches_outside", branches_outside},
                                         {"branches_inside", branches_inside},
                                         {"counts", counts},
                                         {"gathers", gathers},
                                         {"scatters", scatters},
                                         {"lets", lets},
                                         {"local_row", local_row},
                                         {"blocks_inside", blocks_inside},
                                         {"scans", scans},
                                         {"windows", windows},
                                         {"product", product},
                                         {"largest_and_where", largest_and_where}};

}  // namespace

std::span<const NamedNest> nests_with_bodies() { return nests_of_bodies; }

}  // namespace lathe::schedule::testing
