"""Arithmetic of R that is made of arithmetic, its products and reductions, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

import lathe

from .running import check, outputs_of, refusal, text_of

rng = np.random.default_rng(11)
X = rng.uniform(-3, 3, (3, 5)).astype("float32")
I = rng.integers(-9, 9, (2, 3)).astype("int32")
FLOATS = ["float32", "float64", "float16"]
INTEGERS = ["int8", "int32", "int64"]


def floats(shape, dtype="float32", low=-3, high=3):
    return rng.uniform(low, high, shape).astype(dtype)


def tolerance(dtype):
    return {"rtol": 2e-3, "atol": 2e-3} if dtype == "float16" else {}


# ---- element by element ----


def test_square():
    check("R.square(x)", {"x": X}, X * X)
    check("R.square(i)", {"i": I}, I * I)
    check("R.square(x)", {"x": np.zeros((0, 4), "float64")}, np.zeros((0, 4)))


def test_trunc():
    check("R.trunc(x)", {"x": X}, np.trunc(X))
    check("R.trunc(i)", {"i": I}, I)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_floor_divide_of_integers(dtype):
    a = rng.integers(-50, 50, (4, 3)).astype(dtype)
    b = np.array([-7, 3, 5], dtype)
    check("R.floor_divide(a, b)", {"a": a, "b": b}, a // b)
    low = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    check("R.floor_divide(a, b)", {"a": low, "b": np.array([3, -3], dtype)}, low // np.array([3, -3], dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_floor_divide_of_floats(dtype):
    a, b = floats((2, 1, 7), dtype, -20, 20), floats((3, 1), dtype, 0.5, 4)
    for sign in (1, -1):
        d = (b * sign).astype(dtype)
        expected = np.floor_divide(a, d)
        check("R.floor_divide(x1=a, x2=d)", {"a": a, "d": d}, expected)


def test_floor_divide_counts_what_is_left_and_knows_infinities():
    a = np.array([1.0, 6.0, -6.0, 0.3, 1.0, -1.0, 1.0, -1.0, 0.0], "float64")
    b = np.array([0.1, 2.0, 4.0, 0.1, np.inf, np.inf, 0.0, 0.0, 3.0], "float64")
    with np.errstate(all="ignore"):
        check("R.floor_divide(a, b)", {"a": a, "b": b}, np.floor_divide(a, b))


def test_floor_divide_without_elements():
    check("R.floor_divide(a, b)", {"a": np.zeros((0, 3), "int32"), "b": np.ones(3, "int32")}, np.zeros((0, 3), "int32"))


@pytest.mark.parametrize("dtype", FLOATS)
def test_log_add_exp(dtype):
    a, b = floats((3, 1, 2), dtype, -9, 9), floats((4, 1), dtype, -9, 9)
    check("R.log_add_exp(x1=a, x2=b)", {"a": a, "b": b}, np.logaddexp(a, b), **tolerance(dtype))


def test_log_add_exp_of_large_numbers_and_infinities():
    inf = np.inf
    a = np.array([1000, -1000, inf, -inf, inf, -inf, np.nan, 5], "float32")
    b = np.array([1000, -1001, inf, -inf, -inf, 3, 1, -inf], "float32")
    check("R.log_add_exp(a, b)", {"a": a, "b": b}, np.logaddexp(a, b))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_ewise_fma(dtype):
    a, b, c = ((floats((2, 3), "float64", -5, 5) * 2).astype(dtype) for _ in range(3))
    wide = "float32" if dtype == "float16" else dtype
    expected = (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(dtype)
    check("R.ewise_fma(x1=a, x2=b, x3=c)", {"a": a, "b": b, "c": c}, expected)


def test_ewise_fma_broadcasts():
    a, b, c = floats((4, 1)), floats(3), floats((2, 1, 1))
    check("R.ewise_fma(a, b, c)", {"a": a, "b": b, "c": c}, a * b + c, symbolic=("a",))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "uint8"])
def test_relu6(dtype):
    x = rng.integers(0 if dtype == "uint8" else -9, 12, (3, 7)).astype(dtype)
    check("R.nn.relu6(x=x)", {"x": x}, np.clip(x, 0, 6).astype(dtype))


def test_relu6_keeps_nan():
    x = np.array([np.nan, 7, -np.inf], "float32")
    check("R.nn.relu6(x)", {"x": x}, np.array([np.nan, 6, 0], "float32"))


def test_dropout_drops_nothing():
    check("R.nn.dropout(data=x, rate=0.25)", {"x": X}, (X, np.ones_like(X)))
    check("R.nn.dropout(x)", {"x": np.zeros((0, 2), "float16")}, (np.zeros((0, 2), "float16"),) * 2)
    check("R.nn.dropout(R.square(i))[1]", {"i": I}, np.ones_like(I))


# ---- products ----


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int64"])
@pytest.mark.parametrize("lead", [(), (4,), (2, 3), (0,)])
def test_linear(dtype, lead):
    data = (floats((*lead, 5), "float64") * 2).astype(dtype)
    weight, bias = (floats((3, 5), "float64") * 2).astype(dtype), (floats(3, "float64") * 9).astype(dtype)
    wide = "float32" if dtype == "float16" else dtype
    product = (data.astype(wide) @ weight.astype(wide).T).astype(dtype)
    check("R.linear(x, w)", {"x": data, "w": weight}, product, **tolerance(dtype))
    check(
        "R.linear(data=x, weight=w, bias=b, out_dtype=None)",
        {"x": data, "w": weight, "b": bias},
        product + bias,
        **tolerance(dtype),
    )


def test_linear_in_another_dtype():
    data, weight = rng.integers(-99, 99, (4, 70)).astype("int8"), rng.integers(-99, 99, (3, 70)).astype("int8")
    bias = np.array([1, 1000, -70000], "int32")
    product = data.astype("int32") @ weight.astype("int32").T
    check('R.linear(x, w, out_dtype="int32")', {"x": data, "w": weight}, product)
    check('R.linear(x, w, b, "int32")', {"x": data, "w": weight, "b": bias}, product + bias)
    half = floats((2, 6), "float16")
    product = half.astype("float32") @ half.astype("float32").T
    check('R.linear(x, x, out_dtype="float32")', {"x": half}, product, symbolic=())
    vector = floats(5)
    check("R.linear(x, w)", {"x": X, "w": vector}, X @ vector)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_outer(dtype):
    a, b = rng.integers(-9, 9, 4).astype(dtype), rng.integers(-9, 9, 3).astype(dtype)
    check("R.outer(x1=a, x2=b)", {"a": a, "b": b}, np.outer(a, b))
    check("R.outer(a, b)", {"a": a[:0], "b": b}, np.zeros((0, 3), dtype))


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bjk", [(2, 3, 4), (2, 4, 1)]),
        ("...ij,...jk->...ik", [(5, 1, 2, 3), (4, 3, 2)]),
        ("ii->i", [(3, 3)]),
        ("ij->ji", [(3, 4)]),
        ("i,i,i->", [(6,), (6,), (6,)]),
        ("ij->", [(0, 3)]),
        ("ibh,hnd->ibnd", [(5, 2, 7), (7, 3, 4)]),
        ("ibnd,hnd->ibh", [(5, 1, 3, 4), (6, 3, 4)]),
        ("ibnd,jbnd->bnij", [(5, 2, 3, 4), (6, 2, 3, 4)]),
        ("bnij,jbnd->ibnd", [(2, 3, 5, 6), (6, 2, 3, 4)]),
        ("dnh,hbi->nbid", [(4, 3, 7), (7, 2, 5)]),
        ("td,edf->etf", [(5, 6), (3, 6, 4)]),
        ("edf,td->etf", [(3, 6, 4), (5, 6)]),
        ("tudc,ecgdf->egtuf", [(5, 2, 6, 3), (4, 3, 2, 6, 7)]),
        ("td,edf->tef", [(5, 6), (3, 6, 4)]),
        ("utd,edf->uetf", [(2, 5, 6), (3, 6, 4)]),
        ("utd,edf->etfu", [(2, 5, 6), (3, 6, 4)]),
        ("td,edf->etf", [(0, 6), (3, 6, 4)]),
        ("abc,cba->", [(3, 4, 5), (5, 4, 3)]),
        ("k,kn->n", [(6,), (6, 5)]),
        ("bk,bk->b", [(3, 6), (3, 6)]),
        ("bk,bkz->b", [(3, 6), (3, 6, 2)]),
        ("abk,bak->ab", [(1, 6, 4), (6, 3, 4)]),
        ("ij,jk,kl,lm->im", [(2, 30), (30, 4), (4, 50), (50, 3)]),
        ("pi,qj,pqrs,rk,sl->ijkl", [(3, 2), (4, 3), (3, 4, 5, 2), (5, 4), (2, 3)]),
        ("ij,i,j->", [(0, 3), (0,), (3,)]),
    ],
)
def test_einsum(subscripts, shapes):
    arrays = {f"x{k}": floats(shape) for k, shape in enumerate(shapes)}
    names = ", ".join(arrays)
    # NumPy adds up thousands of products of four one by one: in float32 that is what is far off.
    expected = np.asarray(np.einsum(subscripts, *(x.astype("float64") for x in arrays.values())), "float32")
    # A sum that cancels is as exact as the largest of what is added up.
    sizes = np.asarray(np.einsum(subscripts, *(np.abs(x) for x in arrays.values())))
    atol = 1e-6 * max(1.0, sizes.max(initial=0.0))
    check(f'R.einsum(operands=({names},), subscripts="{subscripts}")', arrays, expected, symbolic=(), atol=atol)


def test_einsum_of_other_dtypes_and_extents():
    a, b = rng.integers(-9, 9, (2, 3)).astype("int8"), rng.integers(-9, 9, (3, 2)).astype("int8")
    check('R.einsum((a, b), "ij,jk->ik")', {"a": a, "b": b}, a @ b, symbolic=("a",))
    half = floats((3, 40), "float16")
    expected = (half.astype("float32") @ half.astype("float32").T).astype("float16")
    check('R.einsum((a, a), subscripts="ik,jk->ij")', {"a": half}, expected, **tolerance("float16"))
    with pytest.raises(lathe.Error, match="2"):
        arrays = {"a": floats((2, 3)), "b": floats((2, 4))}
        outputs_of(text_of('R.einsum((a, b), "ij,jk->ik")', arrays, ("a", "b")), arrays, "native")


# ---- reductions ----


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [None, 0, -1, [0, 2], [1]])
@pytest.mark.parametrize("keepdims", [False, True])
def test_std_and_variance(dtype, axis, keepdims):
    x = floats((3, 4, 5), dtype)
    of = {"axis": tuple(axis) if isinstance(axis, list) else axis, "keepdims": keepdims}
    wide = x.astype("float32" if dtype == "float16" else dtype)
    for name, reference in (("std", np.std), ("variance", np.var)):
        expected = np.asarray(reference(wide, **of)).astype(dtype)
        check(f"R.{name}(x=x, axis={axis}, keepdims={keepdims})", {"x": x}, expected, **tolerance(dtype))


def test_std_and_variance_of_far_numbers_and_of_none():
    x = (np.arange(7) + 1e4).astype("float32")
    check("R.std(x)", {"x": x}, np.float32(2))
    check("R.variance(x)", {"x": x}, np.float32(4))
    check("R.variance(x, 0)", {"x": np.zeros((3, 0), "float32")}, np.zeros(0, "float32"))
    check("R.std(x)", {"x": np.zeros((3, 0), "float32")}, np.float32(np.nan))
    half = (np.arange(4000) % 7).astype("float16")
    expected = np.float16(np.var(half.astype("float32")))
    check("R.variance(x)", {"x": half}, expected, **tolerance("float16"))


def lower_median(x, axis, keepdims):
    count = x.shape[axis]
    order = np.argsort(x, axis=axis, kind="stable")
    place = np.take(order, [(count - 1) // 2], axis=axis)
    if np.issubdtype(x.dtype, np.floating):
        is_nan = np.isnan(x)
        place = np.where(is_nan.any(axis=axis, keepdims=True), is_nan.argmax(axis=axis, keepdims=True), place)
    value = np.take_along_axis(x, place, axis)
    return (value, place) if keepdims else (value.squeeze(axis), place.squeeze(axis))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize(("shape", "axis"), [((4, 5), 1), ((4, 5), 0), ((3, 4, 5), -2), ((1,), 0), ((2, 0, 3), -1)])
def test_median_along_an_axis(dtype, shape, axis):
    x = rng.integers(-9, 9, shape).astype(dtype)
    for keepdims in (False, True):
        value, place = lower_median(x, axis, keepdims)
        check(f"R.median(x=x, axis={axis}, keepdims={keepdims})", {"x": x}, (value, place.astype("int64")))


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 4), (), (1,)])
def test_median_of_all(shape):
    x = floats(shape)
    value = np.sort(x, axis=None)[(x.size - 1) // 2]
    check("R.median(x)", {"x": x}, value)
    check("R.median(x, None, True)", {"x": x}, value.reshape((1,) * len(shape)))
    if x.size % 2:
        np.testing.assert_allclose(value, np.median(x))


def test_median_of_nan_is_nan():
    x = np.array([[1, np.nan, 3, np.nan], [4, 3, -np.inf, 9]], "float32")
    value, place = np.array([np.nan, 3], "float32"), np.array([1, 1], "int64")
    check("R.median(x, [1])", {"x": x}, (value, place))


def test_median_of_no_element_fails_when_the_model_runs():
    arrays = {"x": np.zeros((2, 0), "float32")}
    for target in ("native", "interp"):
        with pytest.raises(lathe.Error, match="median of 0 elements"):
            outputs_of(text_of("R.median(x, 1)", arrays, ("x",)), arrays, target)


CUMULATED = {"cumsum": (np.cumsum, 0), "cumprod": (np.cumprod, 1)}


@pytest.mark.parametrize("name", CUMULATED)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_cumulate(name, dtype):
    f, neutral = CUMULATED[name]
    x = rng.integers(-2, 3, (2, 3, 4)).astype(dtype)
    for axis in (0, 1, -1, None):
        expected = f(x, axis=axis, dtype=dtype)
        check(f"R.{name}(data=x, axis={axis}, dtype=None, exclusive=False)", {"x": x}, expected)
        moved = np.moveaxis(expected, axis or 0, 0)
        shifted = np.concatenate([np.full_like(moved[:1], neutral), moved[:-1]])
        check(f"R.{name}(x, {axis}, exclusive=True)", {"x": x}, np.moveaxis(shifted, 0, axis or 0))


def test_cumsum():
    x = np.full(300, 100, "int8")
    check('R.cumsum(x, 0, "int32")', {"x": x}, np.cumsum(x, dtype="int32"))
    check("R.cumsum(data=x, axis=0, exclusive=1)", {"x": I}, np.cumsum(I, 0, dtype="int32") - I)
    check("R.cumsum(x)", {"x": np.zeros((0, 3), "float32")}, np.zeros(0, "float32"))
    check("R.cumsum(x)", {"x": np.float32(3)}, np.array([3], "float32"))
    flags = np.array([True, False, True])
    check('R.cumsum(x, dtype="int64")', {"x": flags}, np.cumsum(flags))
    half = np.full(3000, 1, "float16")
    check("R.cumsum(x, -1)", {"x": half}, np.cumsum(half.astype("float32")).astype("float16"))


def test_cumprod():
    x = np.array([[0.5, 2, 3], [0, 1, np.inf]], "float64")
    with np.errstate(invalid="ignore"):
        check("R.cumprod(data=x, axis=1)", {"x": x}, np.cumprod(x, 1))
    check('R.cumprod(i, dtype="float64")', {"i": I}, np.cumprod(I, dtype="float64"))


def test_bfloat16_is_summed_in_float32():
    x = np.ones(2000, ml_dtypes.bfloat16)
    text = text_of("R.cumsum(x, 0)", {"x": x})
    for target in ("native", "interp"):
        (got,) = outputs_of(text, {"x": x}, target)
        expected = np.cumsum(x.astype("float32")).astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(np.asarray(got).astype("float32"), expected.astype("float32"))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ((4, 3), (4, 3)),
        ((4, 3), (3,)),
        ((4, 3), (1, 3)),
        ((4, 3), (4, 1)),
        ((2, 4, 3), (1, 1)),
        ((2, 4, 3), ()),
        ((2, 1, 3), (2, 1, 1)),
        ((0, 3), (1, 3)),
        ((2, 0), (2, 0)),
    ],
)
def test_collapse_sum(dtype, shape, target):
    x = rng.integers(-5, 6, shape).astype(dtype)
    lead = len(shape) - len(target)
    axes = tuple(d for d in range(len(shape)) if d < lead or target[d - lead] != shape[d])
    expected = x.sum(axis=axes, dtype=dtype).reshape(target)
    check(f"R.collapse_sum_to(data=x, shape={target})", {"x": x}, expected)
    like = np.zeros(target, "float32")
    check("R.collapse_sum_like(data=x, collapse_target=like)", {"x": x, "like": like}, expected)


def test_collapse_sum_checks_symbols_when_the_model_runs():
    arrays = {"x": floats((4, 3)), "like": floats(2)}
    with pytest.raises(lathe.Error, match="cannot be collapsed to 2"):
        outputs_of(text_of("R.collapse_sum_like(x, like)", arrays, tuple(arrays)), arrays, "native")


V, W = np.zeros(3, "float32"), np.zeros(4, "float32")
M, B = np.zeros((2, 3), "float32"), np.zeros(3, bool)
D, N = np.zeros(3, "float64"), np.zeros(3, "int32")


@pytest.mark.parametrize(
    ("expression", "arrays", "message"),
    [
        ("R.floor_divide(x, y)", {"x": V, "y": D}, "float32 and float64 differ"),
        ("R.floor_divide(x, y)", {"x": V, "y": W}, "cannot broadcast"),
        ("R.floor_divide(x, x)", {"x": B}, "must be of numbers"),
        ("R.log_add_exp(x, x)", {"x": N}, "'x1' is int32[3], but it must be of floats"),
        ("R.ewise_fma(x, x, y)", {"x": V, "y": N}, "float32 and int32 differ"),
        ("R.ewise_fma(x, x)", {"x": V}, "'x3' of ewise_fma is missing"),
        ("R.nn.relu6(x)", {"x": B}, "must be of numbers"),
        ("R.nn.dropout(x, 1.5)", {"x": V}, "a share is from 0 to 1"),
        ("R.nn.dropout(x, -0.5)", {"x": V}, "a share is from 0 to 1"),
        ("R.linear(x, w)", {"x": M, "w": np.zeros((2, 3, 3), "float32")}, "must be a matrix"),
        ("R.linear(x, w)", {"x": M, "w": np.zeros((5, 4), "float32")}, "inner extents 3 and 4 differ"),
        ("R.linear(x, w)", {"x": M, "w": np.zeros((5, 3), "float64")}, "float32 and float64 differ"),
        ("R.linear(x, x, b)", {"x": M, "b": V}, "cannot broadcast the bias [3] to [2, 2]"),
        ("R.linear(x, x, b)", {"x": M, "b": np.zeros(2, "int32")}, "the bias is int32"),
        ("R.outer(x, y)", {"x": V, "y": M}, "'x2' is [2, 3], but it must be a vector"),
        ("R.outer(x, y)", {"x": V, "y": N}, "differ"),
        ('R.einsum((x, y), "i,i->")', {"x": V, "y": W}, "extent 4 must be 3"),
        ('R.einsum((x, y), "i,i->")', {"x": V, "y": N}, "differ"),
        ('R.einsum((x, y), "i->")', {"x": V, "y": V}, "1 terms for 2 operands"),
        ('R.einsum((x,), "i->j")', {"x": V}, "a letter in its result that no operand has"),
        ('R.einsum((x,), "i1->i")', {"x": M}, "letters and ellipses"),
        ('R.einsum((x,), "i->")', {"x": B}, "must be of numbers"),
        ("R.einsum((x,))", {"x": V}, "'subscripts' is missing"),
        ('R.einsum((), "->")', {"x": V}, "no operands"),
        ("R.std(x)", {"x": N}, "must be of floats"),
        ("R.variance(x, 2)", {"x": M}, "axis 2 of a tensor of rank 2"),
        ("R.variance(x, [0, -2])", {"x": M}, "named twice"),
        ("R.median(x, [0, 1])", {"x": M}, "2 axes; one axis, or None"),
        ("R.median(x, 5)", {"x": M}, "axis 5 of a tensor of rank 2"),
        ("R.median(x)", {"x": np.zeros((0, 3), "float32")}, "no element to choose"),
        ("R.median(x)", {"x": B}, "must be of numbers"),
        ("R.cumsum(x, 1)", {"x": V}, "axis 1 of a tensor of rank 1"),
        ("R.cumsum(x)", {"x": B}, 'dtype="int64" counts'),
        ('R.cumprod(x, 0, "handle")', {"x": V}, "no dtype of numbers"),
        ('R.cumprod(x, 0, "int7q")', {"x": V}, "attribute 'dtype' has a value of the wrong type"),
        ("R.collapse_sum_to(x, (2,))", {"x": M}, "cannot be collapsed to [2]"),
        ("R.collapse_sum_to(x, (1, 2, 3))", {"x": M}, "cannot be collapsed to [1, 2, 3]"),
        ("R.collapse_sum_like(x, y)", {"x": V, "y": M}, "does not broadcast"),
        ("R.collapse_sum_like(x, x)", {"x": B}, "must be of numbers"),
    ],
)
def test_refusals(expression, arrays, message):
    assert message in refusal(expression, arrays)


@pytest.mark.parametrize("wide", ["float32", "float64"])
@pytest.mark.parametrize("narrow", ["int8", "uint8", "int16", "int32", "int64"])
def test_floats_beyond_an_integer_type_in_every_lane(wide, narrow):
    """The nearest of int32, or int64, whose low bits a narrow type has; NaN is 0. Vectors, and what they leave."""
    bits = 64 if narrow == "int64" else 32
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    ends = [np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0**31, -(2.0**31), 2.0**63, -(2.0**63)]
    ends += [255.9, -1.5, 0.0, 127.0, -129.0]
    x = rng.permutation(np.tile(np.array(ends, wide), 6))[:83]
    whole = [0 if np.isnan(value) else max(least, min(most, int(np.clip(value, -(2.0**64), 2.0**64)))) for value in x]
    expected = np.array(whole, f"int{bits}").astype(narrow)
    (got,) = outputs_of(text_of(f'R.astype(x, "{narrow}")', {"x": x}), {"x": x}, "native")
    np.testing.assert_array_equal(np.asarray(got), expected)
