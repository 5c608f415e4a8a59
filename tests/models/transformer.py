"""A small pre-norm transformer encoder as exporters write one: attention from MatMul and Softmax, Gelu by Erf."""

import numpy as np

from tests.models.builder import ModelBuilder


def transformer(
    batch="batch", length=19, seed=6, features=48, heads=4, layers=2, inner=112, classes=10, fused_gelu=False
):
    """`fused_gelu` uses the Gelu operator (opset 20) in place of Erf. `length` may be symbolic."""
    m = ModelBuilder("transformer", seed, opset=20 if fused_gelu else 17)
    x = m.input("x", [batch, length, features])
    for _ in range(layers):
        x = m.node("Add", x, attention(m, m.layer_norm(x, features), features, heads))
        y = m.linear(m.layer_norm(x, features), features, inner)
        y = m.node("Gelu", y) if fused_gelu else gelu(m, y)
        x = m.node("Add", x, m.linear(y, inner, features))
    x = m.layer_norm(x, features)
    m.output(m.linear(x, features, classes), "y", [batch, length, classes])
    return m.build()


def attention(m, x, features, heads):
    depth = features // heads

    def split_heads(value, order):
        value = m.node("Reshape", value, m.integers(0, 0, heads, depth))
        return m.node("Transpose", value, perm=order)

    query = split_heads(m.linear(x, features, features, gain=2.0), [0, 2, 1, 3])
    key = split_heads(m.linear(x, features, features, gain=2.0), [0, 2, 3, 1])
    value = split_heads(m.linear(x, features, features), [0, 2, 1, 3])
    scores = m.node("Div", m.node("MatMul", query, key), m.scalar(np.sqrt(depth)))
    mixed = m.node("MatMul", m.node("Softmax", scores, axis=-1), value)
    mixed = m.node("Reshape", m.node("Transpose", mixed, perm=[0, 2, 1, 3]), m.integers(0, 0, features))
    return m.linear(mixed, features, features)


def gelu(m, x):
    y = m.node("Erf", m.node("Div", x, m.scalar(np.sqrt(2.0))))
    y = m.node("Mul", x, m.node("Add", y, m.scalar(1.0)))
    return m.node("Mul", y, m.scalar(0.5))
