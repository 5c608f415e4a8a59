"""SegFormer (Xie et al. 2021): a transformer over pixels, with depthwise convolutions between its layers. Keys and
values are one product, as in LeViT (Graham et al. 2021)."""

import numpy as np

from tests.models.builder import ModelBuilder
from tests.models.transformer import gelu


def segformer(
    batch="batch", height=50, width=37, seed=37, widths=(16, 24), heads=(1, 2), depths=(1, 2), reductions=(3, 1),
    growth=2, decoder=20, classes=5,
):  # fmt: skip
    """Input: [batch, 3, height, width]. Output: [batch, classes, rows, columns] of the first stage. `widths`, `heads`,
    `depths` and `reductions` (how many pixels of each axis one key stands for) by stage."""
    m = ModelBuilder("segformer", seed)

    def tokens_of(x, features):  # from [batch, features, rows, columns]
        return m.node("Transpose", m.node("Reshape", x, m.integers(0, features, -1)), perm=[0, 2, 1])

    def image_of(x, features, rows, columns):
        return m.node("Reshape", m.node("Transpose", x, perm=[0, 2, 1]), m.integers(0, features, rows, columns))

    def by_head(x, count, size):
        return m.node("Reshape", x, m.integers(0, -1, count, size))

    def attention(x, features, count, reduction, rows, columns):
        size = features // count
        queries = m.node("Transpose", by_head(m.linear(x, features, features), count, size), perm=[0, 2, 1, 3])
        if reduction > 1:
            few = m.conv(image_of(x, features, rows, columns), features, features, reduction, stride=reduction,
                         pads=[0] * 4, gain=1.0)  # fmt: skip
            x = m.layer_norm(tokens_of(few, features), features)
        both = by_head(m.linear(x, features, 2 * features), count, 2 * size)
        keys, values = m.split(both, [size, size], axis=3)
        keys = m.node("Transpose", keys, perm=[0, 2, 3, 1])
        values = m.node("Transpose", values, perm=[0, 2, 1, 3])
        scores = m.node("Mul", m.node("MatMul", queries, keys), m.scalar(1 / np.sqrt(size)))
        mixed = m.node("MatMul", m.node("Softmax", scores, axis=-1), values)
        mixed = m.node("Reshape", m.node("Transpose", mixed, perm=[0, 2, 1, 3]), m.integers(0, -1, features))
        return m.linear(mixed, features, features)

    def mixed_pixels(x, features, rows, columns):
        inner = growth * features
        x = image_of(m.linear(x, features, inner), inner, rows, columns)
        x = m.conv(x, inner, inner, 3, group=inner, gain=1.0)
        return m.linear(gelu(m, tokens_of(x, inner)), inner, features)

    x, channels, rows, columns, parts = m.input("x", [batch, 3, height, width]), 3, height, width, []
    for stage, features in enumerate(widths):
        kernel, stride = (7, 4) if stage == 0 else (3, 2)
        x = m.conv(x, channels, features, kernel, stride=stride, pads=[kernel // 2] * 4, gain=1.0)
        channels, rows, columns = features, (rows - 1) // stride + 1, (columns - 1) // stride + 1
        x = m.layer_norm(tokens_of(x, features), features)
        for _ in range(depths[stage]):
            normal = m.layer_norm(x, features)
            x = m.node("Add", x, attention(normal, features, heads[stage], reductions[stage], rows, columns))
            x = m.node("Add", x, mixed_pixels(m.layer_norm(x, features), features, rows, columns))
        x = m.layer_norm(x, features)
        part = image_of(m.linear(x, features, decoder), decoder, rows, columns)
        x = image_of(x, features, rows, columns)
        if stage == 0:
            first = (rows, columns)
        else:
            sizes = m.node("Concat", m.extent(part, 0), m.integers(decoder, *first), axis=0)
            part = m.node("Resize", part, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel")
        parts.append(part)
    x = m.conv(m.node("Concat", *parts, axis=1), len(parts) * decoder, decoder, 1, bias=False)
    x = m.node("Relu", m.batch_norm(x, decoder))
    m.output(m.conv(x, decoder, classes, 1, gain=1.0), "y", [batch, classes, *first])
    return m.build()
