"""Lathe compiles machine-learning models to small native artifacts.

    exe = lathe.compile("model.onnx")
    y = exe(x)                          # NumPy arrays, or anything with DLPack, without a copy
    exe.save("model.so")
    y = lathe.load("model.so")(x)
"""

from . import ir, s_tir, script, target, te, testing, tir
from . import runtime, runtime as nd
from ._lathe import Diagnostic, Executable, IRModule, __version__
from .compiler import compile, import_onnx, load
from .errors import (
    CompileError, Error, InputError, InternalError, ModelError, NodeError, RunError, ScheduleError, ScriptError,
)  # fmt: skip
from .runtime import build, cpu, device
from .session import InferenceSession, SessionOptions

TVMError = Error

__all__ = [
    "CompileError", "Diagnostic", "Error", "Executable", "IRModule", "InferenceSession", "InputError", "InternalError",
    "ModelError", "NodeError", "RunError", "ScheduleError", "ScriptError", "SessionOptions", "TVMError", "__version__",
    "build", "compile", "cpu", "device", "import_onnx", "ir", "load", "nd", "runtime", "s_tir", "script", "target",
    "te", "testing", "tir",
]  # fmt: skip


def __getattr__(name):
    import difflib

    near = difflib.get_close_matches(name, __all__, 1)
    raise AttributeError(f"there is no lathe.{name}" + (f"; the nearest name is lathe.{near[0]}" if near else ""))
