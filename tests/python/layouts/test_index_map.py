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


def test_separators_among_the_results():
    separator = tir.IndexMap.AXIS_SEPARATOR
    assert lathe.te.AXIS_SEPARATOR is separator and repr(separator) == "AXIS_SEPARATOR"
    made, places = tir.IndexMap.from_func_with_separators(lambda i, j: [j, separator, i // 4, separator, i % 4])
    assert made.is_equivalent_to(tiled) and places == [1, 2]
    made, places = tir.IndexMap.from_func_with_separators(lambda *i: i[::-1], ndim=3)
    assert [int(one) for one in made.map_indices([1, 2, 3])] == [3, 2, 1] and places == []
    back, _ = tir.IndexMap.from_func_with_separators(
        lambda i: (i // 4, separator, i % 4), 1, lambda a, b: a * 4 + b, index_dtype="int32"
    )
    assert back.initial_indices[0].dtype == "int32" and back.inverse([16]) is back.inverse_index_map
    with pytest.raises(ValueError, match="from_func_with_separators takes"):
        tir.IndexMap.from_func(lambda i, j: (i, separator, j))
    with pytest.raises(TypeError, match="ndim says how many"):
        tir.IndexMap.from_func_with_separators(lambda *i: i)


@pytest.mark.parametrize("by_ndim", [False, True])
def test_a_layout_with_separators(by_ndim):
    def grouped(i, j):
        return j, lathe.te.AXIS_SEPARATOR, i // 4, i % 4

    sch = tir.Schedule(main)
    sch.transform_layout("B", ("write", 0), (lambda *both: grouped(*both)) if by_ndim else grouped)
    assert [inst.kind for inst in sch.trace.insts] == ["get_block", "transform_layout", "set_axis_separator"]
    buffer = sch.get(sch.get_block("B")).writes[0].buffer
    assert [int(size) for size in buffer.shape] == [3, 4, 4] and list(buffer.axis_separators) == [1]
    by_hand, again = tir.Schedule(main), tir.Schedule(main)
    by_hand.transform_layout("B", "B", lambda i, j: (j, i // 4, i % 4))
    by_hand.set_axis_separator("B", "B", [1])
    sch.trace.apply_to_schedule(again)
    lathe.ir.assert_structural_equal(sch.mod, by_hand.mod)
    lathe.ir.assert_structural_equal(sch.mod, again.mod)
    a, c = np.arange(48, dtype="float32").reshape(16, 3), np.zeros((16, 3), "float32")
    lathe.build(sch.mod, target="interp")["main"](a, c)
    np.testing.assert_array_equal(c, a + 1)


def test_separators_that_cannot_be_leave_the_layout():
    separator = tir.IndexMap.AXIS_SEPARATOR
    sch = tir.Schedule(main)
    for map_to_groups in (lambda i, j: (separator, j, i), lambda i, j: (j, separator, separator, i)):
        with pytest.raises(lathe.ScheduleError, match="cannot separate the axes of 'B'"):
            sch.transform_layout("B", "B", map_to_groups)
    lathe.ir.assert_structural_equal(sch.mod, tir.Schedule(main).mod)
    assert "transform_layout" not in [inst.kind for inst in sch.trace.insts]
    with pytest.raises(ValueError, match="from_func_with_separators takes"):
        sch.transform_block_layout("B", lambda i, j: (i, separator, j))
    with pytest.raises(lathe.ScheduleError, match="block 'B' has no buffer"):
        sch.transform_layout("B", ("write", 3), lambda *i: i)
