"""Convolution and pooling of any rank, written plainly from the specification's formulas.

The reference evaluator is not used for these: it lacks ranks and dilations, and ceil_mode there differs by release.
"""

import itertools
import math

import numpy as np


def resolve(attributes, spatial, kernel):
    """Returns strides, dilations, pads before, pads after, output sizes (ONNX operator text of Conv and MaxPool)."""
    rank = len(spatial)
    strides = attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    pads = attributes.get("pads", [0] * (2 * rank))
    before, after, sizes = list(pads[:rank]), list(pads[rank:]), []
    mode = attributes.get("auto_pad", "NOTSET")
    for i in range(rank):
        reach = (kernel[i] - 1) * dilations[i] + 1
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            size = math.ceil(spatial[i] / strides[i])
            total = max((size - 1) * strides[i] + reach - spatial[i], 0)
            before[i] = total // 2 if mode == "SAME_UPPER" else total - total // 2
            after[i] = total - before[i]
        else:
            span = spatial[i] + before[i] + after[i] - reach
            size = span // strides[i] + 1
            if attributes.get("ceil_mode"):
                size = -(-span // strides[i]) + 1
                if (size - 1) * strides[i] >= spatial[i] + before[i]:  # a window may not start in the end padding
                    size -= 1
        sizes.append(size)
    return strides, dilations, before, after, sizes


def windows(x, attributes, kernel, fill):
    """[..., output sizes, kernel] of x [n, c, spatial] padded with `fill`, far enough for every window."""
    strides, dilations, before, after, sizes = resolve(attributes, x.shape[2:], kernel)
    extra = [
        max(0, (o - 1) * s + (k - 1) * d + 1 - (b + n + a))
        for o, s, k, d, b, n, a in zip(sizes, strides, kernel, dilations, before, x.shape[2:], after, strict=True)
    ]
    padding = [(0, 0), (0, 0), *((b, a + e) for b, a, e in zip(before, after, extra, strict=True))]
    padded = np.pad(x, padding, constant_values=fill)
    result = np.empty((*x.shape[:2], *sizes, *kernel), x.dtype)
    for offset in itertools.product(*(range(k) for k in kernel)):
        starts = [o * d for o, d in zip(offset, dilations, strict=True)]
        chosen = tuple(slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(starts, sizes, strides, strict=True))
        result[(..., *offset)] = padded[(slice(None), slice(None), *chosen)]
    return result


def conv(attributes, x, w, b=None):
    kernel, group = w.shape[2:], attributes.get("group", 1)
    columns = windows(x, attributes, kernel, 0.0)
    rank, per_group, outputs = len(kernel), x.shape[1] // group, w.shape[0] // group
    parts = []
    for g in range(group):
        c = columns[:, g * per_group : (g + 1) * per_group]
        axes = [1, *range(2 + rank, 2 + 2 * rank)]
        y = np.tensordot(c, w[g * outputs : (g + 1) * outputs], (axes, [1, *range(2, 2 + rank)]))
        parts.append(np.moveaxis(y, -1, 1))
    y = np.concatenate(parts, 1)
    return y if b is None else y + b.reshape(-1, *[1] * rank)


def conv_transpose(attributes, x, w, b=None):
    """Each element of x adds its multiple of the kernel to the output; the specification's ConvTranspose."""
    kernel, group, rank = w.shape[2:], attributes.get("group", 1), w.ndim - 2
    strides = attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    more = attributes.get("output_padding", [0] * rank)
    whole = [
        s * (n - 1) + p + (k - 1) * d + 1
        for s, n, p, k, d in zip(strides, x.shape[2:], more, kernel, dilations, strict=True)
    ]
    shape, auto = attributes.get("output_shape"), attributes.get("auto_pad", "NOTSET")
    if shape is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        shape = [n * s for n, s in zip(x.shape[2:], strides, strict=True)]
    if shape is None:
        pads = attributes.get("pads", [0] * 2 * rank)
        before, after = pads[:rank], pads[rank:]
    else:
        total = [n - m for n, m in zip(whole, shape, strict=True)]
        half = [t // 2 for t in total]
        other = [t - h for t, h in zip(total, half, strict=True)]
        before, after = (half, other) if auto == "SAME_UPPER" else (other, half)
    inputs, outputs = x.shape[1] // group, w.shape[1]
    y = np.zeros((x.shape[0], group * outputs, *whole), x.dtype)
    for offset in np.ndindex(*kernel):
        at = tuple(
            slice(o * d, o * d + s * n, s)
            for o, d, s, n in zip(offset, dilations, strides, x.shape[2:], strict=True)
        )
        for g in range(group):
            own = slice(g * inputs, (g + 1) * inputs)
            added = np.tensordot(x[:, own], w[(own, slice(None), *offset)], ([1], [0]))
            part = y[(slice(None), slice(g * outputs, (g + 1) * outputs), *at)]
            part += np.moveaxis(added, -1, 1)
    # An output that is larger than what the kernels reach goes on with zeros.
    y = np.pad(y, [(0, 0), (0, 0), *((max(-p, 0), max(-q, 0)) for p, q in zip(before, after, strict=True))])
    inside = tuple(
        slice(max(p, 0), max(-p, 0) + n - q) for p, q, n in zip(before, after, whole, strict=True)
    )
    y = y[(slice(None), slice(None), *inside)]
    return y if b is None else y + b.reshape(-1, *[1] * rank)


def max_pool(attributes, x):
    """Values, and the flat index of each in x (row major; over all of x, batch and channel included)."""
    kernel = attributes["kernel_shape"]
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    rank = len(kernel)
    tiles = windows(x, attributes, kernel, lowest)
    where = windows(np.arange(x.size).reshape(x.shape), attributes, kernel, -1)
    tiles = tiles.reshape(*tiles.shape[: 2 + rank], -1)
    where = where.reshape(tiles.shape)
    # Padding may not win a tie with a true lowest value.
    best = np.where(where < 0, -1, 0) + (tiles == tiles.max(-1, keepdims=True)) * 2
    chosen = best.argmax(-1)[..., None]
    return tiles.max(-1), np.take_along_axis(where, chosen, -1)[..., 0]


def average_pool(attributes, x):
    kernel = attributes["kernel_shape"]
    axes = tuple(range(2 + len(kernel), 2 + 2 * len(kernel)))
    total = windows(x, attributes, kernel, 0.0).sum(axes)
    inside = np.ones_like(x)
    if attributes.get("count_include_pad"):
        # Declared padding counts; what ceil_mode adds beyond it does not.
        _, _, before, after, _ = resolve(attributes, x.shape[2:], kernel)
        inside = np.pad(inside, [(0, 0), (0, 0), *zip(before, after, strict=True)], constant_values=1)
        attributes = attributes | {"pads": [0] * (2 * len(kernel))}
        attributes.pop("auto_pad", None)
        if "ceil_mode" in attributes:
            # the last window is where it was: recompute the sizes of the original and cut
            counts = windows_of_sizes(inside, attributes, kernel, total.shape[2:])
            return total / counts.sum(axes)
    return total / windows(inside, attributes, kernel, 0.0).sum(axes)


def windows_of_sizes(x, attributes, kernel, sizes):
    """Windows with a given number of outputs, whatever the rounding mode says."""
    strides = attributes.get("strides", [1] * len(kernel))
    dilations = attributes.get("dilations", [1] * len(kernel))
    needed = [(o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(sizes, strides, kernel, dilations, strict=True)]
    grown = np.pad(x, [(0, 0), (0, 0), *((0, max(0, n - have)) for n, have in zip(needed, x.shape[2:], strict=True))])
    cut = grown[(slice(None), slice(None), *(slice(0, n) for n in needed))]
    plain = {k: v for k, v in attributes.items() if k in ("strides", "dilations")}
    return windows(cut, plain, kernel, 0.0)
