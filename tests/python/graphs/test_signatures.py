"""Operators called as TVM documents them, and as they print, against NumPy."""

import numpy as np
import pytest

import lathe

from .running import check, outputs_of, refusal, text_of

rng = np.random.default_rng(24)
X = rng.uniform(-3, 3, (6, 5)).astype("float32")
I = np.array([[0, 4], [-1, 2]], "int64")


def printed(expression, arrays):
    return lathe.script.from_source(text_of(expression, arrays)).script()


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16", "bool"])
def test_split(dtype):
    x = X.astype(dtype)
    check("R.split(x, 3)", {"x": x}, np.split(x, 3))
    check("R.split(x=x, indices_or_sections=5, axis=-1)", {"x": x}, np.split(x, 5, 1))
    check("R.split(x, [1, 4], 0)", {"x": x}, np.split(x, [1, 4]))
    check("R.split(x, (2,), axis=1)", {"x": x}, np.split(x, [2], 1))
    check("R.split(x, [0, 2, 2, 9], axis=1)", {"x": x}, np.split(x, [0, 2, 2, 9], 1))
    check("R.split(x, [-2], axis=1)", {"x": x}, np.split(x, [-2], 1))
    check("R.split(x, [])", {"x": x}, (x,))
    check("R.split(x, 4)", {"x": x}, (x[:2], x[2:4], x[4:], x[6:]))
    check("R.split(x, [1])", {"x": x[:0]}, (x[:0], x[:0]))
    check("R.split_at(x, positions=[1, 3], axis=1)", {"x": x}, np.split(x, [1, 3], 1))


def test_split_as_it_prints():
    check("R.split(x, axis=1, sizes=[1, 4])", {"x": X}, np.split(X, [1], 1))
    check("R.split(x, sections=2)", {"x": X}, np.split(X, 2))
    assert "R.split(x, sections=3)" in printed("R.split(x, 3)", {"x": X})
    assert "R.split_at(x, positions=[2])" in printed("R.split(x, [2])", {"x": X})


def test_strided_slice():
    check("R.strided_slice(x, [0], [1], [5])", {"x": X}, X[1:5])
    check("R.strided_slice(x, axes=[1, 0], begin=[1, 0], end=[4, 6], strides=[2, 3])", {"x": X}, X[0:6:3, 1:4:2])
    check("R.strided_slice(x, (0, 1), (4, -1), (0, -4), (-2, -1), True)", {"x": X}, X[4:0:-2, -1:-4:-1])
    check("R.strided_slice(x, [1], [0], [100], None, assume_inbound=False)", {"x": X}, X)
    check("R.strided_slice(x, [-1], R.shape([1]), R.shape([3]))", {"x": X}, X[:, 1:3])


def test_strided_slice_as_it_prints():
    check("R.strided_slice(x, R.shape([1]), R.shape([3]), axes=[1])", {"x": X}, X[:, 1:3])
    check("R.strided_slice(x, R.shape([1]), R.shape([5]))", {"x": X}, X[1:5])
    check("R.strided_slice(x, R.shape([1]), R.shape([5]), strides=[2])", {"x": X}, X[1:5:2])
    check("R.strided_slice(x, R.shape([1]), R.shape([5]), [0], [2])", {"x": X}, X[1:5:2])


def test_full():
    one = {"unused": np.zeros(1, "float32")}
    check('R.full((2, 3), R.const(1.5, "float32"))', one, np.full((2, 3), 1.5, "float32"))
    converted = np.full((2, 3), 1.5, "float16")
    check('R.full(shape=(2, 3), fill_value=R.const(1.5, "float32"), dtype="float16")', one, converted)
    check('R.full((2,), 3, "int8")', one, np.full(2, 3, "int8"))
    check("R.full((2,), 3)", one, np.full(2, 3))
    check("R.full((2,), 0.5)", one, np.full(2, 0.5, "float32"))
    check('R.full((0, 2), -7, dtype="float64")', one, np.full((0, 2), -7.0))
    check('R.full((2,), True, dtype="bool")', one, np.full(2, True))
    check('R.full((2,), R.prim_value(3), dtype="float32")', one, np.full(2, 3, "float32"))
    check('R.full((), 2, dtype="int32")', one, np.int32(2))
    check('R.full((2,), v, dtype="int64")', {"v": np.float32(4)}, np.full(2, 4))
    check('R.full(R.shape([2, 2]), value=R.const(2, "int32"))', one, np.full((2, 2), 2, "int32"))


def test_full_of_a_symbol():
    text = (
        '@R.function\ndef main(x: R.Tensor(("n",), "float32")):\n    n = T.int64()\n'
        '    result = R.full((n, 2), n * 2, dtype="float32")\n    return result\n'
    )
    for target in ("native", "interp"):
        (got,) = outputs_of(text, {"x": np.zeros(3, "float32")}, target)
        np.testing.assert_array_equal(got, np.full((3, 2), 6, "float32"))


def test_take():
    arrays = {"x": X, "i": I}
    check("R.take(x, i, 1)", arrays, np.take(X, I, 1))
    check('R.take(x=x, indices=i, axis=-1, mode="fast")', arrays, np.take(X, I, 1))
    check("R.take(x, i, axis=None)", {"x": X[:, 0], "i": I}, np.take(X[:, 0], I))
    check("R.take(x, i)", arrays, np.take(X, I, 0))  # as it prints
    outside = {"x": X, "i": np.array([-9, -1, 0, 4, 5, 77], "int32")}
    for mode in ("clip", "wrap"):
        check(f'R.take(x, i, axis=1, mode="{mode}")', outside, np.take(X, outside["i"], 1, mode=mode))
        check(f'R.take(x, i, None, "{mode}")', {**outside, "x": X[0]}, np.take(X[0], outside["i"], mode=mode))
        check(f'R.take_by_mode(x, i, axis=0, mode="{mode}")', outside, np.take(X, outside["i"], 0, mode=mode))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_take_of_what_is_not_there(dtype):
    x, i = X[0].astype(dtype), np.array([-6, -5, -1, 0, 4, 5], "int64")
    expected = np.array([np.nan, x[0], x[4], x[0], x[4], np.nan], dtype)
    check('R.take(x, i, axis=0, mode="nan")', {"x": x, "i": i}, expected)
    check('R.take(x, i, axis=0, mode="nan")', {"x": x[:0], "i": i[:2]}, np.full(2, np.nan, dtype))


M, V, E = np.zeros((2, 3), "float32"), np.zeros(3, "float32"), np.zeros((0, 3), "float32")
J = np.zeros(2, "int64")


@pytest.mark.parametrize(
    ("expression", "arrays", "message"),
    [
        ("R.split(x, 0)", {"x": M}, "split into 0 parts"),
        ("R.split(x, -1)", {"x": M}, "split into -1 parts"),
        ("R.split(x, 9223372036854775807)", {"x": M}, "parts, but at most 65536 are possible"),
        ("R.split(x, 1.5)", {"x": M}, "neither a number of sections nor a list of positions"),
        ("R.split(x, [1.5])", {"x": M}, "attribute 'positions' has a value of the wrong type"),
        ("R.split(x, 2, 2)", {"x": M}, "axis 2"),
        ("R.split(x, [1], 2)", {"x": M}, "axis 2 of a tensor of rank 2"),
        ("R.split(x)", {"x": M}, "split into 0 parts"),
        ("R.split(x, 2, parts=1)", {"x": M}, "there is no attribute 'parts'"),
        ("R.split(x, 2, 1, 0, 0, 0)", {"x": M}, "takes fewer arguments"),
        ("R.strided_slice(x, [2], [0], [1])", {"x": M}, "axis 2"),
        ("R.strided_slice(x, [0], [0, 1], [1])", {"x": M}, "2 begins, 1 ends, 1 axes"),
        ("R.strided_slice(x, [0], [0], [1], [0])", {"x": M}, "a stride of strided_slice is 0"),
        ("R.strided_slice(x, [0], [0], [1], [1], 3.5)", {"x": M}, "assume_inbound"),
        ("R.strided_slice(x, [0.5], [0], [1])", {"x": M}, "attribute 'axes' has a value of the wrong type"),
        ("R.strided_slice(x)", {"x": M}, "is missing"),
        ("R.full((2,), x)", {"x": M}, "not a scalar"),
        ("R.full((-2,), 1)", {"x": M}, "full of shape [-2]"),
        ('R.full((2,), 1, dtype="handle")', {"x": M}, "no dtype of numbers"),
        ("R.full((2,), (1, 2))", {"x": M}, "expected a scalar expression, found a list"),
        ("R.full((2,))", {"x": M}, "'value' of full is missing"),
        ("R.take(x, i, axis=None)", {"x": M, "i": J}, "take without an axis is from a vector"),
        ("R.take(x, i, axis=2)", {"x": M, "i": J}, "axis 2"),
        ("R.take(x, x, axis=0)", {"x": M}, "integer"),
        ('R.take(x, i, 0, "round")', {"x": M, "i": J}, "the mode 'round' is none of"),
        ('R.take(x, i, 0, "nan")', {"x": M.astype("int32"), "i": J}, "the mode 'nan' is one of floats"),
        ('R.take(x, i, 0, "wrap")', {"x": E, "i": J}, "a dimension that has no elements"),
        ('R.take(x, x, 0, "clip")', {"x": V}, "must be of integers"),
        ('R.take(x, i, 3, "clip")', {"x": M, "i": J}, "axis 3 of a tensor of rank 2"),
    ],
)
def test_refusals(expression, arrays, message):
    assert message in refusal(expression, arrays)


@pytest.mark.parametrize("dtype", ["int60", "uint24", "int3"])
def test_constants_of_odd_widths_are_refused(dtype):
    assert f"not of {dtype}" in refusal(f'R.const([0, 1], "{dtype}")', {})
