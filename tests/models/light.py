"""The nine light models of the `onnx` package with random weights in place of their constants.

The files have the graphs of published networks, most weights being a number repeated by ConstantOfShape. Here every
weight is drawn so that activations stay of the order of one, the batch may be any, and `narrow` divides all channels.
"""

from pathlib import Path
from typing import NamedTuple

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


class Use(NamedTuple):
    """What reads a weight: the operator, the operand's position, and what is around it."""

    kind: str
    position: int
    joins_a_sum: bool  # the result is a term of a residual sum
    rectified: bool  # Relu takes half of the result
    pooled: bool  # the image comes out of MaxPool, which leaves the larger ones


def set_batch(model, batch):
    """The same model for another batch, a number or a name, without another copy of its weights."""
    for value in (*model.graph.input, *model.graph.output):
        (first, *_) = value.type.tensor_type.shape.dim
        if isinstance(batch, int):
            first.dim_value = batch
        else:
            first.dim_param = batch
    return model


def uses_of(nodes):
    """{value: Use}. Unsqueeze is looked through."""
    summed = {value for n in nodes if n.op_type == "Sum" for value in n.input}
    makers = {value: n for n in nodes for value in n.output}
    readers = {n.input[0]: n for n in nodes}

    def met(node, steps, over):
        """The operators met along `steps` from the node, up to the first that is none of `over`."""
        found = set()
        while node is not None and (not found or node.op_type in over):
            node = steps(node)
            found.add(node.op_type if node is not None else None)
        return found

    uses = {}
    for node in reversed(nodes):
        behind = met(node, lambda n: readers.get(n.output[0]), ("BatchNormalization", "Mul", "Add", "Concat"))
        over = ("Relu", "LRN", "Dropout", "Reshape", "Concat", "Transpose")
        before = met(node, lambda n: makers.get(n.input[0]), over)
        for position, value in enumerate(node.input):
            through = uses.get(node.output[0]) if node.op_type == "Unsqueeze" else None
            around = (node.output[0] in summed, "Relu" in behind, "MaxPool" in before)
            uses[value] = through or Use(node.op_type, position, *around)
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
    gain = 0.5 if use.joins_a_sum else 1.0  # the sums of a residual network would double at each block
    if use.kind in ("Conv", "Gemm") and use.position == 1:
        kept = (2.0 if use.rectified else 1.0) * (0.5 if use.pooled else 1.0)
        spread = np.sqrt(kept / np.prod(shape[1:])) * (gain if use.kind == "Conv" else 1.0)
        return (spread * m.rng.standard_normal(shape)).astype(np.float32)
    if (use.kind, use.position) in (("BatchNormalization", 1), ("BatchNormalization", 4), ("Mul", 1)):
        return (m.rng.uniform(0.7, 1.3, shape) * (gain if use.position == 1 else 1.0)).astype(np.float32)
    return (0.1 * m.rng.standard_normal(shape)).astype(np.float32)
