"""Lathe compiles machine-learning models to small native artifacts.

    exe = lathe.compile("model.onnx")
    y = exe(x)                          # NumPy arrays, or anything with DLPack, without a copy
    exe.save("model.so")
    y = lathe.load("model.so")(x)
"""

from ._lathe import Diagnostic, Executable, IRModule, __version__
from .compiler import compile, import_onnx, load
from .errors import CompileError, Error, InputError, InternalError, ModelError, RunError, ScriptError
from .session import InferenceSession, SessionOptions

__all__ = [
    "CompileError", "Diagnostic", "Error", "Executable", "IRModule", "InferenceSession", "InputError", "InternalError",
    "ModelError", "RunError", "ScriptError", "SessionOptions", "__version__", "compile", "import_onnx", "load",
]  # fmt: skip
