"""Nodes of programs in Python: fields, construction, operators, equality, walks."""

import pytest

import lathe
from lathe import tir
from lathe.script import tir as T

x, y = tir.Var("x", "int64"), tir.Var("y", "int64")
f = tir.Var("f", "float32")


@T.prim_func
def doubled(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    for i, j in T.grid(8, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)


def test_every_kind_has_a_class_with_its_fields():
    from lathe import _lathe

    kinds = _lathe.node_kinds()
    assert {"Add", "BufferLoad", "Call"} <= {kind for kind, family, _ in kinds if family == "expr"}
    assert {"For", "Block", "While"} <= {kind for kind, family, _ in kinds if family == "stmt"}
    for kind, family, fields in kinds:
        made = lathe.ir.NODE_CLASSES[family, kind]
        assert made.__name__ == kind
        assert all(isinstance(vars(made)[field], property) for field in fields)


def test_a_program_is_read_field_by_field():
    loop = doubled.body.block.body
    assert isinstance(loop, tir.For) and loop.kind is tir.ForKind.SERIAL and loop.extent.value == 8
    realize = loop.body.body
    block = realize.block
    assert (block.name_hint, [axis.dom.extent.value for axis in block.iter_vars]) == ("B", [8, 4])
    store = block.body
    assert isinstance(store, tir.BufferStore) and isinstance(store.value, tir.Mul)
    assert store.buffer.same_as(doubled.buffer_map[doubled.params[1]])
    assert block.reads[0].buffer.name == "A" and store.value.a.indices[0].same_as(block.iter_vars[0].var)
    assert loop.span.startswith(__file__)


def test_a_program_is_built_from_nodes():
    a, b = tir.decl_buffer((8,), name="A"), tir.decl_buffer((8,), name="B")
    i = tir.Var("i", "int64")
    body = tir.For(i, 0, 8, tir.ForKind.SERIAL, tir.BufferStore(b, a[i] + 1.5, [i]))
    handles = [tir.Var(name, "handle") for name in "ab"]
    function = tir.PrimFunc(handles, body, buffer_map=dict(zip(handles, (a, b))))

    @T.prim_func(private=True)
    def wanted(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i] + T.float32(1.5)

    block = tir.BlockRealize([], True, tir.Block([], [], [], "root", body))
    in_root = tir.PrimFunc(handles, block, buffer_map=dict(zip(handles, (a, b))))
    assert lathe.ir.structural_equal(function, wanted) or lathe.ir.structural_equal(in_root, wanted)


@pytest.mark.parametrize(
    "made, text",
    [
        (lambda: x + 1, "x + 1"),
        (lambda: 3 - x, "3 - x"),
        (lambda: x * y // 4 % 2, "x * y // 4 % 2"),
        (lambda: -f, "T.float32(0.0) - f"),
        (lambda: f + 1, "f + T.float32(1.0)"),
        (lambda: f * x, "f * T.float32(x)"),
        (lambda: (x < y) & (y < 3), "x < y and y < 3"),
        (lambda: x + 0, "x"),
        (lambda: tir.const(3, "int32") + 4, "T.int32(7)"),
        (lambda: tir.exp(f), "T.exp(f)"),
        (lambda: tir.if_then_else(x < 1, f, 0.0), "T.if_then_else(x < 1, f, T.float32(0.0))"),
        (lambda: tir.all(x < 1, y < 2), "x < 1 and y < 2"),
        (lambda: x.astype("int32"), "T.int32(x)"),
        (lambda: tir.min_value("int8"), "T.int8(-128)"),
    ],
)
def test_operators_make_expressions(made, text):
    assert str(made()) == text


def test_equality_is_an_expression_and_as_a_condition_identity():
    assert {x: 1, y: 2}[y] == 2
    assert x in [y, x] and x == x and x != y
    assert str((x == y).asobject()) == "x == y"
    assert str(tir.Select(x == y, x, y)) == "T.Select(x == y, x, y)"
    with pytest.raises(ValueError, match="known only when the program runs"):
        bool(x < y)


def test_constants_are_compared_by_their_number():
    four = tir.IntImm("int64", 4)
    assert four == 4 and 4 == four and four == tir.IntImm("int32", 4) and not four == 5
    assert four != 5 and not four != 4 and four < 5 and not four > 5 and four in [3, 4]
    assert tir.FloatImm("float32", 0.5) == 0.5 and not tir.FloatImm("float32", 0.5) == x
    assert four and not tir.IntImm("int64", 0)


def test_structural_equality_goes_by_content():
    again = lathe.script.from_source(doubled.script())
    assert not again.same_as(doubled)
    lathe.ir.assert_structural_equal(again, doubled)
    assert lathe.ir.structural_hash(again) == lathe.ir.structural_hash(doubled)
    assert lathe.ir.structural_equal(x + 1, y + 1, map_free_vars=True)
    assert not lathe.ir.structural_equal(x + 1, y + 1)
    with pytest.raises(ValueError, match="differ at"):
        lathe.ir.assert_structural_equal(x + 1, x + 2)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: tir.Add(x, f), "Add of int64 and float32"),
        (lambda: tir.Add(x), "Add: 'b' takes an expression, not nothing"),
        (lambda: tir.Add(x, 1, 2), "Add takes 2 arguments"),
        (lambda: tir.Add(x, c=1), "Add has no field 'c'"),
        (lambda: tir.Add(x, object()), "programs hold numbers"),
        (lambda: tir.Var(3), "Var: 'name' takes a string, not 3"),
        (lambda: tir.Var("v", "float33"), "Var: 'dtype' takes a dtype"),
        (lambda: tir.For(x, 0, 8, tir.ForKind.SERIAL, x), "For: 'body' takes a statement, not a Var"),
        (lambda: tir.Evaluate(None), "Evaluate: 'value' takes an expression"),
        (lambda: tir.Call("float32", "nothing", []), "Call: 'op' takes the name of a row"),
        (lambda: tir.BufferLoad(tir.decl_buffer((4, 4)), [x]), "buffer 'buffer' has 2 dimensions, not 1"),
        (lambda: x / y, "'/' of int64 does not say how to round"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(make, message):
    with pytest.raises(TypeError, match=None) as caught:
        make()
    assert message in str(caught.value)


def test_depth_is_bounded():
    deep = x
    with pytest.raises(lathe.Error, match="nested more than 4096 levels"):
        for _ in range(5000):
            deep = tir.Add(deep, 1)


def test_graph_nodes_are_seen_and_not_built():
    kinds = {kind for (family, kind) in lathe.ir.NODE_CLASSES if family == "relax_expr"}
    assert {"Call", "Var", "SeqExpr"} <= kinds
    with pytest.raises(TypeError, match="not built from Python"):
        lathe.ir.NODE_CLASSES["relax_expr", "Call"](x, [])


def test_walks_and_substitution():
    loads = []
    tir.stmt_functor.post_order_visit(doubled, lambda n: loads.append(n) if isinstance(n, tir.BufferLoad) else None)
    assert [load.buffer.name for load in loads][-1:] == ["A"]
    assert str(tir.stmt_functor.substitute(x + y, {x: 3})) == "3 + y"


def test_attributes_of_functions_are_changed_in_copies():
    named = doubled.with_attr("global_symbol", "other").with_attr({"k": [1, "two", 3.0]})
    assert named.attrs["k"] == [1, "two", 3.0] and named.attrs["global_symbol"] == "other"
    assert "k" not in named.without_attr("k").attrs and doubled.attrs["global_symbol"] == "doubled"
