"""The namespace I of modules.

    @I.ir_module
    class Module:
        @T.prim_func
        def main(...): ...
"""

import inspect

from ..names import refuser as _refuser
from . import source as _source


def ir_module(mod=None, check_well_formed=True):
    """Reads the decorated class's text as a module, and gives it as an IRModule."""
    frame = _source.caller(1)

    def decorate(cls):
        if not inspect.isclass(cls):
            raise TypeError(f"I.ir_module decorates a class, not {type(cls).__name__}")
        return _source.parse_class(cls, frame, check_well_formed)

    return decorate(mod) if mod is not None else decorate


def module_attrs(attrs):
    """Attributes of a module; the parser reads them from its text."""


def module_set_attr(attr_key, attr_value, allow_overwrite=False):
    """An attribute of a module: read from its text, or set of the module that an IRBuilder builds."""
    from .ir_builder import ir

    ir.module_set_attr(attr_key, attr_value, allow_overwrite)


def module_get_attr(attr_key):
    """An attribute of the module that an IRBuilder builds, or None."""
    from .ir_builder import ir

    return ir.module_get_attr(attr_key)


def GlobalVar(name):
    """The name of a function of the module."""
    from ..ir import GlobalVar as made

    return made(name)


__getattr__ = _refuser("I", globals())
