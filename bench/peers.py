"""The compilers and engines that are measured, one row each: how a model is loaded there, and what one run is.

A loader gets the path of an ONNX model (for Lathe, of the artifact made from it), inputs by name, and a number of
threads; it returns `run`, which does one inference, and `outputs`, which gives the arrays of the last one in the
model's order. Peers run at their best: strict float32, inputs and outputs bound where they can be.
"""

import os
from dataclasses import dataclass
from typing import Callable

from bench.compilers import load_iree, load_jax, load_tvm

LATHE = "lathe"


@dataclass(frozen=True)
class Peer:
    name: str
    load: Callable
    package: str  # of which the version is written down
    default: bool = True
    takes_artifact: bool = False
    module: str = ""  # what is imported, where the package's name is not it
    requirements: str = ""  # the file of the environment that it has to itself, made when it is asked for


def load_lathe(path, feeds, threads):
    import lathe

    executable = lathe.load(path, threads=threads)
    arrays = [feeds[port.name] for port in executable.inputs]
    # Inputs and results are bound, as those of ONNX Runtime and of OpenVINO's request are: a call that makes new
    # results while the last ones are held walks twice the memory.
    bound = []

    def run():
        if bound:
            bound[0]()
        else:
            bound.append(executable.prepare(*arrays))  # runs the model, to make its results

    def outputs():
        results = bound[0]()
        return list(results) if isinstance(results, (list, tuple)) else [results]

    return run, outputs


def load_lathe_runtime(path, feeds, threads):
    """The runtime's C interface alone, for the memory that a deployed model takes."""
    import importlib.util

    from tests.support.paths import RUNTIME_CTYPES

    spec = importlib.util.spec_from_file_location("runtime_ctypes", RUNTIME_CTYPES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    os.environ["LATHE_NUM_THREADS"] = str(threads)
    artifact = module.Artifact(path)
    last = []

    def run():
        last[:] = [artifact.run(feeds)]

    return run, lambda: list(last[0].values()) if isinstance(last[0], dict) else list(last[0])


def load_onnxruntime(path, feeds, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    kept = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
    for name, value in kept.items():
        binding.bind_ortvalue_input(name, value)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    return lambda: session.run_with_iobinding(binding), lambda: binding.copy_outputs_to_cpu()


def load_openvino(path, feeds, threads):
    import openvino

    core = openvino.Core()
    settings = {
        "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
    }  # fmt: skip
    compiled = core.compile_model(path, "CPU", settings)
    request = compiled.create_infer_request()
    for name, array in feeds.items():
        request.set_tensor(name, openvino.Tensor(array, shared_memory=True))
    return request.infer, lambda: [request.get_output_tensor(i).data.copy() for i in range(len(compiled.outputs))]


def _torch(path, feeds, threads, wrap):
    import onnx
    import torch

    from tests.support.torch_model import TorchModel

    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision("highest")
    module = TorchModel(onnx.load(path)).eval()
    inputs = [torch.from_numpy(feeds[name]) for name in module.inputs]
    module, last = wrap(torch, module), []

    def run():
        with torch.inference_mode():  # a result is one piece of memory: a transposition more than a view
            last[:] = [tensor.contiguous() for tensor in module(*inputs)]

    return run, lambda: [tensor.numpy() for tensor in last]


def load_torch(path, feeds, threads):
    return _torch(path, feeds, threads, lambda torch, module: module)


def load_inductor(path, feeds, threads):
    def wrap(torch, module):
        import torch._inductor.config as config

        config.freezing = True
        return torch.compile(module)

    return _torch(path, feeds, threads, wrap)


# fmt: off
PEERS = [
    Peer(LATHE, load_lathe, "lathe", takes_artifact=True),
    Peer("onnxruntime", load_onnxruntime, "onnxruntime"),
    Peer("openvino", load_openvino, "openvino"),
    Peer("torch", load_torch, "torch"),
    Peer("inductor", load_inductor, "torch", default=False),
    Peer("tvm", load_tvm, "apache-tvm", default=False, module="tvm", requirements="bench/requirements/tvm.txt"),
    Peer("iree", load_iree, "iree-base-compiler", default=False, module="iree.runtime",
         requirements="bench/requirements/iree.txt"),
    Peer("jax", load_jax, "jax", default=False, requirements="bench/requirements/jax.txt"),
]
# fmt: on
# Not compared with: it loads the artifact as a program without a compiler would.
DEPLOYED = Peer("lathe-runtime", load_lathe_runtime, "lathe", default=False, takes_artifact=True)
