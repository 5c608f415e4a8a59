"""Legal models that never end, or are larger than any machine: each as a model whose input says whether it does."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def model(nodes, outputs, initializers=()):
    """One input, `n`: an int64 scalar."""
    graph = helper.make_graph(nodes, "endless", [value("n", INT64, [])], outputs, initializer=list(initializers))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return made


def loop(name, body_nodes, carried, scanned=(), initial=(), trip="n", more=()):
    """A Loop of `trip` turns whose body has its condition always true. carried: (name in, name out, kind, shape)."""
    inputs = [value("turn", INT64, []), value("before", BOOL, [])]
    inputs += [value(given, kind, shape) for given, _, kind, shape in carried]
    outputs = [value("on", BOOL, [])]
    outputs += [value(made, kind, shape) for _, made, kind, shape in carried]
    outputs += [value(made, kind, shape) for made, kind, shape in scanned]
    body = helper.make_graph([node("Identity", ["before"], ["on"]), *body_nodes], name + "_body", inputs, outputs,
                             initializer=list(more))  # fmt: skip
    results = [f"{name}_{i}" for i in range(len(carried) + len(scanned))]
    return node("Loop", [trip, "true", *initial], results, name=name, body=body)


TRUE, ONE = constant("true", np.array(True)), constant("one", np.array(1, np.int64))
SHAPE1 = constant("shape1", np.array([1], np.int64))


def turns_without_end():
    add = node("Add", ["x", "x"], ["y"], name="double")
    return model([loop("forever", [add], [("x", "y", INT64, [])], initial=["one"])],
                 [value("forever_0", INT64, [])], [TRUE, ONE])  # fmt: skip


def concatenates_without_end():
    concat = node("Concat", ["x", "x"], ["y"], name="grows", axis=0)
    start = constant("start", np.ones(4, np.float32))
    return model([loop("growing", [concat], [("x", "y", FLOAT, ["k"])], initial=["start"])],
                 [value("growing_0", FLOAT, ["m"])], [TRUE, start])  # fmt: skip


def scans_without_end():
    spread = node("Expand", ["c", "wide"], ["row"], name="wide_row")
    more = [constant("c", np.ones(1, np.float32)), constant("wide", np.array([1 << 16], np.int64))]
    return model([loop("scanning", [spread], [], [("row", FLOAT, [1 << 16])], more=more)],
                 [value("scanning_0", FLOAT, ["m", 1 << 16])], [TRUE])  # fmt: skip


def sequence_without_end():
    insert = node("SequenceInsert", ["s", "item"], ["t"], name="insert")
    sequence = helper.make_tensor_sequence_value_info
    body = helper.make_graph(
        [node("Identity", ["before"], ["on"]), insert], "sequence_body",
        [value("turn", INT64, []), value("before", BOOL, []), sequence("s", FLOAT, [4])],
        [value("on", BOOL, []), sequence("t", FLOAT, [4])], initializer=[constant("item", np.ones(4, np.float32))],
    )  # fmt: skip
    nodes = [
        node("SequenceEmpty", [], ["empty"], dtype=FLOAT),
        node("Loop", ["n", "true", "empty"], ["all"], name="collecting", body=body),
        node("SequenceLength", ["all"], ["length"]),
    ]
    return model(nodes, [value("length", INT64, [])], [TRUE])


def nested_loops():
    inner = loop("inner", [node("Add", ["x", "x"], ["y"], name="double")], [("x", "y", INT64, [])],
                 initial=["p"], trip="n")  # fmt: skip
    outer = loop("outer", [inner], [("p", "inner_0", INT64, [])], initial=["one"])
    return model([outer], [value("outer_0", INT64, [])], [TRUE, ONE])


def _as_shape():
    return node("Reshape", ["n", "shape1"], ["shape"])


def fills():
    return model([_as_shape(), node("ConstantOfShape", ["shape"], ["y"], name="fill")],
                 [value("y", FLOAT, ["m"])], [SHAPE1])  # fmt: skip


def expands():
    return model([_as_shape(), node("Expand", ["c", "shape"], ["y"], name="expand")],
                 [value("y", FLOAT, ["m"])], [SHAPE1, constant("c", np.ones(1, np.float32))])  # fmt: skip


def ranges():
    return model([node("Range", ["zero", "n", "one"], ["y"], name="count")], [value("y", INT64, ["m"])],
                 [ONE, constant("zero", np.array(0, np.int64))])  # fmt: skip


def tiles():
    return model([_as_shape(), node("Tile", ["c", "shape"], ["y"], name="tile")],
                 [value("y", FLOAT, ["m"])], [SHAPE1, constant("c", np.ones(1, np.float32))])  # fmt: skip


def resizes():
    nodes = [
        _as_shape(), node("Concat", ["ones3", "shape"], ["sizes"], axis=0),
        node("Resize", ["c", "", "", "sizes"], ["y"], name="resize", mode="nearest"),
    ]  # fmt: skip
    more = [SHAPE1, constant("ones3", np.ones(3, np.int64)), constant("c", np.ones((1, 1, 1, 1), np.float32))]
    return model(nodes, [value("y", FLOAT, [1, 1, 1, "m"])], more)


def sums_of_what_is_nowhere():
    """An enormous sum that needs no memory when it is fused: one kernel that runs for hours."""
    nodes = [
        _as_shape(), node("Expand", ["c", "shape"], ["wide"], name="expand"), node("Sin", ["wide"], ["sines"]),
        node("ReduceSum", ["sines"], ["y"], name="sum", keepdims=0),
    ]  # fmt: skip
    return model(nodes, [value("y", FLOAT, [])], [SHAPE1, constant("c", np.ones(1, np.float32))])


def products_of_what_is_nowhere():
    """A product of expanded matrices over an enormous axis."""
    nodes = [
        _as_shape(), node("Concat", ["four", "shape"], ["left"], axis=0),
        node("Concat", ["shape", "four"], ["right"], axis=0), node("Expand", ["c", "left"], ["a"], name="left_side"),
        node("Expand", ["c", "right"], ["b"], name="right_side"), node("MatMul", ["a", "b"], ["y"], name="product"),
    ]  # fmt: skip
    more = [SHAPE1, constant("four", np.array([4], np.int64)), constant("c", np.ones((1, 1), np.float32))]
    return model(nodes, [value("y", FLOAT, [4, 4])], more)


# What runs for ever, and what asks for more memory than there is; with the operators or nodes that an error may name.
ENDLESS = {
    "turns": (turns_without_end, {"double", "forever"}),
    "nested loops": (nested_loops, {"double", "inner", "outer"}),
}
GROWING = {
    "concatenation": (concatenates_without_end, {"grows", "growing"}),
    "scan outputs": (scans_without_end, {"wide_row", "scanning"}),
    "sequence": (sequence_without_end, {"insert", "collecting"}),
}
ENORMOUS = {
    "ConstantOfShape": (fills, {"fill"}),
    "Expand": (expands, {"expand"}),
    "Range": (ranges, {"count"}),
    "Tile": (tiles, {"tile"}),
    "Resize": (resizes, {"resize"}),
    "a fused sum": (sums_of_what_is_nowhere, {"expand", "sum", ""}),
    "a product": (products_of_what_is_nowhere, {"left_side", "right_side", "product", ""}),
}
ALL = ENDLESS | GROWING | ENORMOUS
