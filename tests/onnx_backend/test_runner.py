"""Tests of the runner itself, with ONNX Runtime or misbehaving workers in the compiler's place."""

import shutil

import numpy as np
import onnx
import pytest

from tests.onnx_backend import expected
from tests.onnx_backend.cases import KINDS, TOTAL, all_cases, compare
from tests.onnx_backend.modes import MODES, variants
from tests.onnx_backend.suite import Result, failures_by_operator, operator_table, run_suite, summary


def some(*names):
    return [case for case in all_cases() if case.name in names]


def result(name, state):
    return Result(name, "node", "Relu", ["Relu"], state, "detail", 0.0)


def test_counts_the_cases_of_the_suite():
    cases = all_cases()
    assert len(cases) == TOTAL
    counts = [sum(case.kind == kind for case in cases) for kind in KINDS]
    assert counts == [1765, 23, 82, 35, 9]
    assert all(case.model_path.is_file() for case in cases)


def test_passes_what_a_working_backend_computes():
    cases = some(
        "test_relu", "test_conv_with_strides_padding", "test_sequence_model1", "test_split_equal_parts_1d_opset18"
    )
    results = run_suite(cases, "onnxruntime")
    assert [r.name for r in results] == [c.name for c in cases]
    assert [r.state for r in results] == ["pass"] * 4, results


def test_a_wrong_answer_is_not_a_pass():
    (case,) = some("test_relu")
    ((feeds, (y,)),) = case.data_sets()
    assert compare(case, [y], [y]) is None
    assert "shape" in compare(case, [y.reshape(-1)], [y])
    assert compare(case, [y.astype(np.float64)], [y])
    assert compare(case, [y + 1e-2], [y])
    assert compare(case, [y, y], [y])
    assert compare(case, [np.where(y == y.max(), np.nan, y)], [y])


def test_a_model_that_the_backend_refuses_is_a_failure(tmp_path):
    (case,) = some("test_relu")
    shutil.copytree(case.model_path.parent, tmp_path, dirs_exist_ok=True)
    bad = tmp_path / "model.onnx"
    bad.write_bytes(case.model.SerializeToString().replace(b"Relu", b"Rela"))
    case.model_path = bad
    (outcome,) = run_suite([case], "onnxruntime")
    assert outcome.state == "run" and "Rela" in outcome.detail


@pytest.mark.parametrize("mode", MODES)
def test_the_expected_list_of_each_mode_only_grows(tmp_path, mode):
    assert expected.grow([result("a", "pass"), result("b", "wrong")], mode, tmp_path) == {"node/a"}
    assert expected.grow([result("a", "wrong"), result("b", "pass")], mode, tmp_path) == {"node/b"}
    assert expected.read(mode, tmp_path) == {"node/a", "node/b"}
    lost = expected.regressions([result("a", "crash"), result("b", "pass")], mode, tmp_path)
    assert [r.name for r in lost] == ["a"]
    assert [file.name for file in tmp_path.iterdir()] == [expected.file_of(mode).name]


def test_failures_are_listed_by_operator():
    results = [result("a", "pass"), result("b", "wrong"), result("c", "crash")]
    assert "Relu: 2 of 3 fail" in failures_by_operator(results)
    assert summary(results).startswith("1 of 3 cases pass\n")
    header, row = operator_table(results).splitlines()
    assert dict(zip(header.split(), row.split(), strict=True)) == {
        "operator": "Relu", "cases": "3", "pass": "1", "folded": "-", "compile": "-", "run": "-", "wrong": "1",
        "crash": "1",
    }  # fmt: skip


def test_what_folded_to_nothing_is_counted_apart():
    results = [result("a", "pass"), result("b", "pass"), result("c", "wrong")]
    results[0].folded = results[2].folded = True
    assert summary(results).startswith("2 of 3 cases pass, 1 of them folded to nothing\n")


@pytest.mark.parametrize("mode", MODES)
def test_a_working_backend_passes_in_every_mode(mode):
    cases = some("test_add_bcast", "test_sequence_model1", "test_optional_get_element_sequence", "test_pow")
    results = run_suite(cases, "onnxruntime", mode=mode)
    assert [r.state for r in results] == ["pass"] * 4, results


def test_models_of_every_mode_are_valid(tmp_path):
    """Every third case. Nothing is fed in the constant mode, and in the dynamic one no extent of an input is a number;
    what an initializer gives stays an input, as old models list it."""
    for case in all_cases()[::3]:
        for variant in variants(case, "constant", tmp_path):
            model = onnx.load(variant.model_path)
            onnx.checker.check_model(model)
            assert {v.name for v in model.graph.input} <= {tensor.name for tensor in model.graph.initializer}
            assert all(not feeds for feeds, _ in variant.data)
        (variant,) = variants(case, "dynamic", tmp_path)
        model = onnx.load(variant.model_path)
        onnx.checker.check_model(model)
        given = {tensor.name for tensor in model.graph.initializer}
        for value in model.graph.input:
            extents = value.type.tensor_type.shape.dim
            assert value.name in given or all(extent.HasField("dim_param") for extent in extents)
