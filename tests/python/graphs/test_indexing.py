"""Reading and writing by indices, against NumPy."""

import numpy as np
import pytest

import lathe

from .running import check, outputs_of, refusal, text_of

rng = np.random.default_rng(21)
FLOATS = ["float32", "float64", "float16"]
INTEGERS = ["int8", "int32", "int64", "uint8"]
INDEX = ["int32", "int64", "int8"]


def numbers(shape, dtype="float32"):
    return rng.integers(0 if dtype.startswith("u") else -9, 10, shape).astype(dtype)


def places(extent, shape, dtype="int64"):
    return rng.integers(-extent, extent, shape).astype(dtype)


def fails_when_run(expression, arrays, message):
    for target in ("native", "interp"):
        with pytest.raises(lathe.Error, match=message):
            outputs_of(text_of(expression, arrays, tuple(arrays)), arrays, target)


# ---- reading ----


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize(
    ("shape", "index_shape", "axis"),
    [((5,), (7,), 0), ((3, 4), (2, 4), 0), ((3, 4), (3, 6), -1), ((2, 3, 4), (2, 5, 1), 1), ((3, 4), (0, 4), 0)],
)
def test_gather_elements(dtype, shape, index_shape, axis):
    x, i = numbers(shape, dtype), places(shape[axis], index_shape)
    inside = tuple(slice(None) if d == axis % len(shape) else slice(n) for d, n in enumerate(index_shape))
    check(
        f"R.gather_elements(data=x, indices=i, axis={axis})",
        {"x": x, "i": i},
        np.take_along_axis(x[inside], i, axis),
    )


def test_gather_elements_by_other_indices():
    x = numbers((4, 3))
    for dtype in INDEX:
        i = places(4, (2, 3), dtype)
        check("R.gather_elements(x, i)", {"x": x, "i": i}, np.take_along_axis(x, i.astype("int64"), 0))
    i = np.zeros((3, 0), "int64")
    check("R.gather_elements(x, i, 1)", {"x": np.zeros((3, 0), "float32"), "i": i}, np.zeros((3, 0), "float32"))


def gather_nd(data, indices, batch_dims=0):
    if batch_dims:
        return np.stack([gather_nd(d, i, batch_dims - 1) for d, i in zip(data, indices, strict=True)])
    return data[tuple(np.moveaxis(indices, -1, 0))]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "bool"])
@pytest.mark.parametrize(
    ("shape", "index_shape", "batch_dims"),
    [
        ((5,), (3, 1), 0),
        ((3, 4), (2,), 0),
        ((3, 4), (5, 2), 0),
        ((3, 4), (2, 3, 1), 0),
        ((2, 3, 4), (2, 5, 1), 1),
        ((2, 3, 4), (2, 3, 6, 1), 2),
        ((3, 4), (0, 2), 0),
    ],
)
def test_gather_nd(dtype, shape, index_shape, batch_dims):
    x, i = numbers(shape, dtype), np.zeros(index_shape, "int64")
    for k in range(index_shape[-1]):
        i[..., k] = places(shape[batch_dims + k], index_shape[:-1])
    expected = gather_nd(x, i, batch_dims)
    check(f"R.gather_nd(data=x, indices=i, batch_dims={batch_dims})", {"x": x, "i": i}, expected, symbolic=("x",))
    check(f"R.gather_nd(x, i, {batch_dims})", {"x": x, "i": i.astype("int32")}, expected, symbolic=())


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "bool"])
@pytest.mark.parametrize(
    ("shape", "index_shapes"),
    [
        ((5,), [(3,)]),
        ((5, 4), [(2, 3)]),
        ((5, 4), [(3,), (3,)]),
        ((5, 4, 3), [(2, 1), (4,)]),
        ((5, 4, 3), [(), (2,), (3, 1)]),
        ((5, 4), [(0,), (1,)]),
        ((2, 3), [(), ()]),
    ],
)
def test_index_tensor(dtype, shape, index_shapes):
    x = numbers(shape, dtype)
    indices = {f"i{k}": places(shape[k], s, INDEX[k]) for k, s in enumerate(index_shapes)}
    names = ", ".join(indices)
    expected = np.asarray(x[tuple(indices.values())])
    check(f"R.index_tensor(data=x, indices=({names},))", {"x": x, **indices}, expected, symbolic=("x",))
    check(f"R.index_tensor(x, [{names}])", {"x": x, **indices}, expected, symbolic=("x", *list(indices)[-1:]))


def test_index_tensor_by_one_tensor_and_by_a_tuple_with_a_name():
    x, i = numbers((4, 3)), places(4, (2, 2))
    check("R.index_tensor(x, i)", {"x": x, "i": i}, x[i])
    text = text_of("R.index_tensor(x, both)", {"x": x, "i": i[0], "j": i[1] % 3}, ("x",))
    text = text.replace("    result =", "    both = R.tuple(i, j)\n    result =")
    for target in ("native", "interp"):
        (got,) = outputs_of(text, {"x": x, "i": i[0], "j": i[1] % 3}, target)
        np.testing.assert_array_equal(got, x[i[0], i[1] % 3])


# ---- writing ----

REDUCTIONS = {
    "update": lambda old, new: new[-1],
    "add": lambda old, new: old + sum(new),
    "mul": lambda old, new: old * np.prod(new, dtype=np.asarray(new).dtype),
    "max": lambda old, new: max(old, *new),
    "min": lambda old, new: min(old, *new),
    "mean": lambda old, new: (old + sum(new)) / (1 + len(new))
    if isinstance(old, float)
    else (old + sum(new)) // (1 + len(new)),
}


def scattered(x, targets, updates, reduction):
    """Of each target (a coordinate) its updates in order, reduced with what was there."""
    groups = {}
    for target, update in zip(targets, updates, strict=True):
        groups.setdefault(target, []).append(update.item())
    result = x.copy()
    for target, new in groups.items():
        with np.errstate(over="ignore"):
            result[target] = np.asarray(REDUCTIONS[reduction](x[target].item(), new)).astype(x.dtype)
    return result


def tolerance(dtype):
    return {"rtol": 2e-3, "atol": 1e-3} if dtype == "float16" else {}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int64", "int8"])
@pytest.mark.parametrize(
    ("shape", "index_shape", "axis"), [((4,), (7,), 0), ((3, 4), (5, 4), 0), ((2, 3, 4), (2, 3, 2), -1)]
)
def test_scatter_elements(reduction, dtype, shape, index_shape, axis):
    low = -2 if dtype == "int8" else -9
    x, u = rng.integers(low, 3, shape).astype(dtype), rng.integers(low, 3, index_shape).astype(dtype)
    if dtype == "int8" and reduction == "mul":
        x, u = np.sign(x), np.sign(u)
    i = places(shape[axis], index_shape)
    targets, values = [], []
    for at in np.ndindex(index_shape):
        to = list(at)
        to[axis] = int(i[at]) % shape[axis]
        targets.append(tuple(to))
        values.append(u[at])
    expected = scattered(x, targets, values, reduction)
    check(
        f'R.scatter_elements(data=x, indices=i, updates=u, axis={axis}, reduction="{reduction}")',
        {"x": x, "i": i, "u": u},
        expected,
        **tolerance(dtype),
    )


def test_scatter_elements():
    x, i = numbers((3, 4)), np.array([[0, 2, 1, -1]], "int32")
    u = numbers((1, 4))
    expected = x.copy()
    np.put_along_axis(expected, i.astype("int64"), u, 0)
    check("R.scatter_elements(x, i, u)", {"x": x, "i": i, "u": u}, expected)
    check("R.scatter_elements(x, i, u)", {"x": x > 0, "i": i, "u": u > 0}, expected > 0)
    check('R.scatter_elements(x, i, u, 0, "update")', {"x": x, "i": i[:0], "u": u[:0]}, x)
    empty = np.zeros((3, 0), "float32")
    check("R.scatter_elements(x, i, u, 1)", {"x": empty, "i": empty.astype("int64"), "u": empty}, empty)
    ones, many = np.zeros(1, "float16"), np.ones(3000, "float16")
    arrays = {"x": ones, "i": np.zeros(3000, "int64"), "u": many}
    check('R.scatter_elements(x, i, u, reduction="add")', arrays, np.array([3000], "float16"))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int8"])
@pytest.mark.parametrize(
    ("shape", "index_shape"), [((5,), (4, 1)), ((3, 4), (2, 5, 2)), ((3, 4), (6, 1)), ((2, 3, 4), (2,))]
)
def test_scatter_nd(reduction, dtype, shape, index_shape):
    width = index_shape[-1]
    x = rng.integers(-2, 3, shape).astype(dtype)
    u = rng.integers(-2, 3, (*index_shape[:-1], *shape[width:])).astype(dtype)
    if reduction == "mul":
        x, u = np.sign(x), np.sign(u)
    i = np.stack([places(shape[k], index_shape[:-1]) for k in range(width)], -1)
    targets, values = [], []
    for at in np.ndindex(u.shape):
        cell = i[at[: len(index_shape) - 1]]
        targets.append((*(int(c) % shape[k] for k, c in enumerate(cell)), *at[len(index_shape) - 1 :]))
        values.append(u[at])
    expected = scattered(x, targets, values, reduction)
    check(
        f'R.scatter_nd(data=x, indices=i, updates=u, reduction="{reduction}")',
        {"x": x, "i": i, "u": u},
        expected,
        symbolic=("x",),
        **tolerance(dtype),
    )


def test_scatter_nd():
    x, u = numbers((3, 4)), numbers((0, 4))
    check("R.scatter_nd(x, i, u)", {"x": x, "i": np.zeros((0, 1), "int64"), "u": u}, x, symbolic=("x",))
    expected = x.copy()
    expected[1, 2] = 1
    arrays = {"x": x, "i": np.array([[1, 2]]), "u": np.ones(1, "float32")}
    check("R.scatter_nd(x, i, u)", arrays, expected, symbolic=())


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int8"])
@pytest.mark.parametrize(
    ("shape", "index_shapes", "value_shape"),
    [
        ((5,), [(3,)], (3,)),
        ((5, 4), [(3,)], (4,)),
        ((5, 4), [(2, 3)], ()),
        ((5, 4, 3), [(2, 1), (3,)], (2, 3, 1)),
        ((5, 4), [(), ()], ()),
        ((5, 4), [(0,)], (1, 4)),
    ],
)
def test_index_put(accumulate, dtype, shape, index_shapes, value_shape):
    x, v = numbers(shape, dtype), numbers(value_shape, dtype)
    indices = {f"i{k}": places(shape[k], s, INDEX[k]) for k, s in enumerate(index_shapes)}
    expected = x.astype("float64" if dtype == "float16" else dtype)
    if accumulate:
        np.add.at(expected, tuple(indices.values()), v)
    else:
        expected[tuple(indices.values())] = v
    names = ", ".join(indices)
    arrays = {"x": x, **indices, "v": v}
    expected = expected.astype(dtype)
    check(
        f"R.index_put(data=x, indices=({names},), values=v, accumulate={accumulate})", arrays, expected, symbolic=("x",)
    )
    check(f"R.index_put(x, [{names}], v, {accumulate})", arrays, expected, symbolic=())


def test_index_put_of_symbols():
    x, v, i = numbers((5, 3)), numbers((4, 3)), np.array([1, 1, 4, -5])
    expected = x.copy()
    expected[i] = v
    check("R.index_put(x, i, v)", {"x": x, "i": i, "v": v}, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool"])
@pytest.mark.parametrize(
    ("shape", "start", "end", "step", "axis"),
    [
        ((7,), 1, 6, 2, 0),
        ((7, 3), 0, 7, 3, 0),
        ((3, 7), -5, -1, 1, -1),
        ((3, 7), 2, 100, 4, 1),
        ((3, 7), 5, 2, 1, 1),
        ((0, 4), 1, 3, 1, 1),
        ((4,), -100, 4, 1, 0),
    ],
)
def test_slice_scatter(dtype, shape, start, end, step, axis):
    x = numbers(shape, dtype)
    expected = x.copy()
    part = np.moveaxis(expected, axis, 0)[start:end:step]
    src = numbers(np.moveaxis(part, 0, axis).shape, dtype)
    part[...] = np.moveaxis(src, axis, 0)
    call = f"R.slice_scatter(input_tensor=x, src=s, start={start}, end={end}, step={step}, axis={axis})"
    check(call, {"x": x, "s": src}, expected)
    check(f"R.slice_scatter(x, s, {start}, {end}, {step}, {axis})", {"x": x, "s": src}, expected)


def test_slice_scatter_at_symbols():
    x, s, like = numbers((6, 2)), numbers((2, 2)), np.zeros((2, 6), "int32")
    text = (
        '@R.function\ndef main(x: R.Tensor((6, 2), "float32"), s: R.Tensor(("k", 2), "float32"),\n'
        '         like: R.Tensor(("a", "b"), "int32")):\n    a = T.int64()\n    b = T.int64()\n'
        "    result = R.slice_scatter(x, s, a, b, a)\n    return result\n"
    )
    expected = x.copy()
    expected[2:6:2] = s
    for target in ("native", "interp"):
        (got,) = outputs_of(text, {"x": x, "s": s, "like": like}, target)
        np.testing.assert_array_equal(got, expected)
        with pytest.raises(lathe.Error, match="must lead forward"):
            outputs_of(text, {"x": x, "s": s, "like": like[:0]}, target)


def test_what_only_the_run_can_tell():
    x, i = numbers((3, 4)), places(3, (2, 5))
    fails_when_run("R.gather_elements(x, i)", {"x": x, "i": i}, "5 elements in dimension 1, but the data has 4")
    empty = np.zeros((0, 4), "float32")
    message = "point into a dimension of 0 elements"
    fails_when_run("R.gather_elements(x, i)", {"x": empty, "i": i[:, :4]}, message)
    fails_when_run("R.index_tensor(x, i)", {"x": empty, "i": i}, message)
    fails_when_run("R.index_put(x, i, v)", {"x": empty, "i": i[0], "v": numbers((5, 4))}, message)
    fails_when_run("R.scatter_elements(x, i, u)", {"x": empty, "i": i[:, :4], "u": numbers((2, 4))}, message)
    u = numbers((1, 4))
    fails_when_run("R.scatter_elements(x, i, u)", {"x": x, "i": i[:, :4], "u": u}, "u0 is 1|must be")
    fails_when_run("R.slice_scatter(x, s, 0, 2, 1)", {"x": x, "s": u}, "must be")


V, M = np.zeros(3, "float32"), np.zeros((2, 3), "float32")
I, J = np.zeros(3, "int64"), np.zeros((2, 3), "int32")
F = np.zeros((2, 2), "int64")
E = np.zeros((0, 3), "float32")


@pytest.mark.parametrize(
    ("expression", "arrays", "message"),
    [
        ("R.gather_elements(x, x)", {"x": M}, "must be of integers"),
        ("R.gather_elements(x, i)", {"x": M, "i": I}, "have not the rank"),
        ("R.gather_elements(x, i, 2)", {"x": M, "i": J}, "axis 2 of a tensor of rank 2"),
        ("R.gather_elements(x, i, 1)", {"x": V[None], "i": J}, "are larger than the data [1, 3] in dimension 0"),
        ("R.gather_elements(x, i)", {"x": E, "i": J}, "a dimension that has no elements"),
        ("R.gather_elements(x)", {"x": M}, "'indices' of gather_elements is missing"),
        ("R.gather_elements(x, i)", {"x": np.float32(1), "i": np.int64(0)}, "axis 0 of a tensor of rank 0"),
        ("R.gather_nd(x, x)", {"x": M}, "must be of integers"),
        ("R.gather_nd(x, i)", {"x": M, "i": J}, "hold 3 coordinates each, but 1 to 2 fit"),
        ("R.gather_nd(x, i, 1)", {"x": M, "i": F}, "hold 2 coordinates each, but 1 to 1 fit"),
        ("R.gather_nd(x, i, 2)", {"x": M, "i": F}, "batch_dims is 2"),
        ("R.gather_nd(x, i, -1)", {"x": M, "i": F}, "batch_dims is -1"),
        ("R.gather_nd(x, i)", {"x": M, "i": np.int64(0)}, "batch_dims is 0 for data [2, 3] and indices []"),
        ("R.gather_nd(x, i)", {"x": M, "i": F[:, :0]}, "hold 0 coordinates"),
        ("R.gather_nd(x, i, 1)", {"x": M, "i": J[:1, :1]}, "must be"),
        ("R.index_tensor(x, (i, i, i))", {"x": M, "i": I}, "3 index tensors for data of rank 2"),
        ("R.index_tensor(x, ())", {"x": M}, "0 index tensors"),
        ("R.index_tensor(x, (x,))", {"x": M}, "must be of integers"),
        ("R.index_tensor(x, (b,))", {"x": M, "b": np.zeros(2, bool)}, "R.nonzero gives the indices"),
        ("R.index_tensor(x, (i, j))", {"x": M, "i": I, "j": np.zeros(2, "int64")}, "cannot broadcast"),
        ("R.index_tensor(x, (i,))", {"x": E, "i": I}, "a dimension that has no elements"),
        ("R.index_tensor(x, R.prim_value(3))", {"x": M}, "a tuple of tensors"),
        ("R.index_put(x, (i,), v)", {"x": M, "i": I, "v": np.zeros(2, "float32")}, "cannot be broadcast to [3, 3]"),
        ("R.index_put(x, (i,), i)", {"x": M, "i": I}, "the updates are int64, but the data is float32"),
        ("R.index_put(x, (i, i, i), v)", {"x": M, "i": I, "v": V}, "3 index tensors"),
        ("R.index_put(x, (i,), x, True)", {"x": np.zeros(3, bool), "i": I}, "must be of numbers"),
        ("R.scatter_elements(x, i, u)", {"x": M, "i": J, "u": V}, "have not the shape of the indices"),
        ("R.scatter_elements(x, i, u)", {"x": M, "i": J, "u": M.astype("float64")}, "the updates are float64"),
        ('R.scatter_elements(x, i, x, reduction="sum")', {"x": M, "i": J}, "the reduction 'sum' is none of 'update'"),
        ('R.scatter_elements(x, i, x, 0, "add")', {"x": M > 0, "i": J}, "must be of numbers"),
        ("R.scatter_elements(x, i, x, -3)", {"x": M, "i": J}, "axis -3 of a tensor of rank 2"),
        ("R.scatter_elements(x, x, x)", {"x": M}, "must be of integers"),
        ("R.scatter_nd(x, i, u)", {"x": M, "i": F, "u": M}, "need [2]"),
        ("R.scatter_nd(x, i, u)", {"x": M, "i": J, "u": M}, "hold 3 coordinates each"),
        ("R.scatter_nd(x, i, u)", {"x": M, "i": np.int64(0), "u": M}, "are a scalar"),
        ('R.scatter_nd(x, i, u, "div")', {"x": M, "i": F, "u": np.zeros(2, "float32")}, "the reduction 'div'"),
        ("R.slice_scatter(x, s, 0, 2, 1)", {"x": M, "s": V}, "has not the rank"),
        ("R.slice_scatter(x, s, 0, 1, 1)", {"x": M, "s": M}, "but the range has [1, 3]"),
        ("R.slice_scatter(x, x, 0, 2, 0)", {"x": M}, "it must lead forward"),
        ("R.slice_scatter(x, x, 0, 2, -1)", {"x": M}, "it must lead forward"),
        ("R.slice_scatter(x, x, 0.5, 2, 1)", {"x": M}, "'start' is a float32"),
        ("R.slice_scatter(x, s, 0, 2, 1)", {"x": M, "s": M.astype("int32")}, "differ"),
        ("R.slice_scatter(x, x, 0, 2, 1, 2)", {"x": M}, "axis 2 of a tensor of rank 2"),
        ("R.slice_scatter(x, x, 0, 2)", {"x": M}, "'step' of slice_scatter is missing"),
    ],
)
def test_refusals(expression, arrays, message):
    assert message in refusal(expression, arrays)


def test_coordinates_of_unknown_number():
    x, i = M, F
    with pytest.raises(lathe.Error, match="their number must be known"):
        lathe.script.from_source(text_of("R.gather_nd(x, i)", {"x": x, "i": i}, ("i",)))
