"""Samples of operators whose result is as large as the values say, and what they must answer."""

import numpy as np

from tests.operators.sample import TEXT, is_float


def few_values(d, shape, dtype):
    """Zeros, and values that come several times."""
    if dtype == np.bool_ or not is_float(dtype):
        return d.array(shape, dtype, -2, 2)
    return np.asarray(d.rng.choice([0.0, -0.0, 1.0, -2.5, 3.25], shape)).astype(dtype)


def nonzero(d):
    return d.sample([few_values(d, d.shape(0, 4, elements=400), d.dtype())])


def compress(d):
    shape = d.shape(1, 4, zero=0, elements=600)
    attributes = {"axis": d.axis(len(shape), d.opset >= 11)} if d.chance(0.7) else {}
    extent = shape[attributes["axis"]] if attributes else int(np.prod(shape))
    length = d.choice([extent, extent, max(extent - 2, 0), extent // 2])
    condition = d.rng.random(length) < d.choice([0.5, 0.5, 0.0, 1.0])
    return d.sample([d.array(shape, d.dtype()), condition], attributes=attributes)


def unique(d):
    shape = d.shape(1, 3, zero=0, elements=120)
    attributes = {"axis": d.axis(len(shape))} if d.chance(0.6) else {}
    if d.chance(0.6):
        attributes["sorted"] = d.integer(0, 1)
    return d.sample([few_values(d, shape, d.dtype())], attributes=attributes, outputs=d.integer(1, 4))


def non_max_suppression(d):
    batches, classes, count = d.integer(1, 3), d.integer(1, 3), d.choice([1, 2, 5, 9, 17])
    by_center = d.chance(0.4)
    boxes = d.array([batches, count, 4], np.dtype(np.float32), 0, 1)
    scores = d.array([batches, classes, count], np.dtype(np.float32), 0, 1)

    def one(value, dtype):
        return np.asarray(value, dtype).reshape(d.choice([[], [1]]))

    most = one(d.choice([0, 1, 3, 20]), np.int64) if d.chance(0.85) else None
    overlap = one(d.choice([0.0, 0.25, 0.5]), np.float32) if d.chance(0.7) else None
    least = one(d.choice([0.0, 0.3, 0.9]), np.float32) if d.chance(0.5) else None
    attributes = {"center_point_box": int(by_center)} if d.chance(0.8) or by_center else {}
    s = d.sample([boxes, scores, most, overlap, least], attributes=attributes)
    s.symbolic = {(i, a): f"n{a if i else (0, 2, 3)[a]}" for (i, a) in s.symbolic if i < 2 and (i, a) != (0, 2)}
    return s


# What they must answer.


def coordinates(s, x):
    if x.ndim == 0:
        return np.zeros((0, int(x != 0)), np.int64)
    return np.array(np.nonzero(x), np.int64)


def compressed(s, x, condition):
    axis = s.attributes.get("axis")
    extent = x.size if axis is None else x.shape[axis]
    return np.compress(condition[:extent], x, axis)


def different(s, x):
    axis = s.attributes.get("axis")
    parts = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    keys = [tuple(np.ravel(part if x.dtype == TEXT else part + 0).tolist()) for part in parts]  # -0.0 + 0 is 0.0
    found = list(dict.fromkeys(keys))
    if s.attributes.get("sorted", 1):
        found.sort()
    first = np.array([keys.index(key) for key in found], np.int64)
    inverse = np.array([found.index(key) for key in keys], np.int64)
    counts = np.array([keys.count(key) for key in found], np.int64)
    y = parts[first] if axis is None else np.moveaxis(parts[first], 0, axis)
    return [y, first, inverse, counts][: s.outputs]


def corners(s, box):
    if s.attributes.get("center_point_box"):
        x, y, width, height = box
        return y - height / 2, x - width / 2, y + height / 2, x + width / 2
    return min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3])


def overlap(a, b):
    both = max(min(a[2], b[2]) - max(a[0], b[0]), 0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def selected(s, boxes, scores, most=None, iou=None, least=None):
    most = 0 if most is None else int(most.item())
    iou = 0.0 if iou is None else iou.item()
    chosen = []
    for batch, of in np.ndindex(scores.shape[:2]):
        taken = []
        for i in np.argsort(-scores[batch, of], kind="stable"):
            if len(taken) >= most or (least is not None and not scores[batch, of, i] > least.item()):
                break
            if all(overlap(corners(s, boxes[batch, i]), corners(s, boxes[batch, j])) <= iou for j in taken):
                taken.append(i)
        chosen += [[batch, of, i] for i in taken]
    return np.array(chosen, np.int64).reshape(-1, 3)


GENERATORS = {
    "NonZero": nonzero, "Compress": compress, "Unique": unique, "NonMaxSuppression": non_max_suppression,
}  # fmt: skip
OWN = {
    "NonZero": ("fails on scalars", coordinates),
    "Compress": ("wants a condition as long as the axis", compressed),
    "Unique": ("orders by release", different),
    "NonMaxSuppression": ("does not take some shapes of its limits", selected),
}
EXACT = set(OWN)
