"""Every scalar function of T, compiled, against NumPy."""

import numpy as np
import pytest

import lathe
from lathe.script import tir as T

rng = np.random.default_rng(2)
X = rng.uniform(0.05, 0.95, 64).astype("float32")
Y = rng.uniform(-3, 3, 64).astype("float32")
I = rng.integers(-40, 40, 64).astype("int32")  # noqa: E741 - as in the expressions
J = rng.integers(1, 7, 64).astype("int32")

# What is written in the program (x, y: floats, x in (0, 1); i, j: integers, j in 1 to 6), and what NumPy says.
FLOATS = {
    "T.abs(y)": np.abs(Y), "T.fabs(y)": np.abs(Y), "T.acos(x)": np.arccos(X), "T.acosh(x + 2.0)": np.arccosh(X + 2),
    "T.asin(x)": np.arcsin(X), "T.asinh(y)": np.arcsinh(Y), "T.atan(y)": np.arctan(Y),
    "T.atan2(y, x)": np.arctan2(Y, X),
    "T.atanh(x)": np.arctanh(X), "T.ceil(y)": np.ceil(Y), "T.copysign(x, y)": np.copysign(X, Y), "T.cos(y)": np.cos(Y),
    "T.cosh(y)": np.cosh(Y), "T.exp(y)": np.exp(Y), "T.exp2(y)": np.exp2(Y), "T.floor(y)": np.floor(Y),
    "T.exp_nonpositive(-x)": np.exp(-X),
    "T.exp10(y)": 10.0**Y, "T.hypot(x, y)": np.hypot(X, Y), "T.ldexp(x, i // 4)": np.ldexp(X, I // 4),
    "T.ldexp(y, 3)": Y * 8, "T.nextafter(x, y)": np.nextafter(X, Y),
    "T.call_intrin('float32', 'tir.exp', y)": np.exp(Y), "T.Call('float32', 'tir.atan2', [y, x])": np.arctan2(Y, X),
    "T.BufferLoad(X, [n]) * y": X * Y,
    "T.fmod(y, x)": np.fmod(Y, X), "T.log(x)": np.log(X), "T.log1p(x)": np.log1p(X), "T.log2(x)": np.log2(X),
    "T.log10(x)": np.log10(X), "T.nearbyint(y)": np.rint(Y), "T.pow(x, y)": np.power(X, Y),
    "T.round(y)": np.trunc(Y + np.copysign(0.5, Y)), "T.rsqrt(x)": 1 / np.sqrt(X), "T.sigmoid(y)": 1 / (1 + np.exp(-Y)),
    "T.sin(y)": np.sin(Y), "T.sinh(y)": np.sinh(Y), "T.sqrt(x)": np.sqrt(X), "T.tan(x)": np.tan(X),
    "T.tanh(y)": np.tanh(Y), "T.trunc(y)": np.trunc(Y), "T.min(x, y)": np.minimum(X, Y),
    "T.max(x, y)": np.maximum(X, Y),
    "T.Min(x, y)": np.minimum(X, Y), "T.Max(x, y)": np.maximum(X, Y),
    "T.if_then_else(y > 0.0, x, y)": np.where(Y > 0, X, Y),
    "T.Select(T.likely(y > 0.0), x, y)": np.where(Y > 0, X, Y), "T.Add(x, y)": X + Y, "T.Sub(x, y)": X - Y,
    "T.Mul(x, y)": X * Y, "T.Div(y, x)": Y / X, "T.cast(i, 'float32')": I, "T.Cast('float32', i)": I,
    "T.min_value('float32') * 0.0 + x": X, "T.max_value('float32') * 0.0 + x": X,
    "T.min(T.infinity('float32'), x)": X, "T.Let(z * z, where={z: x})": X * X,
    "T.reinterpret('float32', T.reinterpret('int32', x))": X,
}  # fmt: skip
INTEGERS = {
    "T.ceildiv(i, j)": -(-I // J), "T.floordiv(i, j)": I // J, "T.floormod(i, j)": I % J,
    "T.truncdiv(i, j)": np.trunc(I / J), "T.truncmod(i, j)": np.fmod(I, J), "T.shift_left(i, j)": I << J,
    "T.shift_right(i, j)": I >> J, "T.bitwise_and(i, j)": I & J, "T.bitwise_or(i, j)": I | J,
    "T.bitwise_xor(i, j)": I ^ J, "T.bitwise_not(i)": ~I, "T.popcount(j)": [bin(n).count("1") for n in J],
    "T.q_multiply_shift(i, j, 3, 1)": np.floor((I * J + 8) / 16), "T.q_multiply_shift(i, j, 3, -2)": (I * J + 1) // 2,
    "T.clz(j)": [32 - int(n).bit_length() for n in J], "T.FloorDiv(i, j)": I // J, "T.FloorMod(i, j)": I % J,
    "T.Mod(i, j)": np.fmod(I, J), "T.cast(T.EQ(i, j), 'int32')": I == J, "T.cast(T.NE(i, j), 'int32')": I != J,
    "T.cast(T.LT(i, j), 'int32')": I < J, "T.cast(T.LE(i, j), 'int32')": I <= J, "T.cast(T.GT(i, j), 'int32')": I > J,
    "T.cast(T.GE(i, j), 'int32')": I >= J, "T.cast(T.And(i > 0, j > 3), 'int32')": (I > 0) & (J > 3),
    "T.cast(T.Or(i > 0, j > 3), 'int32')": (I > 0) | (J > 3), "T.cast(T.Not(i > 0), 'int32')": I <= 0,
    "T.cast(T.isnan(y), 'int32')": np.isnan(Y), "T.cast(T.isinf(y), 'int32')": np.isinf(Y),
    "T.cast(T.isfinite(y), 'int32')": np.isfinite(Y), "T.cast(T.isnullptr(X.data), 'int32')": 0 * I,
    "T.cast(T.ignore_loop_partition(i > 0), 'int32')": I > 0,
}  # fmt: skip


def run(expression, dtype):
    text = f"""
@T.prim_func
def main(X: T.Buffer((64,), "float32"), Y: T.Buffer((64,), "float32"), I: T.Buffer((64,), "int32"),
         J: T.Buffer((64,), "int32"), out: T.Buffer((64,), "{dtype}")):
    for n in range(64):
        x: T.float32 = X[n]
        y: T.float32 = Y[n]
        i: T.int32 = I[n]
        j: T.int32 = J[n]
        out[n] = {expression}
"""
    out = np.zeros(64, dtype)
    lathe.build(lathe.script.from_source(text))["main"](X, Y, I, J, out)
    return out


@pytest.mark.parametrize("expression", FLOATS)
def test_functions_of_floats(expression):
    np.testing.assert_allclose(run(expression, "float32"), FLOATS[expression], rtol=2e-5, atol=1e-5)


def test_erf():
    import math

    np.testing.assert_allclose(run("T.erf(y)", "float32"), [math.erf(v) for v in Y], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("target", ["llvm", "interp"])
def test_neighbours_and_scales_are_exact(dtype, target):
    limits = np.finfo(dtype)
    some = [0.0, -0.0, 1.0, -1.0, float(limits.max), float(limits.tiny), -float(limits.tiny), np.inf, -np.inf, np.nan]
    x, y = (np.array(part, dtype) for part in zip(*((a, b) for a in some for b in some)))
    k = np.resize(np.array([0, 1, -1, 12, -12, 2000, -2000, -24, -1060, 1030], "int32"), x.size)
    text = f"""
@T.prim_func
def main(X: T.Buffer((100,), "{dtype}"), Y: T.Buffer((100,), "{dtype}"), K: T.Buffer((100,), "int32"),
         near: T.Buffer((100,), "{dtype}"), scaled: T.Buffer((100,), "{dtype}")):
    for n in range(100):
        near[n] = T.nextafter(X[n], Y[n])
        scaled[n] = T.ldexp(X[n], K[n])
"""
    near, scaled = np.zeros(100, dtype), np.zeros(100, dtype)
    lathe.build(lathe.script.from_source(text), target=target)["main"](x, y, k, near, scaled)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(near, np.nextafter(x, y))
        if dtype != "float16":  # where NumPy gives the first of two zeros, and C the second
            signs = np.signbit(np.nextafter(x, y))
            np.testing.assert_array_equal(np.signbit(near)[~np.isnan(near)], signs[~np.isnan(near)])
        np.testing.assert_array_equal(scaled, np.ldexp(x, k))


@pytest.mark.parametrize("dtype", ["float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e5m2",
                                   "float8_e8m0fnu", "float4_e2m1fn", "bfloat16"])  # fmt: skip
def test_neighbours_of_narrow_types(dtype):
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype))
    signed = dtype != "float8_e8m0fnu"
    top = float(ml_dtypes.finfo(kind).max)
    x = np.array([1, 2, 3 if signed else 4, top / 2, -1 if signed else 1, -2 if signed else 2], kind)
    y = np.array([2, 1, top, -top if signed else 1, top, -top if signed else top], kind)
    text = f"""
@T.prim_func
def main(X: T.Buffer((6,), "{dtype}"), Y: T.Buffer((6,), "{dtype}"), near: T.Buffer((6,), "{dtype}")):
    for n in range(6):
        near[n] = T.nextafter(X[n], Y[n])
"""
    found = []
    for target in ("llvm", "interp"):
        near = np.zeros(6, kind)
        lathe.build(lathe.script.from_source(text), target=target)["main"](x, y, near)
        found.append(near.astype("float64"))
    np.testing.assert_array_equal(*found)
    wide, way = x.astype("float64"), y.astype("float64")
    assert ((found[0] > wide) == (way > wide)).all() and (found[0] != wide).all()
    # Nothing of the type lies between.
    between = ((wide + found[0]) / 2).astype(kind).astype("float64")
    assert ((between == wide) | (between == found[0])).all()


@pytest.mark.parametrize("expression", INTEGERS)
def test_functions_of_integers(expression):
    np.testing.assert_array_equal(run(expression, "int32"), np.asarray(INTEGERS[expression], "int32"))


# ---- every type ----

TYPES = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn",
]  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_a_type_makes_constants_and_variables(name):
    made = getattr(T, name)
    constant = made(1)
    assert constant.dtype == name and f"T.{name}(1" in str(constant)
    assert made().dtype == name and str(made) == name


def test_types_by_name():
    for made, value in ((T.int8, 1), (T.int16, 1), (T.uint8, 1), (T.uint16, 1), (T.uint32, 1), (T.uint64, 1),
                        (T.float16, 1), (T.float64, 1), (T.bfloat16, 1), (T.float8_e4m3fn, 1), (T.float8_e5m2, 1),
                        (T.float8_e3m4, 1),
                        (T.float8_e8m0fnu, 1), (T.float4_e2m1fn, 1)):  # fmt: skip
        assert made(value).dtype == str(made)
    assert T.int32x4(3).dtype == "int32x4" and T.int64x2(3).dtype == "int64x2" and T.uint8x16(3).dtype == "uint8x16"
    assert T.float32x8(3).dtype == "float32x8" and T.float16x64(3).dtype == "float16x64"
    assert T.boolean(True).dtype == "bool" and T.bool(True).dtype == "bool" and str(T.void) == "void"
    assert T.handle().dtype == "handle" and T.var("int32").dtype == "int32"


# ---- vectors ----


def test_vectors():
    @T.prim_func
    def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        B[T.Ramp(0, 1, 8)] = A[T.ramp(8, 1, 8)] + T.Broadcast(T.int32(1), 8)
        B[8:16] = T.Shuffle([A[0:8]], [7, 6, 5, 4, 3, 2, 1, 0]) * T.broadcast(T.int32(2), 8)

    a, b = np.arange(16, dtype="int32"), np.zeros(16, "int32")
    lathe.build(main)["main"](a, b)
    np.testing.assert_array_equal(b, [*(a[8:] + 1), *(a[7::-1] * 2)])


# ---- functions with effects, and what only the text has ----


def test_effects_and_reductions_keep_their_text():
    @T.prim_func(check_well_formed=False)  # a reduction inside an expression belongs to tensor expressions
    def main(A: T.Buffer((16,), "float32"), n: T.int64):
        T.func_attr({"global_symbol": "main"})
        T.evaluate(T.assume(n > 0))
        T.evaluate(T.tvm_storage_sync("shared"))
        T.evaluate(T.call_extern("int32", "puts", "text"))
        T.evaluate(T.call_pure_extern("float32", "sqrtf", A[0]))
        T.evaluate(T.call_packed("name", A[0], T.StringImm("text")))
        T.evaluate(T.call_llvm_intrin("void", "llvm.x86.sse.sfence"))
        T.evaluate(T.address_of(A[0]))
        A[1] = T.undef(dtype="float32")
        with T.attr(T.iter_var(T.int32(), T.Range(0, 4), "thread_index", "threadIdx.x"), "pragma", 1):
            A[2] = T.Reduce(
                T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
                A[T.int64(0)],
                [T.reduce_axis("k", (0, 4), "reduce")],
            )
        T.evaluate(T.ret(0))

    again = lathe.script.from_source(main.script(), check_well_formed=False)
    lathe.ir.assert_structural_equal(again, main)
