"""The compiler's own intrinsics: compiled where there are instructions for them, against their descriptions, on random
data of sizes that nothing divides."""

import numpy as np
import pytest

import lathe
from lathe import tir
from lathe.script import tir as T
from lathe.tir.tensor_intrin import offered, x86

SIZES = [(5, 19, 7), (33, 65, 130), (64, 32, 128), (1, 1, 1)]


def product(sizes, a_type, b_type, c_type):
    """C = A @ B in c_type, A and B first taken as a_type and b_type."""
    m, n, k = sizes
    a_given, b_given = ("float32", "float32") if c_type == "float32" else (a_type, b_type)

    @T.prim_func
    def main(A: T.Buffer((m, k), a_given), B: T.Buffer((k, n), b_given), C: T.Buffer((m, n), c_type)):
        X = T.alloc_buffer((m, k), a_type)
        Y = T.alloc_buffer((k, n), b_type)
        for i, j in T.grid(m, k):
            with T.block("take_a"):
                vi, vj = T.axis.remap("SS", [i, j])
                X[vi, vj] = T.cast(A[vi, vj], a_type)
        for i, j in T.grid(k, n):
            with T.block("take_b"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.cast(B[vi, vj], b_type)
        for i, j, r in T.grid(m, n, k):
            with T.block("product"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                with T.init():
                    C[vi, vj] = T.cast(0, c_type)
                C[vi, vj] = C[vi, vj] + T.cast(X[vi, vr], c_type) * T.cast(Y[vr, vj], c_type)

    return main


def random(shape, dtype, rng):
    if dtype == "float32":
        return rng.standard_normal(shape).astype("float32")
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def rows(sizes, intrin, types, lanes, group):
    """A vector of results at once: B lies in groups along the reduced axis, a vector of them together."""
    sch = tir.Schedule(product(sizes, *types))
    sch.pad_einsum("product", [1, lanes, group])
    block = sch.get_block("product")
    sch.transform_layout(
        block, ("read", 1), eval(f"lambda k, n: (n // {lanes}, k // {group}, n % {lanes}, k % {group})")
    )
    _, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, [None, lanes])
    k0, k1 = sch.split(k, [None, group])
    sch.reorder(j0, k0, j1, k1)
    sch.decompose_reduction(block, k0)
    sch.tensorize(j1, intrin)
    return sch


def tiles(sizes, intrin, types, group):
    """Blocks of 32 x 32 over the whole reduced axis, or, of an update, over a part of it."""
    sch = tir.Schedule(product(sizes, *types))
    step = 16 * group
    sch.pad_einsum("product", [32, 32, step])
    block = sch.get_block("product")
    sch.transform_layout(block, ("read", 1), eval(f"lambda k, n: (k // {group}, n, k % {group})"))
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 32])
    j0, j1 = sch.split(j, [None, 32])
    if intrin.endswith("_update"):
        k0, k1, k2 = sch.split(k, [None, 1, step])
        sch.reorder(i0, j0, k0, i1, j1, k1, k2)
        sch.decompose_reduction(block, k0)
    else:
        k1, k2 = sch.split(k, [None, step])
        sch.reorder(i0, j0, i1, j1, k1, k2)
    sch.tensorize(i1, intrin)
    return sch


def check(sch, sizes, types):
    m, n, k = sizes
    rng = np.random.default_rng(m + n)
    exact = types[2] != "float32"
    a = random((m, k), types[0] if exact else "float32", rng)
    b = random((k, n), types[1] if exact else "float32", rng)
    results = []
    for target in ("llvm", "interp"):
        c = np.zeros((m, n), types[2])
        lathe.build(sch.mod, target=target)["main"](a, b, c)
        results.append(c)
    if exact:
        np.testing.assert_array_equal(results[0], a.astype("int32") @ b.astype("int32"))
        np.testing.assert_array_equal(*results)
    else:
        np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-3)


def need(intrin):
    if intrin not in offered():
        pytest.skip(f"this machine has no instructions for {intrin}")


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(
    ("intrin", "types", "group"),
    [
        (x86.VNNI_DOT_16x4_INTRIN, ("uint8", "int8", "int32"), 4),
        (x86.BF16_DOT_16x2_INTRIN, ("bfloat16", "bfloat16", "float32"), 2),
    ],
    ids=str,
)
def test_vectors_of_results(intrin, types, group, sizes):
    need(intrin)
    check(rows(sizes, intrin, types, 16, group), sizes, types)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize(
    ("intrin", "types", "group"),
    [
        (x86.AMX_DOT_32x32_U8S8S32_INTRIN, ("uint8", "int8", "int32"), 4),
        (x86.AMX_DOT_32x32_S8S8S32_INTRIN, ("int8", "int8", "int32"), 4),
        (x86.AMX_DOT_32x32_BF16BF16F32_INTRIN, ("bfloat16", "bfloat16", "float32"), 2),
    ],
    ids=str,
)
def test_tiles_of_results(intrin, types, group, update, sizes):
    need(intrin)
    check(tiles(sizes, intrin + ("_update" if update else ""), types, group), sizes, types)


def test_tiles_are_set_up_on_every_thread():
    need(x86.AMX_DOT_32x32_U8S8S32_INTRIN)
    types, sizes = ("uint8", "int8", "int32"), (160, 96, 128)
    sch = tiles(sizes, x86.AMX_DOT_32x32_U8S8S32_INTRIN, types, 4)
    sch.parallel(sch.get_loops(sch.get_block("product_o"))[0])
    check(sch, sizes, types)


def test_a_target_without_the_instruction_is_told():
    sch = rows((5, 19, 7), x86.VNNI_DOT_16x4_INTRIN, ("uint8", "int8", "int32"), 16, 4)
    with pytest.raises(lathe.Error, match="cannot call 'llvm.x86.avx512.vpdpbusd.512': the target has no 'avx512vnni'"):
        lathe.build(sch.mod, target="x86-64-v3")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ('T.call_llvm_pure_intrin("int32", "llvm.no.such", 1)', "it is not among the intrinsics of LLVM"),
        ('T.call_llvm_pure_intrin("float32", "llvm.x86.rcp14.ss", 1)', "it is not among the intrinsics of LLVM"),
        ('T.call_llvm_pure_intrin("float32", "llvm.sqrt.f32", T.float64(1))', "it has no form"),
        ('T.call_llvm_pure_intrin("float32", "llvm.sqrt.f32")', "it has no form"),
    ],
)
def test_calls_that_llvm_would_stumble_over_are_refused(call, why):
    text = f"""@T.prim_func
def main(B: T.Buffer((1,), "float32")):
    for i in range(1):
        with T.block("one"):
            vi = T.axis.spatial(1, i)
            B[vi] = T.cast({call}, "float32")
"""
    with pytest.raises(lathe.Error, match=why) as refused:
        lathe.build(lathe.script.from_source(text))
    assert refused.value.diagnostics[0].code == "codegen-unsupported-intrinsic"


def test_an_intrinsic_of_llvm_is_called_by_name():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        with T.block("roots"):
            B[0:8] = T.call_llvm_pure_intrin("float32x8", "llvm.sqrt.v8f32", A[0:8])

    assert lathe.script.from_source(lathe.tir.Schedule(main).mod.script()) is not None
    a, b = np.arange(8, dtype="float32"), np.empty(8, "float32")
    lathe.build(main)["main"](a, b)
    np.testing.assert_allclose(b, np.sqrt(a), rtol=1e-6)
