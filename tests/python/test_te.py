"""Tensor expressions from Python."""

import numpy as np
import pytest

import lathe
from lathe import te, tir


def run(tensors, *arrays):
    lathe.build(te.create_prim_func(tensors))["main"](*arrays)
    return arrays[-1]


def test_products_and_elementwise_stages():
    a, b = te.placeholder((6, 5), name="A"), te.placeholder((5, 7), name="B")
    k = te.reduce_axis((0, 5), name="k")
    c = te.compute((6, 7), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute(c.shape, lambda *at: te.exp(c[at] * 0.1) + 1, name="D")
    x, y = np.random.rand(6, 5).astype("float32"), np.random.rand(5, 7).astype("float32")
    got = run([a, b, d], x, y, np.empty((6, 7), "float32"))
    np.testing.assert_allclose(got, np.exp(x @ y * np.float32(0.1)) + 1, rtol=1e-5)
    assert [t.name for t in d.op.input_tensors] == ["C"] and c.op.reduce_axis[0].var.name == "k"


@pytest.mark.parametrize("reduce, numpy", [(te.max, np.max), (te.min, np.min), (te.sum, np.sum), (te.prod, np.prod)])
def test_reductions(reduce, numpy):
    a = te.placeholder((4, 9), name="A")
    k = te.reduce_axis((0, 9))
    b = te.compute((4,), lambda i: reduce(a[i, k], axis=k), name="B")
    x = np.random.rand(4, 9).astype("float32") + 0.5
    np.testing.assert_allclose(run([a, b], x, np.empty(4, "float32")), numpy(x, axis=1), rtol=1e-5)


def test_a_reduction_where_a_condition_holds():
    a = te.placeholder((6,), name="A")
    k = te.reduce_axis((0, 6))
    b = te.compute((1,), lambda i: te.sum(a[k], axis=k, where=k % 2 < 1), name="B")
    x = np.arange(6, dtype="float32")
    np.testing.assert_array_equal(run([a, b], x, np.empty(1, "float32")), [6])


def test_a_reducer_of_several_values():
    def combine(x, y):
        left = x[1] >= y[1]
        return tir.Select(left, x[0], y[0]), tir.Select(left, x[1], y[1])

    argmax = te.comm_reducer(combine, lambda i, v: (tir.const(-1, i), tir.min_value(v)), name="argmax")
    index, value = te.placeholder((3, 8), "int32", "index"), te.placeholder((3, 8), name="value")
    k = te.reduce_axis((0, 8), "k")
    at, largest = te.compute((3,), lambda i: argmax((index[i, k], value[i, k]), axis=k), name="largest")
    x = np.random.rand(3, 8).astype("float32")
    positions = np.tile(np.arange(8, dtype="int32"), (3, 1))
    found, values = np.empty(3, "int32"), np.empty(3, "float32")
    lathe.build(te.create_prim_func([index, value, at, largest]))["main"](positions, x, found, values)
    np.testing.assert_array_equal(found, x.argmax(1))
    np.testing.assert_array_equal(values, x.max(1))


def test_symbolic_sizes_and_padding():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    padded = te.compute((n + 2,), lambda i: te.if_then_else(te.all(i >= 1, i <= n), a[i - 1], 0.0), name="P")
    b = te.compute((n,), lambda i: padded[i] + padded[i + 2], name="B")
    built = lathe.build(te.create_prim_func([a, b]))
    for size in (1, 2, 9):
        x = np.random.rand(size).astype("float32")
        y = np.empty_like(x)
        built["main"](x, y)
        wide = np.pad(x, 1)
        np.testing.assert_allclose(y, wide[:-2] + wide[2:], rtol=1e-6)


def test_parameters_keep_the_order_of_the_list():
    a, b = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    c = te.compute((4,), lambda i: a[i] - b[i], name="C")
    function = te.create_prim_func([c, b, a])
    assert [function.buffer_map[p].name for p in function.params] == ["C", "B", "A"]
    out = np.empty(4, "float32")
    lathe.build(function)["main"](out, np.ones(4, "float32"), np.full(4, 3, "float32"))
    np.testing.assert_array_equal(out, np.full(4, 2))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda a: te.compute((4,), lambda i, j: a[i]), "has 1 dimensions, and its function takes 2 indices"),
        (lambda a: te.compute((4,), lambda i: a[i, i]), "has 1 dimensions, not 2"),
        (lambda a: te.compute((4,), lambda i: "text" * 2 if i is None else object()), "programs hold"),
        (lambda a: te.create_prim_func([a, 3]), "not of a int"),
        (lambda a: te.create_prim_func([]), "at least one tensor"),
        (lambda a: te.placeholder((4,), "float31"), "there is no dtype 'float31'"),
        (lambda a: te.sum(a[0], axis=3), "axis takes what te.reduce_axis gives"),
    ],
)
def test_what_is_wrong_is_said(make, message):
    with pytest.raises((TypeError, ValueError, lathe.Error)) as caught:
        make(te.placeholder((4,), name="A"))
    assert message in str(caught.value)


def test_an_output_of_something_that_is_not_given_is_refused():
    a, b = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    c = te.compute((4,), lambda i: a[i] + b[i], name="C")
    with pytest.raises(lathe.Error):
        te.create_prim_func([a, c])


def test_operators_of_whole_tensors():
    a, b = te.placeholder((4, 5), name="A"), te.placeholder((5,), name="B")
    x, y = np.random.rand(4, 5).astype("float32"), np.random.rand(5).astype("float32") + 1
    for expression, wanted in [
        (a + b, x + y), (2.0 - a * b, 2 - x * y), (-a / b, -x / y), (1.0 / b + a, 1 / y + x), (3.0 * a - b, 3 * x - y),
        (a.astype("float64"), x.astype("float64")),
    ]:  # fmt: skip
        inputs = [a] if expression.dtype == "float64" else [a, b]
        arrays = [x, y][: len(inputs)]
        out = np.zeros(wanted.shape, wanted.dtype)
        np.testing.assert_allclose(run([*inputs, expression], *arrays, out), wanted, rtol=1e-5)
