"""Convolutions and pooling of R in any layout, against NumPy."""

import numpy as np
import pytest

from .running import check, refusal

rng = np.random.default_rng(5)


def floats(*shape, dtype="float32"):
    return rng.uniform(-2, 2, shape).astype(dtype)


def laid_out(x, order, to):
    return np.ascontiguousarray(np.transpose(x, [order.index(letter) for letter in to]))


def per_dimension(value, count):
    return [value] * count if isinstance(value, int) else list(value)


def begins_and_ends(padding, count):
    pads = per_dimension(padding, count)
    return list(zip(pads[:count], pads[-count:], strict=True))


def taps(whole, cell, counts, strides, dilation):
    """What the cell of the window sees at each of its positions."""
    ranges = [
        slice(k * d, k * d + (n - 1) * s + 1, s) for k, n, s, d in zip(cell, counts, strides, dilation, strict=True)
    ]
    return whole[(slice(None), slice(None), *ranges)]


def conv(x, w, strides=1, padding=0, dilation=1, groups=1, exact="float64"):
    count = x.ndim - 2
    strides, dilation = per_dimension(strides, count), per_dimension(dilation, count)
    whole = np.pad(x.astype(exact), [(0, 0), (0, 0), *begins_and_ends(padding, count)])
    kernel = w.shape[2:]
    out = [
        (n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(whole.shape[2:], kernel, strides, dilation, strict=True)
    ]
    result = np.zeros((x.shape[0], groups, w.shape[0] // groups, *out), exact)
    weights = w.astype(exact).reshape(groups, w.shape[0] // groups, *w.shape[1:])
    for cell in np.ndindex(*kernel):
        seen = taps(whole, cell, out, strides, dilation)
        seen = seen.reshape(x.shape[0], groups, x.shape[1] // groups, *out)
        result += np.einsum("ngc...,goc->ngo...", seen, weights[(..., *cell)])
    return result.reshape(x.shape[0], w.shape[0], *out)


def conv_transpose(x, w, strides=1, padding=0, output_padding=0, dilation=1, groups=1, exact="float64"):
    count = x.ndim - 2
    strides, dilation = per_dimension(strides, count), per_dimension(dilation, count)
    more, kernel = per_dimension(output_padding, count), w.shape[2:]
    full = [
        (n - 1) * s + (k - 1) * d + 1 for n, k, s, d in zip(x.shape[2:], kernel, strides, dilation, strict=True)
    ]
    sums = np.zeros((x.shape[0], groups, w.shape[1], *[f + m for f, m in zip(full, more, strict=True)]), exact)
    parts = x.astype(exact).reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    weights = w.astype(exact).reshape(groups, w.shape[0] // groups, *w.shape[1:])
    for cell in np.ndindex(*kernel):
        ranges = [
            slice(k * d, k * d + (n - 1) * s + 1, s)
            for k, n, s, d in zip(cell, x.shape[2:], strides, dilation, strict=True)
        ]
        added = np.einsum("ngc...,gco->ngo...", parts, weights[(..., *cell)])
        sums[(slice(None), slice(None), slice(None), *ranges)] += added
    cut = [slice(b, n - e) for (b, e), n in zip(begins_and_ends(padding, count), sums.shape[3:], strict=True)]
    whole = sums[(slice(None), slice(None), slice(None), *cut)]
    return whole.reshape(x.shape[0], -1, *whole.shape[3:])


def pool(x, size, strides=1, padding=0, dilation=1, ceil_mode=False, count_include_pad=False, largest=False):
    count = x.ndim - 2
    size, strides, dilation = (per_dimension(v, count) for v in (size, strides, dilation))
    pads = begins_and_ends(padding, count)
    out = []
    for n, k, s, (b, e), d in zip(x.shape[2:], size, strides, pads, dilation, strict=True):
        room = n + b + e - (k - 1) * d - 1
        positions = -(-room // s) + 1 if ceil_mode else room // s + 1
        out.append(positions - (ceil_mode and (positions - 1) * s >= n + b))
    result = np.zeros((*x.shape[:2], *out), "float64")
    for at in np.ndindex(*out):
        values, places = [], 0
        for cell in np.ndindex(*size):
            where = [p * s + c * d - b for p, s, c, d, (b, _) in zip(at, strides, cell, dilation, pads, strict=True)]
            if all(0 <= i < n for i, n in zip(where, x.shape[2:], strict=True)):
                values.append(x[(slice(None), slice(None), *where)])
            ends = [n + e for n, (_, e) in zip(x.shape[2:], pads, strict=True)]
            places += all(-b <= i < n for i, n, (b, _) in zip(where, ends, pads, strict=True))
        total = np.max(values, 0) if largest else np.sum(values, 0, dtype="float64")
        if not largest:
            total = total / max(places if count_include_pad else len(values), 1)
        result[(slice(None), slice(None), *at)] = total
    return result


def test_conv1d():
    x, w = floats(2, 3, 9), floats(4, 3, 3)
    check("R.nn.conv1d(x, w)", {"x": x, "w": w}, conv(x, w).astype("float32"), rtol=1e-4, atol=1e-5)
    expected = conv(x, w, 2, [1, 2], 2)
    check(
        "R.nn.conv1d(data=x, weight=w, strides=2, padding=(1, 2), dilation=2, groups=1)",
        {"x": x, "w": w},
        expected.astype("float32"),
        symbolic=("x",),
        rtol=1e-4,
        atol=1e-5,
    )
    y, v = floats(2, 9, 4, dtype="float64"), floats(3, 2, 6, dtype="float64")  # NWC, WIO
    expected = conv(laid_out(y, "NWC", "NCW"), laid_out(v, "WIO", "OIW"), padding=1, groups=2)
    expression = 'R.nn.conv1d(y, v, padding=1, groups=2, data_layout="NWC", kernel_layout="WIO")'
    check(expression, {"y": y, "v": v}, laid_out(expected, "NCW", "NWC"))


def test_conv2d():
    x, w = floats(2, 4, 6, 5), floats(6, 4, 3, 2)
    check("R.nn.conv2d(x, w)", {"x": x, "w": w}, conv(x, w).astype("float32"), rtol=1e-4, atol=1e-5)
    for padding, text in [(1, "1"), ([1, 0], "(1, 0)"), ([1, 0, 2, 1], "[1, 0, 2, 1]")]:
        expected = conv(x, w, [2, 1], padding)
        expression = f"R.nn.conv2d(x, w, (2, 1), {text})"
        check(expression, {"x": x, "w": w}, expected.astype("float32"), symbolic=("w",), rtol=1e-4, atol=1e-5)
    whole = floats(1, 0, 4, 4)
    check("R.nn.conv2d(x, w)", {"x": whole, "w": floats(2, 0, 3, 3)}, np.zeros((1, 2, 2, 2), "float32"), symbolic=())
    none = floats(0, 4, 6, 5)
    check("R.nn.conv2d(x, w)", {"x": none, "w": w}, np.zeros((0, 6, 4, 4), "float32"))


@pytest.mark.parametrize("layout", ["NHWC", "HWNC", "CHWN", "NCWH"])
@pytest.mark.parametrize("out", [None, "NCHW", "NHWC", "WHCN"])
def test_conv2d_layouts(layout, out):
    x, w = floats(2, 4, 6, 5), floats(6, 2, 3, 2)
    expected = laid_out(conv(x, w, padding=[0, 1], groups=2), "NCHW", out or layout).astype("float32")
    arrays = {"x": laid_out(x, "NCHW", layout), "w": laid_out(w, "OIHW", "HWIO")}
    out_text = "" if out is None else f', out_layout="{out}"'
    expression = (
        f'R.nn.conv2d(x, w, padding=(0, 1), groups=2, data_layout="{layout}", kernel_layout="HWIO"{out_text})'
    )
    check(expression, arrays, expected, symbolic=("x",), rtol=1e-4, atol=1e-5)


def test_conv2d_dtypes():
    x, w = rng.integers(-128, 127, (1, 3, 4, 4)).astype("int8"), rng.integers(-128, 127, (2, 3, 3, 3)).astype("int8")
    expected = conv(x, w, exact="int64").astype("int32")
    check('R.nn.conv2d(x, w, out_dtype="int32")', {"x": x, "w": w}, expected)
    h, v = floats(1, 3, 4, 4, dtype="float16"), floats(2, 3, 3, 3, dtype="float16")
    check("R.nn.conv2d(x, w)", {"x": h, "w": v}, conv(h, v).astype("float16"), rtol=2e-3)
    expected = conv(h, v).astype("float32")
    check('R.nn.conv2d(x, w, out_dtype="float32")', {"x": h, "w": v}, expected, rtol=1e-4, atol=1e-5)


def test_conv3d():
    x, w = floats(1, 2, 4, 5, 3), floats(3, 2, 2, 3, 1)
    expected = conv(x, w, [1, 2, 1], [0, 1, 2, 1, 0, 0]).astype("float32")
    expression = "R.nn.conv3d(x, w, strides=(1, 2, 1), padding=(0, 1, 2, 1, 0, 0))"
    check(expression, {"x": x, "w": w}, expected, rtol=1e-4, atol=1e-5)
    arrays = {"x": laid_out(x, "NCDHW", "NDHWC"), "w": laid_out(w, "OIDHW", "DHWIO")}
    expression = 'R.nn.conv3d(x, w, data_layout="NDHWC", kernel_layout="DHWIO", out_layout="NCDHW")'
    check(expression, arrays, conv(x, w).astype("float32"), rtol=1e-4, atol=1e-5)


def test_conv1d_transpose():
    x, w = floats(2, 3, 4), floats(3, 5, 3)
    check("R.nn.conv1d_transpose(x, w)", {"x": x, "w": w}, conv_transpose(x, w).astype("float32"), rtol=1e-4, atol=1e-5)
    expected = conv_transpose(x, w, 3, [1, 2], 2, 2).astype("float32")
    expression = (
        "R.nn.conv1d_transpose(data=x, weight=w, strides=3, padding=(1, 2), output_padding=2, dilation=2, groups=1)"
    )
    check(expression, {"x": x, "w": w}, expected, rtol=1e-4, atol=1e-5)
    none = floats(2, 3, 0)
    check("R.nn.conv1d_transpose(x, w)", {"x": none, "w": w}, np.zeros((2, 5, 0), "float32"))


def test_conv2d_transpose():
    x, w = floats(1, 4, 3, 4), floats(4, 2, 2, 3)
    expected = conv_transpose(x, w, [2, 1], [1, 0, 0, 1], [1, 0], groups=2)
    expression = "R.nn.conv2d_transpose(x, w, (2, 1), (1, 0, 0, 1), (1, 0), 1, 2)"
    check(expression, {"x": x, "w": w}, expected.astype("float32"), rtol=1e-4, atol=1e-5)
    arrays = {"x": laid_out(x, "NCHW", "NHWC"), "w": laid_out(w, "IOHW", "HWOI")}
    expression = (
        "R.nn.conv2d_transpose(x, w, strides=(2, 1), padding=(1, 0, 0, 1), output_padding=(1, 0), groups=2, "
        'data_layout="NHWC", kernel_layout="HWOI", out_layout="{}", out_dtype="float64")'
    )
    for out in ("NHWC", "CNHW"):
        check(expression.format(out), arrays, laid_out(expected, "NCHW", out))
    i, k = rng.integers(-128, 127, (1, 2, 3, 3)).astype("int8"), rng.integers(-128, 127, (2, 1, 2, 2)).astype("int8")
    expected = conv_transpose(i, k, exact="int64").astype("int32")
    check('R.nn.conv2d_transpose(x, w, out_dtype="int32")', {"x": i, "w": k}, expected)
    h, v = floats(1, 2, 3, 3, dtype="float16"), floats(2, 1, 2, 2, dtype="float16")
    check("R.nn.conv2d_transpose(x, w)", {"x": h, "w": v}, conv_transpose(h, v).astype("float16"), rtol=2e-3)


def test_conv3d_transpose():
    x, w = floats(1, 2, 2, 3, 2), floats(2, 3, 2, 1, 2)
    expected = conv_transpose(x, w, [1, 2, 2], 0, [0, 1, 0]).astype("float32")
    expression = "R.nn.conv3d_transpose(x, w, strides=(1, 2, 2), output_padding=(0, 1, 0))"
    check(expression, {"x": x, "w": w}, expected, rtol=1e-4, atol=1e-5)


POOL = [
    {"pool_size": 2},
    {"pool_size": 3, "strides": 2, "padding": 1},
    {"pool_size": 2, "strides": 3, "padding": 1, "ceil_mode": True, "count_include_pad": True},
    {"pool_size": 2, "dilation": 2, "strides": 2, "ceil_mode": True},
]


POOLS = {
    1: ("R.nn.max_pool1d(x, {})", "R.nn.avg_pool1d(x, {})"),
    2: ("R.nn.max_pool2d(x, {})", "R.nn.avg_pool2d(x, {})"),
    3: ("R.nn.max_pool3d(x, {})", "R.nn.avg_pool3d(x, {})"),
}


@pytest.mark.parametrize("how", POOL)
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_pool(how, dimensions):
    x = floats(2, 3, *[6, 5, 4][:dimensions])
    options = {"size": how["pool_size"], **{key: value for key, value in how.items() if key != "pool_size"}}
    text = ", ".join(f"{key}={value!r}" for key, value in how.items())
    largest, mean = POOLS[dimensions]
    check(largest.format(text), {"x": x}, pool(x, **options, largest=True).astype("float32"))
    check(mean.format(text), {"x": x}, pool(x, **options).astype("float32"))


def test_max_pool2d():
    x = floats(2, 3, 6, 5)
    expected = pool(x, [3, 2], [2, 1], [1, 0, 0, 1], largest=True).astype("float32")
    check("R.nn.max_pool2d(x, (3, 2), (2, 1), (1, 0, 0, 1))", {"x": x}, expected)
    check("R.nn.max_pool2d(x)", {"x": x}, x)
    last = laid_out(x, "NCHW", "NHWC")
    expression = 'R.nn.max_pool2d(x, pool_size=(3, 2), strides=(2, 1), padding=(1, 0, 0, 1), layout="NHWC")'
    check(expression, {"x": last}, laid_out(expected, "NCHW", "NHWC"))
    expression = 'R.nn.max_pool2d(x, (3, 2), (2, 1), (1, 0, 0, 1), layout="{}", out_layout="{}")'
    for order, out in [("NHWC", "NCHW"), ("CNHW", "NHWC"), ("HWCN", "HWCN")]:
        check(expression.format(order, out), {"x": laid_out(x, "NCHW", order)}, laid_out(expected, "NCHW", out))
    i = rng.integers(-9, 9, (1, 2, 4, 4)).astype("int8")
    check("R.nn.max_pool2d(x, 2)", {"x": i}, pool(i, 2, largest=True).astype("int8"))


def test_avg_pool2d():
    x = rng.integers(-128, 127, (1, 2, 5, 5)).astype("int8")
    check("R.nn.avg_pool2d(x, 3)", {"x": x}, np.trunc(pool(x, 3)).astype("int8"))
    check("R.nn.avg_pool2d(x, 1, padding=1)", {"x": x}, np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]))
    h = floats(1, 2, 5, 5, dtype="float16")
    check("R.nn.avg_pool2d(x, 3, 2, 1)", {"x": h}, pool(h, 3, 2, 1).astype("float16"), rtol=2e-3)
    check("R.nn.avg_pool2d(x, 2)", {"x": floats(0, 2, 5, 5)}, np.zeros((0, 2, 4, 4), "float32"))


def adaptive(x, sizes):
    y = x.astype("float64")
    for axis, out in enumerate(sizes, 2):
        n = x.shape[axis]
        parts = [np.take(y, range(i * n // out, -(-(i + 1) * n // out)), axis) for i in range(out)]
        y = np.stack([part.mean(axis) for part in parts], axis)
    return y


def test_adaptive_avg_pool1d():
    x = floats(2, 3, 7)
    for out in (1, 3, 7, 9):
        check(f"R.nn.adaptive_avg_pool1d(x, {out})", {"x": x}, adaptive(x, [out]).astype("float32"))
    check("R.nn.adaptive_avg_pool1d(x)", {"x": x}, x)
    check("R.nn.adaptive_avg_pool1d(x, 2)", {"x": floats(2, 0, 7)}, np.zeros((2, 0, 2), "float32"))


def test_adaptive_avg_pool2d():
    x = floats(2, 3, 7, 4)
    check("R.nn.adaptive_avg_pool2d(x, (3, 2))", {"x": x}, adaptive(x, [3, 2]).astype("float32"))
    check("R.nn.adaptive_avg_pool2d(x, output_size=1)", {"x": x}, adaptive(x, [1, 1]).astype("float32"))
    expression = 'R.nn.adaptive_avg_pool2d(data=x, output_size=(3, 2), layout="NHWC", out_layout="NCHW")'
    check(expression, {"x": laid_out(x, "NCHW", "NHWC")}, adaptive(x, [3, 2]).astype("float32"))
    i = rng.integers(-128, 127, (1, 2, 5, 5)).astype("int8")
    mean = i.astype("float64").mean((2, 3), keepdims=True)  # rounded once; a mean of means may miss a whole number
    check("R.nn.adaptive_avg_pool2d(x, 1)", {"x": i}, np.trunc(mean).astype("int8"))
    h = floats(1, 1, 40, 40, dtype="float16")
    check("R.nn.adaptive_avg_pool2d(x, 1)", {"x": h}, adaptive(h, [1, 1]).astype("float16"), rtol=2e-3, atol=1e-4)


def test_adaptive_avg_pool3d():
    x = floats(1, 2, 3, 4, 5, dtype="float64")
    check("R.nn.adaptive_avg_pool3d(x, (2, 3, 1))", {"x": x}, adaptive(x, [2, 3, 1]))
    check("R.nn.adaptive_avg_pool3d(x)", {"x": x}, x)


X, W = floats(1, 4, 5, 5), floats(2, 4, 3, 3)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("R.nn.conv1d(x, w)", "data has 3 dimensions"),
        ("R.nn.conv2d(x, v)", "weight has 4 dimensions"),
        ("R.nn.conv2d(x, d)", "need one dtype"),
        ('R.nn.conv2d(x, w, data_layout="NCHW4c")', "data_layout is the letters of 'NCHW'"),
        ('R.nn.conv2d(x, w, kernel_layout="OOHW")', "kernel_layout is the letters of 'OIHW'"),
        ('R.nn.conv2d(x, w, out_layout="NCW")', "out_layout is the letters of 'NCHW'"),
        ("R.nn.conv2d(x, w, groups=0)", "groups is 0"),
        ("R.nn.conv2d(x, w, groups=2)", "channels"),
        ("R.nn.conv2d(x, w, strides=(1, 2, 3))", "strides takes one number or 2, not 3"),
        ("R.nn.conv2d(x, w, strides=0)", "strides is 0"),
        ("R.nn.conv2d(x, w, padding=(1, 2, 3))", "padding takes 1, 2 or 4 numbers, not 3"),
        ("R.nn.conv2d(x, w, padding=-1)", "padding is -1"),
        ("R.nn.conv2d(x, w, dilation=9223372036854775807)", "dilation is 9223372036854775807"),
        ("R.nn.conv2d(x, w, dilation=3)", "spans"),
        ('R.nn.conv2d(x, w, out_dtype="bool")', "out_dtype is a numeric dtype"),
        ("R.nn.conv2d(b, b)", "data holds numbers"),
        ("R.nn.conv2d_transpose(x, w)", "data has 4 channels, but the kernel takes 2"),
        ("R.nn.conv2d_transpose(x, k, groups=3)", "cannot be divided into 3 groups"),
        ("R.nn.conv2d_transpose(x, k, output_padding=1)", "output_padding is 1"),
        ("R.nn.conv2d_transpose(x, k, output_padding=(0, 0, 0))", "output_padding takes one number or 2"),
        ("R.nn.max_pool2d(x, 6)", "spans"),
        ("R.nn.max_pool1d(x)", "data has 3 dimensions"),
        ("R.nn.max_pool2d(x, 0)", "pool_size is 0"),
        ("R.nn.avg_pool2d(x, (1, 2, 3))", "pool_size takes one number or 2"),
        ('R.nn.avg_pool2d(x, layout="NCDHW")', "layout is the letters of 'NCHW'"),
        ("R.nn.adaptive_avg_pool2d(x, 0)", "output_size is 0"),
        ("R.nn.adaptive_avg_pool2d(x, (1, 2, 3))", "output_size takes one number or 2"),
        ("R.nn.adaptive_avg_pool2d(b, 1)", "data holds numbers"),
    ],
)
def test_refusals(expression, says):
    arrays = {"x": X, "w": W, "k": floats(4, 2, 3, 3), "v": floats(2, 4, 3)}
    arrays.update(d=W.astype("float64"), b=np.zeros((1, 1, 2, 2), "bool"))
    message = refusal(expression, arrays)
    assert says in message, message
