"""Networks for telephones: MobileNetV3-Large (Howard et al. 2019) and ShuffleNetV2 (Ma et al. 2018)."""

from tests.models.builder import ModelBuilder, scaled

# window, expanded, outputs, squeezed, hard swish, stride
V3_LARGE = (
    (3, 16, 16, False, False, 1), (3, 64, 24, False, False, 2), (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2), (5, 120, 40, True, False, 1), (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2), (3, 200, 80, False, True, 1), (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1), (3, 480, 112, True, True, 1), (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2), (5, 960, 160, True, True, 1), (5, 960, 160, True, True, 1),
)  # fmt: skip


def mobilenet_v3(batch="batch", height=64, width=48, seed=23, multiplier=0.5, classes=10):
    m = ModelBuilder("mobilenet_v3", seed)

    def conv_norm(x, inputs, outputs, window, activation=None, scale=1.0, **options):
        x = m.conv(x, inputs, outputs, window, pads=[window // 2] * 4, bias=False, **options)
        x = m.batch_norm(x, outputs, scale)
        return m.node(activation, x) if activation else x

    x = m.input("x", [batch, 3, height, width])
    channels = scaled(16, multiplier)
    x = conv_norm(x, 3, channels, 3, "HardSwish", stride=2)
    for window, expanded, outputs, squeezes, swish, stride in V3_LARGE:
        inner, outputs = scaled(expanded, multiplier), scaled(outputs, multiplier)
        activation = "HardSwish" if swish else "Relu"
        y = x if inner == channels else conv_norm(x, channels, inner, 1, activation)
        y = conv_norm(y, inner, inner, window, activation, stride=stride, group=inner)
        if squeezes:
            s = m.node("Relu", m.conv(m.node("GlobalAveragePool", y), inner, scaled(inner / 4, 1.0), 1))
            s = m.conv(s, scaled(inner / 4, 1.0), inner, 1)
            y = m.node("Mul", y, m.node("HardSigmoid", s, alpha=1 / 6, beta=0.5))
        residual = stride == 1 and channels == outputs
        y = conv_norm(y, inner, outputs, 1, scale=0.5 if residual else 1.6, gain=1.0)
        x = m.node("Add", x, y) if residual else y
        channels = outputs
    inner, head = scaled(960, multiplier), scaled(1280, multiplier)
    x = conv_norm(x, channels, inner, 1, "HardSwish")
    x = m.node("Flatten", m.node("GlobalAveragePool", x))
    x = m.node("HardSwish", m.gemm(x, inner, head, gain=4.0))
    m.output(m.gemm(x, head, classes, gain=2.0), "y", [batch, classes])
    return m.build()


def shufflenet_v2(
    batch="batch", height=64, width=48, seed=24, widths=(24, 48, 96, 192), depths=(2, 2, 2), head=128, classes=10
):
    """Half of the channels pass by, the others are convolved; then the halves are shuffled into one another."""
    m = ModelBuilder("shufflenet_v2", seed)

    def conv_norm(x, inputs, outputs, window, relu=True, **options):
        x = m.conv(x, inputs, outputs, window, pads=[window // 2] * 4, bias=False, **options)
        x = m.batch_norm(x, outputs)
        return m.node("Relu", x) if relu else x

    def shuffled(x, channels, rows, columns):
        x = m.node("Reshape", x, m.integers(0, 2, channels // 2, rows, columns))
        x = m.node("Transpose", x, perm=[0, 2, 1, 3, 4])
        return m.node("Reshape", x, m.integers(0, channels, rows, columns))

    x = m.input("x", [batch, 3, height, width])
    x = conv_norm(x, 3, widths[0], 3, stride=2)
    x = m.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    rows, columns = [((extent + 1) // 2 + 1) // 2 for extent in (height, width)]
    channels = widths[0]
    for outputs, depth in zip(widths[1:], depths, strict=True):
        half = outputs // 2
        for block in range(depth):
            if block == 0:
                rows, columns = (rows + 1) // 2, (columns + 1) // 2
                left = conv_norm(x, channels, channels, 3, relu=False, stride=2, group=channels)
                left = conv_norm(left, channels, half, 1)
                right, inputs = x, channels
            else:
                left, right = m.split(x, [half, half], axis=1)
                inputs = half
            right = conv_norm(right, inputs, half, 1)
            right = conv_norm(right, half, half, 3, relu=False, stride=2 if block == 0 else 1, group=half)
            right = conv_norm(right, half, half, 1)
            x = shuffled(m.node("Concat", left, right, axis=1), outputs, rows, columns)
            channels = outputs
    x = conv_norm(x, channels, head, 1)
    x = m.node("Flatten", m.node("GlobalAveragePool", x))
    m.output(m.gemm(x, head, classes, gain=2.0), "y", [batch, classes])
    return m.build()
