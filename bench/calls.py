"""./dev bench calls: what a call costs that computes next to nothing, from Python and from C.

The model adds 16 floats to themselves: one kernel. A figure is the median over rounds of a round's mean, of whole
calls: from the caller through the kernel and back.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import lathe
import numpy as np

from bench.language import text_table
from tests.support import paths

MODEL = """# lathe script 1
from lathe.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((16,), "float32")):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y
"""

CALLS_A_ROUND = 5000
COMPILER = "clang-19"


def python_rounds(call, rounds):
    """Nanoseconds of one call, for each round."""
    found = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        for _ in range(CALLS_A_ROUND):
            call()
        found.append(1e9 * (time.perf_counter() - start) / CALLS_A_ROUND)
    return found[1:]


def c_rounds(artifact, folder, rounds):
    library = paths.BUILD / "lib"
    program = folder / "calls"
    subprocess.run([COMPILER, "-O2", "-I", paths.ROOT / "src" / "abi", paths.ROOT / "bench" / "calls.c", "-o", program,
                    f"-L{library}", "-llathe_runtime", f"-Wl,-rpath,{library}"], check=True)  # fmt: skip
    said = subprocess.run([program, artifact, str(rounds)], check=True, capture_output=True, text=True).stdout
    return [float(line) for line in said.split()]


def measure(rounds):
    """Rows of a name, its aim in nanoseconds or None, and its rounds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "add.relax").write_text(MODEL)
        model = lathe.compile(folder / "add.relax")
        model.save(folder / "add.so")
        x = np.arange(16, dtype="float32")
        call = model.prepare(x)
        rows = [
            ("Python, prepared: call()", 2000, python_rounds(call, rounds)),
            ("Python: model(x)", None, python_rounds(lambda: model(x), rounds)),
            ("C: lathe_run_into", 200, c_rounds(folder / "add.so", folder, rounds)),
        ]
        if not np.array_equal(call(), x + x):
            raise RuntimeError("the prepared call computed something else")
    return [{"name": name, "aim": aim, "nanoseconds": statistics.median(found), "rounds": found}
            for name, aim, found in rows]  # fmt: skip


def main(words):
    parser = argparse.ArgumentParser(prog="./dev bench calls", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the results as JSON")
    options = parser.parse_args(words)
    os.environ.setdefault("LATHE_NUM_THREADS", "1")
    rows = measure(3 if options.quick else 30)
    cells = [("a call", "ns", "least", "aim")]
    cells += [(row["name"], f"{row['nanoseconds']:.0f}", f"{min(row['rounds']):.0f}",
               f"under {row['aim']}" if row["aim"] else "") for row in rows]  # fmt: skip
    print(text_table(cells))
    if options.save:
        options.save.write_text(json.dumps(rows, indent=1))
    return rows
