"""The 1,914 cases of the suite as the `onnx` package installs them.

They are counted as `onnx.backend.test.loader` lists them, each case once (the suite's own runner lists every case again
for CUDA): 1,765 node, 82 pytorch-converted, 35 pytorch-operator, 23 simple and 9 real. The nine real ones are
full networks whose weights are constants in the file ("light"); nothing is downloaded.
"""

import glob
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
TOTAL = 1914


@dataclass
class Case:
    name: str
    kind: str
    model_path: Path
    rtol: float
    atol: float

    @cached_property
    def model(self):
        return onnx.load(self.model_path)

    @cached_property
    def operators(self):
        """Operators of the case with their domains, those of nested graphs included."""
        found = set()

        def walk(nodes):
            for node in nodes:
                found.add(f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type)
                for attribute in node.attribute:
                    if attribute.HasField("g"):
                        walk(attribute.g.node)

        walk(self.model.graph.node)
        return sorted(found)

    @cached_property
    def dtypes(self):
        """Names of the element types at the model's edges and of its casts; "OTHER" for sequences and optionals."""
        name = onnx.TensorProto.DataType.Name
        graph, found = self.model.graph, set()
        for value in [*graph.input, *graph.output, *graph.value_info]:
            tensor = value.type.HasField("tensor_type")
            found.add(name(value.type.tensor_type.elem_type) if tensor else "OTHER")
        found |= {name(t.data_type) for t in graph.initializer}
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    found.add(name(attribute.t.data_type))
                elif node.op_type == "Cast" and attribute.name == "to":
                    found.add(name(attribute.i))
        return found

    @property
    def operator(self):
        """The operator a failure is listed under: the case's own, else the name of the whole."""
        if len(self.operators) == 1:
            return self.operators[0]
        squeezed = self.name.removeprefix("test_").replace("_", "").lower()
        named = [o for o in self.operators if squeezed.startswith(o.rsplit(".", 1)[-1].lower())]
        return (
            max(named, key=len) if named else f"{self.operators[0]} and others" if self.kind != "real" else "networks"
        )

    def data_sets(self):
        """Yields (feeds, expected outputs)."""
        initializers = {t.name for t in self.model.graph.initializer}
        if self.kind == "real":
            inputs = [v for v in self.model.graph.input if v.name not in initializers]
            feeds = {v.name: Runner.generate_dummy_data(v) for v in inputs}
            prefix = str(self.model_path.with_suffix(""))
            outputs = self.model.graph.output
            yield feeds, [load_value(f"{prefix}_output_{i}.pb", v.type) for i, v in enumerate(outputs)]
            return
        for folder in sorted(glob.glob(str(self.model_path.parent / "test_data_set*"))):
            inputs = self._values(folder, "input", self.model.graph.input)
            feeds = {v.name: value for v, value in zip(self.model.graph.input, inputs, strict=False) if v.name}
            yield feeds, self._values(folder, "output", self.model.graph.output)

    @staticmethod
    def _values(folder, prefix, declared):
        count = len(glob.glob(os.path.join(folder, f"{prefix}_*.pb")))
        return [load_value(os.path.join(folder, f"{prefix}_{i}.pb"), declared[i].type) for i in range(count)]


def load_value(path, type_proto):
    content = Path(path).read_bytes()
    if type_proto.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if type_proto.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    return numpy_helper.to_array(onnx.TensorProto.FromString(content))


def all_cases():
    package = Path(onnx.__file__).parent.parent
    cases = []
    for kind in KINDS:
        for case in load_model_tests(kind=kind):
            folder = case.model_dir
            path = Path(folder) / "model.onnx" if folder else package / case.url
            cases.append(Case(case.name, kind, path, case.rtol, case.atol))
    return sorted(cases, key=lambda case: (KINDS.index(case.kind), case.name))


def assert_similar(case, outputs, expected):
    """By the suite's rule and tolerances for arrays; it takes lists apart too far, and fails on those of scalars."""
    assert len(outputs) == len(expected), f"{len(outputs)} values, {len(expected)} are expected"
    for output, wanted in zip(outputs, expected, strict=True):
        assert isinstance(output, list) == isinstance(wanted, list), f"{type(output)}, not {type(wanted)}"
        if isinstance(output, list):
            assert_similar(case, output, wanted)
        else:
            Runner.assert_similar_outputs([wanted], [output], rtol=case.rtol, atol=case.atol)


def compare(case, outputs, expected):
    """None when the outputs are within the suite's tolerances, else what differs."""
    try:
        with np.errstate(all="ignore"):
            assert_similar(case, outputs, expected)
    except (AssertionError, TypeError, ValueError, AttributeError) as error:
        return " ".join(str(error).split())[:300] or type(error).__name__
    return None
