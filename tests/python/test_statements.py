"""Statements of a text that assignments and subscripts do not write."""

import numpy as np
import pytest

import lathe
from lathe.script import tir as T
from lathe.script.ir_builder import IRBuilder
from lathe.script.ir_builder import tir as B


@T.prim_func
def halves(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), n: T.int64):
    T.Assert(n > 0, "n is positive")
    memory = T.allocate([8], "float32", "global")
    X = T.Buffer((8,), "float32", data=memory)
    for i in range(8):
        T.buffer_store(X, A[i] * T.float32(0.5), [7 - i])
    for i in range(8):
        T.buffer_store(C, X[i], [i])


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_memory_stores_and_assertions_by_name(target):
    built = lathe.build(halves, target=target)["halves"]
    a, c = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    built(a, c, 1)
    np.testing.assert_array_equal(c, a[::-1] / 2)
    with pytest.raises(lathe.Error, match="n is positive"):
        built(a, c, 0)
    text = halves.script()
    assert 'memory = T.allocate([8], "float32", "global")' in text and 'assert n > 0, "n is positive"' in text


def test_loops_of_threads_by_calls():
    with IRBuilder() as ib, B.prim_func():
        B.func_name("main")
        A = B.arg("A", B.Buffer((8,), "int64"))
        with B.thread_binding(8, thread="threadIdx.x") as t:
            B.buffer_store(A, t * 3, [t])
    made = ib.get()
    assert 'T.thread_binding(8, thread="threadIdx.x")' in made.script()
    a = np.zeros(8, "int64")
    lathe.build(made, target="interp")["main"](a)
    np.testing.assert_array_equal(a, np.arange(8) * 3)


def ran(body, parameters, *arrays):
    """What a program of these statements leaves in the last array, compiled and interpreted alike."""
    program = lathe.script.from_source("@T.prim_func\ndef main(" + parameters + "):\n" + body)
    found = []
    for target in ("interp", "llvm"):
        given = [array.copy() for array in arrays]
        lathe.build(program, target=target)["main"](*given)
        found.append(given[-1])
    np.testing.assert_array_equal(*found)
    assert lathe.script.from_source(program.script()).script() == program.script()
    return found[0]


def test_lets_bind_variables_that_are_declared():
    body = """
    x = T.int32()
    with T.LetStmt(A[0] + 5, var=x):
        A[1] = x * x
    with T.let(x, A[1] - 1):
        A[2] = x
    A[3] = T.let(x, A[2] + 1, x + x)
"""
    assert ran(body, 'A: T.Buffer((4,), "int32")', np.arange(4, dtype="int32")).tolist() == [0, 25, 24, 50]


def test_memory_by_the_documented_positions():
    body = """
    data = T.allocate_const([4, 3, 2, 1], "int32", [4])
    C = T.Buffer((4,), "int32", data=data)
    memory = T.allocate([4], "int32", "global", True, {"note": 1})
    M = T.Buffer((4,), "int32", data=memory)
    for i in range(4):
        M[i] = C[i] + A[i]
    for i in range(4):
        A[i] = M[3 - i]
"""
    assert ran(body, 'A: T.Buffer((4,), "int32")', np.arange(4, dtype="int32")).tolist() == [4, 4, 4, 4]
    with pytest.raises(lathe.Error, match="memory is allocated on no condition"):
        ran(body.replace("True", "A[0] > 0"), 'A: T.Buffer((4,), "int32")', np.arange(4, dtype="int32"))


def test_choices_between_literals_take_the_dtype_of_their_place():
    body = """
    for i in range(4):
        A[i] = (1 if A[i] > 2 else T.if_then_else(A[i] > 1, 20, 300 if i < 1 else -4)) + 1
        B[i] = 1 if A[i] > 2 else 2
        B[i] = B[i] * T.Select(A[i] > 2, 3, 4)
"""
    with pytest.raises(lathe.Error, match="is int64, not int32"):
        ran(body, 'A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int8")', *np.zeros((2, 4), "int32"))
    body = """
    for i in range(4):
        A[i] = 1 if A[i] > 2 else T.if_then_else(A[i] > 1, 20, 300 if i < 1 else -4)
"""
    assert ran(body, 'A: T.Buffer((4,), "int32")', np.arange(4, dtype="int32")).tolist() == [300, -4, 20, 1]
    assert ran(body, 'A: T.Buffer((4,), "float32")', np.arange(4, dtype="float32")).tolist() == [300, -4, 20, 1]
    with pytest.raises(lathe.Error, match="is int64, not int8"):  # 300 is no int8
        ran(body, 'A: T.Buffer((4,), "int8")', np.arange(4, dtype="int8"))


ROWS = """
    for i, j in T.grid(4, 3):
        A[i, j] = A[i, j] + T.float32(1)
        B[i, j] = A[i, j] * T.float32(2)
"""


@pytest.mark.parametrize("target", ["interp", "llvm"])
@pytest.mark.parametrize("strides", ["[s, 1]", '["s", 1]', "[6, 1]"])
def test_rows_that_lie_apart_in_an_argument(target, strides):
    text = ("@T.prim_func\ndef main(a: T.handle, B: T.Buffer((4, 3), 'float32')):\n    s = T.int64()\n"
            f"    A = T.match_buffer(a, (4, 3), 'float32', strides={strides}, offset_factor=1)\n{ROWS}")  # fmt: skip
    wide, b = np.arange(24, dtype="float32").reshape(4, 6), np.zeros((4, 3), "float32")
    before = wide.copy()
    lathe.build(lathe.script.from_source(text), target=target)["main"](wide[:, :3], b)
    before[:, :3] += 1
    np.testing.assert_array_equal(wide, before)
    np.testing.assert_array_equal(b, before[:, :3] * 2)


def test_the_opposite_of_a_bool_is_the_other():
    body = "    for i in range(2):\n        A[i] = ~A[i]\n"
    assert ran(body, 'A: T.Buffer((2,), "bool")', np.array([True, False])).tolist() == [False, True]


def test_bools_add_up_to_true():
    @T.prim_func
    def sums(A: T.Buffer((4,), "bool"), B: T.Buffer((4,), "bool"), C: T.Buffer((3, 4), "bool")):
        for i in range(4):
            C[0, i] = A[i] + B[i]
            C[1, i] = A[i] * B[i]
            C[2, i] = A[i] - B[i]

    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    for target in ("interp", "llvm"):
        c = np.zeros((3, 4), bool)
        lathe.build(sums, target=target)(a, b, c)
        np.testing.assert_array_equal(c, [a + b, a * b, a ^ b], err_msg=target)


def test_the_largest_by_its_name_in_python():
    @T.prim_func
    def largest(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(max(2, 4)):
            B[i] = max(A[i], 1.0, min(A[3 - i], A[0])) + T.float32(min([3, 2]))

    assert "T.max(" in largest.script() and "T.min(" in largest.script()
    a, b = np.array([3, 0, 2, 5], "float32"), np.zeros(4, "float32")
    lathe.build(largest)(a, b)
    np.testing.assert_array_equal(b, np.maximum(np.maximum(a, 1), np.minimum(a[::-1], a[0])) + 2)
