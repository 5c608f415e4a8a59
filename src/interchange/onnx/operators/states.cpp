// What a decoder keeps between its steps beside a cache of keys and values: LinearAttention, CausalConvWithState; Det.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "ops/build.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

void expect_rank_of(NodeImport& c, size_t i, int64_t rank) {
  if (c.rank(i) != rank)
    c.fail(codes::wrong_node, "the input " + std::to_string(i) + " has " + std::to_string(c.rank(i)) +
                                  " dimensions, not " + std::to_string(rank));
}

void determinant(NodeImport& c) {
  if (c.rank(0) < 2) c.fail(codes::wrong_node, "Det takes matrices, but its input has fewer than two dimensions");
  c.set(build::determinant(c.builder(), c.input(0)));
}

// The channels' last (window - 1) elements, or zeros, stand before the input; what is last then is kept.
void causal_conv(NodeImport& c) {
  const std::string activation = c.attributes.word("activation", {"none", "silu", "swish"});
  for (const size_t i : {0, 1}) expect_rank_of(c, i, 3);
  const Shape own = c.shape(0), weights = c.shape(1);
  const auto channels = ir::as_int(weights[0]), window = ir::as_int(weights[2]);
  if (!channels || !window || *window < 1)
    c.fail(codes::not_constant, "the channels and the window of CausalConvWithState must be known when compiling");
  build::expect_equal(c.builder(), own[1], weights[0]);
  const Shape state{own[0], own[1], ir::int64(*window - 1)};
  Expr before;
  if (c.has(3)) {
    expect_rank_of(c, 3, 3);
    for (size_t d = 0; d < 3; ++d) build::expect_equal(c.builder(), c.shape(3)[d], state[d]);
    before = c.input(3);
  } else {
    before = c.call(ops::full, {ir::make<relax::ShapeExpr>(state), c.scalar(c.dtype(0), 0)});
  }
  const Expr whole = c.call(ops::concat, {before, c.input(0)}, ir::make<ops::AxisAttributes>(int64_t{2}));
  Expr y = c.input(0);  // the result, where there is nothing to compute
  if (!ir::is_int(own[2], 0))
    y = c.call(ops::conv, {whole, c.input(1)},
               attributes_with<ops::ConvAttributes>([&](ops::ConvAttributes& a) { a.groups = *channels; }));
  if (c.has(2)) y = c.call(ops::add, {y, c.reshape(c.input(2), {weights[0], ir::int64(1)})});
  if (activation != "none") y = c.call(ops::silu, {y});
  c.set(0, y);
  if (!c.wants(1)) return;
  const ir::Expr length = own[2];
  const auto make = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        state, [&](const std::vector<ir::Expr>& i) { return in[0]({i[0], i[1], i[2] + length}); }, in, "last_inputs")};
  };
  c.set(1, c.builder().call_te("last_inputs", {whole}, make).value_or_throw());
}

void linear_attention(NodeImport& c) {
  build::LinearAttention how;
  how.query_heads = c.attributes.integer("q_num_heads");
  how.heads = c.attributes.integer("kv_num_heads");
  const std::string rule = c.attributes.word("update_rule", {"gated_delta", "linear", "gated", "delta"});
  c.attributes.ignore("chunk_size");  // how prefill may be cut; the result is the same
  const bool decays = rule.starts_with("gated");
  how.corrects = rule.ends_with("delta");
  how.scale = c.attributes.number("scale", 0);
  if (how.heads < 1 || how.query_heads < how.heads || how.query_heads % how.heads != 0 ||
      how.query_heads > std::numeric_limits<int32_t>::max())
    c.fail(codes::wrong_attribute, std::to_string(how.query_heads) + " heads of queries cannot share " +
                                       std::to_string(how.heads) + " of keys and values");
  for (const size_t i : {0, 1, 2}) expect_rank_of(c, i, 3);
  if (c.has(4) != decays || c.has(5) != how.corrects)
    c.fail(codes::wrong_node, "the update rule '" + rule + "' takes " + (decays ? "a" : "no") + " decay and " +
                                  (how.corrects ? "a" : "no") + " beta");
  auto& b = c.builder();
  const Shape query = c.shape(0), key = c.shape(1), value = c.shape(2);
  const auto part = [&](const ir::Expr& whole, int64_t heads) {
    const ir::Expr size = relax::simplified(ir::floordiv(whole, ir::int64(heads)));
    build::expect_equal(b, relax::simplified(size * heads), whole);
    return size;
  };
  const ir::Expr d_k = part(query[2], how.query_heads), d_v = part(value[2], how.heads);
  build::expect_equal(b, key[2], relax::simplified(d_k * how.heads));
  for (const size_t i : {1, 2, 4, 5}) {
    if (!c.has(i)) continue;
    expect_rank_of(c, i, 3);
    for (const size_t d : {0, 1}) build::expect_equal(b, c.shape(i)[d], query[d]);
  }
  if (how.scale == 0) {
    const auto known = ir::as_int(d_k);
    if (!known) c.fail(codes::not_constant, "the size of a head must be known when compiling");
    how.scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(*known, 1)));
  }
  build::LinearAttentionOperands operands{c.input(0), c.input(1), c.input(2), {}, {}, {}};
  const Shape state{query[0], ir::int64(how.heads), d_k, d_v};
  DType kept = c.dtype(0);
  if (c.has(3)) {
    expect_rank_of(c, 3, 4);
    kept = c.dtype(3);
    for (size_t d = 0; d < 4; ++d) build::expect_equal(b, c.shape(3)[d], state[d]);
    operands.state = c.input(3);
  } else {
    operands.state = c.call(ops::full, {ir::make<relax::ShapeExpr>(state), c.scalar(DType::float32(), 0)});
  }
  if (decays) {
    operands.decay = c.input(4);
    if (!relax::same_extent(c.shape(4)[2], ir::int64(how.heads)))
      build::expect_equal(b, c.shape(4)[2], relax::simplified(d_k * how.heads));
  }
  if (how.corrects) {
    operands.beta = c.input(5);
    if (!ir::is_int(c.shape(5)[2], 1)) build::expect_equal(b, c.shape(5)[2], ir::int64(how.heads));
  }
  const auto [answers, last] = build::linear_attention(b, operands, how);
  c.set(0, c.cast(answers, c.dtype(0)));
  if (c.wants(1)) c.set(1, c.cast(last, kept));
}

const OperatorRow states_rows[] = {
    {"Det", {11, 22}, 1, 1, 1, determinant},
    {"CausalConvWithState", {27}, 2, 4, 2, causal_conv},
    {"LinearAttention", {27}, 3, 6, 2, linear_attention},
};

}  // namespace

Table states() { return states_rows; }

}  // namespace lathe::onnx::operators
