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
