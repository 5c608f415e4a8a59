"""Samples of the operators that move elements without computing on them."""

import numpy as np
from onnx import numpy_helper

from tests.operators.sample import DTYPES, PLAIN, TEXT


def reshape(d):
    x = d.array(d.shape(), d.dtype())
    shape = [x.size] if d.chance(0.3) else list(d.rng.permutation(x.shape)) if x.ndim else [1, 1]
    shape = [int(s) for s in shape]
    attributes = {}
    if x.size and shape and d.chance(0.5):
        shape[d.integer(0, len(shape) - 1)] = -1
    elif d.opset >= 14 and 0 in shape:
        attributes["allowzero"] = 1
    elif 0 in shape:
        shape = [0] * x.ndim  # copies every size
    return d.sample(
        [x, d.int64(shape)], attributes=attributes, constants={1} if d.chance(0.8) else set(), fixed={1}
    )


def flatten(d):
    x = d.array(d.shape(), d.dtype())
    axis = d.integer(0, x.ndim)
    if d.opset >= 11 and x.ndim and d.chance(0.4):
        axis = d.axis(x.ndim)
    return d.sample([x], attributes={"axis": axis})


def transpose(d):
    x = d.array(d.shape(), d.dtype())
    return d.sample(
        [x], attributes={"perm": [int(a) for a in d.rng.permutation(x.ndim)]} if d.chance(0.8) and x.ndim else {}
    )


def concat(d):
    shape, dtype = d.shape(1, 4, elements=1500), d.dtype()
    axis = d.axis(len(shape), negative=d.opset >= 11)
    parts = []
    for _ in range(d.integer(1, 4)):
        part = list(shape)
        part[axis] = d.size()
        parts.append(d.array(part, dtype))
    return d.sample(parts, attributes={"axis": axis}, symbolic=False)


def split(d):
    shape, dtype = d.shape(1, 4), d.dtype()
    axis = d.axis(len(shape), negative=d.opset >= 11)
    count = d.integer(1, 4)
    sizes = [d.integer(0, 5) for _ in range(count)]
    if d.chance(0.4):
        sizes = [d.integer(1, 4)] * count
    shape[axis] = sum(sizes)
    x = d.array(shape, dtype)
    attributes = {"axis": axis}
    even = len(set(sizes)) == 1
    if even and d.chance(0.6) and d.opset >= 18:
        return d.sample([x], attributes=attributes | {"num_outputs": count}, outputs=count)
    if even and d.chance(0.6):
        return d.sample([x], attributes=attributes, outputs=count) if d.opset < 18 else split(d)
    if d.opset < 13:
        return d.sample([x], attributes=attributes | {"split": sizes}, outputs=count)
    return d.sample([x, d.int64(sizes)], attributes=attributes, constants={1}, outputs=count)


def slice_(d):
    x = d.array(d.shape(1, 4), d.dtype())
    axes = d.axes(x.ndim, negative=d.opset >= 10)
    starts = [d.integer(-x.shape[a] - 2, x.shape[a] + 2) for a in axes]
    steps = [1 if d.opset < 10 else d.choice([1, 1, 2, 3, -1, -2]) for _ in axes]
    ends = [
        d.choice([d.integer(-x.shape[a] - 2, x.shape[a] + 2), 2**31 - 1 if step > 0 else -(2**31)])
        for a, step in zip(axes, steps, strict=True)
    ]
    if d.opset < 10:
        return d.sample([x], attributes={"starts": starts, "ends": ends, "axes": axes})
    indices = d.choice([np.int32, np.int64])
    constants = {1, 2, 3, 4} if d.chance(0.75) else set()
    return d.sample([x, *(np.array(v, indices) for v in (starts, ends, axes, steps))], constants=constants)


def gather(d):
    x = d.array(d.shape(1, 4, zero=0, elements=800), d.dtype())
    axis = d.axis(x.ndim)
    low = -x.shape[axis] if d.opset >= 11 else 0
    indices = d.rng.integers(low, x.shape[axis], d.shape(0, 2, elements=40)).astype(d.choice([np.int32, np.int64]))
    return d.sample([x, indices], attributes={"axis": axis}, constants={1} if d.chance(0.4) else set())


def pad(d):
    x = d.array(d.shape(1, 4, zero=0, elements=1500), d.dtype())
    mode = d.choice(["constant", "constant", "reflect", "edge"] + (["wrap"] if d.opset >= 19 else []))
    axes = d.axes(x.ndim) if d.opset >= 18 and d.chance(0.4) else None
    sizes = [x.shape[a] for a in axes] if axes else x.shape
    low = -1 if mode == "constant" else 0
    pads = []
    for size in [*sizes, *sizes]:
        most = min(size - 1, 3) if mode in ("reflect", "wrap") else 3
        pads.append(d.integer(low if size > 2 else 0, most))
    attributes = {"mode": mode} if mode != "constant" or d.chance(0.3) else {}
    if d.opset < 11:
        return d.sample([x], attributes=attributes | {"pads": pads} | ({"value": 1.5} if mode == "constant" else {}))
    wanted = d.chance(0.6) or x.dtype == DTYPES["float8e8m0"]  # which has no 0, the default
    value = d.array([], x.dtype, 0, 3) if mode == "constant" and wanted else None
    inputs = [x, d.int64(pads), value] + ([d.int64(axes)] if axes else [])
    return d.sample(inputs, attributes=attributes, constants={1, 2, 3})


def expand(d):
    shape = d.shape(0, 4)
    x = d.array(d.broadcast(shape), d.dtype())
    own = [None] * (len(shape) - x.ndim) + list(x.shape)
    wanted = [1 if mine == size and d.chance(0.2) else size for mine, size in zip(own, shape, strict=True)]
    return d.sample([x, d.int64(wanted)], constants={1} if d.chance(0.7) else set(), fixed={1})


def tile(d):
    x = d.array(d.shape(1, 4, elements=200), d.dtype())
    return d.sample(
        [x, d.int64([d.choice([1, 1, 2, 3, 0]) for _ in x.shape])], constants={1} if d.chance(0.7) else set()
    )


def squeeze(d):
    shape = d.shape(0, 3)
    axes = sorted(d.integer(0, len(shape)) for _ in range(d.integer(0, 2)))
    for axis in axes:
        shape.insert(axis, 1)
    x = d.array(shape, d.dtype())
    ones = [i for i, s in enumerate(shape) if s == 1]
    if not ones or d.chance(0.2):
        return d.sample([x], symbolic=False)
    chosen = [a - x.ndim if d.opset >= 11 and d.chance(0.5) else a for a in ones if d.chance(0.7)] or [ones[0]]
    if d.opset < 13:
        return d.sample([x], attributes={"axes": chosen})
    return d.sample([x, d.int64(chosen)], constants={1})


def unsqueeze(d):
    x = d.array(d.shape(0, 4), d.dtype())
    rank = x.ndim + d.integer(1, 2)
    axes = [int(a) for a in d.rng.permutation(rank)[: rank - x.ndim]]
    if d.opset < 13:
        axes = sorted(axes) if d.opset < 11 else [a - rank if d.chance(0.4) else a for a in axes]
        return d.sample([x], attributes={"axes": axes})
    return d.sample([x, d.int64([a - rank if d.chance(0.4) else a for a in axes])], constants={1})


def shape_of(d):
    x = d.array(d.shape(), d.dtype())
    attributes = {}
    if d.opset >= 15:
        for name in ("start", "end"):
            if d.chance(0.4):
                # Below -rank the specification clamps to 0 ("after adding r"), and the reference evaluator does not.
                attributes[name] = d.integer(-x.ndim, x.ndim + 1)
    return d.sample([x], attributes=attributes)


def constant(d):
    if d.opset >= 12 and d.chance(0.5):
        name, value = d.choice([
            ("value_float", 1.25), ("value_floats", [0.5, -2.0]), ("value_int", -7), ("value_ints", [3, 1, 2]),
        ])  # fmt: skip
        return d.sample([], attributes={name: value})
    value = d.array(d.shape(0, 3), d.dtype())
    return d.sample([], attributes={"value": numpy_helper.from_array(value)})


def constant_of_shape(d):
    shape = d.int64(d.shape(0, 4))
    attributes = {}
    if d.chance(0.8):
        attributes["value"] = numpy_helper.from_array(d.array([1], d.dtype("T2"), 1, 3))
    return d.sample([shape], attributes=attributes, constants={0} if d.chance(0.6) else set(), symbolic=False)


def center_crop_pad(d):
    x = d.array(d.shape(1, 4, elements=800), d.dtype())
    axes = d.axes(x.ndim) if d.chance(0.6) else None
    sizes = [d.integer(0, 9) for _ in (axes if axes is not None else x.shape)]
    shape = np.array(sizes, d.dtype("Tind"))
    constants = {1} if d.chance(0.6) else set()
    attributes = {} if axes is None else {"axes": axes}
    return d.sample([x, shape], attributes=attributes, constants=constants, fixed={1})


def center_cropped_and_padded(s, x, shape):
    for axis, size in zip(s.attributes.get("axes", range(x.ndim)), shape.tolist(), strict=True):
        own = x.shape[axis]
        if size < own:
            x = np.take(x, np.arange(size) + (own - size) // 2, axis)
        else:
            before = (size - own) // 2
            widths = [(0, 0)] * x.ndim
            widths[axis] = (before, size - own - before)
            x = np.pad(x, widths, constant_values="" if x.dtype == TEXT else 0)
    return x


GENERATORS = {
    "CenterCropPad": center_crop_pad,
    "Reshape": reshape, "Flatten": flatten, "Transpose": transpose, "Concat": concat, "Split": split, "Slice": slice_,
    "Gather": gather, "Pad": pad, "Expand": expand, "Tile": tile, "Squeeze": squeeze, "Unsqueeze": unsqueeze,
    "Shape": shape_of, "Constant": constant, "ConstantOfShape": constant_of_shape,
}  # fmt: skip
OWN = {"CenterCropPad": (PLAIN, center_cropped_and_padded)}
EXACT = {"CenterCropPad"}
