"""Ways to misuse an operator: a valid sample's model, changed in one respect."""

import itertools

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper

from tests.operators.table import draw

NODE = "the_node_under_test"


def sample_model(op, index=0):
    """The model of a sample of the operator, its node and inputs under names that a message can be searched for."""
    for i in itertools.count(index):
        sample = draw(op, 11, i)
        if not sample.symbolic and all(not isinstance(x, np.ndarray) or x.size for x in sample.inputs):
            break
    model = sample.model()
    model.graph.node[0].name = NODE
    model.graph.ClearField("value_info")
    for output in model.graph.output:
        output.ClearField("type")  # what a misuse would give is nobody's promise
    return model


def attribute_of(model, name):
    return next(a for a in model.graph.node[0].attribute if a.name == name)


def set_attribute(name, value):
    def change(model):
        node = model.graph.node[0]
        kept = [a for a in node.attribute if a.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, value)])

    return change


def wrong_kind(attribute):
    """A value of another kind than the attribute's."""
    return 7 if attribute.type in (AttributeProto.STRING, AttributeProto.TENSOR, AttributeProto.FLOATS) else "seven"


def without_inputs(model):
    del model.graph.node[0].input[:]


def more_inputs(model):
    node = model.graph.node[0]
    node.input.extend([node.input[0]] * 12)


def more_outputs(model):
    model.graph.node[0].output.extend([f"more_{i}" for i in range(9)])


def element_type(position, element):
    def change(model):
        model.graph.input[position].type.tensor_type.elem_type = element

    return change


def rank(position, dims):
    def change(model):
        if not model.graph.input[position].type.tensor_type.elem_type:  # it was no tensor
            model.graph.input[position].type.tensor_type.elem_type = TensorProto.FLOAT
        shape = model.graph.input[position].type.tensor_type.shape
        del shape.dim[:]
        for size in dims:
            shape.dim.add(dim_value=size)

    return change


def longer(position, axis):
    """One axis of an input is 6 longer than it was, which no broadcast makes good."""

    def change(model):
        dim = model.graph.input[position].type.tensor_type.shape.dim[axis]
        dim.dim_value = dim.dim_value + 6

    return change


def misuses(model):
    """(label, what is wrong: "attribute", "count", "dtype" or "shape", the change) for each way that this model has."""
    node = model.graph.node[0]
    yield "an attribute it has not", "attribute", set_attribute("no_such_attribute", 1)
    for a in node.attribute:
        yield f"{a.name} of another kind", "attribute", set_attribute(a.name, wrong_kind(a))
        if a.name == "axis":
            yield "axis 99", "attribute", set_attribute("axis", 99)
        if a.type == AttributeProto.INTS:
            yield f"{a.name} of too many", "attribute", set_attribute(a.name, [*a.ints, 1, 1, 1, 1, 1, 1, 1])
            yield f"{a.name} negative", "attribute", set_attribute(a.name, [-5 for _ in a.ints])
    if node.input:
        yield "no inputs", "count", without_inputs
        yield "twelve inputs more", "count", more_inputs
    yield "nine outputs more", "count", more_outputs
    for i, value in enumerate(model.graph.input):
        if not value.type.HasField("tensor_type"):
            yield f"input {i} a tensor", "count", rank(i, [2])
            continue
        shape = value.type.tensor_type.shape.dim
        for element in (TensorProto.STRING, TensorProto.BOOL, TensorProto.FLOAT, TensorProto.INT16):
            name = TensorProto.DataType.Name(element).lower()
            yield f"input {i} of {name}", "dtype", element_type(i, element)
        yield f"input {i} a scalar", "shape", rank(i, [])
        yield f"input {i} of rank 7", "shape", rank(i, [2, 1, 3, 1, 2, 1, 2])
        for axis in range(len(shape)):
            yield f"input {i} longer along {axis}", "shape", longer(i, axis)


def is_invalid(model):
    """Whether ONNX's own shape inference refuses it."""
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError:
        return True
    return False


def operands(model):
    """How a message writes the node's operands that are inputs of the model: "float32[3, 4]"."""
    texts = []
    for value in model.graph.input:
        if not value.type.HasField("tensor_type"):
            continue
        tensor = value.type.tensor_type
        dtype = {"DOUBLE": "float64", "FLOAT": "float32"}.get(
            TensorProto.DataType.Name(tensor.elem_type), TensorProto.DataType.Name(tensor.elem_type).lower()
        )
        texts.append(f"{dtype}[{', '.join(str(d.dim_value) for d in tensor.shape.dim)}]")
    return texts
