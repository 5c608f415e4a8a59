"""Images in R: resizing, reading at places of a grid, and pixels out of channels, against NumPy."""

import numpy as np
import pytest

import lathe

from .running import check, outputs_of, refusal, text_of

rng = np.random.default_rng(7)


def floats(*shape, dtype="float32"):
    return rng.uniform(-2, 2, shape).astype(dtype)


def laid_out(x, order, to):
    return np.ascontiguousarray(np.transpose(x, [order.index(letter) for letter in to]))


def shuffled(x, r):
    *outer, c, h, w = x.shape
    result = np.empty((*outer, c // (r * r), h * r, w * r), x.dtype)
    for i in range(r):
        for j in range(r):
            result[..., i::r, j::r] = x[..., i * r + j :: r * r, :, :]
    return result


def test_pixel_shuffle():
    x = floats(2, 8, 3, 4)
    check("R.nn.pixel_shuffle(x, 2)", {"x": x}, shuffled(x, 2))
    check("R.nn.pixel_shuffle(data=x, upscale_factor=1)", {"x": x}, x)
    y = rng.integers(-9, 9, (9, 2, 1)).astype("int32")
    check("R.nn.pixel_shuffle(x, 3)", {"x": y}, shuffled(y, 3))
    check("R.nn.pixel_shuffle(x, 2)", {"x": floats(2, 3, 4, 0, 2)}, np.zeros((2, 3, 1, 0, 4), "float32"))


def cubic_weight(d, a):
    d = abs(d)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def position(mode, i, own, out, low, high):
    scale = own / out
    return {
        "half_pixel": (i + 0.5) * scale - 0.5,
        "align_corners": i * (own - 1) / (out - 1) if out > 1 else 0.0,
        "asymmetric": i * scale,
        "pytorch_half_pixel": (i + 0.5) * scale - 0.5 if out > 1 else 0.0,
        "tf_half_pixel_for_nn": (i + 0.5) * scale,
        "tf_crop_and_resize": (
            (low + i * (high - low) / (out - 1)) * (own - 1) if out > 1 else (low + high) / 2 * (own - 1)
        ),
    }[mode]


ROUND = {
    "round": lambda p: np.floor(p + 0.5),
    "": lambda p: np.floor(p + 0.5),
    "round_prefer_floor": lambda p: np.ceil(p - 0.5),
    "round_prefer_ceil": lambda p: np.floor(p + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def matrix(own, out, method, mode, rounding, alpha, exclude, low, high):
    """The weights by which `own` elements make `out`, and which of these lie outside."""
    weights, outside = np.zeros((out, own)), np.zeros(out, bool)
    for i in range(out):
        p = position(mode, i, own, out, low, high)
        outside[i] = mode == "tf_crop_and_resize" and not 0 <= p <= own - 1
        if method == "nearest_neighbor":
            weights[i, int(np.clip(ROUND[rounding](p), 0, own - 1))] = 1
            continue
        first = int(np.floor(p))
        reach = range(first, first + 2) if method == "linear" else range(first - 1, first + 3)
        row = np.zeros(own)
        for k in reach:
            weight = max(1 - abs(p - k), 0) if method == "linear" else cubic_weight(p - k, alpha)
            if method == "cubic" and exclude and not 0 <= k < own:
                continue
            row[np.clip(k, 0, own - 1)] += weight
        weights[i] = row / row.sum() if method == "cubic" and exclude else row
    return weights, outside


def resized(
    x, size, method="linear", mode="half_pixel", rounding="round", alpha=-0.75, exclude=0, roi=None, beyond=0.0
):
    y = x.astype("float64")
    for axis in (0, 1):
        low, high = (roi[axis], roi[axis + 2]) if roi else (0, 1)
        weights, outside = matrix(y.shape[2 + axis], size[axis], method, mode, rounding, alpha, exclude, low, high)
        y = np.moveaxis(np.tensordot(weights, y, (1, 2 + axis)), 0, 2 + axis)
        y[(slice(None), slice(None), *[slice(None)] * axis, outside)] = beyond
    return y


MODES = ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
def test_resize2d(method, mode):
    x = floats(2, 3, 5, 4)
    for size in [(8, 7), (3, 4), (1, 2)]:
        expression = (
            f'R.image.resize2d(data=x, size={size}, method="{method}", coordinate_transformation_mode="{mode}")'
        )
        expected = resized(x, size, method, mode).astype("float32")
        check(expression, {"x": x}, expected, symbolic=("x",) if size[0] == 8 else (), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rounding", list(ROUND))
def test_resize2d_rounding(rounding):
    x = rng.integers(-99, 99, (1, 2, 3, 4)).astype("int32")
    expression = (
        'R.image.resize2d(x, (6, 5), method="nearest_neighbor", coordinate_transformation_mode="asymmetric", '
        f'rounding_method="{rounding}")'
    )
    expected = resized(x, (6, 5), "nearest_neighbor", "asymmetric", rounding)
    check(expression, {"x": x}, expected.astype("int32"), symbolic=())


def test_resize2d_attributes():
    x = floats(2, 3, 5, 4)
    check("R.image.resize2d(x, 6)", {"x": x}, resized(x, (6, 6)).astype("float32"), rtol=1e-4, atol=1e-5)
    check("R.image.resize2d(x, (5, 4))", {"x": x}, x, symbolic=())
    expected = resized(x, (7, 3), "cubic", alpha=-0.5, exclude=1).astype("float32")
    expression = 'R.image.resize2d(x, (7, 3), method="cubic", cubic_alpha=-0.5, cubic_exclude=1)'
    check(expression, {"x": x}, expected, rtol=1e-4, atol=1e-5)
    roi = (0.2, -0.1, 1.1, 0.6)
    for method in ("linear", "nearest_neighbor"):
        expected = resized(x, (4, 6), method, "tf_crop_and_resize", roi=roi, beyond=7.5)
        expression = (
            f'R.image.resize2d(x, (4, 6), roi={roi}, layout="NCHW", method="{method}", '
            'coordinate_transformation_mode="tf_crop_and_resize", rounding_method="round", extrapolation_value=7.5)'
        )
        check(expression, {"x": x}, expected.astype("float32"), rtol=1e-4, atol=1e-5)
    last = laid_out(x, "NCHW", "NHWC")
    expected = laid_out(resized(x, (7, 2)), "NCHW", "NHWC").astype("float32")
    check('R.image.resize2d(x, (7, 2), None, "NHWC")', {"x": last}, expected, rtol=1e-4, atol=1e-5)


def test_resize2d_dtypes():
    i = rng.integers(0, 255, (1, 2, 3, 3)).astype("uint8")
    expected = resized(i, (6, 6))
    check('R.image.resize2d(x, (6, 6), out_dtype="float32")', {"x": i}, expected.astype("float32"), rtol=1e-4)
    check("R.image.resize2d(x, (6, 6))", {"x": i}, np.trunc(expected).astype("uint8"), symbolic=())
    h = floats(1, 2, 3, 3, dtype="float16")
    check("R.image.resize2d(x, (4, 5))", {"x": h}, resized(h, (4, 5)).astype("float16"), rtol=2e-3, atol=1e-3)
    d = floats(1, 2, 3, 3, dtype="float64")
    check("R.image.resize2d(x, (4, 5))", {"x": d}, resized(d, (4, 5)))
    check("R.image.resize2d(x, (4, 5))", {"x": floats(0, 2, 3, 3)}, np.zeros((0, 2, 4, 5), "float32"))
    check("R.image.resize2d(x, (0, 5))", {"x": d}, np.zeros((1, 2, 0, 5)), symbolic=())


@pytest.mark.parametrize("target", ["native", "interp"])
def test_resize2d_of_nothing(target):
    arrays = {"x": floats(1, 2, 0, 3)}
    with pytest.raises(lathe.Error, match="no elements to resample"):
        outputs_of(text_of("R.image.resize2d(x, (2, 2))", arrays, ("x",)), arrays, target)


def reflected(p, low, high):
    if high <= low:
        return low
    span = high - low
    p = abs(p - low) % (2 * span)
    return low + (2 * span - p if p > span else p)


def sampled(x, grid, method, padding, align):
    """x [N, C, spatial…] at the places of grid [N, d, …], one after the other."""
    spatial, out = x.shape[2:], grid.shape[2:]
    result = np.zeros((*x.shape[:2], *out))
    for n, *at in np.ndindex(x.shape[0], *out):
        taps = []
        for d, extent in enumerate(spatial):
            g = float(grid[(n, len(spatial) - 1 - d, *at)])
            p = (g + 1) / 2 * (extent - 1) if align else ((g + 1) * extent - 1) / 2
            ends = (0, extent - 1) if align else (-0.5, extent - 0.5)
            if method != "bicubic" and padding == "reflection":
                p = reflected(p, *ends)
            if method != "bicubic" and padding != "zeros":
                p = np.clip(p, 0, extent - 1)
            if method == "nearest":
                weights = {int(np.rint(p)): 1.0}
            elif method == "bilinear":
                weights = {int(np.floor(p)) + k: 1 - abs(p - np.floor(p) - k) for k in (0, 1)}
            else:
                weights = {int(np.floor(p)) + k: cubic_weight(p - np.floor(p) - k, -0.75) for k in (-1, 0, 1, 2)}
            taps.append((weights, extent, ends))
        for cell in np.ndindex(*[len(weights) for weights, _, _ in taps]):
            value, weight = (n, slice(None)), 1.0
            for (weights, extent, ends), pick in zip(taps, cell, strict=True):
                k = list(weights)[pick]
                weight *= weights[k]
                if padding == "reflection":
                    k = int(reflected(k, *ends))
                if padding != "zeros":
                    k = int(np.clip(k, 0, extent - 1))
                value = (*value, k) if 0 <= k < extent and value is not None and len(value) > 1 else None
                if value is None:
                    break
            if value is not None:
                result[(n, slice(None), *at)] += weight * x[value]
    return result


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic"])
def test_grid_sample(method, padding, align):
    x, grid = floats(2, 3, 4, 5), rng.uniform(-1.6, 1.6, (2, 2, 3, 2)).astype("float32")
    expression = (
        f'R.image.grid_sample(data=x, grid=g, method="{method}", layout="NCHW", padding_mode="{padding}", '
        f"align_corners={align})"
    )
    expected = sampled(x, grid, method, padding, align).astype("float32")
    check(expression, {"x": x, "g": grid}, expected, symbolic=("x",), rtol=1e-4, atol=1e-5)


def test_grid_sample_layouts():
    x, grid = floats(1, 2, 3, 4, 3), rng.uniform(-1.2, 1.2, (1, 3, 2, 2, 3)).astype("float32")
    expected = sampled(x, grid, "bilinear", "zeros", True).astype("float32")
    check('R.image.grid_sample(x, g, layout="NCDHW")', {"x": x, "g": grid}, expected, rtol=1e-4, atol=1e-5)
    y, places = floats(2, 3, 4, 5), rng.uniform(-1, 1, (2, 2, 3, 2)).astype("float32")
    expected = laid_out(sampled(y, places, "bilinear", "zeros", True), "NCHW", "NHWC").astype("float32")
    arrays = {"x": laid_out(y, "NCHW", "NHWC"), "g": places}
    check('R.image.grid_sample(x, g, layout="NHWC")', arrays, expected, rtol=1e-4, atol=1e-5)
    arrays = {"x": floats(2, 3, 4, 5), "g": floats(2, 2, 0, 2)}
    check("R.image.grid_sample(x, g)", arrays, np.zeros((2, 3, 0, 2), "float32"))


def test_affine_grid():
    def grid(x, h, w):
        ys, xs = np.meshgrid(np.linspace(-1, 1, h), np.linspace(-1, 1, w), indexing="ij")
        return np.einsum("nij,jhw->nihw", x.astype("float64"), np.stack([xs, ys, np.ones((h, w))]))

    x = floats(3, 2, 3)
    check("R.image.affine_grid(x, (4, 5))", {"x": x}, grid(x, 4, 5).astype("float32"))
    check("R.image.affine_grid(data=x, size=3)", {"x": x}, grid(x, 3, 3).astype("float32"))
    check("R.image.affine_grid(x, (1, 2))", {"x": x.astype("float64")}, grid(x, 1, 2))
    h = x.astype("float16")
    check("R.image.affine_grid(x, (4, 5))", {"x": h}, grid(h, 4, 5).astype("float16"), rtol=2e-3)
    check("R.image.affine_grid(x, (0, 5))", {"x": x}, np.zeros((3, 2, 0, 5), "float32"))


ARRAYS = {
    "x": floats(2, 6, 4, 4),
    "v": floats(2, 6, 4),
    "e": floats(2, 6, 0, 4),
    "g": floats(2, 2, 3, 3),
    "o": floats(1, 2, 3, 3),
    "i": np.zeros((2, 2, 3, 3), "int32"),
    "m": floats(2, 2, 3),
}


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("R.nn.pixel_shuffle(x, 2)", "6 channels are no multiple of 4"),
        ("R.nn.pixel_shuffle(x)", "upscale_factor is 0"),
        ("R.image.resize2d(v, (2, 2))", "data has 4 dimensions"),
        ("R.image.resize2d(x, (2, 2, 2))", "size is a height and a width"),
        ("R.image.resize2d(x, (-1, 2))", "an extent is 0 or more"),
        ("R.image.resize2d(e, (2, 2))", "there is nothing to resize"),
        ('R.image.resize2d(x, (2, 2), method="bilinear")', "method is one of 'nearest_neighbor', 'linear', 'cubic'"),
        ('R.image.resize2d(x, (2, 2), layout="NCHW4c")', "layout is the letters of 'NCHW'"),
        ('R.image.resize2d(x, (2, 2), coordinate_transformation_mode="x")', "coordinate_transformation_mode is one of"),
        ('R.image.resize2d(x, (2, 2), rounding_method="up")', "rounding_method is one of"),
        ('R.image.resize2d(x, (2, 2), coordinate_transformation_mode="tf_crop_and_resize")', "takes a roi"),
        ("R.image.resize2d(x, (2, 2), roi=(0.0, 1.0))", "4 numbers, not 2"),
        ('R.image.resize2d(x, (2, 2), out_dtype="bool")', "out_dtype is a numeric dtype"),
        ("R.image.grid_sample(x, v)", "grid has 4 dimensions"),
        ("R.image.grid_sample(v, v)", "data has 4 or 5 dimensions"),
        ("R.image.grid_sample(x, x)", "one coordinate a spatial dimension"),
        ("R.image.grid_sample(x, o)", "differ in the batch"),
        ("R.image.grid_sample(x, i)", "grid is of a floating dtype"),
        ('R.image.grid_sample(x, g, method="linear")', "method is one of 'bilinear', 'nearest', 'bicubic'"),
        ('R.image.grid_sample(x, g, padding_mode="wrap")', "padding_mode is one of"),
        ('R.image.grid_sample(x, g, layout="NCDHW")', "layout is the letters of 'NCHW'"),
        ("R.image.affine_grid(v, (2, 2))", "data is [batch, 2, 3]"),
        ("R.image.affine_grid(x, (2, 2))", "data has 3 dimensions"),
        ("R.image.affine_grid(m, (2, 2, 2))", "size is a height and a width"),
    ],
)
def test_refusals(expression, says):
    message = refusal(expression, ARRAYS)
    assert says in message, message
