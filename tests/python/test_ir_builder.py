"""Programs made by calls: the same as those that the text makes."""

import numpy as np
import pytest

import lathe
from lathe import tir
from lathe.script import ir as I_text
from lathe.script import tir as T_text
from lathe.script.ir_builder import IRBuilder
from lathe.script.ir_builder import ir as I
from lathe.script.ir_builder import tir as T


def product():
    """A matrix product followed by relu, by calls."""
    with IRBuilder() as ib:
        with T.prim_func():
            T.func_name("main")
            T.func_attr({"tir.noalias": True})
            a = T.arg("a", T.handle())
            A = T.match_buffer(a, (8, 4), "float32")
            B = T.arg("B", T.Buffer((4, 8), "float32"))
            C = T.arg("C", T.Buffer((8, 8), "float32"))
            Y = IRBuilder.name("Y", T.alloc_buffer((8, 8), "float32"))
            with T.grid(8, 8, 4) as (i, j, k):
                with T.block("Y"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        T.buffer_store(Y, T.float32(0), [vi, vj])
                    T.buffer_store(Y, Y[vi, vj] + A[vi, vk] * B[vk, vj], [vi, vj])
            with T.grid(8, 8) as (i, j):
                with T.block("C"):
                    vi = T.axis.spatial(8, i)
                    vj = T.axis.spatial(8, j)
                    T.reads(Y[vi, vj])
                    T.writes(C[vi, vj])
                    T.buffer_store(C, T.max(Y[vi, vj], T.float32(0)), [vi, vj])
    return ib.get()


@T_text.prim_func
def written(a: T_text.handle, B: T_text.Buffer((4, 8), "float32"), C: T_text.Buffer((8, 8), "float32")):
    T_text.func_attr({"global_symbol": "main", "tir.noalias": True})
    A = T_text.match_buffer(a, (8, 4), "float32")
    Y = T_text.alloc_buffer((8, 8), "float32")
    for i, j, k in T_text.grid(8, 8, 4):
        with T_text.block("Y"):
            vi, vj, vk = T_text.axis.remap("SSR", [i, j, k])
            with T_text.init():
                Y[vi, vj] = T_text.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T_text.grid(8, 8):
        with T_text.block("C"):
            vi, vj = T_text.axis.remap("SS", [i, j])
            C[vi, vj] = T_text.max(Y[vi, vj], T_text.float32(0))


def test_calls_make_what_the_text_makes():
    lathe.ir.assert_structural_equal(product(), written)
    assert tir.analysis.verify_well_formed(product())


def test_what_is_built_is_scheduled_and_runs():
    sch = tir.Schedule(product())
    sch.reverse_compute_at("C", sch.get_loops("Y")[1])
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((8, 4)).astype("float32"), rng.standard_normal((4, 8)).astype("float32")
    c = np.empty((8, 8), "float32")
    lathe.build(sch.mod)["main"](a, b, c)
    np.testing.assert_allclose(c, np.maximum(a @ b, 0), rtol=1e-5, atol=1e-5)


def test_every_kind_of_statement():
    with IRBuilder() as ib:
        with T.prim_func():
            T.func_name("main")
            n = T.arg("n", T.int64())
            A = T.arg("A", T.Buffer((16,), "float32"))
            with T.Assert(n > 0, "n is positive"):
                with T.launch_thread("blockIdx.x", 2) as bx:
                    with T.vectorized(8) as lane:
                        T.buffer_store(A, T.float32(1), [bx * 8 + lane])
                with T.serial(0, 16) as i:
                    IRBuilder.name("step", i)
                    with T.If(i % 2 == 0):
                        with T.Then():
                            with T.LetStmt(A[i] + T.float32(1)) as value:
                                T.buffer_store(A, value, [i])
                        with T.Else():
                            T.buffer_store(A, T.Cast("float32", i), [i])
                with T.attr(0, "pragma", 1):
                    with T.unroll(1, 3) as j:
                        T.buffer_store(A, A[j] * T.float32(2), [j])
                with T.decl_buffer((1,), "int64") as count:
                    T.buffer_store(count, 0, [0])
                    with T.While(count[0] < n):
                        T.buffer_store(A, A[count[0]] + T.float32(100), [count[0]])
                        T.buffer_store(count, count[0] + 1, [0])
    f = ib.get()
    assert "for step in range(16):" in f.script()
    a = np.zeros(16, "float32")
    lathe.build(f, target="interp")["main"](3, a)
    wanted = np.where(np.arange(16) % 2 == 0, 2, np.arange(16)).astype("float32")
    wanted[1:3] *= 2
    wanted[:3] += 100
    np.testing.assert_array_equal(a, wanted)
    with pytest.raises(lathe.RunError, match="n is positive"):
        lathe.build(f, target="interp")["main"](0, a)


def test_modules():
    with IRBuilder() as ib:
        with I.ir_module():
            for name in ("f", "g"):
                with T.prim_func():
                    T.func_name(name)
                    A = T.arg("A", T.Buffer((4,), "float32"))
                    with T.serial(4) as i:
                        T.buffer_store(A, T.float32(ord(name)), [i])
    mod = ib.get()
    assert [name.name_hint for name in mod.functions] == ["f", "g"]
    a = np.zeros(4, "float32")
    lathe.build(mod)["g"](a)
    np.testing.assert_array_equal(a, np.full(4, ord("g")))


def test_regions_of_buffers():
    with IRBuilder() as ib:
        with T.prim_func():
            A = T.arg("A", T.Buffer((16, 16), "float32"))
            with T.serial(2) as i:
                with T.block("part"):
                    vi = T.axis.spatial(2, i)
                    part = T.match_buffer(A[0:16, 0:16], (16, 16))
                    T.reads()
                    T.writes(A[0:16, 0:16])
                    T.buffer_store(part, T.float32(1), [vi, 0])
    assert "T.match_buffer(A[0:16, 0:16], (16, 16)" in ib.get().script()


def refused(build):
    with pytest.raises(lathe.ScriptError) as caught:
        with IRBuilder():
            build()
    return str(caught.value)


def _twice():
    for _ in range(2):
        with T.prim_func():
            pass


def _two_inits():
    with T.prim_func(), T.block("b"):
        for _ in range(2):
            with T.init():
                T.evaluate(0)


def _rank():
    with T.prim_func():
        A = T.arg("A", T.Buffer((4, 4), "float32"))
        T.buffer_store(A, 1.0, [0])


REFUSED = {
    "a block's lines outside one": (lambda: T.reads(), "T.reads stands inside T.block()"),
    "an axis outside a block": (lambda: T.axis.spatial(4, 0), "T.axis.spatial stands inside T.block()"),
    "a parameter outside a function": (lambda: T.arg("A", T.handle()), "T.arg stands inside T.prim_func()"),
    "a case alone": (lambda: T.Then().__enter__(), "T.Then stands inside T.If"),
    "two results": (_twice, "one function or one module is built at a time"),
    "two inits": (_two_inits, "the block has an init already"),
    "too few indices": (_rank, "buffer 'A' has 2 dimensions, not 1"),
    "a builder in a builder": (lambda: IRBuilder().__enter__(), "an IRBuilder is at work already"),
    "nothing": (lambda: IRBuilder.current().get(), "nothing was built"),
}


@pytest.mark.parametrize("build, wanted", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(build, wanted):
    assert wanted in refused(build)
    assert not IRBuilder.is_in_scope()


def test_outside_a_builder_frames_say_so():
    with pytest.raises(lathe.ScriptError, match="inside `with IRBuilder"):
        T.evaluate(0)
    with pytest.raises(AttributeError, match="the nearest name is ir_builder.tir.serial"):
        T.serail(4)


def test_attributes_of_a_module():
    with IRBuilder() as ib:
        with I.ir_module():
            I.module_attrs({"purpose": "a test"})
            I.module_set_attr("level", 2)
            assert I_text.module_get_attr("level") == 2 and I.module_get_attr("nothing") is None
            with pytest.raises(lathe.ScriptError, match="already; allow_overwrite=True"):
                I_text.module_set_attr("level", 3)
            I_text.module_set_attr("level", 3, allow_overwrite=True)
            with T.prim_func():
                T.func_name("main")
                T.arg("B", T.Buffer((4, 8), "float32"))
                T.evaluate(0)
    module = ib.get()
    assert module.attrs == {"purpose": "a test", "level": 3}
    written = """
from lathe.script import ir as I, tir as T
@I.ir_module
class Module:
    I.module_set_attr("purpose", "a test")
    I.module_set_attr("level", 2)
    I.module_set_attr("level", 3, allow_overwrite={})
    @T.prim_func
    def main(B: T.Buffer((4, 8), "float32")):
        T.evaluate(0)
"""
    assert lathe.script.from_source(written.format(True)).attrs == module.attrs
    with pytest.raises(lathe.Error, match="an attribute 'level' already"):
        lathe.script.from_source(written.format(False))
