"""Traces put together instruction by instruction: printed, replayed, simplified; and what is no instruction."""

import json

import pytest

import lathe
from lathe import tir
from lathe.script import tir as T
from lathe.tir.schedule.trace import Instruction

N = 32


@T.prim_func
def main(A: T.Buffer((N, N), "float32"), C: T.Buffer((N, N), "float32")):
    B = T.alloc_buffer((N, N), "float32")
    for i, j in T.grid(N, N):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(N, N):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)


def scheduled():
    sch = tir.Schedule(main, seed=2)
    block = sch.get_block("B")
    sch.get_block("C")
    i, j = sch.get_loops(block)
    factors = sch.sample_perfect_tile(j, 2, decision=[8, 4])
    sch.split(j, factors)
    sch.annotate(i, "key", ["loop", 3, 2.0, True, 'a "word"\n'])
    sch.transform_layout("C", ("read", 0), lambda a, b: (b, a // 4, a % 4))
    sch.sample_categorical([1, 2], [0.5, 0.5], decision=1)
    return sch


def replayed(trace):
    sch = tir.Schedule(main)
    trace.apply_to_schedule(sch)
    return sch


def test_a_trace_is_put_together_from_another():
    sch = scheduled()
    made = tir.Trace()
    for inst in sch.trace.insts:
        made.append(inst)
    assert made.as_python() == sch.trace.as_python() and made.insts == sch.trace.insts
    assert str(made) == str(sch.trace) and made.as_json() == sch.trace.as_json()
    lathe.ir.assert_structural_equal(replayed(made).mod, sch.mod)
    assert tir.Trace(sch.trace.insts).as_python() == made.as_python()
    read = tir.Trace.from_python(made.as_python())
    assert read.insts == made.insts and read.decisions == made.decisions


def test_a_trace_goes_on_after_its_end():
    sch = scheduled()
    trace, lines = sch.trace, sch.trace.as_python()
    split = next(inst for inst in trace.insts if inst.kind == "split")
    trace.append(Instruction(kind="vectorize", inputs=[split.outputs[1]], attrs={}, outputs=[]))
    trace.append({"kind": "parallel", "inputs": [split.outputs[0]]})
    assert trace.as_python()[: len(lines)] == lines
    assert trace.as_python()[len(lines) :] == [
        f"sch.vectorize(l{split.outputs[1][1]})", f"sch.parallel(l{split.outputs[0][1]})"]  # fmt: skip
    assert len(trace) == len(lines) + 2 == len(trace.as_json())
    assert len(sch.trace) == len(lines)  # the schedule's own is another
    again = replayed(trace)
    kinds = [again.get(loop).kind for loop in again.get_loops("B")]
    assert kinds == [tir.ForKind.SERIAL, tir.ForKind.PARALLEL, tir.ForKind.VECTORIZED]
    by_json = tir.Schedule(main)
    tir.Trace.apply_json_to_schedule(json.dumps(trace.as_json()), by_json)
    lathe.ir.assert_structural_equal(by_json.mod, again.mod)
    assert trace.pop().kind == "parallel" and trace.as_python()[-1].startswith("sch.vectorize")


def test_an_instruction_of_the_handles_of_a_schedule():
    sch = tir.Schedule(main)
    block = sch.get_block("B")
    i, j = sch.get_loops(block)
    trace = sch.trace
    turned = tir.IndexMap.from_func(lambda a, b: (b, a))
    trace.append(Instruction(kind="fuse", inputs=[i, j], attrs={}, outputs=[("loop", 70)]))
    trace.append(Instruction(kind="parallel", inputs=[("loop", 70)], attrs={}, outputs=[]))
    trace.append(Instruction(
        kind="transform_layout", inputs=[block, ["write", 0]], attrs={"index_map": turned}, outputs=[]))  # fmt: skip
    sch.parallel(sch.fuse(i, j))
    sch.transform_layout(block, ("write", 0), turned)
    lathe.ir.assert_structural_equal(replayed(trace).mod, sch.mod)
    assert trace.as_python()[-3:-1] == [f"l70 = sch.fuse(l{i.index}, l{j.index})", "sch.parallel(l70)"]


def test_an_instruction_with_a_decision():
    sch = scheduled()
    made = tir.Trace()
    for inst in sch.trace.insts:
        made.append(inst, [2, 16] if inst.kind == "sample_perfect_tile" else None)
    (first, last) = made.decisions
    assert made.decisions == {first: [2, 16], last: 1} and sch.trace.decisions[first] == [8, 4]
    again = replayed(made)
    assert [int(again.get(loop).extent) for loop in again.get_loops("B")] == [N, 2, 16]
    assert tir.Trace(sch.trace.insts, made.decisions).as_python() == made.as_python()
    assert made.with_decision(first, [8, 4]).as_python() == sch.trace.as_python()


def test_a_trace_with_appended_instructions_is_simplified():
    trace = scheduled().trace
    trace.append(Instruction(kind="get_block", inputs=["C"], attrs={}, outputs=[("block", 90)]))
    kinds = [inst.kind for inst in trace.simplified().insts]
    assert kinds.count("get_block") == 2 and "sample_categorical" not in kinds  # B, and C of transform_layout
    trace.append(Instruction(kind="get_loops", inputs=[("block", 90)], attrs={}, outputs=[("loop", 91), ("loop", 92)]))
    trace.append(Instruction(kind="reorder", inputs=[("loop", 92), ("loop", 91)], attrs={}, outputs=[]))
    short = trace.simplified()
    assert [inst.kind for inst in short.insts].count("get_block") == 3
    lathe.ir.assert_structural_equal(replayed(short).mod, replayed(trace).mod)


@pytest.mark.parametrize(
    "inst, message",
    [
        (dict(kind="no_such"), "there is no instruction named 'no_such'"),
        (dict(kind="parallel", inputs=[("loop", 77)]), "the trace uses 'l77' before it is made"),
        (dict(kind="split", inputs=[], attrs={"factors": [None, ("expr", 7)]}), "the trace uses 'v7' before it is"),
        (dict(kind="get_block", inputs=["B"], outputs=[3]), "an output of 'get_block' is 3, which is no loop, block"),
    ],
)
def test_bad_instructions(inst, message):
    trace = scheduled().trace
    before = trace.as_python()
    with pytest.raises(lathe.ScheduleError, match=message):
        trace.append(Instruction(inst))
    assert trace.as_python() == before
    with pytest.raises(lathe.ScheduleError, match=message):
        tir.Trace([inst])


def test_what_is_no_instruction():
    trace = scheduled().trace
    with pytest.raises(lathe.ScheduleError, match="only a sampling instruction has a decision, and 'get_block' is"):
        trace.append(trace.insts[0], 3)
    for inst in (3, "sch.parallel(l0)", {}, {"kind": 3}, {"kind": "get_block", "inputs": 3},
                 {"kind": "get_block", "attrs": []}, {"kind": "get_block", "inputs": [object()]}):  # fmt: skip
        with pytest.raises(TypeError):
            trace.append(inst)
    # What was right when it came, and was changed since.
    trace.insts[0]["outputs"] = [3]
    with pytest.raises(lathe.ScheduleError, match="is no loop, block or number of a trace"):
        replayed(trace)
