// Attention and what stands before it: scaled products with masks, caches and graphs, rotary embedding, and what keeps
// a state of fixed size between steps in place of a cache.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "onnx_schema.pb.h"
#include "ops/build.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

Expr with_axes_moved(NodeImport& c, const Expr& x, std::vector<int64_t> axes) {
  return c.call(ops::permute_dims, {x}, ir::make<ops::PermuteDimsAttributes>(std::optional(std::move(axes))));
}

// [batch, sequence, heads * size] as [batch, heads, sequence, size].
Expr split_heads(NodeImport& c, const Expr& x, int64_t heads) {
  const Shape own = build::shape_of(x);
  const Expr parts =
      c.reshape(x, {own[0], own[1], ir::int64(heads), relax::simplified(ir::floordiv(own[2], ir::int64(heads)))});
  return with_axes_moved(c, parts, {0, 2, 1, 3});
}

// Heads of keys and values stand for several heads of queries, which follow each other.
Expr repeat_heads(NodeImport& c, const Expr& x, const ir::Expr& heads) {
  const Shape own = build::shape_of(x);
  if (relax::same_extent(own[1], heads)) return x;
  const auto few = ir::as_int(own[1]), many = ir::as_int(heads);
  if (few && many && (*few < 1 || *many % *few != 0))
    c.fail(codes::wrong_shape, relax::text_of(heads) + " heads of queries cannot share " + relax::text_of(own[1]) +
                                   " heads of keys and values");
  const ir::Expr times = relax::simplified(ir::floordiv(heads, ir::max(own[1], ir::int64(1))));
  build::expect_equal(c.builder(), relax::simplified(times * own[1]), heads);
  const auto make = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        {own[0], heads, own[2], own[3]},
        [&](const std::vector<ir::Expr>& i) {
          return in[0]({i[0], ir::floordiv(i[1], ir::max(times, ir::int64(1))), i[2], i[3]});
        },
        in, "repeat_heads")};
  };
  return c.builder().call_te("repeat_heads", {x}, make).value_or_throw();
}

// What is added to the scores: -inf where a query may not see a key.
struct Visibility {
  Expr mask;     // bool or float, broadcast to the scores' last dimensions; may be null
  Expr lengths;  // int64, keys in use of each batch; may be null
  bool is_causal = false;
  ir::Expr past;  // keys before the first query
};

// Whether the mask is broadcast to the scores as elementwise operators do that.
bool is_plainly_broadcast(const Shape& mask, const Shape& scores) {
  if (mask.size() > scores.size()) return false;
  const size_t outer = scores.size() - mask.size();
  for (size_t d = 0; d < mask.size(); ++d)
    if (!ir::is_int(mask[d], 1) && !relax::same_extent(mask[d], scores[outer + d])) return false;
  return true;
}

// Whether a query sees a key, as operators of their own, which become one kernel with the products around them.
Expr masked_by_operators(NodeImport& c, Expr score, const Visibility& v) {
  const Shape shape = build::shape_of(score);
  const DType dtype = build::dtype_of(score);
  const Expr hidden = c.scalar(dtype, -std::numeric_limits<double>::infinity());
  const auto keep = [&](const Expr& seen) { score = c.call(ops::where, {seen, score, hidden}); };
  if (v.mask && build::dtype_of(v.mask).is_bool())
    keep(v.mask);
  else if (v.mask)
    score = c.call(ops::add, {score, c.cast(v.mask, dtype)});
  if (v.is_causal) {
    const auto make = [&](const std::vector<te::Tensor>&) {
      const auto is_seen = [&](const std::vector<ir::Expr>& i) { return i[1] <= i[0] + v.past; };
      return std::vector{te::compute({shape[2], shape[3]}, is_seen, {}, "causal_mask")};
    };
    keep(c.builder().call_te("causal_mask", {}, make).value_or_throw());
  }
  if (v.lengths) {
    const auto make = [&](const std::vector<te::Tensor>& in) {
      const auto is_used = [&](const std::vector<ir::Expr>& i) {
        return i[3] < ir::cast(DType::int64(), in[0]({i[0]}));
      };
      const Shape own{shape[0], ir::int64(1), ir::int64(1), shape[3]};
      return std::vector{te::compute(own, is_used, in, "keys_in_use")};
    };
    keep(c.builder().call_te("keys_in_use", {v.lengths}, make).value_or_throw());
  }
  return score;
}

Expr masked(NodeImport& c, const Expr& scores, const Visibility& v) {
  const Shape shape = build::shape_of(scores);
  const DType dtype = build::dtype_of(scores);
  if (!v.mask || is_plainly_broadcast(build::shape_of(v.mask), shape)) return masked_by_operators(c, scores, v);
  std::vector<Expr> args{scores};
  size_t mask_at = 0, lengths_at = 0;
  if (v.mask) {
    mask_at = args.size();
    args.push_back(v.mask);
  }
  if (v.lengths) {
    lengths_at = args.size();
    args.push_back(v.lengths);
  }
  const auto make = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr hidden = ir::constant(dtype, -std::numeric_limits<double>::infinity());
          ir::Expr score = in[0](i);
          if (mask_at) {
            const te::Tensor& mask = in[mask_at];
            // A mask may be shorter than the keys; those beyond are hidden. One of a single key is for all.
            const ir::Expr length = mask.shape().back();
            const bool is_short = !relax::same_extent(length, shape[3]) && !ir::is_int(length, 1);
            std::vector<ir::Expr> at;
            for (size_t d = 0; d < mask.ndim(); ++d) {
              const size_t own = shape.size() - mask.ndim() + d;
              const bool last = d + 1 == mask.ndim();
              at.push_back(last && is_short ? ir::max(ir::min(i[own], length - 1), ir::int64(0))
                                            : te::topi::broadcast_index(mask.shape()[d], shape[own], i[own]));
            }
            const ir::Expr given = mask(std::move(at));
            const ir::Expr seen =
                given->dtype.is_bool() ? ir::select(given, score, hidden) : score + ir::cast(dtype, given);
            const ir::Expr is_told = ir::logical_or(i[3] < length, ir::eq(length, ir::int64(1)));
            score = is_short ? ir::select(is_told, seen, hidden) : seen;
          }
          if (v.is_causal) score = ir::select(i[3] <= i[2] + v.past, score, hidden);
          if (lengths_at) score = ir::select(i[3] < ir::cast(DType::int64(), in[lengths_at]({i[0]})), score, hidden);
          return score;
        },
        in, "attention_mask")};
  };
  return c.builder().call_te("attention_mask", std::move(args), make).value_or_throw();
}

Expr with_past(NodeImport& c, const Expr& now, size_t past) {
  if (!c.has(past)) return now;
  return c.call(ops::concat, {c.input(past), now}, ir::make<ops::AxisAttributes>(int64_t{2}));
}

// Queries, keys and values [batch, heads, length, size] of one batch; keys and values of one number of heads.
void expect_one_batch(NodeImport& c, const Expr& q, const Expr& k, const Expr& values) {
  const Shape queries = build::shape_of(q), keys = build::shape_of(k), others = build::shape_of(values);
  build::expect_equal(c.builder(), keys[0], queries[0]);
  build::expect_equal(c.builder(), others[0], queries[0]);
  build::expect_equal(c.builder(), others[1], keys[1]);
}

// 1 / sqrt(size)
Expr scale_of_head(NodeImport& c, const ir::Expr& size, DType dtype) {
  if (const auto known = ir::as_int(size))
    return c.scalar(dtype, 1 / std::sqrt(static_cast<double>(std::max<int64_t>(*known, 1))));
  const Expr root = c.call(ops::sqrt, {c.extent_as_float(ir::max(size, ir::int64(1)))});
  return c.cast(c.call(ops::divide, {c.scalar(DType::float_(64), 1), root}), dtype);
}

void attention(NodeImport& c) {
  const bool is_flat = c.rank(0) == 3;
  const int64_t query_heads = c.attributes.integer("q_num_heads", 0), heads = c.attributes.integer("kv_num_heads", 0);
  Visibility v;
  v.is_causal = c.attributes.flag("is_causal", false);
  const double softcap = c.attributes.number("softcap", 0);
  const int64_t mode = c.attributes.integer("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    c.fail(codes::wrong_attribute, "the attribute 'qk_matmul_output_mode' is " + std::to_string(mode));
  if ((!is_flat && c.rank(0) != 4) || c.rank(1) != c.rank(0) || c.rank(2) != c.rank(0))
    c.fail(codes::wrong_node, "queries, keys and values all need 3 or all 4 dimensions");
  if (is_flat && (query_heads < 1 || heads < 1))
    c.fail(codes::wrong_attribute, "the attributes 'q_num_heads' and 'kv_num_heads' are needed for 3 dimensions");
  Expr q = c.input(0), k = c.input(1), values = c.input(2);
  const DType dtype = c.dtype(0);
  if (is_flat) {
    q = split_heads(c, q, query_heads);
    k = split_heads(c, k, heads);
    values = split_heads(c, values, heads);
  }
  expect_one_batch(c, q, k, values);
  k = with_past(c, k, 4);
  values = with_past(c, values, 5);
  if (c.wants(1)) c.set(1, k);
  if (c.wants(2)) c.set(2, values);
  v.past = c.has(4) ? c.shape(4)[2] : ir::int64(0);
  if (c.has(3)) v.mask = c.input(3);
  if (c.has(6)) {
    v.lengths = c.input(6);
    if (c.rank(6) != 1) c.fail(codes::wrong_node, "the lengths of keys and values are not a vector");
    const ir::Expr& keys = build::shape_of(k)[2];
    c.expect_elements(6, {ir::int64(0)}, {relax::simplified(keys + 1)},
                      relax::Message() << "keys and values take lengths");
  }

  const Shape queries = build::shape_of(q);
  k = repeat_heads(c, k, queries[1]);
  values = repeat_heads(c, values, queries[1]);
  // Scores and their softmax are kept in float32 where the operands are narrower.
  DType wide = relax::accumulation_dtype(dtype);
  if (c.attributes.has("softmax_precision")) {
    const DType asked =
        element_type(c.attributes.integer("softmax_precision"), "the softmax", c.place()).value_or_throw();
    if (asked.bits > wide.bits) wide = asked;
  }
  const auto plain = ir::make<ops::MatmulAttributes>();
  Expr scores = c.call(ops::matmul, {c.cast(q, wide), c.cast(with_axes_moved(c, k, {0, 1, 3, 2}), wide)}, plain);
  const Expr scale =
      c.attributes.has("scale") ? c.scalar(wide, c.attributes.number("scale", 0)) : scale_of_head(c, queries[3], wide);
  scores = c.call(ops::multiply, {scores, scale});
  std::array<Expr, 4> stages;
  stages[0] = scores;
  if (softcap > 0) {
    const Expr limit = c.scalar(wide, softcap);
    scores = c.call(ops::multiply, {c.call(ops::tanh, {c.call(ops::divide, {scores, limit})}), limit});
  }
  stages[1] = scores;
  if (v.mask || v.lengths || v.is_causal) scores = masked(c, scores, v);
  stages[2] = scores;
  const Expr shares = c.call(ops::softmax, {scores}, ir::make<ops::SoftmaxAttributes>(int64_t{3}));
  stages[3] = shares;
  Expr y = c.cast(c.call(ops::matmul, {shares, c.cast(values, wide)}, plain), dtype);
  if (is_flat) {
    const Shape made = build::shape_of(y);
    y = c.reshape(with_axes_moved(c, y, {0, 2, 1, 3}), {made[0], made[2], relax::simplified(made[1] * made[3])});
  }
  c.set(0, y);
  if (c.wants(3)) c.set(3, c.cast(stages[static_cast<size_t>(mode)], dtype));
}

// What the graph of that attribute makes of the scores or the shares, which keep their type and shape.
Expr modified(NodeImport& c, const std::string& name, const Expr& x) {
  if (!c.attributes.has(name)) return x;
  const schema::GraphProto& graph = c.attributes.graph(name);
  if (graph.input_size() != 1 || graph.output_size() != 1)
    c.fail(codes::wrong_node, name + " has " + std::to_string(graph.input_size()) + " inputs and " +
                                  std::to_string(graph.output_size()) + " outputs, but takes and gives one tensor");
  std::vector<GraphValue> made = c.graphs().convert(graph, name, {GraphValue{.tensor = x}});
  const Expr result = tensor_of(c.builder(), made.at(0));
  const auto* info = relax::as_tensor(result);
  const Shape& shape = build::shape_of(x);
  if (!info || info->dtype != build::dtype_of(x) || info->ndim != static_cast<int64_t>(shape.size()) || !info->shape)
    c.fail(codes::wrong_node, name + " gives " + (info ? relax::text_of(*info) : "no tensor") + ", but takes " +
                                  relax::text_of(*relax::as_tensor(x)));
  for (size_t d = 0; d < shape.size(); ++d) build::expect_equal(c.builder(), (*info->shape)[d], shape[d]);
  return result;
}

void flex_attention(NodeImport& c) {
  for (const size_t i : {0, 1, 2})
    if (c.rank(i) != 4) c.fail(codes::wrong_node, "queries, keys and values all need 4 dimensions");
  const Expr q = c.input(0);
  const Shape queries = build::shape_of(q);
  expect_one_batch(c, q, c.input(1), c.input(2));
  const Expr k = repeat_heads(c, c.input(1), queries[1]), values = repeat_heads(c, c.input(2), queries[1]);
  const DType dtype = c.dtype(0);
  DType wide = relax::accumulation_dtype(dtype);
  if (c.attributes.has("softmax_precision"))
    wide = element_type(c.attributes.integer("softmax_precision"), "the softmax", c.place()).value_or_throw();
  if (!wide.is_floating() || wide.bits < 16)
    c.fail(codes::wrong_attribute, "the attribute 'softmax_precision' says " + wide.str());
  const auto plain = ir::make<ops::MatmulAttributes>();
  Expr scores = c.call(ops::matmul, {c.cast(q, wide), c.cast(with_axes_moved(c, k, {0, 1, 3, 2}), wide)}, plain);
  const Expr scale =
      c.attributes.has("scale") ? c.scalar(wide, c.attributes.number("scale", 0)) : scale_of_head(c, queries[3], wide);
  scores = modified(c, "score_mod", c.call(ops::multiply, {scores, scale}));
  const Expr shares = c.call(ops::softmax, {scores}, ir::make<ops::SoftmaxAttributes>(int64_t{3}));
  const Expr weights = modified(c, "prob_mod", shares);
  c.set(c.cast(c.call(ops::matmul, {weights, c.cast(values, wide)}, plain), dtype));
}

// Pairs of elements turned by the angle of their position.
void rotary_embedding(NodeImport& c) {
  const bool interleaved = c.attributes.flag("interleaved", false), is_flat = c.rank(0) == 3;
  const int64_t heads = c.attributes.integer("num_heads", 0), given = c.attributes.integer("rotary_embedding_dim", 0);
  if (!is_flat && c.rank(0) != 4) c.fail(codes::wrong_node, "RotaryEmbedding takes 3 or 4 dimensions");
  if (is_flat && heads < 1) c.fail(codes::wrong_attribute, "the attribute 'num_heads' is needed for 3 dimensions");
  Expr x = c.input(0);
  if (is_flat) x = split_heads(c, x, heads);
  const Shape shape = build::shape_of(x);  // [batch, heads, sequence, size]
  const ir::Expr turned = given > 0 ? ir::int64(given) : shape[3];
  const ir::Expr half = relax::simplified(ir::floordiv(turned, ir::int64(2)));
  const bool has_positions = c.has(3);
  std::vector<Expr> args{x, c.input(1), c.input(2)};
  if (has_positions) args.push_back(c.input(3));
  for (const size_t i : {1, 2}) {
    if (c.rank(i) != (has_positions ? 2 : 3))
      c.fail(codes::wrong_node, "the input " + std::to_string(i) + " has " + std::to_string(c.rank(i)) + " dimensions");
    build::expect_equal(c.builder(), c.shape(i).back(), half);
  }
  if (has_positions)
    c.expect_elements(3, {ir::int64(0)}, {c.shape(1)[0]}, relax::Message() << c.name_of(1) << " has positions");
  const DType dtype = c.dtype(0), wide = relax::accumulation_dtype(dtype);
  const auto make = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr inside = ir::min(i[3], turned - 1);
          const ir::Expr pair = interleaved ? ir::floordiv(inside, ir::int64(2)) : ir::floormod(inside, half);
          const ir::Expr second =
              interleaved ? ir::eq(ir::floormod(inside, ir::int64(2)), ir::int64(1)) : inside >= half;
          const auto angle = [&](size_t cache) {
            if (!has_positions) return ir::cast(wide, in[cache]({i[0], i[2], pair}));
            const ir::Expr row = build::index_into(in[3]({i[0], i[2]}), in[cache].shape()[0]);
            return ir::cast(wide, in[cache]({row, pair}));
          };
          const auto at = [&](const ir::Expr& place) { return ir::cast(wide, in[0]({i[0], i[1], i[2], place})); };
          const ir::Expr a = at(interleaved ? pair * 2 : pair), b = at(interleaved ? pair * 2 + 1 : pair + half);
          const ir::Expr real = angle(1) * a - angle(2) * b, imaginary = angle(2) * a + angle(1) * b;
          return ir::select(i[3] < turned, ir::cast(dtype, ir::select(second, imaginary, real)), in[0](i));
        },
        in, "rotary_embedding")};
  };
  Expr y = c.builder().call_te("rotary_embedding", std::move(args), make).value_or_throw();
  if (is_flat) y = c.reshape(with_axes_moved(c, y, {0, 2, 1, 3}), c.shape(0));
  c.set(y);
}

void expect_rank_of(NodeImport& c, size_t i, int64_t rank) {
  if (c.rank(i) != rank)
    c.fail(codes::wrong_node, "the input " + std::to_string(i) + " has " + std::to_string(c.rank(i)) +
                                  " dimensions, not " + std::to_string(rank));
}

// Of any number of channels and any window: y[b, c, t] = sum over k of whole[b, c, t + k] * weights[c, 0, k].
Expr convolved_by_channel(NodeImport& c, const Expr& whole, const Expr& weights, const Shape& shape) {
  const DType dtype = c.dtype(0), wide = relax::accumulation_dtype(dtype);
  const ir::IterVar k = te::reduce_axis(ir::int64(0), build::shape_of(weights)[2], "k");
  const auto make = [&](const std::vector<te::Tensor>& in) {
    const te::Tensor sums = te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr x = ir::cast(wide, in[0]({i[0], i[1], i[2] + k->var}));
          return te::sum(x * ir::cast(wide, in[1]({i[1], ir::int64(0), k->var})), {k});
        },
        in, "causal_conv");
    return std::vector{te::topi::cast(sums, dtype, "causal_conv_result")};
  };
  return c.builder().call_te("causal_conv", {whole, weights}, make).value_or_throw();
}

// The channels' last (window - 1) elements, or zeros, stand before the input; what is last then is kept.
void causal_conv(NodeImport& c) {
  const std::string activation = c.attributes.word("activation", {"none", "silu", "swish"});
  for (const size_t i : {0, 1}) expect_rank_of(c, i, 3);
  const Shape own = c.shape(0), weights = c.shape(1);
  if (relax::different_extents(ir::max(weights[2], ir::int64(1)), weights[2]))
    c.fail(codes::wrong_shape, "the window of CausalConvWithState has no element");
  build::expect_equal(c.builder(), own[1], weights[0]);
  build::expect_equal(c.builder(), weights[1], ir::int64(1));
  const Shape state{own[0], own[1], relax::non_negative(weights[2] - 1)};
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
  const auto channels = ir::as_int(weights[0]);
  if (channels && ir::as_int(weights[2]) && !ir::is_int(own[2], 0))
    y = c.call(ops::conv, {whole, c.input(1)},
               attributes_with<ops::ConvAttributes>([&](ops::ConvAttributes& a) { a.groups = *channels; }));
  else if (!ir::is_int(own[2], 0))
    y = convolved_by_channel(c, whole, c.input(1), own);
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

// The input [batch, sequence, many], or [batch, sequence, few], each element being that of many / few neighbours. As it
// is where the extent is known; where the run tells which it is, with all elements there.
Expr shared_within(NodeImport& c, size_t i, const ir::Expr& many, const ir::Expr& few) {
  Shape shape = c.shape(i);
  const ir::Expr own = shape[2], is_few = ir::eq(own, few);
  if (relax::same_extent(own, few)) return c.input(i);
  build::expect_equal(c.builder(), relax::simplified(ir::select(is_few, many, own)), many);
  if (ir::as_int(own)) return c.input(i);
  shape[2] = many;
  const ir::Expr neighbours = ir::max(ir::floordiv(many, few), ir::int64(1));
  const auto make = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& at) {
          return in[0]({at[0], at[1], ir::select(is_few, ir::floordiv(at[2], neighbours), at[2])});
        },
        in, "shared_within")};
  };
  return c.builder().call_te("shared_within", {c.input(i)}, make).value_or_throw();
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
  build::LinearAttentionOperands operands{c.input(0), c.input(1), c.input(2), {}, {}, {}};
  if (const auto known = ir::as_int(d_k); known && how.scale == 0) {
    how.scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(*known, 1)));
  } else if (how.scale == 0) {
    const DType wide = relax::accumulation_dtype(c.dtype(0));
    operands.query = c.call(ops::multiply, {c.cast(operands.query, wide), scale_of_head(c, d_k, wide)});
    how.scale = 1;
  }
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
  if (decays) operands.decay = shared_within(c, 4, relax::simplified(d_k * how.heads), ir::int64(how.heads));
  if (how.corrects) operands.beta = shared_within(c, 5, ir::int64(how.heads), ir::int64(1));
  const auto [answers, last] = build::linear_attention(b, operands, how);
  c.set(0, c.cast(answers, c.dtype(0)));
  if (c.wants(1)) c.set(1, c.cast(last, kept));
}

const OperatorRow attention_rows[] = {
    {"Attention", {23, 24}, 3, 7, 4, attention},
    {"RotaryEmbedding", {23}, 3, 4, 1, rotary_embedding},
    {"CausalConvWithState", {27}, 2, 4, 2, causal_conv},
    {"LinearAttention", {27}, 3, 6, 2, linear_attention},
    {"FlexAttention", {1}, 3, 3, 1, flex_attention, nullptr, "ai.onnx.preview"},
};

}  // namespace

Table attention() { return attention_rows; }

}  // namespace lathe::onnx::operators
