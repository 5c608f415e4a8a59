"""Operators on tensors of te: elementwise, arrangements, reductions; nn has those of networks.

    A, B = te.placeholder((m, k)), te.placeholder((k, n))
    C = topi.nn.relu(topi.matmul(A, B))
"""

from .. import _lathe
from ..names import refuser as _refuser
from ..te import compute, einsum
from ..te.tensor import Tensor
from . import nn
from .make import axes_of, scalar, state, tensor


def _unary(name, meaning):
    def made(x):
        return tensor(_lathe.topi_unary(name, state(x)))

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"Each element: {meaning}."
    return made


def _binary(name, meaning):
    def made(lhs, rhs):
        if not isinstance(lhs, Tensor) and not isinstance(rhs, Tensor):
            raise TypeError(f"{name} takes a tensor; of two numbers, use tir's functions")
        return tensor(_lathe.topi_binary(name, *(one._state if isinstance(one, Tensor) else one for one in (lhs, rhs))))

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"Each element: {meaning}, broadcast. A number takes the tensor's dtype."
    return made


_NN = {"relu"}
for _name, _meaning in _lathe.topi_unary_rows():
    if _name not in _NN:
        globals()[_name] = _unary(_name, _meaning)
for _name, _meaning in _lathe.topi_binary_rows():
    globals()[_name] = _binary(_name, _meaning)


def cast(x, dtype, span=None):
    """The elements converted."""
    return tensor(_lathe.topi_cast(state(x), str(dtype)))


def clip(x, a_min, a_max):
    """The elements, no smaller than a_min and no larger than a_max."""
    return minimum(maximum(x, a_min), a_max)  # noqa: F821


def where(condition, x, y):
    """The element of x where the condition holds, else that of y; all broadcast."""
    return tensor(_lathe.topi_where(state(condition), state(x), state(y)))


def full(shape, dtype, fill_value):
    """A tensor of one value."""
    value = scalar(fill_value, dtype)
    return compute(shape, lambda *_: value, name="T_full")


def full_like(x, fill_value):
    """A tensor of one value, of the shape and dtype of another."""
    return full(x.shape, x.dtype, fill_value)


# ---- arrangements ----


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


# ---- reductions ----


def _reduction(kind, meaning):
    def made(data, axis=None, keepdims=False):
        return tensor(_lathe.topi_reduce(kind, state(data), axes_of(axis), bool(keepdims)))

    made.__name__ = made.__qualname__ = kind
    made.__doc__ = f"{meaning} over axes; over all without them."
    return made


sum = _reduction("sum", "The sum")  # noqa: A001
prod = _reduction("prod", "The product")
max = _reduction("max", "The largest element")  # noqa: A001
min = _reduction("min", "The smallest element")  # noqa: A001
all = _reduction("all", "Whether every element holds")  # noqa: A001
any = _reduction("any", "Whether some element holds")  # noqa: A001


def argmax(data, axis=-1, keepdims=False):
    """Where the largest element along an axis lies, the first of equals; int32."""
    return tensor(_lathe.topi_arg_extreme(state(data), int(axis), bool(keepdims), True))


def argmin(data, axis=-1, keepdims=False):
    """Where the smallest element along an axis lies, the first of equals; int32."""
    return tensor(_lathe.topi_arg_extreme(state(data), int(axis), bool(keepdims), False))


# ---- products ----


def matmul(a, b, transp_a=False, transp_b=False):
    """The matrix product of the last two dimensions; the others are broadcast."""
    return tensor(_lathe.topi_batch_product(state(a), state(b), bool(transp_a), bool(transp_b)))


__getattr__ = _refuser("topi", globals())
__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in ("make", "state", "tensor"))
