"""Samples of the operators that make tensors of numbers, and what they must answer."""

import math

import numpy as np
from onnx import helper

from tests.operators.sample import FLOATS, PLAIN, is_float


def eye_like(d):
    x = d.array(d.shape(2, 2, elements=400), d.dtype("T1"))
    attributes = {"k": d.integer(-5, 5)} if d.chance(0.6) else {}
    if d.chance(0.6):
        attributes["dtype"] = helper.np_dtype_to_tensor_dtype(d.dtype("T2"))
    return d.sample([x], attributes=attributes)


def window(d):
    """Of floats: a number that is nearly 1 and then cut off proves nothing."""
    attributes = {"periodic": d.integer(0, 1)} if d.chance(0.6) else {}
    # One element that is not periodic divides by zero.
    size = np.array(d.choice([0, 2, 3, 8, 17] + [1] * attributes.get("periodic", 1)), d.dtype("T1"))
    dtype = d.dtype("T2", only=FLOATS)
    if d.chance(0.6) or dtype != np.float32:
        attributes["output_datatype"] = helper.np_dtype_to_tensor_dtype(dtype)
    constants = {0} if d.chance(0.5) else set()
    return d.sample([size], attributes=attributes, constants=constants, terms=3, types=[dtype])


def range_(d):
    """Quarters, which are exact, and so is the number of elements."""
    dtype = d.dtype()
    delta = d.choice([1, 2, 3, -1, -2, 0.25, -0.5] if is_float(dtype) else [1, 2, 3, -1, -2, -7])
    start = d.integer(-9, 9)
    limit = start + delta * d.integer(-2, 40) + (d.choice([0, 0, delta / 2]) if is_float(dtype) else 0)
    ends = [np.array(v).astype(dtype) for v in (start, limit, delta)]
    return d.sample(ends, constants={i for i in range(3) if d.chance(0.5)})


def one_hot(d):
    """Indices that are not in the range of the depth, counted from either end, switch nothing on."""
    depth = d.integer(0 if d.opset >= 11 else 1, 6)
    low = -depth - 1 if d.opset >= 11 else 0
    indices = d.array(d.shape(1, 3, elements=200), d.dtype("T1"), low, depth)
    indices = np.trunc(indices) if is_float(indices.dtype) else indices
    values = d.array([2], d.dtype("T3"))
    given = np.array(depth, d.dtype("T2")).reshape(d.choice([[], [1]]))
    attributes = {"axis": d.integer(-indices.ndim - 1, indices.ndim)} if d.chance(0.7) else {}
    return d.sample([indices, given, values], attributes=attributes, constants={1} if d.chance(0.5) else set())


def size_of(d):
    return d.sample([d.array(d.shape(), d.dtype())])


# What they must answer.


def diagonal(s, x):
    return np.eye(*x.shape, k=s.attributes.get("k", 0))


def raised_cosines(*coefficients):
    def evaluate(s, size):
        size = int(size)
        count = size if s.attributes.get("periodic", 1) else size - 1
        angle = 2 * math.pi * np.arange(size) / (count or 1)
        return sum((-1) ** k * a * np.cos(k * angle) for k, a in enumerate(coefficients))

    return evaluate


def counted(s, start, limit, delta):
    count = max(math.ceil((float(limit) - float(start)) / float(delta)), 0)
    return float(start) + np.arange(count) * float(delta)


def switched(s, indices, depth, values):
    depth = int(np.asarray(depth).item())
    places = indices.astype(np.int64)
    places = np.where((places < 0) & (s.opset >= 11), places + depth, places)
    axis = s.attributes.get("axis", -1)
    hot = np.expand_dims(places, axis) == np.arange(depth).reshape(
        [-1 if a == axis % (indices.ndim + 1) else 1 for a in range(indices.ndim + 1)]
    )
    return np.where(hot, values[1], values[0])


GENERATORS = {
    "EyeLike": eye_like, "BlackmanWindow": window, "HammingWindow": window, "HannWindow": window,
    "Range": range_, "OneHot": one_hot, "Size": size_of,
}  # fmt: skip
OWN = {
    "EyeLike": (PLAIN, diagonal),
    "BlackmanWindow": (PLAIN, raised_cosines(0.42, 0.5, 0.08)),
    "HammingWindow": (PLAIN, raised_cosines(25 / 46, 21 / 46)),
    "HannWindow": (PLAIN, raised_cosines(0.5, 0.5)),
    "Range": (PLAIN, counted),
    "OneHot": (PLAIN, switched),
    "Size": (PLAIN, lambda s, x: np.array(x.size)),
}
EXACT = {"EyeLike", "OneHot"}
