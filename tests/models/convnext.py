"""ConvNeXt (Liu et al. 2022): depthwise windows of seven, layer normalisation over channels, GELU, linear layers."""

from tests.models.builder import ModelBuilder
from tests.models.transformer import gelu


def convnext(batch="batch", height=64, width=64, seed=25, widths=(16, 32), depths=(1, 2), classes=10):
    m = ModelBuilder("convnext", seed)

    def norm_channels(x, channels):
        """As PyTorch's exporter writes it where the channels are first."""
        x = m.layer_norm(m.node("Transpose", x, perm=[0, 2, 3, 1]), channels)
        return m.node("Transpose", x, perm=[0, 3, 1, 2])

    x = m.input("x", [batch, 3, height, width])
    x = norm_channels(m.conv(x, 3, widths[0], 4, stride=4, pads=[0] * 4, gain=1.0), widths[0])
    channels = widths[0]
    for stage, (outputs, depth) in enumerate(zip(widths, depths, strict=True)):
        if stage > 0:
            x = norm_channels(x, channels)
            x = m.conv(x, channels, outputs, 2, stride=2, pads=[0] * 4, gain=1.0)
            channels = outputs
        for _ in range(depth):
            y = m.conv(x, channels, channels, 7, pads=[3] * 4, group=channels, gain=1.0)
            y = m.layer_norm(m.node("Transpose", y, perm=[0, 2, 3, 1]), channels)
            y = m.linear(gelu(m, m.linear(y, channels, 4 * channels)), 4 * channels, channels)
            y = m.node("Mul", m.uniform(channels, 0.3, 0.7), y)
            x = m.node("Add", x, m.node("Transpose", y, perm=[0, 3, 1, 2]))
    x = m.node("Flatten", m.node("GlobalAveragePool", x))
    m.output(m.gemm(m.layer_norm(x, channels), channels, classes, gain=1.0), "y", [batch, classes])
    return m.build()
