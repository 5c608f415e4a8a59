"""Attention as one kernel: against NumPy in float64, ONNX Runtime and the kernels apart, on shapes that hurt."""

import numpy as np
import pytest

import lathe
from tests.models.builder import ModelBuilder
from tests.support.backends import onnxruntime_session

# heads, rows, keys, depth, width of the values
SHAPES = [
    (2, 4, 1, 1, 1), (1, 5, 7, 3, 4), (3, 1, 257, 64, 64), (2, 3, 40, 33, 16),
    (3, 13, 33, 5, 17), (2, 16, 64, 64, 64), (1, 31, 100, 80, 48),
    (5, 37, 37, 16, 16), (2, 64, 513, 8, 33), (12, 128, 128, 64, 64), (1, 4, 2000, 2, 20), (2, 97, 600, 40, 24),
]  # fmt: skip


def attention(heads, rows, keys, depth, width, mask=None, heads_inside=False, batch=2):
    """softmax(q k * scale + mask) v; inputs q, k, v of [batch, heads, length, depth] or [batch, length, heads, depth],
    and "mask" of [rows, keys] where it is "added", or where True keeps a score ("chosen": others are -inf)."""
    m = ModelBuilder("attention", seed=rows)

    def operand(name, length, last, order):
        shape = [batch, length, heads, last] if heads_inside else [batch, heads, length, last]
        value = m.input(name, shape)
        order = [(0, 2, 1, 3)[axis] for axis in order] if heads_inside else order
        return value if order == [0, 1, 2, 3] else m.node("Transpose", value, perm=order)

    query, key = operand("q", rows, depth, [0, 1, 2, 3]), operand("k", keys, depth, [0, 1, 3, 2])
    scores = m.node("Mul", m.node("MatMul", query, key), m.scalar(depth**-0.5))
    if mask == "added":
        scores = m.node("Add", scores, m.input("mask", [rows, keys]))
    if mask == "chosen":
        seen = m.node("Greater", m.input("mask", [rows, keys]), m.scalar(0.0))
        scores = m.node("Where", seen, scores, m.scalar(-np.inf))
    mixed = m.node("MatMul", m.node("Softmax", scores, axis=-1), operand("v", keys, width, [0, 1, 2, 3]))
    if heads_inside:
        mixed = m.node("Transpose", mixed, perm=[0, 2, 1, 3])
    m.output(mixed, "y", [batch, rows, heads, width] if heads_inside else [batch, heads, rows, width])
    return m.build()


def feeds_of(model, batch, seed):
    rng = np.random.default_rng(seed)
    feeds = {}
    for value in model.graph.input:
        shape = [d.dim_value or batch for d in value.type.tensor_type.shape.dim]
        feeds[value.name] = rng.standard_normal(shape).astype(np.float32)
    return feeds


def exact(feeds, mask, heads_inside):
    q, k, v = (feeds[name].astype(np.float64) for name in "qkv")
    if heads_inside:
        q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    if mask == "added":
        scores = scores + feeds["mask"]
    if mask == "chosen":
        scores = np.where(feeds["mask"] > 0, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = weights / weights.sum(-1, keepdims=True) @ v
    return y.swapaxes(1, 2) if heads_inside else y


def assert_close(got, wanted):
    assert got.shape == wanted.shape
    assert np.array_equal(np.isnan(got), np.isnan(wanted))
    assert np.allclose(got, wanted, rtol=2e-5, atol=3e-6, equal_nan=True), np.nanmax(np.abs(got - wanted))


@pytest.mark.parametrize("heads_inside", [False, True])
@pytest.mark.parametrize("mask", [None, "added", "chosen"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_is_what_numpy_and_onnxruntime_compute(shape, mask, heads_inside):
    model = attention(*shape, mask=mask, heads_inside=heads_inside)
    feeds = feeds_of(model, 2, seed=3)
    if mask == "chosen" and shape[1] > 1:
        feeds["mask"][1] = -1  # nothing is seen: NaN, as softmax over -inf alone is
    got = lathe.compile(model)(**feeds)
    assert_close(got, exact(feeds, mask, heads_inside))
    assert_close(got, onnxruntime_session(model).run(None, feeds)[0])


@pytest.mark.parametrize("shape", SHAPES[2:], ids=str)
def test_has_the_same_bits_on_one_and_two_threads(shape):
    model = attention(*shape, mask="added")
    feeds = feeds_of(model, 2, seed=4)
    one, two = (lathe.compile(model, threads=threads)(**feeds) for threads in (1, 2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize("shape", SHAPES[3:], ids=str)
def test_is_as_accurate_as_the_kernels_apart(shape):
    model = attention(*shape, mask="added")
    feeds = feeds_of(model, 2, seed=5)
    wanted = exact(feeds, "added", False)

    def error(**options):
        return np.abs(lathe.compile(model, **options)(**feeds) - wanted).max()

    assert error() <= max(2 * error(disabled_passes=["fuse_attention"]), 1e-6)


@pytest.mark.parametrize("heads_inside", [False, True])
def test_takes_a_batch_that_only_the_run_knows(heads_inside):
    model = attention(3, 21, 70, 16, 24, mask="added", heads_inside=heads_inside, batch="batch")
    executable = lathe.compile(model)
    for batch in (0, 1, 3, 8):
        feeds = feeds_of(model, batch, seed=6)
        feeds = {name: x if name == "mask" else x[:batch] for name, x in feeds.items()}
        assert_close(executable(**feeds), exact(feeds, "added", heads_inside))


LENGTHS = [(1, 1), (1, 40), (3, 70), (0, 5), (5, 0), (17, 23), (28, 32), (43, 257), (64, 64), (97, 600), (200, 129)]


def lengths_of_the_run(rows="rows", keys="keys", mask=False, depth=16, width=24):
    m = ModelBuilder("attention", seed=1)
    q, k, v = (m.input(name, [1, 2, length, last])
               for name, length, last in (("q", rows, depth), ("k", keys, depth), ("v", keys, width)))  # fmt: skip
    scores = m.node("Mul", m.node("MatMul", q, m.node("Transpose", k, perm=[0, 1, 3, 2])), m.scalar(depth**-0.5))
    if mask:
        scores = m.node("Add", scores, m.input("mask", [rows, keys]))
    m.output(m.node("MatMul", m.node("Softmax", scores, axis=-1), v), "y", [1, 2, rows, width])
    return m.build()


def feeds_of_lengths(rows, keys, mask=False, depth=16, width=24, scale=1.0):
    rng = np.random.default_rng(1000 * rows + keys)
    feeds = {"q": scale * rng.standard_normal((1, 2, rows, depth)), "k": rng.standard_normal((1, 2, keys, depth)),
             "v": rng.standard_normal((1, 2, keys, width))}  # fmt: skip
    if mask:  # a third is not seen, and of the second row nothing
        feeds["mask"] = np.where(rng.random((rows, keys)) < 0.3, -np.inf, rng.standard_normal((rows, keys)))
        feeds["mask"][1:2] = -np.inf
    return {name: x.astype(np.float32) for name, x in feeds.items()}


@pytest.fixture(scope="module", params=[False, True], ids=["", "masked"])
def masked_of_any_length(request):
    return request.param, lathe.compile(lengths_of_the_run(mask=request.param))


@pytest.mark.parametrize("rows, keys", LENGTHS)
def test_takes_lengths_that_only_the_run_knows(rows, keys, masked_of_any_length):
    mask, executable = masked_of_any_length
    feeds = feeds_of_lengths(rows, keys, mask)
    got = executable(**feeds)
    assert got.shape == (1, 2, rows, 24)
    if keys:
        assert_close(got, exact(feeds, "added" if mask else None, False))
    else:
        assert not got.any(), "a sum of nothing"


@pytest.mark.parametrize("fixed", [{"rows": 1}, {"rows": 3}, {"rows": 61}, {"keys": 37}], ids=str)
def test_takes_one_length_that_only_the_run_knows(fixed):
    executable = lathe.compile(lengths_of_the_run(**fixed))
    for length in (0, 1, 17, 29, 300):
        sizes = {"rows": length, "keys": length} | fixed
        feeds = feeds_of_lengths(**sizes)
        if sizes["keys"]:
            assert_close(executable(**feeds), exact(feeds, None, False))


def test_takes_lengths_of_which_some_have_kernels_of_their_own():
    executable = lathe.compile(lengths_of_the_run(), dims={"rows": "0..:17", "keys": "0..:23"})
    for rows, keys in [(1, 40), (0, 5), (5, 0), (17, 23), (64, 64)]:
        feeds = feeds_of_lengths(rows, keys)
        if keys:
            assert_close(executable(**feeds), exact(feeds, None, False))


def test_has_the_same_bits_on_one_and_two_threads_where_only_the_run_knows_the_lengths():
    executables = [lathe.compile(lengths_of_the_run(mask=True), threads=threads) for threads in (1, 2)]
    for rows, keys in LENGTHS:
        feeds = feeds_of_lengths(rows, keys, mask=True)
        one, two = (executable(**feeds) for executable in executables)
        assert np.array_equal(one, two, equal_nan=True)


def test_takes_large_scores():
    feeds = feeds_of_lengths(33, 70, scale=200.0)
    got = lathe.compile(lengths_of_the_run())(**feeds)
    assert np.allclose(got, exact(feeds, None, False), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("heads, rows, keys", [(1, 211, 211), (2, 127, 1499), (1, 5, 8209), (1, 40, 33000)])
def test_takes_rows_that_no_block_divides_and_keys_that_fit_no_cache(heads, rows, keys):
    model = attention(heads, rows, keys, 16, 24, mask="added", batch=1)
    feeds = feeds_of(model, 1, seed=8)
    assert_close(lathe.compile(model)(**feeds), exact(feeds, "added", False))
