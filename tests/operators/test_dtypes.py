"""Every claimed operator with every dtype that the specification lists for each of its type parameters."""

import zlib

import numpy as np
import pytest

from tests.operators.claimed import CLAIMED
from tests.operators.sample import DTYPES, Draw, allowed_dtypes, last_opset, schema
from tests.operators.table import GENERATORS, check

SAMPLES = 3  # of each dtype


class Chosen(Draw):
    """Random choices, but the newest opset and one dtype for one type parameter."""

    def __init__(self, op, rng, parameter, dtype):
        super().__init__(op, rng)
        self.opset, self.parameter, self.chosen, self.used = last_opset(op), parameter, dtype, False

    def dtype(self, parameter="T", only=None):
        if parameter != self.parameter or (only is not None and self.chosen not in only):
            return super().dtype(parameter, only)
        self.used = True
        return DTYPES[self.chosen]


def rows(op):
    """Pairs of a type parameter and a dtype that the newest definition lists for it."""
    for constraint in schema(op, last_opset(op)).type_constraints:
        for name in allowed_dtypes(op, last_opset(op), constraint.type_param_str):
            yield constraint.type_param_str, name


def samples(op, parameter, dtype):
    seed = [zlib.crc32(f"{op} {parameter} {dtype}".encode())]
    for index in range(SAMPLES):
        draw = Chosen(op, np.random.default_rng([*seed, index]), parameter, dtype)
        sample = GENERATORS[op](draw)
        if draw.used:
            yield sample


@pytest.mark.full
@pytest.mark.parametrize("op", CLAIMED)
def test_every_listed_dtype(op, backend):
    failures = []
    for parameter, dtype in rows(op):
        for sample in samples(op, parameter, dtype):
            try:
                said = check(backend, sample)
            except Exception as error:  # noqa: BLE001
                said = f"{type(error).__name__}: {str(error)[:200]}"
            if said:
                failures.append(f"{parameter} = {dtype}: {sample}\n    {said}")
    assert not failures, "\n".join(failures[:8])


def test_most_listed_dtypes_are_drawn():
    """A generator that draws no dtype for a parameter says nothing about it; few may."""
    listed = [(op, parameter, dtype) for op in CLAIMED for parameter, dtype in rows(op)]
    drawn = [row for row in listed if any(True for _ in samples(*row))]
    assert len(drawn) > 0.8 * len(listed), f"{len(drawn)} of {len(listed)}"
