"""What each mode makes of a case: a list of models, each with the data it is run on.

static: the model as given. dynamic: every extent of every input, and of what sequences and optionals hold, is a symbol
of its own; outputs keep their element types and ranks, and values between carry no declaration. constant: the inputs
of each data set stand in the model and nothing is fed; a sequence or an optional is made by a node from constants.
"""

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

MODES = ("static", "dynamic", "constant")


@dataclass
class Variant:
    model_path: Path
    data: list  # of (feeds, expected outputs)


def variants(case, mode, folder):
    """Yields the case's models in a mode; those that are written lie in the folder."""
    if mode == "static":
        yield Variant(case.model_path, case.data_sets())
        return
    if mode == "dynamic":
        yield Variant(_write(with_symbols(case.model), folder, case, 0), case.data_sets())
        return
    for index, (feeds, expected) in enumerate(case.data_sets()):
        yield Variant(_write(with_constants(case.model, feeds), folder, case, index), [({}, expected)])


def _write(model, folder, case, index):
    path = folder / f"{case.kind}-{case.name}-{index}.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def with_symbols(model):
    model = deepcopy(model)
    graph = model.graph
    given = {tensor.name for tensor in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    del graph.value_info[:]
    for value in graph.input:
        if value.name not in given:
            _make_symbolic(value.type, value.name)
    for value in graph.output:
        _make_symbolic(value.type, value.name)
    return model


def _make_symbolic(type_proto, name):
    kind = type_proto.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        _make_symbolic(getattr(type_proto, kind).elem_type, name)
    elif kind == "tensor_type" and type_proto.tensor_type.HasField("shape"):
        for axis, extent in enumerate(type_proto.tensor_type.shape.dim):
            extent.dim_param = f"{name}_{axis}"


def with_constants(model, feeds):
    model = deepcopy(model)
    graph = model.graph
    model.ir_version = max(model.ir_version, 4)  # from which on an initializer need not be an input
    made = []
    for value in graph.input:
        if value.name in feeds:
            made += _constant(graph, value.name, value.type, feeds[value.name])
    kept = [value for value in graph.input if value.name not in feeds]
    del graph.input[:]
    graph.input.extend(kept)
    nodes = [*made, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    return model


def _constant(graph, name, type_proto, thing):
    """Puts a value into the graph; returns the nodes that make it, where an initializer cannot hold it."""
    kind = type_proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = numpy_helper.from_array(np.asarray(thing), name)
        if tensor.data_type != type_proto.tensor_type.elem_type:
            raise TypeError(f"the data of '{name}' have another element type than the input")
        graph.initializer.append(tensor)
        return []
    inner = getattr(type_proto, kind).elem_type
    if kind == "sequence_type":
        names, nodes = [f"{name}/{index}" for index in range(len(thing))], []
        for element, value in zip(names, thing, strict=True):
            nodes += _constant(graph, element, inner, value)
        if not names:
            dtype = inner.tensor_type.elem_type or TensorProto.FLOAT
            return [helper.make_node("SequenceEmpty", [], [name], dtype=dtype)]
        return [*nodes, helper.make_node("SequenceConstruct", names, [name])]
    if thing is None:
        return [helper.make_node("Optional", [], [name], type=inner)]
    return [*_constant(graph, f"{name}/value", inner, thing), helper.make_node("Optional", [f"{name}/value"], [name])]
