"""Results of as many elements as the values say, against NumPy."""

import numpy as np
import pytest

import lathe

from .running import check, outputs_of, refusal, text_of

rng = np.random.default_rng(23)
DTYPES = ["float32", "float64", "float16", "int8", "int32", "int64", "uint8", "bool"]


def numbers(shape, dtype="float32"):
    return rng.integers(0, 3 if dtype != "bool" else 2, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6,), (3, 4), (2, 3, 2), (0, 3), (1, 1)])
def test_nonzero(dtype, shape):
    x = numbers(shape, dtype)
    check("R.nonzero(x=x)", {"x": x}, np.stack(np.nonzero(x)).astype("int64"))


def test_nonzero_of_a_scalar_and_of_nan():
    check("R.nonzero(x)", {"x": np.float32(3)}, np.zeros((0, 1), "int64"))
    check("R.nonzero(x)", {"x": np.array([0, np.nan, -0.0, 2], "float32")}, np.array([[1, 3]]))
    check("R.nonzero(x)", {"x": np.zeros((2, 2), "float32")}, np.zeros((2, 0), "int64"))


def unique(x, is_sorted, axis):
    """Values, places of the first, inverse and counts."""
    flat = x.reshape(-1) if axis is None else x
    at = 0 if axis is None else axis
    values, first, inverse, counts = np.unique(flat, True, True, True, axis=at)
    inverse = inverse.reshape(-1)
    if not is_sorted:
        ranked = np.argsort(first, kind="stable")
        values, first, counts = np.take(values, ranked, at), first[ranked], counts[ranked]
        inverse = np.argsort(ranked)[inverse]
    return values, first, inverse, counts


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "axis"), [((9,), None), ((3, 4), None), ((6, 2), 0), ((2, 6), -1), ((2, 5, 2), 1), ((1,), 0)]
)
def test_unique(dtype, shape, axis):
    x = numbers(shape, dtype)
    for is_sorted in (True, False):
        values, first, inverse, counts = unique(x, is_sorted, axis)
        call = f"R.unique(x=x, sorted={is_sorted}, {{}}axis={axis})"
        check(call.format(""), {"x": x}, values)
        all_of_them = "return_index=True, return_inverse=True, return_counts=True, "
        check(call.format(all_of_them), {"x": x}, (values, first, inverse, counts))
        check(call.format("return_counts=True, "), {"x": x}, (values, counts))


def test_unique_by_position():
    x = numbers((2, 5))
    values, first, inverse, counts = unique(x, False, 1)
    check("R.unique(x, False, True, False, True, 1)", {"x": x}, (values, first, counts))
    check("R.unique(x, False, False, True, False, 1)", {"x": x}, (values, inverse))
    check("R.unique(x, 1)", {"x": x}, np.unique(x))


def test_unique_of_nan_and_of_nothing():
    x = np.array([np.nan, 1, np.nan, -np.inf, 1], "float32")
    check("R.unique(x, return_counts=True)", {"x": x}, (np.array([-np.inf, 1, np.nan], "float32"), np.array([1, 2, 2])))
    none, empty = np.zeros(0, "int64"), np.zeros((0, 3), "float32")
    call = "R.unique(x, True, True, True, True, axis={})"
    check(call.format(None), {"x": empty}, (empty.reshape(-1), none, none, none))
    check(call.format(0), {"x": empty}, (empty, none, none, none))
    check(call.format(1), {"x": empty}, (empty[:, :1], np.array([0]), np.zeros(3, "int64"), np.array([3])))


def test_what_follows_knows_the_size():
    x = numbers((4, 5))
    expected = x[:, np.unique(x).astype(int)].sum(1)
    check('R.sum(R.take(x, R.unique(R.astype(x, "int64")), axis=1), axis=[1])', {"x": x}, expected)


SLICES = [
    ((7,), [1], [6], [2]),
    ((7, 5), [0, -3], [7, 100], [3, 1]),
    ((7, 5), [-1, 4], [-100, 0], [-2, -1]),
    ((4, 3), [2, 0], [1, 3], [1, 1]),
    ((0, 3), [0, 2], [5, 0], [1, -1]),
    ((2, 3, 4), [0, 1, -9], [2, -1, 3], [1, 1, 2]),
]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool"])
@pytest.mark.parametrize(("shape", "begin", "end", "strides"), SLICES)
def test_dynamic_strided_slice(dtype, shape, begin, end, strides):
    x = numbers(shape, dtype)
    ends = [e if e > -99 else None for e in end]
    expected = x[tuple(slice(*part) for part in zip(begin, ends, strides, strict=True))]
    arrays = {"x": x, **{name: np.array(v, "int64") for name, v in (("b", begin), ("e", end), ("s", strides))}}
    check("R.dynamic_strided_slice(x=x, begin=b, end=e, strides=s)", arrays, expected, symbolic=("x",))
    constants = ", ".join(f'R.const({v}, "int64")' for v in (begin, end, strides))
    check(f"R.dynamic_strided_slice(x, {constants})", {"x": x}, expected)


def test_dynamic_strided_slice_by_constants_has_a_known_shape():
    x = numbers((7, 5))
    text = text_of("R.dynamic_strided_slice(x, R.const([1, 0]), R.const([6, 3]), R.const([2, 1]))", {"x": x})
    assert 'R.Tensor((3, 3), dtype="float32") = R.dynamic_strided_slice' in lathe.script.from_source(text).script()


def test_dynamic_strided_slice_by_a_stride_that_leads_nowhere():
    arrays = {"x": numbers((4,)), "b": np.array([0]), "e": np.array([4]), "s": np.array([0])}
    for target in ("native", "interp"):
        with pytest.raises(lathe.Error, match="the stride of dimension 0 is 0, but a stride leads on or back"):
            outputs_of(text_of("R.dynamic_strided_slice(x, b, e, s)", arrays), arrays, target)


V, M = np.zeros(3, "float32"), np.zeros((2, 3), "float32")
P = np.ones(2, "int64")


@pytest.mark.parametrize(
    ("expression", "arrays", "message"),
    [
        ("R.nonzero()", {"x": M}, "'x' of nonzero is missing"),
        ("R.nonzero((x, x))", {"x": M}, "is no tensor"),
        ("R.unique(x, axis=2)", {"x": M}, "axis 2 of a tensor of rank 2"),
        ("R.unique(x, axis=-3)", {"x": M}, "axis -3 of a tensor of rank 2"),
        ("R.unique(x, index=True)", {"x": M}, "there is no attribute 'index'"),
        ('R.unique(x, "yes")', {"x": M}, "attribute 'sorted' has a value of the wrong type"),
        ("R.dynamic_strided_slice(x, p, p, v)", {"x": M, "p": P, "v": V}, "must be of integers"),
        ("R.dynamic_strided_slice(x, p, p, p)", {"x": V, "p": P}, "it must be a vector of 1 integers"),
        ("R.dynamic_strided_slice(x, p, p, p)", {"x": M, "p": P[None]}, "it must be a vector of 2 integers"),
        ("R.dynamic_strided_slice(x, p, p, R.const([0, 1]))", {"x": M, "p": P}, "the stride 0 of dimension 0"),
        ("R.dynamic_strided_slice(x, p, p, p)", {"x": np.float32(1), "p": P}, "a scalar has no dimension"),
        ("R.dynamic_strided_slice(x, p, p)", {"x": M, "p": P}, "'strides' of dynamic_strided_slice is missing"),
    ],
)
def test_refusals(expression, arrays, message):
    assert message in refusal(expression, arrays)


def test_a_length_that_is_not_known():
    with pytest.raises(lathe.Error, match="is not known; R.match_cast gives it 2"):
        lathe.script.from_source(text_of("R.dynamic_strided_slice(x, p, p, p)", {"x": M, "p": P}, ("p",)))
