"""te.extern_primfunc: functions among tensor expressions."""

import numpy as np
import pytest

import lathe
from lathe import te, tir
from lathe.script import tir as T


@T.prim_func
def product(a: T.handle, b: T.handle, c: T.handle):
    n = T.int64()
    m = T.int64()
    k = T.int64()
    A = T.match_buffer(a, (n, k), "float32")
    B = T.match_buffer(b, (k, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    for i, j, r in T.grid(n, m, k):
        with T.block("product"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]


@T.prim_func
def smoothed(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    X = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("X"):
            v = T.axis.spatial(8, i)
            X[v] = A[v] * T.float32(2)
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = X[7 - v]
            C[v] = X[v] + T.float32(1)


def test_a_function_among_expressions():
    x, y = te.placeholder((4, 6), name="x"), te.placeholder((6, 5), name="y")
    z = te.extern_primfunc([x, y], product, name="z")
    assert [int(n) for n in z.shape] == [4, 5] and z.dtype == "float32"
    doubled = te.compute((4, 5), lambda i, j: z[i, j] * 2, name="doubled")
    function = te.create_prim_func([x, y, doubled])
    a, b = np.random.rand(4, 6).astype("float32"), np.random.rand(6, 5).astype("float32")
    schedule = tir.Schedule(function)
    i, j, r = schedule.get_loops("product")  # its blocks can be scheduled
    schedule.reorder(r, i, j)
    for made in (function, schedule.mod["main"]):
        out = np.empty((4, 5), "float32")
        lathe.build(made)["main"](a, b, out)
        np.testing.assert_allclose(out, a @ b * 2, rtol=1e-6)


def test_a_function_twice_and_one_that_allocates():
    x = te.placeholder((4, 4), name="x")
    twice = te.extern_primfunc([te.extern_primfunc([x, x], product), x], product)
    a, out = np.random.rand(4, 4).astype("float32"), np.empty((4, 4), "float32")
    function = te.create_prim_func([x, twice])
    assert tir.analysis.verify_ssa(function)
    lathe.build(function)["main"](a, out)
    np.testing.assert_allclose(out, a @ a @ a, rtol=1e-5)
    v = te.placeholder((8,), name="v")
    b, c = te.extern_primfunc([v], smoothed)
    last = te.compute((8,), lambda i: b[i] - c[i])
    a, out = np.random.rand(8).astype("float32"), np.empty(8, "float32")
    lathe.build(te.create_prim_func([v, last]))["main"](a, out)
    np.testing.assert_allclose(out, a[::-1] * 2 - a * 2 - 1, rtol=1e-5, atol=1e-6)


@T.prim_func
def numbered(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), n: T.int64):
    for i in range(8):
        B[i] = A[i] + T.Cast("float32", n)


@T.prim_func
def idle(A: T.Buffer((8,), "float32")):
    T.evaluate(A[0])


x = te.placeholder((4, 6), name="x")
v = te.placeholder((8,), name="v")
REFUSED = {
    "too few tensors": (lambda: te.extern_primfunc([x], product), ValueError, "2 buffers, and 1 tensors are given"),
    "another shape": (lambda: te.extern_primfunc([x], smoothed), ValueError, "is no float32"),
    "sizes that differ": (lambda: te.extern_primfunc([x, x], product), ValueError,
                          "would be T.int64(6) and T.int64(4)"),
    "a number": (lambda: te.extern_primfunc([v], numbered), ValueError, "'n' is a number"),
    "nothing written": (lambda: te.extern_primfunc([v], idle), ValueError, "writes none of its buffers"),
    "no tensor": (lambda: te.extern_primfunc([3], smoothed), TypeError, "reads tensors, not a int"),
    "another option": (lambda: te.extern_primfunc([v], smoothed, shape=(8,)), TypeError, "and not shape"),
}  # fmt: skip


@pytest.mark.parametrize("make, error, wanted", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(make, error, wanted):
    with pytest.raises(error) as caught:
        make()
    assert wanted in str(caught.value)
