"""Samples of the operators that read between elements, of spectra, of determinants and of states kept between steps."""

import itertools
import math

import numpy as np

from onnx.reference import ReferenceEvaluator

from tests.operators.sample import NUMBERS, TEXT, Sample, is_float


def spatial_shape(d, low=1, high=3, zero=0.04):
    return [d.size(zero) % 8 or (0 if d.chance(zero) else 3) for _ in range(d.integer(low, high))]


def grid_sample(d):
    dtype = d.dtype("T1")
    spatial = spatial_shape(d, *((2, 2) if d.opset < 20 else (1, 3)), zero=0)
    n, c = d.integer(1, 3), d.integer(1, 3)
    x = d.array([n, c, *spatial], dtype)
    out = [d.integer(0, 4) for _ in spatial]
    grid = d.array([n, *out, len(spatial)], d.dtype("T2") if d.opset >= 20 else x.dtype if is_float(dtype) else
                   d.dtype("T2"), -1.6, 1.6)  # fmt: skip
    modes = ["nearest", "linear", "cubic"] if d.opset >= 20 else ["nearest", "bilinear", "bicubic"]
    # Integers are cut off: another order of addition gives another one.
    attributes = {"mode": d.choice(modes) if is_float(dtype) else "nearest"}
    if d.chance(0.7):
        attributes["padding_mode"] = d.choice(["zeros", "border", "reflection"])
    if d.chance(0.6):
        attributes["align_corners"] = d.integer(0, 1)
    return d.sample([x, grid], attributes=attributes, terms=4 ** len(spatial))


def affine_grid(d):
    r = d.choice([2, 3])
    theta = d.array([d.integer(0, 3), r, r + 1], d.dtype("T1"))
    size = [theta.shape[0], d.integer(1, 3), *(d.integer(1, 6) for _ in range(r))]
    attributes = {"align_corners": d.integer(0, 1)} if d.chance(0.7) else {}
    constants = {1} if d.chance(0.6) else set()
    return d.sample([theta, d.int64(size)], attributes=attributes, constants=constants, fixed={1}, terms=r + 1)


def roi_align(d):
    n, c, h, w = d.integer(1, 3), d.integer(1, 3), d.integer(2, 9), d.integer(2, 9)
    dtype = d.dtype("T1")
    count = d.integer(0, 4)
    corner = d.rng.uniform(-1, 6, (count, 2))
    rois = np.concatenate([corner, corner + d.rng.uniform(0.3, 7, (count, 2))], 1).astype(dtype)
    attributes = {"output_height": d.integer(1, 3), "output_width": d.integer(1, 4)}
    attributes["spatial_scale"] = d.choice([1.0, 0.5])
    # A number of samples that follows from rounded coordinates is another one near a whole number.
    attributes["sampling_ratio"] = d.integer(0 if dtype.itemsize > 2 else 1, 3)
    attributes["mode"] = d.choice(["avg", "max"])
    if d.opset >= 16 and d.chance(0.7):
        attributes["coordinate_transformation_mode"] = d.choice(["half_pixel", "output_half_pixel"])
    batches = d.rng.integers(0, n, count)
    return d.sample([d.array([n, c, h, w], dtype), rois, batches], attributes=attributes, terms=64)


def deform_conv(d):
    spatial = [d.integer(3, 6) for _ in range(d.integer(1, 2))]
    r, group, offsets = len(spatial), d.choice([1, 2]), d.choice([1, 2])
    channels, outputs = 2 * d.integer(1, 2), group * d.integer(1, 2)
    kernel = [d.integer(1, 3) for _ in spatial]
    strides, dilations = [d.integer(1, 2) for _ in spatial], [d.integer(1, 2) for _ in spatial]
    pads = [d.integer(0, 2) for _ in range(2 * r)]
    out = []
    for i in range(r):
        span = spatial[i] + pads[i] + pads[i + r] - (kernel[i] - 1) * dilations[i] - 1
        pads[i] += max(0, -span)
        out.append(max(span, 0) // strides[i] + 1)
    dtype, n, points = d.dtype("T"), d.integer(1, 2), math.prod(kernel)
    attributes = {"strides": strides, "dilations": dilations, "pads": pads, "group": group, "offset_group": offsets}
    if d.chance(0.5):
        attributes["kernel_shape"] = kernel
    x, w = d.array([n, channels, *spatial], dtype), d.array([outputs, channels // group, *kernel], dtype)
    offset = d.array([n, offsets * points * r, *out], dtype, -2, 2)
    bias = d.array([outputs], dtype) if d.chance(0.5) else None
    mask = d.array([n, offsets * points, *out], dtype, 0, 1) if d.chance(0.6) else None
    terms = 4 * points * channels
    return d.sample([x, w, offset, bias, mask], attributes=attributes, terms=9 * terms, symbolic=False)


def col2im(d):
    r = d.integer(1, 3)
    block, strides, dilations = ([d.integer(1, 3) for _ in range(r)] for _ in range(3))
    pads = [d.integer(0, 2) for _ in range(2 * r)]
    counts = [d.integer(1, 3) for _ in range(r)]
    image = []
    for i in range(r):
        size = (counts[i] - 1) * strides[i] + (block[i] - 1) * dilations[i] + 1 - pads[i] - pads[i + r]
        pads[i] = max(0, pads[i] + min(0, size - 1)) if size < 1 else pads[i]
        size = (counts[i] - 1) * strides[i] + (block[i] - 1) * dilations[i] + 1 - pads[i] - pads[i + r]
        if size < 1:
            pads[i] = pads[i + r] = 0
            size = (counts[i] - 1) * strides[i] + (block[i] - 1) * dilations[i] + 1
        image.append(size)
    shape = [d.integer(0, 2), d.integer(1, 3) * math.prod(block), math.prod(counts)]
    x = d.array(shape, d.dtype("T", NUMBERS))  # strings are not added up
    attributes = {"strides": strides, "dilations": dilations, "pads": pads}
    constants = {1, 2} if d.chance(0.6) else set()
    inputs = [x, d.int64(image), d.int64(block)]
    return d.sample(inputs, attributes=attributes, constants=constants, fixed={1, 2}, terms=math.prod(block))


def max_unpool(d):
    r = d.integer(1, 3)
    kernel, strides = [d.integer(1, 3) for _ in range(r)], [d.integer(1, 3) for _ in range(r)]
    shape = [d.integer(1, 2), d.integer(1, 3), *(d.integer(1, 4) for _ in range(r))]
    whole = [*shape[:2], *((n - 1) * s + k for n, s, k in zip(shape[2:], strides, kernel))]
    x = d.array(shape, d.dtype("T1"))
    indices = d.rng.permutation(math.prod(whole))[: x.size] if math.prod(whole) >= x.size else np.zeros(x.size)
    attributes = {"kernel_shape": kernel, "strides": strides}
    bigger = None
    if d.chance(0.4):
        bigger = d.int64([*whole[:2], *(n + d.integer(0, 2) for n in whole[2:])])
    if math.prod(whole) < x.size:  # one place is written several times: all of them the same
        x = np.full_like(x, 2)
    constants = {2} if bigger is not None and d.chance(0.6) else set()
    inputs = [x, indices.reshape(shape).astype(np.int64), bigger]
    return d.sample(inputs, attributes=attributes, constants=constants, symbolic=False)


def of_known_parts(sample):
    """Whether a signal is real or complex is known when compiling."""
    sample.symbolic.pop((0, sample.inputs[0].ndim - 1), None)
    return sample


def dft(d):
    rank = d.integer(2, 4)
    shape = [*(d.integer(1, 9) for _ in range(rank - 1)), d.choice([1, 2])]
    attributes, axis = {}, d.integer(0, rank - 2)
    inverse, onesided = d.chance(0.5), d.chance(0.4)
    if onesided:
        shape[-1] = 2 if inverse else 1
        shape[axis] = max(shape[axis], 2)
    if inverse or d.chance(0.3):
        attributes["inverse"] = int(inverse)
    if onesided or d.chance(0.3):
        attributes["onesided"] = int(onesided)
    length = np.array(d.integer(1, 12), d.choice([np.int32, np.int64])) if d.chance(0.5) else None
    given = axis - rank if d.chance(0.5) else axis
    x = d.array(shape, d.dtype("T1"))
    inputs = [x, length]
    if d.opset < 20:
        attributes["axis"] = given
    else:
        inputs.append(np.array(given, np.int64))
    constants = {i for i in (1, 2) if i < len(inputs) and inputs[i] is not None and d.chance(0.6)}
    return of_known_parts(d.sample(inputs, attributes=attributes, constants=constants, terms=25 * 13))


def stft(d):
    length = d.integer(1, 9)
    signal = d.array([d.integer(1, 3), length + d.integer(0, 20), d.choice([1, 2])], d.dtype("T1"))
    step = np.array(d.integer(1, 5), d.choice([np.int32, np.int64]))
    window = d.array([length], signal.dtype, 0, 1) if d.chance(0.6) else None
    frame = np.array(length, step.dtype) if window is None or d.chance(0.5) else None
    # Half a spectrum is that of a real signal.
    attributes = {"onesided": d.integer(0, 1) if signal.shape[2] == 1 else 0}
    constants = {i for i in (1, 3) if d.chance(0.6) and (i == 1 or frame is not None)}
    inputs = [signal, step, window, frame]
    return of_known_parts(d.sample(inputs, attributes=attributes, constants=constants, terms=225))


def mel_weight_matrix(d):
    integer = d.choice([np.int32, np.int64])
    bands, length, rate = d.integer(1, 9), d.choice([8, 16, 33, 64]), d.choice([8192, 16000])
    edge = d.dtype("T2", only=("float", "double"))
    inputs = [np.array(v, integer) for v in (bands, length, rate)]
    inputs += [np.array(d.choice([0.0, 80.0]), edge), np.array(rate / 2, edge)]
    attributes = {"output_datatype": d.choice([1, 11])} if d.chance(0.5) else {}
    constants = {i for i in range(5) if d.chance(0.7)}
    return d.sample(inputs, attributes=attributes, constants=constants)


def det(d):
    n = d.integer(0, 5)
    x = d.array([*d.shape(0, 2, elements=20), n, n], d.dtype("T"), -1.5, 1.5)
    return d.sample([x], terms=4 ** max(n, 1))


OWN_RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}


def linear_attention(d):
    b, t, heads, times = d.integer(1, 2), d.integer(0, 5), d.integer(1, 3), d.integer(1, 2)
    d_k, d_v = d.integer(1, 5), d.integer(1, 4)
    rule = d.choice(list(OWN_RULES))
    decays, corrects = OWN_RULES[rule]
    dtype = d.dtype("T")

    def array(width, low=-1.0, high=1.0):
        return d.array([b, t, width], dtype, low, high)

    state = d.array([b, heads, d_k, d_v], d.dtype("S"), -1, 1) if d.chance(0.6) else None
    decay = array(heads * (d_k if d.chance(0.5) else 1), -1, 0) if decays else None
    beta = array(heads if d.chance(0.5) else 1, 0, 1) if corrects else None
    attributes = {"q_num_heads": heads * times, "kv_num_heads": heads}
    if rule != "gated_delta" or d.chance(0.5):
        attributes["update_rule"] = rule
    if d.chance(0.5):
        attributes["scale"] = d.choice([0.5, 1.25])
    inputs = [array(heads * times * d_k), array(heads * d_k), array(heads * d_v), state, decay, beta]
    return d.sample(inputs, attributes=attributes, outputs=2, terms=16 * d_k * max(t, 1), symbolic=False)


def causal_conv(d):
    b, channels, length, window = d.integer(1, 3), d.integer(1, 4), d.integer(0, 7), d.integer(1, 4)
    dtype = d.dtype("T")
    x, w = d.array([b, channels, length], dtype), d.array([channels, 1, window], dtype)
    bias = d.array([channels], dtype) if d.chance(0.5) else None
    state = d.array([b, channels, window - 1], dtype) if d.chance(0.5) else None
    attributes = {"activation": d.choice(["none", "silu", "swish"])} if d.chance(0.7) else {}
    return d.sample([x, w, bias, state], attributes=attributes, outputs=2, terms=4 * window, symbolic=False)


GENERATORS = {
    "GridSample": grid_sample, "AffineGrid": affine_grid, "RoiAlign": roi_align, "DeformConv": deform_conv,
    "Col2Im": col2im, "MaxUnpool": max_unpool, "DFT": dft, "STFT": stft, "MelWeightMatrix": mel_weight_matrix,
    "Det": det, "LinearAttention": linear_attention, "CausalConvWithState": causal_conv,
}  # fmt: skip

# What they must answer, in NumPy.


def thrown_back(i, low, high):
    while i < low or i > high:
        i = 2 * low - i if i < low else 2 * high - i
    return i


def gridded(s, x, grid):
    mode, outside = s.attributes.get("mode", "linear"), s.attributes.get("padding_mode", "zeros")
    corners, extents = s.attributes.get("align_corners", 0), x.shape[2:]
    y = np.full((*x.shape[:2], *grid.shape[1:-1]), "" if x.dtype == TEXT else 0, x.dtype)

    def ends(n):
        return (0, n - 1) if corners else (-0.5, n - 0.5)

    def placed(given, n):
        at = (given + 1) / 2 * (n - 1) if corners else ((given + 1) * n - 1) / 2
        at = np.rint(at) if mode == "nearest" else at
        low, high = ends(n)
        if low <= at <= high or outside == "zeros":
            return at
        if outside == "border":
            return min(max(at, 0), n - 1)
        return low if low == high else thrown_back(at, low, high)

    def weights(at):
        """(element, weight) along one dimension."""
        base = math.floor(at)
        if mode == "nearest":
            return [(base, 1)]
        if mode.endswith("linear"):
            return [(base, 1 - (at - base)), (base + 1, at - base)]
        a, pairs = -0.75, []
        for k in range(base - 1, base + 3):
            t = abs(at - k)
            near = (a + 2) * t**3 - (a + 3) * t**2 + 1
            pairs.append((k, near if t <= 1 else a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a))
        return pairs

    def inside(k, n):
        if 0 <= k < n:
            return k
        if outside == "zeros":
            return None
        if outside == "border" or n == 1:
            return min(max(k, 0), n - 1)
        return int(thrown_back(k, *ends(n)))

    for at in np.ndindex(x.shape[0], *grid.shape[1:-1]):
        places = [weights(placed(g, n)) for g, n in zip(grid[at][::-1].astype(np.float64), extents)]
        for taps in itertools.product(*places):
            cell = [inside(k, n) for (k, _), n in zip(taps, extents)]
            if None not in cell:
                weight = math.prod(w for _, w in taps)
                if x.dtype == TEXT:
                    y[(at[0], slice(None), *at[1:])] = x[(at[0], slice(None), *cell)]
                    continue
                y[(at[0], slice(None), *at[1:])] += (weight * x[(at[0], slice(None), *cell)]).astype(x.dtype)
    return y


def affine_places(s, theta, size):
    sides = []
    for n in size[2:]:
        index = np.arange(n)
        corners = s.attributes.get("align_corners", 0)
        sides.append(2 * index / max(n - 1, 1) - 1 if corners else (2 * index + 1) / n - 1)
    mesh = np.meshgrid(*sides, indexing="ij")
    whole = np.stack([*mesh[::-1], np.ones_like(mesh[0])], -1)
    return np.einsum("nij,...j->n...i", theta, whole)


def deformed(s, x, w, offset, bias=None, mask=None):
    a, r = s.attributes, x.ndim - 2
    kernel, out = w.shape[2:], offset.shape[2:]
    groups, offsets = a["group"], a["offset_group"]
    offset = offset.reshape(x.shape[0], offsets, math.prod(kernel), r, *out)
    mask = np.ones((x.shape[0], offsets, math.prod(kernel), *out)) if mask is None else mask
    mask = mask.reshape(x.shape[0], offsets, math.prod(kernel), *out)
    y = np.zeros((x.shape[0], w.shape[0], *out))
    per_offset, per_group, outputs = x.shape[1] // offsets, w.shape[1], w.shape[0] // groups

    def read(image, places):
        value = 0.0
        for corner in itertools.product((0, 1), repeat=r):
            cell = [math.floor(p) + c for p, c in zip(places, corner)]
            weight = math.prod(1 - abs(p - k) for p, k in zip(places, cell))
            if all(0 <= k < n for k, n in zip(cell, image.shape)):
                value += weight * image[tuple(cell)]
        return value

    for n, c, *at in np.ndindex(x.shape[0], x.shape[1], *out):
        for point, k in enumerate(np.ndindex(*kernel)):
            moved = offset[(n, c // per_offset, point, slice(None), *at)]
            places = [at[i] * a["strides"][i] + k[i] * a["dilations"][i] - a["pads"][i] + moved[i] for i in range(r)]
            value = read(x[n, c], places) * mask[(n, c // per_offset, point, *at)]
            g = c // per_group
            for m in range(g * outputs, (g + 1) * outputs):
                y[(n, m, *at)] += w[(m, c % per_group, *k)] * value
    return y if bias is None else y + bias.reshape(-1, *[1] * r)


def folded(s, x, image, block):
    a, r = s.attributes, len(image)
    counts = [
        (image[i] + a["pads"][i] + a["pads"][i + r] - (block[i] - 1) * a["dilations"][i] - 1) // a["strides"][i] + 1
        for i in range(r)
    ]
    x = x.reshape(x.shape[0], x.shape[1] // math.prod(block.tolist()), *block, *counts)
    y = np.zeros((*x.shape[:2], *image), x.dtype)
    for k in np.ndindex(*block):
        for l in np.ndindex(*counts):
            at = [l[i] * a["strides"][i] + k[i] * a["dilations"][i] - a["pads"][i] for i in range(r)]
            if all(0 <= p < n for p, n in zip(at, image)):
                y[(slice(None), slice(None), *at)] += x[(slice(None), slice(None), *k, *l)]
    return y


def unpooled(s, x, indices, shape=None):
    a = s.attributes
    whole = [*x.shape[:2], *((n - 1) * t + k for n, t, k in zip(x.shape[2:], a["strides"], a["kernel_shape"]))]
    y = np.zeros(math.prod(whole), x.dtype)
    y[indices.ravel()] = x.ravel()
    result = np.zeros(whole if shape is None else [int(n) for n in shape], x.dtype)
    result[tuple(slice(0, n) for n in whole)] = y.reshape(whole)
    return result


def pooled(s, *inputs):
    """Before opset 16 nothing is moved by half a pixel, which the evaluator does whatever the opset is."""
    attributes = {"coordinate_transformation_mode": "half_pixel" if s.opset >= 16 else "output_half_pixel"}
    newer = Sample(s.op, 22, list(inputs), attributes | s.attributes)
    return ReferenceEvaluator(newer.model()).run(None, newer.feeds())


def spectrum(s, x, length=None, axis=None):
    axis = int(s.attributes.get("axis", 1) if s.opset < 20 else -2 if axis is None else axis) % x.ndim
    inverse, onesided = s.attributes.get("inverse", 0), s.attributes.get("onesided", 0)
    signal = x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    default = 2 * (x.shape[axis] - 1) if inverse and onesided else x.shape[axis]
    length = default if length is None else int(length)
    if inverse and onesided:
        return np.fft.irfft(signal, length, axis)[..., None]
    y = (np.fft.ifft if inverse else np.fft.fft)(signal, length, axis)
    if onesided:
        y = np.take(y, np.arange(length // 2 + 1), axis)
    return np.stack([y.real, y.imag], -1)


def frames(s, signal, step, window=None, length=None):
    whole = signal[..., 0] + (1j * signal[..., 1] if signal.shape[-1] == 2 else 0)
    length = int(length) if length is not None else len(window)
    starts = range(0, whole.shape[1] - length + 1, int(step))
    cut = np.stack([whole[:, k : k + length] * (1 if window is None else window) for k in starts], 1)
    y = np.fft.fft(cut, axis=2)[:, :, : length // 2 + 1 if s.attributes.get("onesided", 1) else length]
    return np.stack([y.real, y.imag], -1)


def recalled(s, query, key, value, state=None, decay=None, beta=None):
    a = s.attributes
    heads, times = a["kv_num_heads"], a["q_num_heads"] // a["kv_num_heads"]
    b, t = query.shape[:2]
    d_k, d_v = key.shape[2] // heads, value.shape[2] // heads
    q = query.reshape(b, t, heads, times, d_k)
    k, v = key.reshape(b, t, heads, d_k), value.reshape(b, t, heads, d_v)
    kept = np.zeros((b, heads, d_k, d_v)) if state is None else state.astype(np.float64)
    scale = a.get("scale", 0.0) or 1 / math.sqrt(d_k)
    answers = np.zeros((b, t, heads, times, d_v))
    for i in range(t):
        if decay is not None:
            kept = kept * np.exp(decay[:, i].reshape(b, heads, -1))[..., None]
        added = v[:, i]
        if beta is not None:
            added = beta[:, i, :, None] * (added - np.einsum("bhkv,bhk->bhv", kept, k[:, i]))
        kept = kept + k[:, i][..., None] * added[..., None, :]
        answers[:, i] = scale * np.einsum("bhqk,bhkv->bhqv", q[:, i], kept)
    return [answers.reshape(b, t, heads * times * d_v), kept]


def causal(s, x, w, bias=None, state=None):
    window = w.shape[2]
    state = np.zeros((*x.shape[:2], window - 1)) if state is None else state
    whole = np.concatenate([state, x], 2)
    y = sum(whole[:, :, k : k + x.shape[2]] * w[:, 0, k, None] for k in range(window))
    y = y if bias is None else y + bias[:, None]
    y = y if s.attributes.get("activation", "none") == "none" else y / (1 + np.exp(-y))
    return [y, whole[:, :, whole.shape[2] - (window - 1) :]]


OWN = {
    "GridSample": ("keeps places in float32", gridded),
    "AffineGrid": ("rounds to float32, and knows no extent of one", affine_places),
    "DeformConv": ("knows few ranks", deformed),
    "Col2Im": ("knows no empty batch", folded),
    "MaxUnpool": ("leaves out what it has no attributes for", unpooled),
    "RoiAlign": ("older opsets have another default there", pooled),
    "DFT": ("wants the axis as a number", spectrum),
    "STFT": ("wants the step as a number", frames),
    "Det": ("written beside the others", lambda s, x: np.asarray(np.linalg.det(x) if x.shape[-1] else
                                                                 np.ones(x.shape[:-2]))),
    "LinearAttention": ("computes in float32", recalled),
    "CausalConvWithState": ("loops over few shapes", causal),
}  # fmt: skip
