"""Operators misused by values that only the run sees: the message names the node, or nothing outside is touched."""

import copy

import numpy as np
import pytest

from tests.errors.at_run_time import MISUSES, NODE


def same(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


# What does not fit is a part of the node, which has other operands. Of sequences the runtime knows no names, nor do its
# kernels of what they take.
OF_A_PART = {"Max, three operands", "Gemm"}


def operand(name, value):
    """What a message says of an input."""
    return f"'{name}', the graph's input, is {value.dtype.name}{list(value.shape)}"


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
        said = str(raised.value)
        assert misuse.says in said and NODE in said
        if not any(word in name for word in ("equence", "Image")) and name not in OF_A_PART:
            unsaid = [key for key, value in wrong.items() if operand(key, value) not in said]
            assert not unsaid, f"nothing is said of {unsaid}: {said}"
    else:
        run(wrong)
    # The process lives on, inputs are as they were, and what fits gives what it gave.
    assert all(same(wrong[key], given[key]) for key in wrong)
    assert all(same(old, new) for old, new in zip(before, run(misuse.good), strict=True))
