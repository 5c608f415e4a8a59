"""Models with Loop and Scan whose gradients are checked: what is carried, captured, scanned and stacked, and nests."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.operators.gradients import untyped_model
from tests.operators.test_control_flow import random_model

OPSET = 21


def _graph(text):
    return onnx.parser.parse_graph(text)


def _model(nodes, feeds, outputs, constants=None, opset=OPSET, domain=""):
    return untyped_model(nodes, feeds, constants or {}, outputs, opset, domain), feeds


def _trips(count):
    return np.array(count, np.int64)


def _turns(count):
    """Two values are carried and one is stacked; `w` is captured, and the number of turns a value."""

    def case(rng):
        body = _graph("""b (int64 i, bool c, double[3] u, double[3] v) =>
                           (bool d, double[3] p, double[3] q, double[3] r) {
            d = Identity(c)
            h = Mul(u, w)
            p = Sin(h)
            q = Add(v, p)
            r = Mul(q, u)
        }""")
        loop = helper.make_node("Loop", ["m", "", "e", "x"], ["y", "z", "r"], body=body)
        nodes = [helper.make_node("Exp", ["x"], ["e"]), loop]
        feeds = {"m": _trips(count), "x": rng.normal(size=3), "w": rng.normal(size=3)}
        return _model(nodes, feeds, ("y", "z", "r"))

    return case


def _ends_early(rng):
    """The body says when it is enough, by what it carries; a row is stacked of the last turn as well."""
    body = _graph("""b (int64 i, bool c, double[2] u) => (bool d, double[2] p, double s) {
        p = Mul(u, w)
        s = ReduceSum <keepdims = 0> (p)
        d = Less(s, limit)
    }""")
    node = helper.make_node("Loop", ["", "", "x"], ["y", "s"], body=body)
    feeds = {"x": rng.uniform(1, 2, 2), "w": rng.uniform(1.5, 2, 2), "limit": np.array(25.25)}
    nodes = [node, helper.make_node("Mul", ["y", "limit"], ["l"])]
    return _model(nodes, feeds, ("l", "s"))


def _never_begins(rng):
    body = _graph("b (int64 i, bool c, double[2] u) => (bool d, double[2] p) { p = Mul(u, w) d = Identity(c) }")
    feeds = {"c": np.array(False), "x": rng.normal(size=2), "w": rng.normal(size=2)}
    return _model([helper.make_node("Loop", ["", "c", "x"], ["y"], body=body)], feeds, ("y",))


def _becomes_dependent(rng):
    """What is carried begins with constants, and depends on `w` after one turn, on its neighbour after two."""
    body = _graph("""b (int64 i, bool c, double[3] u, double[3] v) => (bool d, double[3] p, double[3] q) {
        d = Identity(c)
        h = Mul(v, v)
        p = Add(u, h)
        q = Sub(w, u)
    }""")
    node = helper.make_node("Loop", ["m", "", "zero", "one"], ["y", "z"], body=body)
    constants = {"zero": np.zeros(3), "one": np.ones(3)}
    return _model([node], {"m": _trips(4), "w": rng.normal(size=3) / 2}, ("y", "z"), constants)


def _rows_only(rng):
    """Nothing is carried: each turn reads its row of what is captured."""
    body = _graph("b (int64 i, bool c) => (bool d, double[2] r) { d = Identity(c) g = Gather(x, i) r = Mul(g, g) }")
    node = helper.make_node("Loop", ["m", ""], ["y"], body=body)
    return _model([node], {"m": _trips(3), "x": rng.normal(size=(3, 2))}, ("y",))


def _carries_a_position(rng):
    """Integers that are carried have no gradient, but say what a turn read."""
    body = _graph("""b (int64 i, bool c, int64 k, double s) => (bool d, int64 n, double t) {
        d = Identity(c)
        g = Gather(x, k)
        t = Mul(s, g)
        j = Gather(next, k)
        n = Identity(j)
    }""")
    feeds = {"x": rng.uniform(0.5, 1.5, 4), "s": np.array(rng.normal()), "next": np.array([2, 0, 3, 1], np.int64)}
    node = helper.make_node("Loop", ["m", "", "k", "s"], ["n", "y"], body=body)
    return _model([node], feeds, ("n", "y"), {"m": _trips(6), "k": _trips(1)})


def _nests(rng):
    """A loop in a loop, as often as the turn around it says, and a branch by the turn."""
    body = _graph("""b (int64 i, bool c, double[2] u) => (bool d, double[2] p) {
        d = Identity(c)
        one = Constant <value_int = 1> ()
        h = Mul(u, w)
        k = Add(i, one)
        q, r = Loop <body = inner (int64 j, bool e, double[2] a) => (bool f, double[2] b2, double[2] b3) {
            f = Identity(e)
            b1 = Mul(a, h)
            b2 = Add(b1, x)
            b3 = Sin(b2)
        }> (k, c, u)
        odd = Mod(i, two)
        is_odd = Cast <to = 9> (odd)
        v = If (is_odd) <
            then_branch = t () => (double[2] tr) { tr = Tanh(q) },
            else_branch = o () => (double[2] el) { el = Mul(q, u) }
        >
        s = ReduceSum <keepdims = 0> (r)
        t = Add(v, s)
        p = Tanh(t)
    }""")
    node = helper.make_node("Loop", ["m", "", "x"], ["y"], body=body)
    feeds = {"x": rng.uniform(0.5, 1, 2), "w": rng.normal(size=2) / 2}
    return _model([node], feeds, ("y",), {"m": _trips(3), "two": _trips(2)})


def _in_a_branch(rng):
    """A loop in a branch, whose forward turns are taken again with the branch."""
    then = _graph("""t () => (double[3] a) {
        a = Loop <body = b (int64 i, bool c, double[3] u) => (bool d, double[3] p) {
            d = Identity(c)
            s = Sin(u)
            p = Mul(s, w)
        }> (m, c, x)
    }""")
    otherwise = _graph("o () => (double[3] b) { b = Mul(x, w) }")
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)
    feeds = {"c": np.array(True), "m": _trips(3), "x": rng.normal(size=3), "w": rng.normal(size=3)}
    return _model([node], feeds, ("y",))


def _twice(rng):
    """The gradient of a loop's gradient."""
    body = _graph("""b (int64 i, bool c, double[2] u) => (bool d, double[2] p) {
        d = Identity(c)
        s = Sin(u)
        p = Mul(s, w)
    }""")
    nodes = [
        helper.make_node("Loop", ["m", "", "x"], ["l"], body=body),
        helper.make_node("Mul", ["l", "l"], ["s"]),
        helper.make_node("Gradient", ["x", "w"], ["dx", "dw"], xs=["x", "w"], y="s", domain="ai.onnx.preview.training"),
    ]
    feeds = {"m": _trips(3), "x": rng.normal(size=2), "w": rng.uniform(0.5, 1.5, 2)}
    return _model(nodes, feeds, ("dx", "dw"), domain="ai.onnx.preview.training", opset=1)


def _scan(**attributes):
    """A recurrent network: a state, two inputs, and two outputs beside the last state."""

    def case(rng):
        body = _graph("""b (double[2] h, double[3] a, double[2] g) => (double[2] n, double[2] o, double[3] t) {
            f = MatMul(a, w)
            s = Add(h, f)
            e = Tanh(s)
            n = Mul(e, g)
            o = Sub(n, h)
            t = Sin(a)
        }""")
        shapes = {"h": 2, "a": (4, 3), "g": (4, 2), "w": (3, 2)}
        feeds = {name: rng.normal(size=shape) for name, shape in shapes.items()}
        for name, axis in zip(("a", "g"), attributes.get("scan_input_axes", (0, 0)), strict=True):
            feeds[name] = np.ascontiguousarray(np.moveaxis(feeds[name], 0, axis))
        node = helper.make_node("Scan", ["h", "a", "g"], ["n", "o", "t"], body=body, num_scan_inputs=2, **attributes)
        return _model([node], feeds, ("n", "o", "t"))

    return case


def _scan_of_batches(rng):
    body = _graph("""b (double[2] h, double[2] a) => (double[2] n, double[2] o) {
        p = Mul(h, a)
        n = Sin(p)
        o = Add(n, a)
    }""")
    node = helper.make_node("Scan", ["", "h", "a"], ["n", "o"], body=body, num_scan_inputs=1)
    return _model([node], {"h": rng.normal(size=(2, 2)), "a": rng.normal(size=(2, 3, 2))}, ("n", "o"), opset=8)


def _widen(graph):
    """The graph and those inside of it in float64."""
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor).astype(np.float64)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _widen(attribute.g)


def random_nest(seed, index):
    """If, Loop and Scan inside each other, what the model is fed, and what drew them."""
    model, random = random_model(seed, index, grows=False)
    _widen(model.graph)
    feeds = {name: random.rng.uniform(-1, 1, 3) for name in "xy"}
    feeds["m"] = np.array(random.integer(0, 3), np.int64)
    return model, feeds, random.rng


CASES = {
    "Loop_turns": _turns(4),
    "Loop_one_turn": _turns(1),
    "Loop_no_turns": _turns(0),
    "Loop_ends_early": _ends_early,
    "Loop_never_begins": _never_begins,
    "Loop_becomes_dependent": _becomes_dependent,
    "Loop_rows_only": _rows_only,
    "Loop_carries_a_position": _carries_a_position,
    "Loop_nests": _nests,
    "Loop_in_a_branch": _in_a_branch,
    "Loop_twice": _twice,
    "Scan": _scan(),
    "Scan_reversed": _scan(scan_input_directions=[1, 0], scan_output_directions=[0, 1]),
    "Scan_axes": _scan(scan_input_axes=[1, 0], scan_output_axes=[1, 0], scan_input_directions=[0, 1]),
    "Scan_of_batches": _scan_of_batches,
}
