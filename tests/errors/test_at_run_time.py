"""Operators misused by values that only the run sees: the message names the node, or nothing outside is touched."""

import numpy as np
import pytest

from tests.errors.at_run_time import MISUSES, NODE


@pytest.mark.parametrize("name", MISUSES)
def test_misuse(lathe, name):
    misuse = MISUSES[name]
    exe = lathe.compile(misuse.model())

    def run(feeds):
        results = exe.run(list(feeds.values()))
        assert [result.dtype for result in results]
        return results

    before = run(misuse.good)
    wrong = {**misuse.good, **misuse.bad}
    given = {key: array.copy() for key, array in wrong.items()}
    if misuse.says:
        with pytest.raises(lathe.RunError) as raised:
            run(wrong)
        assert misuse.says in str(raised.value) and NODE in str(raised.value)
    else:
        run(wrong)
    # The process lives on, inputs are as they were, and what fits gives what it gave.
    assert all(np.array_equal(wrong[key], given[key]) for key in wrong)
    for old, new in zip(before, run(misuse.good), strict=True):
        np.testing.assert_array_equal(old, new)
