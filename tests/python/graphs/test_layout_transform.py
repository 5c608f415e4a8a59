"""R.layout_transform and T.index_map: elements where an index map puts them, against NumPy."""

import numpy as np
import pytest

import lathe
from lathe.script import relax as R, tir as T

from .running import check, refusal

RANDOM = np.random.default_rng(5)


def placed(array, place, pad=0):
    """The array's elements where `place` puts them, in the smallest box from 0 that holds them all."""
    places = {index: place(*index) for index in np.ndindex(*array.shape)}
    made = np.full([max(axis) + 1 for axis in zip(*places.values())], pad, array.dtype)
    for index, to in places.items():
        made[to] = array[index]
    return made


CASES = [
    ("lambda i, j: (j, i)", (3, 5), lambda i, j: (j, i)),
    ("lambda i, j: [j // 4, i, j % 4]", (3, 10), lambda i, j: (j // 4, i, j % 4)),
    ("lambda n, c, h, w: (n, c // 4, h, w, c % 4)", (2, 8, 3, 5), lambda n, c, h, w: (n, c // 4, h, w, c % 4)),
    ("lambda n, c, h, w: (n, c // 4, h, w, c % 4)", (2, 7, 3, 5), lambda n, c, h, w: (n, c // 4, h, w, c % 4)),
    ("lambda o, i: (o // 8, i // 2, i % 2, o % 8)", (17, 9), lambda o, i: (o // 8, i // 2, i % 2, o % 8)),
]


@pytest.mark.parametrize("text, shape, place", CASES)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_against_numpy(text, shape, place, dtype):
    x = RANDOM.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
    check(f"R.layout_transform(x, index_map=T.index_map({text}), pad_value=1)", {"x": x}, placed(x, place, 1))


def test_axes_of_constant_extent_are_joined():
    x = RANDOM.random((3, 5)).astype("float32")
    joined = "R.layout_transform(x, T.index_map(lambda i, j: i * 5 + j))"
    check(joined, {"x": x}, x.reshape(15), symbolic=())
    gaps = "R.layout_transform(x, T.index_map(lambda i, j: i * 7 + j), 2.5)"
    check(gaps, {"x": x}, placed(x, lambda i, j: (i * 7 + j,), 2.5), symbolic=())


def test_what_the_map_does_not_meet_is_zero():
    x = RANDOM.random((5,)).astype("float32")
    expected = placed(x, lambda i: (i // 4, i % 4))
    check("R.layout_transform(x, T.index_map(lambda i: (i // 4, i % 4)))", {"x": x}, expected)


def test_a_captured_map():
    blocks = T.index_map(lambda i, j: (i // 2, j, i % 2))
    assert blocks.is_equivalent_to(lathe.tir.IndexMap.from_func(lambda i, j: (i // 2, j, i % 2)))

    @R.function
    def main(x: R.Tensor((4, 3), "float32")):
        y = R.layout_transform(x, index_map=blocks)
        return y

    x = RANDOM.random((4, 3)).astype("float32")
    result = lathe.compile(lathe.IRModule({"main": main}))(x)
    np.testing.assert_array_equal(result, placed(x, lambda i, j: (i // 2, j, i % 2)))


def test_there_and_back():
    x = RANDOM.random((2, 7)).astype("float32")
    there = "R.layout_transform(x, T.index_map(lambda i, j: (j // 4, i, j % 4)))"
    back = f"R.layout_transform({there}, T.index_map(lambda o, i, l: (i, o * 4 + l)))"
    check(f"R.strided_slice({back}, axes=[1], begin=[0], end=[7])", {"x": x}, x, symbolic=())


def test_a_gradient_goes_through():
    text = """@R.function
def main(x: R.Tensor((5, 3), "float32"), w: R.Tensor((2, 3, 4), "float32")):
    y = R.layout_transform(x, T.index_map(lambda i, j: (i // 4, j, i % 4)), 3.0)
    loss = R.sum(R.multiply(y, w))
    return loss
"""
    module = lathe.relax.gradient(lathe.IRModule({"main": lathe.script.from_source(text)}), ["x"])
    x, w = RANDOM.random((5, 3)).astype("float32"), RANDOM.random((2, 3, 4)).astype("float32")
    _, slope = lathe.compile(module)(x, w)
    expected = [[w[i // 4, j, i % 4] for j in range(3)] for i in range(5)]
    np.testing.assert_allclose(slope, np.array(expected), rtol=1e-6)


@pytest.mark.parametrize(
    "arguments, says",
    [
        ("T.index_map(lambda i: (i,))", "takes 1 indices where there are 2"),
        ("T.index_map(lambda i, j: (i, 0 * j))", "takes different indices to the same"),
        ("T.index_map(lambda i, j: (i, k))", "'k' is neither a variable nor a number"),
        ("T.index_map(lambda i, j: (i // 0, j))", "a divisor is not a positive number"),
        ("T.index_map(lambda i, j: (i - 1, j))", "does not start at 0"),
        ("T.index_map(3)", "an index map is a lambda of indices"),
        ("T.index_map(lambda i, j: (j, i), inverse_index_map=lambda i, j: (j, i))", "is found, not given"),
        ('"no map"', "expected 'lambda'"),
        ("T.index_map(lambda i, j: (j, i)), 0, [2]", "an axis separator at 2 of 2 axes"),
        ("T.index_map(lambda i, j: (j, i)), 0, [1], [0]", "an axis separator at 0 of 2 axes"),
    ],
)
def test_refusals(arguments, says):
    assert says in refusal(f"R.layout_transform(x, {arguments})", {"x": np.zeros((3, 5), "float32")})
