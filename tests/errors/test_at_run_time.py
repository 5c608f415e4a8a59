"""Operators misused by values that only the run sees: the message names the node, or nothing outside is touched."""

import copy

import numpy as np
import pytest

from tests.errors.at_run_time import MISUSES, NODE


def same(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


@pytest.mark.parametrize("name", MISUSES)
def test_misuse(lathe, name):
    misuse = MISUSES[name]
    exe = lathe.compile(misuse.model())

    def run(feeds):
        results = exe.run(list(feeds.values()))
        assert results
        return results

    before = run(misuse.good)
    wrong = {**misuse.good, **misuse.bad}
    given = copy.deepcopy(wrong)
    if misuse.says:
        with pytest.raises(lathe.RunError) as raised:
            run(wrong)
        assert misuse.says in str(raised.value) and NODE in str(raised.value)
    else:
        run(wrong)
    # The process lives on, inputs are as they were, and what fits gives what it gave.
    assert all(same(wrong[key], given[key]) for key in wrong)
    assert all(same(old, new) for old, new in zip(before, run(misuse.good), strict=True))
