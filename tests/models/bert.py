"""BERT: a post-norm encoder over token, position and segment embeddings, as exporters write one."""

import numpy as np
from onnx import TensorProto

from tests.models.builder import ModelBuilder
from tests.models.transformer import gelu


def bert(batch="batch", length=128, seed=7, features=768, heads=12, layers=12, inner=3072, words=30522,
         positions=512):  # fmt: skip
    """Inputs: x, token ids [batch, length]; mask, 1 where a token counts [batch, length].

    The output is y [batch, length, features]. A length that is a name may be up to `positions`.
    """
    m = ModelBuilder("bert", seed)
    ids = m.input("x", [batch, length], TensorProto.INT64)
    mask = m.input("mask", [batch, length], TensorProto.INT64)
    tokens = m.node("Gather", m.normal((words, features), 0.6), ids)
    if isinstance(length, str):
        place = m.first_rows(m.normal((positions, features), 0.3), m.extent(ids, 1))
    else:
        place = m.normal((length, features), 0.3)
    x = m.node("Add", m.node("Add", tokens, place), m.normal((1, features), 0.3))
    x = m.layer_norm(x, features)
    kept = m.node("Cast", m.node("Unsqueeze", mask, m.integers(1, 2)), to=TensorProto.FLOAT)
    bias = m.node("Mul", m.node("Sub", m.scalar(1.0), kept), m.scalar(-10000.0))
    for _ in range(layers):
        x = m.layer_norm(m.node("Add", x, attention(m, x, bias, features, heads)), features)
        y = m.linear(gelu(m, m.linear(x, features, inner)), inner, features)
        x = m.layer_norm(m.node("Add", x, y), features)
    m.output(x, "y", [batch, length, features])
    return m.build()


def attention(m, x, bias, features, heads):
    depth = features // heads

    def split_heads(order):
        value = m.node("Reshape", m.linear(x, features, features, gain=2.0), m.integers(0, 0, heads, depth))
        return m.node("Transpose", value, perm=order)

    query, key, value = split_heads([0, 2, 1, 3]), split_heads([0, 2, 3, 1]), split_heads([0, 2, 1, 3])
    scores = m.node("Div", m.node("MatMul", query, key), m.scalar(np.sqrt(depth)))
    mixed = m.node("MatMul", m.node("Softmax", m.node("Add", scores, bias), axis=-1), value)
    mixed = m.node("Reshape", m.node("Transpose", mixed, perm=[0, 2, 1, 3]), m.integers(0, 0, features))
    return m.linear(mixed, features, features)
