"""If, Loop and Scan inside each other, at random, against ONNX Runtime: the onnx evaluator fails without a turn."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import lathe
from tests.support.artifacts import load_runtime
from tests.support.backends import UnsupportedModel, run_model

FAST, FULL = 20, 400
DEEPEST = 3


def scalar(name, kind):
    return helper.make_tensor_value_info(name, kind, [])


class Writer:
    """Nodes of one graph. `seen`: the float vectors of three that it may read, its own and those around it."""

    def __init__(self, rng, seen, numbers, depth):
        self.rng, self.seen, self.numbers, self.depth = rng, list(seen), list(numbers), depth
        self.nodes, self.initializers = [], []

    def name(self):
        self.rng.names += 1
        return f"v{self.rng.names}"

    def emit(self, op, inputs, count=1, **attributes):
        outputs = [self.name() for _ in range(count)]
        self.nodes.append(helper.make_node(op, inputs, outputs, **attributes))
        return outputs

    def constant(self, array):
        name = self.name()
        self.initializers.append(onnx.numpy_helper.from_array(array, name))
        return name

    def pick(self):
        return self.rng.choice(self.seen)

    def inner(self, more=(), numbers=()):
        return Writer(self.rng, [*self.seen, *more], [*self.numbers, *numbers], self.depth + 1)

    def graph(self, inputs, outputs):
        kinds = [o if isinstance(o, onnx.ValueInfoProto) else onnx.ValueInfoProto(name=o) for o in outputs]
        return helper.make_graph(self.nodes, "inside", inputs, kinds, self.initializers)

    def arithmetic(self):
        op = self.rng.choice(["Add", "Sub", "Mul", "Max", "Neg", "Tanh"])
        inputs = [self.pick()] if op in ("Neg", "Tanh") else [self.pick(), self.pick()]
        self.seen += self.emit(op, inputs)

    def fill(self):
        for _ in range(self.rng.integer(1, 3)):
            kinds = ["arithmetic"] * 3 + (self.rng.nests if self.depth < DEEPEST else [])
            getattr(self, self.rng.choice(kinds))()
        if not self.nodes:
            self.arithmetic()

    def condition(self):
        """Of a number, or of a vector's first element."""
        if self.numbers and self.rng.chance(0.5):
            return self.emit("Less", [self.rng.choice(self.numbers), self.constant(np.array(1, np.int64))])[0]
        first = self.emit("ReduceMax", [self.pick()], keepdims=0)[0]
        return self.emit("Less", [first, self.constant(np.array(0.5, np.float32))])[0]

    def branch(self):
        branches = {}
        for attribute in ("then_branch", "else_branch"):
            inside = self.inner()
            inside.fill()
            branches[attribute] = inside.graph([], [inside.seen[-1]])
        self.seen += self.emit("If", [self.condition()], **branches)

    def uneven(self):
        """Branches that give another number of dimensions each; what is made of it is a vector again."""
        self.rng.most_uneven -= 1
        if self.rng.most_uneven < 0:
            return self.branch()
        branches, ranks = {}, self.rng.choice([(0, 1), (2, 1), (0, 2), (2, 0), (1, 0)])
        for attribute, rank in zip(("then_branch", "else_branch"), ranks, strict=True):
            inside = self.inner()
            inside.fill()
            value = inside.seen[-1]
            if rank == 0:
                value = inside.emit("ReduceSum", [value], keepdims=0)[0]
            elif rank == 2:
                value = inside.emit("Unsqueeze", [value, inside.constant(np.array([1], np.int64))])[0]
            branches[attribute] = inside.graph([], [value])
        value = self.emit("Add", [self.emit("If", [self.condition()], **branches)[0], self.pick()])[0]
        if self.rng.chance(0.5):
            value = self.emit("Reshape", [value, self.constant(np.array([-1, 3], np.int64))])[0]
            return self.seen.extend(self.emit("ReduceMax", [value, self.constant(np.array([0], np.int64))], keepdims=0))
        size = self.emit("Size", [value])[0]  # a number that the rank of no value depends on
        self.seen += self.emit("Add", [self.pick(), self.emit("Cast", [size], to=TensorProto.FLOAT)[0]])

    def loop(self):
        inside = self.inner([f"carried{self.rng.names}"], [f"turn{self.rng.names}"])
        turn, go, carried = inside.numbers[-1], f"go{self.rng.names}", inside.seen[-1]
        inside.fill()
        on = inside.emit("Not", [inside.emit("Not", [go])[0]]) if self.rng.chance(0.5) else [inside.condition()]
        inputs = [scalar(turn, TensorProto.INT64), scalar(go, TensorProto.BOOL),
                  helper.make_tensor_value_info(carried, TensorProto.FLOAT, [3])]  # fmt: skip
        row = inside.emit("Identity", [inside.pick()])[0]
        body = inside.graph(inputs, [on[0], inside.seen[-1], row])
        trips = self.constant(np.array(self.rng.integer(0, 3), np.int64)) if self.rng.chance(0.5) else "m"
        last, rows = self.emit("Loop", [trips, "", self.pick()], 2, body=body)
        self.seen += [last, *self.emit("ReduceSum", [rows, self.constant(np.array([0], np.int64))], keepdims=0)]

    def growing(self):
        inside = self.inner([], [f"turn{self.rng.names}"])
        turn, go, carried = inside.numbers[-1], f"go{self.rng.names}", f"carried{self.rng.names}"
        inside.fill()
        longer = inside.emit("Concat", [carried, inside.seen[-1]], axis=0)[0]
        inputs = [scalar(turn, TensorProto.INT64), scalar(go, TensorProto.BOOL),
                  helper.make_tensor_value_info(carried, TensorProto.FLOAT, [None])]  # fmt: skip
        body = inside.graph(inputs, [inside.emit("Identity", [go])[0], longer])
        grown = self.emit("Loop", ["m", "", self.pick()], body=body)[0]
        folded = self.emit("Reshape", [grown, self.constant(np.array([-1, 3], np.int64))])[0]
        self.seen += self.emit("ReduceMax", [folded, self.constant(np.array([0], np.int64))], keepdims=0)

    def scan(self):
        inside = self.inner([f"state{self.rng.names}", f"part{self.rng.names}"])
        state, part = inside.seen[-2:]
        inside.fill()
        outputs = [inside.emit("Identity", [inside.seen[-1]])[0], inside.emit("Neg", [part])[0]]
        kinds = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in (state, part, *outputs)]
        body = inside.graph(kinds[:2], kinds[2:])
        parts = self.emit("Concat", [self.emit("Unsqueeze", [self.pick(), self.constant(np.array([0], np.int64))])[0]
                                     for _ in range(2)], axis=0)[0]  # fmt: skip
        last, rows = self.emit("Scan", [self.pick(), parts], 2, body=body, num_scan_inputs=1)
        self.seen += [last, *self.emit("ReduceMean", [rows, self.constant(np.array([0], np.int64))], keepdims=0)]


class Random:
    def __init__(self, seed, index, grows):
        self.rng, self.names = np.random.default_rng([seed, index]), 0
        self.nests = ["branch", "loop", "scan", *(["growing", "uneven"] if grows else [])]
        self.most_uneven = 3  # each may double what comes after it

    def choice(self, items):
        return items[int(self.rng.integers(len(items)))]

    def chance(self, probability):
        return self.rng.random() < probability

    def integer(self, low, high):
        return int(self.rng.integers(low, high + 1))


def random_model(seed, index, grows=True):
    """A model and what drew it; `grows`: with loops that carry what grows."""
    rng = Random(seed, index, grows)
    writer = Writer(rng, ["x", "y"], [], 0)
    for _ in range(3):
        writer.fill()
    getattr(writer, rng.choice(rng.nests))()
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in ("x", "y")]
    outputs = [helper.make_tensor_value_info(writer.seen[-1], TensorProto.FLOAT, [3])]
    inputs.append(scalar("m", TensorProto.INT64))
    graph = helper.make_graph(writer.nodes, "g", inputs, outputs, writer.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return model, rng


def run(backend, seed, count):
    failures, answered = [], 0
    for index in range(count):
        model, rng = random_model(seed, index)
        feeds = {n: rng.rng.uniform(-1, 1, 3).astype(np.float32) for n in ("x", "y")}
        feeds["m"] = np.array(rng.integer(0, 3), np.int64)
        try:
            wanted = run_model("onnxruntime", model, feeds)[0]
        except UnsupportedModel:  # some loops inside loops it cannot run
            continue
        answered += 1
        got = run_model(backend, model, feeds)[0]
        if not np.allclose(got, wanted, rtol=1e-4, atol=1e-5, equal_nan=True):
            failures.append(f"model {index}: {got}, wanted {wanted}")
    assert answered > count / 2
    assert not failures, f"{len(failures)} of {count} (seed {seed})\n" + "\n".join(failures[:5])


def test_nested_graphs(backend, seed, request):
    run(backend, seed, request.config.getoption("--count") or FAST)


@pytest.mark.full
def test_many_nested_graphs(backend, seed, request):
    run(backend, seed + 1, request.config.getoption("--count") or FULL)


ENDLESS = """<ir_version: 9, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) {
    y = Loop <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) {
        d = Identity(c)
        w = Add(v, v)
    }> (, , x)
}"""


def test_an_endless_loop_ends_at_the_limit(lathe_cli, tmp_path):
    onnx.save(onnx.parser.parse_model(ENDLESS), tmp_path / "m.onnx")
    lathe_cli("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.so")
    artifact = load_runtime().Artifact(tmp_path / "m.so", max_steps=100_000)
    with pytest.raises(RuntimeError, match="limit of 100000 steps"):
        artifact.run([np.ones(2, np.float32)])


def uneven(after, output="float[3] y", before=""):
    """A vector or its sum, as c says, and what comes after it."""
    return onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 18]> g (bool c, float[3] x) => ({output}) {{
        {before}
        v = If (c) <then_branch = t () => (float[3] a) {{ a = Neg(x) }},
                    else_branch = e () => (float b) {{ b = ReduceSum<keepdims = 0>(x) }}>
        {after}
    }}""")


X = np.array([1, 2, 4], np.float32)


def test_an_end_that_does_not_fit_fails_when_it_is_taken():
    rows = [
        ("y = Identity(v)", [-1, -2, -4], "the output 'y' has 0 dimensions, but the graph declares 1"),
        ("[turn] y = Transpose<perm = [0]>(v)", [-1, -2, -4], "the branch that was taken does not fit 'turn'"),
        ("s = Size(v) \n f = Cast<to = 1>(s) \n z = Mul(f, x) \n y = Concat<axis = 0>(z)", [3, 6, 12], None),
    ]
    for after, then, said in rows:
        exe = lathe.compile(uneven(after))
        np.testing.assert_array_equal(exe(np.array(True), X), np.array(then, np.float32))
        if said is None:
            np.testing.assert_array_equal(exe(np.array(False), X), X)
            continue
        with pytest.raises(lathe.RunError, match=said):
            exe(np.array(False), X)
        np.testing.assert_array_equal(exe(np.array(True), X), np.array(then, np.float32))  # it goes on


def test_uneven_branches_that_are_refused(lathe_cli, tmp_path):
    for model, said in (
        (uneven("y = Identity(v)", "y"), "float32\\[3\\] from then_branch and float32\\[\\] from else_branch"),
        (uneven("y = Transpose<perm = [0, 1]>(v)"), "perm"),
        (uneven("y = Identity(v)", "float[1, 3] y"), "declares 2"),
    ):
        with pytest.raises(lathe.ModelError, match=said):
            lathe.compile(model)
    again = "".join(
        f"u{i} = If (c) <then_branch = t{i} () => (a{i}) {{ a{i} = Neg(x) }},"
        f" else_branch = e{i} () => (b{i}) {{ b{i} = ReduceSum<keepdims = 0>(x) }}>\n w{i} = Add(u{i}, v)\n"
        for i in range(7)
    )
    with pytest.raises(lathe.ModelError, match="more than 64 ends"):
        lathe.compile(uneven(again + "y = Sum(" + ", ".join(f"w{i}" for i in range(7)) + ")"))
    onnx.save(uneven("y = Mul(v, x)"), tmp_path / "m.onnx")
    assert "whole graph" in lathe_cli.fails("opt", tmp_path / "m.onnx", "-o", tmp_path / "n.onnx").err
