"""Samples of attention and of what stands before it, and what they must answer."""

import math

import numpy as np
from onnx import TensorProto, helper

from tests.operators.sample import PLAIN, is_float

MODIFIERS = {"Tanh": np.tanh, "Neg": np.negative, "Relu": lambda x: np.maximum(x, 0), "Identity": lambda x: x}


def heads_of(d):
    heads, times = d.integer(1, 3), d.integer(1, 3)
    return heads, heads * times


def attention(d):
    """The first key is always seen: a query that sees none has no answer."""
    b, (heads, query_heads) = d.integer(1, 3), heads_of(d)
    size, value_size = d.choice([1, 2, 4, 8, 16]), d.choice([1, 3, 8])
    queries, keys = d.integer(1, 6), d.integer(1, 7)
    is_flat, dtype, value_dtype = d.chance(0.4), d.dtype("T1"), d.dtype("T2")

    def array(heads, length, size, dtype):
        return d.array([b, length, heads * size] if is_flat else [b, heads, length, size], dtype, -1.5, 1.5)

    q, k, v = (
        array(query_heads, queries, size, dtype),
        array(heads, keys, size, dtype),
        array(heads, keys, value_size, value_dtype),
    )
    attributes = {"q_num_heads": query_heads, "kv_num_heads": heads} if is_flat else {}
    past = d.integer(0, 5) if d.chance(0.4) else None
    past_key = past_value = lengths = None
    if past is not None:
        past_key = d.array([b, heads, past, size], dtype, -1.5, 1.5)
        past_value = d.array([b, heads, past, value_size], value_dtype, -1.5, 1.5)
    total = keys + (past or 0)
    if d.chance(0.5):
        attributes["is_causal"] = d.integer(0, 1)
    mask = None
    if d.chance(0.6):
        whole = attributes.get("is_causal", 0)
        shape = [*d.broadcast([b, query_heads])[: d.integer(0, 2)], queries, total]
        shape = shape if len(shape) < 4 else [d.choice([1, b]), d.choice([1, query_heads]), queries, total]
        shape = shape if len(shape) != 3 else [d.choice([1, query_heads]), *shape[1:]]
        shape[-2] = shape[-2] if whole or d.chance(0.7) else 1
        if d.opset >= 24 and d.chance(0.2) and total > 1:
            shape[-1] = d.integer(2, total)
        mask = d.array(shape, d.dtype("U"), -1, 2)
        if mask.dtype == np.bool_:
            mask[..., 0] = True
        elif is_float(mask.dtype) and d.chance(0.3):
            mask[..., 1:] = np.where(d.rng.random(mask[..., 1:].shape) < 0.3, -np.inf, mask[..., 1:])
    if d.opset >= 24 and past is None and d.chance(0.3):
        lengths = d.rng.integers(1, keys + 1, b).astype(np.int64)
    if d.chance(0.3):
        attributes["scale"] = d.choice([0.5, 1.25])
    if d.chance(0.3):
        attributes["softcap"] = d.choice([1.0, 2.5])
    if d.chance(0.2):
        attributes["softmax_precision"] = d.choice([TensorProto.FLOAT, TensorProto.DOUBLE])
    outputs = d.choice([1, 1, 3, 4]) if past is not None else d.choice([1, 1, 4])
    if outputs == 4 and d.chance(0.8):
        attributes["qk_matmul_output_mode"] = d.integer(0, 3)
    types = [dtype, dtype, value_dtype, dtype][:outputs]
    inputs = [q, k, v, mask, past_key, past_value, lengths]
    s = d.sample(inputs, attributes=attributes, outputs=outputs, types=types, terms=64, symbolic=False)
    s.coarsest = max((dtype, value_dtype, np.dtype(np.float32)), key=lambda t: np.finfo(np.float16).eps
                     if t.itemsize == 2 else np.finfo(t).eps)  # fmt: skip
    return symbolic_lengths(d, s, past)


def symbolic_lengths(d, s, past):
    """Lengths that only the run knows: of the queries, of the keys and values, of the past."""
    if not d.chance(0.4) or s.inputs[3] is not None:
        return s
    along = 1 if s.inputs[0].ndim == 3 else 2
    s.symbolic = {(0, along): "queries", (1, along): "keys", (2, along): "keys"}
    if past is not None:
        s.symbolic |= {(4, 2): "past", (5, 2): "past"}
    return s


def modifier(d, name, elem):
    kinds = [helper.make_tensor_value_info(n, elem, None) for n in ("scores", "changed")]
    node = helper.make_node(d.choice(list(MODIFIERS)), ["scores"], ["changed"])
    return helper.make_graph([node], name, kinds[:1], kinds[1:])


def flex_attention(d):
    b, (heads, query_heads), dtype = d.integer(1, 3), heads_of(d), d.dtype("T1")
    queries, keys, size, value_size = d.integer(0, 6), d.integer(1, 7), d.choice([1, 4, 8]), d.choice([1, 3, 8])
    inputs = [
        d.array([b, n, length, width], dtype, -1.5, 1.5)
        for n, length, width in ((query_heads, queries, size), (heads, keys, size), (heads, keys, value_size))
    ]
    elem = TensorProto.DOUBLE if dtype == np.float64 else TensorProto.FLOAT
    attributes = {}
    if d.chance(0.3):
        elem = attributes["softmax_precision"] = d.choice([TensorProto.FLOAT, TensorProto.DOUBLE])
    if d.chance(0.4):
        attributes["scale"] = d.choice([0.5, 1.25])
    for name in ("score_mod", "prob_mod"):
        if d.chance(0.5):
            attributes[name] = modifier(d, name, elem)
    s = d.sample(inputs, attributes=attributes, terms=64, types=[dtype], symbolic=False)
    s.coarsest = dtype if dtype.itemsize == 2 else np.dtype(np.float32)
    if d.chance(0.4):
        s.symbolic = {(0, 2): "queries", (1, 2): "keys", (2, 2): "keys"}
    return s


def rotary_embedding(d):
    b, heads, length, dtype = d.integer(1, 3), d.integer(1, 3), d.integer(1, 5), d.dtype("T")
    turned = 2 * d.integer(1, 4)
    size = turned + (2 * d.integer(0, 2) if d.chance(0.5) else 0)
    is_flat = d.chance(0.4)
    x = d.array([b, length, heads * size] if is_flat else [b, heads, length, size], dtype)
    attributes = {"num_heads": heads} if is_flat else {}
    if turned != size or d.chance(0.2):
        attributes["rotary_embedding_dim"] = turned
    if d.chance(0.6):
        attributes["interleaved"] = d.integer(0, 1)
    places = None
    shape = [b, length, turned // 2]
    if d.chance(0.6):
        shape = [d.integer(length, 9), turned // 2]
        places = d.rng.integers(0, shape[0], [b, length]).astype(np.int64)
    caches = [d.array(shape, dtype, -1, 1) for _ in range(2)]
    return d.sample([x, *caches, places], attributes=attributes, terms=2, symbolic=False, types=[dtype])


# What they must answer.


def split_heads(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2) if x.ndim == 3 else x


def shares_of(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attended(s, q, k, v, mask=None, past_key=None, past_value=None, lengths=None):
    a, is_flat = s.attributes, q.ndim == 3
    q, k, v = (split_heads(x, a.get(n)) for x, n in ((q, "q_num_heads"), (k, "kv_num_heads"), (v, "kv_num_heads")))
    past = 0 if past_key is None else past_key.shape[2]
    k = k if past_key is None else np.concatenate([past_key, k], 2)
    v = v if past_value is None else np.concatenate([past_value, v], 2)
    times, present = q.shape[1] // k.shape[1], [k, v]
    k, v = np.repeat(k, times, 1), np.repeat(v, times, 1)
    scores = q @ k.swapaxes(2, 3) * a.get("scale", 1 / math.sqrt(q.shape[3]))
    stages = [scores]
    if a.get("softcap", 0) > 0:
        scores = np.tanh(scores / a["softcap"]) * a["softcap"]
    stages.append(scores)
    queries, keys = scores.shape[2:]
    if mask is not None:
        added = np.where(mask, 0.0, -np.inf) if mask.dtype == np.bool_ else mask.astype(np.float64)
        widths = [(0, 0)] * (added.ndim - 1) + [(0, keys - added.shape[-1] if added.shape[-1] > 1 else 0)]
        scores = scores + np.pad(added, widths, constant_values=-np.inf)
    if a.get("is_causal"):
        scores = np.where(np.arange(keys) <= np.arange(queries)[:, None] + past, scores, -np.inf)
    if lengths is not None:
        scores = np.where(np.arange(keys) < lengths.reshape(-1, 1, 1, 1), scores, -np.inf)
    shares = shares_of(scores)
    y = shares @ v
    y = y.swapaxes(1, 2).reshape(y.shape[0], queries, -1) if is_flat else y
    return [y, *present, [*stages, scores, shares][a.get("qk_matmul_output_mode", 0)]][: s.outputs]


def flexibly_attended(s, q, k, v):
    a, times = s.attributes, q.shape[1] // k.shape[1]
    k, v = np.repeat(k, times, 1), np.repeat(v, times, 1)

    def changed(name, x):
        return MODIFIERS[a[name].node[0].op_type](x) if name in a else x

    scores = changed("score_mod", q @ k.swapaxes(2, 3) * a.get("scale", 1 / math.sqrt(q.shape[3])))
    return changed("prob_mod", shares_of(scores)) @ v


def turned(s, x, cosine, sine, places=None):
    a, shape = s.attributes, x.shape
    x = split_heads(x, a.get("num_heads"))
    width = a.get("rotary_embedding_dim", 0) or x.shape[3]
    cosine, sine = ((t if places is None else t[places])[:, None] for t in (cosine, sine))
    part, rest = x[..., :width], x[..., width:]
    if a.get("interleaved"):
        first, second = part[..., ::2], part[..., 1::2]
    else:
        first, second = np.split(part, 2, -1)
    real, imaginary = cosine * first - sine * second, sine * first + cosine * second
    y = np.stack([real, imaginary], -1).reshape(part.shape) if a.get("interleaved") else \
        np.concatenate([real, imaginary], -1)  # fmt: skip
    y = np.concatenate([y, rest], -1)
    return y.swapaxes(1, 2).reshape(shape) if len(shape) == 3 else y


GENERATORS = {"Attention": attention, "FlexAttention": flex_attention, "RotaryEmbedding": rotary_embedding}
OWN = {
    "Attention": (PLAIN, attended),
    "FlexAttention": (PLAIN, flexibly_attended),
    "RotaryEmbedding": (PLAIN, turned),
}
