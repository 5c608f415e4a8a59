"""Samples that Lathe once answered wrongly or refused, each as small as it shows."""

import numpy as np
import pytest

from tests.operators.sample import Sample
from tests.operators.table import GENERATORS, check
from tests.operators.test_dtypes import Chosen


def f(*shape):
    return (np.arange(np.prod(shape, dtype=int), dtype=np.float32) * 7 % 11 - 4).reshape(shape)


POOL = {"kernel_shape": [3, 2], "strides": [2, 3], "ceil_mode": 1}

FINDS = {
    "LpPool rounds the number of windows up": Sample("LpPool", 18, [f(1, 2, 6, 6)], {**POOL, "p": 1}),
    "LpPool drops a window that starts in padding": Sample(
        "LpPool", 22, [f(2, 1, 5, 5)], {**POOL, "pads": [0, 1, 2, 1], "dilations": [1, 2]}
    ),
    "LpPool of symbolic extents rounds up": Sample(
        "LpPool", 18, [f(1, 1, 6, 7)], POOL, symbolic={(0, 2): "h", (0, 3): "w"}
    ),
    "Trilu of strings": Sample("Trilu", 14, [np.array([["a", "b"], ["c", "d"]], object)], {"upper": 0}),
    "Resize to one element begins at 0": Sample(
        "Resize", 13, [f(1, 4), None, None, np.array([1, 1], np.int64)],
        {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel"},
    ),
    "Resize of 49 elements to one": Sample(
        "Resize", 13, [f(49), None, None, np.array([1], np.int64)],
        {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FINDS)
def test_find(backend, name):
    assert check(backend, FINDS[name]) is None


@pytest.mark.parametrize("op", ["Loop", "Scan"])
@pytest.mark.parametrize("dtype", ["string", "int4", "uint2", "float4e2m1"])
def test_rows_of_what_is_no_whole_bytes(backend, op, dtype):
    """Rows of packed types could not be stacked, and reversed ones of strings came out as their numbers."""
    for index in range(8):
        sample = GENERATORS[op](Chosen(op, np.random.default_rng(index), "V", dtype))
        assert check(backend, sample) is None, str(sample)


WORDS = np.array(["a", "b", "", "c"], object)

# Arithmetic on strings, which once was done on the numbers that stand for them.
REFUSED = {
    "ScatterElements adds": (
        Sample("ScatterElements", 18, [WORDS, np.array([1]), WORDS[:1]], {"reduction": "add"}), "the reduction 'add'"
    ),
    "ScatterND takes the largest": (
        Sample("ScatterND", 18, [WORDS, np.array([[1]]), WORDS[:1]], {"reduction": "max"}), "the reduction 'max'"
    ),
    "Resize interpolates": (
        Sample("Resize", 18, [WORDS, None, np.array([2], np.float32)], {"mode": "linear"}, types=[WORDS.dtype]),
        "nothing between strings",
    ),
    "Upsample interpolates": (
        Sample("Upsample", 9, [WORDS, np.array([2], np.float32)], {"mode": "linear"}, {1}), "nothing between strings"
    ),
    "GridSample interpolates": (
        Sample("GridSample", 22, [WORDS.reshape(1, 1, 4), np.zeros((1, 2, 1), np.float32)], {"mode": "linear"}),
        "nothing between strings",
    ),
    "Col2Im adds": (
        Sample("Col2Im", 18, [WORDS.reshape(1, 2, 2), np.array([3]), np.array([2])], {}, {1, 2}),
        "strings are not",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_strings_are_not_numbers(lathe, name):
    sample, said = REFUSED[name]
    with pytest.raises(lathe.Error, match=said):
        lathe.import_onnx(sample.model())
