"""U-Net: a ladder of convolutions down and up again, with transposed convolutions and resizing, and skips between."""

import numpy as np

from tests.models.builder import ModelBuilder, scaled


def unet(batch="batch", height=64, width=48, seed=10, multiplier=0.25, levels=3, classes=5):
    """Output: [batch, classes, height, width]; height and width are multiples of 2 ** levels."""
    m = ModelBuilder("unet", seed)

    def twice(x, inputs, outputs):
        for count in (inputs, outputs):
            x = m.node("Relu", m.batch_norm(m.conv(x, count, outputs, 3, bias=False), outputs))
        return x

    def up(x, inputs, outputs, level):
        """Doubled by a transposed convolution, or by interpolation and a convolution, level by level."""
        if level % 2:
            weight = m.normal((inputs, outputs, 3, 2), np.sqrt(1.0 / inputs))
            return m.node("ConvTranspose", x, weight, m.normal(outputs, 0.1), kernel_shape=[3, 2], strides=[2, 2],
                          pads=[0, 0, 1, 0])  # fmt: skip
        scales = m.weight(np.array([1, 1, 2, 2], np.float32))
        mode = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
        return m.conv(m.node("Resize", x, "", scales, **mode), inputs, outputs, 1, gain=1.0)

    widths = [scaled(64 * 2**level, multiplier) for level in range(levels + 1)]
    x = twice(m.input("x", [batch, 3, height, width]), 3, widths[0])
    skips = []
    for level in range(levels):
        skips.append(x)
        x = m.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x = twice(x, widths[level], widths[level + 1])
    for level in reversed(range(levels)):
        x = up(x, widths[level + 1], widths[level], level)
        x = twice(m.node("Concat", skips[level], x, axis=1), 2 * widths[level], widths[level])
    m.output(m.conv(x, widths[0], classes, 1, gain=1.0), "y", [batch, classes, height, width])
    return m.build()
