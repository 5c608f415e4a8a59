"""Networks of grouped convolutions: ResNeXt-50 32x4d (Xie et al. 2017) and RegNetY (Radosavovic et al. 2020)."""

from tests.models.builder import ModelBuilder, scaled


def _conv_norm(m, x, inputs, outputs, window, stride=1, group=1, scale=1.0, gain=2.0):
    pads = [window // 2] * 4
    x = m.conv(x, inputs, outputs, window, stride=stride, pads=pads, group=group, bias=False, gain=gain)
    return m.batch_norm(x, outputs, scale)


def _classes(m, x, channels, batch, classes):
    x = m.node("Flatten", m.node("GlobalAveragePool", x))
    m.output(m.gemm(x, channels, classes, gain=1.0), "y", [batch, classes])
    return m.build()


def resnext(batch="batch", height=64, width=48, seed=21, blocks=(1, 1, 1, 1), cardinality=8, base=4, classes=10):
    """Bottlenecks whose 3x3 convolution is of `cardinality` groups of `base` channels, doubled by each stage."""
    m = ModelBuilder("resnext", seed)
    x = m.input("x", [batch, 3, height, width])
    channels = 2 * cardinality * base // 4
    x = m.node("Relu", _conv_norm(m, x, 3, channels, 7, stride=2))
    x = m.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for stage, count in enumerate(blocks):
        inner = cardinality * base << stage
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            y = m.node("Relu", _conv_norm(m, x, channels, inner, 1))
            y = m.node("Relu", _conv_norm(m, y, inner, inner, 3, stride=stride, group=cardinality))
            y = _conv_norm(m, y, inner, 2 * inner, 1, scale=0.5)
            if channels != 2 * inner or stride != 1:
                x = _conv_norm(m, x, channels, 2 * inner, 1, stride=stride, gain=1.0)
            x = m.node("Relu", m.node("Add", y, x))
            channels = 2 * inner
    return _classes(m, x, channels, batch, classes)


def regnet(batch="batch", height=64, width=48, seed=22, widths=(16, 32), depths=(1, 2), group_width=8, classes=10):
    """RegNetY: groups of one width throughout, channels scaled by what their means say."""
    m = ModelBuilder("regnet", seed)
    x = m.input("x", [batch, 3, height, width])
    channels = scaled(32, 1.0)
    x = m.node("Relu", _conv_norm(m, x, 3, channels, 3, stride=2))
    for outputs, depth in zip(widths, depths, strict=True):
        for block in range(depth):
            stride = 2 if block == 0 else 1
            y = m.node("Relu", _conv_norm(m, x, channels, outputs, 1))
            y = m.node("Relu", _conv_norm(m, y, outputs, outputs, 3, stride=stride, group=outputs // group_width))
            squeezed = max(channels // 4, 1)
            s = m.node("Relu", m.conv(m.node("GlobalAveragePool", y), outputs, squeezed, 1))
            y = m.node("Mul", y, m.node("Sigmoid", m.conv(s, squeezed, outputs, 1)))
            y = _conv_norm(m, y, outputs, outputs, 1, scale=0.5)
            if channels != outputs or stride != 1:
                x = _conv_norm(m, x, channels, outputs, 1, stride=stride, gain=1.0)
            x = m.node("Relu", m.node("Add", y, x))
            channels = outputs
    return _classes(m, x, channels, batch, classes)
