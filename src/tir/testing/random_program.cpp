#include "tir/testing/random_program.h"

#include "ir/visit.h"
#include "tir/testing/programs.h"

namespace lathe::tir::testing {
namespace {

class Generator {
 public:
  Generator(uint64_t seed, const RandomOptions& options)
      : random_(seed * 0x9e3779b97f4a7c15ULL + 1), options_(options) {}

  Function program() {
    const DType dtypes[] = {DType::float32(), DType::float32(), DType::float_(64), DType::int32(),   DType::int64(),
                            DType::int_(8),   DType::uint(8),   DType::float_(16), DType::bfloat16()};
    dtype_ = dtypes[below(std::size(dtypes))];
    const int inputs = 1 + below(2), stages = 1 + below(3);
    shape_ = random_shape();
    for (int k = 0; k < inputs; ++k) {
      inputs_.push_back(buffer(fmt::format("X{}", k), extents(shape_), dtype_));
      available_.push_back(inputs_.back());
    }
    std::vector<Stmt> body;
    for (int k = 0; k < stages; ++k) {
      const bool last = k + 1 == stages;
      if (!last && options_.nesting && shape_.back() > 1 && below(3) == 0) {
        body.push_back(nested_pair());
        if (++k + 1 >= stages) break;
        continue;
      }
      body.push_back(stage());
    }
    // The last buffer that was written is the output.
    const Buffer output = available_.back();
    std::erase(intermediates_, output);
    std::vector<Buffer> params = inputs_;
    params.push_back(output);
    return prim_func(params, root_block(seq(std::move(body)), intermediates_));
  }

 private:
  int below(size_t n) { return static_cast<int>(random_() % n); }
  bool chance(int in) { return below(static_cast<size_t>(in)) == 0; }

  std::vector<int64_t> random_shape() {
    const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17};
    std::vector<int64_t> shape(static_cast<size_t>(1 + below(3)));
    for (int64_t& extent : shape) extent = chance(25) ? 0 : sizes[below(shape.size() > 2 ? 8 : std::size(sizes))];
    return shape;
  }
  static std::vector<Expr> extents(const std::vector<int64_t>& shape) {
    std::vector<Expr> result;
    for (const int64_t extent : shape) result.push_back(int64(extent));
    return result;
  }
  Buffer intermediate(const std::vector<int64_t>& shape) {
    const char* const scopes[] = {"global", "global", "local"};
    Buffer b = buffer(fmt::format("T{}", intermediates_.size()), extents(shape), dtype_, scopes[below(3)]);
    intermediates_.push_back(b);
    return b;
  }
  Buffer source() { return available_[static_cast<size_t>(below(available_.size()))]; }
  static int64_t extent_of(const Buffer& b, size_t d) { return *as_int(b->shape[d]); }

  // A value from `b` at a point of a space of any rank: indices are brought into range by remainders; zero where the
  // buffer is empty.
  Expr read(const Buffer& b, const std::vector<Expr>& point) {
    std::vector<Expr> indices;
    Expr inside = boolean(true);
    for (size_t d = 0; d < b->shape.size(); ++d) {
      const int64_t extent = extent_of(b, d);
      if (extent == 0) return constant(dtype_, 1);
      Expr index = d < point.size() ? point[d] : int64(0);
      const bool same = d < point.size() && d < space_.size() && space_[d] == extent;
      if (same && chance(4)) {
        // A neighbour, with zeros outside.
        const int64_t offset = below(5) - 2;
        index = offset < 0 ? index - (-offset) : index + offset;
        inside = logical_and(inside, logical_and(ge(index, int64(0)), lt(index, int64(extent))));
      } else if (same && chance(5)) {
        index = int64(extent - 1) - index;
      } else if (!same) {
        index = floormod(index, int64(extent));
      }
      indices.push_back(index);
    }
    const Expr value = load(b, indices);
    return is_int(inside, 1) ? value : if_then_else(inside, value, constant(dtype_, 0));
  }

  Expr value(const std::vector<Expr>& point, int depth) {
    if (depth == 0) return chance(4) ? constant(dtype_, below(5) + 1) : read(source(), point);
    const Expr a = value(point, depth - 1), b = value(point, depth - 1);
    switch (below(9)) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
        return max(a, b);
      case 4:
        return min(a, b);
      case 5:
        return select(lt(a, b), a, b + b);
      case 6:
        return cast(dtype_, cast(DType::int32(), a));
      case 7:
        return dtype_.is_floating() ? div(a, constant(dtype_, 4)) : a + a;
      default: {
        const Expr axis = point.empty() ? int64(0) : point[static_cast<size_t>(below(point.size()))];
        return select(lt(axis, int64(3)), a, b);
      }
    }
  }

  // Loops around a block over `vars` with `extents`: maybe split, fused, reordered, of several kinds. Fills the values
  // of the block's variables and its predicate.
  struct Nest {
    std::vector<Var> loops;
    std::vector<int64_t> extents;
    std::vector<char> reduce;
    std::vector<Expr> values;
    Expr predicate = boolean(true);
  };
  Nest nest(const std::vector<int64_t>& extents, size_t spatial) {
    Nest n;
    for (size_t d = 0; d < extents.size(); ++d) {
      const Var v = var(fmt::format("i{}", d));
      const int64_t factor = int64_t{1} << below(4);
      if (options_.splits && extents[d] > 1 && chance(2)) {
        const Var outer = var(fmt::format("i{}_0", d)), inner = var(fmt::format("i{}_1", d));
        n.loops.insert(n.loops.end(), {outer, inner});
        n.extents.insert(n.extents.end(), {(extents[d] + factor - 1) / factor, factor});
        n.reduce.insert(n.reduce.end(), 2, d >= spatial);
        n.values.push_back(outer * factor + inner);
        if (extents[d] % factor) n.predicate = logical_and(n.predicate, lt(n.values.back(), int64(extents[d])));
      } else {
        n.loops.push_back(v);
        n.extents.push_back(extents[d]);
        n.reduce.push_back(d >= spatial);
        n.values.push_back(v);
      }
    }
    if (options_.splits && n.loops.size() > 1 && chance(3)) {
      const size_t k = static_cast<size_t>(below(n.loops.size() - 1));
      if (n.reduce[k] == n.reduce[k + 1] && n.extents[k + 1] > 0) fuse(n, k);
    }
    if (options_.splits && n.loops.size() > 1 && chance(2)) {
      const size_t k = static_cast<size_t>(below(n.loops.size() - 1));
      std::swap(n.loops[k], n.loops[k + 1]);
      std::swap(n.extents[k], n.extents[k + 1]);
      std::swap(n.reduce[k], n.reduce[k + 1]);
    }
    return n;
  }
  static void fuse(Nest& n, size_t k) {
    const Var fused = var("f");
    const int64_t inner = n.extents[k + 1];
    const VarMap map{{n.loops[k], floordiv(fused, int64(inner))}, {n.loops[k + 1], floormod(fused, int64(inner))}};
    for (Expr& value : n.values) value = substitute(value, map);
    n.predicate = substitute(n.predicate, map);
    n.loops[k] = fused;
    n.extents[k] *= inner;
    n.loops.erase(n.loops.begin() + static_cast<ptrdiff_t>(k) + 1);
    n.extents.erase(n.extents.begin() + static_cast<ptrdiff_t>(k) + 1);
    n.reduce.erase(n.reduce.begin() + static_cast<ptrdiff_t>(k) + 1);
  }

  ForKind kind_for(const Nest& n, size_t k) {
    if (!options_.loop_kinds) return ForKind::serial;
    if (n.reduce[k]) return chance(4) ? ForKind::unrolled : ForKind::serial;
    const bool innermost = k + 1 == n.loops.size();
    if (innermost && chance(2)) return ForKind::vectorized;
    if (chance(4)) return ForKind::parallel;
    return chance(6) && n.extents[k] <= 8 ? ForKind::unrolled : ForKind::serial;
  }
  Stmt wrapped(const Nest& n, Stmt body, size_t from = 0) {
    for (size_t k = n.loops.size(); k-- > from;) body = loop(n.loops[k], int64(n.extents[k]), body, kind_for(n, k));
    return body;
  }

  Stmt stage() {
    space_ = chance(3) ? random_shape() : shape_;
    const Buffer target = intermediate(space_);
    Stmt result = chance(3) ? reduction(target) : elementwise(target);
    available_.push_back(target);
    return result;
  }

  Stmt elementwise(const Buffer& target) {
    const Nest n = nest(space_, space_.size());
    std::vector<IterVar> iters;
    std::vector<Expr> point;
    for (size_t d = 0; d < space_.size(); ++d) {
      const Var v = var(fmt::format("v{}", d));
      iters.push_back(iter(v, int64(space_[d])));
      point.push_back(v);
    }
    const Stmt store = make<BufferStore>(target, value(point, 1 + below(2)), point);
    return wrapped(n, block(target->name, iters, n.values, store, {}, n.predicate));
  }

  Stmt reduction(const Buffer& target) {
    const int64_t depth = 1 + below(6);
    std::vector<int64_t> all = space_;
    all.push_back(depth);
    std::vector<IterVar> iters;
    std::vector<Expr> point, spatial;
    for (size_t d = 0; d < all.size(); ++d) {
      const Var v = var(fmt::format("v{}", d));
      const bool is_reduce = d + 1 == all.size();
      iters.push_back(iter(v, int64(all[d]), is_reduce ? IterType::reduce : IterType::spatial));
      point.push_back(v);
      if (!is_reduce) spatial.push_back(v);
    }
    const bool sum = chance(2);
    const Expr start = sum ? constant(dtype_, 0) : min_value(dtype_);
    const Expr term = value(point, 1), so_far = load(target, spatial);
    const Stmt update = make<BufferStore>(target, sum ? so_far + term : max(so_far, term), spatial);
    const Stmt init = make<BufferStore>(target, start, spatial);
    const Nest n = nest(all, space_.size());
    if (!chance(3)) return wrapped(n, block(target->name, iters, n.values, update, init, n.predicate));
    // Decomposed: the init in a nest of its own.
    const Nest outer = nest(space_, space_.size());
    std::vector<IterVar> init_iters;
    std::vector<Expr> init_point;
    for (size_t d = 0; d < space_.size(); ++d) {
      const Var v = var(fmt::format("w{}", d));
      init_iters.push_back(iter(v, int64(space_[d])));
      init_point.push_back(v);
    }
    const Stmt set = make<BufferStore>(target, start, init_point);
    return seq({wrapped(outer, block(target->name + "_init", init_iters, outer.values, set, {}, outer.predicate)),
                wrapped(n, block(target->name + "_update", iters, n.values, update, {}, n.predicate))});
  }

  // A producer computed inside a loop over tiles of its consumer: the tile and its neighbours in the last dimension.
  Stmt nested_pair() {
    space_ = shape_;
    const Buffer producer = intermediate(space_), consumer = intermediate(space_);
    const int64_t tile = 2 + below(4), halo = below(3), extent = space_.back();
    const Var io = var("io");
    std::vector<Var> outer_loops;
    std::vector<IterVar> iters, consumer_iters;
    std::vector<Expr> values, point, consumer_values, consumer_point;
    for (size_t d = 0; d + 1 < space_.size(); ++d) {
      const Var l = var(fmt::format("o{}", d)), v = var(fmt::format("v{}", d)), w = var(fmt::format("w{}", d));
      outer_loops.push_back(l);
      iters.push_back(iter(v, int64(space_[d])));
      consumer_iters.push_back(iter(w, int64(space_[d])));
      values.push_back(l);
      consumer_values.push_back(l);
      point.push_back(v);
      consumer_point.push_back(w);
    }
    const Var inner = var("p"), v = var("vp"), j = var("c"), w = var("vc");
    const Expr at = io * tile + inner - halo, column = io * tile + j;
    iters.push_back(iter(v, int64(extent)));
    values.push_back(at);
    point.push_back(v);
    consumer_iters.push_back(iter(w, int64(extent)));
    consumer_values.push_back(column);
    consumer_point.push_back(w);
    const Stmt produce = make<BufferStore>(producer, value(point, 1), point);
    const Expr clipped = logical_and(ge(at, int64(0)), lt(at, int64(extent)));
    std::vector<Expr> left = consumer_point, right = consumer_point;
    left.back() = left.back() - halo;
    right.back() = right.back() + halo;
    const Expr zero = constant(dtype_, 0);
    const Expr sum = if_then_else(ge(left.back(), int64(0)), load(producer, left), zero) +
                     if_then_else(lt(right.back(), int64(extent)), load(producer, right), zero) +
                     load(producer, consumer_point);
    const Stmt consume = make<BufferStore>(consumer, sum, consumer_point);
    const auto kind = [&](bool innermost) {
      return !options_.loop_kinds     ? ForKind::serial
             : innermost && chance(2) ? ForKind::vectorized
             : chance(4)              ? ForKind::unrolled
                                      : ForKind::serial;
    };
    const Stmt first =
        loop(inner, int64(tile + 2 * halo), block(producer->name, iters, values, produce, {}, clipped), kind(true));
    const Stmt second = loop(
        j, int64(tile), block(consumer->name, consumer_iters, consumer_values, consume, {}, lt(column, int64(extent))),
        kind(true));
    Stmt body = loop(io, int64((extent + tile - 1) / tile), seq({first, second}),
                     options_.loop_kinds && chance(3) && halo == 0 ? ForKind::parallel : kind(false));
    for (size_t d = outer_loops.size(); d-- > 0;) body = loop(outer_loops[d], int64(space_[d]), body, ForKind::serial);
    // The producer holds whole tiles only where they were needed: later stages read the consumer.
    available_.push_back(consumer);
    return body;
  }

  std::mt19937_64 random_;
  RandomOptions options_;
  DType dtype_;
  std::vector<int64_t> shape_, space_;
  std::vector<Buffer> inputs_, intermediates_, available_;
};

}  // namespace

Function random_program(uint64_t seed, const RandomOptions& options) { return Generator(seed, options).program(); }

}  // namespace lathe::tir::testing
