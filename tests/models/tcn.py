"""A temporal convolutional network: causal 1-D convolutions whose dilation doubles, with residuals."""

import numpy as np

from tests.models.builder import ModelBuilder


def tcn(batch="batch", length=61, seed=13, inputs=3, channels=(25, 25, 30, 30), window=3, classes=7):
    """Input: [batch, inputs, length], the length may be symbolic. Output: [batch, classes, length]."""
    m = ModelBuilder("tcn", seed)

    def causal(x, count, outputs, dilation):
        weight = m.normal((outputs, count, window), np.sqrt(2.0 / (count * window)))
        return m.node("Conv", x, weight, m.normal(outputs, 0.1), kernel_shape=[window], dilations=[dilation],
                      pads=[(window - 1) * dilation, 0])  # fmt: skip

    def pointwise(x, count, outputs):
        return m.node("Conv", x, m.normal((outputs, count, 1), np.sqrt(1.0 / count)), m.normal(outputs, 0.1))

    x, count = m.input("x", [batch, inputs, length]), inputs
    for level, outputs in enumerate(channels):
        y = m.node("Relu", causal(x, count, outputs, 2**level))
        y = m.node("Relu", causal(y, outputs, outputs, 2**level))
        x = m.node("Relu", m.node("Add", y, x if count == outputs else pointwise(x, count, outputs)))
        count = outputs
    m.output(pointwise(x, count, classes), "y", [batch, classes, length])
    return m.build()
