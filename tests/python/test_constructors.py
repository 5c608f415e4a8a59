"""Nodes made by their classes: each prints as the text that makes it."""

import numpy as np
import pytest

import lathe
from lathe import te, tir
from lathe.script import ir as I
from lathe.script import tir as T
from lathe.script.ir_builder import IRBuilder
from lathe.script.ir_builder import tir as B

x, y = tir.Var("x", "int64"), tir.SizeVar("y", "int64")
A = tir.decl_buffer((8,), "float32", name="A")

EXPRESSIONS = {
    "T.float32(2.5)": lambda: tir.FloatImm("float32", 2.5), "T.int64(3)": lambda: tir.IntImm("int64", 3),
    '"text"': lambda: tir.StringImm("text"), 'T.Cast("int32", x)': lambda: tir.Cast("int32", x),
    "x + y": lambda: tir.Add(x, y), "x - y": lambda: tir.Sub(x, y), "x * y": lambda: tir.Mul(x, y),
    "T.Div(x, y)": lambda: tir.Div(x, y), "T.truncmod(x, y)": lambda: tir.Mod(x, y),
    "x // y": lambda: tir.FloorDiv(x, y), "x % y": lambda: tir.FloorMod(x, y),
    "T.min(x, y)": lambda: tir.Min(x, y), "T.max(x, y)": lambda: tir.Max(x, y), "x == y": lambda: tir.EQ(x, y),
    "x != y": lambda: tir.NE(x, y), "x < y": lambda: tir.LT(x, y), "x <= y": lambda: tir.LE(x, y),
    "x > y": lambda: tir.GT(x, y), "x >= y": lambda: tir.GE(x, y), "x < y and x > y": lambda: tir.And(x < y, x > y),
    "x < y or x > y": lambda: tir.Or(x < y, x > y), "not x < y": lambda: tir.Not(x < y),
    "T.Select(x < y, x, y)": lambda: tir.Select(x < y, x, y), "A[x]": lambda: tir.BufferLoad(A, [x]),
    "T.Ramp(x, 1, 4)": lambda: tir.Ramp(x, 1, 4), "T.Broadcast(x, 4)": lambda: tir.Broadcast(x, 4),
    "T.Shuffle([T.Broadcast(x, 4)], [0, 1])": lambda: tir.Shuffle([tir.Broadcast(x, 4)], [0, 1]),
    "T.Let(y + 1, where={y: x})": lambda: tir.Let(y, x, y + 1),
}  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text):
    made = EXPRESSIONS[text]()
    again = lathe._lathe.evaluate_script(str(made), {"x": x, "y": y, "A": A})
    assert lathe.ir.get_first_structural_mismatch(made, again) is None
    assert str(made).replace("T.int64(1)", "1").replace("T.truncdiv", "T.Div") == text or str(again) == str(made)


def test_a_reduction():
    a, b = tir.Var("a", "float32"), tir.Var("b", "float32")
    reducer = tir.CommReducer([a], [b], [a + b], [tir.const(0.0, "float32")])
    axis = tir.IterVar((0, 8), "k", 2)
    made = tir.Reduce(reducer, [axis], [A[axis.var]], None, 0, [])
    assert "T.comm_reducer(" in str(made) and made.axis[0].var.name == "k"


STORE = tir.BufferStore(A, tir.const(1.0, "float32"), [x])
STATEMENTS = {
    "LetStmt": (lambda: tir.LetStmt(x, tir.const(3, "int64"), STORE), "T.LetStmt(T.int64(3))"),
    "AssertStmt": (lambda: tir.AssertStmt(x > 0, "positive"), 'assert x > 0, "positive"'),
    "While": (lambda: tir.While(x > 0, STORE), "while x > 0:"),
    "Allocate": (lambda: tir.Allocate(tir.Var("p", "handle"), "float32", [8], "global", STORE, {}), "T.allocate("),
    "DeclBuffer": (lambda: tir.DeclBuffer(A, STORE), "T.decl_buffer("),
    "AttrStmt": (lambda: tir.AttrStmt(0, "key", tir.const(1, "int32"), STORE), "T.attr("),
    "IfThenElse": (lambda: tir.IfThenElse(x > 0, STORE, None), "if x > 0:"),
    "For": (lambda: tir.For(x, 0, 8, tir.ForKind.SERIAL, STORE, None, {}), "for x in range(8):"),
    "SeqStmt": (lambda: tir.SeqStmt([STORE, STORE]), "A[x] = T.float32(1"),
    "Evaluate": (lambda: tir.Evaluate(tir.const(0, "int32")), "T.evaluate(0)"),
}  # fmt: skip


@pytest.mark.parametrize("kind", STATEMENTS)
def test_statements(kind):
    make, text = STATEMENTS[kind]
    made = make()
    assert type(made).__name__ == kind and text in str(made)
    assert {tir.While, tir.AssertStmt, tir.DeclBuffer, tir.AttrStmt, tir.IfThenElse, tir.LetStmt, tir.Allocate} & {
        type(made)
    } or kind in ("For", "SeqStmt", "Evaluate")  # fmt: skip


def test_constants_in_memory():
    @T.prim_func
    def main(out: T.Buffer((2,), "float32")):
        data = T.allocate_const([1.5, 2.5], "float32", extents=(2,))
        D = T.decl_buffer((2,), "float32", data=data)
        for i in range(2):
            out[i] = D[i]

    found = []
    tir.stmt_functor.post_order_visit(main, lambda n: found.append(n) if isinstance(n, tir.AllocateConst) else None)
    assert len(found) == 1
    out = np.zeros(2, "float32")
    lathe.build(main)["main"](out)
    np.testing.assert_array_equal(out, [1.5, 2.5])


def test_blocks():
    region = tir.BufferRegion(A, [lathe.ir.Range(0, 8)])
    part = tir.decl_buffer((8,), "float32", name="part")
    axis = tir.IterVar((0, 8), "v", 0)
    block = tir.Block([axis], [], [region], "fill", tir.BufferStore(part, tir.const(1.0, "float32"), [axis.var]), None,
                      [], [tir.MatchBufferRegion(part, region)], {})  # fmt: skip
    text = str(tir.For(x, 0, 8, tir.ForKind.SERIAL, tir.BlockRealize([x], True, block), None, {}))
    assert 'with T.block("fill"):' in text and "part = T.match_buffer(A[0:8]" in text


# ---- buffers and functions ----


def test_buffers_load_and_store():
    assert isinstance(A, tir.Buffer) and A.scope() == "global"
    assert str(A.vload([x])) == "A[x]" and "A[x] = " in str(A.vstore([x], 2.0))


@T.prim_func
def main(a: T.handle, n: T.int64, out: T.Buffer((4,), "float32")):
    T.func_attr({"key": 1})
    In = T.match_buffer(a, (4,), "float32")
    for i in range(4):
        out[i] = In[i] * T.cast(n, "float32")


def test_functions_show_themselves(capsys):
    assert main.ret_type == "void" and main.attrs["key"] == 1 and len(main.params) == 3
    main.show()
    assert "def main(" in capsys.readouterr().out


@I.ir_module
class Module:
    I.module_attrs({"version": 2})

    @T.prim_func
    def helper(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.float32(1)


def test_modules(capsys):
    assert Module.attrs["version"] == 2
    mod = lathe.IRModule.from_expr(main.with_attr("global_symbol", "main"))
    mod.update_func(mod.get_global_var("main"), main)
    mod.update({"helper": Module["helper"]})
    assert [name.name for name, _ in mod.functions_items()] == ["main", "helper"]
    assert isinstance(mod.get_global_var("helper"), lathe.ir.GlobalVar) and isinstance(mod, lathe.ir.IRModule)
    assert [v.name for v in mod.get_global_vars()] == ["main", "helper"]
    assert I.GlobalVar("helper").name == "helper"
    mod.show()
    assert "def helper(" in capsys.readouterr().out
    assert lathe.ir.structural_equal(lathe.script.parse(mod.script()), mod)
    assert lathe.script.relax.function is not None


def test_older_spellings_and_values_of_python():
    factor = 3

    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), data: T.handle):
        B = T.buffer_decl((4,), "float32", data=data)
        for i in range(4):
            with T.let(z, A[i] * T.float32(T.meta_var(factor))):
                A[i] = z + T.float32(1)
        T.evaluate(B.data)

    assert "A[i] * T.float32(3" in f.script()


# ---- the builder's rarer frames ----


def test_rarer_frames():
    with IRBuilder() as ib:
        with B.prim_func():
            B.func_ret("int32")
            out = B.arg("out", B.Buffer((8,), "float32"))
            with B.parallel(8) as i:
                with B.block("fill"):
                    v = B.axis.spatial(8, i)
                    B.where(i < 4)
                    B.block_attr({"key": 1})
                    B.buffer_store(out, B.float32(2), [v])
            with B.allocate([4], "float32", "global") as data:
                with B.decl_buffer((4,), "float32", data=data) as D:
                    with B.let(tir.Var("z", "float32"), B.float32(5)) as z:
                        B.buffer_store(D, z, [0])
                    B.buffer_store(out, D[0], [7])
            B.evaluate(B.ret(0))
    f = ib.get()
    assert f.ret_type == "int32"
    assert 'T.block_attr({"key": 1})' in f.script() and "T.where(i < 4)" in f.script()


# ---- arrays, modules, te ----


def test_arrays():
    a = lathe.nd.array(np.arange(4, dtype="float32"))
    b = lathe.nd.empty((4,), "float32")
    assert isinstance(a, lathe.nd.NDArray) and isinstance(a, lathe.runtime.Tensor) and a.device == lathe.cpu()
    b.copyfrom(np.ones(4, "float32"))
    np.testing.assert_array_equal(b.asnumpy(), np.ones(4))
    a.copyto(b)
    np.testing.assert_array_equal(b.numpy(), a.numpy())
    np.testing.assert_array_equal(lathe.nd.from_dlpack(np.arange(3.0)).numpy(), np.arange(3.0))
    assert b.shape == (4,) and b.dtype == "float32"


def test_built_modules():
    built = lathe.build(Module)
    assert isinstance(built, lathe.runtime.Module) and built.entry_name == "helper" and built.imported_modules == []
    a = np.zeros(4, "float32")
    built.get_function("helper")(a)
    np.testing.assert_array_equal(a, np.ones(4))
    assert "define" in built.inspect_source("ll")
    with pytest.raises(lathe.TVMError):
        built["helper"](np.zeros(5, "float32"))


def test_tensor_expressions_by_their_classes():
    n = te.size_var("n")
    t = te.placeholder((n, 4), name="t")
    assert isinstance(t, te.Tensor) and isinstance(t[0, 1], te.TensorSlice) and t.ndim == 2 and t.name == "t"
    made = te.compute((4,), lambda i: te.if_then_else(te.any(i > 2, i < 1), te.sqrt(t[0, i]), te.exp(t[0, i])))
    f = lathe.te.create_prim_func([t, made])
    assert "T.sqrt" in f.script() and "T.exp" in f.script()


def test_an_analyzers_older_names():
    known = lathe.arith.Analyzer()
    assert str(known.rewrite_simplify(x + 0)) == "x" and str(known.canonical_simplify(x * 1)) == "x"


def test_passes_that_split_and_legalize():
    @T.prim_func
    def tail(A: T.Buffer((10,), "float16"), B: T.Buffer((10,), "float16")):
        for i, j in T.grid(3, 4):
            if i * 4 + j < 10:
                B[i * 4 + j] = A[i * 4 + j] + T.float16(1)

    mod = lathe.IRModule({"main": tail})
    for one in (tir.transform.LoopPartition(), tir.transform.BF16ComputeLegalize()):
        mod = one(mod)
    assert "T.float32(A[" in mod["main"].script()
    a, b = np.arange(10, dtype="float16"), np.zeros(10, "float16")
    lathe.build(mod)["main"](a, b)
    np.testing.assert_array_equal(b, a + 1)
