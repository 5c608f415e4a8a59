"""What is made of primitives, and what is asked of schedules: lathe.tir.schedule's analysis, transform and testing."""

import numpy as np
import pytest

import lathe as tvm
from lathe import tir
from lathe.script import tir as T
from lathe.tir import schedule as tools


@T.prim_func
def product(A: T.Buffer((64, 48), "float32"), B: T.Buffer((48, 32), "float32"), C: T.Buffer((64, 32), "float32")):
    D = T.alloc_buffer((64, 32), "float32")
    for i, j, k in T.grid(64, 32, 48):
        with T.block("D"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                D[vi, vj] = T.float32(0)
            D[vi, vj] += A[vi, vk] * B[vk, vj]
    for i, j in T.grid(64, 32):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = D[vi, vj] + T.float32(1)


@T.prim_func
def sixteen(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    with T.block("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j, k in T.grid(16, 16, 16):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def computed(mod, rows=64, columns=32, terms=48):
    rng = np.random.default_rng(3)
    a = rng.integers(-4, 4, (rows, terms)).astype("float32")
    b = rng.integers(-4, 4, (terms, columns)).astype("float32")
    c = np.zeros((rows, columns), "float32")
    tvm.build(mod)["main"](a, b, c)
    np.testing.assert_array_equal(c, a @ b + 1)


def test_blocks():
    sch = tir.Schedule(product)
    assert tools.analysis.has_block(sch, "D") and not tools.analysis.has_block(sch, "E")
    assert tools.analysis.is_output_block(sch, "C") and not tools.analysis.is_output_block(sch, sch.get_block("D"))
    assert [inst.kind.name for inst in sch.trace.insts] == ["get_block"]  # asking leaves nothing


def test_the_loops_of_an_intrinsic():
    sch = tir.Schedule(product)
    block = sch.get_block("D")
    info = tools.analysis.get_tensorize_loop_mapping(sch, block, sixteen)
    loops = [sch.get(loop) for loop in sch.get_loops(block)]
    assert [info.desc_loop_indexer[info.loop_map[loop]] for loop in loops] == [0, 1, 2]
    assert info.block_iter_paddings is None
    assert tools.analysis.get_tensorize_loop_mapping(sch, "C", sixteen) is None  # nothing is summed there


def test_tiles_of_an_intrinsic():
    tir.TensorIntrin.register("test.sixteen", sixteen, sixteen, override=True)
    sch = tir.Schedule(product)
    block = sch.get_block("D")
    inner = tools.transform.tile_with_tensor_intrin(sch, block, "test.sixteen")
    assert [int(sch.get(loop).extent) for loop in sch.get_loops(block)] == [4, 2, 3, 16, 16, 16]
    assert sch.get(inner) == sch.get(sch.get_loops(block)[3])
    sch.decompose_reduction(block, sch.get_loops(block)[0])
    sch.tensorize(inner, "test.sixteen")
    computed(sch.mod)
    tools.testing.verify_trace_roundtrip(sch, product)
    assert tools.transform.tile_with_tensor_intrin(tir.Schedule(product), "C", "test.sixteen") is None


def test_tiles_of_what_an_intrinsic_does_not_divide():
    @T.prim_func
    def odd(A: T.Buffer((60, 33), "float32"), B: T.Buffer((33, 17), "float32"), C: T.Buffer((60, 17), "float32")):
        D = T.alloc_buffer((60, 17), "float32")
        for i, j, k in T.grid(60, 17, 33):
            with T.block("D"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    D[vi, vj] = T.float32(0)
                D[vi, vj] += A[vi, vk] * B[vk, vj]
        for i, j in T.grid(60, 17):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = D[vi, vj] + T.float32(1)

    tir.TensorIntrin.register("test.sixteen", sixteen, sixteen, override=True)
    sch = tir.Schedule(odd)
    assert tools.transform.tile_with_tensor_intrin(sch, "D", "test.sixteen") is None
    info = tools.analysis.get_tensorize_loop_mapping(sch, "D", sixteen, allow_padding=True)
    assert info.block_iter_paddings == [16, 16, 16]
    assert tools.transform.tile_with_tensor_intrin(sch, "D", "test.sixteen", allow_padding=True) is not None
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("D")] == [4, 2, 3, 16, 16, 16]
    computed(sch.mod, 60, 17, 33)


def accesses(function):
    """The buffer, the indices and the loops of a function's one store."""
    loops, stores = [], []
    tir.stmt_functor.pre_order_visit(
        function, lambda node: (loops.append(node) if isinstance(node, tir.For) else None, True)[1]
    )
    tir.stmt_functor.post_order_visit(
        function, lambda node: stores.append(node) if isinstance(node, tir.BufferStore) else None
    )
    return stores[0].buffer, stores[0].indices, loops


def test_a_layout_that_loops_walk_in_order():
    @T.prim_func
    def tiles(A: T.Buffer((64, 48), "float32")):
        for i, j, ii, jj in T.grid(4, 3, 16, 16):
            A[i * 16 + ii, j * 16 + jj] = T.float32(1)

    buffer, indices, loops = accesses(tiles)
    found = tools.analysis.suggest_index_map(buffer, indices, loops)
    wanted = tir.IndexMap.from_func(lambda i, j: [i // 16, j // 16, i % 16, j % 16])
    assert [int(size) for size in found.map_shape([64, 48])] == [4, 3, 16, 16]
    for at in ([0, 0], [17, 5], [63, 47]):
        assert [int(x) for x in found.map_indices(at)] == [int(x) for x in wanted.map_indices(at)]

    @T.prim_func
    def columns(A: T.Buffer((8, 6), "float32")):
        for j, i in T.grid(6, 8):
            A[i, j] = T.float32(1)

    found = tools.analysis.suggest_index_map(*accesses(columns))
    assert [int(x) for x in found.map_indices([5, 2])] == [2, 5]


def test_no_layout_for_what_is_not_walked_whole():
    @T.prim_func
    def every_other(A: T.Buffer((8,), "float32")):
        for i in range(4):
            A[i * 2] = T.float32(1)

    @T.prim_func
    def some_rows(n: T.int64, a: T.handle):
        A = T.match_buffer(a, (n,), "float32")
        for i in range(n):
            A[i] = T.float32(1)

    assert tools.analysis.suggest_index_map(*accesses(every_other)) is None
    assert tools.analysis.suggest_index_map(*accesses(some_rows)) is None


def test_a_trace_done_again():
    sch = tir.Schedule(product, seed=5)
    i, j, _ = sch.get_loops("D")
    sch.split(i, sch.sample_perfect_tile(i, 3))
    sch.parallel(sch.fuse(*sch.get_loops("C")))
    for form in ("python", "json", ["python", "json"]):
        again = tools.testing.verify_trace_roundtrip(sch, product, text_format=form)
        tvm.ir.assert_structural_equal(again.mod, sch.mod)
    with pytest.raises(ValueError, match="yaml"):
        tools.testing.verify_trace_roundtrip(sch, product, text_format="yaml")
    with pytest.raises(tvm.ScheduleError, match="no block named"):
        tools.testing.verify_trace_roundtrip(sch, sixteen)


def test_names_outside_do_not_count():
    other = product.with_attr("global_symbol", "another")
    tools.testing.assert_structural_equal_ignore_global_symbol(product, other)
    with pytest.raises(ValueError):
        tvm.ir.assert_structural_equal(product, other)
    with pytest.raises(ValueError):
        tools.testing.assert_structural_equal_ignore_global_symbol(product, sixteen)


def test_instructions_and_masks():
    kind = tools.InstructionKind.get("split")
    inst = tools.Instruction(kind=kind, inputs=[("loop", 0)], attrs={"factors": [None, 4]}, outputs=[])
    assert inst.kind.name == "split"
    with pytest.raises(tvm.ScheduleError, match="'split'"):
        tools.InstructionKind.get("splitt")
    masks = tools.ScheduleDebugMask
    sch = tir.Schedule(product, debug_mask=int(masks.VERIFY_SREF_TREE | masks.VERIFY_CACHED_FLAGS))
    assert isinstance(sch.state, tools.ScheduleState) and sch.state.debug_mask == 3
    loop = sch.get_loops("C")[0]
    assert isinstance(loop, tools.LoopRV) and isinstance(sch.get_block("C"), tools.BlockRV)
    assert isinstance(sch.sample_categorical([1, 2], [0.5, 0.5]), tools.ExprRV)
    sch.remove_rv(loop)
    with pytest.raises(tools.ScheduleError):
        sch.get(loop)
    assert isinstance(sch.trace, tools.Trace)
