#include "schedule/testing/random_nests.h"

#include "schedule/testing/nest_source.h"

namespace lathe::schedule::testing {

namespace {

using Along = NestSource::Along;

// Y[i, j] = 2 * Y[i + a, j + b] + X[i, j], for small a and b.
void in_place(NestSource& s, const std::string& name) {
  const Expr m = int64(s.small()), n = int64(s.small());
  const int64_t a = static_cast<int64_t>(s.pick(3)), b = static_cast<int64_t>(s.pick(3));
  const int64_t shift_a = a == 0 ? 0 : 1, shift_b = b == 0 ? 0 : 1;
  const Buffer y = s.memory(name, {m + 2, n + 2}), x = s.source({m, n});
  const Along i = s.along(name + "i", m), j = s.along(name + "j", n);
  const Expr vi = i.variable, vj = j.variable;
  const Expr other = load(y, {vi + a, vj + b});
  s.builder.add(
      s.block(name, {i, j}, s.store(y, other * s.number(2) + load(x, {vi, vj}), {vi + shift_a, vj + shift_b})));
}

// U[t + 1, i] from U[t, i - 1 .. i + 1]: time carries everything.
void stencil(NestSource& s, const std::string& name) {
  const Expr steps = int64(1 + s.small() % 4), n = s.extent();
  const bool rolls = s.pick(2);  // two rows in turn
  const Buffer u = s.memory(name, {rolls ? int64(2) : steps + 1, n + 2});
  const Along t = s.along(name + "t", steps), i = s.along(name + "i", n);
  const Expr vt = t.variable, vi = i.variable;
  const Expr from = rolls ? floormod(vt, int64(2)) : vt, to = rolls ? floormod(vt + 1, int64(2)) : vt + 1;
  const Expr sum = load(u, {from, vi}) + load(u, {from, vi + 1}) + load(u, {from, vi + 2});
  s.builder.add(s.block(name, {t, i}, s.store(u, sum, {to, vi + 1})));
}

// In each row, a value and what is made of it.
void pair_of_blocks(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = s.extent();
  const Buffer x = s.source({m, n}), y = s.memory(name, {m, n});
  const bool row_only = s.pick(2);
  const Buffer t = s.builder.inner(name + "t", row_only ? std::vector<Expr>{n} : std::vector<Expr>{m, n}, s.element());
  const auto at = [&](const Expr& i, const Expr& j) {
    return row_only ? std::vector<Expr>{j} : std::vector<Expr>{i, j};
  };
  const Along i = s.along(name + "i", m);
  Along first_i = i, second_i = i;
  first_i.variable = var("v" + name + "a");
  second_i.variable = var("v" + name + "b");
  const Along j = s.along(name + "j", n), k = s.along(name + "k", n);
  const Stmt first = s.block(
      name + "a", {first_i, j},
      s.store(t, load(x, {first_i.variable, j.variable}) * s.number(3), at(first_i.variable, j.variable)), {}, 1);
  const bool mirrored = s.pick(3) == 0;
  const Expr from = mirrored ? n - 1 - k.variable : Expr(k.variable);
  const Stmt second =
      s.block(name + "b", {second_i, k},
              s.store(y, load(t, at(second_i.variable, from)) + s.number(1), {second_i.variable, k.variable}), {}, 1);
  s.builder.add(s.around({i}, seq({first, second})));
}

// Y[a * i + b * j] = X[i, j], with or without elements that several instances write.
void strided(NestSource& s, const std::string& name) {
  const int64_t m = s.small(), n = s.small();
  const int64_t a = 1 + static_cast<int64_t>(s.pick(4)), b = 1 + static_cast<int64_t>(s.pick(4));
  const Buffer y = s.memory(name, {int64(a * m + b * n)}), x = s.source({int64(m), int64(n)});
  const Along i = s.along(name + "i", int64(m)), j = s.along(name + "j", int64(n));
  s.builder.add(
      s.block(name, {i, j}, s.store(y, load(x, {i.variable, j.variable}), {i.variable * a + j.variable * b})));
}

// C[i] = sum over k and l of X[i + k, l]
void reduction(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = s.extent(), k = int64(1 + s.small() % 3);
  const Buffer x = s.source({m + k, n}), c = s.pick(2) ? s.memory(name, {m}) : s.builder.inner(name, {m}, s.element());
  const Along i = s.along(name + "i", m), l = s.along(name + "l", n, IterType::reduce),
              w = s.along(name + "w", k, IterType::reduce);
  const std::vector<Expr> at{i.variable};
  const Expr value = load(x, {i.variable + w.variable, l.variable});
  s.builder.add(s.block(name, {i, l, w}, s.store(c, load(c, at) + value, at), s.store(c, s.number(0), at)));
  if (!s.builder.is_parameter(c)) {
    const Buffer y = s.memory(name + "y", {m});
    const Along o = s.along(name + "o", m);
    s.builder.add(s.block(name + "y", {o}, s.store(y, load(c, {o.variable}) * s.number(2), {o.variable})));
  }
}

// A sum, or a largest element, and what is done with it: the same once more, and perhaps something else.
void epilogue(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = s.extent(), k = int64(1 + s.small() % 4);
  const Buffer x = s.source({m, k}), more = s.source({m, n}), c = s.builder.inner(name + "c", {m, n}, s.element()),
               y = s.memory(name, {m, n});
  const bool sums = s.pick(3), turned = s.pick(4) == 0;
  const auto combine = [&](const Expr& a, const Expr& b) { return sums ? a + b : max(a, b); };
  const Along i = s.along(name + "i", m), j = s.along(name + "j", n), l = s.along(name + "l", k, IterType::reduce);
  const std::vector<Expr> at{i.variable, j.variable};
  s.builder.add(s.block(name + "c", {i, j, l},
                        s.store(c, combine(load(c, at), load(x, {i.variable, l.variable}) + load(more, at)), at),
                        s.store(c, s.number(static_cast<int64_t>(s.pick(2))), at)));
  const Along o = s.along(name + "o", m), p = s.along(name + "p", n);
  const Expr row = turned ? m - 1 - o.variable : Expr(o.variable);
  const Buffer added = s.pick(4) ? more : y;
  Expr value = combine(load(c, {row, p.variable}), load(added, {s.pick(2) ? row : Expr(o.variable), p.variable}));
  if (s.pick(2)) value = s.pick(2) ? value * s.number(2) : combine(value, s.number(3));
  if (s.pick(4) == 0) value = value + load(c, {row, p.variable});
  s.builder.add(s.block(name, {o, p}, s.store(y, value, {o.variable, p.variable})));
}

// C[i // 2] += X[i, k]: two spatial instances share a result, the later's init wins.
void folded_reduction(NestSource& s, const std::string& name) {
  const Expr m = int64(s.small()), n = int64(s.small());
  const Buffer x = s.source({m, n}), c = s.memory(name, {floordiv(m, int64(2)) + 1});
  const Along i = s.along(name + "i", m), k = s.along(name + "k", n, IterType::reduce);
  const std::vector<Expr> at{floordiv(Expr(i.variable), int64(2))};
  s.builder.add(s.block(name, {i, k}, s.store(c, load(c, at) + load(x, {i.variable, k.variable}), at),
                        s.store(c, s.number(1), at)));
}

// T, and then Y from T shifted by -1, 0 or 1, in nests of the same extents.
void shifted_pair(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = s.extent();
  const int64_t shift = static_cast<int64_t>(s.pick(3));
  const Buffer x = s.source({m, n}), t = s.memory(name + "t", {m + 2, n}), y = s.memory(name, {m, n});
  const Along i = s.along(name + "i", m), j = s.along(name + "j", n), k = s.along(name + "k", m),
              l = s.along(name + "l", n);
  s.builder.add(s.block(name + "t", {i, j},
                        s.store(t, load(x, {i.variable, j.variable}) + s.number(5), {i.variable + 1, j.variable})));
  s.builder.add(s.block(name, {k, l},
                        s.store(y, load(t, {k.variable + shift, l.variable}) * s.number(2), {k.variable, l.variable})));
}

// Only where j is at most i; what it reads lies in the part that is never written.
void triangle(NestSource& s, const std::string& name) {
  const Expr n = int64(s.small());
  const Buffer y = s.memory(name, {n, n});
  Along i = s.along(name + "i", n), j = s.along(name + "j", n);
  const Expr below = s.pick(2) ? i.value >= j.value : i.value > j.value;
  j.inside = j.inside ? logical_and(j.inside, below) : below;
  s.builder.add(
      s.block(name, {i, j}, s.store(y, load(y, {j.variable, i.variable}) + s.number(1), {i.variable, j.variable})));
}

// Elementwise blocks, one after the other.
void chain(NestSource& s, const std::string& name) {
  const Expr m = s.extent(), n = s.extent();
  Buffer from = s.source({m, n});
  const size_t length = 2 + s.pick(2);
  for (size_t each = 0; each < length; ++each) {
    const std::string step = fmt::format("{}{}", name, "abcd"[each]);
    const Buffer to = each + 1 == length ? s.memory(step, {m, n}) : s.builder.inner(step, {m, n}, s.element());
    const Along i = s.along(step + "i", m), j = s.along(step + "j", n);
    s.builder.add(s.block(step, {i, j},
                          s.store(to, load(from, {i.variable, j.variable}) + s.number(1), {i.variable, j.variable})));
    from = to;
  }
}

constexpr NamedNest nests_of_loops[] = {
    {"in_place", in_place},         {"stencil", stencil},     {"pair_of_blocks", pair_of_blocks},
    {"strided", strided},           {"reduction", reduction}, {"folded_reduction", folded_reduction},
    {"shifted_pair", shifted_pair}, {"triangle", triangle},   {"chain", chain},
    {"epilogue", epilogue}};

}  // namespace

std::span<const NamedNest> dependent_nests() { return nests_of_loops; }

RandomNests random_nests(std::mt19937& random, std::string_view wished) {
  NestSource source(random);
  std::vector<NamedNest> all(std::begin(nests_of_loops), std::end(nests_of_loops));
  for (const auto& others : {nests_with_bodies(), nests_with_views()})
    all.insert(all.end(), others.begin(), others.end());
  const size_t count = 1 + source.pick(3);
  for (size_t i = 0; i < count; ++i) {
    const auto it = std::find_if(all.begin(), all.end(), [&](const NamedNest& nest) { return nest.name == wished; });
    const NamedNest& nest = i == 0 && it != all.end() ? *it : all[source.pick(all.size())];
    nest.make(source, fmt::format("N{}", i));
  }
  RandomNests result{source.builder.build(), {{}}, source.element()};
  if (!source.symbols.empty()) {
    result.symbols.clear();
    for (const auto& [n, m] : {std::pair{1, 4}, std::pair{3, 2}, std::pair{6, 5}}) {
      std::map<std::string, int64_t> values;
      for (const Var& symbol : source.symbols) values[symbol->name] = symbol->name == "n" ? n : m;
      result.symbols.push_back(std::move(values));
    }
  }
  return result;
}

}  // namespace lathe::schedule::testing
