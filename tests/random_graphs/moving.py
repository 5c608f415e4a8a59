"""Nodes that move elements: reshapes, slices, joins, gathers, and shapes that are computed."""

import numpy as np
from onnx import numpy_helper

from tests.operators.sample import DTYPES
from tests.random_graphs.graph import Rejected

ANY = ("float", "double", "float16", "bfloat16", "int32", "int64", "bool", "int8", "uint8")


def any_dtype(g):
    return (g.float,) if g.chance(0.75) else ANY


def divided(g, size):
    """Some way to write a size as a product."""
    for d in (2, 3, 5, 7):
        if size % d == 0 and size > d and g.chance(0.5):
            return [d, size // d] if g.chance(0.5) else [size // d, d]
    return [size]


def reshape(g):
    x = g.pick(any_dtype(g))
    shape = list(x.shape)
    if len(shape) > 1 and g.chance(0.5):
        at = g.integer(0, len(shape) - 2)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    elif shape:
        at = g.integer(0, len(shape) - 1)
        shape[at : at + 1] = divided(g, shape[at])
    if g.chance(0.3):
        shape.insert(g.integer(0, len(shape)), 1)
    if len(shape) > 5:
        raise Rejected
    allow_zero = 0 in shape
    if shape and not allow_zero and g.chance(0.6):
        shape[g.integer(0, len(shape) - 1)] = -1
    if allow_zero and g.opset < 14:
        raise Rejected
    return g.node("Reshape", [x, g.integers(shape)], {"allowzero": 1} if allow_zero else {})


def reshape_to(g):
    """Reshape by a computed shape, as exporters write it."""
    x = g.pick(low=2, high=4, where=lambda v: v.size > 0)
    (shape,) = g.node("Shape", [x], dtypes=["int64"])
    (first,) = g.node("Gather", [shape, g.integers([0])], {"axis": 0}, ["int64"])
    (wanted,) = g.node("Concat", [first, g.integers([-1])], {"axis": 0})
    return g.node("Reshape", [x, wanted])


def expand_to(g):
    x = g.pick(low=1, high=3)
    y = g.partner(x)
    (shape,) = g.node("Shape", [y], dtypes=["int64"])
    return g.node("Expand", [x, shape])


def filled(g):
    x = g.pick(ANY, low=1, high=3)
    (shape,) = g.node("Shape", [x], dtypes=["int64"])
    value = numpy_helper.from_array(np.array([1.5], DTYPES[g.float]))
    return g.node("ConstantOfShape", [shape], {"value": value}, [g.float])


def shape_of(g):
    x = g.pick(ANY)
    attributes = {}
    if g.opset >= 15 and x.rank:
        attributes = {name: g.integer(-x.rank, x.rank) for name in ("start", "end") if g.chance(0.4)}
    return g.node("Shape", [x], attributes, ["int64"])


def size_of(g):
    return g.node("Size", [g.pick(ANY)], dtypes=["int64"])


def flatten(g):
    x = g.pick(any_dtype(g))
    return g.node("Flatten", [x], {"axis": g.integer(-x.rank, x.rank)})


def transpose(g):
    x = g.pick(any_dtype(g), low=1)
    return g.node("Transpose", [x], {"perm": [int(a) for a in g.rng.permutation(x.rank)]} if g.chance(0.85) else {})


def concat(g):
    x = g.pick(any_dtype(g), low=1)
    axis = g.axis(x.rank)

    def fits(v):
        return v.rank == x.rank and all(
            a == b for i, (a, b) in enumerate(zip(v.shape, x.shape, strict=True)) if i != axis % x.rank
        )

    parts = [x]
    for _ in range(g.integer(1, 3)):
        try:
            parts.append(g.pick((x.dtype,), where=fits, new=0.3))
        except Rejected:
            shape = list(x.shape)
            shape[axis] = g.integer(1, 4)
            parts.append(g.fresh(shape, x.dtype))
    g.rng.shuffle(parts)
    return g.node("Concat", parts, {"axis": axis})


def split(g):
    x = g.pick(any_dtype(g), low=1, where=lambda v: max(v.shape) > 1)
    axis = g.choice([i for i, n in enumerate(x.shape) if n > 1])
    cuts = sorted({g.integer(1, x.shape[axis] - 1) for _ in range(g.integer(1, 2))})
    sizes = np.diff([0, *cuts, x.shape[axis]]).tolist()
    return g.node("Split", [x, g.integers(sizes)], {"axis": axis - g.choice([0, x.rank])}, outputs=len(sizes))


def slice_(g):
    x = g.pick(any_dtype(g), low=1)
    axes = g.axes(x.rank)
    steps = [g.choice([1, 1, 1, 2, -1, -2]) for _ in axes]
    starts, ends = [], []
    for axis, step in zip(axes, steps, strict=True):
        n = x.shape[axis]
        low = g.integer(0, max(n // 2, 0))
        high = g.integer(min(low + 1, n), n + 2)
        starts.append(low if step > 0 else high)
        ends.append(high if step > 0 else low - 1 if low else -(2**31))
        if g.chance(0.2):
            starts[-1], ends[-1] = g.integer(-n - 2, n + 2), g.integer(-n - 2, n + 2)
    return g.node("Slice", [x, g.integers(starts), g.integers(ends), g.integers(axes), g.integers(steps)])


def gather(g):
    x = g.pick(any_dtype(g), low=1, where=lambda v: v.size > 0)
    axis = g.axis(x.rank)
    n = x.shape[axis]
    indices = g.fresh(g.shape(0, 2, zero=0.02, elements=12), g.choice(["int32", "int64"]), -n, n - 1)
    return g.node("Gather", [x, indices], {"axis": axis})


def gather_nd(g):
    x = g.pick(any_dtype(g), low=1, where=lambda v: v.size > 0)
    depth = g.integer(1, x.rank)
    rows = g.shape(0, 2, zero=0, elements=8)
    indices = np.stack([g.rng.integers(-n, n, rows) for n in x.shape[:depth]], -1)
    return g.node("GatherND", [x, g.constant(indices.astype(np.int64), "int64")])


def scatter_nd(g):
    x = g.pick(any_dtype(g), low=1, where=lambda v: v.size > 0)
    rows = g.integer(1, x.shape[0])
    indices = g.rng.permutation(x.shape[0])[:rows].reshape(rows, 1)
    updates = g.fresh([rows, *x.shape[1:]], x.dtype)
    return g.node("ScatterND", [x, g.constant(indices.astype(np.int64), "int64"), updates])


def pad(g):
    x = g.pick(any_dtype(g), low=1)
    mode = g.choice(["constant", "constant", "edge", "reflect"])
    if mode != "constant" and min(x.shape) < 2:
        raise Rejected
    low = -1 if mode == "constant" and min(x.shape) > 2 else 0
    most = 2 if mode == "constant" else min(2, min(x.shape) - 1)
    pads = [g.integer(low, most) if g.chance(0.6) else 0 for _ in range(2 * x.rank)]
    value = [g.constant(np.float64(1), x.dtype)] if mode == "constant" and g.chance(0.5) else []
    return g.node("Pad", [x, g.integers(pads), *value], {"mode": mode})


def tile(g):
    x = g.pick(any_dtype(g), low=1)
    return g.node("Tile", [x, g.integers([g.choice([1, 1, 2, 3]) for _ in x.shape])])


def squeeze(g):
    x = g.pick(any_dtype(g), low=1, where=lambda v: 1 in v.shape)
    ones = [i for i, n in enumerate(x.shape) if n == 1]
    chosen = [i - g.choice([0, x.rank]) for i in ones if g.chance(0.7)] or [ones[0]]
    return g.node("Squeeze", [x, g.integers(chosen)])


def unsqueeze(g):
    x = g.pick(any_dtype(g), high=4)
    rank = x.rank + g.integer(1, 2)
    return g.node("Unsqueeze", [x, g.integers(g.rng.permutation(rank)[: rank - x.rank])])


def depth_to_space(g):
    x = g.pick(low=4, high=4, where=lambda v: v.shape[1] % 4 == 0 and v.size > 0)
    return g.node("DepthToSpace", [x], {"blocksize": 2, "mode": g.choice(["DCR", "CRD"])})


def space_to_depth(g):
    x = g.pick(low=4, high=4, where=lambda v: v.shape[2] % 2 == 0 and v.shape[3] % 2 == 0 and v.size > 0)
    return g.node("SpaceToDepth", [x], {"blocksize": 2})


def trilu(g):
    x = g.pick(any_dtype(g), low=2)
    k = [g.constant(np.int64(g.integer(-3, 3)), "int64")] if g.chance(0.5) else []
    return g.node("Trilu", [x, *k], {"upper": g.integer(0, 1)})


def top_k(g):
    x = g.pick((g.float,), low=1, where=lambda v: v.size > 0)
    axis = g.axis(x.rank)
    count = g.integers([g.integer(1, x.shape[axis])])
    return g.node("TopK", [x, count], {"axis": axis, "largest": g.integer(0, 1)}, [x.dtype, "int64"], 2)


def one_hot(g):
    n = g.integer(2, 6)
    indices = g.pick(("int64", "int32"), high=3)
    values = g.constant(np.array([0.5, 2.0]), g.float)
    axis = g.axis(indices.rank + 1)
    return g.node("OneHot", [indices, g.constant(np.int64(n), "int64"), values], {"axis": axis}, [g.float])


def resize(g):
    x = g.pick(low=4, high=4, where=lambda v: v.size > 0)
    scales = g.constant(np.array([1.0, 1.0, g.choice([1, 2]), g.choice([2, 3])]), "float")
    mode, where = g.choice([("nearest", "asymmetric"), ("linear", "asymmetric"), ("linear", "half_pixel")])
    attributes = {"mode": mode, "coordinate_transformation_mode": where}
    if mode == "nearest":
        attributes["nearest_mode"] = "floor"
    return g.node("Resize", [x, None, scales], attributes)


ROWS = {
    "Reshape": reshape, "reshape_to": reshape_to, "expand_to": expand_to, "filled": filled, "Shape": shape_of,
    "Size": size_of, "Flatten": flatten, "Transpose": transpose, "Concat": concat, "Split": split, "Slice": slice_,
    "Gather": gather, "GatherND": gather_nd, "ScatterND": scatter_nd, "Pad": pad, "Tile": tile, "Squeeze": squeeze,
    "Unsqueeze": unsqueeze, "DepthToSpace": depth_to_space, "SpaceToDepth": space_to_depth, "Trilu": trilu,
    "TopK": top_k, "OneHot": one_hot, "Resize": resize,
}  # fmt: skip
WEIGHTS = {"Reshape": 3, "Transpose": 4, "Concat": 2, "Slice": 3, "Split": 2, "Pad": 2}
