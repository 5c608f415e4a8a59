"""ResNet-50 v1.5: bottlenecks with the stride on the 3x3 convolution."""

from tests.models.builder import ModelBuilder, scaled

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))


def resnet50(batch="batch", height=64, width=48, seed=3, multiplier=1.0, classes=1000):
    m = ModelBuilder("resnet50", seed)
    x = m.input("x", [batch, 3, height, width])
    channels = scaled(64, multiplier)
    x = m.conv(x, 3, channels, 7, stride=2, pads=[3, 2, 2, 3], bias=False)
    x = m.node("Relu", m.batch_norm(x, channels))
    x = m.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 0, 0, 1])
    for stage, (base, blocks) in enumerate(STAGES):
        for block in range(blocks):
            inner = scaled(base, multiplier)
            stride = 2 if stage > 0 and block == 0 else 1
            x = bottleneck(m, x, channels, inner, stride)
            channels = 4 * inner
    x = m.node("Flatten", m.node("GlobalAveragePool", x))
    m.output(m.gemm(x, channels, classes, gain=1.0), "y", [batch, classes])
    return m.build()


def bottleneck(m, x, inputs, inner, stride):
    outputs = 4 * inner
    y = m.node("Relu", m.batch_norm(m.conv(x, inputs, inner, 1, bias=False), inner))
    pads = [1, 0, 0, 1] if stride == 2 else [1, 1, 1, 1]
    y = m.conv(y, inner, inner, 3, stride=stride, pads=pads, bias=False)
    y = m.node("Relu", m.batch_norm(y, inner))
    y = m.batch_norm(m.conv(y, inner, outputs, 1, bias=False), outputs, scale=0.5)
    if inputs != outputs or stride != 1:
        # The shortcut's gain is 1: nothing is rectified between it and the sum.
        x = m.batch_norm(m.conv(x, inputs, outputs, 1, stride=stride, bias=False, gain=1.0), outputs)
    return m.node("Relu", m.node("Add", y, x))
