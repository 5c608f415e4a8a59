"""Operators of R that put elements in another order or shape, against NumPy."""

import numpy as np
import pytest

import lathe

from .running import check, outputs_of, refusal, text_of

rng = np.random.default_rng(13)
DTYPES = ["float32", "float64", "float16", "int8", "int32", "int64", "bool"]


def array(shape, dtype="float32"):
    return rng.integers(0, 100, shape).astype(dtype)


X = array((3, 4, 5))


@pytest.mark.parametrize("shape", [(), (4,), (3, 4, 5), (0, 7)])
def test_size(shape):
    for dtype in ("float32", "bool"):
        x = array(shape, dtype)
        check("R.size(x=x)", {"x": x}, np.array(x.size, "int64"))


@pytest.mark.parametrize("shape", [(), (4,), (3, 4, 5), (0, 7), (2, 0)])
def test_flatten(shape):
    for dtype in DTYPES:
        x = array(shape, dtype)
        check("R.flatten(x=x)", {"x": x}, x.ravel())


@pytest.mark.parametrize("shape", [(4,), (3, 4, 5), (0, 7), (2, 0), (1, 1, 2, 3)])
def test_batch_flatten(shape):
    for dtype in DTYPES:
        x = array(shape, dtype)
        check("R.nn.batch_flatten(x=x)", {"x": x}, x.reshape(shape[0], int(np.prod(shape[1:]))))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_stack(dtype, axis):
    a, b, c = (array((2, 3), dtype) for _ in range(3))
    expected = np.stack([a, b, c], axis)
    check(f"R.stack(tensors=(a, b, c), axis={axis})", {"a": a, "b": b, "c": c}, expected)
    check(f"R.stack([a, b, c], {axis})", {"a": a, "b": b, "c": c}, expected)


def test_stack_of_other_shapes():
    a = array(())
    check("R.stack((a, a))", {"a": a}, np.stack([a, a]))
    check("R.stack((a,))", {"a": X}, X[None])
    check("R.stack((a, a), -1)", {"a": X[:0]}, np.zeros((0, 4, 5, 2), "float32"))


def test_stack_checks_symbols_when_the_model_runs():
    arrays = {"a": array((2, 3)), "b": array((2, 4))}
    for target in ("native", "interp"):
        with pytest.raises(lathe.Error):
            outputs_of(text_of("R.stack((a, b))", arrays, tuple(arrays)), arrays, target)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_flip(dtype, axis):
    x = X.astype(dtype)
    check(f"R.flip(data=x, axis={axis})", {"x": x}, np.flip(x, axis))


def test_flip_of_odd_extents():
    check("R.flip(x, 0)", {"x": X[:0]}, X[:0])
    check("R.flip(x, 0)", {"x": X[:1]}, X[:1])
    check("R.flip(x, 0)", {"x": X[0, 0]}, X[0, 0, ::-1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("repeats", [0, 1, 3])
def test_repeat(dtype, axis, repeats):
    x = X.astype(dtype)
    check(f"R.repeat(data=x, repeats={repeats}, axis={axis})", {"x": x}, np.repeat(x, repeats, axis))


def test_repeat_of_odd_shapes():
    one = np.array(7, "int32")
    check("R.repeat(x, 2)", {"x": one}, np.repeat(one, 2))
    check("R.repeat(x, 2, 1)", {"x": X[:0]}, np.repeat(X[:0], 2, 1))


@pytest.mark.parametrize("indexing", ["ij", "xy"])
@pytest.mark.parametrize("extents", [(3,), (2, 3), (4, 1, 2), (2, 0)])
def test_meshgrid(indexing, extents):
    arrays = {f"x{k}": array(n, "int32") for k, n in enumerate(extents)}
    expected = tuple(np.meshgrid(*arrays.values(), indexing=indexing))
    check(f'R.meshgrid(tensors=({", ".join(arrays)},), indexing="{indexing}")', arrays, expected)


def test_meshgrid_is_a_tuple_of_tensors():
    a, b = array(3), array(4)
    check("R.meshgrid((a, b))", {"a": a, "b": b}, tuple(np.meshgrid(a, b, indexing="ij")))
    for target in ("native", "interp"):
        (got,) = outputs_of(text_of("R.stack(R.meshgrid((a, b)))", {"a": a, "b": b}), {"a": a, "b": b}, target)
        np.testing.assert_array_equal(np.asarray(got), np.stack(np.meshgrid(a, b, indexing="ij")))
    check('R.meshgrid([a, b], "xy")[1]', {"a": a, "b": b}, np.meshgrid(a, b)[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [0, 1, -2, 9, -9])
def test_tril_and_triu(dtype, k):
    for shape in [(4, 4), (3, 5), (2, 5, 3), (2, 0, 4)]:
        x = array(shape, dtype)
        check(f"R.tril(x=x, k={k})", {"x": x}, np.tril(x, k))
        check(f"R.triu(x=x, k={k})", {"x": x}, np.triu(x, k))


def test_triangles_by_default_and_by_symbols():
    x = array((3, 3))
    check("R.tril(x)", {"x": x}, np.tril(x))
    check("R.triu(x)", {"x": x}, np.triu(x))
    text = (
        '@R.function\ndef main(x: R.Tensor(("n", "n"), "float32")):\n    n = T.int64()\n'
        "    result = R.tril(R.triu(x, n - 3), R.prim_value(n - 2))\n    return result\n"
    )
    for target in ("native", "interp"):
        np.testing.assert_array_equal(np.asarray(outputs_of(text, {"x": x}, target)[0]), np.tril(np.triu(x), 1))
    spoiled = np.full((2, 2), np.nan, "float32")
    check("R.tril(x, -1)", {"x": spoiled}, np.float32([[0, 0], [np.nan, 0]]))


V, M, N = np.zeros(3, "float32"), np.zeros((2, 3), "float32"), np.zeros(3, "int32")


@pytest.mark.parametrize(
    ("expression", "arrays", "message"),
    [
        ("R.nn.batch_flatten(x)", {"x": np.zeros((), "float32")}, "is no batch"),
        ("R.size((x, x))", {"x": V}, "no tensor"),
        ("R.flatten()", {"x": V}, "'x' of flatten is missing"),
        ("R.stack((x, y))", {"x": V, "y": M}, "the shapes [3] and [2, 3] differ"),
        ("R.stack((x, y))", {"x": V, "y": V[:2]}, "the shapes [3] and [2] differ"),
        ("R.stack((x, y))", {"x": V, "y": N}, "float32 and int32 differ"),
        ("R.stack((x, x), 2)", {"x": V}, "axis 2 of a tensor of rank 2"),
        ("R.stack(())", {"x": V}, "no tensors"),
        ("R.flip(x)", {"x": V}, "'axis' is missing"),
        ("R.flip(x, 1)", {"x": V}, "axis 1 of a tensor of rank 1"),
        ("R.flip(x, [0, 1])", {"x": M}, "attribute 'axis' has a value of the wrong type"),
        ("R.repeat(x)", {"x": V}, "'repeats' is missing"),
        ("R.repeat(x, -1)", {"x": V}, "repeats is -1"),
        ("R.repeat(x, 2, -3)", {"x": M}, "axis -3 of a tensor of rank 2"),
        ("R.meshgrid((x, y))", {"x": V, "y": M}, "is [2, 3], but each must be a vector"),
        ("R.meshgrid((x, y))", {"x": V, "y": N}, "differ"),
        ('R.meshgrid((x, x), "ji")', {"x": V}, "no indexing 'ji'"),
        ("R.meshgrid(())", {"x": V}, "no tensors"),
        ("R.tril(x)", {"x": V}, "must be of matrices"),
        ("R.triu(x, 0.5)", {"x": M}, "'k' is a float32, but it must be an integer"),
    ],
)
def test_refusals(expression, arrays, message):
    assert message in refusal(expression, arrays)
