"""Schedules in Python: every primitive by name, handles, refusals, traces."""

import inspect

import numpy as np
import pytest

import lathe
from lathe import _lathe, te, tir
from lathe.script import tir as T
from lathe.tir.schedule import PRIMITIVES


def product(n=16):
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((n, n), lambda i, j: te.max(c[i, j], 0.0), name="D")
    return te.create_prim_func([a, b, d])


def check(schedule, n=16):
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((n, n)).astype("float32") for _ in range(2))
    d = np.empty((n, n), "float32")
    lathe.build(schedule.mod)["main"](a, b, d)
    np.testing.assert_allclose(d, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-5)


def test_every_primitive_of_the_compiler_is_a_method():
    schedule = tir.Schedule(product())
    for name in _lathe.instruction_kinds():
        assert callable(getattr(schedule, name)), name
    for name in PRIMITIVES:
        assert inspect.signature(getattr(tir.Schedule, name)), name


def test_blocks_go_by_handle_or_name():
    schedule = tir.Schedule(product())
    assert len(schedule.get_loops("C")) == len(schedule.get_loops(schedule.get_block("C"))) == 3
    assert schedule.get(schedule.get_block("D")).name == "D"
    assert [schedule.get(b).name for b in schedule.get_consumers("C")] == ["D"]
    assert [schedule.get(b).name for b in schedule.get_producers("D")] == ["C"]
    assert schedule.get(schedule.get_loops("C")[2]).extent.value == 16


def test_primitives_keep_the_value():
    schedule = tir.Schedule(product())
    i, j, k = schedule.get_loops("C")
    i0, i1 = schedule.split(i, factors=[None, 4])
    j0, j1 = schedule.split(j, [2, None])
    k0, k1 = schedule.split(k, factors=(4, 4))
    schedule.reorder(i0, j0, k0, k1, i1, j1)
    schedule.cache_read("C", "B", "global")
    schedule.cache_write("C", 0, "global")
    schedule.unroll(i1)
    schedule.vectorize(j1)
    schedule.parallel(schedule.fuse(i0, j0))
    schedule.decompose_reduction("C", k0)
    schedule.annotate("D", "note", "kept")
    assert schedule.get(schedule.get_block("D")).annotations == {"note": "kept"}
    check(schedule)


def test_layouts_go_by_functions_of_indices():
    schedule = tir.Schedule(product())
    schedule.transform_layout("C", ("write", 0), lambda i, j: (i // 4, j, i % 4))
    layout = schedule.get(schedule.get_block("C")).writes[0].buffer.shape
    assert [extent.value for extent in layout] == [4, 16, 4]
    schedule.transform_layout("D", "C", lambda a, b, c: [c, a, b])
    check(schedule)
    with pytest.raises(lathe.ScheduleError):
        schedule.transform_layout("D", "C", lambda a, b, c: [a, b, 0])
    with pytest.raises(TypeError, match="an index map is a function of indices"):
        schedule.transform_layout("D", "C", 3)


def test_tiles_are_sampled():
    schedule = tir.Schedule(product(), seed=4)
    i, j, k = schedule.get_loops("C")
    factors = schedule.sample_perfect_tile(j, n=3, max_innermost_factor=4)
    sizes = [schedule.get(factor).value for factor in factors]
    assert np.prod(sizes) == 16 and sizes[-1] <= 4
    schedule.split(j, factors)
    given = schedule.sample_perfect_tile(i, n=2, decision=[2, 8])
    assert [schedule.get(factor).value for factor in given] == [2, 8]
    again = tir.Schedule(product())
    schedule.trace.apply_to_schedule(again)
    lathe.ir.assert_structural_equal(again.mod, schedule.mod)
    with pytest.raises(lathe.ScheduleError):
        schedule.sample_perfect_tile(k, n=2, decision=[3, 5])


def test_threads_of_a_device_are_bound_and_interpreted():
    schedule = tir.Schedule(product(8))
    i, j, k = schedule.get_loops("C")
    schedule.reverse_compute_at("D", j)
    schedule.bind(i, "blockIdx.x")
    schedule.bind(j, "threadIdx.x")
    assert schedule.get(i).kind is tir.ForKind.THREAD_BINDING
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((8, 8)).astype("float32") for _ in range(2))
    d = np.empty((8, 8), "float32")
    lathe.build(schedule.mod, target="interp")["main"](a, b, d)
    np.testing.assert_allclose(d, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-5)


def test_copies_share_handles_and_go_their_own_way():
    schedule = tir.Schedule(product())
    i, j, _ = schedule.get_loops("C")
    other = schedule.copy()
    schedule.parallel(i)
    other.vectorize(other.split(j, [None, 8])[1])
    assert schedule.get(i).kind is tir.ForKind.PARALLEL and other.get(i).kind is tir.ForKind.SERIAL
    check(schedule)
    check(other)


def test_a_trace_is_printed_and_replayed():
    schedule = tir.Schedule(product())
    tile = schedule.sample_categorical([2, 4, 8], [0.2, 0.3, 0.5], decision=1)
    assert schedule.get(tile).value == 4
    schedule.split(schedule.get_loops("D")[1], [None, tile])
    lines = schedule.trace.as_python()
    assert any("sch.split(" in line for line in lines)
    assert [row["kind"] for row in schedule.trace.as_json()][0] == "sample_categorical"
    first = schedule.trace.insts[0]
    assert (first.kind.name, first.attrs["decision"], len(first.outputs)) == ("sample_categorical", 1, 1)
    assert str(lines[0]).endswith("sch.sample_categorical(candidates=[2, 4, 8], probs=[0.2, 0.3, 0.5], decision=1)")
    assert schedule.trace.with_decision(first, 2).insts[0].attrs["decision"] == 2
    assert [inst.kind for inst in schedule.trace.insts][-1] == "split"
    again = tir.Schedule(product())
    tir.Trace.from_python(lines).apply_to_schedule(again)
    lathe.ir.assert_structural_equal(again.mod, schedule.mod)


def test_sampling_is_decided_by_the_seed():
    def draws(seed):
        schedule = tir.Schedule(product(), seed=seed)
        drawn = (schedule.sample_categorical(list(range(50)), [0.02] * 50) for _ in range(8))
        return [schedule.get(one).value for one in drawn]

    assert draws(1) == draws(1) != draws(2)


@T.prim_func
def running_sum(A: T.Buffer((8,), "int64")):
    for i in range(7):
        with T.block("A"):
            vi = T.axis.opaque(7, i)
            A[vi + 1] = A[vi + 1] + A[vi]


REFUSED = {
    "no such block": (lambda s: s.get_block("E"), lathe.ScheduleError, "no block named 'E'"),
    "factors that are no tiling": (lambda s: s.split(s.get_loops("C")[0], [None, None]), lathe.ScheduleError, ""),
    "loops of two nests": (lambda s: s.fuse(s.get_loops("C")[0], s.get_loops("D")[1]), lathe.ScheduleError, ""),
    "a reduction in parallel": (lambda s: s.parallel(s.get_loops("C")[2]), lathe.ScheduleError, ""),
    "inlining a reduction": (lambda s: s.compute_inline("C"), lathe.ScheduleError, ""),
    "a buffer that is not read": (lambda s: s.cache_read("C", "Z", "global"), lathe.ScheduleError, "only A, B"),
    "a number for a loop": (lambda s: s.parallel(0), TypeError, "loop is a loop of get_loops, not int"),
    "a number for a block": (lambda s: s.get_loops(0), TypeError, "block is a block or the name of one"),
    "too many arguments": (lambda s: s.compute_inline("C", "D"), TypeError, ""),
    "a place behind its consumer": (
        lambda s: s.compute_at("C", s.get_loops("D")[0], index=1), lathe.ScheduleError, "no place 1 for it in the loop",
    ),
    "a split that needs its predicate": (
        lambda s: s.split(s.get_loops("C")[0], [None, 7], disable_predication=True), lathe.ScheduleError,
        "without a predicate",
    ),
    "a consumer that reads something else": (
        lambda s: s.cache_read("C", 0, "local", consumer_blocks=["D"]), lathe.ScheduleError, "does not read 'A'"),
    "a consumer that is no block": (
        lambda s: s.cache_read("C", 0, "local", consumer_blocks=[3]), TypeError, "a consumer is a block"),
    "an annotation that is nothing": (lambda s: s.annotate("C", "key", None), lathe.ScheduleError, "an annotation is"),
    "a candidate that is no number": (lambda s: s.sample_categorical(["a"], [1.0]), TypeError, "whole number"),
    "probabilities below zero": (lambda s: s.sample_categorical([1, 2], [2, -1]), lathe.ScheduleError, "probability"),
    "a tile that cannot be": (
        lambda s: s.sample_partitioned_tile(s.get_loops("C")[0], 2, 1, innerpart_factor=7), lathe.ScheduleError,
        "a multiple of 7",
    ),
    "a handle that is none": (lambda s: s.remove_rv("C"), TypeError, "a handle"),
    "a misspelt primitive": (lambda s: s.vectorise(0), AttributeError, "nearest name is 'vectorize'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_why_and_change_nothing(name):
    act, kind, message = REFUSED[name]
    schedule = tir.Schedule(product())
    with pytest.raises(kind) as caught:
        act(schedule)
    assert message in str(caught.value)
    lathe.ir.assert_structural_equal(schedule.mod["main"], product())


def test_a_dependence_is_found():
    schedule = tir.Schedule(running_sum)
    with pytest.raises(lathe.ScheduleError) as caught:
        schedule.parallel(schedule.get_loops("A")[0])
    assert caught.value.diagnostics[0].code.startswith("schedule-")


def test_a_dependence_names_two_iterations_and_their_element():
    schedule = tir.Schedule(running_sum)
    with pytest.raises(lathe.ScheduleError) as caught:
        schedule.parallel(schedule.get_loops("A")[0])
    *notes, program = caught.value.diagnostics[0].notes
    assert len(notes) == 2 and all(note.startswith("block 'A' ") and " where i = " in note for note in notes)
    assert any(" writes A[" in note for note in notes) and any(" reads A[" in note for note in notes)
    lines = program.splitlines()
    assert lines[0] == "in the program"
    assert [line[1:].strip() for line in lines if line.startswith(">")] == ["for i in range(7):", 'with T.block("A"):']
    assert all(note in str(caught.value) for note in (*notes, program))


def test_a_refusal_of_a_long_program_shows_a_few_lines():
    schedule = tir.Schedule(product())
    with pytest.raises(lathe.ScheduleError) as caught:
        schedule.vectorize(schedule.get_loops("C")[2])
    text = str(caught.value)
    assert '> ' in text and 'with T.block("C")' in text and 'with T.block("D")' not in text
    brief = tir.Schedule(product(), error_render_level="fast")
    with pytest.raises(lathe.ScheduleError) as caught:
        brief.vectorize(brief.get_loops("C")[2])
    assert "in the program" not in str(caught.value)
    with pytest.raises(ValueError, match="error_render_level"):
        tir.Schedule(product(), error_render_level="loud")


def test_without_checks_what_cannot_be_proved_is_believed():
    schedule = tir.Schedule(running_sum, enable_check=False)
    schedule.parallel(schedule.get_loops("A")[0])
    assert "T.parallel(" in schedule.mod.script()
    unproved = tir.Schedule(product(), enable_check=False)
    i, j, k = unproved.get_loops("C")
    unproved.reorder(k, i, j)
    check(unproved)
    with pytest.raises(lathe.ScheduleError, match="not the only statement"):
        unproved.fuse(i, k)


def test_handles_of_another_schedule_and_dead_ones_are_refused():
    one, other = tir.Schedule(product()), tir.Schedule(product())
    loop = other.get_loops("C")[0]
    with pytest.raises(lathe.ScheduleError, match="belongs to another schedule"):
        one.parallel(loop)
    i, j, _ = one.get_loops("C")
    one.fuse(i, j)
    with pytest.raises(lathe.ScheduleError):
        one.parallel(j)


def test_a_forgotten_handle_is_not_found():
    schedule = tir.Schedule(product())
    loop, block = schedule.get_loops("C")[0], schedule.get_block("C")
    schedule.remove_rv(loop)
    with pytest.raises(lathe.ScheduleError, match="was removed"):
        schedule.parallel(loop)
    schedule.parallel(schedule.get_loops(block)[0])
    check(schedule)


def test_the_state_is_of_the_program_as_it_is():
    schedule = tir.Schedule(product(), debug_mask="all", enable_check=False)
    state = schedule.state
    schedule.parallel(schedule.get_loops("C")[0])
    assert "T.parallel" in state.mod.script()
    assert (state.debug_mask, state.enable_check) == ("all", False)
    assert state.get_sref(schedule.get_block("C")).name == "C"
    with pytest.raises(ValueError, match="debug_mask"):
        tir.Schedule(product(), debug_mask="some")


def test_a_list_is_an_annotation_and_is_taken_back():
    schedule = tir.Schedule(product())
    number = schedule.sample_categorical([4, 8], [0.5, 0.5], decision=1)
    schedule.annotate("C", "stages", [0, 1, [number, "x"]])
    assert schedule.get(schedule.get_block("C")).annotations["stages"] == [0, 1, [8, "x"]]
    again = tir.Schedule(product())
    schedule.trace.apply_to_schedule(again)
    lathe.ir.assert_structural_equal(again.mod, schedule.mod)
    schedule.unannotate("C", "stages")
    lathe.ir.assert_structural_equal(schedule.mod["main"], product())


def test_a_tile_is_drawn_by_its_partition():
    seen = set()
    for seed in range(40):
        schedule = tir.Schedule(product(), seed=seed)
        i = schedule.get_loops("C")[0]
        tile = schedule.sample_partitioned_tile(i, 3, partition_pos=1, innerpart_factor=2)
        outer, middle, inner = (schedule.get(factor).value for factor in tile)
        assert outer * middle * inner == schedule.get(i).extent.value and middle * inner % 2 == 0
        seen.add((outer, middle, inner))
    assert len(seen) > 3


def test_copies_serve_the_consumers_that_are_named():
    schedule = tir.Schedule(product())
    schedule.cache_write("C", 0, "local", consumer_blocks=["D"])
    assert schedule.get(schedule.get_block("D")).reads[0].buffer.name.endswith("_local")
    check(schedule)


def test_places_are_drawn_and_blocks_put_together():
    schedule = tir.Schedule(product(), seed=3)
    schedule.compute_at("C", schedule.sample_compute_location("C", decision=0))
    assert [schedule.get(b).name for b in schedule.get_child_blocks(schedule.get_loops("D")[0])] == ["C", "D"]
    both = schedule.blockize([schedule.get_block("C"), "D"])
    assert schedule.get(both).name == "C_D_o"
    check(schedule)
    drawn = tir.Schedule(product(), seed=3)
    drawn.compute_at("C", drawn.sample_compute_location("C"))
    check(drawn)


def test_a_hidden_access_is_no_longer_declared():
    schedule = tir.Schedule(product())
    schedule.unsafe_hide_buffer_access("D", "read", [0])
    assert len(schedule.get(schedule.get_block("D")).reads) == 0
    check(schedule)


def test_what_is_written_under_a_condition_inside_is_not_cached_as_a_whole():
    @T.prim_func
    def main(X: T.Buffer((8,), "int32"), Y: T.Buffer((8,), "int32")):
        for i in range(4):
            with T.block("outer"):
                vi = T.axis.spatial(4, i)
                for j in range(2):
                    with T.block("inner"):
                        vj = T.axis.spatial(8, vi * 2 + j)
                        T.where(vi * 2 + j < 6)
                        Y[vj] = X[vj]

    sch = tir.Schedule(main)
    with pytest.raises(lathe.ScheduleError, match="not an exact region"):
        sch.cache_write("outer", 0, "local")
    with pytest.raises(lathe.ScheduleError, match="not an exact region"):
        sch.write_at(sch.get_loops("outer")[0], "outer", 0, "local")


def test_blocks_in_two_branches_are_not_made_one():
    @T.prim_func
    def main(X: T.Buffer((8,), "int32")):
        for i in range(8):
            if i < 4:
                with T.block("low"):
                    vi = T.axis.spatial(8, i)
                    X[vi] = 1
            else:
                with T.block("high"):
                    vi = T.axis.spatial(8, i)
                    X[vi] = 2

    sch = tir.Schedule(main)
    with pytest.raises(lathe.ScheduleError, match="do not follow one another"):
        sch.blockize([sch.get_block("low"), sch.get_block("high")])


def test_what_is_read_through_a_view_is_not_inlined():
    @T.prim_func
    def main(X: T.Buffer((4,), "int32"), Y: T.Buffer((4,), "int32")):
        B = T.alloc_buffer((4,), "int32")
        for i in range(4):
            with T.block("first"):
                vi = T.axis.spatial(4, i)
                B[vi] = X[vi] * 3
        for i in range(4):
            with T.block("second"):
                vi = T.axis.spatial(4, i)
                view = T.match_buffer(B[vi : vi + 1], (1,), "int32")
                Y[vi] = view[0]

    sch = tir.Schedule(main)
    with pytest.raises(lathe.ScheduleError, match="read through a view"):
        sch.compute_inline("first")
    with pytest.raises(lathe.ScheduleError, match="cannot inline block 'second'"):
        sch.reverse_compute_inline("second")


def bound_to(schedule, block):
    """What the variables of a block are bound to, as text."""
    lines = schedule.mod.script().split(f'T.block("{block}")')[1].split("T.reads")[0]
    return [line.split(", ", 1)[1].rstrip(")") for line in lines.splitlines() if "T.axis." in line]


def test_variables_of_unit_loops_stay_where_they_are_preserved():
    kept, dropped = tir.Schedule(product()), tir.Schedule(product())
    for schedule, options in ((kept, {}), (dropped, {"preserve_unit_iters": False})):
        for loop in schedule.get_loops("D"):
            schedule.split(loop, [1, None], **options)
        check(schedule)
        assert ("preserve_unit_iters=False" in str(schedule.trace)) == bool(options)
        again = tir.Schedule(product())
        schedule.trace.apply_to_schedule(again)
        assert lathe.ir.structural_equal(again.mod, schedule.mod)
    assert bound_to(kept, "D") == ["i0_0 * 16 + i0_1", "i1_0 * 16 + i1_1"]
    assert not any("_0" in value for value in bound_to(dropped, "D"))
    one = tir.Schedule(product())
    unit = one.split(one.get_loops("D")[0], [1, None])[0]
    one.fuse(one.add_unit_loop(unit), unit, preserve_unit_iters=False)
    one.loop_partition(one.get_loops("D")[2], [1, None], preserve_unit_iters=False)
    check(one)


def test_a_block_is_put_at_an_index():
    def blocks_at(**where):
        schedule = tir.Schedule(product())
        rows = schedule.get_loops("C")[0]
        copy = schedule.cache_write("D", 0, "global")
        schedule.reverse_compute_at("D", rows)
        schedule.reverse_compute_at(copy, rows, **where)
        check(schedule)
        return [schedule.get(block).name for block in schedule.get_child_blocks(rows)]

    assert blocks_at() == blocks_at(index=2) == blocks_at(index=-2) == ["C", "D", "D_global"]
    with pytest.raises(lathe.ScheduleError, match="no place 1 for it in the loop: it may be 2"):
        blocks_at(index=1)


def test_a_layout_may_be_one_to_one_on_the_callers_word():
    def laid_out(index_map, **options):
        schedule = tir.Schedule(product())
        schedule.transform_layout("C", ("write", 0), index_map, **options)
        check(schedule)
        return schedule

    laid_out(lambda i, j: (i + j, j))
    with pytest.raises(lathe.ScheduleError, match="could not be shown to take different indices to different ones"):
        laid_out(lambda i, j: (i * i * 16 + j,))
    believed = laid_out(lambda i, j: (i * i * 16 + j,), assume_injective_transform=True)
    again = tir.Schedule(product())
    believed.trace.apply_to_schedule(again)
    assert lathe.ir.structural_equal(again.mod, believed.mod)
    with pytest.raises(lathe.ScheduleError, match="takes different indices to the same: i0 = .* and i0 = "):
        laid_out(lambda i, j: (i + j,), assume_injective_transform=True)


def test_blocks_around_loops_as_long_as_others_leave_declare_what_they_touch():
    # The last strip is shorter: no iteration reaches 14, where the longest strip would from the last one.
    @T.prim_func
    def strips(A: T.Buffer((12,), "int32"), B: T.Buffer((12,), "int32")):
        for i in range(12):
            with T.block("B"):
                vi = T.axis.spatial(12, i)
                B[vi] = A[vi] * 3

    schedule = lathe.tir.Schedule(strips)
    outer, _ = schedule.strip_mine(schedule.get_loops("B")[0], 5)
    schedule.blockize(outer)
    assert lathe.tir.analysis.verify_well_formed(schedule.mod["strips"])
    lathe.tir.Schedule(schedule.mod)  # it takes what it made


def test_a_block_that_surely_touches_more_than_it_declares_is_refused():
    text = """
@T.prim_func
def main(A: T.Buffer((12, 12), "int32"), B: T.Buffer((12, 12), "int32")):
    for i in range(3):
        with T.block("rows"):
            vi = T.axis.spatial(3, i)
            T.reads(A[vi * 4:vi * 4 + 3, 0:12])
            T.writes(B[vi * 4:vi * 4 + 4, 0:12])
            for j, k in T.grid(4, 12):
                B[vi * 4 + j, k] = A[vi * 4 + j, k]
"""
    with pytest.raises(lathe.Error, match="block 'rows' reads more of 'A' than it declares"):
        lathe.script.from_source(text)
