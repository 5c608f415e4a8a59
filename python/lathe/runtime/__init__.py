"""What runs: devices, arrays, compiled tensor functions."""

from ..names import refuser as _refuser
from .array import Device, NDArray, Tensor, array, cpu, device, empty, from_dlpack
from .module import BenchmarkResult, Function, Module, build, load_module

tensor = array

__all__ = [
    "BenchmarkResult", "Device", "Function", "Module", "NDArray", "Tensor", "array", "build", "cpu", "device", "empty",
    "from_dlpack", "load_module", "tensor",
]  # fmt: skip

__getattr__ = _refuser("lathe.runtime", globals())
