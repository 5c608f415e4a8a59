"""DeepLabv3 (Chen et al. 2017): pyramids of dilated windows, as far apart as an image is long, behind a backbone."""

from tests.models.builder import ModelBuilder


def deeplab(
    batch="batch", height=48, width=37, seed=33, widths=(8, 16, 24), depth=1, pyramid=12, rates=(6, 12, 18), classes=5
):
    """Input: [batch, 3, height, width]. Output: [batch, classes, height, width]."""
    m = ModelBuilder("deeplab", seed)

    def unit(x, inputs, outputs, kernel=3, stride=1, rate=1):
        around = kernel // 2 * rate
        weight = m.normal((outputs, inputs, kernel, kernel), (2.0 / (inputs * kernel * kernel)) ** 0.5)
        x = m.node("Conv", x, weight, kernel_shape=[kernel, kernel], strides=[stride, stride],
                   dilations=[rate, rate], pads=[around] * 4)  # fmt: skip
        return m.node("Relu", m.batch_norm(x, outputs))

    def resized(x, channels, rows, columns):
        size = m.integers(channels, rows, columns)
        sizes = m.node("Concat", m.extent(x, 0), size, axis=0)
        return m.node("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel")

    x, channels, rows, columns = m.input("x", [batch, 3, height, width]), 3, height, width
    for count in widths:
        x = unit(x, channels, count, stride=2)
        channels, rows, columns = count, (rows - 1) // 2 + 1, (columns - 1) // 2 + 1
        for _ in range(depth):
            x = m.node("Add", x, unit(unit(x, count, count), count, count))
    parts = [unit(x, channels, pyramid, kernel=1)]
    parts += [unit(x, channels, pyramid, rate=rate) for rate in rates]
    everywhere = unit(m.node("GlobalAveragePool", x), channels, pyramid, kernel=1)
    parts.append(resized(everywhere, pyramid, rows, columns))
    x = unit(m.node("Concat", *parts, axis=1), len(parts) * pyramid, pyramid, kernel=1)
    x = m.conv(x, pyramid, classes, 1, gain=1.0)
    m.output(resized(x, classes, height, width), "y", [batch, classes, height, width])
    return m.build()
