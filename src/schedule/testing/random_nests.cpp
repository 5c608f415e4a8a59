#include "schedule/testing/random_nests.h"

#include "schedule/analysis/access.h"

namespace lathe::schedule::testing {

namespace {

const DType element = DType::int_(32);

Expr number(int64_t value) { return constant(element, value); }

class NestSource {
 public:
  explicit NestSource(std::mt19937& random) : random_(random) {}

  RandomNests program() {
    const size_t count = 1 + pick(3);
    for (size_t i = 0; i < count; ++i) nest(i);
    RandomNests result{builder_.build(), {{}}};
    if (symbol_) {
      result.symbols.clear();
      for (const int64_t n : {1, 3, 6}) result.symbols.push_back({{symbol_->name, n}});
    }
    return result;
  }

 private:
  // A block's axis: the loop (or two, with a predicate where they run over the end) and the block's variable.
  struct Along {
    Expr extent;
    IterType type = IterType::spatial;
    Var variable;
    std::vector<std::pair<Var, Expr>> loops;
    Expr value;
    Expr inside;  // null: always
  };

  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  int64_t small() {
    static constexpr int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7};
    return sizes[pick(7)];
  }
  // Sometimes the one symbol of the program.
  Expr extent() {
    if (pick(6) != 0) return int64(small());
    if (!symbol_) symbol_ = ir::size_var("n");
    return symbol_;
  }

  Along along(const std::string& name, const Expr& extent, IterType type = IterType::spatial) {
    Along axis{extent, type, var("v" + name), {}, {}, {}};
    const auto constant_extent = as_int(extent);
    if (constant_extent && pick(4) == 0) {
      const int64_t tile = 1 + static_cast<int64_t>(pick(3));
      const Var outer = var(name + "0"), inner = var(name + "1");
      axis.loops = {{outer, int64((*constant_extent + tile - 1) / tile)}, {inner, int64(tile)}};
      axis.value = outer * tile + inner;
      if (*constant_extent % tile != 0) axis.inside = axis.value < extent;
    } else {
      axis.loops = {{var(name), extent}};
      axis.value = axis.loops[0].first;
    }
    return axis;
  }

  // The block run over its axes; the first `open` axes' loops are left to the caller.
  Stmt block(const std::string& name, const std::vector<Along>& axes, Stmt body, Stmt init = {}, size_t open = 0) {
    std::vector<IterVar> variables;
    std::vector<Expr> values;
    Expr inside = boolean(true);
    for (const Along& axis : axes) {
      variables.push_back(make<IterVarNode>(Range{int64(0), axis.extent}, axis.variable, axis.type));
      values.push_back(axis.value);
      if (axis.inside) inside = logical_and(inside, axis.inside);
    }
    Stmt s =
        make<BlockRealize>(values, inside,
                           with_regions(make<Block>(variables, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{},
                                                    std::vector<BufferRegion>{}, std::vector<BufferRegion>{}, name,
                                                    std::move(init), std::move(body))));
    std::vector<Along> own(axes.begin() + static_cast<ptrdiff_t>(open), axes.end());
    return around(own, s);
  }

  static Stmt around(const std::vector<Along>& axes, Stmt s) {
    for (size_t a = axes.size(); a-- > 0;)
      for (size_t l = axes[a].loops.size(); l-- > 0;)
        s = make<For>(axes[a].loops[l].first, int64(0), axes[a].loops[l].second, ForKind::serial, s);
    return s;
  }

  Stmt store(const Buffer& buffer, Expr value, std::vector<Expr> at) {
    return make<BufferStore>(buffer, std::move(value), std::move(at), Expr());
  }

  // A buffer of the program's interface: whatever is read before it is written then has values.
  Buffer memory(const std::string& name, std::vector<Expr> shape) {
    return builder_.output(name, std::move(shape), element);
  }
  Buffer source(std::vector<Expr> shape) {
    return builder_.input(fmt::format("X{}", sources_++), std::move(shape), element);
  }

  void nest(size_t number_of_nest) {
    const std::string name = fmt::format("N{}", number_of_nest);
    switch (pick(9)) {
      case 0:
        return in_place(name);
      case 1:
        return stencil(name);
      case 2:
        return pair_of_blocks(name);
      case 3:
        return strided(name);
      case 4:
        return reduction(name);
      case 5:
        return folded_reduction(name);
      case 6:
        return shifted_pair(name);
      case 7:
        return triangle(name);
      default:
        return chain(name);
    }
  }

  // Y[i, j] = 2 * Y[i + a, j + b] + X[i, j], for small a and b.
  void in_place(const std::string& name) {
    const Expr m = int64(small()), n = int64(small());
    const int64_t a = static_cast<int64_t>(pick(3)), b = static_cast<int64_t>(pick(3));
    const int64_t shift_a = a == 0 ? 0 : 1, shift_b = b == 0 ? 0 : 1;
    const Buffer y = memory(name, {m + 2, n + 2}), x = source({m, n});
    const Along i = along(name + "i", m), j = along(name + "j", n);
    const Expr vi = i.variable, vj = j.variable;
    const Expr other = load(y, {vi + a, vj + b});
    builder_.add(block(name, {i, j}, store(y, other * number(2) + load(x, {vi, vj}), {vi + shift_a, vj + shift_b})));
  }

  // U[t + 1, i] from U[t, i - 1 .. i + 1]: time carries everything.
  void stencil(const std::string& name) {
    const Expr steps = int64(1 + small() % 4), n = extent();
    const bool rolls = pick(2);  // two rows in turn
    const Buffer u = memory(name, {rolls ? int64(2) : steps + 1, n + 2});
    const Along t = along(name + "t", steps), i = along(name + "i", n);
    const Expr vt = t.variable, vi = i.variable;
    const Expr from = rolls ? floormod(vt, int64(2)) : vt, to = rolls ? floormod(vt + 1, int64(2)) : vt + 1;
    const Expr sum = load(u, {from, vi}) + load(u, {from, vi + 1}) + load(u, {from, vi + 2});
    builder_.add(block(name, {t, i}, store(u, sum, {to, vi + 1})));
  }

  // In each row, a value and what is made of it.
  void pair_of_blocks(const std::string& name) {
    const Expr m = extent(), n = extent();
    const Buffer x = source({m, n}), y = memory(name, {m, n});
    const bool row_only = pick(2);
    const Buffer t = builder_.inner(name + "t", row_only ? std::vector<Expr>{n} : std::vector<Expr>{m, n}, element);
    const auto at = [&](const Expr& i, const Expr& j) {
      return row_only ? std::vector<Expr>{j} : std::vector<Expr>{i, j};
    };
    const Along i = along(name + "i", m);
    Along first_i = i, second_i = i;
    first_i.variable = var("v" + name + "a");
    second_i.variable = var("v" + name + "b");
    const Along j = along(name + "j", n), k = along(name + "k", n);
    const Stmt first =
        block(name + "a", {first_i, j},
              store(t, load(x, {first_i.variable, j.variable}) * number(3), at(first_i.variable, j.variable)), {}, 1);
    const bool mirrored = pick(3) == 0;
    const Expr from = mirrored ? n - 1 - k.variable : Expr(k.variable);
    const Stmt second =
        block(name + "b", {second_i, k},
              store(y, load(t, at(second_i.variable, from)) + number(1), {second_i.variable, k.variable}), {}, 1);
    builder_.add(around({i}, seq({first, second})));
  }

  // Y[a * i + b * j] = X[i, j], with or without elements that several instances write.
  void strided(const std::string& name) {
    const int64_t m = small(), n = small();
    const int64_t a = 1 + static_cast<int64_t>(pick(4)), b = 1 + static_cast<int64_t>(pick(4));
    const Buffer y = memory(name, {int64(a * m + b * n)}), x = source({int64(m), int64(n)});
    const Along i = along(name + "i", int64(m)), j = along(name + "j", int64(n));
    builder_.add(block(name, {i, j}, store(y, load(x, {i.variable, j.variable}), {i.variable * a + j.variable * b})));
  }

  // C[i] = sum over k and l of X[i + k, l]
  void reduction(const std::string& name) {
    const Expr m = extent(), n = int64(small()), k = int64(1 + small() % 3);
    const Buffer x = source({m + k, n}), c = pick(2) ? memory(name, {m}) : builder_.inner(name, {m}, element);
    const Along i = along(name + "i", m), l = along(name + "l", n, IterType::reduce),
                w = along(name + "w", k, IterType::reduce);
    const std::vector<Expr> at{i.variable};
    const Expr value = load(x, {i.variable + w.variable, l.variable});
    builder_.add(block(name, {i, l, w}, store(c, load(c, at) + value, at), store(c, number(0), at)));
    if (!builder_.is_parameter(c)) {
      const Buffer y = memory(name + "y", {m});
      const Along o = along(name + "o", m);
      builder_.add(block(name + "y", {o}, store(y, load(c, {o.variable}) * number(2), {o.variable})));
    }
  }

  // C[i // 2] += X[i, k]: two spatial instances share a result, the later's init wins.
  void folded_reduction(const std::string& name) {
    const Expr m = int64(small()), n = int64(small());
    const Buffer x = source({m, n}), c = memory(name, {floordiv(m, int64(2)) + 1});
    const Along i = along(name + "i", m), k = along(name + "k", n, IterType::reduce);
    const std::vector<Expr> at{floordiv(Expr(i.variable), int64(2))};
    builder_.add(
        block(name, {i, k}, store(c, load(c, at) + load(x, {i.variable, k.variable}), at), store(c, number(1), at)));
  }

  // T, and then Y from T shifted by -1, 0 or 1, in nests of the same extents.
  void shifted_pair(const std::string& name) {
    const Expr m = extent(), n = int64(small());
    const int64_t shift = static_cast<int64_t>(pick(3));
    const Buffer x = source({m, n}), t = memory(name + "t", {m + 2, n}), y = memory(name, {m, n});
    const Along i = along(name + "i", m), j = along(name + "j", n), k = along(name + "k", m), l = along(name + "l", n);
    builder_.add(block(name + "t", {i, j},
                       store(t, load(x, {i.variable, j.variable}) + number(5), {i.variable + 1, j.variable})));
    builder_.add(
        block(name, {k, l}, store(y, load(t, {k.variable + shift, l.variable}) * number(2), {k.variable, l.variable})));
  }

  // Only where j is at most i; what it reads lies in the part that is never written.
  void triangle(const std::string& name) {
    const Expr n = int64(small());
    const Buffer y = memory(name, {n, n});
    Along i = along(name + "i", n), j = along(name + "j", n);
    const Expr below = pick(2) ? i.value >= j.value : i.value > j.value;
    j.inside = j.inside ? logical_and(j.inside, below) : below;
    builder_.add(
        block(name, {i, j}, store(y, load(y, {j.variable, i.variable}) + number(1), {i.variable, j.variable})));
  }

  // Elementwise blocks, one after the other.
  void chain(const std::string& name) {
    const Expr m = extent(), n = extent();
    Buffer from = source({m, n});
    const size_t length = 2 + pick(2);
    for (size_t s = 0; s < length; ++s) {
      const std::string step = fmt::format("{}{}", name, "abcd"[s]);
      const Buffer to = s + 1 == length ? memory(step, {m, n}) : builder_.inner(step, {m, n}, element);
      const Along i = along(step + "i", m), j = along(step + "j", n);
      builder_.add(
          block(step, {i, j}, store(to, load(from, {i.variable, j.variable}) + number(1), {i.variable, j.variable})));
      from = to;
    }
  }

  std::mt19937& random_;
  Builder builder_;
  Var symbol_;
  size_t sources_ = 0;
};

}  // namespace

RandomNests random_nests(std::mt19937& random) { return NestSource(random).program(); }

}  // namespace lathe::schedule::testing
