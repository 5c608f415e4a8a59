"""Names of buffers, maps and whole functions that work on constants as well as on symbols."""

import numpy as np
import pytest

import lathe
from lathe import tir
from lathe.script import tir as T


def test_addresses_of_buffers():
    a = tir.decl_buffer((4, 8), "float32", name="A")
    line = tir.decl_buffer((32,), "float32", name="L")
    assert str(a.access_ptr("r")) == "T.address_of(A[0, 0])"
    assert str(line.access_ptr("rw", offset=5)) == "T.address_of(L[5])"
    with pytest.raises(ValueError, match="of one dimension"):
        a.access_ptr("w", offset=3)
    with pytest.raises(ValueError, match="an access is"):
        a.access_ptr("x")


ADDRESS = """
@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), b: T.handle):
    at = T.int64()
    B = T.match_buffer(b, (32,), "float32", elem_offset=at)
    T.evaluate(T.call_extern("int32", "use", {}))
"""


def test_addresses_by_memory():
    for written, meant in {
        'T.tvm_access_ptr(T.type_annotation("float32"), A.data, 0, 32, 1)': "T.address_of(A[0, 0])",
        'T.tvm_access_ptr("float32", A.data, A.elem_offset, 32, "rw")': "T.address_of(A[0, 0])",
        'T.tvm_access_ptr(T.type_annotation("float32"), B.data, B.elem_offset, 32, 2)': "T.address_of(B[0])",
        'T.tvm_access_ptr(T.type_annotation("float32"), B.data, B.elem_offset + 3, 8, 3)': "T.address_of(B[",
    }.items():
        assert meant in lathe.script.from_source(ADDRESS.format(written)).script()
    for written, reason in {
        'T.tvm_access_ptr(T.type_annotation("int8"), A.data, 0, 32, 1)': "holds float32, not int8",
        'T.tvm_access_ptr(T.type_annotation("float32"), A, 0, 32, 1)': "is a buffer's, as A.data",
        'T.tvm_access_ptr(T.type_annotation("float32"), A.data, 3, 32, 1)': "of one dimension",
        'T.tvm_access_ptr(T.type_annotation("float32"), A.data, 0, 32, 4)': "an access is",
        'T.tvm_access_ptr(T.type_annotation("float32"), A.data)': "'rw_mask' is missing",
    }.items():
        with pytest.raises(lathe.Error, match=reason):
            lathe.script.from_source(ADDRESS.format(written))


def test_where_elements_lie():
    n = tir.Var("n", "int64")
    assert [int(i.value) for i in tir.decl_buffer((4, 8)).offset_of([2, 3])] == [19]
    assert [int(i.value) for i in tir.decl_buffer((4, 8), strides=[16, 2], elem_offset=7).offset_of([2, 3])] == [45]
    grouped = tir.decl_buffer((4, 8, 3), axis_separators=[2])
    assert [int(i.value) for i in grouped.offset_of([1, 2, 2])] == [10, 2]
    (place,) = tir.decl_buffer((4, n)).offset_of([2, 3])
    assert lathe.arith.Analyzer().can_prove_equal(place, n * 2 + 3)


def test_flat_buffers():
    flat = tir.decl_buffer((4, 8, 3), name="A").get_flattened_buffer()
    assert [int(i.value) for i in flat.shape] == [96] and flat.name == "A"
    grouped = tir.decl_buffer((4, 8, 3), axis_separators=[2]).get_flattened_buffer()
    assert [int(i.value) for i in grouped.shape] == [32, 3] and list(grouped.axis_separators) == [1]
    apart = tir.decl_buffer((4, 8), strides=[16, 1], elem_offset=2).get_flattened_buffer()
    assert [int(i.value) for i in apart.shape] == [58] and len(apart.strides) == 0


def test_a_map_puts_the_elements_of_an_array():
    tiled = tir.IndexMap.from_func(lambda i, j: (i // 2, j // 4, i % 2, j % 4))
    a = np.arange(32).reshape(4, 8)
    np.testing.assert_array_equal(tiled.map_tensor(a), a.reshape(2, 2, 2, 4).transpose(0, 2, 1, 3))
    given = lathe.nd.array(a.astype("float32"))
    moved = tir.IndexMap.from_func(lambda i, j: (j, i)).map_tensor(given)
    np.testing.assert_array_equal(moved.numpy(), a.T)


@T.prim_func
def stages(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8, 8), "float32")
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = 0.0
            B[vi] += C[vi, vj]


def test_a_function_with_variables_of_its_own():
    again = tir.stmt_functor.renew_defs(stages)
    lathe.ir.assert_structural_equal(again, stages)
    assert not again.params[0].same_as(stages.params[0])
    variables = []
    for function in (again, stages):
        tir.stmt_functor.post_order_visit(
            function, lambda n: variables.append(n.loop_var) if isinstance(n, tir.For) else None
        )
    assert len({v for v in variables}) == 8
    a, b = np.ones((8, 8), "float32"), np.zeros(8, "float32")
    lathe.build(again)["stages"](a, b)
    assert (b == 16).all()


def test_memory_at_one_time():
    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("first"):
                vi = T.axis.spatial(4, i)
                B = T.alloc_buffer((100,), "float32")
                B[0] = 1.0
                A[vi] = B[0]
        for i in range(4):
            with T.block("second"):
                vi = T.axis.spatial(4, i)
                C = T.alloc_buffer((33,), "int8")
                C[0] = T.int8(1)
                A[vi] = T.Cast("float32", C[0])

    assert tir.analysis.calculate_allocated_bytes(main) == {"global": 433}
    assert tir.analysis.calculate_workspace_bytes(main) == 400
    assert tir.analysis.calculate_workspace_bytes(main, 256) == 512
    assert tir.analysis.calculate_workspace_bytes(stages, 1) == 256
