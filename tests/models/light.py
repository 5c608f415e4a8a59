"""The nine light models of the `onnx` package with random weights in place of their constants.

The files have the graphs of published networks, most weights being a number repeated by ConstantOfShape. Here every
weight is drawn so that activations stay of the order of one, the batch may be any, and `narrow` divides all channels.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.models.builder import ModelBuilder

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
LIGHT = {
    "alexnet": "bvlc_alexnet", "densenet121": "densenet121", "inception_v1": "inception_v1",
    "inception_v2": "inception_v2", "light_resnet50": "resnet50", "shufflenet": "shufflenet",
    "light_squeezenet": "squeezenet", "vgg19": "vgg19", "zfnet512": "zfnet512",
}  # fmt: skip
# What all numbers of channels are divided by in small tests: a group of ShuffleNet's first has six, and what is left of
# others must still depend on the image.
NARROW = {name: 8 for name in LIGHT} | {"shufflenet": 2, "light_squeezenet": 4, "vgg19": 4}
IMAGE_CHANNELS = 3


def as_given(name):
    return onnx.load(FOLDER / f"light_{LIGHT[name]}.onnx")


def light(name, batch="batch", seed=21, narrow=1):
    """Input: the images, [batch, 3, 224, 224]. Output: probabilities, [batch, 1000 / narrow, …]."""
    model = as_given(name)
    graph, m = model.graph, ModelBuilder(name, seed)
    given = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    filled = {n.output[0]: n.input[0] for n in graph.node if n.op_type == "ConstantOfShape"}
    shapes = {weight: given[shape].tolist() for weight, shape in filled.items()}
    shapes |= {weight: list(array.shape) for weight, array in given.items() if array.dtype == np.float32}
    for node in graph.node:
        if node.op_type == "Reshape" and node.input[0] in shapes:  # a weight under another shape: drawn in that one
            shapes[node.output[0]] = given[node.input[1]].tolist()
    nodes = [n for n in graph.node if n.op_type != "ConstantOfShape" and n.output[0] not in shapes]
    uses = uses_of(nodes)
    depthwise = {n.input[1] for n in nodes if n.op_type == "Conv" and shapes[n.input[1]][1] == 1}
    targets = {n.input[1] for n in nodes if n.op_type == "Reshape"}
    weights = {w: draw(m, uses[w], narrowed(shapes[w], narrow)) for w in sorted(shapes) if w in uses}
    weights |= {w: narrowed_target(given[w], narrow) for w in targets}
    for node in nodes:
        for a in node.attribute:
            if a.name == "group" and node.input[1] in depthwise:
                a.i //= narrow
    (image,) = [v for v in graph.input if v.name not in given]
    (result,) = graph.output
    extents = [d.dim_value for d in result.type.tensor_type.shape.dim]
    extents = [batch, extents[1] // narrow, *extents[2:]]
    image = helper.make_tensor_value_info(image.name, onnx.TensorProto.FLOAT, [batch, IMAGE_CHANNELS, 224, 224])
    result = helper.make_tensor_value_info(result.name, onnx.TensorProto.FLOAT, extents)
    tensors = [numpy_helper.from_array(array, weight) for weight, array in weights.items()]
    made = helper.make_model(
        helper.make_graph(nodes, name, [image], [result], tensors), opset_imports=model.opset_import, ir_version=8
    )
    onnx.checker.check_model(made, full_check=True)
    return made


def uses_of(nodes):
    """What reads each value: (operator, position, whether the result joins a sum). Unsqueeze is looked through."""
    summed = {value for n in nodes if n.op_type == "Sum" for value in n.input}
    uses = {}
    for node in reversed(nodes):
        for position, value in enumerate(node.input):
            through = uses.get(node.output[0]) if node.op_type == "Unsqueeze" else None
            uses[value] = through or (node.op_type, position, node.output[0] in summed)
    return uses


def narrowed(shape, narrow):
    """Channels of a weight, [outputs, inputs of a group, window…]; those of the image and of a depthwise one stay."""
    kept = [1, IMAGE_CHANNELS]
    return [d if i > 1 or (i == 1 and d in kept) else d // narrow for i, d in enumerate(shape)]


def narrowed_target(target, narrow):
    """A shape that Reshape is given, [batch, channels, …] or [batch, groups, channels, …], for any batch."""
    channels = 2 if len(target) == 5 else 1
    return np.array([0 if i == 0 else d // narrow if i == channels else d for i, d in enumerate(target)], np.int64)


def draw(m, use, shape):
    kind, position, joins_a_sum = use
    gain = 0.3 if joins_a_sum else 1.0  # the sums of a residual network would double at each block
    if kind in ("Conv", "Gemm") and position == 1:
        spread = np.sqrt(2.0 / np.prod(shape[1:])) * (gain if kind == "Conv" else 1.0)
        return (spread * m.rng.standard_normal(shape)).astype(np.float32)
    if (kind, position) in (("BatchNormalization", 1), ("BatchNormalization", 4), ("Mul", 1)):
        return (m.rng.uniform(0.7, 1.3, shape) * (gain if position == 1 else 1.0)).astype(np.float32)
    return (0.1 * m.rng.standard_normal(shape)).astype(np.float32)
