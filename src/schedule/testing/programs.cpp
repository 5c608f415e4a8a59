#include "schedule/testing/programs.h"

#include "schedule/analysis/access.h"
#include "script/parse.h"
#include "tir/analysis/zero_border.h"
#include "tir/rewrite.h"
#include "tir/script/dialect.h"

namespace lathe::schedule::testing {

Expr f32(double value) { return constant(DType::float32(), value); }

Function from_text(const std::string& text) {
  const script::Dialect* const dialects[] = {&tir::script_dialect()};
  return cast<PrimFunc>(NodeRef(script::parse_function({"<test>", text}, dialects).value_or_throw()));
}

Buffer Builder::input(std::string name, std::vector<Expr> shape, DType dtype) {
  parameters_.push_back(buffer(std::move(name), std::move(shape), dtype));
  return parameters_.back();
}

Buffer Builder::output(std::string name, std::vector<Expr> shape, DType dtype) {
  return input(std::move(name), std::move(shape), dtype);
}

Buffer Builder::inner(std::string name, std::vector<Expr> shape, DType dtype) {
  return inner(buffer(std::move(name), std::move(shape), dtype));
}

Buffer Builder::inner(Buffer buffer) {
  inner_.push_back(std::move(buffer));
  return inner_.back();
}

namespace {

Stmt nest(const std::string& name, const std::vector<Axis>& axes, const std::vector<Var>& vars, Stmt body, Stmt init) {
  std::vector<IterVar> iters;
  std::vector<Expr> values;
  std::vector<Var> loops;
  for (size_t i = 0; i < axes.size(); ++i) {
    iters.push_back(make<IterVarNode>(Range{int64(0), axes[i].extent}, vars[i], axes[i].type));
    loops.push_back(var(axes[i].name));
    values.push_back(loops.back());
  }
  Ref<Block> block =
      make<Block>(iters, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{},
                  std::vector<BufferRegion>{}, name, std::move(init), std::move(body));
  Stmt s = make<BlockRealize>(values, boolean(true), with_regions(block));
  for (size_t i = axes.size(); i-- > 0;) s = make<For>(loops[i], int64(0), axes[i].extent, ForKind::serial, s);
  return s;
}

}  // namespace

void Builder::compute(const std::string& name, const Buffer& to, const Body& body) {
  std::vector<Axis> axes;
  std::vector<Var> vars;
  std::vector<Expr> indices;
  for (size_t d = 0; d < to->shape.size(); ++d) {
    axes.push_back({fmt::format("{}{}", "ijklmn"[d % 6], d / 6 ? std::to_string(d / 6) : ""), to->shape[d]});
    vars.push_back(var("v" + axes.back().name));
    indices.push_back(vars.back());
  }
  add(nest(name, axes, vars, make<BufferStore>(to, body(indices), indices, Expr()), Stmt()));
}

void Builder::reduce(const std::string& name, const Buffer& to, const std::vector<Axis>& reduce, const Body& body,
                     const Combine& combine, Expr identity) {
  std::vector<Axis> axes;
  std::vector<Var> vars;
  std::vector<Expr> indices, all;
  for (size_t d = 0; d < to->shape.size(); ++d) axes.push_back({fmt::format("s{}", d), to->shape[d]});
  for (const Axis& axis : reduce) axes.push_back({axis.name, axis.extent, IterType::reduce});
  for (size_t d = 0; d < axes.size(); ++d) {
    vars.push_back(var("v" + axes[d].name));
    all.push_back(vars.back());
    if (d < to->shape.size()) indices.push_back(vars.back());
  }
  add(nest(name, axes, vars, make<BufferStore>(to, combine(load(to, indices), body(all)), indices, Expr()),
           make<BufferStore>(to, std::move(identity), indices, Expr())));
}

void Builder::sum(const std::string& name, const Buffer& to, const std::vector<Axis>& axes, const Body& body) {
  reduce(name, to, axes, body, [](Expr a, Expr b) { return a + b; }, constant(to->dtype, 0));
}

void Builder::max(const std::string& name, const Buffer& to, const std::vector<Axis>& axes, const Body& body) {
  reduce(name, to, axes, body, [](Expr a, Expr b) { return ir::max(a, b); }, min_value(to->dtype));
}

void Builder::annotate(const std::string& block, const std::string& key, const ir::Value& value) {
  class Annotation : public tir::TirRewriter {
   public:
    Annotation(const std::string& name, const std::string& key, const ir::Value& value)
        : name_(name), key_(key), value_(value) {}

   protected:
    Stmt visit_stmt(Stmt s) override {
      s = children(std::move(s));
      const auto* block = s.as<Block>();
      if (!block || block->name != name_) return s;
      return with(*block, [&](Block& copy) { copy.annotations.set(key_, value_); });
    }

   private:
    const std::string &name_, &key_;
    const ir::Value& value_;
  };
  for (Stmt& statement : statements_) statement = Annotation(block, key, value)(statement);
}

Function Builder::build(std::vector<Var> scalars) const {
  return prim_func(parameters_, root_block(seq(statements_), inner_), std::move(scalars));
}

Function matmul(Expr m, Expr n, Expr k) {
  Builder b;
  const Buffer x = b.input("A", {m, k}), w = b.input("B", {k, n}), c = b.output("C", {m, n});
  b.sum("matmul", c, {{"k", k}},
        [&](const std::vector<Expr>& i) { return load(x, {i[0], i[2]}) * load(w, {i[2], i[1]}); });
  return b.build();
}

Function dense(Expr m, Expr n, Expr k) {
  Builder b;
  const Buffer x = b.input("A", {m, k}), w = b.input("B", {k, n}), bias = b.input("bias", {n});
  const Buffer d = b.output("D", {m, n}), c = b.inner("C", {m, n}), e = b.inner("E", {m, n});
  b.sum("matmul", c, {{"k", k}},
        [&](const std::vector<Expr>& i) { return load(x, {i[0], i[2]}) * load(w, {i[2], i[1]}); });
  b.compute("bias_add", e, [&](const std::vector<Expr>& i) { return load(c, i) + load(bias, {i[1]}); });
  b.compute("relu", d, [&](const std::vector<Expr>& i) { return max(load(e, i), f32(0)); });
  return b.build();
}

Function softmax(Expr rows, Expr columns) {
  Builder b;
  const Buffer x = b.input("X", {rows, columns}), y = b.output("Y", {rows, columns});
  const Buffer most = b.inner("M", {rows}), e = b.inner("E", {rows, columns}), total = b.inner("S", {rows});
  b.max("max", most, {{"k", columns}}, [&](const std::vector<Expr>& i) { return load(x, i); });
  b.compute("exp", e,
            [&](const std::vector<Expr>& i) { return call(intrinsic::exp, load(x, i) - load(most, {i[0]})); });
  b.sum("sum", total, {{"k", columns}}, [&](const std::vector<Expr>& i) { return load(e, i); });
  b.compute("norm", y, [&](const std::vector<Expr>& i) { return div(load(e, i), load(total, {i[0]})); });
  return b.build();
}

Function conv2d(const ConvShape& s) {
  Builder b;
  const int64_t height = (s.height + 2 * s.padding - s.kernel) / s.stride + 1;
  const int64_t width = (s.width + 2 * s.padding - s.kernel) / s.stride + 1;
  const int64_t depth = s.depthwise ? 1 : s.channels;
  const Buffer x = b.input("X", {int64(s.batch), int64(s.channels), int64(s.height), int64(s.width)});
  const Buffer w = s.lanes ? b.input("W", {int64((s.filters + s.lanes - 1) / s.lanes), int64(s.kernel), int64(s.kernel),
                                           int64(depth), int64(s.lanes)})
                           : b.input("W", {int64(s.filters), int64(depth), int64(s.kernel), int64(s.kernel)});
  const std::vector<Expr> shape{int64(s.batch), int64(s.filters), int64(height), int64(width)};
  Buffer source = x;
  if (s.padding) {
    source = b.inner(
        "P", {int64(s.batch), int64(s.channels), int64(s.height + 2 * s.padding), int64(s.width + 2 * s.padding)});
    b.compute("pad", source, [&](const std::vector<Expr>& i) {
      const Expr y = i[2] - s.padding, z = i[3] - s.padding;
      return if_then_else(logical_and(logical_and(y >= 0, y < s.height), logical_and(z >= 0, z < s.width)),
                          load(x, {i[0], i[1], y, z}), f32(0));
    });
  }
  Buffer bias, residual, out, c;
  if (s.epilogue) {
    bias = b.input("bias", {int64(s.filters)});
    residual = b.input("R", shape);
    c = b.inner("C", shape);
  }
  out = b.output("Y", shape);
  if (!s.epilogue) c = out;
  std::vector<Axis> axes;
  if (!s.depthwise) axes.push_back({"ic", int64(depth)});
  axes.push_back({"kh", int64(s.kernel)});
  axes.push_back({"kw", int64(s.kernel)});
  b.sum("conv", c, axes, [&](const std::vector<Expr>& i) {
    const Expr ic = s.depthwise ? i[1] : i[4], kh = i[s.depthwise ? 4 : 5], kw = i[s.depthwise ? 5 : 6];
    const Expr input = s.depthwise ? int64(0) : i[4];
    const Expr weight = s.lanes
                            ? load(w, {floordiv(i[1], int64(s.lanes)), kh, kw, input, floormod(i[1], int64(s.lanes))})
                            : load(w, {i[1], input, kh, kw});
    return load(source, {i[0], ic, i[2] * s.stride + kh, i[3] * s.stride + kw}) * weight;
  });
  if (s.epilogue) {
    const Buffer t = b.inner("T", shape), u = b.inner("U", shape);
    b.compute("bias_add", t, [&](const std::vector<Expr>& i) { return load(c, i) + load(bias, {i[1]}); });
    b.compute("add", u, [&](const std::vector<Expr>& i) { return load(t, i) + load(residual, i); });
    b.compute("relu", out, [&](const std::vector<Expr>& i) { return max(load(u, i), f32(0)); });
  }
  if (s.padding)
    b.annotate("conv", tir::zero_border_key,
               tir::value_of({.before = {0, 0, s.padding, s.padding}, .after = {0, 0, s.padding, s.padding}}, "P"));
  return b.build();
}

}  // namespace lathe::schedule::testing
