"""Compilers that are measured on request, each in an environment of its own: TVM, IREE and XLA by way of JAX.

Their loaders are as those of `bench/peers.py`; what they cannot import, compile or install is that peer's failure.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def load_tvm(path, feeds, threads):
    """As TVM compiles by itself. Its tuner, which the time of a kernel depends on most, takes minutes for each."""
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    os.environ["TVM_NUM_THREADS"] = str(threads)
    model = onnx.load(path)
    target = tvm.target.Target.from_device("cpu")
    module = relax.get_pipeline("zero")(from_onnx(model, keep_params_in_input=False))
    machine = relax.VirtualMachine(tvm.compile(module, target), tvm.cpu())
    main = machine["main"]
    inputs = [tvm.runtime.tensor(feeds[name]) for name in _input_names(model)]
    last = []

    def run():
        last[:] = [main(*inputs)]

    def outputs():
        results = [last[0]] if hasattr(last[0], "numpy") else list(last[0])
        return [result.numpy() for result in results]

    return run, outputs


def load_iree(path, feeds, threads):
    import iree.compiler.tools
    import onnx
    from iree import runtime

    with tempfile.TemporaryDirectory() as folder:
        imported = str(Path(folder) / "model.mlir")
        _quietly([sys.executable, "-m", "iree.compiler.tools.import_onnx", path, "-o", imported])
        try:
            code = iree.compiler.tools.compile_file(
                imported, target_backends=["llvm-cpu"], input_type="onnx",
                extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"],
            )  # fmt: skip
        except iree.compiler.tools.CompilerToolError as error:
            raise RuntimeError(_complaint(str(error))) from None
    runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
    config = runtime.Config("local-sync" if threads == 1 else "local-task")
    module = runtime.load_vm_module(runtime.VmModule.copy_buffer(config.vm_instance, code), config)
    model = onnx.load(path)
    main = module[model.graph.name]
    inputs = [runtime.asdevicearray(config.device, feeds[name]) for name in _input_names(model)]
    last = []

    def run():
        last[:] = [main(*inputs)]

    def outputs():
        results = last[0] if isinstance(last[0], (list, tuple)) else [last[0]]
        return [result.to_host() for result in results]

    return run, outputs


def load_jax(path, feeds, threads):
    """JAX reads no ONNX: its graph is called operator by operator, and XLA compiles that as one function. XLA takes as
    many threads as the process has cores."""
    import jax
    import onnx

    from bench.jax_model import JaxModel

    jax.config.update("jax_default_matmul_precision", "highest")
    model = JaxModel(onnx.load(path))
    function = jax.jit(model)
    inputs = [jax.device_put(feeds[name]) for name in model.inputs]
    last = []

    def run():
        last[:] = jax.block_until_ready(function(*inputs))

    return run, lambda: last


def _input_names(model):
    constants = {tensor.name for tensor in model.graph.initializer}
    return [value.name for value in model.graph.input if value.name not in constants]


def _quietly(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(_complaint(done.stderr))


def _complaint(text):
    """The line of a tool's output that says what is wrong, without the place before it."""
    lines = [line for line in text.splitlines() if line.strip()] or ["it failed without a word"]
    for line in lines:
        if " error: " in line:
            return line.split(" error: ", 1)[1]
    return lines[-1]
