"""Visitors and mutators in Python, transformations by callbacks, functions with parameters fixed."""

import numpy as np
import pytest

import lathe
from lathe import tir
from lathe.script import tir as T


@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)


def run(function, *arguments):
    lathe.build(function)["main"](*arguments)
    return arguments[-1]


array = np.arange(8, dtype="float32")


def test_a_visitor_sees_what_it_has_methods_for():
    @tir.functor.visitor
    class Names(tir.PyStmtExprVisitor):
        def __init__(self):
            self.found = []

        def visit_for_(self, op):
            self.found.append(op.loop_var.name)
            super().visit_for_(op)

        def visit_block_(self, op):
            self.found.append(op.name)
            super().visit_block_(op)

        def visit_buffer_load_(self, op):
            self.found.append(op.buffer.name)

    names = Names()
    names.visit_stmt(main.body)
    assert names.found == ["root", "i", "B", "A"]
    again = Names()
    again(main)
    assert again.found == names.found


def test_a_visitor_that_does_not_go_on_sees_nothing_below():
    class Loops(tir.PyStmtExprVisitor):
        count = 0

        def visit_for_(self, op):
            self.count += 1

        def visit_buffer_store_(self, op):
            raise AssertionError("below a loop")

    loops = Loops()
    loops.visit_stmt(main)
    assert loops.count == 1


def test_a_mutator_makes_another_program():
    @tir.functor.mutator
    class Swap(tir.PyStmtExprMutator):
        def visit_add_(self, op):
            op = super().visit_add_(op)
            return tir.Sub(op.a, op.b) if op.dtype == "float32" else op

        def visit_float_imm_(self, op):
            return tir.FloatImm(op.dtype, op.value * 10)

    changed = Swap().visit_stmt(main)
    np.testing.assert_array_equal(run(changed, array, np.zeros_like(array)), array - 10)
    np.testing.assert_array_equal(run(main, array, np.zeros_like(array)), array + 1)
    assert Swap().visit_expr(tir.Var("x", "int32") + 1).script() == "x + 1"


def test_a_mutator_that_changes_nothing_gives_the_same_node():
    class Same(tir.PyStmtExprMutator):
        pass

    assert Same().visit_stmt(main.body).same_as(main.body)


def test_wrong_methods_are_found():
    with pytest.raises(TypeError, match="visit_bufer_load_ is never called; the nearest is visit_buffer_load_"):
        tir.functor.visitor(type("V", (tir.PyStmtExprVisitor,), {"visit_bufer_load_": lambda self, op: None}))
    with pytest.raises(TypeError, match="derived from PyStmtExprMutator"):
        tir.functor.mutator(int)

    class Wrong(tir.PyStmtExprMutator):
        def visit_for_(self, op):
            return op.extent

    with pytest.raises(TypeError, match="a For is replaced by another stmt"):
        Wrong().visit_stmt(main)


def test_ir_transform_before_and_after():
    seen = []

    def before(node):
        if isinstance(node, tir.FloatImm):
            return tir.FloatImm("float32", 5)
        seen.append(type(node).__name__)
        return None

    body = tir.stmt_functor.ir_transform(main.body, before, None)
    np.testing.assert_array_equal(run(main.with_body(body), array, np.zeros_like(array)), array + 5)
    assert "Add" in seen and "FloatImm" not in seen
    assert tir.stmt_functor.ir_transform(main.body, lambda node: None, lambda node: None).same_as(main.body)


def test_names_of_the_module():
    with pytest.raises(AttributeError, match="the nearest name is tir.stmt_functor.post_order_visit"):
        tir.stmt_functor.post_order_visitor


# ---- functions with parameters fixed ----


@T.prim_func
def scaled(a: T.handle, b: T.handle, factor: T.float32):
    n = T.int64()
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n, 4), "float32")
    for i, j in T.grid(n, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * factor


def test_a_function_for_some_sizes_and_numbers():
    a, b, factor = scaled.params
    fixed = scaled.specialize({a: tir.decl_buffer((6, 4), "float32"), factor: 3.0})
    assert len(fixed.params) == 2 and [int(size) for size in fixed.buffer_map[a].shape] == [6, 4]
    assert [int(size) for size in fixed.buffer_map[b].shape] == [6, 4]
    assert tir.analysis.verify_well_formed(fixed)
    x = np.arange(24, dtype="float32").reshape(6, 4)
    out = np.zeros_like(x)
    lathe.build(fixed.with_attr("global_symbol", "main"))["main"](x, out)
    np.testing.assert_array_equal(out, x * 3)


@pytest.mark.parametrize(
    "given, wanted",
    [
        (lambda: {scaled.params[0]: tir.decl_buffer((6, 5), "float32")}, "of shape [n, 4] does not become one of"),
        (lambda: {scaled.params[0]: tir.decl_buffer((6,), "float32")}, "is no float32"),
        (lambda: {tir.Var("x", "int32"): 1}, "'x' is no parameter"),
    ],
)
def test_what_does_not_fit_is_refused(given, wanted):
    with pytest.raises(ValueError) as caught:
        scaled.specialize(given())
    assert wanted in str(caught.value)
