"""Quantization in R, against NumPy."""

import numpy as np
import pytest

from .running import check, refusal

rng = np.random.default_rng(8)
X = rng.uniform(-20, 20, (3, 4, 5)).astype("float32")


def column(parameter, x, axis):
    if parameter.size == 1:
        return parameter
    return parameter.reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])


def quantized(x, scale, zero, axis=-1, dtype="int8"):
    range_ = np.iinfo(dtype)
    sums = np.rint(x / column(scale, x, axis)) + column(zero, x, axis).astype("float64")
    return np.clip(sums, range_.min, range_.max).astype(dtype)


def parameters(count, zero="int8"):
    low = 0 if zero.startswith("u") else -9
    return np.exp2(rng.integers(-5, 2, count)).astype("float32"), rng.integers(low, 9, count).astype(zero)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
def test_quantize(dtype):
    scale, zero = parameters((), dtype)
    expression = f'R.quantize(data=x, scale=s, zero_point=z, axis=-1, out_dtype="{dtype}")'
    check(expression, {"x": X, "s": scale, "z": zero}, quantized(X, scale, zero, dtype=dtype))
    for axis, count in [(1, 4), (-3, 3)]:
        scale, zero = parameters(count, dtype)
        expected = quantized(X, scale, zero, axis, dtype)
        check(f'R.quantize(x, s, z, {axis}, "{dtype}")', {"x": X, "s": scale, "z": zero}, expected)


def test_quantize_at_edges():
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e9, -1e9, 127.5], "float32")
    one, zero = np.array(1, "float32"), np.array(0, "int32")
    check("R.quantize(x, s, z)", {"x": x, "s": one, "z": zero}, quantized(x, one, zero))
    arrays = {"x": np.array(3.0, "float32"), "s": one, "z": zero}
    check("R.quantize(x, s, z)", arrays, np.array(3, "int8"))
    far = np.array(2**30 + 1, "int32")
    check('R.quantize(x, s, z, out_dtype="int32")', {"x": x, "s": one, "z": far}, quantized(x, one, far, dtype="int32"))
    scale, point = parameters(1)
    check("R.quantize(x, s, z)", {"x": X, "s": scale, "z": point}, quantized(X, scale, point), symbolic=("x",))
    scale, point = parameters(5)
    h = X.astype("float16")
    check("R.quantize(x, s, z)", {"x": h, "s": scale, "z": point}, quantized(h.astype("float32"), scale, point))
    arrays = {"x": np.zeros((0, 5), "float32"), "s": scale, "z": point}
    check("R.quantize(x, s, z)", arrays, np.zeros((0, 5), "int8"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_dequantize(dtype):
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, (3, 4), endpoint=True).astype(dtype)
    for axis, count in [(-1, ()), (0, 3), (-1, 4)]:
        scale, zero = parameters(count, dtype)
        expected = (x.astype("int64") - column(zero, x, axis)) * column(scale, x, axis).astype("float64")
        expression = f"R.dequantize(data=x, scale=s, zero_point=z, axis={axis})"
        check(expression, {"x": x, "s": scale, "z": zero}, expected.astype("float32"))


def test_dequantize_dtypes():
    x = rng.integers(-128, 127, (3, 4)).astype("int8")
    scale, zero = parameters(4)
    exact = (x.astype("int64") - zero) * scale.astype("float64")
    arrays = {"x": x, "s": scale, "z": zero}
    for dtype in ("float16", "float32", "float64"):
        check(f'R.dequantize(x, s, z, -1, "{dtype}")', arrays, exact.astype(dtype), rtol=2e-3)
    arrays = {"x": x, "s": scale.astype("float16"), "z": zero.astype("int32")}
    check("R.dequantize(x, s, z)", arrays, exact.astype("float32"))
    arrays = {"x": np.zeros((0, 4), "int8"), "s": scale, "z": zero}
    check("R.dequantize(x, s, z)", arrays, np.zeros((0, 4), "float32"))


ARRAYS = {
    "x": X,
    "q": np.zeros((3, 4), "int8"),
    "s": np.ones(5, "float32"),
    "m": np.ones((3, 4), "float32"),
    "z": np.zeros(5, "int8"),
    "f": np.zeros((), "float32"),
    "i": np.zeros((), "int8"),
}


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("R.quantize(q, f, i)", "data is of a floating dtype, not int8"),
        ("R.quantize(x, i, i)", "scale is of a floating dtype, not int8"),
        ("R.quantize(x, f, f)", "zero_point is an integer of up to 32 bits, not float32"),
        ("R.quantize(x, s, z, axis=0)", "scale has 5 numbers for the extent 3 of axis 0"),
        ("R.quantize(x, f, z, axis=1)", "zero_point has 5 numbers for the extent 4 of axis 1"),
        ("R.quantize(x, s, z, axis=3)", "axis 3"),
        ("R.quantize(x, m, i)", "scale is one number or one a channel, not [3, 4]"),
        ('R.quantize(x, f, i, out_dtype="float32")', "out_dtype is an integer dtype of 8, 16 or 32 bits"),
        ('R.quantize(x, f, i, out_dtype="int64")', "out_dtype is an integer dtype of 8, 16 or 32 bits"),
        ("R.dequantize(x, f, i)", "data is an integer of up to 32 bits, not float32"),
        ('R.dequantize(q, f, i, out_dtype="int8")', "out_dtype is float16, bfloat16, float32 or float64, not int8"),
        ("R.dequantize(q, s, i)", "scale has 5 numbers for the extent 4 of axis 1"),
    ],
)
def test_refusals(expression, says):
    message = refusal(expression, ARRAYS)
    assert says in message, message
