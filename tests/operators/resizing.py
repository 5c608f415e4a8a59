"""Samples of Resize and Upsample, and what they must answer: along each axis in turn a matrix of weights."""

import math

import numpy as np

from tests.operators.sample import PLAIN, TEXT, is_float

# Sizes and scales whose quotients are exact: which element is the nearest does not hang on a rounding.
EXACT_SIZES, EXACT_SCALES = (1, 2, 4, 8), (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
PLACES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


def shape_to_resize(d, exact):
    rank = d.choice([1, 2, 3, 4, 4])
    return [d.choice(EXACT_SIZES) if exact else d.integer(1, 7) for _ in range(rank)]


def upsample(d):
    dtype = d.dtype()
    mode = d.choice(["nearest", "linear"]) if is_float(dtype) else "nearest"
    shape = shape_to_resize(d, True)
    scales = [d.choice([1.0, 1.5, 2.0, 3.0]) for _ in shape]
    x = d.array(shape, dtype)
    attributes = {"mode": mode} if mode == "linear" or d.chance(0.5) else {}
    if d.opset < 9:
        return d.sample([x], attributes=attributes | {"scales": scales}, terms=4)
    constants = {1} if d.chance(0.7) else set()
    return d.sample([x, np.array(scales, np.float32)], attributes=attributes, constants=constants, terms=4)


def resize(d):
    dtype = d.dtype("T1" if d.opset >= 11 else "T")
    modes = ["nearest"] + (["linear"] + (["cubic"] if d.opset >= 11 else []) if is_float(dtype) else [])
    mode = d.choice(modes)
    shape = shape_to_resize(d, mode == "nearest")
    x = d.array(shape, dtype)
    attributes = {"mode": mode} if mode != "nearest" or d.chance(0.5) else {}
    if d.opset < 11:
        scales = np.array([d.choice(EXACT_SCALES) for _ in shape], np.float32)
        return d.sample([x, scales], attributes=attributes, constants={1} if d.chance(0.7) else set(), terms=4)
    axes = d.axes(len(shape)) if d.opset >= 18 and d.chance(0.4) else None
    own = shape if axes is None else [shape[a] for a in axes]
    if axes is not None:
        attributes["axes"] = axes
    places = [*PLACES] + (["half_pixel_symmetric"] if d.opset >= 19 else [])
    places += ["tf_crop_and_resize"] if dtype != TEXT else []
    if d.chance(0.8):
        attributes["coordinate_transformation_mode"] = d.choice(places)
    if mode == "nearest":
        if d.chance(0.6):
            attributes["nearest_mode"] = d.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    else:
        attributes |= interpolation(d, mode)
    roi = None
    if attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        starts = [d.choice([0.0, 0.25, 0.5]) for _ in own]
        ends = [d.choice([0.75, 1.0, 1.25]) for _ in own]
        roi = np.array([*starts, *ends]).astype(d.dtype("T2"))
        if d.chance(0.5):
            attributes["extrapolation_value"] = 2.5
    scales, sizes = None, None
    if d.chance(0.5):
        scales = np.array([d.choice(EXACT_SCALES) for _ in own], np.float32)
        scales = np.where(np.floor(scales * np.array(own)) < 1, np.float32(1), scales)
    else:
        sizes = d.int64([d.choice(EXACT_SIZES) if mode == "nearest" else d.integer(1, 9) for _ in own])
        if d.opset >= 18 and mode != "nearest" and d.chance(0.4):
            attributes["keep_aspect_ratio_policy"] = d.choice(["stretch", "not_larger", "not_smaller"])
    given = {i for i, value in enumerate((roi, scales, sizes), 1) if value is not None}
    constants = given if d.chance(0.7) else set()
    terms = 16 ** min(len(own), 2)
    return d.sample([x, roi, scales, sizes], attributes=attributes, constants=constants, fixed={1, 2, 3}, terms=terms)


def interpolation(d, mode):
    attributes = {}
    if mode == "cubic" and d.chance(0.4):
        attributes["cubic_coeff_a"] = -0.5
    if mode == "cubic" and d.chance(0.5):
        attributes["exclude_outside"] = 1
    if d.opset >= 18 and d.chance(0.3):
        attributes["antialias"] = 1
    return attributes


# What they must answer.


def place_of(mode, at, scale, before, after, roi):
    """Where output position `at` lies in the input. Of a scale, the length that it asks for may be a fraction."""
    width = scale * before
    one = abs(width - 1) < 1e-9
    if mode == "align_corners":
        return 0.0 if one else at * (before - 1) / (width - 1)
    if mode == "asymmetric":
        return at / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        if one:
            return 0.5 * (start + end) * (before - 1)
        return start * (before - 1) + at * (end - start) * (before - 1) / (width - 1)
    if mode == "pytorch_half_pixel" and one:
        return 0.0
    if mode == "half_pixel_symmetric":
        return before / 2 * (1 - after / width) + (at + 0.5) / scale - 0.5
    return (at + 0.5) / scale - 0.5


def nearest_of(mode, place):
    if mode == "floor":
        return math.floor(place)
    if mode == "ceil":
        return math.ceil(place)
    return math.ceil(place - 0.5) if mode == "round_prefer_floor" else math.floor(place + 0.5)


def hat(t):
    return max(0.0, 1 - abs(t))


def cubic(a):
    def weight(t):
        t = abs(t)
        if t <= 1:
            return (a + 2) * t**3 - (a + 3) * t**2 + 1
        return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0

    return weight


def row_of_weights(attributes, mode, place, scale, before):
    """The weight of each input element along the axis."""
    row = np.zeros(before)
    if mode == "nearest":
        row[min(max(nearest_of(attributes.get("nearest_mode", "round_prefer_floor"), place), 0), before - 1)] = 1
        return row
    kernel = hat if mode == "linear" else cubic(attributes.get("cubic_coeff_a", -0.75))
    reach = 1 if mode == "linear" else 2
    narrow = min(scale, 1.0) if attributes.get("antialias") else 1.0
    base = math.floor(place)
    first, last = math.floor(place - reach / narrow), math.ceil(place + reach / narrow)
    for k in range(min(first, base), max(last, base + 1) + 1):
        if attributes.get("exclude_outside") and not 0 <= k < before:
            continue
        row[min(max(k, 0), before - 1)] += kernel((place - k) * narrow)
    return row / row.sum()


def resampled(s, x, roi=None, scales=None, sizes=None):
    if s.op == "Upsample" or s.opset < 11:
        old = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        given = s.attributes.get("scales", roi)
        return interpolated(s.attributes | old, x, range(x.ndim), None, np.asarray(given, np.float64), None)
    axes = [a % x.ndim for a in s.attributes.get("axes", range(x.ndim))]
    return interpolated(s.attributes, x, axes, roi, scales, sizes)


def interpolated(attributes, x, axes, roi, scales, sizes):
    mode = attributes.get("mode", "nearest")
    place_mode = attributes.get("coordinate_transformation_mode", "half_pixel")
    count, outside = len(axes), np.zeros([1] * x.ndim, bool)
    if sizes is not None:
        scales = [n / x.shape[a] for n, a in zip(sizes.tolist(), axes, strict=True)]
        policy = attributes.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            scales = [(min if policy == "not_larger" else max)(scales)] * count
            sizes = np.array([math.floor(x.shape[a] * scales[0] + 0.5) for a in axes])
    else:
        sizes = np.array([math.floor(x.shape[a] * float(v)) for a, v in zip(axes, scales, strict=True)])
    y = x
    for k, axis in enumerate(axes):
        before, after, scale = x.shape[axis], int(sizes[k]), float(scales[k])
        ends = None if roi is None else (float(roi[k]), float(roi[k + count]))
        places = [place_of(place_mode, at, scale, before, after, ends) for at in range(after)]
        rows = np.array([row_of_weights(attributes, mode, p, scale, before) for p in places]).reshape(after, before)
        if mode == "nearest":
            y = np.take(y, rows.argmax(1), axis)
        else:
            y = np.moveaxis(np.tensordot(rows, y, (1, axis)), 0, axis)
        if place_mode == "tf_crop_and_resize":
            beyond = np.array([not 0 <= p <= before - 1 for p in places], bool)
            outside = outside | beyond.reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    if not outside.any():
        return y
    return np.where(outside, np.asarray(attributes.get("extrapolation_value", 0.0)).astype(y.dtype), y)


GENERATORS = {"Resize": resize, "Upsample": upsample}
OWN = dict.fromkeys(GENERATORS, (PLAIN, resampled))
