"""ONNX models evaluated by PyTorch's operators: the float64 reference at full size, and a peer of the benchmarks.

What Reshape, Slice and the like take as constants is kept as Python numbers, so that `torch.compile` sees one graph.
"""

import numpy as np
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

from tests.support.torch_recurrent import recurrent


def pad_uneven(x, pads, value):
    """Pads of ONNX, all starts before all ends, of the last dimensions of x."""
    count = len(pads) // 2
    order = [pads[d + end * count] for d in reversed(range(count)) for end in (0, 1)]
    return F.pad(x, order, value=value) if any(order) else x


CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def conv(a, x, w, b=None):
    count = w.dim() - 2
    pads = a.get("pads", [0] * 2 * count)
    even = pads[:count] == pads[count:]
    x = x if even else pad_uneven(x, pads, 0.0)
    return CONVOLUTIONS[count](x, w, b, stride=a.get("strides", 1), padding=pads[:count] if even else 0,
                               dilation=a.get("dilations", 1), groups=a.get("group", 1))  # fmt: skip


def max_pool(a, x):
    assert not a.get("ceil_mode", 0) and a.get("dilations", [1, 1]) == [1, 1]
    pads, kernel, strides = a.get("pads", [0] * 4), a["kernel_shape"], a.get("strides", [1, 1])
    if pads[:2] == pads[2:] and all(2 * p <= k for p, k in zip(pads, kernel)):
        return F.max_pool2d(x, kernel, strides, padding=pads[:2])
    return F.max_pool2d(pad_uneven(x, pads, -torch.inf), kernel, strides)


def average_pool(a, x):
    pads = a.get("pads", [0] * 4)
    assert not a.get("ceil_mode", 0)
    total = F.avg_pool2d(pad_uneven(x, pads, 0.0), a["kernel_shape"], a.get("strides", [1, 1]))
    if not any(pads) or a.get("count_include_pad", 0):
        return total
    inside = pad_uneven(torch.ones_like(x[:1, :1]), pads, 0.0)
    return total / F.avg_pool2d(inside, a["kernel_shape"], a.get("strides", [1, 1]))



def conv_transpose(a, x, w, b=None):
    """Pads of ONNX cut the full result, which more may follow at the end."""
    count = w.dim() - 2
    pads, function = a.get("pads", [0] * 2 * count), {1: F.conv_transpose1d, 2: F.conv_transpose2d}[count]
    y = function(x, w, b, stride=a.get("strides", 1), output_padding=a.get("output_padding", 0),
                 dilation=a.get("dilations", 1), groups=a.get("group", 1))  # fmt: skip
    return pad_uneven(y, [-p for p in pads], 0.0)


def resize(a, x, region, scales, sizes=None):
    """Of images, by the modes that PyTorch has too."""
    if sizes is None:
        sizes = [round(n * s) for n, s in zip(x.shape[2:], scales.tolist()[2:])]
    else:
        sizes = sizes.tolist()[2:]
    mode = a.get("coordinate_transformation_mode", b"half_pixel")
    if a["mode"] == b"nearest":
        assert mode == b"asymmetric" and a.get("nearest_mode") == b"floor"
        return F.interpolate(x, size=sizes, mode="nearest")
    assert mode == b"half_pixel" and a["mode"] == b"linear"
    return F.interpolate(x, size=sizes, mode="bilinear", align_corners=False)


def lrn(a, x):
    """PyTorch's own divides by the size as ONNX does, and pads the channels alike."""
    return F.local_response_norm(x, a["size"], a.get("alpha", 1e-4), a.get("beta", 0.75), a.get("bias", 1.0))


def gather(a, x, indices):
    return x[(slice(None),) * a.get("axis", 0) + (indices,)]


def concat(a, *xs):
    return torch.cat([torch.as_tensor(x) for x in xs], a["axis"])


def batch_norm(a, x, scale, bias, mean, variance):
    return F.batch_norm(x, mean, variance, scale, bias, eps=a.get("epsilon", 1e-5))


def gemm(a, x, w, b=None):
    x, w = (x.T if a.get("transA") else x), (w.T if a.get("transB") else w)
    y = x @ w
    y = y if a.get("alpha", 1.0) == 1.0 else a["alpha"] * y
    return y if b is None else y + (b if a.get("beta", 1.0) == 1.0 else a["beta"] * b)


def layer_norm(a, x, scale, bias=None):
    assert a.get("axis", -1) == -1
    return F.layer_norm(x, x.shape[-1:], scale, bias, a.get("epsilon", 1e-5))


def reshape(a, x, shape):
    return x.reshape([x.shape[i] if d == 0 else d for i, d in enumerate(shape)])


def slice_of(a, x, begins, ends, axes=None, steps=None):
    places = [slice(None)] * x.dim()
    for number, axis in enumerate(range(len(begins)) if axes is None else axes):
        step = 1 if steps is None else int(steps[number])
        assert step > 0, "PyTorch has no steps backwards"
        places[axis] = slice(int(begins[number]), int(ends[number]), step)
    return x[tuple(places)]


def depth_to_space(a, x):
    assert a.get("mode", b"DCR") == b"CRD", "PyTorch has the other order of the channels"
    return F.pixel_shuffle(x, a["blocksize"])


def squeeze(a, x, axes=None):
    axes = a.get("axes") if axes is None else axes
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


def unsqueeze(a, x, axes=None):
    for axis in sorted(a["axes"] if axes is None else axes):
        x = x.unsqueeze(axis)
    return x


def reduce_by(function):
    def reduce(a, x, axes=None):
        axes = axes or a.get("axes") or range(x.dim())  # none means all
        return function(x, list(axes), bool(a.get("keepdims", 1)))

    return reduce


def cast(a, x):
    to = helper.tensor_dtype_to_np_dtype(a["to"])
    return x.to(torch.get_default_dtype() if to == np.float32 else torch.from_numpy(np.zeros(0, to)).dtype)


OPERATORS = {
    "Abs": lambda a, x: x.abs(),
    "Add": lambda a, x, y: x + y,
    "AveragePool": average_pool,
    "BatchNormalization": batch_norm,
    "Cast": cast,
    "Clip": lambda a, x, low=None, high=None: x.clamp(low, high),
    "Concat": concat,
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "DepthToSpace": depth_to_space,
    "Div": lambda a, x, y: x / y,
    "Dropout": lambda a, x: x,
    "Erf": lambda a, x: torch.erf(x),
    "Exp": lambda a, x: x.exp(),
    "Expand": lambda a, x, shape: x.expand(torch.broadcast_shapes(x.shape, tuple(int(n) for n in shape))),
    "Flatten": lambda a, x: x.flatten(a.get("axis", 1)),
    "Gather": gather,
    "Gelu": lambda a, x: F.gelu(x, approximate=a.get("approximate", b"none").decode()),
    "Gemm": gemm,
    "GlobalAveragePool": lambda a, x: x.mean((2, 3), keepdim=True),
    "HardSigmoid": lambda a, x: (a.get("alpha", 0.2) * x + a.get("beta", 0.5)).clamp(0, 1),
    "HardSwish": lambda a, x: F.hardswish(x),
    "Identity": lambda a, x: x,
    "LayerNormalization": layer_norm,
    "LRN": lrn,
    "MatMul": lambda a, x, y: x @ y,
    "MaxPool": max_pool,
    "Mul": lambda a, x, y: x * y,
    "Neg": lambda a, x: -x,
    "Pow": lambda a, x, y: x**y,
    "Reciprocal": lambda a, x: x.reciprocal(),
    "ReduceMax": reduce_by(torch.amax),
    "ReduceMean": reduce_by(torch.mean),
    "ReduceSum": reduce_by(torch.sum),
    "Relu": lambda a, x: x.relu(),
    "Reshape": reshape,
    "Resize": resize,
    "Shape": lambda a, x: torch.tensor(x.shape),
    "Sigmoid": lambda a, x: x.sigmoid(),
    "Slice": slice_of,
    "Softmax": lambda a, x: x.softmax(a.get("axis", -1)),
    "Split": lambda a, x, sizes: torch.split(x, list(sizes), a.get("axis", 0)),
    "Squeeze": squeeze,
    "Sqrt": lambda a, x: x.sqrt(),
    "Sub": lambda a, x, y: x - y,
    "Sum": lambda a, *xs: sum(xs),
    "Tanh": lambda a, x: x.tanh(),
    "Transpose": lambda a, x: x.permute(a["perm"]),
    "Unsqueeze": unsqueeze,
}


class TorchModel(torch.nn.Module):
    """The model's graph; floats are held, fed and computed in `dtype`. Called with tensors in the order of `inputs`."""

    def __init__(self, model, dtype=torch.float32):
        super().__init__()
        self.dtype, self.constants = dtype, {}
        for index, initializer in enumerate(model.graph.initializer):
            array = numpy_helper.to_array(initializer)
            if array.ndim == 0:
                self.constants[initializer.name] = array.item()
            elif array.dtype == np.int64:
                self.constants[initializer.name] = tuple(array.reshape(-1).tolist())
            else:
                self.register_buffer(f"weight_{index}", self.tensor(array))
                self.constants[initializer.name] = f"weight_{index}"
        self.nodes = []
        (opset,) = [o.version for o in model.opset_import if o.domain == ""]
        for node in model.graph.node:
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            if node.op_type in ("LSTM", "GRU"):
                self.nodes.append(self.recurrent(node, attributes))
                continue
            if node.op_type not in OPERATORS:
                raise NotImplementedError(f"{node.op_type} has no row among PyTorch's operators")
            if node.op_type == "Softmax" and opset < 13:
                attributes.setdefault("axis", 1)  # what follows has no extent in the networks here
            self.nodes.append((OPERATORS[node.op_type], attributes, list(node.input), list(node.output)))
        self.inputs = [value.name for value in model.graph.input if value.name not in self.constants]
        self.outputs = [value.name for value in model.graph.output]

    def tensor(self, array):
        tensor = torch.from_numpy(np.array(array))
        return tensor.to(self.dtype) if tensor.is_floating_point() else tensor

    def recurrent(self, node, attributes):
        """The node as a module of its own, whose weights are constants."""
        weights = [getattr(self, self.constants[name]) for name in node.input[1:4] if name]
        module = recurrent(node.op_type, attributes, self.dtype, *weights)
        self.add_module(f"recurrent_{len(self.nodes)}", module)
        operands = [node.input[0], *node.input[4:]]
        return lambda a, *values: module(*values), attributes, operands, list(node.output)

    def forward(self, *inputs):
        values = dict(zip(self.inputs, inputs))
        for name, constant in self.constants.items():
            values[name] = getattr(self, constant) if isinstance(constant, str) else constant
        for operator, attributes, operands, outputs in self.nodes:
            result = operator(attributes, *(values[name] if name else None for name in operands))
            values.update(zip(outputs, result if isinstance(result, tuple) else (result,)))
        return [values[name] for name in self.outputs]


def evaluate(model, all_feeds, dtype=torch.float64):
    """The outputs for each of the feeds {name: array}."""
    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)  # what a Cast to float32 gives
    try:
        module = TorchModel(model, dtype)
        with torch.inference_mode():
            return [[y.numpy() for y in module(*(module.tensor(feeds[name]) for name in module.inputs))]
                    for feeds in all_feeds]  # fmt: skip
    finally:
        torch.set_default_dtype(previous)
