"""The digits-like network and the MLP."""

from tests.models.builder import ModelBuilder


def digits(batch="batch", height=11, width=8, seed=1):
    """Conv, BatchNormalization, Relu, MaxPool and Gemm as in examples/03-digits, with H unlike W and uneven pads."""
    m = ModelBuilder("digits", seed)
    x = m.input("x", [batch, 1, height, width])
    x = m.node("Relu", m.batch_norm(m.conv(x, 1, 16, 3, pads=[1, 0, 1, 2], bias=False), 16))
    x = m.node("MaxPool", x, kernel_shape=[2, 3], strides=[2, 1], pads=[0, 1, 1, 0])
    x = m.node("Relu", m.batch_norm(m.conv(x, 16, 32, 3, pads=[2, 1, 0, 1]), 32))
    x = m.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    rows = (height + 1 - 2) // 2 + 1
    features = 32 * (rows // 2) * ((width - 1) // 2)
    x = m.node("Flatten", x, axis=1)
    x = m.node("Relu", m.gemm(x, features, 64))
    m.output(m.gemm(x, 64, 10, gain=1.0), "y", [batch, 10])
    return m.build()


def mlp(batch="batch", features=67, hidden=(131, 64, 97), classes=13, seed=2):
    """Gemm, Relu and Tanh with sizes that no vector width divides."""
    m = ModelBuilder("mlp", seed)
    x, size = m.input("x", [batch, features]), features
    for index, width in enumerate(hidden):
        x = m.gemm(x, size, width, gain=2.0 if index % 2 == 0 else 1.0)
        x, size = m.node("Relu" if index % 2 == 0 else "Tanh", x), width
    m.output(m.node("Softmax", m.gemm(x, size, classes, gain=2.0), axis=-1), "y", [batch, classes])
    return m.build()
