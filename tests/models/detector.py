"""A detector as the YOLO family has them: cross-stage blocks with SiLU, pooling of one image at several sizes, maps
that are enlarged and joined on the way up, and boxes read from three scales."""

import numpy as np

from tests.models.builder import ModelBuilder, scaled


def detector(batch="batch", height=64, width=96, seed=26, multiplier=0.25, depth=1, classes=5):
    m = ModelBuilder("detector", seed)

    def conv(x, inputs, outputs, window=1, stride=1):
        x = m.conv(x, inputs, outputs, window, stride=stride, pads=[window // 2] * 4)
        return m.node("Mul", x, m.node("Sigmoid", x))

    def stage(x, inputs, outputs, count, residual=True):
        """Half of the channels through `count` bottlenecks; each one's result is kept and joined."""
        half = outputs // 2
        parts = m.split(conv(x, inputs, outputs), [half, half], axis=1)
        for _ in range(count):
            y = conv(conv(parts[-1], half, half, 3), half, half, 3)
            parts.append(m.node("Add", parts[-1], y) if residual else y)
        return conv(m.node("Concat", *parts, axis=1), (2 + count) * half, outputs)

    def enlarged(x):
        scales = m.weight(np.array([1, 1, 2, 2], np.float32))
        return m.node("Resize", x, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric",
                      nearest_mode="floor")  # fmt: skip

    c = [scaled(base, multiplier) for base in (64, 128, 256, 512, 1024)]
    x = m.input("x", [batch, 3, height, width])
    x = conv(conv(x, 3, c[0], 3, 2), c[0], c[1], 3, 2)
    x = stage(x, c[1], c[1], depth)
    p3 = stage(conv(x, c[1], c[2], 3, 2), c[2], c[2], 2 * depth)
    p4 = stage(conv(p3, c[2], c[3], 3, 2), c[3], c[3], 2 * depth)
    x = stage(conv(p4, c[3], c[4], 3, 2), c[4], c[4], depth)
    pooled = [conv(x, c[4], c[4] // 2)]
    for _ in range(3):
        pooled.append(m.node("MaxPool", pooled[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2]))
    p5 = conv(m.node("Concat", *pooled, axis=1), 2 * c[4], c[4])
    up4 = stage(m.node("Concat", enlarged(p5), p4, axis=1), c[4] + c[3], c[3], depth, False)
    up3 = stage(m.node("Concat", enlarged(up4), p3, axis=1), c[3] + c[2], c[2], depth, False)
    down4 = stage(m.node("Concat", conv(up3, c[2], c[2], 3, 2), up4, axis=1), c[2] + c[3], c[3], depth, False)
    down5 = stage(m.node("Concat", conv(down4, c[3], c[3], 3, 2), p5, axis=1), c[3] + c[4], c[4], depth, False)
    found, count = [], 0
    for x, channels, shrink in ((up3, c[2], 8), (down4, c[3], 16), (down5, c[4], 32)):
        boxes = m.conv(conv(x, channels, c[2], 3), c[2], 4, 1, gain=1.0)
        kinds = m.node("Sigmoid", m.conv(conv(x, channels, c[2], 3), c[2], classes, 1, gain=1.0))
        cells = (height // shrink) * (width // shrink)
        found.append(m.node("Reshape", m.node("Concat", boxes, kinds, axis=1), m.integers(0, 4 + classes, cells)))
        count += cells
    x = m.node("Transpose", m.node("Concat", *found, axis=2), perm=[0, 2, 1])
    m.output(x, "y", [batch, count, 4 + classes])
    return m.build()
