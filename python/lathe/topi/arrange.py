"""Functions of topi's that put elements in other places."""

from .. import _lathe
from .make import axes_of, state, tensor


def transpose(a, axes=None):
    """The dimensions in another order; without axes, the other way round."""
    return tensor(_lathe.topi_transpose(state(a), [int(axis) for axis in axes or []]))


def reshape(a, newshape):
    """The elements, row by row, in another shape; one extent may be -1."""
    return tensor(_lathe.topi_reshape(state(a), list(newshape)))


def expand_dims(a, axis, num_newaxis=1):
    """Dimensions of extent 1 before an axis."""
    return tensor(_lathe.topi_expand_dims(state(a), int(axis), int(num_newaxis)))


def squeeze(a, axis=None):
    """Without dimensions of extent 1: those of axis, or all."""
    return tensor(_lathe.topi_squeeze(state(a), axes_of(axis)))


def broadcast_to(data, shape):
    """The elements repeated along dimensions of extent 1."""
    return tensor(_lathe.topi_broadcast_to(state(data), list(shape)))


def flip(a, axis=0):
    """The elements along an axis, the last first."""
    return tensor(_lathe.topi_flip(state(a), int(axis)))


def concatenate(a_tuple, axis=0):
    """Tensors one after the other along an axis."""
    return tensor(_lathe.topi_concatenate([state(one) for one in a_tuple], int(axis)))


def stack(tensors, axis=0):
    """Tensors one after the other along a new axis."""
    return tensor(_lathe.topi_stack([state(one) for one in tensors], int(axis)))


def split(ary, indices_or_sections, axis=0):
    """Parts along an axis: so many equal ones, or those that end at these indices."""
    axis = axis % ary.ndim
    extent = int(ary.shape[axis])
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or extent % indices_or_sections:
            raise ValueError(f"an extent of {extent} has no {indices_or_sections} equal parts")
        size = extent // indices_or_sections
        ends = [size * part for part in range(1, indices_or_sections)]
    else:
        ends = [int(index) for index in indices_or_sections]
    parts = []
    for begin, end in zip([0, *ends], [*ends, extent]):
        lows = [0] * axis + [begin]
        highs = [int(size) for size in ary.shape[:axis]] + [end]
        parts.append(strided_slice(ary, lows, highs))
    return parts


def take(a, indices, axis=0, mode="clip"):
    """The elements at indices along an axis; indices beyond it are clipped to it."""
    if mode != "clip":
        raise ValueError(f"indices are clipped here, not treated as '{mode}'")
    return tensor(_lathe.topi_take(state(a), state(indices), int(axis)))


def strided_slice(a, begin, end, strides=None):
    """Elements from begin to end by strides, as Python's slices take them, of the first dimensions."""
    return tensor(_lathe.topi_strided_slice(state(a), list(begin), list(end), list(strides or [])))
