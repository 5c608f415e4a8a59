"""Opens artifacts in a process that has neither the compiler nor the Python package around it."""

import importlib.util
import sys

from tests.support import paths


def load_runtime():
    """The module runtime_ctypes.py loaded by its path: `import lathe.runtime_ctypes` would bring the compiler in."""
    name = "lathe_runtime_ctypes"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, paths.RUNTIME_CTYPES)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def assert_without_compiler():
    """This process has mapped neither LLVM nor the compiler's extension, and has not imported the package."""
    assert "lathe" not in sys.modules, "the Python package is loaded"
    with open("/proc/self/maps") as maps:
        files = {line.split(None, 5)[5].strip() for line in maps if line.count(" ") >= 5 and "/" in line}
    for file in files:
        name = file.rsplit("/", 1)[-1]
        assert "libLLVM" not in name and not name.startswith("_lathe"), f"{file} is mapped"


def load_runtime_elsewhere(artifact, feeds):
    """The artifact's outputs in a process of its own."""
    import os
    import pickle
    import subprocess

    from tests.support import paths

    code = (
        "import pickle, sys\n"
        "from tests.support.artifacts import assert_without_compiler, load_runtime\n"
        "artifact, feeds = pickle.load(sys.stdin.buffer)\n"
        "outputs = list(load_runtime().Artifact(artifact).run(feeds))\n"
        "assert_without_compiler()\n"
        "pickle.dump(outputs, sys.stdout.buffer)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps((str(artifact), feeds)), capture_output=True, check=False,
        cwd=paths.ROOT, env=paths.environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return pickle.loads(done.stdout)
