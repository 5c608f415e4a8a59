"""Builds ONNX models with random weights that no symmetry can hide a mistake in.

Every bias, batch-norm statistic and pad differs from its neighbours, H differs from W, and weights are scaled so that
activations stay of the order of one through any depth and the output depends on the input.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8


class ModelBuilder:
    """Appends nodes one after another; each method takes value names and returns the name of its output."""

    def __init__(self, name, seed, opset=OPSET):
        self.name, self.opset = name, opset
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self.count = 0

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, value, name, shape, dtype=TensorProto.FLOAT):
        self.nodes.append(helper.make_node("Identity", [value], [name], name=f"{name}_identity"))
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def weight(self, array, name=None):
        name = name or f"weight_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def extent(self, value, axis):
        """How many elements `value` has along the axis, as [1]."""
        return self.node("Gather", self.node("Shape", value), self.integers(axis))

    def first_rows(self, value, count):
        """The rows of `value` before row `count`, which is [1]."""
        return self.node("Slice", value, self.integers(0), count, self.integers(0))

    def counted(self, before, behind):
        """The positions from `before` to `behind`, which are [1], and the mask [behind - before, behind]: a large
        negative number where the column lies behind the row's position."""
        first, end = (self.node("Squeeze", extent, self.integers(0)) for extent in (before, behind))
        zero, one = (self.weight(np.array(number, np.int64)) for number in (0, 1))
        rows = self.node("Range", first, end, one)
        columns = self.node("Range", zero, end, one)
        is_later = self.node("Greater", columns, self.node("Unsqueeze", rows, self.integers(1)))
        return rows, self.node("Where", is_later, self.scalar(-1e9), self.scalar(0.0))

    def integers(self, *values):
        return self.weight(np.array(values, np.int64))

    def scalar(self, value):
        return self.weight(np.float32(value))

    def normal(self, shape, spread, centre=0.0):
        return self.weight((centre + spread * self.rng.standard_normal(shape)).astype(np.float32))

    def uniform(self, shape, low, high):
        return self.weight(self.rng.uniform(low, high, shape).astype(np.float32))

    def node(self, kind, *inputs, **attributes):
        self.count += 1
        output = f"{kind.lower()}_{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=f"{kind}_{self.count}", **attributes))
        return output

    def split(self, x, sizes, axis):
        """The parts of `x`, `sizes` long along the axis."""
        self.count += 1
        outputs = [f"split_{self.count}_{part}" for part in range(len(sizes))]
        inputs = [x, self.integers(*sizes)]
        self.nodes.append(helper.make_node("Split", inputs, outputs, name=f"Split_{self.count}", axis=axis))
        return outputs

    def conv(self, x, inputs, outputs, kernel, *, stride=1, pads=None, group=1, bias=True, gain=2.0):
        """Convolution with pads [top, left, bottom, right], 'same' size unless given. `gain` is 2 before a Relu."""
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        strides = [stride, stride] if isinstance(stride, int) else list(stride)
        if pads is None:
            pads = same_pads(kernel)
        fan_in = inputs // group * kernel[0] * kernel[1]
        operands = [x, self.normal((outputs, inputs // group, *kernel), np.sqrt(gain / fan_in))]
        if bias:
            operands.append(self.normal(outputs, 0.1))
        return self.node("Conv", *operands, kernel_shape=list(kernel), strides=strides, pads=list(pads), group=group)

    def batch_norm(self, x, channels, scale=1.0):
        """Statistics of no particular symmetry; `scale` shrinks the last one of a residual branch."""
        return self.node(
            "BatchNormalization", x,
            self.uniform(channels, 0.7 * scale, 1.3 * scale), self.normal(channels, 0.1),
            self.normal(channels, 0.1), self.uniform(channels, 0.7, 1.3), epsilon=1e-5,
        )  # fmt: skip

    def gemm(self, x, inputs, outputs, gain=2.0):
        weight = self.normal((outputs, inputs), np.sqrt(gain / inputs))
        return self.node("Gemm", x, weight, self.normal(outputs, 0.1), transB=1)

    def linear(self, x, inputs, outputs, gain=1.0):
        """MatMul and Add, the form in which exporters write a linear layer on [batch, length, features]."""
        product = self.node("MatMul", x, self.normal((inputs, outputs), np.sqrt(gain / inputs)))
        return self.node("Add", product, self.normal(outputs, 0.1))

    def layer_norm(self, x, features):
        scale, bias = self.uniform(features, 0.7, 1.3), self.normal(features, 0.2)
        return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)

    def build(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model, full_check=True)
        return model


def same_pads(kernel):
    """[top, left, bottom, right] that keep the size at stride 1."""
    return [(kernel[0] - 1) // 2, (kernel[1] - 1) // 2, kernel[0] // 2, kernel[1] // 2]


def scaled(channels, width, multiple=8):
    """A number of channels under a width multiplier, kept a multiple of `multiple`."""
    return max(multiple, int(channels * width / multiple + 0.5) * multiple)


def random_input(shape, seed):
    """An image-like input that global average pooling cannot flatten: levels and slopes differ by image and channel."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if len(shape) == 4:
        n, c, h, w = shape
        row = np.linspace(-1, 1, h)[:, None] if h > 1 else np.zeros((1, 1))
        column = np.linspace(-1, 1, w) if w > 1 else np.zeros(1)
        slope, across, level = rng.normal(0, 1.0, (3, n, c, 1, 1))
        x = 0.5 * x + slope * row + across * column + level
    return x.astype(np.float32)
