"""The matrix product followed by relu: written in three ways, transformed, timed."""

import numpy as np
import pytest

import lathe as tvm
from lathe import te
from lathe.script import ir as I
from lathe.script import tir as T

N = 128


@tvm.script.ir_module
class ProductRelu:
    @T.prim_func
    def mm_relu(A: T.Buffer((N, N), "float32"), B: T.Buffer((N, N), "float32"), C: T.Buffer((N, N), "float32")):
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((N, N), dtype="float32")
        for i, j, k in T.grid(N, N, N):
            with T.block("Y"):
                vi = T.axis.spatial(N, i)
                vj = T.axis.spatial(N, j)
                vk = T.axis.reduce(N, k)
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(N, N):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))


# The same as two functions of one module, with plain loops and a block's regions written out.
@I.ir_module
class TwoFunctions:
    @T.prim_func
    def mm(A: T.Buffer((N, N), "float32"), B: T.Buffer((N, N), "float32"), Y: T.Buffer((N, N), "float32")):
        T.func_attr({"global_symbol": "mm", "tir.noalias": True})
        for i in range(N):
            for j in range(N):
                for k in range(N):
                    with T.block("Y"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        T.reads(A[vi, vk], B[vk, vj])
                        T.writes(Y[vi, vj])
                        with T.init():
                            Y[vi, vj] = T.float32(0)
                        Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]

    @T.prim_func
    def relu(A: T.Buffer((N, N), "float32"), B: T.Buffer((N, N), "float32")):
        T.func_attr({"global_symbol": "relu", "tir.noalias": True})
        for i, j in T.grid(N, N):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], T.float32(0))


def from_expressions():
    """The module that tensor expressions give."""
    A = te.placeholder((N, N), "float32", name="A")
    B = te.placeholder((N, N), "float32", name="B")
    k = te.reduce_axis((0, N), "k")
    Y = te.compute((N, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="Y")
    C = te.compute((N, N), lambda i, j: te.max(Y[i, j], 0), name="C")
    function = te.create_prim_func([A, B, C]).with_attr({"global_symbol": "mm_relu"})
    return tvm.IRModule({"mm_relu": function})


@pytest.fixture(name="arrays")
def _arrays():
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((N, N)).astype("float32") for _ in range(2))
    return a, b, np.maximum(a @ b, 0)


def check(module, arrays, name="mm_relu"):
    """The built function gives what NumPy gives; its callable."""
    a, b, wanted = arrays
    built = tvm.build(module, target="llvm")
    out = tvm.nd.empty((N, N), "float32")
    built[name](tvm.nd.array(a), tvm.nd.array(b), out)
    tvm.testing.assert_allclose(out.numpy(), wanted, rtol=1e-4, atol=1e-4)
    return built


def transformed(module, jfactor):
    """The product by columns of `jfactor`, relu in the same loop, the sum's beginning apart."""
    sch = tvm.tir.Schedule(module)
    block_Y = sch.get_block("Y", func_name="mm_relu")
    i, j, k = sch.get_loops(block=block_Y)
    j0, j1 = sch.split(loop=j, factors=[None, jfactor])
    sch.reorder(j0, k, j1)
    block_C = sch.get_block("C", "mm_relu")
    sch.reverse_compute_at(block_C, j0)
    sch.decompose_reduction(block_Y, k)
    return sch


@pytest.mark.parametrize("make", [lambda: ProductRelu, from_expressions], ids=["script", "expressions"])
@pytest.mark.parametrize("jfactor", [4, 8, 128])
def test_the_chapters_steps_keep_the_value(arrays, make, jfactor):
    sch = transformed(make(), jfactor)
    check(sch.mod, arrays)
    names = [block.name for block in blocks_of(sch.mod["mm_relu"])]
    assert names[1:] == ["Y_init", "Y_update", "C"]
    again = tvm.tir.Schedule(make())
    sch.trace.apply_to_schedule(again)
    tvm.ir.assert_structural_equal(again.mod, sch.mod)


def blocks_of(function):
    """The function's blocks, the outermost first."""
    found = []

    def visit(node):
        if isinstance(node, tvm.tir.Block):
            found.append(node)
        return True

    tvm.tir.stmt_functor.pre_order_visit(function, visit)
    return found


def test_the_text_of_the_result_is_the_result():
    sch = transformed(ProductRelu, 4)
    text = sch.mod.script()
    assert "for i, j_0 in T.grid(128, 32):" in text
    tvm.ir.assert_structural_equal(tvm.script.from_source(text), sch.mod)


def test_expressions_and_script_make_one_program():
    derived = from_expressions()["mm_relu"]
    assert [b.name for b in blocks_of(derived)] == [b.name for b in blocks_of(ProductRelu["mm_relu"])]
    axes = [[axis.iter_type for axis in block.iter_vars] for block in blocks_of(derived)]
    assert axes == [[axis.iter_type for axis in block.iter_vars] for block in blocks_of(ProductRelu["mm_relu"])]


def test_two_functions_of_a_module_run_one_after_the_other(arrays):
    a, b, wanted = arrays
    built = tvm.build(TwoFunctions)
    y, c = np.empty((N, N), "float32"), np.empty((N, N), "float32")
    built["mm"](a, b, y)
    built["relu"](y, c)
    np.testing.assert_allclose(c, wanted, rtol=1e-4, atol=1e-4)
    sch = tvm.tir.Schedule(TwoFunctions)
    sch.work_on("relu")
    i, j = sch.get_loops("B")
    sch.vectorize(sch.split(j, [None, 16])[1])
    sch.work_on("mm")
    i, j, k = sch.get_loops("Y")
    sch.reorder(i, k, j)
    built = tvm.build(sch.mod)
    built["mm"](a, b, y)
    built["relu"](y, c)
    np.testing.assert_allclose(c, wanted, rtol=1e-4, atol=1e-4)


def test_times_are_measured(arrays):
    a, b, _ = map(tvm.nd.array, arrays)
    c = tvm.nd.empty((N, N), "float32")
    for module in (ProductRelu, transformed(ProductRelu, 8).mod):
        timer = tvm.build(module).time_evaluator("mm_relu", tvm.cpu(), number=1, repeat=2)
        assert timer(a, b, c).mean > 0


def test_loops_of_numpy_are_the_program(arrays):
    def mm_relu(A, B, C):
        Y = np.empty((N, N), dtype="float32")
        for i in range(N):
            for j in range(N):
                for k in range(N):
                    if k == 0:
                        Y[i, j] = 0
                    Y[i, j] = Y[i, j] + A[i, k] * B[k, j]
        for i in range(N):
            for j in range(N):
                C[i, j] = max(Y[i, j], 0)

    square = ((N, N), "float32")
    check(tvm.IRModule({"mm_relu": tvm.script.from_python(mm_relu, A=square, B=square, C=square)}), arrays)


def _comprehension(x, out):
    out[0] = [value for value in x]


def test_a_buffer_is_no_sequence_of_values():
    shape = ((4,), "float32")
    with pytest.raises(tvm.Error, match="a loop over their indices"):
        tvm.script.from_python(_comprehension, x=shape, out=shape)
