"""A vision transformer as exporters write one: patches by a convolution, a class token expanded over the batch."""

import numpy as np

from tests.models.builder import ModelBuilder
from tests.models.transformer import attention, gelu


def vit(batch="batch", height=64, width=48, seed=14, patch=16, features=48, heads=4, layers=3, inner=112, classes=10):
    m = ModelBuilder("vit", seed)
    x = m.input("x", [batch, 3, height, width])
    patches = (height // patch) * (width // patch)
    size = m.node("Slice", m.node("Shape", x), m.integers(0), m.integers(1))  # the batch
    x = m.conv(x, 3, features, patch, stride=patch, pads=[0, 0, 0, 0], gain=1.0)
    x = m.node("Transpose", m.node("Reshape", x, m.integers(0, features, patches)), perm=[0, 2, 1])
    whole = m.node("Concat", size, m.integers(1, features), axis=0)
    token = m.node("Expand", m.normal((1, 1, features), 0.5), whole)
    x = m.node("Concat", token, x, axis=1)
    x = m.node("Add", x, m.normal((1, patches + 1, features), 0.3))
    for _ in range(layers):
        x = m.node("Add", x, attention(m, m.layer_norm(x, features), features, heads))
        y = m.linear(m.layer_norm(x, features), features, inner)
        x = m.node("Add", x, m.linear(gelu(m, y), inner, features))
    token = m.node("Gather", m.layer_norm(x, features), m.weight(np.int64(0)), axis=1)
    m.output(m.gemm(token, features, classes), "y", [batch, classes])
    return m.build()
