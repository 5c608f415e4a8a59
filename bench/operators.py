"""Lines of one operator, or of a few that belong together: GROUPS has for each group a generator of (name, make)."""

from functools import partial

import numpy as np

from tests.models.builder import ModelBuilder

# m, k, n: square, skinny, matrix-vector, and sizes that no vector width divides.
PRODUCTS = [
    (64, 64, 64), (128, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048),
    (1, 768, 768), (1, 1024, 4096), (1, 4096, 1024), (4, 1024, 1024), (8, 768, 3072), (16, 1024, 1024),
    (16, 768, 3072), (32, 512, 2048), (128, 768, 768), (128, 768, 3072), (128, 3072, 768), (512, 64, 512),
    (4096, 64, 64), (64, 4096, 64), (3136, 64, 256), (49, 2048, 512), (97, 101, 103), (513, 257, 129),
    (1000, 1000, 1000), (255, 1023, 511),
]  # fmt: skip

# name, batch, channels, height, width, outputs, kernel, stride, dilation, group; ResNet-50's, MobileNetV2's, odd ones.
CONVOLUTIONS = [
    ("resnet-7x7s2", 1, 3, 224, 224, 64, 7, 2, 1, 1),
    ("resnet-1x1-56-64to64", 1, 64, 56, 56, 64, 1, 1, 1, 1),
    ("resnet-1x1-56-64to256", 1, 64, 56, 56, 256, 1, 1, 1, 1),
    ("resnet-1x1-56-256to64", 1, 256, 56, 56, 64, 1, 1, 1, 1),
    ("resnet-3x3-56-64", 1, 64, 56, 56, 64, 3, 1, 1, 1),
    ("resnet-3x3s2-56-128", 1, 128, 56, 56, 128, 3, 2, 1, 1),
    ("resnet-3x3-28-128", 1, 128, 28, 28, 128, 3, 1, 1, 1),
    ("resnet-1x1-28-128to512", 1, 128, 28, 28, 512, 1, 1, 1, 1),
    ("resnet-3x3-14-256", 1, 256, 14, 14, 256, 3, 1, 1, 1),
    ("resnet-1x1-14-1024to256", 1, 1024, 14, 14, 256, 1, 1, 1, 1),
    ("resnet-3x3-7-512", 1, 512, 7, 7, 512, 3, 1, 1, 1),
    ("resnet-1x1-7-512to2048", 1, 512, 7, 7, 2048, 1, 1, 1, 1),
    ("mobilenet-3x3s2-224", 1, 3, 224, 224, 32, 3, 2, 1, 1),
    ("mobilenet-dw3x3-112-32", 1, 32, 112, 112, 32, 3, 1, 1, 32),
    ("mobilenet-dw3x3s2-112-96", 1, 96, 112, 112, 96, 3, 2, 1, 96),
    ("mobilenet-dw3x3-14-384", 1, 384, 14, 14, 384, 3, 1, 1, 384),
    ("mobilenet-1x1-14-384to64", 1, 384, 14, 14, 64, 1, 1, 1, 1),
    ("mobilenet-1x1-7-320to1280", 1, 320, 7, 7, 1280, 1, 1, 1, 1),
    ("odd-dilated", 1, 48, 37, 41, 64, 3, 1, 2, 1),
    ("odd-grouped4", 2, 64, 29, 31, 96, 3, 1, 1, 4),
    ("odd-5x5s3", 1, 32, 61, 67, 48, 5, 3, 1, 1),
    ("odd-1x7", 1, 64, 17, 19, 80, (1, 7), 1, 1, 1),
    ("odd-narrow", 1, 5, 64, 96, 7, 3, 1, 1, 1),
]  # fmt: skip


def product(m, k, n, constant):
    builder = ModelBuilder("product", seed=m + 3 * k + 7 * n)
    a = builder.input("a", [m, k])
    b = builder.normal((k, n), np.sqrt(1 / k)) if constant else builder.input("b", [k, n])
    builder.output(builder.node("MatMul", a, b), "y", [m, n])
    return builder.build()


def transposed_product(m, k, n, transA, transB):
    builder = ModelBuilder("gemm", seed=m + 3 * k + 7 * n)
    a = builder.input("a", [k, m] if transA else [m, k])
    b = builder.normal((n, k) if transB else (k, n), np.sqrt(1 / k))
    builder.output(builder.node("Gemm", a, b, transA=transA, transB=transB), "y", [m, n])
    return builder.build()


def batched_product(batch, m, k, n):
    builder = ModelBuilder("batched", seed=m)
    a, b = builder.input("a", [batch, m, k]), builder.input("b", [batch, k, n])
    builder.output(builder.node("MatMul", a, b), "y", [batch, m, n])
    return builder.build()


def convolution(batch, channels, height, width, outputs, kernel, stride, dilation, group):
    builder = ModelBuilder("conv", seed=channels + outputs)
    kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
    reach = [(size - 1) * dilation for size in kernel]
    pads = [r // 2 for r in reach] + [r - r // 2 for r in reach]
    weight = builder.normal((outputs, channels // group, *kernel), np.sqrt(2 * group / (channels * np.prod(kernel))))
    y = builder.node("Conv", builder.input("x", [batch, channels, height, width]), weight, builder.normal(outputs, 0.1),
                     kernel_shape=kernel, pads=pads, strides=[stride] * 2, dilations=[dilation] * 2,
                     group=group)  # fmt: skip
    sizes = [(size - 1) // stride + 1 for size in (height, width)]
    builder.output(y, "y", [batch, outputs, *sizes])
    return builder.build()


def convolution_1d(channels, length, outputs, kernel):
    builder = ModelBuilder("conv1d", seed=channels)
    weight = builder.normal((outputs, channels, kernel), np.sqrt(2 / (channels * kernel)))
    y = builder.node("Conv", builder.input("x", [1, channels, length]), weight, kernel_shape=[kernel])
    builder.output(y, "y", [1, outputs, length - kernel + 1])
    return builder.build()


def convolution_3d(channels, size, outputs):
    builder = ModelBuilder("conv3d", seed=channels)
    weight = builder.normal((outputs, channels, 3, 3, 3), np.sqrt(2 / (27 * channels)))
    x = builder.input("x", [1, channels, size, size, size])
    builder.output(builder.node("Conv", x, weight, kernel_shape=[3] * 3, pads=[1] * 6), "y",
                   [1, outputs, size, size, size])  # fmt: skip
    return builder.build()


def one_operator(kind, shape, output, **attributes):
    builder = ModelBuilder(kind.lower(), seed=len(shape))
    builder.output(builder.node(kind, builder.input("x", shape), **attributes), "y", output)
    return builder.build()


def reduction(kind, shape, axis):
    output = [size for dimension, size in enumerate(shape) if dimension != axis]
    builder = ModelBuilder(kind.lower(), seed=axis)
    operands = [builder.input("x", shape)]
    if kind == "ReduceSum":
        operands.append(builder.integers(axis))
        builder.output(builder.node(kind, *operands, keepdims=0), "y", output)
    else:
        builder.output(builder.node(kind, *operands, axes=[axis], keepdims=0), "y", output)
    return builder.build()


def layer_norm(rows, features):
    builder = ModelBuilder("layer_norm", seed=features)
    builder.output(builder.layer_norm(builder.input("x", [rows, features]), features), "y", [rows, features])
    return builder.build()


def chain(shape):
    """A chain of elementwise operators with a second operand that is broadcast."""
    builder = ModelBuilder("chain", seed=1)
    x = builder.input("x", shape)
    y = builder.node("Mul", builder.node("Sigmoid", x), x)
    y = builder.node("Add", y, builder.normal(shape[-1:], 0.5))
    y = builder.node("Mul", builder.node("Tanh", y), builder.node("Exp", builder.node("Neg", builder.node("Abs", x))))
    builder.output(y, "y", shape)
    return builder.build()


def attention(heads, length, depth):
    builder = ModelBuilder("attention", seed=length)
    query, key, value = (builder.input(name, [1, heads, length, depth]) for name in ("q", "k", "v"))
    scores = builder.node("MatMul", query, builder.node("Transpose", key, perm=[0, 1, 3, 2]))
    scores = builder.node("Softmax", builder.node("Mul", scores, builder.scalar(depth**-0.5)), axis=-1)
    builder.output(builder.node("MatMul", scores, value), "y", [1, heads, length, depth])
    return builder.build()


def narrow_mlp(layers, width):
    builder = ModelBuilder("narrow_mlp", seed=2)
    x = builder.input("x", [1, width])
    for _ in range(layers):
        x = builder.node("Relu", builder.gemm(x, width, width))
    builder.output(x, "y", [1, width])
    return builder.build()


def _products():
    for m, k, n in PRODUCTS:
        yield f"matmul-{m}x{k}x{n}", partial(product, m, k, n, constant=True)
    for m, k, n in PRODUCTS[2:6:2] + PRODUCTS[14:15]:
        yield f"matmul-{m}x{k}x{n}-input", partial(product, m, k, n, constant=False)
    for a, b in ((1, 0), (0, 1), (1, 1)):
        yield f"gemm-512-t{a}{b}", partial(transposed_product, 512, 512, 512, a, b)
    yield "matmul-12x128x64x128", partial(batched_product, 12, 128, 64, 128)
    yield "matmul-12x1x64x257", partial(batched_product, 12, 1, 64, 257)


def _convolutions():
    for name, *sizes in CONVOLUTIONS:
        yield f"conv-{name}", partial(convolution, *sizes)
    yield "conv-odd-1d", partial(convolution_1d, 64, 1500, 96, 9)
    yield "conv-odd-3d", partial(convolution_3d, 16, 20, 24)


def _rows():
    for rows, features in ((128, 768), (4096, 64), (16, 16384), (1536, 128), (97, 1031)):
        shape, size = [rows, features], f"{rows}x{features}"
        yield f"softmax-{size}", partial(one_operator, "Softmax", shape, shape, axis=-1)
        yield f"layer_norm-{size}", partial(layer_norm, rows, features)
    for axis in range(3):
        yield f"sum-axis{axis}", partial(reduction, "ReduceSum", [128, 96, 160], axis)
        yield f"max-axis{axis}", partial(reduction, "ReduceMax", [128, 96, 160], axis)


def _movement():
    for name, shape, perm in (
        ("nchw-nhwc", [8, 64, 56, 56], [0, 2, 3, 1]),
        ("nhwc-nchw", [8, 56, 56, 64], [0, 3, 1, 2]),
        ("heads", [8, 128, 12, 64], [0, 2, 1, 3]),
        ("matrix", [1000, 1031], [1, 0]),
    ):
        yield f"transpose-{name}", partial(one_operator, "Transpose", shape, [shape[p] for p in perm], perm=perm)
    yield "chain-1M", partial(chain, [1024, 1024])
    yield "chain-16K", partial(chain, [64, 256])
    yield "exp-1M", partial(one_operator, "Exp", [1024, 1024], [1024, 1024])
    yield "max_pool-112", partial(one_operator, "MaxPool", [1, 64, 112, 112], [1, 64, 56, 56], kernel_shape=[3, 3],
                                  strides=[2, 2], pads=[1, 1, 1, 1])  # fmt: skip
    yield "average_pool-28", partial(one_operator, "AveragePool", [1, 256, 28, 28], [1, 256, 26, 26],
                                     kernel_shape=[3, 3])  # fmt: skip
    yield "global_pool-7", partial(one_operator, "GlobalAveragePool", [1, 2048, 7, 7], [1, 2048, 1, 1])


def _attentions():
    for length in (64, 256, 512, 1024, 2048):
        yield f"attention-{length}", partial(attention, 12, length, 64)


GROUPS = {"matmul": _products, "conv": _convolutions, "rows": _rows, "movement": _movement, "attention": _attentions}
