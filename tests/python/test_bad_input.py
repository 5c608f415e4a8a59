"""Whatever is given wrongly is refused in words: by an error of Lathe's or Python's own, never by an abort or by a
failure of Lathe itself."""

import numpy as np
import pytest

import lathe
from lathe import te, tir, topi
from lathe.script import from_source
from lathe.script import tir as T

REFUSALS = (lathe.Error, TypeError, ValueError, AttributeError, KeyError, IndexError, NotImplementedError)


@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8, 8), "float32")
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]


def refused(act):
    """The error's text."""
    with pytest.raises(REFUSALS) as caught:
        act()
    assert not isinstance(caught.value, lathe.InternalError), caught.value
    assert str(caught.value)
    return caught.value


# ---- texts ----

BODIES = {
    "an undefined name": "A[0] = missing",
    "an undefined function": "A[0] = T.no_such(1)",
    "a module as a value": "A[0] = T",
    "too few arguments": "A[0] = T.exp()",
    "too many arguments": "A[0] = T.exp(A[0], A[1])",
    "an unknown argument": "A[0] = T.exp(A[0], speed=3)",
    "a string for a number": "A[0] = 'text'",
    "mismatched dtypes": "A[0] = T.int32(1)",
    "a float index": "A[A[0]] = 1.0",
    "too many indices": "A[0, 0] = 1.0",
    "no index": "A[()] = 1.0",
    "an empty slice": "A[4:4] = 1.0",
    "a slice by zero": "A[0:4:0] = 1.0",
    "a vector of nothing": "A[T.Ramp(0, 1, 0)] = 1.0",
    "a vector too long": "A[T.Ramp(0, 1, 100000)] = 1.0",
    "a negative lane": "A[0] = T.Shuffle([A[0:4]], [-1])",
    "a large number": "A[0] = T.cast(99999999999999999999, 'float32')",
    "division by zero": "A[1 // 0] = 1.0",
    "a shift by too much": "A[1 << 70] = 1.0",
    "a large power": "A[2 ** 100000] = 1.0",
    "a loop over a buffer": "for i in A:\n        A[0] = 1.0",
    "a loop of floats": "for i in range(1.5):\n        A[0] = 1.0",
    "a loop with a step": "for i in range(0, 8, 2):\n        A[0] = 1.0",
    "two variables for one loop": "for i, j in range(8):\n        A[0] = 1.0",
    "no variable": "for i in T.grid():\n        A[0] = 1.0",
    "a reduction without blocks": "T.reads(A[0])",
    "an axis outside a block": "v = T.axis.spatial(8, 0)",
    "axes that do not fit": "with T.block('b'):\n        v, w = T.axis.remap('S', [0, 1])",
    "an unknown axis": "with T.block('b'):\n        v = T.axis.round(8, 0)",
    "a store to an expression": "T.exp(1.0)[0] = 1.0",
    "a deleted statement": "del A",
    "a try": "try:\n        A[0] = 1.0\n    finally:\n        pass",
    "a lambda": "A[0] = lambda x: x",
    "a yield": "yield A",
    "a star": "A[0] = T.exp(*[A[0]])",
    "an f-string": "A[0] = f'{A}'",
    "a break of no loop": "break",
    "a continue of no loop": "if A[0] > 1.0:\n        continue",
    "a break of a parallel loop": "for i in T.parallel(8):\n        break",
    "a break of a loop around a block": "for i in range(8):\n        with T.block('b'):\n            A[0] = 1.0\n"
    "        break",
    "a break of a block's loop": "for i in range(8):\n        with T.block('b'):\n            break",
    "a break with a value": "for i in range(8):\n        A[i] = T.break_loop()",
    "a break with arguments": "for i in range(8):\n        T.break_loop(1)",
    "a condition that is no bool": "if A[0]:\n        A[0] = 1.0",
    "an assertion that is no bool": "assert A[0]",
    "two matches": "B = T.match_buffer(A, (8,))",
    "a negative extent": "B = T.alloc_buffer((-1,), 'float32')\n    B[0] = 1.0",
    "an unknown dtype": "B = T.alloc_buffer((1,), 'float31')",
    "a dtype with too many lanes": "B = T.alloc_buffer((1,), 'float32x99999999')",
    "a shape of strings": "B = T.alloc_buffer(('a',), 'float32')",
    "an unknown thread": "for i in T.thread_binding(8, thread=3):\n        A[0] = 1.0",
    "an attribute of nothing": "A[0] = A.no_such",
    "a call of a buffer": "A[0] = A(0)",
    "comparisons of buffers": "A[0] = A < A",
    "an unfinished line": "A[0] = (",
    "bad indentation": "A[0] = 1.0\n  A[0] = 2.0",
    "no text at all": "",
    "deep brackets": "A[0] = " + "(" * 3000 + "1.0" + ")" * 3000,
    "deep sums": "A[0] = " + "-(" * 400 + "A[0]" + ")" * 400,
    "a long sum": "A[0] = " + " + ".join(["A[0]"] * 20000),
    "deep suites": "".join("    " * n + ("" if n == 0 else "    ") + f"for i{n} in range(2):\n" for n in range(600)),
    "null bytes": "A[0] = 1.0\0",
}  # fmt: skip


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_texts(body):
    error = refused(lambda: from_source(f"@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    {body}\n",
                                        filename="bad.py"))  # fmt: skip
    if isinstance(error, lathe.ScriptError):
        assert error.diagnostics[0].place.startswith("bad.py:")


SIGNATURES = [
    "def f(A: 3): pass", "def f(A: T.Buffer): pass", "def f(A: T.Buffer()): pass", "def f(A, A): pass",
    "def f(*A): pass", "def f(A: T.Buffer((8,), 'float32'), /): pass", "def f() -> missing: pass", "class X: pass",
    "def f(A: T.handle):\n    B = T.match_buffer(A, (n,))\n", "f = 3", "import os",
    "def f():\n    f()", "async def f(): pass",
]  # fmt: skip


@pytest.mark.parametrize("text", SIGNATURES)
def test_definitions(text):
    refused(lambda: from_source("@T.prim_func\n" + text))


def test_values_that_python_has_and_programs_have_not():
    captured = object()
    names = {"captured": captured, "recursive": []}
    names["recursive"].append(names["recursive"])
    for text in ("captured", "recursive", "captured.x", "recursive[0]", "len", "print", "open"):
        refused(lambda text=text: from_source(
            f"@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    A[0] = {text}\n", names))  # fmt: skip


# ---- schedules ----

OTHER = tir.Schedule(main)


def removed(sch):
    """A block that is no longer there."""
    block = sch.get_block("B")
    sch.compute_inline(block)
    sch.get_loops(block)


SCHEDULES = {
    "an unknown block": lambda s: s.get_block("missing"),
    "an unknown function": lambda s: s.get_block("B", func_name="missing"),
    "a number for a block": lambda s: s.get_loops(3),
    "a block for a loop": lambda s: s.split(s.get_block("B"), [2, 4]),
    "a string for a loop": lambda s: s.split("i", [2, 4]),
    "a loop of another schedule": lambda s: s.unroll(OTHER.get_loops("B")[0]),
    "a block of another schedule": lambda s: s.compute_inline(OTHER.get_block("B")),
    "a removed block": removed,
    "factors of zero": lambda s: s.split(s.get_loops("B")[0], [0, 8]),
    "negative factors": lambda s: s.split(s.get_loops("B")[0], [-2, None]),
    "two open factors": lambda s: s.split(s.get_loops("B")[0], [None, None]),
    "no factors": lambda s: s.split(s.get_loops("B")[0], []),
    "factors that are too small": lambda s: s.split(s.get_loops("B")[0], [2, 2]),
    "huge factors": lambda s: s.split(s.get_loops("B")[0], [2**62, 2**62]),
    "factors beyond integers": lambda s: s.split(s.get_loops("B")[0], [2**70, None]),
    "factors of text": lambda s: s.split(s.get_loops("B")[0], ["a", None]),
    "no loops": lambda s: s.fuse(),
    "one loop twice": lambda s: s.reorder(s.get_loops("B")[0], s.get_loops("B")[0]),
    "loops of two nests": lambda s: s.fuse(s.get_loops("B")[0], s.get_loops("C")[1]),
    "a buffer out of range": lambda s: s.cache_read("B", 7, "shared"),
    "a negative buffer": lambda s: s.cache_read("B", -1, "shared"),
    "an unknown buffer": lambda s: s.cache_read("B", "Z", "shared"),
    "an unknown axis": lambda s: s.bind(s.get_loops("B")[0], "threadIdx.w"),
    "an output inlined": lambda s: s.compute_inline("C"),
    "a loop around it": lambda s: s.compute_at("B", s.get_loops("B")[0]),
    "a reduction that is none": lambda s: s.decompose_reduction("B", s.get_loops("B")[0]),
    "a factor axis out of range": lambda s: s.rfactor(s.get_loops("B")[0], 9),
    "an axis out of range": lambda s: s.storage_align("B", 0, axis=5, factor=16, offset=0),
    "a factor of zero": lambda s: s.storage_align("B", 0, axis=0, factor=0, offset=0),
    "a map of too few": lambda s: s.transform_layout("B", ("write", 0), lambda i: i),
    "a map that is none": lambda s: s.transform_layout("B", ("write", 0), 3),
    "a map that divides by zero": lambda s: s.transform_layout("B", ("write", 0), lambda i, j: (i // 0, j)),
    "a map that loses elements": lambda s: s.transform_layout("B", ("write", 0), lambda i, j: (i // 2, j)),
    "separators out of range": lambda s: s.set_axis_separator("B", ("write", 0), [2]),
    "separators out of order": lambda s: s.set_axis_separator("B", ("write", 0), [1, 1]),
    "a negative threshold": lambda s: s.cache_index("B", "local", -1),
    "rolling what nothing shares": lambda s: s.rolling_buffer("B", 0),
    "ranges that miss elements": lambda s: s.annotate_buffer_access("B", 0, "read", lambda i, j: (i, (j + 1, j + 2))),
    "ranges of too few axes": lambda s: s.annotate_buffer_access("B", 0, "read", lambda i, j: (i,)),
    "ranges of three bounds": lambda s: s.annotate_buffer_access("B", 0, "read", lambda i, j: (i, (j, j, j))),
    "ranges of neither": lambda s: s.annotate_buffer_access("B", 0, "readwrite", lambda i, j: (i, j)),
    "a wrong order": lambda s: s.reorder_block_iter_var("B", [0, 0]),
    "a tile of nothing": lambda s: s.sample_perfect_tile(s.get_loops("B")[0], 0),
    "a tile that does not fit": lambda s: s.sample_perfect_tile(s.get_loops("B")[0], 2, decision=[3, 3]),
    "no candidates": lambda s: s.sample_categorical([], []),
    "a choice out of range": lambda s: s.sample_categorical([1], [1.0], decision=4),
    "an unknown dtype": lambda s: s.unsafe_set_dtype("B", 0, "float31"),
    "an annotation of nothing": lambda s: s.annotate("B", "key", object()),
    "an unknown annotation": lambda s: s.unannotate("B", "key"),
    "an unknown primitive": lambda s: s.tile("B"),
    "too many arguments": lambda s: s.unroll(1, 2, 3),
    "a trace of nonsense": lambda s: tir.Trace.from_python("sch.nonsense(").apply_to_schedule(s),
    "a trace of other blocks": lambda s: tir.Trace.from_python('b0 = sch.get_block("Z")').apply_to_schedule(s),
    "a trace of nothing known": lambda s: tir.Trace.from_python("sch.unroll(l7)").apply_to_schedule(s),
}


@pytest.mark.parametrize("act", SCHEDULES.values(), ids=SCHEDULES)
def test_schedules(act):
    sch = tir.Schedule(main)
    refused(lambda: act(sch))
    assert tir.analysis.verify_well_formed(sch.mod)


def test_what_a_schedule_is_of():
    for thing in (3, None, "text", [], lathe.IRModule({})):
        refused(lambda thing=thing: tir.Schedule(thing))


# ---- nodes, tensors, passes, builds ----

x = tir.Var("x", "int64")
T1 = te.placeholder((8,), name="t")
CALLS = {
    "a sum of a handle": lambda: x + tir.Var("y", "handle"),
    "a sum with text": lambda: x + "text",
    "a branch on an expression": lambda: bool(x + 1),
    "an unknown dtype": lambda: tir.Var("y", "float31"),
    "a variable without a name": lambda: tir.Var(3, "int32"),
    "a loop of text": lambda: tir.For("i", 0, 8, 0, None, None, {}),
    "a loop of an unknown kind": lambda: tir.For(x, 0, 8, 77, tir.Evaluate(0), None, {}),
    "a function of nothing": lambda: tir.PrimFunc(3, 4),
    "a function of a buffer that is none": lambda: tir.PrimFunc([], tir.Evaluate(1), None, [None]),
    "a region of no range": lambda: tir.BufferRegion(tir.decl_buffer((4,), "float32"), [None]),
    "a field that is none": lambda: tir.IntImm("int32", 1, wrong=2),
    "an axis of an unknown type": lambda: tir.IterVar((0, 8), "k", 9),
    "a kind that is changed wrongly": lambda: tir.For(x, 0, 8, 0, None, None, {})._with(kind=8),
    "an integer that is too large": lambda: tir.IntImm("int32", 2**70),
    "too many fields": lambda: tir.Add(x, x, x, x, x),
    "no fields": lambda: str(tir.Add()),
    "a null statement": lambda: lathe.build(main.with_body(None)),
    "a value in itself": lambda: main.with_attr("key", _cycle()),
    "a loop without a body": lambda: lathe.build(main.with_body(tir.For(x, 0, 8, 0, None, None, {}))),
    "an undefined variable": lambda: lathe.build(main.with_body(tir.Evaluate(tir.call_extern("int32", "f", x)))),
    "a deep expression": lambda: _deep(x, 100000),
    "a load of a rank": lambda: lathe.build(main.with_body(tir.Evaluate(tir.decl_buffer((8, 8))[0]))),
    "a substitution of no variable": lambda: tir.stmt_functor.substitute(main, {3: 4}),
    "a visit of nothing": lambda: tir.stmt_functor.post_order_visit(3, print),
    "a visit that raises": lambda: tir.stmt_functor.post_order_visit(main, lambda n: n.no_such),
    "a rewrite to text": lambda: tir.stmt_functor.ir_transform(main.body, None, lambda n: "text"),
    "a module of numbers": lambda: lathe.IRModule({"f": 3}),
    "a function that is not there": lambda: lathe.IRModule({"f": main})["g"],
    "a tensor of indices": lambda: te.compute((8,), lambda i: T1[i, i]),
    "a tensor of too few": lambda: te.compute((8, 8), lambda i: T1[i]),
    "a tensor of nothing": lambda: te.compute((8,), lambda i: None),
    "a tensor out of a function": lambda: te.create_prim_func([3]),
    "no tensors": lambda: te.create_prim_func([]),
    "a nested reduction": lambda: te.compute((8,), lambda i: te.sum(T1[i], axis=te.reduce_axis((0, 8))) + 1),
    "a reduction over no axis": lambda: te.compute((8,), lambda i: te.sum(T1[i], axis=3)),
    "an axis of text": lambda: te.reduce_axis("k"),
    "an operator of text": lambda: topi.add(T1, "text"),
    "einsum of nothing": lambda: te.einsum(""),
    "a target that is none": lambda: lathe.build(main, target="toaster"),
    "a build of nothing": lambda: lathe.build(3),
    "a library elsewhere": lambda: lathe.runtime.load_module("/nowhere/f.so"),
    "a library of another kind": lambda: lathe.build(main).export_library("f.txt"),
    "no such source": lambda: lathe.build(main).get_source("poem"),
    "too few arguments": lambda: lathe.build(main)["main"](np.zeros((8, 8), "float32")),
    "arguments of text": lambda: lathe.build(main)["main"]("a", "b"),
    "arguments of another dtype": lambda: lathe.build(main)["main"](np.zeros((8, 8)), np.zeros((8, 8))),
    "arguments of another shape": lambda: lathe.build(main)["main"](*[np.zeros((8, 9), "float32")] * 2),
    "arguments that overlap": lambda: lathe.build(main)["main"](*[np.zeros((8, 8), "float32")] * 2),
    "a null argument": lambda: lathe.build(main)["main"](None, None),
    "times of nothing": lambda: lathe.build(main).time_evaluator("main", number=0),
    "a timing without arguments": lambda: lathe.build(main).time_evaluator("main")(),
    "an analysis of nothing": lambda: tir.analysis.estimate_tir_flops(3),
    "regions of no block": lambda: tir.analysis.get_block_access_region(main),
    "a condition that is none": lambda: lathe.arith.Analyzer().can_prove("text"),
    "a bound of text": lambda: lathe.arith.Analyzer().bind(x, "text"),
    "a size that does not fit": lambda: main.specialize({main.params[0]: tir.decl_buffer((9, 8), "float32")}),
}  # fmt: skip


def _cycle():
    loop = []
    loop.append(loop)
    return loop


def _deep(expression, depth):
    for _ in range(depth):
        expression = expression + 1
    return expression


@pytest.mark.parametrize("act", CALLS.values(), ids=CALLS)
def test_calls(act):
    refused(act)


def test_recursion_between_functions():
    text = """
@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        cls.g(A)

    @T.prim_func
    def g(A: T.Buffer((8,), "float32")):
        cls.f(A)
"""
    refused(lambda: from_source(text))
    refused(lambda: lathe.build(from_source(text, check_well_formed=False)))
