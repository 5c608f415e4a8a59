"""Lines of one convolution: those of networks, odd ones, and transposed ones."""

from functools import partial

import numpy as np

from tests.models.builder import ModelBuilder

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
    ("odd-dw7x7-dilated", 1, 96, 33, 35, 96, 7, 1, 2, 96),
    ("odd-1x1s2", 3, 67, 31, 29, 71, 1, 2, 1, 1),
    ("odd-3x3s3-grouped2", 1, 64, 64, 61, 96, 3, 3, 1, 2),
]  # fmt: skip


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


def transposed(channels, height, width, outputs, kernel, stride, pad, output_pad):
    builder = ModelBuilder("conv_transpose", seed=channels + kernel)
    weight = builder.normal((channels, outputs, kernel, kernel), stride * np.sqrt(2 / (channels * kernel**2)))
    y = builder.node("ConvTranspose", builder.input("x", [1, channels, height, width]), weight,
                     builder.normal(outputs, 0.1), kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4,
                     output_padding=[output_pad] * 2)  # fmt: skip
    sizes = [(size - 1) * stride + kernel - 2 * pad + output_pad for size in (height, width)]
    builder.output(y, "y", [1, outputs, *sizes])
    return builder.build()


def convolutions():
    for name, *sizes in CONVOLUTIONS:
        yield f"conv-{name}", partial(convolution, *sizes)
    yield "conv-odd-1d", partial(convolution_1d, 64, 1500, 96, 9)
    yield "conv-odd-3d", partial(convolution_3d, 16, 20, 24)
    # As decoders of images have them: both double height and width.
    yield "conv_transpose-4x4s2-28", partial(transposed, 128, 28, 28, 64, kernel=4, stride=2, pad=1, output_pad=0)
    yield "conv_transpose-3x3s2-56", partial(transposed, 64, 56, 48, 32, kernel=3, stride=2, pad=1, output_pad=1)
