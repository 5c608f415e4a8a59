"""The namespace I of builders: modules."""

from ...ir.node import BaseFunc, IRModule
from ...names import refuser
from .frames import Frame, IRBuilder, ScriptError


class ModuleFrame(Frame):
    """A module: its functions by name."""

    described = "I.ir_module()"

    def __init__(self):
        super().__init__()
        self.functions = {}

    def add(self, thing):
        """A function, under the name that T.func_name gave it."""
        name, function = thing
        if name is None:
            raise ScriptError("a function of a module has a name: T.func_name")
        if name in self.functions:
            raise ScriptError(f"the module has a function '{name}' already")
        if not isinstance(function, BaseFunc):
            raise ScriptError(f"a module holds functions, not a {type(function).__name__}")
        self.functions[name] = function

    def finish(self, body):
        """The module."""
        return IRModule(self.functions)

    def __exit__(self, kind, value, trace):
        builder = IRBuilder.current()
        builder.frames.pop()
        if kind is None:
            builder.emit(self.finish(None))


def ir_module():
    """With I.ir_module(): a module of the functions inside."""
    return ModuleFrame()


__all__ = ["ir_module"]

__getattr__ = refuser("ir_builder.ir", globals())
