"""The generators make what they say: their harm is in the files."""

import numpy as np
import onnx
import pytest

from tests.hostile import files
from tests.support.command import Outcome, assert_clear_failure


@pytest.mark.parametrize("name", files.MODELS_THAT_HARM)
def test_each_model_is_a_readable_file_that_onnx_runtime_or_the_checker_refuses_or_fears(name, tmp_path):
    path = files.write_model(name, tmp_path)
    parsed = onnx.ModelProto.FromString(path.read_bytes())
    assert len(parsed.SerializeToString()) > 0
    if name not in ("no graph",):
        assert parsed.graph.node or parsed.functions


def test_without_harm_the_model_is_valid():
    onnx.checker.check_model(files.add_weight(), full_check=True)


def test_nesting_is_as_deep_as_said():
    assert files.nested([1, 5, 6], 2) == files.field(
        1, files.field(5, files.field(6, files.field(1, files.field(5, files.field(6, b"")))))
    )
    assert len(files.nested_graphs()) > 6 * files.MILLION
    # at a harmless depth the branches are a true model
    shallow = onnx.ModelProto.FromString(files.nested_branches(10))
    graph, depth = shallow.graph, 0
    while graph.node[0].op_type == "If":
        graph, depth = graph.node[0].attribute[0].g, depth + 1
    assert depth == 10 and graph.node[0].op_type == "Identity"


def test_damage_is_reproducible_and_real():
    for content in files.good_files().values():
        first, again = files.mutations(content, 20, 1), files.mutations(content, 20, 1)
        assert first == again
        assert all(m != content and len(m) == len(content) for m in first)
        cuts = files.truncations(content, 12, 1)
        assert all(len(cut) == place < len(content) for place, cut in cuts.items())


def test_mutations_mostly_hit_the_structure():
    content = files.good_files()["digits"]
    structure = set(files._structure_offsets(content).tolist())
    assert 100 < len(structure) < len(content) / 4
    hits = [
        i for m in files.mutations(content, 30, 1)
        for i in np.flatnonzero(np.frombuffer(m, np.uint8) != np.frombuffer(content, np.uint8)).tolist()
    ]  # fmt: skip
    assert sum(i in structure for i in hits) > len(hits) / 2


@pytest.mark.parametrize(
    "code, err",
    [
        (0, "model.onnx: cannot read it"), (-11, "model.onnx: cannot read it"), (2, "model.onnx: cannot read it"),
        (1, ""), (1, "bad"), (1, "terminate called after throwing an instance of x"),
        (1, "model.onnx: it is broken\nmodel.onnx: it is also broken"), (1, "Traceback (most recent call last):"),
    ],
)  # fmt: skip
def test_the_criterion_can_fail(code, err):
    with pytest.raises(AssertionError):
        assert_clear_failure(Outcome(["lathe"], code, "", err, 0.1, False))


def test_the_criterion_can_pass():
    err = "bert.onnx, node 'Add_12': cannot broadcast [8, 128] with [8, 64]\n  note: left operand is 'MatMul_3'\n"
    assert_clear_failure(Outcome(["lathe"], 1, "", err, 0.1, False))
