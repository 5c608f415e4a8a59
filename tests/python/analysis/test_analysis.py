"""Questions about tensor functions, and about integer expressions."""

import pytest

import lathe
from lathe import tir
from lathe.script import tir as T


@T.prim_func
def product(A: T.Buffer((8, 4), "float32"), B: T.Buffer((4, 6), "float32"), C: T.Buffer((8, 6), "float32")):
    Y = T.alloc_buffer((8, 6), "float32", scope="shared")
    for i in T.thread_binding(8, thread="threadIdx.x"):
        for j, k in T.grid(6, 4):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(8, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))


def blocks(function):
    found = {}

    def visit(node):
        if isinstance(node, tir.Block):
            found[node.name] = node

    tir.stmt_functor.post_order_visit(function, visit)
    return found


def test_costs():
    assert tir.analysis.estimate_tir_flops(product) == 2 * 8 * 6 * 4 + 8 * 6
    assert tir.analysis.estimate_tir_flops(lathe.IRModule({"f": product, "g": product})) == 2 * (2 * 8 * 6 * 4 + 48)
    assert tir.analysis.find_anchor_block(product).name == "Y"
    assert tir.analysis.find_anchor_block(lathe.IRModule({"main": product})).name == "Y"
    assert tir.analysis.calculate_allocated_bytes(product) == {"shared": 8 * 6 * 4}


def test_what_is_touched():
    found = blocks(product)
    reads, writes, opaque = tir.analysis.get_block_access_region(found["C"])
    assert [region.buffer.name for region in reads] == ["Y"] and [region.buffer.name for region in writes] == ["C"]
    assert opaque == []
    again = tir.analysis.get_block_read_write_region(found["C"])
    assert [[str(region) for region in part] for part in again] == [list(map(str, reads)), list(map(str, writes))]
    places = {buffer.name: place.name for buffer, place in tir.analysis.detect_buffer_access_lca(product).items()}
    assert places == {"A": "Y", "B": "Y", "Y": "root", "C": "C"}


def test_order():
    assert tir.analysis.verify_well_formed(product)
    assert tir.analysis.verify_ssa(product)
    loop = blocks(product)["root"].body.seq[1]
    doubled = product.with_body(tir.SeqStmt([loop, loop]))
    assert not tir.analysis.verify_ssa(doubled)
    loose = product._with(buffer_map={})
    assert not tir.analysis.verify_well_formed(loose, assert_mode=False)
    with pytest.raises(lathe.Error):
        tir.analysis.verify_well_formed(loose)


def test_devices():
    within = {"max_threads_per_block": 8, "max_thread_x": 8, "max_shared_memory_per_block": 192}
    assert tir.analysis.verify_gpu_code(product, within)
    for name, less in {"max_threads_per_block": 7, "max_thread_x": 4, "max_shared_memory_per_block": 191}.items():
        assert not tir.analysis.verify_gpu_code(product, {**within, name: less})
    with pytest.raises(ValueError, match="there is no constraint 'max_threads'"):
        tir.analysis.verify_gpu_code(product, {"max_threads": 3})


def test_purity():
    @T.prim_func
    def nothing(A: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,), "float32")
        for i in range(8):
            B[i] = A[i]

    assert tir.analysis.is_pure_function(nothing) and tir.analysis.assert_pure_function(nothing)
    assert not tir.analysis.is_pure_function(product)
    with pytest.raises(AssertionError, match="it writes its parameter 'C'"):
        tir.analysis.assert_pure_function(product)


def test_variables():
    x, y = tir.Var("x", "int64"), tir.Var("y", "int64")
    assert [v.name for v in tir.analysis.undefined_vars(x + y * x)] == ["x", "y"]
    assert [v.name for v in tir.analysis.undefined_vars(x + y, [x])] == ["y"]
    assert tir.analysis.undefined_vars(blocks(product)["root"].body, []) != []
    assert tir.analysis.expr_deep_equal(x + 1, x + 1)
    assert not tir.analysis.expr_deep_equal(x + 1, y + 1)


# ---- integers ----


def test_an_analyzer_knows_what_it_is_told():
    i, n = tir.Var("i", "int64"), tir.Var("n", "int64")
    known = lathe.arith.Analyzer()
    known.bind(i, lathe.ir.Range(0, 64))
    assert known.can_prove(i // 8 < 8)
    assert not known.can_prove(i < 63)
    assert known.const_int_bound(i + 1) == lathe.arith.ConstIntBound(1, 64)
    assert str(known.simplify((i * 8 + 3) // 8)) == "i"
    assert known.can_prove_equal(i * 2, i + i)
    with known.constraint_scope(i < 10):
        assert known.can_prove(i < 10)
    assert not known.can_prove(i < 10)
    known.update(n, lathe.arith.ModularSet(4, 0))
    assert known.modular_set(n + 1).coeff == 4 and known.modular_set(n + 1).base == 1
    known.update(n, lathe.arith.ConstIntBound(0, 100))
    assert known.can_prove(n <= 100)
    known.bind(n, i * 4)
    assert known.can_prove_equal(n, i * 4)


def test_an_analyzer_refuses_what_it_does_not_take():
    with pytest.raises(TypeError, match="a ConstIntBound or a ModularSet"):
        lathe.arith.Analyzer().update(tir.Var("n", "int64"), 3)
    with pytest.raises(TypeError, match="a variable is bound"):
        lathe.arith.Analyzer().bind(tir.Var("n", "int64") + 1, 3)


def test_names():
    with pytest.raises(AttributeError, match="the nearest name is tir.analysis.verify_ssa"):
        tir.analysis.verify_sssa
