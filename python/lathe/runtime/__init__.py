"""What runs: devices, arrays, compiled tensor functions."""

from ..names import refuser as _refuser
from .array import Device, NDArray, Tensor, array, cpu, device, empty, from_dlpack
from .module import BenchmarkResult, Function, Module, build, load_module
from .params import load_param_dict, load_param_dict_from_file, save_param_dict, save_param_dict_to_file
from .values import ShapeTuple, String, const, convert, enabled, num_threads

tensor = array

__all__ = [
    "BenchmarkResult", "Device", "Function", "Module", "NDArray", "ShapeTuple", "String", "Tensor", "array", "build",
    "const", "convert", "cpu", "device", "empty", "enabled", "from_dlpack", "load_module", "load_param_dict",
    "load_param_dict_from_file", "num_threads", "save_param_dict", "save_param_dict_to_file", "tensor",
]  # fmt: skip

__getattr__ = _refuser("lathe.runtime", globals())
