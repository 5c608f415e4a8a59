"""Operators on tensors against NumPy; sums in Einstein's notation; recurrences; statements over whole buffers."""

import numpy as np
import pytest

import lathe
from lathe import te, tir, topi
from lathe.script.ir_builder import IRBuilder
from lathe.script.ir_builder import tir as B

rng = np.random.default_rng(9)


def run(make, *arrays):
    """What make(tensors) computes of arrays."""
    inputs = [te.placeholder(a.shape, str(a.dtype), name=f"in{i}") for i, a in enumerate(arrays)]
    made = make(*inputs)
    outputs = list(made) if isinstance(made, (list, tuple)) else [made]
    built = lathe.build(te.create_prim_func([*inputs, *outputs]))
    results = [np.zeros([int(size) for size in t.shape], t.dtype) for t in outputs]
    built["main"](*arrays, *results)
    return results if isinstance(made, (list, tuple)) else results[0]


def floats(*shape):
    return rng.standard_normal(shape).astype("float32")


def ints(*shape, low=-9, high=9):
    return rng.integers(low, high, shape).astype("int32")


# ---- elementwise ----

UNARY = {
    "exp": np.exp, "tanh": np.tanh, "sin": np.sin, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "abs": np.abs,
    "negative": np.negative, "round": np.round, "sign": np.sign, "identity": lambda x: x, "isnan": np.isnan,
    "isfinite": np.isfinite, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "greater": np.greater, "less": np.less, "equal": np.equal, "not_equal": np.not_equal,
    "greater_equal": np.greater_equal, "less_equal": np.less_equal,
}  # fmt: skip
WHOLE = {
    "floor_divide": np.floor_divide, "floor_mod": np.mod, "mod": np.fmod, "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "divide": lambda a, b: np.trunc(a / b),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_tensor(name):
    a = floats(3, 5) * 3
    np.testing.assert_allclose(run(getattr(topi, name), a), UNARY[name](a), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [*BINARY, *WHOLE])
def test_functions_of_two_tensors(name):
    whole = name in WHOLE
    a, b = (ints(3, 1, 5), ints(4, 5, low=1)) if whole else (floats(3, 1, 5), floats(4, 5))
    np.testing.assert_allclose(run(getattr(topi, name), a, b), {**BINARY, **WHOLE}[name](a, b), rtol=1e-6)


def test_numbers_take_the_tensors_dtype():
    a = floats(4)
    np.testing.assert_allclose(run(lambda x: topi.add(x, 2), a), a + 2)
    np.testing.assert_allclose(run(lambda x: topi.subtract(1, x), a), 1 - a)
    np.testing.assert_allclose(run(lambda x: topi.clip(x, -0.5, 0.5), a), np.clip(a, -0.5, 0.5))
    np.testing.assert_array_equal(run(lambda x: topi.cast(x, "int32"), a * 9), (a * 9).astype("int32"))
    np.testing.assert_array_equal(run(lambda x: topi.full_like(x, 3), a), np.full(4, 3))


def test_the_namespace():
    assert lathe.topi.nn is topi.nn and "softmax" in lathe.topi.nn.__all__ and "add" in topi.__all__


def test_where():
    a, b = floats(3, 4), floats(4)
    got = run(lambda x, y: topi.where(topi.greater(x, 0), x, y), a, b)
    np.testing.assert_array_equal(got, np.where(a > 0, a, b))


# ---- arrangements ----

ARRANGED = {
    "transpose": (lambda x: topi.transpose(x), lambda a: a.T),
    "transpose by axes": (lambda x: topi.transpose(x, (1, 0, -1)), lambda a: a.transpose(1, 0, 2)),
    "reshape": (lambda x: topi.reshape(x, (3, -1)), lambda a: a.reshape(3, -1)),
    "expand_dims": (lambda x: topi.expand_dims(x, 1, 2), lambda a: a[:, None, None]),
    "expand_dims at the end": (lambda x: topi.expand_dims(x, -1), lambda a: a[..., None]),
    "squeeze": (lambda x: topi.squeeze(topi.expand_dims(x, 0)), lambda a: a),
    "broadcast_to": (lambda x: topi.broadcast_to(x, (2, 2, 3, 4)), lambda a: np.broadcast_to(a, (2, 2, 3, 4))),
    "flip": (lambda x: topi.flip(x, -1), lambda a: a[..., ::-1]),
    "concatenate": (lambda x: topi.concatenate([x, topi.negative(x), x], 1), lambda a: np.concatenate([a, -a, a], 1)),
    "stack": (lambda x: topi.stack([x, topi.negative(x)], -1), lambda a: np.stack([a, -a], -1)),
    "strided_slice": (lambda x: topi.strided_slice(x, [0, -1], [2, -4], [1, -2]), lambda a: a[0:2, -1:-4:-2]),
    "split": (lambda x: topi.split(x, 2, axis=2)[1], lambda a: np.split(a, 2, 2)[1]),
    "split at": (lambda x: topi.split(x, [1], axis=1)[1], lambda a: a[:, 1:]),
    "flatten": (lambda x: topi.nn.flatten(x), lambda a: a.reshape(2, -1)),
    "pad": (lambda x: topi.nn.pad(x, (0, 1, 2), (1, 0, 0), 7.0),
            lambda a: np.pad(a, ((0, 1), (1, 0), (2, 0)), constant_values=7)),
}  # fmt: skip


@pytest.mark.parametrize("make, reference", ARRANGED.values(), ids=ARRANGED)
def test_arrangements(make, reference):
    a = floats(2, 3, 4)
    np.testing.assert_array_equal(run(make, a), reference(a))


def test_take():
    a, indices = floats(5, 4), ints(2, 3, low=0, high=4)
    np.testing.assert_array_equal(run(lambda x, i: topi.take(x, i, 0), a, indices), a[indices])
    beyond = indices + 2
    np.testing.assert_array_equal(run(lambda x, i: topi.take(x, i, 1), a, beyond), np.take(a, beyond, 1, mode="clip"))


# ---- reductions and products ----


@pytest.mark.parametrize("axis, keepdims", [(None, False), (1, False), ((0, -1), True)])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_reductions(name, axis, keepdims):
    a = floats(2, 3, 4)
    got = run(lambda x: getattr(topi, name)(x, axis, keepdims), a)
    np.testing.assert_allclose(got, getattr(np, name)(a, axis=axis, keepdims=keepdims), rtol=1e-5, atol=1e-5)


def test_logical_reductions():
    a = ints(3, 4, low=0, high=2)
    np.testing.assert_array_equal(run(lambda x: topi.all(topi.greater(x, 0), 1), a), (a > 0).all(1))
    np.testing.assert_array_equal(run(lambda x: topi.any(topi.greater(x, 0), 0), a), (a > 0).any(0))


def test_where_the_extremes_lie():
    a = ints(6, 7, low=-3, high=3)  # with equals
    np.testing.assert_array_equal(run(lambda x: topi.argmax(x, 1), a), a.argmax(1))
    np.testing.assert_array_equal(run(lambda x: topi.argmin(x, 0, keepdims=True), a), a.argmin(0)[None])


def test_networks():
    x, w, b = floats(5, 8), floats(6, 8), floats(6)
    np.testing.assert_allclose(run(topi.nn.dense, x, w, b), x @ w.T + b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(run(topi.matmul, x, w.T.copy()), x @ w.T, rtol=1e-5, atol=1e-5)
    p, q = floats(3, 4, 5), floats(3, 6, 5)
    np.testing.assert_allclose(run(topi.nn.batch_matmul, p, q), p @ q.transpose(0, 2, 1), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(run(topi.nn.relu, x), np.maximum(x, 0))
    np.testing.assert_allclose(run(lambda t: topi.nn.leaky_relu(t, 0.1), x), np.where(x > 0, x, 0.1 * x), rtol=1e-6)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(run(topi.nn.softmax, x), e / e.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(
        run(topi.nn.log_softmax, x), np.log(e / e.sum(1, keepdims=True)), rtol=1e-4, atol=1e-5
    )  # fmt: skip


def test_windows():
    x, w = floats(2, 3, 9, 8), floats(4, 3, 3, 3)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    wanted = np.einsum("ncyxij,ocij->noyx", windows, w)
    np.testing.assert_allclose(run(lambda a, k: topi.nn.conv2d(a, k, 2, 1), x, w), wanted, rtol=1e-4, atol=1e-4)
    pools = np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(2, 3))[:, :, ::2, ::2]
    got = run(lambda a: topi.nn.pool2d(a, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max"), x)
    np.testing.assert_array_equal(got, pools.max((-1, -2)))
    got = run(lambda a: topi.nn.pool2d(a, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "avg"), x)
    np.testing.assert_allclose(got, pools.mean((-1, -2)), rtol=1e-5, atol=1e-6)


REFUSED = {
    "shapes that do not meet": (lambda: topi.add(te.placeholder((3, 4)), te.placeholder((5,))),
                                "cannot broadcast [3, 4] with [5]"),
    "dtypes": (lambda: topi.add(te.placeholder((3,)), te.placeholder((3,), "int32")), "operands have one dtype"),
    "an axis": (lambda: topi.sum(te.placeholder((3, 4)), 2), "axis 2 of a tensor of 2 dimensions"),
    "a reshape": (lambda: topi.reshape(te.placeholder((3, 4)), (5, 2)), "12 elements do not have a shape of 10"),
    "a squeeze": (lambda: topi.squeeze(te.placeholder((3, 1)), 0), "dimension 0 is not of extent 1"),
    "a product": (lambda: topi.matmul(te.placeholder((3, 4)), te.placeholder((3, 4))), "the summed dimensions"),
    "axes": (lambda: topi.transpose(te.placeholder((3, 4)), (0, 0)), "each once"),
    "a window": (lambda: topi.nn.conv2d(te.placeholder((1, 1, 2, 2)), te.placeholder((1, 1, 3, 3))), "larger than"),
    "no tensor": (lambda: topi.exp(3), "a tensor of te is expected, not int"),
    "numbers": (lambda: topi.add(3, 4), "add takes a tensor"),
    "an unknown name": (lambda: topi.nn.softmx, "there is no topi.nn.softmx; the nearest name is topi.nn.softmax"),
}  # fmt: skip


@pytest.mark.parametrize("make, wanted", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(make, wanted):
    with pytest.raises((lathe.Error, TypeError, AttributeError)) as caught:
        make()
    assert wanted in str(caught.value)
    if isinstance(caught.value, lathe.Error):
        assert caught.value.diagnostics[0].code == "te-shapes"


# ---- Einstein's notation ----

EINSUMS = {
    "ij,jk->ik": [(3, 4), (4, 5)],
    "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
    "ij,jk": [(3, 4), (4, 5)],
    "ba": [(3, 4)],
    "ii": [(4, 4)],
    "ii->i": [(4, 4)],
    "iij->j": [(3, 3, 4)],
    "...ij,...jk->...ik": [(2, 5, 3, 4), (5, 4, 6)],
    "...i->...": [(2, 3, 4)],
    "i...,i...": [(3, 4), (3, 1)],
    "ij,j,i->": [(3, 4), (4,), (3,)],
    "ij,jk,kl->il": [(3, 40), (40, 2), (2, 30)],
    "ab,bc,cd,de->ae": [(2, 9), (9, 3), (3, 8), (8, 2)],
    "i,j->ij": [(3,), (4,)],
    "ijk->": [(2, 3, 4)],
    " i j , j k -> i k ": [(3, 4), (4, 5)],
}


@pytest.mark.parametrize("subscripts, shapes", EINSUMS.items(), ids=EINSUMS)
def test_einsum_is_numpys(subscripts, shapes):
    arrays = [floats(*shape) for shape in shapes]
    got = run(lambda *tensors: te.einsum(subscripts, *tensors), *arrays)
    np.testing.assert_allclose(got, np.einsum(subscripts, *arrays), rtol=1e-4, atol=1e-4)


def flops_of(subscripts, *shapes):
    tensors = [te.placeholder(shape) for shape in shapes]
    return tir.analysis.estimate_tir_flops(te.create_prim_func([*tensors, te.einsum(subscripts, *tensors)]))


def test_several_operands_are_multiplied_in_a_good_order():
    # (A @ B) @ C costs 100 * 2 * 100 twice; A @ (B @ C) costs 2 * 100 * 2 and 100 * 2 * 2.
    assert flops_of("ij,jk,kl->il", (100, 2), (2, 100), (100, 2)) <= 2 * (400 + 400)
    naive = 2 * 50 * 50 * 50 * 50
    assert flops_of("ij,jk,kl,lm->im", (50, 50), (50, 50), (50, 50), (50, 1)) < naive / 500


WRONG = {
    "ij,jk->ik": ([(3, 4), (5, 6)], "index 'j' has the extents 4 and 5"),
    "ij->ik": ([(3, 4)], "no operand has the output's index 'k'"),
    "ij->ii": ([(3, 4)], "the output has the index 'i' twice"),
    "ijk->i": ([(3, 4)], "'ijk' has 3 indices, and 'placeholder' has 2 dimensions"),
    "ij,jk": ([(3, 4)], "has 2 operands, and 1 are given"),
    "i1->i": ([(3, 4)], "'1' is no letter of a subscript"),
    "...i->i": ([(3, 4)], "has no '...'"),
    "...i...": ([(3, 4)], "has '...' twice"),
}


@pytest.mark.parametrize("subscripts", WRONG)
def test_einsum_says_what_is_wrong(subscripts):
    shapes, wanted = WRONG[subscripts]
    with pytest.raises(lathe.Error) as caught:
        te.einsum(subscripts, *[te.placeholder(shape) for shape in shapes])
    assert wanted in str(caught.value) and caught.value.diagnostics[0].code == "te-einsum"


# ---- recurrences ----


def test_a_running_sum():
    a = floats(7, 3)

    def cumulative(X):
        state = te.placeholder((7, 3), "float32", name="state")
        first = te.compute((1, 3), lambda _, i: X[0, i], name="first")
        update = te.compute((7, 3), lambda t, i: state[t - 1, i] + X[t, i], name="update")
        return te.scan(first, update, state, inputs=[X])

    np.testing.assert_allclose(run(cumulative, a), np.cumsum(a, 0), rtol=1e-5, atol=1e-5)


def test_a_recurrent_network_and_two_states():
    x, w = floats(5, 4), floats(4, 4) / 4

    def network(X, W):
        h = te.placeholder((5, 4), "float32", name="h")
        first = te.compute((1, 4), lambda _, i: X[0, i], name="first")
        k = te.reduce_axis((0, 4), "k")
        update = te.compute((5, 4), lambda t, i: te.sum(h[t - 1, k] * W[k, i], axis=k), name="update")
        return te.scan(first, update, h)

    wanted = [x[0]]
    for _ in range(4):
        wanted.append(wanted[-1] @ w)
    np.testing.assert_allclose(run(network, x, w), np.stack(wanted), rtol=1e-4, atol=1e-4)

    def fibonacci(X):
        a, b = (te.placeholder((5,), "float32", name=name) for name in "ab")
        start = [te.compute((1,), lambda _: X[0, 0] * 0 + n, name="start") for n in (0.0, 1.0)]
        steps = [te.compute((5,), lambda t: b[t - 1], name="next_a"),
                 te.compute((5,), lambda t: a[t - 1] + b[t - 1], name="next_b")]  # fmt: skip
        return te.scan(start, steps, [a, b])

    got = run(fibonacci, x)
    np.testing.assert_array_equal(got[0], [0, 1, 1, 2, 3])
    np.testing.assert_array_equal(got[1], [1, 1, 2, 3, 5])


def _scan(read, shape=(5,)):
    state = te.placeholder((5,), "float32", name="state")
    first = te.compute((1,), lambda _: te.const(0.0, "float32"), name="first")
    return te.scan(first, te.compute(shape, lambda t: read(state, t), name="update"), state)


def _through_another():
    state = te.placeholder((5,), "float32", name="state")
    first = te.compute((1,), lambda _: te.const(0.0, "float32"), name="first")
    between = te.compute((5,), lambda t: state[t - 1] * 2, name="between")
    return te.scan(first, te.compute((5,), lambda t: between[t], name="update"), state)


@pytest.mark.parametrize(
    "make, wanted",
    [
        (lambda: _scan(lambda s, t: s[t]), "reads one that is not before it"),
        (lambda: _scan(lambda s, t: s[t - 2]), "reads one before the first of all"),
        (lambda: _scan(lambda s, t: s[t - 1], (4,)), "dimension 0 of"),
        (_through_another, "reads 'between', which is computed from a state"),
    ],
)
def test_recurrences_that_do_not_run(make, wanted):
    with pytest.raises(lathe.Error) as caught:
        make()
    assert wanted in str(caught.value) and caught.value.diagnostics[0].code == "te-scan"


# ---- statements over whole buffers ----


def reverse(ins, outs):
    """The rows of the first buffer, the last first."""
    with IRBuilder() as ib:
        with B.prim_func():
            with B.grid(4, 3) as (i, j):
                B.buffer_store(outs[0], ins[0][3 - i, j], [i, j])
    return ib.get().body


def test_an_extern_operation():
    a = floats(4, 3)

    def turned(X):
        Y = te.extern((4, 3), [X], reverse, name="turned")
        return te.compute((4, 3), lambda i, j: Y[i, j] * 2, name="twice")

    np.testing.assert_array_equal(run(turned, a), a[::-1] * 2)
    with pytest.raises(TypeError, match="gives a statement, or a call"):
        te.extern((4, 3), [te.placeholder((4, 3))], lambda ins, outs: 3)
    with pytest.raises(ValueError, match="the dtype of an extern operation is said"):
        te.extern((4, 3), [], reverse)
