"""SqueezeNet 1.1: fire modules (a 1x1 squeeze, then 1x1 and 3x3 side by side, concatenated)."""

from tests.models.builder import ModelBuilder, scaled

# squeeze, expand; None is a pool
LAYERS = ((16, 64), (16, 64), None, (32, 128), (32, 128), None, (48, 192), (48, 192), (64, 256), (64, 256))


def squeezenet(batch="batch", height=64, width=48, seed=5, multiplier=1.0, classes=1000):
    m = ModelBuilder("squeezenet", seed)

    def conv_relu(x, inputs, outputs, kernel, **options):
        return m.node("Relu", m.conv(x, inputs, outputs, kernel, **options))

    def pool(x):
        return m.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1], ceil_mode=0)

    channels = scaled(64, multiplier)
    x = m.input("x", [batch, 3, height, width])
    x = pool(conv_relu(x, 3, channels, 3, stride=2, pads=[1, 0, 0, 1]))
    for layer in LAYERS:
        if layer is None:
            x = pool(x)
            continue
        squeeze, expand = scaled(layer[0], multiplier), scaled(layer[1], multiplier)
        s = conv_relu(x, channels, squeeze, 1)
        x = m.node("Concat", conv_relu(s, squeeze, expand, 1), conv_relu(s, squeeze, expand, 3), axis=1)
        channels = 2 * expand
    x = m.node("Dropout", x)
    x = m.node("Relu", m.conv(x, channels, classes, 1))
    m.output(m.node("Flatten", m.node("GlobalAveragePool", x)), "y", [batch, classes])
    return m.build()
