"""Passes that replace statements of one kind, and those that only look."""

import numpy as np
import pytest

import lathe as tvm
from lathe import tir
from lathe.script import tir as T


@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.parallel(8):
        T.assume(A[i] > T.float32(0))
        assert A[0] >= T.float32(1), "the first is small"
        B[i] = T.Select(A[i] > T.float32(2), A[7 - i], T.float32(0))
    for i in range(8):
        A[i] = T.undef(dtype="float32")


def after(name, function=main):
    return getattr(tir.transform, name)()(tvm.IRModule({"main": function}))["main"]


def values(function):
    a, b = np.arange(1, 9, dtype="float32"), np.zeros(8, "float32")
    tvm.build(function, target="interp")(a, b)
    return a, b


def test_statements_that_go():
    whole = main.script()
    for name, gone in {"RemoveAssume": "T.assume", "SkipAssert": "assert", "RemoveStoreUndef": "T.undef"}.items():
        left = after(name)
        assert gone in whole and gone not in left.script(), name
        assert len(left.script().splitlines()) >= len(whole.splitlines()) - 1, name
        np.testing.assert_array_equal(values(left)[1], values(main)[1])
        tvm.ir.assert_structural_equal(after(name, left), left)


def test_an_element_that_may_have_any_value_keeps_its_own():
    np.testing.assert_array_equal(values(after("RemoveStoreUndef"))[0], np.arange(1, 9, dtype="float32"))


def test_an_assertion_that_is_skipped_stops_nothing():
    a, b = np.zeros(8, "float32"), np.ones(8, "float32")
    with pytest.raises(tvm.RunError, match="the first is small"):
        tvm.build(main)(a, b)
    tvm.build(after("SkipAssert"))(a, b)
    np.testing.assert_array_equal(b, np.zeros(8, "float32"))


def test_what_is_all_of_a_body_leaves_a_statement_that_does_nothing():
    @T.prim_func
    def guarded(A: T.Buffer((4,), "float32")):
        for i in range(4):
            if A[i] > T.float32(0):
                T.assume(A[i] < T.float32(9))
            else:
                A[i] = T.float32(1)

    left = after("RemoveAssume", guarded)
    assert "T.assume" not in left.script()
    a = np.array([0, 5, 0, 5], "float32")
    tvm.build(left)(a)
    np.testing.assert_array_equal(a, [1, 5, 1, 5])


def test_parallel_loops_become_serial():
    assert "T.parallel" in main.script() and "T.parallel" not in after("ConvertForLoopsToSerial").script()


def test_a_select_that_loads_computes_one_of_its_values():
    left = after("RewriteUnsafeSelect")
    assert "T.Select" not in left.script() and "T.if_then_else" in left.script()
    np.testing.assert_array_equal(values(left)[1], values(main)[1])

    @T.prim_func
    def numbers(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.Select(i > 2, T.float32(1), T.float32(2))

    tvm.ir.assert_structural_equal(after("RewriteUnsafeSelect", numbers), numbers)


def test_passes_that_look():
    for name in ("VerifySSA", "VerifyMemory"):
        tvm.ir.assert_structural_equal(after(name), main)
    with pytest.raises(ValueError, match="outside of the device's threads"):
        after("VerifyMemory", main.with_attr("target", "cuda"))

    @T.prim_func
    def threads(A: T.Buffer((64,), "float32")):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            A[i] = T.float32(0)

    module = tvm.IRModule({"main": threads})
    tir.transform.VerifyGPUCode({"max_threads_per_block": 64})(module)
    with pytest.raises(ValueError, match="max_threads_per_block"):
        tir.transform.VerifyGPUCode({"max_threads_per_block": 32})(module)

    twice = main.with_body(tir.SeqStmt([main.body, main.body]))
    with pytest.raises(ValueError, match="twice"):
        after("VerifySSA", twice)
