"""Tensor programs written back as loops over NumPy arrays run, and compute what the programs say."""

import numpy as np
import pytest

RNG = np.random.default_rng(7)


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def integers(*shape, low=-50, high=50, dtype=np.int32):
    return RNG.integers(low, high, shape).astype(dtype)


PRODUCT = """
@T.prim_func
def main(A: T.Buffer((5, 7), "float32"), B: T.Buffer((7, 3), "float32"), C: T.Buffer((5, 3), "float32")):
    Y = T.alloc_buffer((5, 3), "float32")
    for i, j, k in T.grid(5, 3, 7):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(5, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""
WRAPPING = """
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "int8")
    B = T.match_buffer(b, (n,), "int8")
    C = T.match_buffer(c, (n,), "int8")
    for i in range(n):
        if B[i] != T.int8(0):
            C[i] = T.truncdiv(A[i], B[i]) * T.int8(100) + T.truncmod(A[i], B[i])
        else:
            C[i] = A[i] // T.int8(3) - A[i] % T.int8(3)
"""
FUNCTIONS = """
@T.prim_func
def main(A: T.Buffer((64,), "float64"), C: T.Buffer((64,), "float64")):
    for i in T.parallel(64):
        C[i] = T.round(A[i]) + T.erf(A[i]) * T.sigmoid(A[i])
        C[i] += T.if_then_else(A[i] > T.float64(0), T.sqrt(A[i]), T.exp(A[i]))
"""
WINDOWS = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(2, 2):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            a = T.match_buffer(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), "float32")
            for x, y in T.grid(4, 4):
                with T.block("element"):
                    vx, vy = T.axis.remap("SS", [x, y])
                    C[vi * 4 + vx, vj * 4 + vy] = a[vx, vy] * T.float32(2)
"""


SEARCH = """
@T.prim_func
def main(A: T.Buffer((6, 9), "int32"), B: T.Buffer((6,), "int64")):
    for i in range(6):
        B[i] = T.int64(0)
        for j in range(9):
            if A[i, j] < 0:
                continue
            B[i] = B[i] + j
            if A[i, j] > 20:
                break
"""


def searched(a):
    sums = []
    for row in a:
        sums.append(0)
        for j, x in enumerate(row):
            sums[-1] += j * bool(x >= 0)
            if x > 20:
                break
    return np.array(sums, np.int64)


def wrapped(a, b):
    wide = a.astype(np.int64), np.where(b == 0, 1, b).astype(np.int64)
    quotient = np.trunc(wide[0] / wide[1]).astype(np.int64)
    divided = quotient * 100 + (wide[0] - quotient * wide[1])
    return np.where(b == 0, wide[0] // 3 - wide[0] % 3, divided).astype(np.int8)


def functions(a):
    from scipy.special import erf, expit

    rounded = np.trunc(a + np.copysign(0.5, a))
    return rounded + erf(a) * expit(a) + np.where(a > 0, np.sqrt(np.abs(a)), np.exp(a))


CASES = {
    "product": (PRODUCT, [floats(5, 7), floats(7, 3)], lambda a, b: np.maximum(a @ b, 0)),
    "wrapping": (WRAPPING, [integers(40, dtype=np.int8), integers(40, low=-3, high=4, dtype=np.int8)], wrapped),
    "functions": (FUNCTIONS, [floats(64, dtype=np.float64)], functions),
    "search": (SEARCH, [integers(6, 9)], searched),
    "windows": (WINDOWS, [floats(8, 8)], lambda a: a * 2),
}


@pytest.mark.parametrize("name", CASES)
def test_the_text_runs(lathe_cli, tmp_path, name):
    script, inputs, reference = CASES[name]
    (tmp_path / "program.py").write_text(script)
    text = lathe_cli("opt", tmp_path / "program.py", "--emit", "py").out
    scope = {}
    exec(compile(text, "program_numpy.py", "exec"), scope)
    wanted = reference(*inputs)
    out = np.full_like(wanted, 99)
    scope["main"](*inputs, out)
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-6)


def test_every_kernel_of_a_model_has_a_form(lathe_cli, tmp_path):
    from tests.support import paths

    lathe_cli("compile", paths.DIGITS_MODEL, "-o", tmp_path / "digits.py")
    scope = {}
    exec((tmp_path / "digits.py").read_text(), scope)
    assert sum(callable(value) and name not in ("cast", "truncdiv", "truncmod", "round_away")
               for name, value in scope.items()) >= 3  # fmt: skip
