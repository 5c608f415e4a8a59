"""Maps of indices: applied, inverted, compared, given to a schedule."""

import numpy as np
import pytest

import lathe
from lathe import tir
from lathe.script import tir as T

tiled = tir.IndexMap.from_func(lambda i, j: (j, i // 4, i % 4))


def texts(expressions):
    return [str(one).replace("T.int64(", "(") for one in expressions]


def test_indices_and_shapes():
    x, y = tir.Var("x", "int64"), tir.Var("y", "int64")
    assert texts(tiled.map_indices([x * 4 + 1, y])) == ["y", "x", "(1)"]
    assert [int(size) for size in tiled.map_shape([16, 3])] == [3, 4, 4]
    assert [int(size) for size in tiled.map_shape([14, 3])] == [3, 4, 4]


def test_the_way_back():
    back = tiled.inverse([16, 3])
    both = back.map_indices(tiled.map_indices(tiled.initial_indices))
    assert texts(both) == ["i", "j"]
    with pytest.raises(lathe.ScheduleError, match="does not meet every element"):
        tiled.inverse([14, 3])
    given = tir.IndexMap.from_func(lambda i: (i // 4, i % 4), inverse_index_map=lambda a, b: a * 4 + b)
    assert given.inverse([16]) is given.inverse_index_map


def test_where_a_map_meets_nothing():
    back, nothing = tiled.non_surjective_inverse([14, 3])
    outputs = back.initial_indices

    def holds(*at):
        made = lathe._lathe.substitute(nothing, list(zip(outputs, at)))
        return bool(int(lathe.arith.Analyzer().simplify(made)))

    missed = {(j, a, b) for j in range(3) for a in range(4) for b in range(4) if holds(j, a, b)}
    assert missed == {(j, 3, b) for j in range(3) for b in (2, 3)}
    _, never = tiled.non_surjective_inverse([16, 3])
    assert str(never) == "T.bool(False)" or not bool(int(never))


def test_equal_maps():
    same = tir.IndexMap.from_func(lambda a, b: (b, (a * 2) // 8, a % 4))
    assert tiled.is_equivalent_to(same)
    assert not tiled.is_equivalent_to(tir.IndexMap.from_func(lambda i, j: (i, j, 0)))
    assert not tiled.is_equivalent_to(tir.IndexMap.from_func(lambda i: (i,)))


def test_any_number_of_indices():
    turned = tir.IndexMap.from_func(lambda *i: i[::-1], ndim=3)
    assert [int(size) for size in turned.map_shape([2, 3, 4])] == [4, 3, 2]
    with pytest.raises(TypeError, match="ndim says how many"):
        tir.IndexMap.from_func(lambda *i: i)
    with pytest.raises(ValueError, match="the map takes 1 indices, not 2"):
        tir.IndexMap.from_func(lambda i: i, ndim=2)
    with pytest.raises(ValueError, match="the map takes 2 indices, not 1"):
        tiled.map_indices([3])


@T.prim_func
def main(A: T.Buffer((16, 3), "float32"), C: T.Buffer((16, 3), "float32")):
    B = T.alloc_buffer((16, 3), "float32")
    for i, j in T.grid(16, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(16, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]


def test_a_schedule_takes_a_map():
    sch = tir.Schedule(main)
    sch.transform_layout("B", ("write", 0), tiled)
    assert [int(size) for size in sch.get(sch.get_block("B")).writes[0].buffer.shape] == [3, 4, 4]
    a, c = np.arange(48, dtype="float32").reshape(16, 3), np.zeros((16, 3), "float32")
    lathe.build(sch.mod)["main"](a, c)
    np.testing.assert_array_equal(c, a + 1)


def test_parts_of_vectors():
    @T.prim_func
    def halves(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        B[0:8] = T.vectorcombine("int32x8", T.vectorhigh("int32x4", A[0:8]), T.vectorlow("int32x4", A[0:8]))

    a, b = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    lathe.build(halves)["halves"](a, b)
    np.testing.assert_array_equal(b, [4, 5, 6, 7, 0, 1, 2, 3])
    with pytest.raises(lathe.ScriptError, match="T.vectorlow of int32x8 is not int32x8"):
        lathe.script.from_source("""
@T.prim_func
def f(A: T.Buffer((8,), "int32")):
    A[0:8] = T.vectorlow("int32x8", A[0:8])
""")
