// Scaled products of queries and keys, whose softmax weighs values.
#include "ops/composites/windows.h"

namespace lathe::ops::composites {

namespace {

struct ScaledAttentionAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "ScaledAttentionAttributes";
  std::optional<double> scale;  // nothing: 1 / sqrt of a head's size
  std::optional<std::string> causal_mask;
  std::optional<int64_t> window_size;
  static constexpr auto fields() {
    return std::tuple{field("scale", &ScaledAttentionAttributes::scale),
                      field("causal_mask", &ScaledAttentionAttributes::causal_mask),
                      field("window_size", &ScaledAttentionAttributes::window_size)};
  }
};

// Which keys a query may see by its place.
struct SeenKeys {
  bool is_limited = false;
  Expr shift;      // the key at the query's own place is `shift` after it
  int64_t window;  // keys up to the own one; 0: all

  Expr operator()(const Expr& query, const Expr& key) const {
    const Expr own = query + shift;
    return window > 0 ? ir::logical_and(key <= own, key > own - window) : key <= own;
  }
};

SeenKeys seen_keys(const Expansion& e, const ScaledAttentionAttributes& a, const Expr& queries, const Expr& keys) {
  SeenKeys seen{a.causal_mask || a.window_size, ir::int64(0), a.window_size.value_or(0)};
  if (a.causal_mask && *a.causal_mask != "TopLeft" && *a.causal_mask != "BottomRight")
    e.refuse(codes::wrong_attribute,
             "causal_mask is 'TopLeft' or 'BottomRight', not '" + a.causal_mask->substr(0, 40) + "'");
  if (a.window_size && (*a.window_size < 1 || *a.window_size > std::numeric_limits<int32_t>::max()))
    e.refuse(codes::wrong_attribute,
             "window_size is " + std::to_string(*a.window_size) + ", but takes 1 or more (up to 2147483647)");
  if (a.causal_mask == "BottomRight") seen.shift = relax::simplified(keys - queries);
  return seen;
}

void check_operands(const Expansion& e) {
  const std::string_view names[] = {"query", "key", "value"};
  const DType dtype = build::dtype_of(e.tensor(0));
  for (size_t i = 0; i < 3; ++i) {
    const Value& x = numeric_tensor(e, i, names[i], 4);
    if (!relax::contains(DTypeSet::floating, build::dtype_of(x)))
      e.refuse(codes::dtype_not_supported,
               std::string(names[i]) + " is of a floating dtype, not " + build::dtype_of(x).str());
    if (build::dtype_of(x) != dtype)
      e.refuse(codes::dtype_mismatch, std::string(names[i]) + " is " + build::dtype_of(x).str() + ", but query is " +
                                          dtype.str() + "; all need one dtype");
  }
  const Shape &q = build::shape_of(e.tensor(0)), &k = build::shape_of(e.tensor(1)), &v = build::shape_of(e.tensor(2));
  const auto agree = [&](const Expr& actual, const Expr& expected, std::string_view what) {
    if (relax::different_extents(actual, expected))
      e.refuse(codes::shape_mismatch, "query " + relax::text_of(q) + ", key " + relax::text_of(k) + " and value " +
                                          relax::text_of(v) + " differ in the " + std::string(what));
    build::expect_equal(e.b, actual, expected);
  };
  agree(k[0], q[0], "batch");
  agree(v[0], q[0], "batch");
  agree(k[2], q[2], "number of heads");
  agree(v[2], q[2], "number of heads");
  agree(k[3], q[3], "size of a head");
  agree(v[1], k[1], "number of keys");
}

Value with_bias(const Expansion& e, const Value& scores, size_t i) {
  const Value& bias = e.tensor(i);
  const Shape shape = build::shape_of(scores), own = build::shape_of(bias);
  const DType dtype = build::dtype_of(scores);
  if (!relax::contains(DTypeSet::floating, build::dtype_of(bias)))
    e.refuse(codes::dtype_not_supported, "bias is of a floating dtype, not " + build::dtype_of(bias).str());
  if (own.size() > shape.size() || !relax::broadcasts_to(own, shape, nullptr))
    e.refuse(codes::cannot_broadcast, "the bias " + relax::text_of(own) +
                                          " does not broadcast to [batch, heads, queries, keys] " +
                                          relax::text_of(shape));
  for (size_t d = 0; d < own.size(); ++d)
    if (!ir::is_int(own[d], 1)) build::expect_equal(e.b, own[d], shape[shape.size() - own.size() + d]);
  return build::elementwise(
      e.b, {scores, bias}, shape, [&](const Indices& v, const Indices&) { return v[0] + ir::cast(dtype, v[1]); },
      "attention_bias");
}

Value expand_attention(const Expansion& e) {
  const auto& a = e.attrs<ScaledAttentionAttributes>();
  check_operands(e);
  const DType dtype = build::dtype_of(e.tensor(0)), wide = relax::accumulation_dtype(dtype);
  const Value q = e.cast(e.permute(e.tensor(0), {0, 2, 1, 3}), wide);
  const Value k = e.cast(e.permute(e.tensor(1), {0, 2, 3, 1}), wide);
  const Value values = e.cast(e.permute(e.tensor(2), {0, 2, 1, 3}), wide);
  const Shape queries = build::shape_of(q), keys = build::shape_of(k);
  const SeenKeys seen = seen_keys(e, a, queries[2], keys[3]);

  Value scale;
  if (a.scale) {
    scale = build::scalar(wide, *a.scale);
  } else if (const auto size = ir::as_int(queries[3])) {
    scale = build::scalar(wide, 1 / std::sqrt(static_cast<double>(std::max<int64_t>(*size, 1))));
  } else {
    const Value root = e.call(ops::sqrt, {scalar_tensor(e, DType::float_(64), ir::max(queries[3], ir::int64(1)))});
    scale = e.cast(e.call(ops::divide, {build::scalar(DType::float_(64), 1), root}), wide);
  }
  const auto plain = ir::make<MatmulAttributes>();
  Value scores = e.call(ops::multiply, {e.call(ops::matmul, {q, k}, plain), scale});
  if (e.has(3)) scores = with_bias(e, scores, 3);
  const Shape shape = build::shape_of(scores);
  const auto limited = [&](const Value& x, double otherwise, const std::string& name) {
    return build::elementwise(
        e.b, {x}, shape,
        [&](const Indices& v, const Indices& at) {
          return ir::select(seen(at[2], at[3]), v[0], ir::constant(wide, otherwise));
        },
        name);
  };
  if (seen.is_limited) scores = limited(scores, -std::numeric_limits<double>::infinity(), "attention_mask");
  Value shares = e.call(ops::softmax, {scores}, ir::make<SoftmaxAttributes>(int64_t{3}));
  // A query that sees no key has no softmax; its answer is 0.
  if (seen.is_limited) shares = limited(shares, 0, "attention_shares");
  const Value y = e.cast(e.call(ops::matmul, {shares, values}, plain), dtype);
  return e.permute(y, {0, 2, 1, 3});
}

}  // namespace

const Operator attention = composite("nn.attention", {{"query"}, {"key"}, {"value"}, {"bias", Input::optional}},
                                     relax::attributes_of<ScaledAttentionAttributes>(), expand_attention,
                                     "numpy.einsum('bnst,btnh->bsnh', "
                                     "scipy.special.softmax(numpy.einsum('bsnh,btnh->bnst', query, key) * scale "
                                     "+ bias, "
                                     "-1), value)");
const Operator attention_bias = composite("nn.attention_bias", {{"query"}, {"key"}, {"value"}, {"bias"}},
                                          relax::attributes_of<ScaledAttentionAttributes>(), expand_attention,
                                          "numpy.einsum('bnst,btnh->bsnh', "
                                          "scipy.special.softmax(numpy.einsum('bsnh,btnh->bnst', query, key) * scale "
                                          "+ bias, "
                                          "-1), value)");

}  // namespace lathe::ops::composites
