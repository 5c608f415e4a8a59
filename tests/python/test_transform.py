"""Passes: the compiler's own, Python's, sequences of them, contexts and instruments."""

import numpy as np
import pytest

import lathe as tvm
from lathe import tir
from lathe.script import ir as I
from lathe.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            for j in T.unroll(2):
                for k in T.vectorized(8):
                    with T.block("scaled"):
                        vi, vj = T.axis.spatial(8, i), T.axis.spatial(16, j * 8 + k)
                        A[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(0 + 1)
        for i, j in T.grid(8, 16):
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vj]

    @T.prim_func
    def other(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.float32(3)


def names_in(mod):
    return [name.name_hint for name in mod.functions]


def run(mod, name="main"):
    """What the functions write, by the interpreter."""
    a, b = np.arange(128, dtype="float32").reshape(8, 16), np.zeros(8, "float32")
    shape = [int(size) for size in mod[name].buffer_map[mod[name].params[0]].shape]  # flat once it is lowered
    tvm.build(mod, target="interp")[name](a.reshape(shape), b)
    return a, b


@T.prim_func
def idle(A: T.Buffer((4,), "float32")):
    for i in range(4):
        T.evaluate(i)
    for i in range(4):
        A[i] = T.float32(1)


WANTED = run(Module)


def kinds(function):
    """The kinds of nodes in a function."""
    found = set()
    tir.stmt_functor.post_order_visit(function, lambda node: found.add(type(node).__name__))
    return found


# ---- the compiler's passes ----


def test_passes_one_after_the_other_keep_the_value():
    mod = Module
    passes = [
        tir.transform.CompactBufferAllocation(), tir.transform.LowerInitBlock(), tir.transform.LowerOpaqueBlock(),
        tir.transform.FlattenBuffer(), tir.transform.Simplify(), tir.transform.VectorizeLoop(),
        tir.transform.UnrollLoop(), tir.transform.LowerIntrin(),
    ]  # fmt: skip
    for one in passes:
        mod = one(mod)
        for got, wanted in zip(run(mod), WANTED):
            np.testing.assert_array_equal(got, wanted)
    assert not kinds(mod["main"]) & {"Block", "BlockRealize"}
    assert "Ramp" in kinds(mod["main"])
    assert "Block" in kinds(Module["main"])  # the module given stays as it was


def test_each_pass_says_what_it_is():
    for name in tir.transform._PASSES:
        made = getattr(tir.transform, name)()
        assert made.info.name == "tir." + name and getattr(tir.transform, name).__doc__
        assert isinstance(made, tvm.transform.Pass)


def test_passes_of_no_pipeline_keep_the_value():
    lowered = tir.transform.LowerInitBlock()(Module)
    opaque = tir.transform.ConvertBlocksToOpaque()(lowered)
    assert "T.axis" in lowered["main"].script() and "T.axis" not in opaque["main"].script()
    assert tir.transform.RemoveNoOp()(tvm.IRModule({"idle": idle})).script().count("for ") == 1
    for got, wanted in zip(run(tir.transform.RemoveNoOp()(opaque)), WANTED):
        np.testing.assert_array_equal(got, wanted)
    with pytest.raises(tvm.Error, match="run LowerInitBlock before"):
        tir.transform.ConvertBlocksToOpaque()(Module)


@T.prim_func
def tiled(X: T.Buffer((16,), "int32"), Y: T.Buffer((16,), "int32")):
    with T.block("root"):
        D = T.alloc_buffer((16,), "int32")
        for io in range(4):
            for p in range(4):
                with T.block("D"):
                    v = T.axis.spatial(16, io * 4 + p)
                    D[v] = X[v] * 2
            for c in range(4):
                with T.block("Y"):
                    v = T.axis.spatial(16, io * 4 + c)
                    Y[v] = D[v] + 1


def test_allocations_move_to_the_loop_that_uses_them():
    placed = tir.transform.PlanAndUpdateBufferAllocationLocation()(tvm.IRModule({"main": tiled}))["main"]
    before, _, after = placed.script().partition("for io in range(4):")
    assert "alloc_buffer" not in before and 'D = T.alloc_buffer((16,), "int32")' in after
    x, y = np.arange(16, dtype="int32"), np.zeros(16, "int32")
    tvm.build(tvm.IRModule({"main": placed}), target="interp")["main"](x, y)
    np.testing.assert_array_equal(y, 2 * x + 1)


@T.prim_func
def viewed(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    for i in range(2):
        with T.block("rows"):
            vi = T.axis.spatial(2, i)
            T.reads(A[vi * 2:vi * 2 + 2, 0:4])
            T.writes(B[vi * 2:vi * 2 + 2, 0:4])
            X = T.match_buffer(A[vi * 2:vi * 2 + 2, 0:4], (2, 4), "float32")
            for r, c in T.grid(2, 4):
                B[vi * 2 + r, c] = X[1 - r, c]


def test_views_become_what_they_name():
    plain = tir.transform.LowerMatchBuffer()(tvm.IRModule({"main": viewed}))
    assert "match_buffer" in viewed.script() and "match_buffer" not in plain.script()
    a, b = np.arange(16, dtype="float32").reshape(4, 4), np.zeros((4, 4), "float32")
    tvm.build(plain, target="interp")["main"](a, b)
    np.testing.assert_array_equal(b, a[[1, 0, 3, 2]])


def test_variables_are_defined_once():
    loop = idle.body.seq[1]
    twice = tvm.IRModule({"main": idle.with_body(tir.SeqStmt([loop, loop]))})
    assert not tir.analysis.verify_ssa(twice["main"])
    once = tir.transform.ConvertSSA()(twice)
    assert tir.analysis.verify_ssa(once["main"])
    first, second = once["main"].body.seq
    assert not first.loop_var.same_as(second.loop_var)
    tvm.ir.assert_structural_equal(first, second)


@T.prim_func
def branched(A: T.Buffer((4, 8), "float32"), n: T.int64):
    for i, j in T.grid(4, 8):
        if n > 2:
            A[i, j] = T.float32(1)
        else:
            A[i, j] = T.float32(2)


@pytest.mark.parametrize("variant", [None, "basic"])
def test_branches_go_around_loops(variant):
    hoisted = tir.transform.HoistIfThenElse(variant)(tvm.IRModule({"main": branched}))
    assert type(hoisted["main"].body).__name__ == "IfThenElse"
    for n in (2, 3):
        a = np.zeros((4, 8), "float32")
        tvm.build(hoisted, target="interp")["main"](a, n)
        np.testing.assert_array_equal(a, np.full((4, 8), 1 if n > 2 else 2, "float32"))
    with pytest.raises(ValueError, match="there is one kind of hoisting, 'basic', and not 'rare'"):
        tir.transform.HoistIfThenElse("rare")


@T.prim_func
def repeated(A: T.Buffer((8,), "int64"), n: T.int64, m: T.int64):
    for i in range(4):
        A[i] = n * (m + 2) + i
        A[i + 4] = n * (m + 2) * (n * m + n * 2)


def test_what_is_computed_twice_gets_a_name():
    def lets(**options):
        named = tir.transform.CommonSubexprElimTIR(**options)(tvm.IRModule({"main": repeated}))
        for target in ("interp", "llvm"):
            got, wanted = np.zeros(8, "int64"), np.zeros(8, "int64")
            tvm.build(named, target=target)["main"](got, 3, 5)
            tvm.build(repeated, target="interp")["repeated"](wanted, 3, 5)
            np.testing.assert_array_equal(got, wanted)
        return named.script().count("T.LetStmt(")

    assert lets() == 1
    assert lets(identify_equiv_terms=True) == 1 and lets(enable_cse_tir=False) == 0
    equal = tir.transform.CommonSubexprElimTIR(identify_equiv_terms=True)(tvm.IRModule({"main": repeated}))
    assert "n * 2" not in equal.script() and "n * 2" in repeated.script()


@T.prim_func
def staged(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    X = T.alloc_buffer((256,), "float32")
    Y = T.alloc_buffer((256,), "float32")
    Z = T.alloc_buffer((256,), "float32")
    for i in range(256):
        with T.block("X"):
            v = T.axis.spatial(256, i)
            X[v] = A[255 - v] + T.float32(1)
    for i in range(256):
        with T.block("Y"):
            v = T.axis.spatial(256, i)
            Y[v] = X[255 - v] * T.float32(2)
    for i in range(256):
        with T.block("Z"):
            v = T.axis.spatial(256, i)
            Z[v] = Y[255 - v] - T.float32(3)
    for i in range(256):
        with T.block("B"):
            v = T.axis.spatial(256, i)
            B[v] = Z[255 - v]


def allocated(mod):
    """The elements of all allocations of main."""
    extents = []
    tir.stmt_functor.post_order_visit(
        mod["main"].body, lambda n: extents.append(int(n.extents[0])) if isinstance(n, tir.Allocate) else None
    )
    return sum(extents)


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_allocations_share_memory(target):
    mod = tvm.IRModule({"main": staged})
    with pytest.raises(tvm.Error, match="run LowerOpaqueBlock before"):
        tir.transform.StorageRewrite()(mod)
    flat = tvm.transform.Sequential([tir.transform.LowerOpaqueBlock(), tir.transform.FlattenBuffer()])(mod)
    shared = tir.transform.StorageRewrite()(flat)
    assert (allocated(flat), allocated(shared)) == (768, 512)
    a, b = np.arange(256, dtype="float32"), np.zeros(256, "float32")
    tvm.build(shared, target=target)["main"](a, b)
    np.testing.assert_array_equal(b, (a + 1) * 2 - 3)


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_indices_get_narrow(target):
    mod = tir.transform.LowerOpaqueBlock()(tvm.IRModule({"main": staged}))
    narrow = tir.transform.NarrowDataType(32)(mod)
    widths = set()
    tir.stmt_functor.post_order_visit(
        narrow["main"].body, lambda n: widths.add(str(n.loop_var.dtype)) if isinstance(n, tir.For) else None
    )
    assert widths == {"int32"}
    tvm.ir.assert_structural_equal(tir.transform.NarrowDataType(64)(mod), mod)
    a, b = np.arange(256, dtype="float32"), np.zeros(256, "float32")
    tvm.build(narrow, target=target)["main"](a, b)
    np.testing.assert_array_equal(b, (a + 1) * 2 - 3)
    with pytest.raises(ValueError, match="indices have 32 or 64 bits, and not 16"):
        tir.transform.NarrowDataType(16)
    with pytest.raises(tvm.Error, match="run LowerOpaqueBlock before"):
        tir.transform.NarrowDataType(32)(tvm.IRModule({"main": staged}))


def test_the_whole_pipeline_is_what_is_compiled():
    lowered = tir.transform.default_tir_pipeline()(Module)
    text = tvm.build(Module).get_source("tir")
    assert lowered["main"].script(name="main").splitlines()[-1].strip() in text
    assert not kinds(lowered["main"]) & {"Block", "For"} - {"For"}


def test_vectors_stay_loops_where_that_is_asked():
    lowered = tvm.transform.Sequential([tir.transform.LowerOpaqueBlock(), tir.transform.FlattenBuffer()])
    plain = tvm.transform.Sequential([tir.transform.LowerInitBlock(), lowered, tir.transform.VectorizeLoop(False)])
    mod = plain(Module)
    assert "Ramp" not in kinds(mod["main"])
    with tvm.transform.PassContext(config={"tir.disable_vectorize": True}):
        same = tvm.transform.Sequential(
            [tir.transform.LowerInitBlock(), lowered, tir.transform.VectorizeLoop()]
        )(Module)  # fmt: skip
    tvm.ir.assert_structural_equal(mod, same)
    np.testing.assert_array_equal(run(mod)[1], WANTED[1])


def test_passes_over_some_functions():
    kept = tir.transform.Filter(lambda f: len(f.params) == 1)(Module)
    assert names_in(kept) == ["other"]
    marked = tir.transform.Apply(lambda f: f.with_attr("seen", 1))(Module)
    assert [f.attrs["seen"] for _, f in marked.items()] == [1, 1]
    entry = tir.transform.AnnotateEntryFunc()(Module)
    assert entry["main"].attrs["tir.is_entry_func"] is True and "tir.is_entry_func" not in entry["other"].attrs
    bound = tir.transform.BindTarget(tvm.target.Target("llvm"))(Module)
    assert bound["other"].attrs["target"] == "llvm"
    lowered = tvm.transform.ApplyPassToFunction(tir.transform.LowerInitBlock(), "ma.*")(Module)
    assert "T.init" not in lowered["main"].script()
    with pytest.raises(ValueError, match="no function's name matches 'x'"):
        tvm.transform.ApplyPassToFunction(tir.transform.Simplify(), "x", True)(Module)


# ---- passes in Python ----


@tir.transform.prim_func_pass(opt_level=1, name="double_constants")
def double_constants(func, mod, ctx):
    def change(node):
        return tir.FloatImm(node.dtype, node.value * 2) if isinstance(node, tir.FloatImm) else None

    return func.with_body(tir.stmt_functor.ir_transform(func.body, None, change, ["tir.FloatImm"]))


@tvm.transform.module_pass(opt_level=2)
class Keep:
    def __init__(self, *names):
        self.names = names

    def transform_module(self, mod, ctx):
        return tvm.IRModule({name: mod[name] for name in self.names})


@tvm.transform.module_pass(opt_level=0, name="adds_a_copy")
def adds_a_copy(mod, ctx):
    mod["copy"] = mod["other"]
    return mod


def test_a_pass_of_functions():
    mod = double_constants(Module)
    assert "T.float32(6.0)" in mod["other"].script()
    assert "T.float32(3.0)" in Module["other"].script()


def test_a_pass_that_is_a_class():
    keep = Keep("other")
    assert keep.info == tvm.transform.PassInfo(2, "Keep", [], False)
    assert names_in(keep(Module)) == ["other"]
    assert keep.instance.names == ("other",)


def test_the_module_given_to_a_pass_stays():
    assert set(names_in(adds_a_copy(Module))) == {"main", "other", "copy"}
    assert set(names_in(Module)) == {"main", "other"}


def test_sequences_follow_the_context():
    sequence = tvm.transform.Sequential([double_constants, Keep("other"), adds_a_copy], name="three")

    def names(**options):
        with tvm.transform.PassContext(**options):
            mod = sequence(Module)
        return sorted(names_in(mod)), "6.0" in mod["other"].script()

    assert names() == (["copy", "other"], True)
    assert names(opt_level=1) == (["copy", "main", "other"], True)
    assert names(opt_level=0) == (["copy", "main", "other"], False)
    assert names(opt_level=0, required_pass=["Keep"]) == (["copy", "other"], False)
    assert names(disabled_pass=["adds_a_copy", "double_constants"]) == (["other"], False)


def test_contexts_nest():
    assert tvm.transform.PassContext.current().opt_level == 2
    with tvm.transform.PassContext(opt_level=3):
        with tvm.transform.PassContext(opt_level=1):
            assert tvm.transform.PassContext.current().opt_level == 1
        assert tvm.transform.PassContext.current().opt_level == 3
    assert tvm.transform.PassContext.current().opt_level == 2


# ---- instruments ----


@tvm.instrument.pass_instrument
class Recorder:
    def __init__(self, skipped=()):
        self.log, self.skipped = [], skipped

    def enter_pass_ctx(self):
        self.log.append("enter")

    def exit_pass_ctx(self):
        self.log.append("exit")

    def should_run(self, mod, info):
        return info.name not in self.skipped

    def run_before_pass(self, mod, info):
        self.log.append(f"before {info.name}")

    def run_after_pass(self, mod, info):
        self.log.append(f"after {info.name}")


def test_instruments_see_every_pass():
    recorder = Recorder()
    with tvm.transform.PassContext(instruments=[recorder]):
        tvm.transform.Sequential([double_constants, adds_a_copy])(Module)
    assert recorder.log == ["enter", "before sequential", "before double_constants", "after double_constants",
                            "before adds_a_copy", "after adds_a_copy", "after sequential", "exit"]  # fmt: skip


def test_an_instrument_decides_what_runs():
    with tvm.transform.PassContext(instruments=[Recorder(skipped=["double_constants"])]):
        assert "3.0" in double_constants(Module)["other"].script()
    with tvm.transform.PassContext(instruments=[Recorder(["double_constants"])], required_pass=["double_constants"]):
        assert "6.0" in double_constants(Module)["other"].script()


def test_a_context_that_fails_to_open_leaves_nothing_open():
    class Fails(tvm.instrument.PassInstrument):
        def enter_pass_ctx(self):
            raise RuntimeError("no")

    recorder = Recorder()
    with pytest.raises(RuntimeError), tvm.transform.PassContext(opt_level=0, instruments=[recorder, Fails()]):
        pass
    assert recorder.log == ["enter", "exit"]
    assert tvm.transform.PassContext.current().opt_level == 2


def test_times_and_prints(capsys):
    timing = tvm.instrument.PassTimingInstrument()
    with tvm.transform.PassContext(instruments=[timing]):
        tvm.transform.Sequential([tir.transform.Simplify()])(Module)
    lines = timing.render().splitlines()
    assert lines[0].startswith("sequential: ") and lines[1].startswith("  tir.Simplify: ")
    printing = tvm.instrument.PassPrintingInstrument(["tir.Simplify"], [])
    with tvm.transform.PassContext(instruments=[printing]):
        tir.transform.Simplify()(Module)
    assert capsys.readouterr().out.startswith("# before tir.Simplify\n")
    with tvm.transform.PassContext(instruments=[tvm.instrument.PrintBeforeAll(), tvm.instrument.PrintAfterAll()]):
        double_constants(Module)
    assert "# after double_constants" in capsys.readouterr().out
    tvm.transform.PrintIR("here")(Module)
    assert capsys.readouterr().out.startswith("# here\n")


# ---- what is refused ----

REFUSED = {
    "an unknown option": (lambda: tvm.transform.PassContext(config={"tir.disable_vectorise": True}),
                          AttributeError, "there is no option 'tir.disable_vectorise'; the nearest is "),
    "an option of another type": (lambda: tvm.transform.PassContext(config={"tir.verify": 1}), TypeError, "is a bool"),
    "a sequence of others": (lambda: tvm.transform.Sequential([print]), TypeError, "made of passes"),
    "a class without the method": (lambda: tvm.transform.module_pass(opt_level=0)(type("X", (), {})), TypeError,
                                   "the pass class X has no transform_module"),
    "a result that is no module": (lambda: tvm.transform.module_pass(lambda mod, ctx: 3, opt_level=0)(Module),
                                   TypeError, "gives a int, not an IRModule"),
    "a pass of something else": (lambda: tir.transform.Simplify()(3), TypeError, "what a pass takes is an IRModule"),
    "a pass that is not there": (lambda: tir.transform.Simplfy, AttributeError,
                                 "there is no tir.transform.Simplfy; the nearest name is tir.transform.Simplify"),
}  # fmt: skip


@pytest.mark.parametrize("make, error, wanted", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(make, error, wanted):
    with pytest.raises(error) as caught:
        make()
    assert wanted in str(caught.value)
