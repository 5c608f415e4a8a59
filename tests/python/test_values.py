"""Sequences and optionals as inputs and outputs of compiled models: lists and None."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import lathe

FLOAT = TensorProto.FLOAT
node, tensor = helper.make_node, helper.make_tensor_value_info
sequence = helper.make_tensor_sequence_value_info


def model(nodes, inputs, outputs):
    graph = helper.make_graph(nodes, "values", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def optional(name):
    inner = helper.make_tensor_type_proto(FLOAT, [2])
    return helper.make_value_info(name, helper.make_optional_type_proto(inner))


@pytest.fixture(scope="module")
def pick():
    """The element at a position, the sequence with one more, and its length."""
    nodes = [
        node("SequenceAt", ["s", "at"], ["one"], name="pick"),
        node("SequenceInsert", ["s", "more"], ["longer"], name="append"),
        node("SequenceLength", ["longer"], ["length"], name="count"),
    ]
    inputs = [sequence("s", FLOAT, [2]), tensor("at", TensorProto.INT64, []), tensor("more", FLOAT, [2])]
    outputs = [tensor("one", FLOAT, [2]), sequence("longer", FLOAT, [2]), tensor("length", TensorProto.INT64, [])]
    return lathe.compile(model(nodes, inputs, outputs))


ROWS = [np.array([i, i + 0.5], np.float32) for i in range(3)]


def at(position):
    return np.array(position, np.int64)


def test_sequences_go_in_and_come_out(pick, tmp_path):
    pick.save(tmp_path / "m.so")
    for exe in (pick, lathe.load(tmp_path / "m.so")):
        for rows in (ROWS, tuple(ROWS)):
            one, longer, length = exe(rows, at(-1), ROWS[0])
            assert np.array_equal(one, ROWS[2]) and length == 4
            assert isinstance(longer, list) and all(
                np.array_equal(a, b) for a, b in zip(longer, [*ROWS, ROWS[0]], strict=True)
            )
        assert exe(s=ROWS, at=at(0), more=np.arange(4, dtype=np.float32)[::2])[1][3][1] == 2
        assert "s: sequence" in repr(exe)


def test_results_outlive_what_made_them():
    exe = lathe.compile(model([node("SequenceConstruct", ["x", "x"], ["s"])], [tensor("x", FLOAT, ["n"])],
                              [sequence("s", FLOAT, ["n"])]))  # fmt: skip
    made = exe(np.arange(5, dtype=np.float32))
    exe(np.zeros(5, np.float32))
    del exe
    assert [array.tolist() for array in made] == [[0, 1, 2, 3, 4]] * 2


def test_optionals_are_none_or_what_they_hold():
    nodes = [node("OptionalHasElement", ["o"], ["has"])]
    exe = lathe.compile(model(nodes, [optional("o")], [tensor("has", TensorProto.BOOL, [])]))
    assert exe(ROWS[0]) and not exe(None)


def test_misuse_names_the_input(pick):
    for given, words in (
        (ROWS[0], "input 's' is a ndarray, not a list of arrays"),
        (3, "input 's' is a int, not a list of arrays"),
        ([ROWS[0], 4], "input 's\\[1\\]' is a int, not a NumPy array"),
        ([ROWS[0], None], "input 's\\[1\\]' is a NoneType"),
    ):
        with pytest.raises(TypeError, match=words):
            pick(given, at(0), ROWS[0])
    with pytest.raises(TypeError, match="input 'more' is a list, not an array"):
        pick(ROWS, at(0), ROWS)
    with pytest.raises(lathe.InputError, match="input 'more' must fit more: float32 \\[2\\]"):
        pick(ROWS, at(0), np.zeros((1, 2), np.float32))
    with pytest.raises(lathe.InputError, match="input 'at' must be int64, it is float32"):
        pick(ROWS, np.float32(0), ROWS[0])
    for position in (3, -4):
        with pytest.raises(lathe.RunError, match=f"'pick'.*position {position} lies outside of a sequence of 3"):
            pick(ROWS, at(position), ROWS[0])
    with pytest.raises(lathe.RunError, match="'pick'"):
        pick([], at(0), ROWS[0])
    with pytest.raises(lathe.RunError, match="'pick'.*float64"):
        pick([ROWS[0].astype(np.float64)], at(0), ROWS[0])
    assert pick(ROWS, at(1), ROWS[0])[2] == 4
