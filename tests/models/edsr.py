"""EDSR (Lim et al. 2017, "Enhanced Deep Residual Networks for Single Image Super-Resolution"): residual blocks without
normalisation, channels that become pixels, and a convolution to three channels."""

from tests.models.builder import ModelBuilder


def edsr(batch="batch", height=20, width=13, seed=11, features=32, blocks=2, scale=2):
    """Output: [batch, 3, scale * height, scale * width]."""
    m = ModelBuilder("edsr", seed)
    first = x = m.conv(m.input("x", [batch, 3, height, width]), 3, features, 3, gain=1.0)
    for _ in range(blocks):
        inner = m.node("Relu", m.conv(x, features, features, 3))
        x = m.node("Add", x, m.node("Mul", m.conv(inner, features, features, 3, gain=1.0), m.scalar(0.5)))
    x = m.node("Add", m.conv(x, features, features, 3, gain=1.0), first)
    x = m.conv(x, features, features * scale * scale, 3, gain=1.0)
    x = m.node("DepthToSpace", x, blocksize=scale, mode="CRD")
    m.output(m.conv(x, features, 3, 3, gain=1.0), "y", [batch, 3, scale * height, scale * width])
    return m.build()
