"""A decoder as the LLaMA family has them (Touvron et al. 2023): root-mean-square normalisation, rotary positions,
attention of which several heads share their keys and values, a gated SiLU; written as PyTorch's exporter does."""

import numpy as np
from onnx import TensorProto

from tests.models.builder import ModelBuilder


def llama(batch=1, length=19, past=0, seed=27, features=48, heads=4, shared=2, layers=2, inner=112, words=51,
          positions=64):  # fmt: skip
    """Inputs: x, token ids [batch, length]; with `past` tokens before them, past_key_N and past_value_N
    [batch, heads / shared, past, depth] for each layer. Outputs: y, logits [batch, length, words], and key_N and
    value_N [batch, heads / shared, past + length, depth]. `shared` heads read one key and one value. `past` and
    `length` may both be names; there are `positions` then."""
    m = ModelBuilder("llama", seed)
    depth, kept = features // heads, heads // shared
    tokens = m.input("x", [batch, length], TensorProto.INT64)
    x = m.node("Gather", m.normal((words, features), 0.7), tokens)
    any_past = isinstance(past, str)
    places = np.arange(positions) if any_past else np.arange(past, past + length)
    angles = np.outer(places, 10000.0 ** (-np.arange(0, depth, 2) / depth))
    angles = np.concatenate([angles, angles], axis=-1).astype(np.float32)
    cosines, sines = m.weight(np.cos(angles)), m.weight(np.sin(angles))
    if any_past:
        first_cache = m.input("past_key_0", [batch, kept, past, depth])
        before = m.extent(first_cache, 2)
        rows, mask = m.counted(before, m.node("Add", before, m.extent(tokens, 1)))
        cosines, sines = m.node("Gather", cosines, rows), m.node("Gather", sines, rows)
    else:
        mask = m.weight(np.triu(np.full((length, past + length), -1e9, np.float32), k=past + 1)) if length > 1 else None
    caches = []

    def linear(value, inputs, outputs, gain=1.0):
        return m.node("MatMul", value, m.normal((inputs, outputs), np.sqrt(gain / inputs)))

    def norm(value):
        mean = m.node("ReduceMean", m.node("Pow", value, m.scalar(2.0)), axes=[-1], keepdims=1)
        scale = m.node("Reciprocal", m.node("Sqrt", m.node("Add", mean, m.scalar(1e-6))))
        return m.node("Mul", m.uniform(features, 0.7, 1.3), m.node("Mul", value, scale))

    def split_heads(value, count):
        value = m.node("Reshape", value, m.integers(0, 0, count, depth))
        return m.node("Transpose", value, perm=[0, 2, 1, 3])

    def turned(value):
        first = m.node("Slice", value, m.integers(0), m.integers(depth // 2), m.integers(3))
        second = m.node("Slice", value, m.integers(depth // 2), m.integers(depth), m.integers(3))
        half = m.node("Concat", m.node("Neg", second), first, axis=-1)
        return m.node("Add", m.node("Mul", value, cosines), m.node("Mul", half, sines))

    def cached(value, name):
        if past:
            is_there = any_past and f"past_{name}" == first_cache
            old = first_cache if is_there else m.input(f"past_{name}", [batch, kept, past, depth])
            value = m.node("Concat", old, value, axis=2)
        caches.append((value, name))
        return value

    def repeated(value):
        value = m.node("Unsqueeze", value, m.integers(2))
        if any_past:
            value = m.node("Expand", value, m.integers(1, 1, shared, 1, 1))
            return m.node("Reshape", value, m.integers(0, heads, -1, depth))
        value = m.node("Expand", value, m.integers(batch, kept, shared, past + length, depth))
        return m.node("Reshape", value, m.integers(batch, heads, past + length, depth))

    for layer in range(layers):
        y = norm(x)
        query = turned(split_heads(linear(y, features, features, 2.0), heads))
        key = cached(turned(split_heads(linear(y, features, kept * depth, 2.0), kept)), f"key_{layer}")
        value = cached(split_heads(linear(y, features, kept * depth), kept), f"value_{layer}")
        scores = m.node("MatMul", query, m.node("Transpose", repeated(key), perm=[0, 1, 3, 2]))
        scores = m.node("Mul", scores, m.scalar(1 / np.sqrt(depth)))
        scores = m.node("Add", scores, mask) if mask else scores
        mixed = m.node("MatMul", m.node("Softmax", scores, axis=-1), repeated(value))
        mixed = m.node("Reshape", m.node("Transpose", mixed, perm=[0, 2, 1, 3]), m.integers(0, 0, features))
        x = m.node("Add", x, linear(mixed, features, features, 0.5))
        y = norm(x)
        gate = linear(y, features, inner, 2.0)
        y = m.node("Mul", m.node("Mul", gate, m.node("Sigmoid", gate)), linear(y, features, inner))
        x = m.node("Add", x, linear(y, inner, features, 0.5))
    m.output(linear(norm(x), features, words), "y", [batch, length, words])
    for value, name in caches:
        m.output(value, name, [batch, kept, "all" if any_past else past + length, depth])
    return m.build()
