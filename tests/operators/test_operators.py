"""Every claimed operator on random samples: --seed chooses them, --count says how many of each."""

import numpy as np
import pytest

from tests.operators import reference
from tests.operators.claimed import CLAIMED
from tests.operators.sample import DTYPES, Sample, allowed_dtypes, domain_of
from tests.operators.table import GENERATORS, check, draw
from tests.support.backends import UnsupportedModel

FAST, FULL = 6, 100


def stand_in_is_wrong(backend, sample):
    """Samples that ONNX Runtime answers against the specification; they say nothing about the table."""
    if backend != "onnxruntime":
        return False
    empty = any(isinstance(x, np.ndarray) and x.size == 0 for x in sample.inputs)
    no_steps = sample.op in ("RNN", "GRU", "LSTM") and sample.inputs[0].size == 0  # zeros for the first state, or dies
    coarse_constants = sample.op == "Gelu" and sample.inputs[0].dtype == np.float64
    return no_steps or coarse_constants or empty and (sample.op == "Gemm" or sample.op.startswith("Reduce"))


def run_samples(op, backend, seed, count):
    failures, refused = [], 0
    for index in range(count):
        sample = draw(op, seed, index)
        if stand_in_is_wrong(backend, sample):
            refused += 1
            continue
        try:
            said = check(backend, sample)
        except UnsupportedModel:  # by a stand-in; Lathe's refusals are failures
            refused += 1
            continue
        except Exception as error:  # noqa: BLE001
            said = f"{type(error).__name__}: {str(error)[:300]}"
        if said:
            failures.append(f"sample {index}: {sample}\n    {said}")
    print(f"{op}: {count - refused} of {count} samples answered")
    assert not failures, f"{len(failures)} of {count} samples (seed {seed})\n" + "\n".join(failures[:5])
    if backend == "lathe":
        assert refused == 0


@pytest.mark.parametrize("op", CLAIMED)
def test_operator(op, backend, seed, request):
    run_samples(op, backend, seed, request.config.getoption("--count") or FAST)


@pytest.mark.full
@pytest.mark.parametrize("op", CLAIMED)
def test_operator_at_length(op, backend, seed, request):
    run_samples(op, backend, seed + 1, request.config.getoption("--count") or FULL)


# The table itself.


@pytest.mark.parametrize("op", CLAIMED)
def test_samples_are_reproducible_and_valid(op):
    for index in range(8):
        sample, again = draw(op, 3, index), draw(op, 3, index)
        assert str(sample) == str(again)
        assert sample.model().SerializeToString(deterministic=True) == again.model().SerializeToString(
            deterministic=True
        )


def test_samples_reach_what_hurts():
    """Across the table: zero sizes, symbolic dimensions, every dtype, old and new opsets."""
    samples = [draw(op, 1, index) for op in GENERATORS for index in range(30)]
    inputs = [x for s in samples for x in s.inputs if isinstance(x, np.ndarray)]
    assert {x.dtype for x in inputs} >= set(DTYPES.values())
    assert sum(x.size == 0 for x in inputs) > 50
    assert sum(x.ndim == 0 for x in inputs) > 50
    assert sum(bool(s.symbolic) for s in samples) > 400
    opsets = [s.opset for s in samples if not domain_of(s.op)]
    assert min(opsets) == 7 and max(opsets) == 27


def test_dtypes_come_from_the_specification():
    assert allowed_dtypes("Add", 7, "T") == ["int32", "int64", "uint32", "uint64", "float16", "float", "double"]
    assert "bfloat16" in allowed_dtypes("Add", 13, "T") and "int8" in allowed_dtypes("Add", 14, "T")


@pytest.mark.parametrize("op", ["Add", "Conv", "ReduceSum", "Softmax", "Transpose", "Erf", "Less"])
def test_a_wrong_answer_is_noticed(op):
    """The reference with one element nudged by 1/64 of it, or a flipped truth value, is reported."""
    noticed = 0
    for index in range(20):
        sample = draw(op, 5, index)
        dtypes = [y.dtype for y in reference.expected(sample, [np.float64] * sample.outputs)]
        if op == "Less":
            dtypes = [np.dtype(bool)]
        (wanted,) = reference.expected(sample, dtypes)
        if not wanted.size:
            continue
        changed = wanted.copy()
        position = wanted.size // 2
        value = changed.flat[position]
        changed.flat[position] = not value if op == "Less" else value + abs(value) * 0.016 + 0.016
        assert reference.difference(sample, wanted, wanted) is None
        assert reference.difference(sample, changed, wanted), str(sample)
        noticed += 1
    assert noticed > 10


def test_windows_agree_with_a_loop():
    """Convolution by the plainest loop, on uneven pads, strides, dilations and groups."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 4, 7, 6)), rng.normal(size=(6, 2, 3, 2))
    attributes = {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 0, 2, 1], "group": 2}
    s = Sample("Conv", 11, [x, w], attributes)
    (y,) = reference.expected(s, [np.dtype(np.float64)])
    padded = np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 1)))
    assert y.shape == (2, 6, 4, 5)
    for n, m, i, j in np.ndindex(y.shape):
        g = m // 3
        total = sum(
            padded[n, 2 * g + c, 2 * i + a, j + 2 * b] * w[m, c, a, b]
            for c in range(2)
            for a in range(3)
            for b in range(2)
        )
        assert abs(total - y[n, m, i, j]) < 1e-12


def test_gemm_may_round_each_of_its_steps():
    """Rounded to the dtype after each step it is within tolerance; with either factor doubled it is not."""
    noticed = 0
    for index in range(60):
        sample = draw("Gemm", 7, index)
        a, b, c = sample.inputs
        if a.dtype.kind in "iu" or c is None or not a.size or not b.size or not c.size:
            continue
        dtype, (wanted,) = a.dtype, reference.expected(sample, [a.dtype])

        factors = sample.widened().attributes  # in float32, as the file has them
        alpha, beta = factors.get("alpha", 1.0), factors.get("beta", 1.0)

        def stepwise(alpha=alpha, beta=beta, sample=sample, dtype=dtype):
            a, b, c = sample.widened().inputs
            a, b = (a.T if sample.attributes["transA"] else a), (b.T if sample.attributes["transB"] else b)
            product = ((a @ b).astype(dtype) * dtype.type(alpha)).astype(dtype)
            return product + (c.astype(dtype) * dtype.type(beta)).astype(dtype)

        assert reference.difference(sample, stepwise(), wanted) is None, str(sample)
        assert reference.difference(sample, stepwise(alpha=2 * alpha), wanted), str(sample)
        assert reference.difference(sample, stepwise(beta=2 * beta), wanted), str(sample)
        noticed += 1
    assert noticed > 10
