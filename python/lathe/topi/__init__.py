"""Operators on tensors of te: elementwise, arrangements, reductions; nn has those of networks.

    A, B = te.placeholder((m, k)), te.placeholder((k, n))
    C = topi.nn.relu(topi.matmul(A, B))
"""

from .. import _lathe
from ..names import refuser as _refuser
from ..te import einsum
from . import nn
from .arrange import (
    broadcast_to, concatenate, expand_dims, flip, reshape, split, squeeze, stack, strided_slice, take, transpose,
)  # fmt: skip
from .elementwise import *  # noqa: F403 - the rows of the compiler's tables are among them
from .make import axes_of, state, tensor


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
_HELPERS = ("arrange", "axes_of", "elementwise", "make", "state", "tensor")
__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in _HELPERS)
