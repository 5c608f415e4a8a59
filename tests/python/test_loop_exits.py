"""Loops that are left early: break and continue in tensor programs."""

import numpy as np
import pytest

import lathe
from lathe.script import tir as T
from lathe.tir import transform

rng = np.random.default_rng(7)


def run_everywhere(function, *arrays):
    """What the compiled program and the interpreter leave in copies of the arrays, which must agree."""
    results = []
    module = function if isinstance(function, lathe.IRModule) else lathe.IRModule({"main": function})
    for target in ("llvm", "interp"):
        copies = [np.array(array) for array in arrays]
        lathe.build(module, target=target)["main"](*copies)
        results.append(copies)
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    return results[0]


@T.prim_func
def first_above(A: T.Buffer((64,), "float32"), found: T.Buffer((1,), "int64")):
    found[0] = T.int64(-1)
    for i in range(64):
        if A[i] > T.float32(0.9):
            found[0] = i
            break


@pytest.mark.parametrize("seed", range(3))
def test_a_search_ends_where_it_finds(seed):
    a = np.random.default_rng(seed).uniform(0, 1, 64).astype("float32")
    _, found = run_everywhere(first_above, a, np.zeros(1, "int64"))
    assert found[0] == np.argmax(a > 0.9)
    _, found = run_everywhere(first_above, a * 0, found)
    assert found[0] == -1


# A sieve: gone on with, left, and left inside a loop that goes on.
@T.prim_func
def primes(out: T.Buffer((64,), "int64"), count: T.Buffer((1,), "int64")):
    count[0] = T.int64(0)
    for n in range(2, 200):
        composite = T.decl_buffer((1,), "bool", scope="local")
        composite[0] = False
        for d in range(2, 15):
            if d * d > n:
                break
            if n % d != 0:
                continue
            composite[0] = True
            break
        if composite[0]:
            T.continue_loop()
        out[count[0]] = n
        count[0] = count[0] + T.int64(1)
        if count[0] == T.int64(40):
            T.break_loop()


def test_loops_inside_loops():
    out, count = run_everywhere(primes, np.zeros(64, "int64"), np.zeros(1, "int64"))
    assert count[0] == 40
    expected = [n for n in range(2, 200) if all(n % d for d in range(2, n))][:40]
    assert out[:40].tolist() == expected and not out[40:].any()


# Each row of a block is searched by itself.
@T.prim_func
def rows(A: T.Buffer((8, 32), "int32"), B: T.Buffer((8,), "int64")):
    for i in range(8):
        with T.block("row"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi, 0:32])
            T.writes(B[vi])
            B[vi] = T.int64(32)
            for j in range(32):
                if A[vi, j] == 0:
                    B[vi] = j
                    break


def first_zeros(a):
    return [next((j for j, x in enumerate(row) if x == 0), 32) for row in a]


def test_loops_of_a_block():
    a = rng.integers(0, 20, (8, 32)).astype("int32")
    _, b = run_everywhere(rows, a, np.zeros(8, "int64"))
    assert b.tolist() == first_zeros(a)


def test_blocks_are_scheduled():
    a = rng.integers(0, 20, (8, 32)).astype("int32")
    schedule = lathe.tir.Schedule(lathe.IRModule({"main": rows}))
    (i,) = schedule.get_loops("row")
    outer, _ = schedule.split(i, [None, 4])
    schedule.parallel(outer)
    assert "while" in schedule.mod.script()
    _, b = run_everywhere(schedule.mod, a, np.zeros(8, "int64"))
    assert b.tolist() == first_zeros(a)


@T.prim_func
def collatz(N: T.Buffer((1,), "int64"), steps: T.Buffer((1,), "int64")):
    steps[0] = T.int64(0)
    while True:
        if N[0] == T.int64(1):
            break
        steps[0] = steps[0] + T.int64(1)
        if N[0] % T.int64(2) == T.int64(0):
            N[0] = N[0] // T.int64(2)
            continue
        N[0] = N[0] * T.int64(3) + T.int64(1)


def test_while_loops():
    _, steps = run_everywhere(collatz, np.array([27]), np.zeros(1, "int64"))
    assert steps[0] == 111


@pytest.mark.parametrize("function", [first_above, primes, rows, collatz], ids=["search", "sieve", "rows", "collatz"])
def test_texts(function):
    text = function.script()
    assert "T.break_loop()" in text
    lathe.ir.assert_structural_equal(lathe.script.from_source(text), function)


@pytest.mark.parametrize("name", ["Simplify", "LoopPartition", "CompactBufferAllocation", "UnrollLoop", "RemoveNoOp",
                                  "HoistIfThenElse", "CommonSubexprElimTIR", "ConvertSSA", "LowerInitBlock",
                                  "LowerLoopExits"])  # fmt: skip
def test_passes_keep_what_loops_do(name):
    a = rng.integers(0, 20, (8, 32)).astype("int32")
    module = getattr(transform, name)()(lathe.IRModule({"main": rows}))
    assert "break_loop" not in module.script()
    _, b = run_everywhere(module, a, np.zeros(8, "int64"))
    assert b.tolist() == first_zeros(a)


@pytest.mark.parametrize("body, message", [
    ("break", "stands in no loop"),
    ("for i in T.parallel(8):\n        break", "not serial"),
    ("for i in range(8):\n        with T.block('b'):\n            continue", "no loop of its block"),
    ("for i in range(8):\n        with T.block('b'):\n            A[0] = 1.0\n        break", "around block 'b'"),
    ("for i in range(8):\n        A[i] = T.break_loop()", "is void, not float32"),
])  # fmt: skip
def test_refusals(body, message):
    text = f"@T.prim_func\ndef main(A: T.Buffer((8,), 'float32')):\n    {body}\n"
    with pytest.raises(lathe.Error, match=message):
        lathe.script.from_source(text)
