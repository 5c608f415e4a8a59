"""Tensors that R makes from shapes and numbers, against NumPy."""

import numpy as np
import pytest

import lathe

from .running import check, outputs_of, refusal

rng = np.random.default_rng(12)
X = rng.uniform(-3, 3, (3, 5)).astype("float32")
DTYPES = ["float32", "float64", "float16", "int8", "int32", "int64", "uint8", "bool"]


def made(expression, expected, **tolerances):
    """The expression uses no tensor; the function has a parameter all the same."""
    check(expression, {"unused": np.zeros(1, "float32")}, expected, **tolerances)


def of_extent(expression, count, expected):
    """The expression has the symbol n, which is `count`."""
    text = (
        '@R.function\ndef main(x: R.Tensor(("n",), "float32")):\n    n = T.int64()\n'
        f"    result = {expression}\n    return result\n"
    )
    function = lathe.script.from_source(text)
    assert lathe.ir.structural_equal(lathe.script.from_source(function.script()), function)
    for target in ("native", "interp"):
        (got,) = outputs_of(text, {"x": np.zeros(count, "float32")}, target)
        got = np.asarray(got)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3), (), (4,), (0, 5)])
def test_zeros_and_ones(dtype, shape):
    made(f'R.zeros(shape={shape}, dtype="{dtype}")', np.zeros(shape, dtype))
    made(f'R.ones(shape={shape}, dtype="{dtype}")', np.ones(shape, dtype))
    made(f'R.zeros({shape}, "{dtype}")', np.zeros(shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_like_another(dtype):
    x = np.ones((2, 3), dtype)
    check("R.zeros_like(x)", {"x": x}, np.zeros_like(x))
    check("R.ones_like(x)", {"x": x}, np.ones_like(x))
    check(f'R.zeros_like(x=y, dtype="{dtype}")', {"y": X}, np.zeros_like(X, dtype))
    check(f'R.ones_like(x=y, dtype="{dtype}")', {"y": X}, np.ones_like(X, dtype))
    check("R.full_like(x, 1)", {"x": x}, np.full_like(x, 1))
    check(f'R.full_like(x=y, fill_value=R.const(1, "int32"), dtype="{dtype}")', {"y": X}, np.full_like(X, 1, dtype))


def test_full_like():
    check("R.full_like(x, 2.5)", {"x": X}, np.full_like(X, 2.5))
    check("R.full_like(x, fill_value=-7, dtype=None)", {"x": np.zeros((0, 3), "int8")}, np.zeros((0, 3), "int8"))
    check("R.full_like(x, R.prim_value(3))", {"x": X}, np.full_like(X, 3))
    number = np.array(4.5, "float64")
    check("R.full_like(x, v)", {"x": X, "v": number}, np.full_like(X, 4.5))
    large = 2**60 + 1
    check(f'R.full_like(x, R.const({large}, "int64"), "int64")', {"x": X}, np.full(X.shape, large, "int64"))


def test_symbols_fill_and_shape_tensors():
    of_extent("R.full_like(x, n)", 3, np.full(3, 3, "float32"))
    of_extent('R.zeros((n, 2), "int8")', 3, np.zeros((3, 2), "int8"))
    of_extent('R.ones((2, n + 1), "float16")', 3, np.ones((2, 4), "float16"))
    of_extent("R.arange(n)", 4, np.arange(4))
    of_extent("R.arange(n)", 0, np.arange(0))
    of_extent("R.arange(n, n * 3, 2)", 5, np.arange(5, 15, 2))
    of_extent('R.arange(20, n, -3, "int32")', 6, np.arange(20, 6, -3, "int32"))
    of_extent("R.arange(0, 10, n)", 3, np.arange(0, 10, 3))
    of_extent("R.arange(0, -10, 0 - n)", 4, np.arange(0, -10, -4))
    of_extent("R.eye(n)", 3, np.eye(3, dtype="float32"))
    of_extent("R.eye(n, 4, n - 2)", 3, np.eye(3, 4, 1, "float32"))
    of_extent('R.eye_like(R.zeros((n, n), "int32"), n - 1)', 3, np.eye(3, k=2, dtype="int32"))
    of_extent("R.hamming_window(n)", 5, hamming(5, True, 0.54, 0.46).astype("float32"))
    of_extent("R.hamming_window(n, False)", 1, np.ones(1, "float32"))
    of_extent("R.one_hot(R.arange(n), n, 0, 4)", 3, np.eye(3, 4, dtype="int64") * 3)


def test_a_range_by_a_symbol_of_zero_fails_when_the_model_runs():
    text = (
        '@R.function\ndef main(x: R.Tensor(("n",), "float32")):\n    n = T.int64()\n'
        "    result = R.arange(0, 10, n)\n    return result\n"
    )
    for target in ("native", "interp"):
        with pytest.raises(lathe.Error, match="step of a range is 0"):
            outputs_of(text, {"x": np.zeros(0, "float32")}, target)


@pytest.mark.parametrize("bounds", [(5,), (0,), (-3,), (2, 9), (9, 2), (9, 2, -2), (-5, 5, 3), (1, 2, 100), (7, 7)])
def test_arange_of_integers(bounds):
    expected = np.arange(*bounds, dtype="int64")
    made(f"R.arange({', '.join(map(str, bounds))})", expected)
    start, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    for dtype in ("int32", "float32", "float16", "int8"):
        made(f'R.arange(start={start}, end={end}, step={step}, dtype="{dtype}")', expected.astype(dtype))


def test_arange_of_floats():
    made("R.arange(2.5)", np.arange(2.5, dtype="float32"))
    made("R.arange(0.0, 0.3, 0.1)", np.array([0, 0.1, 0.2], "float32"))
    made("R.arange(0.0, 1.0, 0.1)", np.arange(0, 1, 0.1, dtype="float32"))
    made("R.arange(1, 0, -0.25)", np.arange(1, 0, -0.25, dtype="float32"))
    made('R.arange(0.5, 4, 1, "float64")', np.arange(0.5, 4, 1))
    made('R.arange(0.0, 2.0, 0.5, dtype="int32")', np.array([0, 0, 1, 1], "int32"))
    made("R.arange(3.0, 1.0)", np.zeros(0, "float32"))
    made("R.arange(5, None, 1, None)", np.arange(5))


@pytest.mark.parametrize("dtype", DTYPES)
def test_eye(dtype):
    made(f'R.eye(n=3, m=4, k=1, dtype="{dtype}")', np.eye(3, 4, 1, dtype))
    check(f'R.eye_like(x=x, k=-1, dtype="{dtype}")', {"x": X}, np.eye(3, 5, -1, dtype))


def test_eye_in_other_places():
    made("R.eye(4)", np.eye(4, dtype="float32"))
    made("R.eye(2, None, -1)", np.eye(2, k=-1, dtype="float32"))
    made("R.eye(3, 2, 9)", np.zeros((3, 2), "float32"))
    made("R.eye(0, 3)", np.zeros((0, 3), "float32"))
    check("R.eye_like(x)", {"x": np.zeros((2, 2), "int64")}, np.eye(2, dtype="int64"))
    check("R.eye_like(x, 1)", {"x": np.zeros((0, 2), "float16")}, np.zeros((0, 2), "float16"))


def hamming(size, periodic, alpha, beta):
    if size == 1:
        return np.ones(1)
    return alpha - beta * np.cos(2 * np.pi * np.arange(size) / (size if periodic else size - 1))


@pytest.mark.parametrize("size", [0, 1, 2, 7, 16])
@pytest.mark.parametrize("periodic", [True, False])
def test_hamming_window(size, periodic):
    for dtype, rtol in (("float32", 1e-6), ("float64", 1e-12), ("float16", 1e-3)):
        expression = f'R.hamming_window(window_size={size}, periodic={periodic}, alpha=0.5, beta=0.25, dtype="{dtype}")'
        made(expression, hamming(size, periodic, 0.5, 0.25).astype(dtype), rtol=rtol)
    if not periodic:
        made(f"R.hamming_window({size}, {periodic})", np.hamming(size).astype("float32"))


def one_hot(indices, on, off, depth, axis, dtype):
    hot = np.moveaxis(indices[..., None] == np.arange(depth), -1, axis)
    return np.where(hot, on, off).astype(dtype)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
@pytest.mark.parametrize("axis", [-1, 0, 1, 2, -2])
def test_one_hot(dtype, axis):
    indices = np.array([[0, 2, 5], [1, 100, 2]], dtype)
    expected = one_hot(indices, 2.5, -1, 4, axis, "float32")
    check(f"R.one_hot(indices=i, on_value=2.5, off_value=-1.0, depth=4, axis={axis})", {"i": indices}, expected)


def test_one_hot_has_the_dtype_of_its_values():
    indices = np.array([0, -1, 2, 1])
    for dtype in ("float64", "float16", "int32", "int8"):
        values = f'R.prim_value(T.{dtype}(3)), R.const(1, "{dtype}")'
        check(f"R.one_hot(i, {values}, 3)", {"i": indices}, one_hot(indices, 3, 1, 3, -1, dtype))
    check("R.one_hot(i, 1, 0, 3)", {"i": indices}, one_hot(indices, 1, 0, 3, -1, "int64"))
    check("R.one_hot(i, 1.0, 0.0, depth=0)", {"i": indices}, np.zeros((4, 0), "float32"))
    check("R.one_hot(i, 1, 0, 3, 0)", {"i": np.zeros((0, 2), "int32")}, np.zeros((3, 0, 2), "int64"))
    check("R.one_hot(i, 1, 0, 3)", {"i": np.array(2, "int32")}, np.array([0, 0, 1]))


V, M = np.zeros(3, "float32"), np.zeros((2, 3), "float32")
N = np.zeros(3, "int32")


@pytest.mark.parametrize(
    ("expression", "arrays", "message"),
    [
        ("R.zeros((2, 3))", {"x": V}, "'dtype' is missing"),
        ('R.ones((2, -3), "float32")', {"x": V}, "full of shape [2, -3]"),
        ('R.zeros((2,), "handle")', {"x": V}, "no dtype of numbers or bool"),
        ('R.zeros((2,), "float32x4")', {"x": V}, "no dtype of numbers or bool"),
        ('R.ones_like(x, "strange")', {"x": V}, "attribute 'dtype' has a value of the wrong type"),
        ('R.zeros_like((x, x), "int8")', {"x": V}, "no tensor"),
        ("R.full_like(x, x)", {"x": V}, "'fill_value' is [3], but it must be one number"),
        ("R.full_like(x)", {"x": V}, "'fill_value' of full_like is missing"),
        ("R.arange()", {"x": V}, "'start' of arange is missing"),
        ("R.arange(0, 5, 0)", {"x": V}, "the step is 0"),
        ("R.arange(0.0, 5.0, 0.0)", {"x": V}, "the step is 0"),
        ('R.arange(5, dtype="bool")', {"x": V}, "numbers, not bool"),
        ("R.arange(x)", {"x": V}, "no scalar"),
        ("R.arange(-9223372036854775808, 9223372036854775807)", {"x": V}, "longer than int64 counts"),
        ("R.arange(0.0, 1.0, 1e-30)", {"x": V}, "more numbers than a tensor holds"),
        ("R.eye(-1)", {"x": V}, "'n' is -1"),
        ("R.eye(2, -3)", {"x": V}, "'m' is -3"),
        ("R.eye(2.5)", {"x": V}, "'n' is a float32, but it must be an integer"),
        ("R.eye(2, 2, 0.5)", {"x": V}, "'k' is a float32"),
        ("R.eye_like(x)", {"x": V}, "must be a matrix"),
        ("R.eye_like(x, 1.5)", {"x": M}, "'k' is a float32"),
        ("R.hamming_window(-4)", {"x": V}, "'window_size' is -4"),
        ("R.hamming_window(4.5)", {"x": V}, "must be an integer"),
        ('R.hamming_window(4, dtype="int32")', {"x": V}, "the window is of floats, not int32"),
        ("R.one_hot(x, 1, 0, 4)", {"x": V}, "must be of integers"),
        ("R.one_hot(x, 1.0, 0, 4)", {"x": N}, "on_value is a float32, but off_value a int64"),
        ("R.one_hot(x, 1, 0)", {"x": N}, "'depth' is missing"),
        ("R.one_hot(x, 1, 0, -4)", {"x": N}, "the depth is -4"),
        ("R.one_hot(x, 1, 0, 4, 2)", {"x": N}, "axis 2 of a tensor of rank 2"),
        ("R.one_hot(x, x, 0, 4)", {"x": N}, "no scalar"),
    ],
)
def test_refusals(expression, arrays, message):
    assert message in refusal(expression, arrays)


def test_a_range_of_floats_needs_known_numbers():
    text = (
        '@R.function\ndef main(x: R.Tensor(("n",), "float32")):\n    n = T.int64()\n'
        "    result = R.arange(0, n, 0.5)\n    return result\n"
    )
    with pytest.raises(lathe.Error, match="needs finite numbers that are known"):
        lathe.script.from_source(text)
