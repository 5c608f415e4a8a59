"""Programs as Python text: the namespaces T, I and R, and the parser."""

import inspect
import re
import sys

from ..ir.node import IRModule, Node
from . import ir, ir_builder, relax, source, tir
from .ir import ir_module

source.NAMESPACES.update({id(tir): "tir", id(relax): "relax", id(ir): "ir"})


def from_source(src_or_fn, extra_vars=None, check_well_formed=True, *, filename="<string>"):
    """The program of a text, or of a function or class: a PrimFunc for one function, an IRModule for a module.

    extra_vars: names that the text may refer to, besides T, I and R.
    """
    if not isinstance(src_or_fn, str):
        text = inspect.getsource(src_or_fn)
        filename = inspect.getsourcefile(src_or_fn) or filename
        names = source.names_around(sys._getframe(1), [f for f in [src_or_fn] if inspect.isfunction(f)])
    else:
        text, names = src_or_fn, {}
    module = source.parse(
        text, filename, {**names, **(extra_vars or {})}, indented=True, check_well_formed=check_well_formed
    )
    if len(module._kinds) != 1 or re.search(r"^[ \t]*class ", text, re.MULTILINE):
        return module
    return module.items()[0][1]


parse = from_source


def from_python(function, /, **parameters):
    """A plain Python function of loops over arrays as a PrimFunc; its blocks are inferred.

    parameters: for each parameter of the function (shape, dtype), or a dtype where it is a number. A string in a shape
    names a size that the arguments give.

        from_python(linear, x=((1, "n"), "float32"), w=((200, "n"), "float32"), out=((1, 200), "float32"))
    """
    if not inspect.isfunction(function):
        raise TypeError(f"from_python takes a function, not {type(function).__name__}")
    specs = []
    for name in inspect.signature(function).parameters:
        if name not in parameters:
            raise TypeError(f"what '{name}' is has to be said: {name}=(shape, dtype), or {name}=dtype for a number")
        given = parameters.pop(name)
        is_array = isinstance(given, (tuple, list))
        if is_array and (len(given) != 2 or not isinstance(given[0], (tuple, list))):
            raise TypeError(f"'{name}' is given as {given}: an array is (shape, dtype), as ((4, \"n\"), \"float32\")")
        shape, dtype = given if is_array else (None, given)
        specs.append((name, None if shape is None else list(shape), str(dtype)))
    if parameters:
        raise TypeError(f"'{function.__name__}' has no parameter '{next(iter(parameters))}'")
    made = source.loops_of(function, sys._getframe(1), specs).items()[0][1]
    return made.with_attr("global_symbol", function.__name__)

__all__ = [
    "IRModule", "Node", "from_python", "from_source", "ir", "ir_builder", "ir_module", "parse", "relax", "source",
    "tir",
]  # fmt: skip
