"""The exercises of the field's course, written as tensor programs: read, scheduled, run, compared with NumPy."""

import numpy as np
import pytest

import lathe as tvm
from lathe.script import ir as I
from lathe.script import tir as T

rng = np.random.default_rng(7)


def random(*shape):
    return rng.standard_normal(shape).astype("float32")


def run(module, *inputs, shape, name="main"):
    """What the built function writes into its last argument."""
    out = tvm.nd.empty(shape, "float32")
    tvm.build(module, target="llvm")[name](*map(tvm.nd.array, inputs), out)
    return out.numpy()


# ---- the matrix product followed by relu, in the spelling of 2022 ----


@tvm.script.ir_module
class ProductRelu:
    @T.prim_func
    def main(X: T.Buffer[(96, 64), "float32"], W: T.Buffer[(64, 80), "float32"], Z: T.Buffer[(96, 80), "float32"]):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        product = T.alloc_buffer((96, 80), dtype="float32")
        for row, column, step in T.grid(96, 80, 64):
            with T.block("product"):
                vr, vc, vs = T.axis.remap("SSR", [row, column, step])
                with T.init():
                    product[vr, vc] = T.float32(0)
                product[vr, vc] += X[vr, vs] * W[vs, vc]
        for row, column in T.grid(96, 80):
            with T.block("relu"):
                vr, vc = T.axis.remap("SS", [row, column])
                Z[vr, vc] = T.max(product[vr, vc], T.float32(0))


def test_product_with_relu_keeps_its_value_under_a_schedule():
    x, w = random(96, 64), random(64, 80)
    wanted = np.maximum(x @ w, 0)
    np.testing.assert_allclose(run(ProductRelu, x, w, shape=(96, 80)), wanted, rtol=1e-4, atol=1e-5)

    sch = tvm.tir.Schedule(ProductRelu)
    product = sch.get_block("product", func_name="main")
    row, column, step = sch.get_loops(product)
    outer, inner = sch.split(column, factors=[None, 16])
    sch.reorder(row, outer, step, inner)
    sch.reverse_compute_at("relu", outer)
    sch.decompose_reduction(product, step)
    sch.vectorize(inner)
    sch.parallel(row)
    np.testing.assert_allclose(run(sch.mod, x, w, shape=(96, 80)), wanted, rtol=1e-4, atol=1e-5)

    again = tvm.tir.Schedule(ProductRelu)
    sch.trace.apply_to_schedule(again)
    tvm.ir.assert_structural_equal(again.mod, sch.mod)


# ---- additions ----


@I.ir_module
class Addition:
    @T.prim_func
    def main(A: T.Buffer((4, 4), "int64"), B: T.Buffer((4, 4), "int64"), C: T.Buffer((4, 4), "int64")):
        for i, j in T.grid(4, 4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(4, j)
                C[vi, vj] = A[vi, vj] + B[vi, vj]


@I.ir_module
class BroadcastAddition:
    @T.prim_func
    def main(A: T.Buffer((4, 4), "int64"), B: T.Buffer((4,), "int64"), C: T.Buffer((4, 4), "int64")):
        for i, j in T.grid(4, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + B[vj]


@pytest.mark.parametrize("module, shape", [(Addition, (4, 4)), (BroadcastAddition, (4,))])
def test_additions(module, shape):
    a, b = np.arange(16).reshape(4, 4), np.arange(np.prod(shape)).reshape(shape)[::-1].copy()
    c = np.empty((4, 4), dtype=np.int64)
    sch = tvm.tir.Schedule(module)
    i, j = sch.get_loops(sch.get_block("C"))
    sch.vectorize(sch.fuse(i, j))
    for built in (tvm.build(module), tvm.build(sch.mod)):
        c[...] = -1
        built["main"](a, b, c)
        np.testing.assert_array_equal(c, a + b)


# ---- convolution ----

N, CI, H, WIDTH, CO, K = 1, 2, 8, 8, 3, 3
OUT_H, OUT_W = H - K + 1, WIDTH - K + 1


@I.ir_module
class Convolution:
    @T.prim_func
    def main(
        data: T.Buffer((N, CI, H, WIDTH), "float32"),
        weight: T.Buffer((CO, CI, K, K), "float32"),
        out: T.Buffer((N, CO, OUT_H, OUT_W), "float32"),
    ):
        for n, co, y, x, ci, dy, dx in T.grid(N, CO, OUT_H, OUT_W, CI, K, K):
            with T.block("conv"):
                vn, vco, vy, vx, vci, vdy, vdx = T.axis.remap("SSSSRRR", [n, co, y, x, ci, dy, dx])
                with T.init():
                    out[vn, vco, vy, vx] = T.float32(0)
                out[vn, vco, vy, vx] += data[vn, vci, vy + vdy, vx + vdx] * weight[vco, vci, vdy, vdx]


def test_convolution_with_captured_sizes():
    data, weight = random(N, CI, H, WIDTH), random(CO, CI, K, K)
    windows = np.lib.stride_tricks.sliding_window_view(data, (K, K), axis=(2, 3))
    wanted = np.einsum("ncyxij,ocij->noyx", windows, weight)
    got = run(Convolution, data, weight, shape=(N, CO, OUT_H, OUT_W))
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


# ---- the batched product ----


@I.ir_module
class BatchedProductRelu:
    @T.prim_func
    def bmm_relu(
        A: T.Buffer((16, 32, 32), "float32"), B: T.Buffer((16, 32, 32), "float32"), C: T.Buffer((16, 32, 32), "float32")
    ):
        T.func_attr({"global_symbol": "bmm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((16, 32, 32), "float32")
        for n, i, j, k in T.grid(16, 32, 32, 32):
            with T.block("Y"):
                vn, vi, vj, vk = T.axis.remap("SSSR", [n, i, j, k])
                with T.init():
                    Y[vn, vi, vj] = T.float32(0)
                Y[vn, vi, vj] = Y[vn, vi, vj] + A[vn, vi, vk] * B[vn, vk, vj]
        for n, i, j in T.grid(16, 32, 32):
            with T.block("C"):
                vn, vi, vj = T.axis.remap("SSS", [n, i, j])
                C[vn, vi, vj] = T.max(Y[vn, vi, vj], T.float32(0))


def test_batched_product_as_the_exercise_schedules_it():
    a, b = random(16, 32, 32), random(16, 32, 32)
    sch = tvm.tir.Schedule(BatchedProductRelu)
    Y = sch.get_block("Y", func_name="bmm_relu")
    n, i, j, k = sch.get_loops(Y)
    k0, k1 = sch.split(k, factors=[None, 4])
    j0, j1 = sch.split(j, factors=[None, 8])
    sch.reorder(n, i, j0, k0, k1, j1)
    sch.reverse_compute_at(sch.get_block("C", func_name="bmm_relu"), j0)
    init = sch.decompose_reduction(Y, k0)
    sch.parallel(n)
    sch.vectorize(sch.get_loops(init)[-1])
    sch.unroll(k1)
    got = run(sch.mod, a, b, shape=(16, 32, 32), name="bmm_relu")
    np.testing.assert_allclose(got, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-5)


# ---- symbolic sizes, and scalars ----


@T.prim_func
def scaled(a: T.handle, b: T.handle, factor: T.float32, shift: T.int32):
    n = T.int64()
    A = T.match_buffer(a, (n, 3), "float32")
    B = T.match_buffer(b, (n, 3), "float32")
    for i, j in T.grid(n, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * factor + T.cast(shift, "float32")


def test_sizes_come_from_the_arguments():
    built = tvm.build(scaled)
    for n in (0, 1, 5, 33):
        a = random(n, 3)
        b = np.empty_like(a)
        built["scaled"](a, b, 0.5, -2)
        np.testing.assert_allclose(b, a * np.float32(0.5) - 2, rtol=1e-6)
