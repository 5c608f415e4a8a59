"""Passes over functions of whole tensors, under the vocabulary's names."""

from .. import _lathe
from ..ir.transform import Pass, PassInfo
from ..names import refuser

__all__ = ["Gradient"]


def names_of(parameters):
    """The names of parameters that are given as names, as variables, or as one of them; None stays None."""
    if parameters is None:
        return None
    if isinstance(parameters, str) or hasattr(parameters, "name"):
        parameters = [parameters]
    return [str(getattr(one, "name", one)) for one in parameters]


class Gradient(Pass):
    """Adds a function `<func_name>_adjoint`: the function's own value, and a tuple of gradients of a scalar result.

    require_grads: the parameters, in the order of their gradients; None: all tensors of floats. target_index: which
    item, where the result is a tuple.
    """

    def __init__(self, func_name, require_grads=None, target_index=0):
        self.info = PassInfo(0, "relax.Gradient")
        self._function, self._parameters, self._target = str(func_name), names_of(require_grads), int(target_index)

    def transform_module(self, mod, ctx):
        """Runs it."""
        return _lathe.gradient(mod, self._function, self._parameters, self._target, False)


__getattr__ = refuser("lathe.relax.transform", globals())
