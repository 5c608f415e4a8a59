"""Elements in order and places in what is in order, against NumPy."""

import numpy as np
import pytest

import lathe

from .running import check, outputs_of, refusal, text_of

rng = np.random.default_rng(22)
FLOATS = ["float32", "float64", "float16"]
DTYPES = [*FLOATS, "int8", "int32", "int64", "uint8", "bool"]
SHAPES = [((9,), 0), ((3, 5), -1), ((3, 5), 0), ((2, 33, 3), 1), ((1,), -1), ((0, 3), 1), ((3, 0), 1), ((2, 0), 0)]


def numbers(shape, dtype="float32"):
    """With equals among them."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(0 if dtype.startswith("u") else -5, 6, shape).astype(dtype)


def order(x, axis, descending=False):
    """Places in order; of equals the first comes first, NaN is the largest."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    backward = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    return x.shape[axis] - 1 - backward


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_sort_and_argsort(dtype, shape, axis):
    x = numbers(shape, dtype)
    for descending in (False, True):
        places = order(x, axis, descending)
        check(f"R.sort(x=x, axis={axis}, descending={descending})", {"x": x}, np.take_along_axis(x, places, axis))
        check(
            f'R.argsort(data=x, axis={axis}, descending={descending}, dtype="int64")',
            {"x": x},
            places.astype("int64"),
        )


def test_sort():
    x = rng.standard_normal((2, 1000)).astype("float32")
    check("R.sort(x)", {"x": x}, np.sort(x))
    check("R.sort(x, 1, True)", {"x": x}, -np.sort(-x))
    odd = np.array([np.nan, 2, -np.inf, np.nan, np.inf, -0.0, 0.0, -1], "float32")
    check("R.sort(x)", {"x": odd}, np.sort(odd))
    check("R.sort(x, descending=True)", {"x": odd}, np.take_along_axis(odd, order(odd, 0, True), 0))


def test_argsort():
    x = numbers((4, 7))
    check("R.argsort(x)", {"x": x}, order(x, -1).astype("int32"))
    check('R.argsort(x, 0, True, "int8")', {"x": x}, order(x, 0, True).astype("int8"))
    odd = np.array([np.nan, 2, np.nan, np.inf], "float16")
    check("R.argsort(x)", {"x": odd}, np.array([1, 3, 0, 2], "int32"))
    check("R.argsort(x, descending=True)", {"x": odd}, np.array([0, 2, 3, 1], "int32"))


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int32", "int64", "uint8"])
@pytest.mark.parametrize(
    ("shape", "axis", "k"), [((9,), 0, 4), ((3, 5), -1, 1), ((3, 5), 0, 3), ((2, 50, 3), 1, 40), ((2, 4), 1, 0),
                             ((2, 4), -1, -1), ((0, 3), 1, 2)],
)  # fmt: skip
def test_topk(dtype, shape, axis, k):
    x = numbers(shape, dtype)
    for largest in (True, False):
        count = k if k > 0 else shape[axis]
        places = np.take(order(x, axis, largest), np.arange(count), axis)
        values = np.take_along_axis(x, places, axis)
        call = f"R.topk(data=x, k={k}, axis={axis}, ret_type={{}}, largest={largest}, dtype={{}})"
        check(call.format('"both"', '"int64"'), {"x": x}, (values, places.astype("int64")))
        check(call.format('"values"', '"int64"'), {"x": x}, values)
        check(call.format('"indices"', '"int32"'), {"x": x}, places.astype("int32"))


def wide(shape, dtype):
    """Over all that the dtype holds, with equals, both zeros, NaN of either sign and infinities among them."""
    kind = np.dtype(dtype)
    if kind.kind != "f":
        limits = np.iinfo(kind)
        x = rng.integers(limits.min, limits.max, shape, kind, endpoint=True)
        return np.where(rng.random(shape) < 0.2, x // 2 * 0 + kind.type(3), x).astype(kind)
    x = (rng.standard_normal(shape) * np.exp2(rng.integers(-12, 12, shape))).astype(kind)
    odd = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, np.finfo(kind).smallest_subnormal, 1, 1, 1], kind)
    return np.where(rng.random(shape) < 0.3, odd[rng.integers(0, len(odd), shape)], x)


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int16", "uint32", "int64", "uint64"])
@pytest.mark.parametrize(("shape", "axis"), [((255,), 0), ((256,), 0), ((2, 257), 1), ((700, 3), 0)])
def test_many_in_order(dtype, shape, axis):
    x = wide(shape, dtype)
    for descending in (False, True):
        places = order(x, axis, descending)
        check(f'R.argsort(x, {axis}, {descending}, "int64")', {"x": x}, places.astype("int64"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64"])
@pytest.mark.parametrize(
    ("shape", "axis", "k"), [((2, 100), 1, 9), ((100,), 0, 49), ((100,), 0, 50), ((1000,), 0, 16), ((500, 2), 0, 63),
                             ((1200,), 0, 65), ((1500,), 0, 300), ((33,), 0, 12), ((17,), 0, 16)],
)  # fmt: skip
@pytest.mark.parametrize("worst_last", [False, True])
def test_topk_of_many(dtype, shape, axis, k, worst_last):
    x = wide(shape, dtype)
    for largest in (True, False):
        # Each that follows is better than all before: what was gathered is put in order again and again.
        if worst_last:
            x = np.take_along_axis(x, order(x, axis, not largest), axis)
        places = np.take(order(x, axis, largest), np.arange(k), axis)
        check(f'R.topk(x, {k}, {axis}, "indices", {largest}, "int64")', {"x": x}, places.astype("int64"))


def test_topk_by_position():
    x = numbers((2, 6))
    places = order(x, 1, True)[:, :1]
    check("R.topk(x)", {"x": x}, (np.take_along_axis(x, places, 1), places.astype("int32")))
    check('R.topk(x, 6, 1, "values", False)', {"x": x}, np.sort(x))
    check('R.topk(x, 2, 1, "indices", True, "uint8")', {"x": x}, order(x, 1, True)[:, :2].astype("uint8"))


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int32", "int64"])
@pytest.mark.parametrize("shape", [(7,), (3, 4), (), (0, 2)])
@pytest.mark.parametrize("count", [0, 1, 6])
def test_bucketize(dtype, shape, count):
    x, boundaries = numbers(shape, dtype), np.sort(numbers(count, dtype))
    arrays = {"x": x, "b": boundaries}
    for right in (False, True):
        expected = np.asarray(np.searchsorted(boundaries, x, "right" if right else "left"))
        call = f"R.bucketize(input_tensor=x, boundaries=b, out_int32={{}}, right={right})"
        check(call.format(False), arrays, expected.astype("int64"))
        check(call.format(True), arrays, expected.astype("int32"))


def test_bucketize_of_nan_and_infinities():
    x = np.array([np.nan, np.inf, -np.inf, 1], "float32")
    b = np.array([-np.inf, 1, np.inf], "float32")
    check("R.bucketize(x, b)", {"x": x, "b": b}, np.array([3, 2, 0, 1]))
    check("R.bucketize(x, b, True, True)", {"x": x, "b": b}, np.array([3, 3, 1, 2], "int32"))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("result", ["int64", "int32"])
def test_multinomial_from_uniform(dtype, result):
    prob = rng.uniform(0.1, 1, (3, 8))
    prob = (prob / prob.sum(1, keepdims=True)).astype(dtype)
    u = rng.uniform(0, 0.99, (20, 1)).astype(dtype)
    rows = rng.integers(0, 3, (20, 1))
    wide = "float32" if dtype == "float16" else dtype
    sums = np.cumsum(prob.astype(wide), 1, dtype=wide)
    expected = np.minimum((sums[rows[:, 0]] <= u.astype(wide)).sum(1, keepdims=True), 7).astype(result)
    call = f'R.multinomial_from_uniform(prob=p, uniform_sample=u, sample_indices=i, dtype="{result}")'
    check(call, {"p": prob, "u": u, "i": rows}, expected, symbolic=("p",))


def test_multinomial_from_uniform_at_its_ends():
    prob = np.array([[0.25, 0, 0.5, 0.25]], "float32")
    u = np.array([[0], [0.25], [0.7], [0.75], [0.9999], [1.0]], "float32")
    i = np.zeros((6, 1), "int32")
    expected = np.array([[0], [2], [2], [3], [3], [3]], "int64")
    check("R.multinomial_from_uniform(p, u, i)", {"p": prob, "u": u, "i": i}, expected, symbolic=("p",))
    text = text_of("R.multinomial_from_uniform(p, u, i)", {"p": prob, "u": u, "i": i}, ("p", "u", "i"))
    (got,) = outputs_of(text, {"p": prob, "u": u, "i": i}, "native")
    np.testing.assert_array_equal(got, expected)
    check("R.multinomial_from_uniform(p, u, i)", {"p": prob, "u": u[:0], "i": i[:0]}, expected[:0], symbolic=())


def test_what_only_the_run_can_tell():
    for target in ("native", "interp"):
        with pytest.raises(lathe.Error, match="k is 5, but the axis has no more than 4 elements"):
            arrays = {"x": numbers((2, 4))}
            outputs_of(text_of("R.topk(x, 5)", arrays, ("x",)), arrays, target)


V, M = np.zeros(3, "float32"), np.zeros((2, 3), "float32")
U, I = np.zeros((4, 1), "float32"), np.zeros((4, 1), "int64")


@pytest.mark.parametrize(
    ("expression", "arrays", "message"),
    [
        ("R.sort(x, 2)", {"x": M}, "axis 2 of a tensor of rank 2"),
        ("R.sort(x)", {"x": np.float32(1)}, "axis -1 of a tensor of rank 0"),
        ("R.sort(x, increasing=True)", {"x": M}, "there is no attribute 'increasing'"),
        ('R.sort(x, "last")', {"x": M}, "attribute 'axis' has a value of the wrong type"),
        ("R.argsort(x, -3)", {"x": M}, "axis -3"),
        ('R.argsort(x, dtype="float32")', {"x": M}, "indices are integers, not float32"),
        ('R.argsort(x, dtype="bool")', {"x": M}, "indices are integers, not bool"),
        ("R.topk(x, 4)", {"x": M}, "k is 4, but axis 1 of [2, 3] has no more than 3 elements"),
        ("R.topk(x, 1, 2)", {"x": M}, "axis 2"),
        ('R.topk(x, 1, ret_type="all")', {"x": M}, "the ret_type 'all' is none of"),
        ('R.topk(x, 1, dtype="float16")', {"x": M}, "indices are integers"),
        ("R.topk(x)", {"x": M > 0}, "must be of numbers"),
        ("R.bucketize(x, x)", {"x": M}, "they must be a vector"),
        ("R.bucketize(x, b)", {"x": M, "b": V.astype("int32")}, "float32 and int32 differ"),
        ("R.bucketize(x, x)", {"x": V > 0}, "must be of numbers"),
        ("R.bucketize(x)", {"x": V}, "'boundaries' of bucketize is missing"),
        ("R.multinomial_from_uniform(p, u, i)", {"p": V, "u": U, "i": I}, "must be a matrix"),
        ("R.multinomial_from_uniform(p, u, i)", {"p": M, "u": V, "i": I}, "uniform_sample is [3], but"),
        ("R.multinomial_from_uniform(p, u, i)", {"p": M, "u": U, "i": np.zeros((4, 2), "int64")}, "be a column"),
        ("R.multinomial_from_uniform(p, u, i)", {"p": M, "u": U[:2], "i": I}, "uniform_sample has 2 rows"),
        ("R.multinomial_from_uniform(p, u, u)", {"p": M, "u": U}, "must be of integers"),
        ("R.multinomial_from_uniform(i, u, i)", {"u": U, "i": I}, "must be of floats"),
        ("R.multinomial_from_uniform(p, u, i)", {"p": M[:, :0], "u": U, "i": I}, "there is none to draw"),
        ('R.multinomial_from_uniform(p, u, i, "float32")', {"p": M, "u": U, "i": I}, "indices are integers"),
    ],
)
def test_refusals(expression, arrays, message):
    assert message in refusal(expression, arrays)
