"""Tensor intrinsics from Python: registered, matched, put in place, run by their descriptions and by their code."""

import numpy as np
import pytest

import lathe
from lathe import tir
from lathe.script import tir as T
from lathe.tir import TensorIntrin

# A product with a matrix that lies transposed, its tiles of 16 by 16 computed by a unit that has memories of its own.


@T.prim_func
def product(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vj, vk]


@T.prim_func
def unit_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "float32", offset_factor=16, scope="global.A_unit")
    B = T.match_buffer(b, (16, 16), "float32", offset_factor=16, scope="global.B_unit")
    C = T.match_buffer(c, (16, 16), "float32", offset_factor=16, scope="global.sum")
    with T.block("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j, k in T.grid(16, 16, 16):
            with T.block("one"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]


@T.prim_func
def unit_call(a: T.handle, b: T.handle, c: T.handle):
    sa = T.var("int32")
    sb = T.var("int32")
    sc = T.var("int32")
    A = T.match_buffer(a, (16, 16), "float32", offset_factor=16, strides=[sa, 1], scope="global.A_unit")
    B = T.match_buffer(b, (16, 16), "float32", offset_factor=16, strides=[sb, 1], scope="global.B_unit")
    C = T.match_buffer(c, (16, 16), "float32", offset_factor=16, strides=[sc, 1], scope="global.sum")
    with T.block("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.evaluate(
            T.call_extern(
                "int32", "unit16", C.access_ptr("w"), A.access_ptr("r"), B.access_ptr("r"), sa, sb, sc
            )
        )


@T.prim_func
def unit_loops(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "float32", scope="global.A_unit")
    B = T.match_buffer(b, (16, 16), "float32", scope="global.B_unit")
    C = T.match_buffer(c, (16, 16), "float32", scope="global.sum")
    for i, j in T.grid(16, 16):
        with T.block("lanes"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = C[vi, vj] + T.vector_reduce_add(A[vi, 0:16] * B[vj, 0:16])


def tiled():
    """The product in tiles of one block each, over copies in the unit's memories."""
    schedule = tir.Schedule(product)
    block = schedule.get_block("product")
    i, j, k = schedule.get_loops(block)
    i, i1 = schedule.split(i, factors=[None, 16])
    j, j1 = schedule.split(j, factors=[None, 16])
    k, k1 = schedule.split(k, factors=[None, 16])
    schedule.reorder(i, j, k, i1, j1, k1)
    block = schedule.blockize(i1)
    a = schedule.cache_read(block, 0, "global.A_unit")
    b = schedule.cache_read(block, 1, "global.B_unit")
    total = schedule.cache_write(block, 0, "global.sum")
    schedule.reverse_compute_at(total, j)
    schedule.compute_at(a, k)
    schedule.compute_at(b, k)
    schedule.decompose_reduction(block, k)
    return schedule, block


def check(module, target="llvm", rtol=1e-5):
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal((64, 64)).astype("float32") for _ in range(2))
    c = np.empty((64, 64), "float32")
    lathe.build(module, target=target)["product"](a, b, c)
    np.testing.assert_allclose(c, a @ b.T, rtol=rtol, atol=1e-4)


def register(name, impl):
    return TensorIntrin.register(name, unit_desc, impl, override=True)


def test_a_tile_becomes_a_call_of_the_unit():
    register("test_unit_call", unit_call)
    schedule, block = tiled()
    schedule.tensorize(block, "test_unit_call")
    text = schedule.mod.script()
    assert 'T.call_extern("int32", "unit16", T.address_of(' in text
    assert lathe.ir.structural_equal(lathe.script.from_source(text), schedule.mod)
    check(schedule.mod, "interp")  # nobody here has the unit: its description is run


def test_a_tile_becomes_loops_that_compile():
    register("test_unit_loops", unit_loops)
    schedule, block = tiled()
    schedule.tensorize(block, "test_unit_loops")
    check(schedule.mod, "interp")
    check(schedule.mod)


def test_a_loop_is_made_a_block_first_and_the_trace_does_it_again():
    register("test_unit_loops", unit_loops)
    schedule = tir.Schedule(unit_desc)
    schedule.tensorize(schedule.get_loops("one")[0], "test_unit_loops")
    again = tir.Schedule(unit_desc)
    schedule.trace.apply_to_schedule(again)
    assert lathe.ir.structural_equal(again.mod, schedule.mod)
    assert 'sch.tensorize(l' in str(schedule.trace)


def test_intrinsics_are_found_by_name():
    made = register("test_unit_loops", unit_loops)
    assert TensorIntrin.get("test_unit_loops").impl == made.impl
    assert TensorIntrin.get("test_no_unit", allow_missing=True) is None
    with pytest.raises(lathe.ScheduleError, match="'test_unit_loop'; the nearest is 'test_unit_loops'"):
        TensorIntrin.get("test_unit_loop")
    with pytest.raises(lathe.ScheduleError, match="there is one of that name already"):
        TensorIntrin.register("test_unit_loops", unit_desc, unit_loops)
    with pytest.raises(lathe.ScheduleError, match="buffer 0 is float32.64, 64. in scope 'global' in its description"):
        TensorIntrin.register("test_other", product, unit_loops)
    with pytest.raises(TypeError, match="impl is a PrimFunc, not NoneType"):
        TensorIntrin.register("test_other", unit_desc, None)


def test_a_refusal_shows_both_sides():
    register("test_unit_loops", unit_loops)
    schedule = tir.Schedule(product)
    with pytest.raises(lathe.ScheduleError, match="is not what intrinsic 'test_unit_loops' describes") as refused:
        schedule.tensorize(schedule.get_loops("product")[0], "test_unit_loops")
    notes = refused.value.diagnostics[0].notes
    assert notes[0].startswith("the description has: for i") and notes[1].startswith("the program has: for i")
