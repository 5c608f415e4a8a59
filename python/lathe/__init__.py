"""Lathe compiles machine-learning models to small native artifacts.

    exe = lathe.compile("model.onnx")
    y = exe(x)                          # NumPy arrays, or anything with DLPack, without a copy
    exe.save("model.so")
    y = lathe.load("model.so")(x)
"""

from . import arith, instrument, ir, relax, s_tir, script, target, te, testing, tir, topi, transform
from . import runtime, runtime as nd
from ._lathe import Diagnostic, Executable, IRModule, Limits, __version__
from .compiler import compile, import_onnx, load
from .errors import (
    CompileError, Error, InputError, InternalError, ModelError, NodeError, RunError, ScheduleError, ScriptError,
)  # fmt: skip
from .names import refuser as _refuser
from .registry import get_global_func, register_func, register_global_func
from .runtime import build, cpu, device
from .session import InferenceSession, SessionOptions

TVMError = Error

__all__ = [
    "CompileError", "Diagnostic", "Error", "Executable", "IRModule", "InferenceSession", "InputError", "InternalError",
    "Limits", "ModelError", "NodeError", "RunError", "ScheduleError", "ScriptError", "SessionOptions", "TVMError",
    "__version__", "arith", "build", "compile", "cpu", "device", "get_global_func", "import_onnx", "instrument", "ir",
    "load", "nd", "register_func", "register_global_func", "relax", "runtime", "s_tir", "script", "target", "te",
    "testing", "tir", "topi", "transform",
]  # fmt: skip


__getattr__ = _refuser("lathe", {name: None for name in __all__})
