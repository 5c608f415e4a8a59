"""GPT-2: a pre-norm decoder with causal attention and a cache of keys and values."""

import numpy as np
from onnx import TensorProto, helper

from tests.models.builder import ModelBuilder


def gpt2(batch=1, length=128, past=0, seed=8, features=768, heads=12, layers=12, words=50257, positions=1024):
    """Inputs: x, token ids [batch, length]; with `past` tokens before them, past_key_N and past_value_N
    [batch, heads, past, depth] for each layer. Outputs: y, logits [batch, length, words], and key_N and value_N
    [batch, heads, past + length, depth]. `past` may be a name, and then `length`, too."""
    m = ModelBuilder("gpt2", seed)
    depth = features // heads
    embedding = m.normal((words, features), 0.4)
    places = (0.2 * m.rng.standard_normal((positions, features))).astype(np.float32)
    any_past = isinstance(past, str)
    if any_past:
        first_cache = m.input("past_key_0", [batch, heads, past, depth])
        before = m.extent(first_cache, 2)
    if any_past and length != 1:
        tokens = m.input("x", [batch, length], TensorProto.INT64)
        behind = m.node("Add", before, m.extent(tokens, 1))
        positions, mask = m.counted(before, behind)
        place = m.node("Gather", m.weight(places), positions)
    elif any_past:
        place, mask = m.node("Gather", m.weight(places), before), None
        tokens = m.input("x", [batch, length], TensorProto.INT64)
    else:
        place = m.weight(places[past : past + length])
        tokens = m.input("x", [batch, length], TensorProto.INT64)
        mask = m.weight(np.triu(np.full((length, past + length), -1e9, np.float32), k=past + 1)) if length > 1 else None
    x = m.node("Add", m.node("Gather", embedding, tokens), place)
    caches = []

    def cached(value, kind, layer):
        if past:
            name = f"past_{kind}_{layer}"
            is_there = any_past and name == first_cache
            old = name if is_there else m.input(name, [batch, heads, past, depth])
            value = m.node("Concat", old, value, axis=2)
        caches.append((value, f"{kind}_{layer}"))
        return value

    def attention(x, layer):
        product = m.linear(x, features, 3 * features, gain=2.0)
        parts = [f"{product}_{part}" for part in ("query", "key", "value")]
        m.nodes.append(split(product, m.integers(features, features, features), parts))
        shape = m.integers(0, 0, heads, depth)
        query, key, value = (m.node("Transpose", m.node("Reshape", p, shape), perm=[0, 2, 1, 3]) for p in parts)
        key, value = cached(key, "key", layer), cached(value, "value", layer)
        scores = m.node("MatMul", query, m.node("Transpose", key, perm=[0, 1, 3, 2]))
        scores = m.node("Div", scores, m.scalar(np.sqrt(depth)))
        scores = m.node("Add", scores, mask) if mask else scores
        mixed = m.node("MatMul", m.node("Softmax", scores, axis=-1), value)
        mixed = m.node("Reshape", m.node("Transpose", mixed, perm=[0, 2, 1, 3]), m.integers(0, 0, features))
        return m.linear(mixed, features, features, gain=0.3)

    for layer in range(layers):
        x = m.node("Add", x, attention(m.layer_norm(x, features), layer))
        y = gelu_tanh(m, m.linear(m.layer_norm(x, features), features, 4 * features))
        x = m.node("Add", x, m.linear(y, 4 * features, features, gain=0.3))
    x = m.layer_norm(x, features)
    logits = m.node("MatMul", x, m.node("Transpose", embedding, perm=[1, 0]))
    m.output(logits, "y", [batch, length, words])
    for value, name in caches:
        m.output(value, name, [batch, heads, "all" if any_past else past + length, depth])
    return m.build()


def split(value, sizes, names):
    """A Split along the last axis into outputs of these names."""
    return helper.make_node("Split", [value, sizes], names, name=f"Split_{names[0]}", axis=-1)


def gelu_tanh(m, x):
    """The form that GPT-2's exporters write: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    cube = m.node("Mul", m.node("Pow", x, m.scalar(3.0)), m.scalar(0.044715))
    y = m.node("Tanh", m.node("Mul", m.node("Add", x, cube), m.scalar(np.sqrt(2.0 / np.pi))))
    return m.node("Mul", m.node("Mul", x, m.node("Add", y, m.scalar(1.0))), m.scalar(0.5))
