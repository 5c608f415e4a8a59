"""wav2vec 2.0 (Baevski et al. 2020): 1-D convolutions over sound, a grouped one for positions, encoders."""

import numpy as np

from tests.models.builder import ModelBuilder
from tests.models.transformer import attention, gelu


def wav2vec(
    batch="batch", length=470, seed=31, windows=((10, 5), (3, 2), (2, 2)), channels=24, features=40, heads=4, taps=16,
    groups=5, layers=1, inner=64, classes=9,
):  # fmt: skip
    """Input: [batch, 1, length]. `windows`: (taps, stride) of the convolutions over it.
    Output: [batch, frames, classes]."""
    m = ModelBuilder("wav2vec", seed)

    def conv(x, inputs, outputs, window, stride=1, pads=(0, 0), group=1):
        weight = m.normal((outputs, inputs // group, window), np.sqrt(2.0 / (inputs // group * window)))
        return m.node("Conv", x, weight, m.normal(outputs, 0.1), kernel_shape=[window], strides=[stride],
                      pads=list(pads), group=group)  # fmt: skip

    def turned(x):
        return m.node("Transpose", x, perm=[0, 2, 1])

    x, count = m.input("x", [batch, 1, length]), 1
    for window, stride in windows:
        x = turned(m.layer_norm(turned(conv(x, count, channels, window, stride)), channels))
        x, count = gelu(m, x), channels
    x = m.linear(m.layer_norm(turned(x), channels), channels, features)
    places = conv(turned(x), features, features, taps, pads=(taps // 2, taps - 1 - taps // 2), group=groups)
    x = m.layer_norm(m.node("Add", x, turned(gelu(m, places))), features)
    for _ in range(layers):
        x = m.layer_norm(m.node("Add", x, attention(m, x, features, heads)), features)
        y = m.linear(gelu(m, m.linear(x, features, inner)), inner, features)
        x = m.layer_norm(m.node("Add", x, y), features)
    frames = length
    for window, stride in windows:
        frames = (frames - window) // stride + 1
    m.output(m.linear(x, features, classes), "y", [batch, frames, classes])
    return m.build()
