"""Lines from the user's own ONNX files: their open dimensions get sizes, and their inputs are made up."""

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto

from bench.lines import Line
from tests.models import random_input

SUFFIX = ".onnx"
SAME_ELEMENTS = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten")


@dataclass(frozen=True)
class FileLine(Line):
    def feeds(self, model, seed):
        """Random inputs for `model`: images and other floats, indices that lie in the tables they are looked up in,
        masks (whole numbers that index nothing, and truths) of ones but for their last eighth."""
        rng = np.random.default_rng(seed)
        tables, weights = _tables(model.graph), {tensor.name for tensor in model.graph.initializer}
        result = {}
        for value in model.graph.input:
            if value.name in weights:
                continue
            shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            if value.type.tensor_type.elem_type in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16):
                result[value.name] = random_input(shape, int(rng.integers(1 << 30))).astype(dtype)
            elif value.name in tables:
                result[value.name] = rng.integers(0, tables[value.name], shape).astype(dtype)
            else:
                last = shape[-1] if shape else 1
                result[value.name] = np.broadcast_to(np.arange(last) * 8 < 7 * last, shape).astype(dtype)
        return result


def _tables(graph):
    """{input: the least number of rows among the weights that it indexes, as it is or in another dtype or shape}."""
    rows = {tensor.name: tensor.dims[0] for tensor in graph.initializer if tensor.dims}
    source = {value.name: value.name for value in graph.input}
    result = {}
    for node in graph.node:
        if node.op_type in SAME_ELEMENTS and node.input[0] in source:
            source[node.output[0]] = source[node.input[0]]
        elif node.op_type == "Gather" and node.input[0] in rows and node.input[1] in source:
            name = source[node.input[1]]
            result[name] = min(result.get(name, rows[node.input[0]]), rows[node.input[0]])
    return result


def fixed(path, dims):
    """The model of a file with sizes {name: extent} for its inputs' open dimensions.

    Raises ValueError for an open dimension without a size and for a size that no input has a dimension for."""
    model = onnx.load(path)
    weights, used = {tensor.name for tensor in model.graph.initializer}, set()
    for value in model.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value") or value.name in weights:
                continue
            name = dim.dim_param or f"{value.name}_{axis}"
            if name not in dims:
                raise ValueError(f"{path}: axis {axis} of '{value.name}' has no size; give it as --dim {name}=1")
            dim.dim_value = dims[name]
            used.add(name)
    if unused := sorted(set(dims) - used):
        raise ValueError(f"{path}: no input has an open dimension '{unused[0]}'")
    del model.graph.value_info[:]  # with the names of the dimensions in them
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def parsed(pairs):
    """{name: extent} of words like "batch=1"."""
    result = {}
    for pair in pairs:
        name, _, size = pair.partition("=")
        if not name or not size.isdecimal():
            raise ValueError(f"--dim takes a name and a size, as batch=1, not '{pair}'")
        result[name] = int(size)
    return result


def file_line(path, dims):
    """The line of one file, which is read here, so that what is wrong with it is said at once."""
    model = fixed(path, dims)
    return FileLine(path.stem, "file", lambda: model, must_differ=False)
