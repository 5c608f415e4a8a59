"""EfficientNet-like: inverted residuals with SiLU and squeeze-and-excitation, windows of three and of five."""

from tests.models.builder import ModelBuilder, scaled

# expansion, channels, blocks, stride of the first block, window
STAGES = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)  # fmt: skip


def efficientnet(batch="batch", height=64, width=48, seed=9, multiplier=0.5, classes=100):
    m = ModelBuilder("efficientnet", seed)

    def silu(x):
        return m.node("Mul", x, m.node("Sigmoid", x))

    def conv_norm(x, inputs, outputs, window, scale=1.1, **options):
        return m.batch_norm(m.conv(x, inputs, outputs, window, bias=False, **options), outputs, scale)

    def excite(x, channels, squeezed):
        """Channels scaled by what their means say."""
        y = silu(m.conv(m.node("GlobalAveragePool", x), channels, squeezed, 1))
        return m.node("Mul", x, m.node("Sigmoid", m.conv(y, squeezed, channels, 1)))

    channels = scaled(32, multiplier)
    x = m.input("x", [batch, 3, height, width])
    x = silu(conv_norm(x, 3, channels, 3, stride=2, pads=[0, 0, 1, 1]))
    for expansion, base, blocks, first_stride, window in STAGES:
        outputs = scaled(base, multiplier)
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            inner, y = channels * expansion, x
            if expansion != 1:
                y = silu(conv_norm(y, channels, inner, 1))
            pads = [window // 2 - 1, window // 2, window // 2, window // 2 - 1] if stride == 2 else None
            y = silu(conv_norm(y, inner, inner, window, stride=stride, pads=pads, group=inner))
            y = excite(y, inner, max(1, channels // 4))
            residual = stride == 1 and channels == outputs
            y = conv_norm(y, inner, outputs, 1, gain=1.0, scale=0.5 if residual else 1.6)
            x = m.node("Add", y, x) if residual else y
            channels = outputs
    head = scaled(1280, multiplier)
    x = silu(conv_norm(x, channels, head, 1))
    x = m.node("Flatten", m.node("GlobalAveragePool", x))
    m.output(m.gemm(x, head, classes, gain=4.0), "y", [batch, classes])
    return m.build()
