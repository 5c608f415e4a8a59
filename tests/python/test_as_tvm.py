"""import lathe.as_tvm makes programs written for tvm find Lathe, and nothing else changes."""

import os
import subprocess
import sys

PROGRAM = """
import lathe.as_tvm
import tvm
from tvm import te, tir
from tvm.script import tir as T
from tvm.script import ir as I
import tvm.testing
import numpy as np

@tvm.script.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in T.grid(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * T.float32(2)

import lathe
assert tvm is lathe and tir is lathe.tir and T is lathe.script.tir and tvm.IRModule is lathe.IRModule
sch = tvm.tir.Schedule(Module)
sch.vectorize(sch.get_loops(sch.get_block("B"))[0])
a = tvm.nd.array(np.arange(8, dtype="float32"))
b = tvm.nd.empty((8,))
tvm.build(sch.mod, target="llvm")["main"](a, b)
tvm.testing.assert_allclose(b.numpy(), a.numpy() * 2)
try:
    import tvm.no_such_part
except ModuleNotFoundError:
    pass
else:
    raise AssertionError("found what is not there")
try:
    import tvm.meta_schedule
except ModuleNotFoundError as error:
    assert "rules" in str(error), error
else:
    raise AssertionError("found what is left out")
try:
    from tvm import meta_schedule
except ImportError as error:
    assert "rules" in str(error), error
else:
    raise AssertionError("found what is left out")
from tvm.script.parser import from_source, tir as parsed
assert parsed is T and from_source is tvm.script.from_source
assert tvm.target.Target("llvm --num-cores=4").attrs["triple"] == tvm.target.Target("llvm").attrs["triple"]
lathe.as_tvm.remove()
print("done", lathe.__spec__.name, T.__spec__.name)
"""


def test_programs_of_tvm_find_lathe():
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-"], input=PROGRAM, capture_output=True, text=True, env=environment, check=False
    )
    # The program comes from standard input: its source is not to be had there, so it is run from a file as well.
    assert "not to be had" in done.stderr or done.stdout.startswith("done")


def test_programs_in_files_run(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout == "done lathe lathe.script.tir\n", done.stderr
