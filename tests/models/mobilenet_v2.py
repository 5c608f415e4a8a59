"""MobileNetV2: inverted residuals, depthwise convolutions, Clip(0, 6), linear bottlenecks."""

from tests.models.builder import ModelBuilder, scaled

# expansion, channels, blocks, stride of the first block
STAGES = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


def mobilenet_v2(batch="batch", height=64, width=48, seed=4, multiplier=1.0, classes=1000):
    m = ModelBuilder("mobilenet_v2", seed)
    zero, six = m.scalar(0.0), m.scalar(6.0)

    def conv_norm(x, inputs, outputs, kernel, *, clip=True, scale=1.0, **options):
        x = m.conv(x, inputs, outputs, kernel, bias=False, gain=2.0 if clip else 1.0, **options)
        x = m.batch_norm(x, outputs, scale)
        return m.node("Clip", x, zero, six) if clip else x

    channels = scaled(32, multiplier)
    x = m.input("x", [batch, 3, height, width])
    x = conv_norm(x, 3, channels, 3, stride=2, pads=[0, 1, 1, 0])
    for expansion, base, blocks, first_stride in STAGES:
        outputs = scaled(base, multiplier)
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            inner, y = channels * expansion, x
            if expansion != 1:
                y = conv_norm(y, channels, inner, 1)
            pads = [0, 1, 1, 0] if stride == 2 else [1, 1, 1, 1]
            y = conv_norm(y, inner, inner, 3, stride=stride, pads=pads, group=inner)
            residual = stride == 1 and channels == outputs
            y = conv_norm(y, inner, outputs, 1, clip=False, scale=0.7 if residual else 1.4)
            x = m.node("Add", y, x) if residual else y
            channels = outputs
    last = scaled(1280, max(multiplier, 1.0)) if multiplier >= 1 else scaled(1280, multiplier)
    x = conv_norm(x, channels, last, 1)
    x = m.node("Flatten", m.node("GlobalAveragePool", x))
    m.output(m.gemm(x, last, classes, gain=1.0), "y", [batch, classes])
    return m.build()
