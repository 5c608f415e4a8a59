"""lathe.compile, lathe.load, lathe.import_onnx, and what they add to the extension's classes."""

import os

from . import _lathe
from ._lathe import Executable, IRModule, Limits
from .options import count, debug_text, dim_texts
from .runtime.module import build
from .target import target_name


def compile(model, target="native", *, threads=None, limits=None, dims=None, compile_threads=None,
            disabled_passes=(), dump_ir="", verify=False, cache=True, winograd=False, states=None,
            debug_info=False):  # fmt: skip
    """Compiles a model for a target and loads it: the result is called with arrays.

    model: a path (.onnx, or a script: .relax, .tir, .py), the bytes of an ONNX model, an onnx.ModelProto, an IRModule.
        What has tensor functions alone (a PrimFunc, a Schedule, such an IRModule) is built, as by lathe.build.
    target: as `lathe compile --target` takes it, "llvm" or None for this machine; "interp" runs the interpreters
        instead of compiled code.
    threads: of a run; None leaves it to LATHE_NUM_THREADS, OMP_NUM_THREADS, or what this process may use.
    limits: of a run that gives none of its own (lathe.Limits).
    dims: symbolic dimensions by name: a size that each is fixed to (8), or as text the sizes that it may have
        ("1..64", "1..") and those that it likely has ("1..64:8", "1..64:1,8"), which get kernels of their own.
    compile_threads: of code generation; the result does not depend on it.
    disabled_passes, dump_ir (a folder), verify: as the options of `lathe compile`.
    winograd: convolutions of 3x3 may become Winograd's where that is faster, which rounds more; metadata["winograd"] of
        the result says how many did and what error that brings.
    states: inputs that are kept from one call to the next, and the outputs that they become ({"past_*": "present_*"}:
        a '*' stands for the same text in both). They are no inputs and outputs of a call then, which takes state=
        instead: what make_state() of the result gives (docs/states.md).
    debug_info: line tables for gdb and perf, which point into the kernels' programs as text; True writes that into the
        user's cache folder, a path into that file or folder.
    """
    if _has_tensor_functions_alone(model):
        return build(model, target, disabled_passes=disabled_passes, debug_info=debug_info)
    dims = dim_texts(dims)
    module, path, content = _read(model, dims)
    return _lathe.compile_module(
        module, target_name(target), count(threads, "threads"), limits or Limits(),
        count(compile_threads, "compile_threads"), list(disabled_passes), os.fspath(dump_ir),
        bool(verify), bool(cache), bool(winograd), debug_text(debug_info), dict(states or {}), path, content, dims,
    )  # fmt: skip


def _has_tensor_functions_alone(model):
    kinds = getattr(getattr(model, "mod", model), "_kinds", None)
    return set(kinds.values()) == {"tir"} if kinds is not None else type(model).__name__ == "PrimFunc"


def load(path, *, threads=None, limits=None, huge_pages=False):
    """Opens a saved artifact (.so). limits: of a run that gives none of its own (lathe.Limits). huge_pages: its weights
    are copied into huge pages, memory of this process alone, where they are read a little faster; else they stay in
    the file, which processes share."""
    return _lathe.open_artifact(os.fspath(path), count(threads, "threads"), limits or Limits(), bool(huge_pages))


def import_onnx(model, dims=None):
    """The program of an ONNX model, before any pass: a path, bytes, or an onnx.ModelProto. dims: as for compile()."""
    return _read(model, dim_texts(dims))[0]


def _read(model, dims):
    """The module, and the path or the bytes it came from."""
    if isinstance(model, IRModule):
        if dims:
            raise ValueError("dims fixes symbols of a model that is read, not of an IRModule")
        return model, "", b""
    if isinstance(model, (str, os.PathLike)):
        path = os.fsdecode(os.fspath(model))
        return _lathe.read_model(path, dims), path, b""
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if isinstance(model, (bytes, bytearray, memoryview)):
        content = bytes(model)
        return _lathe.read_model_bytes(content, "model.onnx", dims), "", content
    raise TypeError(f"a model is a path, bytes, an onnx.ModelProto or an IRModule, not {type(model).__name__}")


def _save(self, path, form=None):
    """Writes the compiled model: .so, .a with .h, .o with .h, .ll, .s, .relax, .tir, by extension or by `form`."""
    _lathe.save(self, os.fsdecode(os.fspath(path)), form)


Executable.save = _save
