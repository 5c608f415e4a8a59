"""The parser under its documented name: `parse`, and the namespaces whose texts it reads."""

from . import from_source, ir, relax, tir
from .ir import ir_module

parse = from_source

__all__ = ["from_source", "ir", "ir_module", "parse", "relax", "tir"]
