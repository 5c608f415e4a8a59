"""What topi's functions share: tensors in, tensors out."""

from ..ir.node import as_expr
from ..te.tensor import Tensor


def state(thing):
    """The compiler's side of a tensor."""
    if not isinstance(thing, Tensor):
        raise TypeError(f"a tensor of te is expected, not {type(thing).__name__}")
    return thing._state


def tensor(made):
    """Python's side of a tensor."""
    return Tensor(made)


def axes_of(axis):
    """One axis, several, or none, as a list."""
    if axis is None:
        return []
    return [int(one) for one in axis] if isinstance(axis, (tuple, list)) else [int(axis)]


def scalar(value, dtype):
    """A number of a dtype."""
    return as_expr(value, dtype)
