"""The suite under pytest, in each mode: all of it with --full, else a share; then what must hold of the results."""

import pytest

from tests.onnx_backend import expected
from tests.onnx_backend.cases import TOTAL, all_cases
from tests.onnx_backend.modes import MODES
from tests.onnx_backend.suite import failures_by_operator, run_suite, summary, write_report
from tests.operators.claimed import CLAIMED, CLAIMED_DTYPES

# Node cases of claimed operators whose expected outputs only one implementation can give.
RANDOM = "the expected mask is NumPy's random stream, which the specification does not fix"
ROUNDED = "the expected zeros are what NumPy's transform rounds to, further from zero than the tolerance"
BEYOND = {
    "test_dft_inverse": ROUNDED, "test_dft_inverse_opset19": ROUNDED,
    "test_training_dropout": RANDOM, "test_training_dropout_default": RANDOM,
    "test_training_dropout_mask": RANDOM, "test_training_dropout_default_mask": RANDOM,
    "test_bernoulli": RANDOM, "test_bernoulli_double": RANDOM, "test_bernoulli_seed": RANDOM,
    "test_bernoulli_expanded": RANDOM, "test_bernoulli_double_expanded": RANDOM, "test_bernoulli_seed_expanded": RANDOM,
}  # fmt: skip

REQUIRED = {"static": 1902, "dynamic": 1898, "constant": 1902}  # of all cases
SHARE = 7  # without --full every seventh case runs as given, every 28th in the other modes


# The tests of one mode share its results, and so one process.
@pytest.fixture(scope="module", params=[pytest.param(mode, marks=pytest.mark.xdist_group(mode)) for mode in MODES])
def mode(request):
    return request.param


@pytest.fixture(scope="module")
def results(mode, backend, request):
    if backend == "reference":
        pytest.fail("the suite's expected outputs are the reference evaluator's: use lathe or onnxruntime")
    whole = request.config.getoption("--full")
    share = 1 if whole else SHARE if mode == "static" else 4 * SHARE
    results = run_suite(all_cases()[::share], backend, mode=mode)
    if backend == "lathe" and whole:
        write_report(results, mode)
    print(summary(results))
    return results


@pytest.mark.full
def test_all_cases_are_run(results):
    assert len(results) == TOTAL
    assert len({expected.key(r) for r in results}) == TOTAL


def test_the_share_reaches_most_operators():
    operators = {case.operator for case in all_cases()[::SHARE]}
    assert len(operators & set(CLAIMED)) > len(CLAIMED) * 0.5


def test_nothing_that_passed_fails(results, mode):
    lost = expected.regressions(results, mode)
    assert not lost, "\n" + failures_by_operator(lost)


@pytest.mark.full
def test_enough_cases_pass(results, mode):
    assert sum(r.state == "pass" for r in results) >= REQUIRED[mode], summary(results)


def test_nothing_crashes(results):
    crashed = [r for r in results if r.state == "crash"]
    assert not crashed, "\n" + failures_by_operator(crashed)


def test_nothing_is_wrong(results):
    """Refusing a case is honest; a wrong output is not."""
    wrong = [r for r in results if r.state == "wrong" and r.name not in BEYOND]
    assert not wrong, "\n" + failures_by_operator(wrong)


@pytest.mark.full
def test_every_node_case_of_every_claimed_operator_passes(results, mode):
    if mode != "static":
        return  # the mode's list holds what passes
    cases = {case.name: case for case in all_cases() if case.kind == "node"}
    claimed = [
        r for r in results
        if r.kind == "node" and set(r.operators) <= set(CLAIMED) and r.name not in BEYOND
        and cases[r.name].dtypes <= CLAIMED_DTYPES
    ]  # fmt: skip
    failed = [r for r in claimed if r.state != "pass"]
    assert len(claimed) > 650
    assert not failed, f"{len(failed)} of {len(claimed)}\n" + failures_by_operator(failed)
