"""Every primitive of the schedule from Python: accepted, with the value unchanged; and its trace does it again."""

import numpy as np
import pytest

import lathe
from lathe import tir
from lathe.script import tir as T

rng = np.random.default_rng(13)
N = 32


@T.prim_func
def chain(A: T.Buffer((N, N), "float32"), D: T.Buffer((N, N), "float32")):
    B = T.alloc_buffer((N, N), "float32")
    C = T.alloc_buffer((N, N), "float32")
    for i, j in T.grid(N, N):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(N, N):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
    for i, j in T.grid(N, N):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] * C[vi, vj]


@T.prim_func
def product(A: T.Buffer((N, N), "float32"), D: T.Buffer((N, N), "float32")):
    W = T.alloc_buffer((N, N), "float32")
    for i, j in T.grid(N, N):
        with T.block("W"):
            vi, vj = T.axis.remap("SS", [i, j])
            W[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j, k in T.grid(N, N, N):
        with T.block("D"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                D[vi, vj] = T.float32(0)
            D[vi, vj] = D[vi, vj] + A[vi, vk] * W[vk, vj]


@T.prim_func
def biased(A: T.Buffer((N, N), "float32"), D: T.Buffer((N, N), "float32")):
    C = T.alloc_buffer((N, N), "float32")
    for i, j, k in T.grid(N, N, N):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * A[vk, vj]
    for i, j in T.grid(N, N):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj] + A[0, vj], T.float32(0))


@T.prim_func
def in_place(A: T.Buffer((N, N), "float32"), D: T.Buffer((N, N), "float32")):
    B = T.alloc_buffer((N, N), "float32")
    for i, j in T.grid(N, N):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(N, N):
        with T.block("step"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = B[vi, vj] + T.float32(1)
    for i, j in T.grid(N, N):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj]


@T.prim_func
def padded(A: T.Buffer((N, N), "float32"), D: T.Buffer((N, N), "float32")):
    P = T.alloc_buffer((N + 2, N), "float32")
    for i, j in T.grid(N + 2, N):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = T.if_then_else(1 <= vi and vi < N + 1, A[vi - 1, vj], T.float32(0))
    for i, j in T.grid(N, N):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = P[vi, vj] + P[vi + 2, vj]


@T.prim_func
def windows(A: T.Buffer((N, N), "float32"), D: T.Buffer((N, N), "float32")):
    B = T.alloc_buffer((N + 2, N), "float32")
    for i, j in T.grid(N + 2, N):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi % N, vj // 2 * 2] * T.float32(2)
    for i, j in T.grid(N, N):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj] + B[vi + 1, vj] + B[vi + 2, vj]


ARRAY = rng.standard_normal((N, N)).astype("float32")


def value(module):
    """What the program makes of ARRAY."""
    out = np.zeros((N, N), "float32")
    lathe.build(module, target="interp")["main"](ARRAY, out)
    return out


def pair(sch, block):
    return sch.get_loops(block)[:2]


STEPS = {
    "join": (chain, lambda s: s.join(s.get_loops("B")[0], s.get_loops("C")[0])),
    "merge": (chain, lambda s: s.merge(s.get_loops("B")[0], s.get_loops("C")[0])),
    "fuse": (chain, lambda s: s.fuse(*s.get_loops("B"), preserve_unit_iters=True)),
    "split": (chain, lambda s: s.split(s.get_loops("B")[0], factors=[None, 5], disable_predication=False)),
    "loop_partition": (chain, lambda s: s.loop_partition(s.get_loops("D")[0], factors=[8, None])),
    "reorder": (product, lambda s: s.reorder(*reversed(s.get_loops("D")))),
    "reorder_block_iter_var": (product, lambda s: s.reorder_block_iter_var("D", new_order=[1, 0, 2])),
    "add_unit_loop": (chain, lambda s: s.add_unit_loop("B")),
    "parallel": (chain, lambda s: s.parallel(s.get_loops("B")[0])),
    "vectorize": (chain, lambda s: s.vectorize(s.get_loops("B")[1])),
    "bind": (chain, lambda s: s.bind(s.get_loops("B")[0], thread_axis="threadIdx.x")),
    "unroll": (chain, lambda s: s.unroll(s.get_loops("B")[1])),
    "cache_read": (chain, lambda s: s.cache_read("B", read_buffer_index=0, storage_scope="shared")),
    "cache_write": (chain, lambda s: s.cache_write("D", write_buffer_index=0, storage_scope="local")),
    "reindex_cache_read": (chain, lambda s: s.reindex_cache_read("B", 0, "shared", lambda vi, vj: (vj, vi))),
    "reindex_cache_write": (chain, lambda s: s.reindex_cache_write("D", 0, "shared", lambda vi, vj: (vj, vi))),
    "cache_inplace": (in_place, lambda s: s.cache_inplace("step", 0, "local")),
    "reindex": (product, lambda s: s.reindex("D", ("read", 0))),
    "read_at": (chain, lambda s: s.read_at(s.get_loops("B")[0], "B", 0, "shared")),
    "write_at": (chain, lambda s: s.write_at(s.get_loops("D")[0], "D", 0, "local")),
    "compute_at": (chain, lambda s: s.compute_at("C", s.get_loops("D")[0], preserve_unit_loops=False)),
    "reverse_compute_at": (chain, lambda s: s.reverse_compute_at("C", s.get_loops("B")[0])),
    "compute_inline": (chain, lambda s: s.compute_inline("C")),
    "reverse_compute_inline": (chain, lambda s: s.reverse_compute_inline("D")),
    "decompose_reduction": (product, lambda s: s.decompose_reduction("D", s.get_loops("D")[2])),
    "fuse_reduction_epilogue": (biased, lambda s: s.fuse_reduction_epilogue("C", "D")),
    "rfactor": (product, lambda s: s.rfactor(s.split(s.get_loops("D")[2], [None, 4])[1], factor_axis=0)),
    "storage_align": (chain, lambda s: s.storage_align("B", 0, axis=-2, factor=16, offset=4)),
    "prefetch": (product, lambda s: s.prefetch("D", 0, s.get_loops("D")[0], s.get_loops("D")[2], level=1)),
    "set_scope": (chain, lambda s: s.set_scope("B", 0, "shared")),
    "set_axis_separator": (chain, lambda s: s.set_axis_separator("B", ("write", 0), axis_separators=[1])),
    "cache_index": (windows, lambda s: s.cache_index("B", storage_scope="local", cse_thresh=0)),
    "rolling_buffer": (windows, lambda s: [
        s.compute_at("B", s.get_loops("D")[0]), s.rolling_buffer("B", write_buffer_index=0)]),
    "annotate_buffer_access": (windows, lambda s: s.annotate_buffer_access(
        "D", 0, "read", gen_new_ranges=lambda i, j: ((i, i + 3), j))),
    "enter_postproc": (chain, lambda s: [s.enter_postproc(), s.parallel(s.get_loops("B")[0])]),
    "annotate": (chain, lambda s: s.annotate("B", "key", 3)),
    "unannotate": (chain, lambda s: [s.annotate("B", "key", 3), s.unannotate("B", "key")]),
    "blockize": (chain, lambda s: s.blockize(s.get_loops("B")[1])),
    "transform_layout": (chain, lambda s: s.transform_layout("B", ("write", 0), lambda i, j: (j, i))),
    "transform_block_layout": (chain, lambda s: s.transform_block_layout("B", lambda i, j: (i * 32 + j,))),
    "decompose_padding": (padded, lambda s: s.decompose_padding("P", s.get_loops("P")[0])),
    "split_padding": (padded, lambda s: s.split_padding("P")),
    "pad_einsum": (product, lambda s: s.pad_einsum("D", padding=[5, 1, 1])),
    "sample_categorical": (chain, lambda s: s.sample_categorical([1, 2], [0.5, 0.5], decision=1)),
    "sample_perfect_tile": (chain, lambda s: s.split(
        s.get_loops("B")[0], s.sample_perfect_tile(s.get_loops("B")[0], n=2))),
    "sample_partitioned_tile": (chain, lambda s: s.split(
        s.get_loops("B")[0], s.sample_partitioned_tile(s.get_loops("B")[0], 2, 1, 4, decision=[8, 4]))),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_a_step_keeps_the_value_and_is_done_again(name):
    function, step = STEPS[name]
    function = function.with_attr("global_symbol", "main")
    sch = tir.Schedule(function, seed=3)
    step(sch)
    assert tir.analysis.verify_well_formed(sch.mod)
    np.testing.assert_allclose(value(sch.mod), value(function), rtol=1e-5, atol=1e-5)
    again = tir.Schedule(function)
    sch.trace.apply_to_schedule(again)
    lathe.ir.assert_structural_equal(again.mod, sch.mod)
    by_json = tir.Schedule(function)
    tir.Trace.apply_json_to_schedule(sch.trace.as_json(), by_json)
    lathe.ir.assert_structural_equal(by_json.mod, sch.mod)


def test_lookups():
    sch = tir.Schedule(chain)

    def names(blocks):
        return [sch.get(block).name for block in blocks]

    assert names([sch.get_block("C")]) == ["C"]
    assert names(sch.get_producers("C")) == ["B"] and names(sch.get_consumers("C")) == ["D"]
    assert names(sch.get_child_blocks(sch.get_block("root"))) == ["B", "C", "D"]
    assert names(sch.get_output_blocks("root")) == ["D"]
    assert sch.func_working_on in ("main", "chain") and sch.get_sref(sch.get_block("B")).name == "B"


def test_padding_is_tried_without_a_change():
    sch = tir.Schedule(padded)
    before = sch.mod
    assert sch.can_decompose_padding("P", sch.get_loops("P")[0])
    assert not sch.can_decompose_padding("D", sch.get_loops("D")[0])
    lathe.ir.assert_structural_equal(sch.mod, before)


def test_types_are_changed_without_a_proof():
    sch = tir.Schedule(chain)
    sch.unsafe_set_dtype("B", 0, "float16")
    assert sch.get(sch.get_block("B")).writes[0].buffer.dtype == "float16"


def test_what_new_primitives_make():
    sch = tir.Schedule(windows)
    blocks = sch.cache_index("B", "local")
    assert [sch.get(block).name for block in blocks] == ["index_0", "index_1"]
    assert sch.cache_index("D", "local", 5) == []
    sch.annotate_buffer_access("D", "B", "read", lambda i, j: ((i, i + 3), (0, N)))
    text = sch.mod.script()
    assert "explicit_read_region" in text and f"B[vi:vi + 3, 0:{N}]" in text
    sch.set_axis_separator("B", "B", [1])
    assert sch.get(sch.get_block("B")).writes[0].buffer.axis_separators == [1]
    flat = lathe.transform.Sequential([tir.transform.LowerInitBlock(), tir.transform.LowerOpaqueBlock(),
                                       tir.transform.FlattenBuffer()])(sch.mod)  # fmt: skip
    assert f"T.Buffer(({N + 2}, {N})" in flat.script()
    assert f"T.Buffer(({N + 2}, {N})" not in tir.transform.JoinAxisGroups()(flat).script()
    rolled = tir.Schedule(windows)
    rolled.compute_at("B", rolled.get_loops("D")[0])
    rolled.rolling_buffer("B", "B")
    assert rolled.get(rolled.get_block("B")).writes[0].buffer.shape[0].value == 3
    for program in (sch.mod, rolled.mod):
        out, expected = np.zeros((N, N), "float32"), value(windows.with_attr("global_symbol", "main"))
        lathe.build(program, target="llvm")["windows"](ARRAY, out)
        np.testing.assert_array_equal(out, expected)


def test_postprocessing_can_be_left_out():
    sch = tir.Schedule(chain)
    sch.parallel(sch.get_loops("B")[0])
    sch.enter_postproc()
    sch.unroll(sch.get_loops("B")[1])
    trace = sch.trace
    assert trace.as_python()[-1].startswith("sch.unroll") and len(trace.simplified()) == len(trace)
    for shorter in (trace.as_python(remove_postproc=True), trace.simplified(remove_postproc=True).as_python()):
        assert shorter == trace.as_python()[: len(shorter)] and shorter[-1].startswith("sch.parallel")
    assert trace.as_json(remove_postproc=True)[-1]["kind"] == "parallel"
    again = tir.Schedule(chain)
    trace.apply_to_schedule(again, remove_postproc=True)
    assert "T.parallel" in again.mod.script() and "T.unroll" not in again.mod.script()


def test_seeds():
    sch = tir.Schedule(chain, seed=5)
    assert sch.fork_seed() != sch.fork_seed()
    sch.seed(5)
    assert sch.fork_seed() == tir.Schedule(chain, seed=5).fork_seed()


# ---- traces ----


def sampled():
    sch = tir.Schedule(chain, seed=1)
    i, j = sch.get_loops("B")
    sch.get_block("D")
    sch.split(i, sch.sample_perfect_tile(i, 2, decision=[8, 4]))
    return sch


def test_a_trace_without_what_nothing_needs():
    trace = sampled().trace
    kinds = [inst["kind"] for inst in trace.insts]
    assert kinds == ["get_block", "get_loops", "get_block", "sample_perfect_tile", "split"]
    short = trace.simplified()
    assert [inst["kind"] for inst in short.insts] == ["get_block", "get_loops", "sample_perfect_tile", "split"]
    again = tir.Schedule(chain)
    short.apply_to_schedule(again)
    lathe.ir.assert_structural_equal(again.mod, sampled().mod)


def test_a_trace_with_another_decision():
    trace = sampled().trace
    (number,) = trace.decisions
    other = trace.with_decision(number, [2, 16])
    assert other.decisions == {number: [2, 16]} and trace.decisions == {number: [8, 4]}
    again, provided = tir.Schedule(chain), tir.Schedule(chain)
    other.apply_to_schedule(again)
    assert [int(again.get(loop).extent) for loop in again.get_loops("B")] == [2, 16, N]
    trace.apply_to_schedule(provided, decision_provider=lambda inst, inputs, attrs, decision: [2, 16])
    lathe.ir.assert_structural_equal(again.mod, provided.mod)
    with pytest.raises(lathe.ScheduleError, match="only a sampling instruction"):
        trace.with_decision(0, [1, 2])


def test_a_trace_is_shortened_and_shown(capsys):
    trace = sampled().trace
    assert trace.pop()["kind"] == "split" and len(trace) == 4
    trace.show()
    assert "sample_perfect_tile" in capsys.readouterr().out
    with pytest.raises(lathe.ScheduleError, match="a trace as JSON"):
        tir.Trace.apply_json_to_schedule({}, tir.Schedule(chain))


def test_schedules_are_shown(capsys):
    sampled().show()
    assert "sch.split" in capsys.readouterr().out
