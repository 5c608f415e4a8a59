"""Functions over whole tensors: their passes, and the gradients of a model.

    both = lathe.relax.gradient("model.onnx", ["weight", "bias"])   # of a model whose result is a scalar loss
    loss, d_weight, d_bias = lathe.compile(both)(x, weight, bias)
"""

from .. import _lathe
from ..compiler import import_onnx
from ..names import refuser
from . import transform, vm
from .vm import VirtualMachine, build

vm_build = vm  # its home of 2022

__all__ = ["VirtualMachine", "build", "gradient", "transform", "vm", "vm_build"]


def gradient(model, parameters=None, target=0, *, function="main", dims=None):
    """The program that computes what a model does, and after its results the gradients of one of them.

    model: what lathe.compile takes. parameters: names of inputs, in the order of their gradients; None: every input
    that is a tensor of floats. target: which result, a scalar. dims: symbolic dimensions to fix, by name.
    """
    module = import_onnx(model, dims)
    return _lathe.gradient(module, function, transform.names_of(parameters), int(target), True)


__getattr__ = refuser("lathe.relax", {name: None for name in __all__})
