#include "schedule/testing/nest_source.h"

#include "schedule/analysis/access.h"

namespace lathe::schedule::testing {

NestSource::NestSource(std::mt19937& random) : random_(random) {
  // Mostly of the type that the intrinsics of the walk are for.
  static const DType others[] = {DType::int_(64), DType::float32(),  DType::float32(), DType::int_(8),
                                 DType::uint(8),  DType::float_(16), DType::float_(64)};
  const size_t type = pick(14);
  element_ = type < std::size(others) ? others[type] : DType::int_(32);
}

Expr NestSource::extent() {
  if (pick(6) != 0) return int64(small());
  const size_t which = pick(4) == 0 ? 1 : 0;
  while (symbols.size() <= which) symbols.push_back(ir::size_var(symbols.empty() ? "n" : "m"));
  return symbols[which];
}

Expr NestSource::number(int64_t value) const {
  return is_float() ? constant(element_, static_cast<double>(value) + 0.1) : constant(element_, value);
}

NestSource::Along NestSource::along(const std::string& name, const Expr& extent, IterType type) {
  Along axis{extent, type, var("v" + name), {}, {}, {}};
  const auto constant_extent = as_int(extent);
  const size_t form = pick(8);
  if (form < 2 && (constant_extent || form == 0)) {
    const int64_t tile = 1 + static_cast<int64_t>(pick(3));
    const Var outer = var(name + "0"), inner = var(name + "1");
    const Expr tiles =
        constant_extent ? int64((*constant_extent + tile - 1) / tile) : floordiv(extent + (tile - 1), int64(tile));
    axis.loops = {{outer, int64(0), tiles}, {inner, int64(0), int64(tile)}};
    axis.value = outer * tile + inner;
    if (tile > 1 && (!constant_extent || *constant_extent % tile != 0)) axis.inside = axis.value < extent;
  } else if (form == 2) {
    // Not from zero.
    const Var v = var(name);
    const int64_t from = 1 + static_cast<int64_t>(pick(3));
    axis.loops = {{v, int64(from), extent}};
    axis.value = v - from;
  } else {
    axis.loops = {{var(name), int64(0), extent}};
    axis.value = axis.loops[0].v;
  }
  return axis;
}

NestSource::Along NestSource::again(const Along& axis, const std::string& name) {
  Along other = axis;
  other.variable = var("v" + name);
  return other;
}

Stmt NestSource::block(const std::string& name, const std::vector<Along>& axes, Stmt body, Stmt init, size_t open,
                       std::vector<Buffer> own, std::vector<MatchBufferRegion> views) {
  std::vector<IterVar> variables;
  std::vector<Expr> values;
  Expr inside = boolean(true);
  for (const Along& axis : axes) {
    variables.push_back(make<IterVarNode>(Range{int64(0), axis.extent}, axis.variable, axis.type));
    values.push_back(axis.value);
    if (axis.inside) inside = is_int(inside, 1) ? axis.inside : logical_and(inside, axis.inside);
  }
  const Ref<Block> made = make<Block>(variables, std::move(own), std::move(views), std::vector<BufferRegion>{},
                                      std::vector<BufferRegion>{}, name, std::move(init), std::move(body));
  const std::vector<Along> rest(axes.begin() + static_cast<ptrdiff_t>(open), axes.end());
  return around(rest, make<BlockRealize>(values, inside, with_regions(made)));
}

Stmt NestSource::around(const std::vector<Along>& axes, Stmt s) {
  for (size_t a = axes.size(); a-- > 0;)
    for (size_t l = axes[a].loops.size(); l-- > 0;) {
      const Along::Loop& loop = axes[a].loops[l];
      const ForKind kind = pick(16) == 0 && as_int(loop.extent) ? ForKind::unrolled : ForKind::serial;
      s = make<For>(loop.v, loop.min, loop.extent, kind, s);
    }
  return s;
}

Stmt NestSource::store(const Buffer& buffer, Expr value, std::vector<Expr> at) {
  return make<BufferStore>(buffer, std::move(value), std::move(at), Expr());
}

Buffer NestSource::memory(const std::string& name, std::vector<Expr> shape) {
  return builder.output(name, std::move(shape), element_);
}

Buffer NestSource::source(std::vector<Expr> shape) {
  return builder.input(fmt::format("X{}", sources_++), std::move(shape), element_);
}

Buffer NestSource::numbers(std::vector<Expr> shape) {
  return builder.input(fmt::format("X{}", sources_++), std::move(shape), DType::int_(32));
}

Buffer NestSource::middle(const std::string& name, std::vector<Expr> shape) {
  return pick(8) == 0 ? memory(name, std::move(shape)) : builder.inner(name, std::move(shape), element_);
}

}  // namespace lathe::schedule::testing
