"""Programs as Python text: the namespaces T, I and R, and the parser."""

import inspect
import sys

from ..ir.node import IRModule, Node
from . import ir, relax, source, tir
from .ir import ir_module

source.NAMESPACES.update({id(tir): "tir", id(relax): "relax", id(ir): "ir"})


def from_source(source_or_function, extra_vars=None, check_well_formed=True, *, filename="<string>"):
    """The program of a text, or of a function or class: a PrimFunc for one function, an IRModule for a module.

    extra_vars: names that the text may refer to, besides T, I and R.
    """
    if not isinstance(source_or_function, str):
        text = inspect.getsource(source_or_function)
        filename = inspect.getsourcefile(source_or_function) or filename
        names = source.names_around(sys._getframe(1), [f for f in [source_or_function] if inspect.isfunction(f)])
    else:
        text, names = source_or_function, {}
    module = source.parse(
        text, filename, {**names, **(extra_vars or {})}, indented=True, check_well_formed=check_well_formed
    )
    lines = [line.strip() for line in text.splitlines()]
    has_class = any(line.startswith("class ") for line in lines)
    return module if has_class or len(module.functions) != 1 else module.items()[0][1]


parse = from_source

__all__ = ["IRModule", "Node", "from_source", "ir", "ir_module", "parse", "relax", "source", "tir"]
