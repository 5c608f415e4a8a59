"""The namespace R of graph functions: what their text needs while Python defines them; the parser reads the rest."""

import inspect

from ..names import refuser as _refuser
from . import source as _source


class _Annotation:
    """A type in the text of a graph function; Python only has to be able to evaluate it."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *args, **named):
        return self

    __getitem__ = __call__

    def __repr__(self):
        return f"R.{self.name}"


Tensor, Shape, Prim, Tuple, Callable, Object = map(_Annotation, "Tensor Shape Prim Tuple Callable Object".split())


def function(f=None, pure=True, private=False, check_well_formed=True):
    """Reads the decorated function's text as a graph function."""
    frame = _source.caller(1)

    def decorate(made):
        if not inspect.isfunction(made):
            raise TypeError(f"R.function decorates a function, not {type(made).__name__}")
        if _source.is_class_body(frame):
            return made
        return _source.parse_function(made, frame, check_well_formed).items()[0][1]

    return decorate(f) if f is not None else decorate


__getattr__ = _refuser("R", globals())
