"""Samples of the operators that read, write and order by position."""

import numpy as np

from tests.operators.sample import PLAIN, TEXT, is_float


def of_chosen(d, data, axis, low, shape):
    """Indices along an axis, some of them counted from the end."""
    return d.rng.integers(low, data.shape[axis], shape).astype(d.choice([np.int32, np.int64]))


def gather_elements(d):
    x = d.array(d.shape(1, 4, zero=0, elements=800), d.dtype())
    axis = d.axis(x.ndim)
    shape = [d.integer(0, 5) if a == axis % x.ndim else d.integer(1, n) for a, n in enumerate(x.shape)]
    return d.sample([x, of_chosen(d, x, axis, -x.shape[axis], shape)], attributes={"axis": axis}, symbolic=False)


def scatter_elements(d):
    x = d.array(d.shape(1, 4, zero=0, elements=800), d.dtype())
    axis = d.axis(x.ndim) % x.ndim
    shape = [d.integer(1, n) for n in x.shape]
    # Without a reduction an element may be written once only.
    order = np.argsort(d.rng.random([*shape[:axis], x.shape[axis], *shape[axis + 1 :]]), axis)
    indices = np.take(order, np.arange(shape[axis]), axis)
    attributes = {"axis": axis}
    if d.opset >= 16 and x.dtype not in (np.bool_, TEXT) and d.chance(0.4):
        attributes["reduction"] = d.choice(["add", "mul"] + (["max", "min"] if d.opset >= 18 else []))
    updates = d.array(shape, x.dtype)
    return d.sample([x, indices.astype(np.int64), updates], attributes=attributes, symbolic=False)


def tensor_scatter(d):
    cache = d.array(d.shape(2, 5, elements=1500), d.dtype())
    axis = d.integer(1, cache.ndim - 1)
    length = d.integer(0, cache.shape[axis])
    update = d.array([length if a == axis else n for a, n in enumerate(cache.shape)], cache.dtype)
    mode = d.choice(["linear", "circular"])
    last = cache.shape[axis] - length if mode == "linear" else 2 * cache.shape[axis]
    starts = d.rng.integers(0, last + 1, cache.shape[:1]) if d.chance(0.8) else None
    attributes = {"axis": axis - cache.ndim if d.chance(0.5) else axis, "mode": mode}
    if cache.ndim > 2 and axis == cache.ndim - 2 and d.chance(0.5):
        attributes = {}  # "linear" along this axis
        starts = starts if mode == "linear" else None
    return d.sample([cache, update, starts], attributes=attributes, constants={2} if d.chance(0.2) else set())


def trilu(d):
    x = d.array(d.shape(2, 4), d.dtype())
    attributes = {"upper": d.integer(0, 1)} if d.chance(0.7) else {}
    k = d.int64(d.integer(-4, 4)) if d.chance(0.6) else None
    return d.sample([x, k], attributes=attributes, constants={1} if d.chance(0.5) else set())


def cumulative(d):
    x = d.array(d.shape(1, 4, elements=800), d.dtype())
    attributes = {name: d.integer(0, 1) for name in ("exclusive", "reverse") if d.chance(0.5)}
    axis = np.array(d.axis(x.ndim), d.choice([np.int32, np.int64]))
    return d.sample([x, axis], attributes=attributes, constants={1} if d.chance(0.5) else set(), terms=x.size)


def top_k(d):
    x = d.array(d.shape(1, 4, zero=0, elements=800), d.dtype())
    x = d.rng.permutation(x.size).reshape(x.shape).astype(x.dtype) if x.size < 100 else x
    axis = d.axis(x.ndim, negative=d.opset >= 11)
    attributes = {"axis": axis}
    if d.opset >= 11:
        attributes["largest"] = d.integer(0, 1)
    # The attribute must be positive; the input is taken to be zero at times, as an empty result is well defined.
    count = d.int64([d.integer(1 if d.opset < 10 else 0, x.shape[axis])])
    if d.opset < 10:
        return d.sample([x], attributes=attributes | {"k": int(count[0])}, outputs=2)
    return d.sample([x, count], attributes=attributes, constants={1} if d.chance(0.5) else set(), outputs=2)


def depth_to_space(d):
    block = d.integer(1, 3)
    x = d.array([d.integer(0, 2), block * block * d.integer(1, 3), d.integer(1, 5), d.integer(1, 5)], d.dtype())
    attributes = {"blocksize": block}
    if d.opset >= 11 and d.chance(0.6):
        attributes["mode"] = d.choice(["DCR", "CRD"])
    return d.sample([x], attributes=attributes, symbolic=False)


def space_to_depth(d):
    block = d.integer(1, 3)
    x = d.array([d.integer(1, 2), d.integer(1, 3), block * d.integer(1, 4), block * d.integer(1, 4)], d.dtype())
    return d.sample([x], attributes={"blocksize": block}, symbolic=False)


def gather_nd(d):
    x = d.array(d.shape(1, 4, zero=0, elements=600), d.dtype())
    batches = d.integer(0, x.ndim - 1) if d.opset >= 12 and d.chance(0.5) else 0
    width = d.integer(1, x.ndim - batches)
    between = [d.integer(0, 4) for _ in range(d.integer(0, 2))] if batches or d.chance(0.9) else []
    limits = np.array(x.shape[batches : batches + width])
    low = -limits if d.opset >= 11 else 0 * limits
    indices = d.rng.integers(low, limits, [*x.shape[:batches], *between, width]).astype(np.int64)
    attributes = {"batch_dims": batches} if batches or d.opset >= 12 and d.chance(0.3) else {}
    symbolic = not batches  # two of them of one length are another question
    s = d.sample([x, indices], attributes=attributes, fixed={1}, symbolic=symbolic)
    s.constants = {1} if not s.symbolic and d.chance(0.4) else set()
    return s


def scatter_nd(d):
    x = d.array(d.shape(1, 4, zero=0, elements=600), d.dtype())
    width = d.integer(1, x.ndim)
    places = np.array(list(np.ndindex(*x.shape[:width])), np.int64)
    attributes = {}
    if d.opset >= 16 and x.dtype not in (np.bool_, TEXT) and d.chance(0.5):
        attributes["reduction"] = d.choice(["add", "mul"] + (["max", "min"] if d.opset >= 18 else []))
    # Without a reduction an element may be written once only.
    count = d.integer(0, min(len(places), 5))
    chosen = d.rng.integers(0, len(places), count) if attributes else d.rng.permutation(len(places))[:count]
    indices = places[chosen]
    if d.chance(0.5):
        indices = np.where(d.rng.random(indices.shape) < 0.4, indices - np.array(x.shape[:width]), indices)
    if d.chance(0.4):
        indices = indices[None] if d.chance(0.5) else indices[:, None]
    updates = d.array([*indices.shape[:-1], *x.shape[width:]], x.dtype)
    terms = max(count, 1) if attributes else 1
    return d.sample([x, indices, updates], attributes=attributes, symbolic=False, terms=terms)


def reverse_sequence(d):
    x = d.array(d.shape(2, 4, elements=600), d.dtype())
    time = d.integer(0, 1)
    attributes = {"time_axis": time, "batch_axis": 1 - time} if time or d.chance(0.6) else {}
    lengths = d.rng.integers(min(1, x.shape[time]), x.shape[time] + 1, x.shape[1 - time])
    return d.sample([x, lengths.astype(np.int64)], attributes=attributes, symbolic=False)


def cumulative_product(d):
    dtype = d.dtype()
    x = d.array(d.shape(1, 4, elements=400), dtype, *((0.6, 1.4) if is_float(dtype) else (-3, 3)))
    attributes = {name: d.integer(0, 1) for name in ("exclusive", "reverse") if d.chance(0.5)}
    axis = np.array(d.axis(x.ndim), d.dtype("T2"))
    constants = {1} if d.chance(0.5) else set()
    return d.sample([x, axis], attributes=attributes, constants=constants, terms=x.size + 1)


GENERATORS = {
    "GatherND": gather_nd, "ScatterND": scatter_nd, "Scatter": scatter_elements, "ReverseSequence": reverse_sequence,
    "CumProd": cumulative_product,
    "GatherElements": gather_elements, "ScatterElements": scatter_elements, "Trilu": trilu, "CumSum": cumulative,
    "TopK": top_k, "TensorScatter": tensor_scatter, "DepthToSpace": depth_to_space, "SpaceToDepth": space_to_depth,
}  # fmt: skip


# What they must answer, in NumPy.


COMBINED = {
    "none": lambda old, new: new, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


def scattered(s, x, indices, updates):
    y = x.copy()
    axis, combine = s.attributes["axis"], COMBINED[s.attributes.get("reduction", "none")]
    for at in np.ndindex(indices.shape):
        to = list(at)
        to[axis] = int(indices[at])
        y[tuple(to)] = combine(y[tuple(to)], updates[at])
    return y


def cache_written(s, cache, update, starts=None):
    y, axis = cache.copy(), s.attributes.get("axis", -2)
    starts = np.zeros(cache.shape[0], np.int64) if starts is None else starts
    for batch, start in enumerate(starts):
        places = start + np.arange(update.shape[axis])
        places = places % max(cache.shape[axis], 1) if s.attributes.get("mode") == "circular" else places
        np.moveaxis(y, axis, 1)[batch, places] = np.moveaxis(update, axis, 1)[batch]
    return y


def triangle(s, x, k=None):
    kept = (np.triu if s.attributes.get("upper", 1) else np.tril)(np.ones(x.shape, bool), 0 if k is None else int(k))
    return np.where(kept, x, np.array("" if x.dtype == TEXT else 0, x.dtype))


def cumulated(function, first):
    def evaluate(s, x, axis):
        axis = int(axis)
        y = np.flip(x, axis) if s.attributes.get("reverse") else x
        y = function(y, axis, dtype=x.dtype)
        if s.attributes.get("exclusive"):
            start = np.full_like(np.take(y, [0], axis), first) if y.shape[axis] else np.take(y, [], axis)
            y = np.concatenate([start, np.take(y, np.arange(max(y.shape[axis] - 1, 0)), axis)], axis)
        return np.flip(y, axis) if s.attributes.get("reverse") else y

    return evaluate


def gathered(s, x, indices):
    batches = s.attributes.get("batch_dims", 0)
    y = np.empty([*indices.shape[:-1], *x.shape[batches + indices.shape[-1] :]], x.dtype)
    for at in np.ndindex(indices.shape[:-1]):
        y[at] = x[(*at[:batches], *indices[at])]
    return y


def scattered_nd(s, x, indices, updates):
    y = x.copy()
    for at in np.ndindex(indices.shape[:-1]):
        place = tuple(indices[at])
        y[place] = COMBINED[s.attributes.get("reduction", "none")](y[place], updates[at])
    return y


def reversed_parts(s, x, lengths):
    time = s.attributes.get("time_axis", 0)
    y = np.moveaxis(x, time, 0).copy()
    for batch, length in enumerate(lengths):
        y[:length, batch] = y[:length, batch][::-1]
    return np.moveaxis(y, 0, time)


def largest(s, x, count=None):
    axis = s.attributes["axis"]
    count = int(s.attributes["k"] if count is None else count[0])
    keys = x.astype(np.int64) if x.dtype.kind in "iu" else x
    order = np.argsort(-keys if s.attributes.get("largest", 1) else keys, axis, kind="stable")
    places = np.take(order, np.arange(count), axis)
    return [np.take_along_axis(x, places, axis), places.astype(np.int64)]


OWN = {
    "ScatterElements": ("knows few ranks", scattered),
    "TensorScatter": ("going round, it wraps the indices of all axes", cache_written),
    "Trilu": ("raises on zero sizes", triangle),
    "CumSum": ("does not keep the dtype of narrow integers", cumulated(np.cumsum, 0)),
    "CumProd": (PLAIN, cumulated(np.cumprod, 1)),
    "Scatter": (PLAIN, scattered),
    "ScatterND": (PLAIN, scattered_nd),
    "GatherND": (PLAIN, gathered),
    "ReverseSequence": (PLAIN, reversed_parts),
    "TopK": ("orders equals by release", largest),
    "GatherElements": ("loops over few ranks", lambda s, x, i: np.take_along_axis(
        x[tuple(slice(None) if a == s.attributes["axis"] % x.ndim else slice(0, n) for a, n in enumerate(i.shape))],
        i, s.attributes["axis"])),
}  # fmt: skip
