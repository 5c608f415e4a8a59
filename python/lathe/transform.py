"""Passes, sequences and their context: what lathe.ir.transform has."""

from .ir.transform import (
    CONFIG, ApplyPassToFunction, FunctionPass, ModulePass, Pass, PassContext, PassInfo, PrintIR, Sequential,
    module_pass,
)  # fmt: skip
from .names import refuser

__all__ = [
    "ApplyPassToFunction", "CONFIG", "FunctionPass", "ModulePass", "Pass", "PassContext", "PassInfo", "PrintIR",
    "Sequential", "module_pass",
]  # fmt: skip

__getattr__ = refuser("lathe.transform", globals())
