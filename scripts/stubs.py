"""python -m scripts.stubs FOLDER: writes the type stubs of the package's modules whose names are made while they are
imported, for editors and type checkers; the build puts them beside the modules in the wheel."""

import os
import subprocess
import sys
from pathlib import Path

# Modules, and where their stubs lie in the package. Others are plain Python and need none.
MODULES = {
    "lathe._lathe": "_lathe.pyi",
    "lathe.ir.node": "ir/node.pyi",
    "lathe.tir": "tir/__init__.pyi",
    "lathe.tir.op": "tir/op.pyi",
    "lathe.tir.schedule": "tir/schedule.pyi",
    "lathe.te": "te/__init__.pyi",
    "lathe.tir.functor": "tir/functor.pyi",
    "lathe.tir.transform": "tir/transform.pyi",
    "lathe.script.tir": "script/tir.pyi",
    "lathe.topi": "topi/__init__.pyi",
    "lathe.script.ir_builder.tir": "script/ir_builder/tir.pyi",
}


def write(folder):
    """Writes every stub, of the package as it lies in the checkout. What is on the path of this process stays there:
    pip builds with packages of its own."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
    for module, place in MODULES.items():
        path = Path(folder) / place
        path.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", module, "-o", str(path)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})


if __name__ == "__main__":
    write(sys.argv[1])
