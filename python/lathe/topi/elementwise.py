"""Functions of topi's that compute each element from those of its place."""

from .. import _lathe
from ..te import compute
from ..te.tensor import Tensor, combined
from .make import scalar, state, tensor


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
        return combined(name, lhs, rhs)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"Each element: {meaning}, broadcast. A number takes the tensor's dtype."
    return made


# relu is nn's.
_TABLES = {
    **{name: _unary(name, meaning) for name, meaning in _lathe.topi_unary_rows() if name != "relu"},
    **{name: _binary(name, meaning) for name, meaning in _lathe.topi_binary_rows()},
}
globals().update(_TABLES)
__all__ = [*_TABLES, "cast", "clip", "full", "full_like", "where"]  # pyright: ignore


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
