"""Normalisation, attention and losses of R, against NumPy."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

import lathe

from .running import check, outputs_of, refusal, text_of

rng = np.random.default_rng(6)


def floats(*shape, dtype="float32"):
    return rng.uniform(-2, 2, shape).astype(dtype)


def normalised(x, axes, epsilon=1e-5):
    x = x.astype("float64")
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def test_rms_norm():
    def rms(x, w, axes, epsilon=1e-5):
        x = x.astype("float64")
        return x / np.sqrt((x * x).mean(axes, keepdims=True) + epsilon) * w

    x, w = floats(2, 3, 5), floats(5)
    check("R.nn.rms_norm(x, w)", {"x": x, "w": w}, rms(x, w, -1).astype("float32"))
    check("R.nn.rms_norm(data=x, weight=w, axes=[-1], epsilon=0.5)", {"x": x, "w": w}, rms(x, w, -1, 0.5).astype("f4"))
    v = floats(3, 5)
    check("R.nn.rms_norm(x, v, axes=(1, 2))", {"x": x, "v": v}, rms(x, v, (1, 2)).astype("float32"))
    u = np.ascontiguousarray(v.T)
    check("R.nn.rms_norm(x, u, axes=(-1, 1))", {"x": x, "u": u}, rms(x, v, (1, 2)).astype("float32"))
    first = floats(2)
    expected = rms(x, first[:, None, None], 0).astype("float32")
    check("R.nn.rms_norm(x, w, axes=0)", {"x": x, "w": first}, expected)
    h, k = (300 * floats(2, 9)).astype("float16"), floats(9, dtype="float16")  # squares beyond float16
    check("R.nn.rms_norm(x, w)", {"x": h, "w": k}, rms(h, k, -1).astype("float16"), rtol=2e-3)
    alone = np.array(2, "float32")
    check("R.nn.rms_norm(x, w, axes=[])", {"x": x, "w": alone}, rms(x, alone, ()).astype("float32"))
    check("R.nn.rms_norm(x, w)", {"x": floats(0, 5), "w": w}, np.zeros((0, 5), "float32"))
    check("R.nn.rms_norm(x, w)", {"x": floats(4, 0), "w": floats(0)}, np.zeros((4, 0), "float32"))


def test_batch_norm():
    x, parameters = floats(3, 4, 5), {name: floats(4) for name in "gbm"} | {"v": np.abs(floats(4)) + 0.5}
    arrays = {"x": x} | parameters
    gamma, beta, mean, variance = (parameters[name].reshape(4, 1) for name in "gbmv")

    def normal(mean, variance, gamma=gamma, beta=beta, epsilon=1e-5):
        return ((x - mean) / np.sqrt(variance + epsilon) * gamma + beta).astype("float32")

    stays = (parameters["m"], parameters["v"])
    check("R.nn.batch_norm(x, g, b, m, v, axis=1, training=False)", arrays, (normal(mean, variance), *stays))
    expected = (normal(mean, variance, 1, 0, 0.25), *stays)
    check("R.nn.batch_norm(x, g, b, m, v, 1, 0.25, False, False, 0.1, False)", arrays, expected)
    # In training by the batch's own, to which the moving ones are moved.
    now = x.mean((0, 2)), x.var((0, 2))
    moved = [(0.75 * old + 0.25 * new).astype("float32") for old, new in zip(stays, now, strict=True)]
    expected = (normal(*(each.reshape(4, 1) for each in now)), *moved)
    check("R.nn.batch_norm(x, g, b, m, v, axis=-2, momentum=0.25)", arrays, expected, rtol=1e-4, atol=1e-5)
    assert "one number for each of 4 channels" in refusal("R.nn.batch_norm(x, m, m, m, m)", {"x": x, "m": floats(5)})
    assert "axis 3 of" in refusal("R.nn.batch_norm(x, m, m, m, m, axis=3)", {"x": x, "m": floats(4)})


def test_group_norm():
    def group(x, gamma, beta, groups, channel, axes, epsilon=1e-5):
        parted = x.reshape(*x.shape[:channel], groups, x.shape[channel] // groups, *x.shape[channel + 1 :])
        over = (channel + 1, *[axis if axis < channel else axis + 1 for axis in axes])
        column = [-1] + [1] * (x.ndim - channel - 1)
        return normalised(parted, over, epsilon).reshape(x.shape) * gamma.reshape(column) + beta.reshape(column)

    x, gamma, beta = floats(2, 6, 3, 4), floats(6), floats(6)
    arrays = {"x": x, "g": gamma, "b": beta}
    expected = group(x, gamma, beta, 3, 1, [2, 3]).astype("float32")
    check("R.nn.group_norm(x, g, b, 3, 1, [2, 3])", arrays, expected, rtol=1e-4, atol=1e-5)
    expected = group(x, gamma, np.zeros(6), 2, 1, [2, 3], 0.5).astype("float32")
    expression = (
        "R.nn.group_norm(data=x, gamma=g, beta=b, num_groups=2, channel_axis=-3, axes=(-1, -2), epsilon=0.5, "
        "center=False, scale=True)"
    )
    check(expression, arrays, expected, rtol=1e-4, atol=1e-5)
    expected = group(x, np.ones(6), beta, 6, 1, [2]).astype("float32")
    check("R.nn.group_norm(x, g, b, 6, 1, 2, scale=False)", arrays, expected, rtol=1e-4, atol=1e-5)
    last = floats(2, 3, 4, 6, dtype="float64")
    arrays = {"x": last, "g": gamma.astype("float64"), "b": beta.astype("float64")}
    check("R.nn.group_norm(x, g, b, 3, 3, [1, 2])", arrays, group(last, gamma, beta, 3, 3, [1, 2]))
    h = floats(1, 4, 5, dtype="float16")
    arrays = {"x": h, "g": np.ones(4, "float16"), "b": np.zeros(4, "float16")}
    expected = group(h, np.ones(4), np.zeros(4), 2, 1, [2]).astype("float16")
    check("R.nn.group_norm(x, g, b, 2, 1, [2])", arrays, expected, rtol=2e-3, atol=1e-3)


def test_instance_norm():
    x, gamma, beta = floats(2, 3, 4, 5), floats(3), floats(3)
    arrays, column = {"x": x, "g": gamma, "b": beta}, (-1, 1, 1)
    y = normalised(x, (2, 3))
    expected = (y * gamma.reshape(column) + beta.reshape(column)).astype("float32")
    check("R.nn.instance_norm(x, g, b, 1, [2, 3])", arrays, expected, rtol=1e-4, atol=1e-5)
    expected = (normalised(x, (2, 3), 0.25) + beta.reshape(column)).astype("float32")
    expression = (
        "R.nn.instance_norm(data=x, gamma=g, beta=b, channel_axis=1, axes=(-1, 2), epsilon=0.25, "
        "center=True, scale=False)"
    )
    check(expression, arrays, expected, rtol=1e-4, atol=1e-5)
    expected = (y * gamma.reshape(column)).astype("float32")
    check("R.nn.instance_norm(x, g, b, 1, [2, 3], center=False)", arrays, expected, rtol=1e-4, atol=1e-5)
    last = floats(2, 6, 3)
    arrays = {"x": last, "g": gamma, "b": beta}
    expected = (normalised(last, (1,)) * gamma + beta).astype("float32")
    check("R.nn.instance_norm(x, g, b, -1, 1)", arrays, expected, rtol=1e-4, atol=1e-5)
    arrays = {"x": floats(0, 6, 3), "g": gamma, "b": beta}
    check("R.nn.instance_norm(x, g, b, -1, 1)", arrays, np.zeros((0, 6, 3), "float32"))


def attention(q, k, v, bias=0.0, scale=None, causal=None, window=None):
    q, k, v = (x.astype("float64") for x in (q, k, v))
    scale = q.shape[3] ** -0.5 if scale is None else scale
    scores = np.einsum("bsnh,btnh->bnst", q, k) * scale + bias
    own = np.arange(q.shape[1])[:, None] + (k.shape[1] - q.shape[1] if causal == "BottomRight" else 0)
    keys = np.arange(k.shape[1])[None, :]
    seen = np.ones((q.shape[1], k.shape[1]), bool)
    if causal or window:
        seen &= keys <= own
    if window:
        seen &= keys > own - window
    sees = seen.any(1)[:, None]
    shares = softmax(np.where(seen | ~sees, scores, -np.inf), -1) * sees
    return np.einsum("bnst,btnh->bsnh", shares, v)


def operands(queries=4, keys=6, dtype="float32"):
    return {
        "q": floats(2, queries, 3, 5, dtype=dtype),
        "k": floats(2, keys, 3, 5, dtype=dtype),
        "v": floats(2, keys, 3, 2, dtype=dtype),
    }


def test_attention():
    arrays = operands()
    q, k, v = arrays.values()
    check("R.nn.attention(q, k, v)", arrays, attention(q, k, v).astype("float32"))
    check("R.nn.attention(q, k, v, scale=0.3)", arrays, attention(q, k, v, scale=0.3).astype("float32"))
    for bias in (floats(2, 3, 4, 6), floats(2, 1, 1, 6), floats(1, 1, 4, 6), floats(4, 6)):
        expected = attention(q, k, v, bias, scale=2).astype("float32")
        check("R.nn.attention(q, k, v, b, 2)", {**arrays, "b": bias}, expected, symbolic=("q", "k", "v"))
    expression = 'R.nn.attention(query=q, key=k, value=v, bias=b, scale=None, causal_mask="TopLeft", window_size=None)'
    bias = floats(2, 3, 4, 6)
    check(expression, {**arrays, "b": bias}, attention(q, k, v, bias, causal="TopLeft").astype("float32"))
    half = operands(dtype="float16")
    expected = attention(*half.values()).astype("float16")
    check("R.nn.attention(q, k, v)", half, expected, rtol=2e-3, atol=1e-3)
    none = operands(queries=0)
    check("R.nn.attention(q, k, v)", none, np.zeros((2, 0, 3, 2), "float32"))


@pytest.mark.parametrize("causal", ["TopLeft", "BottomRight"])
@pytest.mark.parametrize(("queries", "keys"), [(4, 6), (5, 3), (3, 3)])
def test_attention_masks(causal, queries, keys):
    arrays = operands(queries, keys)
    expected = attention(*arrays.values(), causal=causal).astype("float32")
    check(f'R.nn.attention(q, k, v, causal_mask="{causal}")', arrays, expected)
    for window in (1, 2):
        expected = attention(*arrays.values(), causal=causal, window=window).astype("float32")
        check(f'R.nn.attention(q, k, v, causal_mask="{causal}", window_size={window})', arrays, expected)
    expected = attention(*arrays.values(), window=2).astype("float32")
    check("R.nn.attention(q, k, v, window_size=2)", arrays, expected)


def test_attention_bias():
    arrays = {**operands(), "b": floats(2, 3, 4, 6)}
    expected = attention(*arrays.values()).astype("float32")
    check("R.nn.attention_bias(q, k, v, b)", arrays, expected)
    expected = attention(*arrays.values(), causal="BottomRight", window=2, scale=0.5).astype("float32")
    expression = (
        'R.nn.attention_bias(query=q, key=k, value=v, bias=b, scale=0.5, causal_mask="BottomRight", window_size=2)'
    )
    check(expression, arrays, expected)


def test_cross_entropy_with_logits():
    p, t = floats(3, 4), floats(3, 4)
    expected = np.array(-(p * t).sum() / 3, "float32")
    check("R.nn.cross_entropy_with_logits(p, t)", {"p": p, "t": t}, expected)
    expression = "R.nn.cross_entropy_with_logits(predictions=p, labels=t)"
    check(expression, {"p": p[0], "t": t[0]}, np.array(-(p[0] * t[0]).sum(), "float32"))
    x, y = floats(2, 3, 2, dtype="float64"), floats(2, 3, 2, dtype="float64")
    check("R.nn.cross_entropy_with_logits(p, t)", {"p": x, "t": y}, np.array(-(x * y).sum() / 2))
    h = np.full((2, 5000), 4, "float16")  # the sum is beyond float16, the mean is not
    expected = np.array(-40000, "float16")
    check("R.nn.cross_entropy_with_logits(p, t)", {"p": h, "t": np.full((2, 5000), 2, "float16")}, expected)


def nll(p, t, w=None, reduction="mean", ignored=-100):
    p = p.astype("float64")
    w = np.ones(p.shape[1]) if w is None else w.astype("float64")
    counts = t != ignored
    of = np.where(counts, t, 0)
    weight = w[of] * counts
    loss = -np.take_along_axis(p, of[:, None], 1)[:, 0] * weight
    return {"none": loss, "sum": loss.sum(), "mean": loss.sum() / weight.sum()}[reduction]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("rest", [(), (4,), (2, 3)])
def test_nll_loss(reduction, rest):
    p = log_softmax(floats(3, 5, *rest), 1).astype("float32")
    t, w = rng.integers(0, 5, (3, *rest)).astype("int64"), rng.uniform(0.1, 2, 5).astype("float32")
    t.flat[1] = -100
    expected = np.asarray(nll(p, t, w, reduction)).astype("float32")
    expression = f'R.nn.nll_loss(predictions=p, targets=t, weights=w, reduction="{reduction}", ignore_index=-100)'
    check(expression, {"p": p, "t": t, "w": w}, expected)
    narrow = t.astype("int32")
    narrow.flat[1] = 2
    expected = np.asarray(nll(p, narrow, None, reduction, 2)).astype("float32")
    check(f'R.nn.nll_loss(p, t, reduction="{reduction}", ignore_index=2)', {"p": p, "t": narrow}, expected)


def test_nll_loss_of_one():
    p, w = floats(5), floats(5)
    arrays = {"p": p, "t": np.array(3, "int64"), "w": w}
    check("R.nn.nll_loss(p, t, w)", arrays, np.array(-p[3], "float32"))
    check('R.nn.nll_loss(p, t, w, "none")', arrays, np.array(-p[3] * w[3], "float32"))
    h = floats(3, 4, dtype="float16")
    t = np.array([0, 3, 1], "int64")
    check("R.nn.nll_loss(p, t)", {"p": h, "t": t}, np.asarray(nll(h, t)).astype("float16"), rtol=2e-3)
    arrays = {"p": floats(0, 4), "t": np.zeros(0, "int64")}
    check('R.nn.nll_loss(p, t, reduction="sum")', arrays, np.array(0, "float32"))


@pytest.mark.parametrize("target", ["native", "interp"])
@pytest.mark.parametrize("wrong", [5, -1])
def test_nll_loss_of_no_class(target, wrong):
    arrays = {"p": floats(3, 5), "t": np.array([0, wrong, 1], "int64")}
    with pytest.raises(lathe.Error, match=f"targets of R.nn.nll_loss hold {wrong}"):
        outputs_of(text_of("R.nn.nll_loss(p, t)", arrays), arrays, target)


ARRAYS = {
    **operands(),
    "x": floats(2, 6, 4),
    "i": np.ones((2, 6, 4), "int32"),
    "c": floats(6),
    "d": floats(4),
    "s": np.array(1.0, "float32"),
    "t": np.zeros((2, 4), "int64"),
}


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("R.nn.rms_norm(x, c)", "weight has the extents of the normalised axes, [4]"),
        ("R.nn.rms_norm(x, d, axes=3)", "axis 3"),
        ("R.nn.rms_norm(x, x, axes=(1, 1, 2))", "an axis is named twice"),
        ("R.nn.rms_norm(i, d)", "data is of a floating dtype, not int32"),
        ("R.nn.group_norm(x, c, c, 4, 1, [2])", "6 channels cannot be divided into 4 groups"),
        ("R.nn.group_norm(x, c, c, 0, 1, [2])", "num_groups is 0"),
        ("R.nn.group_norm(x, c, c, 2, 1, [1, 2])", "axes names the channel axis 1"),
        ("R.nn.group_norm(x, c, d, 2, 1, [2])", "beta has one number for each of 6 channels"),
        ("R.nn.group_norm(x, c, c)", "the attribute 'num_groups' is missing"),
        ("R.nn.group_norm(x, c, c, 2, 5, [2])", "channel_axis 5"),
        ("R.nn.instance_norm(x, c, c, 1)", "the attribute 'axes' is missing"),
        ("R.nn.instance_norm(x, c, c, 1, [1])", "axes names the channel axis 1"),
        ("R.nn.instance_norm(x, d, c, 1, [2])", "gamma has one number for each of 6 channels"),
        ("R.nn.attention(x, k, v)", "query has 4 dimensions"),
        ("R.nn.attention(q, v, k)", "differ in the size of a head"),
        ('R.nn.attention(q, k, v, causal_mask="Left")', "causal_mask is 'TopLeft' or 'BottomRight', not 'Left'"),
        ("R.nn.attention(q, k, v, window_size=0)", "window_size is 0"),
        ("R.nn.attention(q, k, v, x)", "the bias [2, 6, 4] does not broadcast"),
        ("R.nn.attention_bias(q, k, v)", "argument 'bias' of nn.attention_bias is missing"),
        ("R.nn.cross_entropy_with_logits(x, c)", "differ in shape"),
        ("R.nn.cross_entropy_with_logits(i, i)", "predictions is of a floating dtype"),
        ("R.nn.nll_loss(x, x)", "targets are integers"),
        ("R.nn.nll_loss(x, i)", "predictions are [batch, classes, …] or [classes]"),
        ("R.nn.nll_loss(x, t, d)", "weights have one number for each of 6 classes"),
        ('R.nn.nll_loss(x, t, reduction="max")', "reduction is 'mean', 'sum' or 'none', not 'max'"),
        ("R.nn.nll_loss(s, t)", "predictions have at least one dimension"),
    ],
)
def test_refusals(expression, says):
    message = refusal(expression, ARRAYS)
    assert says in message, message
