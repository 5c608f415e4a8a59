"""What the vocabulary gives compiled code that is no array: shapes and texts, which Python's own stand for here."""

import os

import numpy as np

from .. import _lathe
from ..errors import Error
from .array import NDArray, array


class ShapeTuple(tuple):
    """Extents: a tuple of integers."""

    def __new__(cls, shape=()):
        extents = tuple(shape)
        for extent in extents:
            if isinstance(extent, bool) or not isinstance(extent, (int, np.integer)):
                raise TypeError(f"a shape holds integers, not {type(extent).__name__}")
        return super().__new__(cls, map(int, extents))

    def __repr__(self):
        return f"ShapeTuple({list(self)})"


class String(str):
    """A text."""


def convert(value):
    """A value of Python's as compiled code takes it: arrays for NumPy's, lists and tuples item by item, else itself."""
    if isinstance(value, np.ndarray) and not isinstance(value, NDArray):
        return array(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, ShapeTuple):
        return type(value)(convert(item) for item in value)
    return value


def const(value, dtype=None):
    """A number as a constant of programs: int32 and float32 unless a dtype is given."""
    if dtype is None:
        dtype = "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"
    return _lathe.expr(value, str(dtype))


def enabled(target):
    """Whether code can be generated for the target: "llvm", or what `lathe compile --target` takes."""
    from ..target import target_name

    try:
        _lathe.describe_target(target_name(target))
    except Error:
        return False
    return True


def num_threads():
    """How many threads compiled code uses unless it is told: one for each core that this process may run on."""
    return len(os.sched_getaffinity(0))
