"""Gradients of every operator that has one, in float64, against central differences of the compiled function."""

import zlib

import numpy as np
import pytest

from scripts import operator_table
from tests.operators import gradient_cases, gradient_loops
from tests.operators.claimed import CLAIMED
from tests.operators.gradients import NO_GRADIENT, PARTLY_NONE, check_model, check_sample
from tests.operators.table import draw

FAST, FULL, DRAWS = 2, 12, 80
# Extents that are floats cannot move a little, and graphs in attributes cannot be widened: these have cases.
BY_CASE = {"Upsample", "Resize", "FlexAttention", "If", "Loop", "Scan"}
CASES = gradient_cases.CASES | gradient_loops.CASES
SAMPLED = [op for op in CLAIMED if op not in NO_GRADIENT and op not in BY_CASE]


def run_samples(op, lathe, seed, count):
    """`count` samples with a smooth direction, or as many as a number of draws has."""
    checked, failures = 0, []
    for index in range(DRAWS):
        if checked == count:
            break
        sample = draw(op, seed, index)
        rng = np.random.default_rng([seed, zlib.crc32(op.encode()), index])
        try:
            found = check_sample(lathe, sample, rng)
        except lathe.Error as error:
            if op in PARTLY_NONE and PARTLY_NONE[op][0](sample) and "has no gradient" in str(error):
                continue
            failures.append(f"sample {index}: {sample}\n    {str(error)[:300]}")
            continue
        if found is None or not found[1]:
            continue
        checked += 1
        if not found[0] < 1:
            failures.append(f"sample {index}: {sample}\n    {found[0]:.1e} times as far away as allowed")
    print(f"{op}: {checked} samples")
    assert not failures, "\n".join(failures[:4])
    assert checked, f"of {DRAWS} samples of {op} none has a gradient"


@pytest.mark.parametrize("op", SAMPLED)
def test_operator(op, lathe, seed, request):
    run_samples(op, lathe, seed, request.config.getoption("--count") or FAST)


@pytest.mark.full
@pytest.mark.parametrize("op", SAMPLED)
def test_operator_at_length(op, lathe, seed, request):
    run_samples(op, lathe, seed + 1, request.config.getoption("--count") or FULL)


@pytest.mark.parametrize("name", sorted(CASES))
def test_case(name, lathe, seed):
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    worst, smooth = check_model(lathe, *CASES[name](rng), rng)
    assert smooth and worst < 1


def run_nests(lathe, seed, count):
    failures, smooth = [], 0
    for index in range(count):
        found = check_model(lathe, *gradient_loops.random_nest(seed, index))
        smooth += found[1] > 0
        if found[1] and not found[0] < 1:
            failures.append(f"model {index}: {found[0]:.1e} times as far away as allowed")
    assert not failures, f"{len(failures)} of {count} (seed {seed})\n" + "\n".join(failures[:5])
    assert smooth > count / 2


def test_nested_graphs(lathe, seed, request):
    run_nests(lathe, seed, request.config.getoption("--count") or 8)


@pytest.mark.full
def test_nested_graphs_at_length(lathe, seed, request):
    run_nests(lathe, seed + 1, request.config.getoption("--count") or 100)


def test_every_operator_has_a_gradient_or_a_reason():
    found = set(operator_table.imported())
    known = set(SAMPLED) | {name.split("_")[0] for name in CASES}
    assert found - known - set(NO_GRADIENT) == set()
    assert (known & set(NO_GRADIENT)) == set() and set(NO_GRADIENT) <= found
