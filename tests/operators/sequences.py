"""Samples of sequences and optionals, and what they must answer."""

import numpy as np
from onnx import helper

from tests.operators.sample import PLAIN, Maybe, Parts, type_of


def sequence(d, parameter="S", least=0, most=4, rank=None, low=0):
    """Tensors of one rank, of their own extents each."""
    dtype = d.dtype(parameter)
    rank = d.integer(low, 3) if rank is None else rank
    parts = [d.array([d.integer(0, 4) for _ in range(rank)], dtype) for _ in range(d.integer(least, most))]
    return Parts(parts, dtype, rank)


def position(d, count, past_end=False):
    """Counted from either end."""
    return np.array(d.integer(-count, count if past_end else count - 1), d.dtype("I"))


def construct(d):
    parts = sequence(d, "T", least=1)
    return d.sample(list(parts), types=[parts])


def empty(d):
    dtype = d.dtype("S")
    attributes = {"dtype": helper.np_dtype_to_tensor_dtype(dtype)} if dtype != np.float32 or d.chance(0.5) else {}
    return d.sample([], attributes=attributes, types=[Parts([], dtype, 0)])


def at(d):
    parts = sequence(d, least=1)
    return d.sample([parts, position(d, len(parts))], types=[parts.dtype])


def erase(d):
    parts = sequence(d, least=1)
    place = position(d, len(parts)) if d.chance(0.7) else None
    return d.sample([parts, place], types=[parts])


def insert(d):
    parts = sequence(d)
    value = d.array([d.integer(0, 4) for _ in range(parts.rank)], parts.dtype)
    place = position(d, len(parts), past_end=True) if d.chance(0.7) else None
    return d.sample([parts, value, place], types=[parts], symbolic=False)


def length(d):
    return d.sample([sequence(d)], types=[np.dtype(np.int64)])


def split(d):
    x = d.array(d.shape(1, 4, elements=300), d.dtype("T"))
    axis = d.axis(x.ndim)
    extent, sizes, attributes = x.shape[axis], None, {"axis": axis} if axis or d.chance(0.5) else {}
    if d.chance(0.4):
        sizes = np.array(d.integer(1, 4), d.dtype("I"))
    elif d.chance(0.5):
        cuts = np.sort(d.rng.integers(0, extent + 1, d.integer(0, 3)))
        sizes = np.diff([0, *cuts, extent]).astype(d.dtype("I"))
    if d.chance(0.5):
        attributes["keepdims"] = d.integer(0, 1)
    keeps = attributes.get("keepdims", 1) or sizes is not None
    constants = {1} if sizes is not None and d.chance(0.5) else set()
    types = [Parts([], x.dtype, x.ndim - (not keeps))]
    return d.sample([x, sizes], attributes=attributes, constants=constants, types=types)


def join(d):
    new_axis = d.chance(0.4)
    dtype, rank = d.dtype("S"), d.integer(0 if new_axis else 1, 3)
    shape = [d.integer(0, 4) for _ in range(rank)]
    axis = d.axis(rank + new_axis)
    parts = []
    for _ in range(d.integer(1, 4)):
        own = list(shape)
        if not new_axis:
            own[axis] = d.integer(0, 4)
        parts.append(d.array(own, dtype))
    attributes = {"axis": axis} | ({"new_axis": int(new_axis)} if new_axis or d.chance(0.4) else {})
    return d.sample([Parts(parts, dtype, rank)], attributes=attributes, types=[dtype])


def map_(d):
    """Each element twice itself and what is added to all; the specification lets any graph be the body."""
    parts = sequence(d, low=1)
    extra = d.array([], parts.dtype) if d.chance(0.5) else None
    is_number = parts.dtype.name in ("float32", "float64", "float16", "int32", "int64", "uint32", "uint64")
    names = ["element"] + (["extra"] if extra is not None else [])
    nodes = [helper.make_node("Identity", ["element"], ["same"])]
    if is_number:
        nodes.append(helper.make_node("Add", ["same", names[-1]], ["result"]))
    else:
        nodes.append(helper.make_node("Identity", ["same"], ["result"]))
    elem = helper.np_dtype_to_tensor_dtype(parts.dtype)
    kinds = [helper.make_tensor_value_info(n, elem, [None] * (parts.rank if n != "extra" else 0))
             for n in [*names, "result"]]  # fmt: skip
    body = helper.make_graph(nodes, "body", kinds[:-1], kinds[-1:])
    inputs = [parts] + ([extra] if extra is not None else [])
    plan = {"adds": is_number}
    return d.sample(inputs, attributes={"body": body}, types=[parts], plan=plan, symbolic=False)


def held(d, parameter):
    """A tensor or a sequence."""
    return sequence(d, parameter) if d.chance(0.4) else d.array(d.shape(0, 3, elements=300), d.dtype(parameter))


def optional(d):
    value = held(d, "V")
    s = d.sample([value], types=[Maybe(value, True)], symbolic=False)
    if d.chance(0.3):
        s.inputs, s.attributes = [], {"type": type_of(value)}
    return s


def maybe(d, always=False):
    """An optional; from opset 18 on also what would be in it, or nothing at all."""
    value = held(d, "O")
    if d.opset >= 18 and d.chance(0.3):
        return value
    return Maybe(value, always or d.chance(0.6))


def has_element(d):
    inputs = [] if d.opset >= 18 and d.chance(0.15) else [maybe(d)]
    return d.sample(inputs, types=[np.dtype(np.bool_)], symbolic=False)


def get_element(d):
    given = maybe(d, always=True)
    value = given.value if isinstance(given, Maybe) else given
    return d.sample([given], types=[value if isinstance(value, Parts) else value.dtype], symbolic=False)


# What they must answer.


def like(parts, tensors):
    return Parts(tensors, parts.dtype, parts.rank)


def erased(s, parts, place=None):
    place = (len(parts) - 1 if place is None else int(place)) % len(parts)
    return like(parts, [x for i, x in enumerate(parts) if i != place])


def inserted(s, parts, value, place=None):
    place = len(parts) if place is None else int(place)
    place = place + len(parts) if place < 0 else place
    return like(parts, [*parts[:place], value, *parts[place:]])


def taken_apart(s, x, sizes=None):
    axis, keeps = s.attributes.get("axis", 0), s.attributes.get("keepdims", 1)
    extent = x.shape[axis]
    if sizes is None:
        parts = [np.take(x, [i] if keeps else i, axis) for i in range(extent)]
        return Parts(parts, x.dtype, x.ndim - (not keeps))
    step = sizes.tolist()
    ends = np.cumsum(step) if isinstance(step, list) else [min(k + step, extent) for k in range(0, extent, step)]
    starts = [0, *ends][: len(ends)]
    return Parts([np.take(x, range(a, b), axis) for a, b in zip(starts, ends, strict=True)], x.dtype, x.ndim)


def joined(s, parts):
    return (np.stack if s.attributes.get("new_axis") else np.concatenate)(list(parts), s.attributes["axis"])


def mapped(s, parts, extra=None):
    return like(parts, [x + (x if extra is None else extra) if s.plan["adds"] else x for x in parts])


def content(x):
    return x.value if isinstance(x, Maybe) else x


GENERATORS = {
    "SequenceConstruct": construct, "SequenceEmpty": empty, "SequenceAt": at, "SequenceErase": erase,
    "SequenceInsert": insert, "SequenceLength": length, "SplitToSequence": split, "ConcatFromSequence": join,
    "SequenceMap": map_, "Optional": optional, "OptionalHasElement": has_element, "OptionalGetElement": get_element,
}  # fmt: skip
OWN = {
    "SequenceConstruct": (PLAIN, lambda s, *xs: Parts(xs, xs[0].dtype, xs[0].ndim)),
    "SequenceEmpty": (PLAIN, lambda s: s.types[0]),
    "SequenceAt": (PLAIN, lambda s, parts, place: parts[int(place)]),
    "SequenceErase": (PLAIN, erased), "SequenceInsert": (PLAIN, inserted),
    "SequenceLength": (PLAIN, lambda s, parts: np.array(len(parts))),
    "SplitToSequence": (PLAIN, taken_apart), "ConcatFromSequence": (PLAIN, joined), "SequenceMap": (PLAIN, mapped),
    "Optional": (PLAIN, lambda s, value=None: value),
    "OptionalHasElement": (PLAIN, lambda s, x=None: np.array(x is not None and (not isinstance(x, Maybe) or x.has))),
    "OptionalGetElement": (PLAIN, lambda s, x: content(x)),
}  # fmt: skip
EXACT = set(OWN)
