"""Worker process: evaluates models in float64 with PyTorch. A request is {"model": path, "feeds": [{name: array}]}.

A process of its own because PyTorch may live in another virtual environment than the compiler; one for many models,
because importing it takes seconds. It has one thread: several wait for one another by spinning, which on a busy
machine takes ten times as long.
"""

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

from tests.support.worker import serve


def pad_uneven(x, pads, value):
    """Pads [top, left, bottom, right] of [n, c, h, w]."""
    top, left, bottom, right = pads
    return F.pad(x, (left, right, top, bottom), value=value)


def conv(a, x, w, b=None):
    x = pad_uneven(x, a.get("pads", [0, 0, 0, 0]), 0.0)
    return F.conv2d(x, w, b, stride=a.get("strides", 1), dilation=a.get("dilations", 1), groups=a.get("group", 1))


def max_pool(a, x):
    assert not a.get("ceil_mode", 0) and a.get("dilations", [1, 1]) == [1, 1]
    return F.max_pool2d(pad_uneven(x, a.get("pads", [0] * 4), -torch.inf), a["kernel_shape"], a.get("strides", [1, 1]))


def batch_norm(a, x, scale, bias, mean, variance):
    return F.batch_norm(x, mean, variance, scale, bias, eps=a.get("epsilon", 1e-5))


def gemm(a, x, w, b=None):
    x, w = (x.T if a.get("transA") else x), (w.T if a.get("transB") else w)
    y = a.get("alpha", 1.0) * (x @ w)
    return y if b is None else y + a.get("beta", 1.0) * b


def layer_norm(a, x, scale, bias=None):
    assert a.get("axis", -1) == -1
    return F.layer_norm(x, x.shape[-1:], scale, bias, a.get("epsilon", 1e-5))


def reshape(a, x, shape):
    return x.reshape([x.shape[i] if d == 0 else d for i, d in enumerate(shape.tolist())])


OPERATORS = {
    "Add": lambda a, x, y: x + y,
    "BatchNormalization": batch_norm,
    "Clip": lambda a, x, low=None, high=None: x.clamp(low, high),
    "Concat": lambda a, *xs: torch.cat(xs, a["axis"]),
    "Conv": conv,
    "Div": lambda a, x, y: x / y,
    "Dropout": lambda a, x: x,
    "Erf": lambda a, x: torch.erf(x),
    "Flatten": lambda a, x: x.flatten(a.get("axis", 1)),
    "Gelu": lambda a, x: F.gelu(x, approximate=a.get("approximate", b"none").decode()),
    "Gemm": gemm,
    "GlobalAveragePool": lambda a, x: x.mean((2, 3), keepdim=True),
    "Identity": lambda a, x: x,
    "LayerNormalization": layer_norm,
    "MatMul": lambda a, x, y: x @ y,
    "MaxPool": max_pool,
    "Mul": lambda a, x, y: x * y,
    "Relu": lambda a, x: x.relu(),
    "Reshape": reshape,
    "Softmax": lambda a, x: x.softmax(a.get("axis", -1)),
    "Tanh": lambda a, x: x.tanh(),
    "Transpose": lambda a, x: x.permute(a["perm"]),
}


def tensor(array):
    array = np.array(array)
    return torch.from_numpy(array.astype(np.float64) if array.dtype == np.float32 else array)


def evaluate(model, weights, feeds):
    values = weights | {name: tensor(array) for name, array in feeds.items()}
    for node in model.graph.node:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        operands = [values[name] if name else None for name in node.input]
        values[node.output[0]] = OPERATORS[node.op_type](attributes, *operands)
    return [values[output.name].numpy() for output in model.graph.output]


def handle(request):
    """The outputs for each of the feeds."""
    model = onnx.load(request["model"])
    weights = {t.name: tensor(numpy_helper.to_array(t)) for t in model.graph.initializer}
    with torch.no_grad():
        return [evaluate(model, weights, feeds) for feeds in request["feeds"]]


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve(handle)
