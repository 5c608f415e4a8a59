"""A hundred random graphs by all parties; `./dev check --full random-graphs` runs five thousand."""

import os

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.random_graphs import truth
from tests.random_graphs.compare import compared
from tests.random_graphs.explained import ROWS
from tests.random_graphs.graph import Graph
from tests.random_graphs.growing import grown
from tests.random_graphs.many import compare_many
from tests.random_graphs.parties import PARTIES
from tests.support import paths
from tests.support.backends import run_model

GRAPHS = 100


def test_random_graphs(seed, request):
    count = request.config.getoption("--count") or GRAPHS
    tally = compare_many(seed, range(count), len(os.sched_getaffinity(0)))
    print(tally)
    rerun = f"rerun one: python -m tests.random_graphs --seed {seed} --index N"
    assert not tally.findings, f"{rerun}\n{tally}"
    for party in ("optimised", "unoptimised", "interpreter"):
        assert tally.answered[party] == count
    assert tally.answered["onnxruntime"] > count // 2 and tally.answered["evaluator"] > count // 2


def test_graphs_are_reproducible():
    for index in range(5):
        graph, again = grown(7, index), grown(7, index)
        assert graph.model(graph.results()).SerializeToString(deterministic=True) == again.model(
            again.results()
        ).SerializeToString(deterministic=True)
        for name, array in graph.feeds().items():
            np.testing.assert_array_equal(array, again.feeds()[name])


def test_graphs_reach_what_hurts():
    graphs = [grown(3, index) for index in range(150)]
    values = [v for g in graphs for n in g.nodes for v in n.outputs]
    assert len({n.op for g in graphs for n in g.nodes}) > 100
    assert {v.dtype for v in values} >= {"float", "double", "float16", "bfloat16", "int32", "int64", "bool", "uint8"}
    assert sum(any(isinstance(d, str) for d in g.axes_of[x.name]) for g in graphs for x in g.inputs) > 150
    assert sum(v.size == 0 for v in values) > 10
    assert sum(v.rank == 0 for v in values) > 10
    assert sum(len(g.results()) > 2 for g in graphs) > 60


def test_most_elements_are_decided():
    """A tolerance that allows anything would find nothing."""
    decided = total = 0
    for index in range(60):
        for value in grown(4, index).results():
            if value.dtype != "float" or not value.size:
                continue
            allowed = truth.allowed(value.data, value.dtype)
            decided += int((allowed < 1e-3 * max(float(np.abs(value.data[0]).max()), 1e-3)).sum())
            total += value.size
    assert decided > 0.95 * total


def test_a_wrong_answer_is_noticed(monkeypatch):
    """Lathe's answer with one element of one output off by a hundredth of the largest."""

    def slightly_wrong(model, feeds):
        made = PARTIES["evaluator"](model, feeds)
        for y in made:
            if y.dtype == np.float32 and y.size:
                y.flat[y.size // 2] += 0.01 * np.abs(y).max() + 1e-3
        return made

    noticed = floats = 0
    for index in range(25):
        graph = grown(1, index)
        if graph.float != "float" or not any(v.dtype == "float" and v.size for v in graph.results()):
            continue
        monkeypatch.setitem(PARTIES, "optimised", slightly_wrong)
        outcome = compared(1, index)
        monkeypatch.undo()
        if "optimised" in outcome.answered and not graph.special:
            floats += 1
            noticed += any(said.startswith("optimised") for said in outcome.findings)
    assert floats > 5 and noticed >= 0.8 * floats


def test_explanations_are_few_and_tested():
    assert len(ROWS) <= 20
    for row in ROWS:
        assert row.party in ("onnxruntime", "evaluator"), "what Lathe does differently is to be mended"
        assert row.reason and row.section and (paths.ROOT / row.test).is_file()


@pytest.mark.parametrize("axis", [-1, 0])
def test_one_hot_of_what_is_out_of_range(backend, axis):
    """All off; a negative one counts from the end."""
    info = helper.make_tensor_value_info
    node = helper.make_node("OneHot", ["x", "n", "v"], ["y"], axis=axis)
    weights = [
        helper.make_tensor("n", TensorProto.INT64, [], [3]),
        helper.make_tensor("v", TensorProto.FLOAT, [2], [0.5, 2]),
    ]
    graph = helper.make_graph(
        [node], "g", [info("x", TensorProto.INT64, [5])], [info("y", TensorProto.FLOAT, None)], weights
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    (y,) = run_model(backend, model, {"x": np.array([0, -1, 3, -4, 2])})
    wanted = np.full((5, 3), 0.5, np.float32)
    wanted[0, 0] = wanted[1, 2] = wanted[4, 2] = 2
    np.testing.assert_array_equal(y, wanted if axis == -1 else wanted.T)


def test_disturbed_evaluations_show_what_is_undecided():
    """x - x * (1 + e) is noise, and so is the floor of what is an integer but for rounding; x + 1 is not."""
    graph = Graph(1, 0)
    graph.opset = 13
    x = graph.fresh([50], "float", 1, 2, constant=False)
    (close,) = graph.node("Mul", [x, graph.constant(np.float64(1 + 2e-7), "float")])
    data = truth.evaluate(graph.noise, "Sub", 13, {}, [x.data, close.data], ["float"] * 2, ["float"])[0]
    assert truth.difference(np.zeros(50, np.float32), data, "float") is None
    (more,) = graph.node("Add", [x, graph.constant(np.float64(1), "float")])
    assert truth.difference((more.data[0] * 1.001).astype(np.float32), more.data, "float")
