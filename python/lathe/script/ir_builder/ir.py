"""The namespace I of builders: modules."""

from ...ir.node import BaseFunc, IRModule
from ...names import refuser
from .frames import Frame, IRBuilder, ScriptError


class ModuleFrame(Frame):
    """A module: its functions by name."""

    described = "I.ir_module()"

    def __init__(self):
        super().__init__()
        self.functions, self.attrs = {}, {}

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
        made = IRModule(self.functions)
        return made.with_attrs(self.attrs) if self.attrs else made

    def __exit__(self, kind, value, trace):
        builder = IRBuilder.current()
        builder.frames.pop()
        if kind is None:
            builder.emit(self.finish(None))


def ir_module():
    """With I.ir_module(): a module of the functions inside."""
    return ModuleFrame()


def _module():
    for frame in reversed(IRBuilder.current().frames):
        if isinstance(frame, ModuleFrame):
            return frame
    raise ScriptError("attributes of a module are set inside I.ir_module()")


def module_attrs(attrs, allow_overwrite=False):
    """Sets attributes of the module that is built."""
    for key, value in attrs.items():
        module_set_attr(key, value, allow_overwrite)


def module_set_attr(attr_key, attr_value, allow_overwrite=False):
    """Sets an attribute of the module that is built; a second value has to be allowed."""
    attrs = _module().attrs
    if attr_key in attrs and not allow_overwrite:
        raise ScriptError(f"the module has an attribute '{attr_key}' already; allow_overwrite=True replaces it")
    attrs[attr_key] = attr_value


def module_get_attr(attr_key):
    """An attribute of the module that is built, or None."""
    return _module().attrs.get(attr_key)


__all__ = ["ir_module", "module_attrs", "module_get_attr", "module_set_attr"]

__getattr__ = refuser("ir_builder.ir", globals())
