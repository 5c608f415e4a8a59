"""Floats of eight and four bits, integers of four and two: every bit pattern, packed arrays in and out."""

import itertools

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference.ops.op_cast import cast_to

from lathe.script import ir as I
from lathe.script import tir as T
from tests.operators.sample import DTYPES, NARROW_FLOATS, limits

PACKED = ("int4", "uint4", "int2", "uint2", "float4e2m1")
NARROW = tuple(dict.fromkeys([*NARROW_FLOATS, *PACKED]))


def number(name):
    return helper.np_dtype_to_tensor_dtype(DTYPES[name])


def model_of(op, source, target, shape=("n",), result=("n",), **attributes):
    node = helper.make_node(op, ["x"], ["y"], **attributes)
    x, y = (helper.make_tensor_value_info("x", number(source), shape),
            helper.make_tensor_value_info("y", number(target), result))  # fmt: skip
    model = helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=[helper.make_opsetid("", 25)])
    model.ir_version = 10
    return model


def every_pattern(name):
    """One element of each bit pattern; ml_dtypes keeps signed ones below a byte extended."""
    dtype = DTYPES[name]
    bits = {"int4": 4, "uint4": 4, "float4e2m1": 4, "int2": 2, "uint2": 2}.get(name, 8 * dtype.itemsize)
    codes = np.arange(2**bits, dtype=np.uint32).astype(f"u{dtype.itemsize}")
    if name in ("int4", "int2"):
        sign = np.uint8(1 << (bits - 1))
        codes = (codes ^ sign) - sign
    return codes.view(dtype)


def same(value, wanted):
    assert value.dtype == wanted.dtype and value.shape == wanted.shape
    with np.errstate(all="ignore"):
        a, b = value.astype(np.float64), wanted.astype(np.float64)
    bad = ~((a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b)))
    assert not bad.any(), f"{int(bad.sum())}: {value[bad][:4]}, wanted {wanted[bad][:4]}"


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("target", ["float", "float16"])
def test_every_pattern_widens(lathe, name, target):
    x = every_pattern(name)
    same(lathe.compile(model_of("Cast", name, target, to=number(target)))(x), x.astype(DTYPES[target]))


@pytest.mark.parametrize("name", NARROW_FLOATS)
@pytest.mark.parametrize("saturate", [1, 0])
def test_every_float16_narrows(lathe, name, saturate):
    x = every_pattern("float16")
    modes = ["up", "down", "nearest"] if name == "float8e8m0" else ["up"]
    if name == "float8e8m0":  # the specification has no answer for negative numbers, and one of its own for infinity
        x = x[np.isfinite(x) & (x > 0)]
    if name == "float4e2m1":  # which has no NaN
        x = x[~np.isnan(x)]
    for mode in modes:
        model = model_of("Cast", "float16", name, to=number(name), saturate=saturate, round_mode=mode)
        with np.errstate(all="ignore"):
            wanted = cast_to(x, number(name), bool(saturate), mode)
        same(lathe.compile(model)(x), wanted)


@pytest.mark.parametrize("source,target", list(itertools.permutations(NARROW, 2))[::7])
def test_narrow_to_narrow(lathe, source, target):
    if target == "float8e8m0" or "int" in target:
        x = every_pattern(source)
        with np.errstate(all="ignore"):
            wide = x.astype(np.float32)
        low, high = (2.0**-100, 6) if target == "float8e8m0" else limits(DTYPES[target])
        x = x[(wide >= low) & (wide <= high)]
    else:
        x = every_pattern(source)
    with np.errstate(all="ignore"):
        wanted = cast_to(x.astype(np.float32), number(target), True, "up")
    same(lathe.compile(model_of("Cast", source, target, to=number(target)))(x), wanted)


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (0, 4), (7, 9), (64, 33)])
def test_packed_arrays_go_in_and_out(lathe, tmp_path, name, shape):
    patterns = every_pattern(name)
    x = np.resize(patterns, shape)
    executable = lathe.compile(model_of("Transpose", name, name, shape, shape[::-1]))
    same(executable(x), x.T)
    same(executable(x[::-1]), x[::-1].T)  # gaps and other orders are copied
    executable.save(tmp_path / "packed.so")
    same(lathe.load(tmp_path / "packed.so")(x), x.T)


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_share_bytes(lathe, threads):
    """Rows of odd length meet in the middle of bytes."""
    x = np.resize(every_pattern("int4"), (1001, 301))
    executable = lathe.compile(model_of("Transpose", "int4", "int4", x.shape, x.shape[::-1]), threads=threads)
    for _ in range(5):
        same(executable(x), x.T)


@I.ir_module
class Halved:
    @T.prim_func
    def main(A: T.Buffer((7,), "int4"), B: T.Buffer((7,), "int4")):
        for i in range(7):
            with T.block("B"):
                vi = T.axis.spatial(7, i)
                B[vi] = A[vi] // T.int4(2)


def test_functions_write_to_packed_arrays(lathe):
    built = lathe.build(Halved, target="llvm")
    a, b = np.array([-8, -3, 0, 5, 7, 2, -1], ml_dtypes.int4), np.zeros(7, ml_dtypes.int4)
    built["main"](a, b)
    np.testing.assert_array_equal(b.astype(np.int32), a.astype(np.int32) // 2)
    fixed = a.copy()
    fixed.flags.writeable = False
    built["main"](fixed, b)
    np.testing.assert_array_equal(fixed, a)


def test_constants_are_packed_as_onnx_packs_them(lathe):
    value = onnx.numpy_helper.from_array(np.array([1, -2, 7, -8, 3], ml_dtypes.int4))
    node = helper.make_node("Constant", [], ["y"], value=value)
    y = helper.make_tensor_value_info("y", onnx.TensorProto.INT4, [5])
    model = helper.make_model(helper.make_graph([node], "g", [], [y]), opset_imports=[helper.make_opsetid("", 21)])
    same(lathe.compile(model)(), np.array([1, -2, 7, -8, 3], ml_dtypes.int4))
