"""Ways to misuse operators that only the run can see: models, with values that fit and values that do not."""

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

NODE = "the_node_under_test"
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}
TYPES[np.dtype(np.bool_)] = TensorProto.BOOL


@dataclass
class Misuse:
    op: str
    good: dict  # inputs by name
    bad: dict  # those that are other than in `good`
    says: str  # of the message beside the node; "" where the run takes the value, which may not harm
    attributes: dict | None = None
    outputs: int = 1

    def model(self):
        """The operator alone; every extent is a symbol of its own, so that nothing is known before the run."""
        inputs = [
            helper.make_tensor_value_info(name, TYPES[array.dtype], [f"{name}_{axis}" for axis in range(array.ndim)])
            for name, array in self.good.items()
        ]
        names = [f"y{position}" for position in range(self.outputs)]
        node = helper.make_node(self.op, list(self.good), names, name=NODE, **(self.attributes or {}))
        outputs = [helper.make_empty_tensor_value_info(name) for name in names]
        graph = helper.make_graph([node], "misuse", inputs, outputs)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def f(*shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def i(*values):
    return np.array(values, np.int64)


def n(value):
    return np.array(value, np.int64)


MISUSES = {
    "Concat": Misuse(
        "Concat", {"a": f(2, 3), "b": f(4, 3)}, {"b": f(4, 5)}, "b_1 is 5, it must be a_1, which is 3",
        {"axis": 0}),
    "Add": Misuse(
        "Add", {"a": f(2, 3), "b": f(2, 3)}, {"b": f(2, 4)}, "b_1 is 4, it must be 1 or a_1, which is 3"),
    "Where": Misuse(
        "Where", {"c": np.ones((2, 3), bool), "a": f(2, 3), "b": f(2, 3)}, {"b": f(4, 3)}, "b_0 is 4, it must be 1 or"),
    "MatMul": Misuse(
        "MatMul", {"a": f(2, 3), "b": f(3, 4)}, {"b": f(5, 4)}, "a_1 is 3, it must be b_0, which is 5"),
    "Gemm": Misuse(
        "Gemm", {"a": f(2, 3), "b": f(3, 4), "c": f(2, 4)}, {"b": f(5, 4)}, "a_1 is 3, it must be b_0, which is 5"),
    "Conv": Misuse(
        "Conv", {"x": f(1, 2, 5, 5), "w": f(3, 2, 3, 3)}, {"w": f(3, 4, 3, 3)}, "x_1 is 2, it must be w_1, which is 4"),
    "ScatterElements, updates": Misuse(
        "ScatterElements", {"x": f(3, 4), "at": i([0, 2]), "u": f(1, 2)}, {"u": f(1, 3)},
        "u_1 is 3, it must be at_1, which is 2"),
    "ScatterND, updates": Misuse(
        "ScatterND", {"x": f(3, 4), "at": i([2]), "u": f(1, 4)}, {"u": f(1, 5)},
        "u_1 is 5, it must be x_1, which is 4"),
    "Tile, negative": Misuse("Tile", {"x": f(2, 3), "times": i(1, 2)}, {"times": i(1, -2)}, "the shape [2, -6]"),
    "Range, zero delta": Misuse("Range", {"a": n(0), "b": n(5), "d": n(1)}, {"d": n(0)}, "a tensor cannot have"),
    "TopK, k": Misuse("TopK", {"x": f(2, 5), "k": i(3)}, {"k": i(6)}, "is 5, it must be max(", outputs=2),
    "Gather out of range": Misuse("Gather", {"x": f(3, 4), "at": i(0, 2)}, {"at": i(0, 3)},
        "Gather: 'at' holds 3 at [1], but axis 0 of 'x' takes indices in [-3, 3); "
        "'x', the graph's input, is float32[3, 4]; 'at', the graph's input, is int64[2]"),
    "Gather below": Misuse("Gather", {"x": f(3, 4), "at": i(0, -3)}, {"at": i(0, -400)}, "'at' holds -400 at [1]"),
    "GatherElements": Misuse(
        "GatherElements", {"x": f(3, 4), "at": i([0, 2])}, {"at": i([0, 1 << 40])},
        f"'at' holds {1 << 40} at [0, 1]"),
    "ScatterElements": Misuse(
        "ScatterElements", {"x": f(3, 4), "at": i([0, 2]), "u": f(1, 2)}, {"at": i([0, 1 << 40])},
        "axis 0 of 'x' takes indices in [-3, 3)"),
    "ScatterND": Misuse(
        "ScatterND", {"x": f(3, 4), "at": i([2]), "u": f(1, 4)}, {"at": i([-(1 << 40)])},
        f"'at' holds {-(1 << 40)} at [0, 0], but axis 0 of"),
    "Slice, steps of zero": Misuse(
        "Slice", {"x": f(6), "a": i(0), "b": i(6), "axes": i(0), "step": i(2)}, {"step": i(0)}, ""),
    "Pad, more than there is": Misuse("Pad", {"x": f(4), "pads": i(1, 1)}, {"pads": i(-3, -2)}, ""),
    "Pad, reflected too far": Misuse("Pad", {"x": f(4), "pads": i(1, 1)}, {"pads": i(9, 0)}, "", {"mode": "reflect"}),
    "TopK, negative k": Misuse("TopK", {"x": f(2, 5), "k": i(3)}, {"k": i(-1)}, "", outputs=2),
    "OneHot, depth": Misuse("OneHot", {"x": i(0, 2), "depth": n(3), "v": f(2)}, {"depth": n(-1)}, ""),
    "Div by zero": Misuse(
        "Div", {"a": i(1, -(1 << 63)), "b": i(1, 1)}, {"b": i(-1, 0)},
        "Div: 'b' is 0 at [1], and integers are not divided by 0; 'a', the graph's input, is int64[2]"),
    "Mod by zero": Misuse(
        "Mod", {"a": i(1, -(1 << 63)), "b": i(1, 1)}, {"b": i(0, -1)}, "'b' is 0 at [0]"),
    "ReverseSequence": Misuse("ReverseSequence", {"x": f(4, 2), "lens": i(1, 4)}, {"lens": i(1, 1 << 40)}, ""),
}  # fmt: skip
