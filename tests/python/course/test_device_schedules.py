"""Schedules for devices with threads. Nothing here has such a device: the interpreter runs what the threads would."""

import numpy as np
import pytest

import lathe as tvm
from lathe.script import ir as I
from lathe.script import tir as T

rng = np.random.default_rng(11)


def random(*shape):
    return rng.standard_normal(shape).astype("float32")


def run(module, *inputs, shape):
    """What the function writes into its last argument."""
    out = np.full(shape, np.nan, "float32")
    tvm.build(module, target="interp")["main"](*inputs, out)
    return out


def bound_axes(module):
    """The thread axes of the loops, outermost first, with their extents."""
    found = []

    def visit(node):
        if isinstance(node, tvm.tir.For) and node.kind == tvm.tir.ForKind.THREAD_BINDING:
            found.append((node.thread_binding.thread_tag, int(node.extent)))
        return True

    tvm.tir.stmt_functor.pre_order_visit(module["main"], visit)
    return found


# ---- a vector addition ----


@I.ir_module
class VectorAddition:
    @T.prim_func
    def main(A: T.Buffer((1000,), "float32"), B: T.Buffer((1000,), "float32"), C: T.Buffer((1000,), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i in T.grid(1000):
            with T.block("C"):
                vi = T.axis.spatial(1000, i)
                C[vi] = A[vi] + B[vi]


@pytest.mark.parametrize("threads", [128, 125])
def test_a_vector_addition_over_blocks_of_threads(threads):
    sch = tvm.tir.Schedule(VectorAddition)
    (i,) = sch.get_loops(block=sch.get_block("C"))
    i0, i1 = sch.split(i, [None, threads])
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.x")
    assert bound_axes(sch.mod) == [("blockIdx.x", -(-1000 // threads)), ("threadIdx.x", threads)]
    a, b = random(1000), random(1000)
    np.testing.assert_array_equal(run(sch.mod, a, b, shape=1000), a + b)


# ---- a sum over windows, whose input threads share ----


@I.ir_module
class WindowSum:
    @T.prim_func
    def main(A: T.Buffer((514,), "float32"), B: T.Buffer((512,), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i in T.grid(512):
            with T.block("C"):
                vi = T.axis.spatial(512, i)
                B[vi] = A[vi] + A[vi + 1] + A[vi + 2]


def test_threads_fetch_together_what_all_of_them_read():
    threads = 64
    sch = tvm.tir.Schedule(WindowSum)
    block = sch.get_block("C")
    (i,) = sch.get_loops(block=block)
    i0, i1 = sch.split(i, [None, threads])
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.x")
    A_shared = sch.cache_read(block, read_buffer_index=0, storage_scope="shared")
    sch.compute_at(A_shared, i0)
    ax = sch.get_loops(A_shared)[-1]
    _, at1 = sch.split(ax, [None, threads])
    sch.bind(at1, "threadIdx.x")
    assert bound_axes(sch.mod) == [("blockIdx.x", 8), ("threadIdx.x", threads), ("threadIdx.x", threads)]
    a = random(514)
    wanted = a[:-2] + a[1:-1] + a[2:]
    np.testing.assert_allclose(run(sch.mod, a, shape=512), wanted, rtol=1e-6, atol=1e-6)


# ---- a matrix product in blocks ----

N = 64


@I.ir_module
class Product:
    @T.prim_func
    def main(A: T.Buffer((N, N), "float32"), B: T.Buffer((N, N), "float32"), C: T.Buffer((N, N), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(N, N, N):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def fetch_together(sch, block, threads, read_index, at):
    """The block's input goes through shared memory; each thread copies its part."""
    copy = sch.cache_read(block=block, read_buffer_index=read_index, storage_scope="shared")
    sch.compute_at(block=copy, loop=at)
    rows, columns = sch.get_loops(block=copy)[-2:]
    both = sch.fuse(rows, columns)
    _, tx, vector = sch.split(loop=both, factors=[None, threads, 4])
    sch.vectorize(vector)
    sch.bind(tx, "threadIdx.x")


def blocked(sch, local=4, block=4, depth=8, *, shared):
    """Each thread sums a tile of `local` squared in memory of its own, a block of threads `block` squared of them."""
    block_C = sch.get_block("C")
    C_local = sch.cache_write(block_C, 0, "local")
    i, j, k = sch.get_loops(block=block_C)
    i0, i1, i2 = sch.split(loop=i, factors=[None, block, local])
    j0, j1, j2 = sch.split(loop=j, factors=[None, block, local])
    k0, k1 = sch.split(loop=k, factors=[None, depth])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    sch.reverse_compute_at(C_local, j1)
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    if shared:
        tx = sch.fuse(i1, j1)
        sch.bind(tx, "threadIdx.x")
        for read_index in (0, 1):
            fetch_together(sch, block_C, block * block, read_index, k0)
    else:
        sch.bind(i1, "threadIdx.y")
        sch.bind(j1, "threadIdx.x")
        sch.unroll(k1)
    sch.decompose_reduction(block_C, k0)
    return sch


@pytest.mark.parametrize("shared", [False, True])
def test_a_product_in_blocks(shared):
    sch = blocked(tvm.tir.Schedule(Product), shared=shared)
    axes = [tag for tag, _ in bound_axes(sch.mod)]
    wanted = ["threadIdx.x"] * 3 if shared else ["threadIdx.y", "threadIdx.x"]
    assert axes == ["blockIdx.y", "blockIdx.x", *wanted]
    a, b = random(N, N), random(N, N)
    np.testing.assert_allclose(run(sch.mod, a, b, shape=(N, N)), a @ b, rtol=1e-4, atol=1e-4)


def test_threads_do_not_share_what_each_does_for_itself():
    sch = tvm.tir.Schedule(Product)
    block = sch.get_block("C")
    i, j, _ = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 16])
    sch.bind(i1, "threadIdx.x")
    j0, j1 = sch.split(j, [None, 16])
    with pytest.raises(tvm.ScheduleError, match="'i_1' around it is bound to that axis, and what it does depends on"):
        sch.bind(j1, "threadIdx.x")


def test_what_threads_share_lies_in_shared_memory():
    sch = tvm.tir.Schedule(WindowSum)
    block = sch.get_block("C")
    i0, i1 = sch.split(sch.get_loops(block)[0], [None, 64])
    sch.bind(i1, "threadIdx.x")
    copy = sch.cache_read(block, 0, "global")
    sch.compute_at(copy, i0)
    part = sch.split(sch.get_loops(copy)[-1], [None, 64])[1]
    sch.bind(part, "threadIdx.x")  # beside the other loop, not in it: any memory will do
    sch = tvm.tir.Schedule(WindowSum)
    block = sch.get_block("C")
    i0, i1 = sch.split(sch.get_loops(block)[0], [None, 64])
    sch.bind(i1, "threadIdx.x")
    copy = sch.cache_read(block, 0, "local")
    sch.compute_at(copy, i1)
    (part,) = sch.get_loops(copy)[2:]
    assert int(sch.get(part).extent) == 3  # what one thread reads
    with pytest.raises(tvm.ScheduleError, match="what it does depends on the thread"):
        sch.bind(part, "threadIdx.x")


def test_memory_that_threads_share_holds_what_any_of_them_reads():
    sch = tvm.tir.Schedule(WindowSum)
    block = sch.get_block("C")
    i0, i1 = sch.split(sch.get_loops(block)[0], [None, 64])
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.x")
    copy = sch.cache_read(block, 0, "shared")
    sch.compute_at(copy, i1)
    part = sch.get_loops(copy)[-1]
    assert int(sch.get(part).extent) == 66
    sch.bind(sch.split(part, [None, 64])[1], "threadIdx.x")
    a = random(514)
    np.testing.assert_allclose(run(sch.mod, a, shape=512), a[:-2] + a[1:-1] + a[2:], rtol=1e-6, atol=1e-6)
