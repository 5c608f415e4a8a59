"""Error, compile time and memory of every network at full size beside ONNX Runtime's, as a table.

A cost is of one process that reads the model from a file, compiles it (or opens a session) and runs it once, on one
thread, without kernels compiled before: seconds of processor time until it can run, which other processes change less
than the clock's, and the peak of memory beyond what was in use once everything was imported.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx

from tests.models.full_size import NETWORKS, full_size, random_feeds
from tests.support import paths
from tests.support.backends import onnxruntime_session
from tests.support.command import run_command
from tests.support.float64 import reference_outputs, relative_error

BACKENDS = ("onnxruntime", "lathe")
SECONDS = 900  # for one process
SEED = 11


def open_lathe(path):
    import lathe

    exe = lathe.compile(path)

    def run(feeds):
        outputs = exe(*feeds.values())
        return outputs[0] if isinstance(outputs, tuple) else outputs

    return run


def open_onnxruntime(path):
    session = onnxruntime_session(path)
    return lambda feeds: session.run(None, feeds)[0]


OPEN = {"lathe": open_lathe, "onnxruntime": open_onnxruntime}


def identity_model():
    graph = onnx.parser.parse_graph("tiny (float[n] x) => (float[n] y) { y = Identity(x) }")
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


def measure(backend, folder):
    """In the child: prints the cost, and leaves the output beside the input."""
    with np.load(folder / "feeds.npz") as saved:
        feeds = dict(saved)
    OPEN[backend](str(folder / "tiny.onnx"))({"x": np.zeros(1, np.float32)})  # everything is imported by now
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    before, started = memory("VmRSS"), time.process_time()
    run = OPEN[backend](str(folder / "model.onnx"))
    seconds = time.process_time() - started
    np.save(folder / f"{backend}.npy", run(feeds))
    print(json.dumps({"seconds": seconds, "megabytes": memory("VmHWM") - before}))


def memory(which):
    """Megabytes in use now (VmRSS) or at most (VmHWM). What getrusage gives begins with the parent's."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(which)]
    return int(line.split()[1]) / 1024


def cost(backend, folder):
    """The cost, and the output."""
    env = paths.environment(LATHE_NUM_THREADS="1", OMP_NUM_THREADS="1", LATHE_CACHE_DIR=folder / "cache")
    command = [sys.executable, "-m", "tests.accuracy.report", "--measure", backend, str(folder)]
    done = run_command(command, env=env, cwd=paths.ROOT, timeout=SECONDS)
    if done.code != 0:
        sys.exit(str(done))
    return json.loads(done.out.splitlines()[-1]), np.load(folder / f"{backend}.npy")


HEADER = """| network | error, ONNX Runtime | Lathe | compile s, ONNX Runtime | Lathe | peak MB, ONNX Runtime | Lathe |
|---|---|---|---|---|---|---|"""


def compare(name, batch):
    """One line of the table. The error is of the first output."""
    model = full_size(name, batch)
    feeds = random_feeds(model, SEED)
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        onnx.save(model, folder / "model.onnx")
        onnx.save(identity_model(), folder / "tiny.onnx")
        np.savez(folder / "feeds.npz", **feeds)
        costs = [cost(backend, folder) for backend in BACKENDS]
    wanted = reference_outputs(model, feeds)[0]
    errors = [f"{relative_error(output, wanted):.2g}" for _, output in costs]
    seconds = [f"{said['seconds']:.2f}" for said, _ in costs]
    memory = [f"{said['megabytes']:.0f}" for said, _ in costs]
    return f"| {name} | {' | '.join(errors + seconds + memory)} |"


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.accuracy.report", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples: vit tcn   |   --batch 3 densenet121",
    )  # fmt: skip
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NETWORKS)}; all unless given")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        backend, folder = arguments.measure
        measure(backend, Path(folder))
        return
    if unknown := set(arguments.names) - set(NETWORKS):
        parser.error(f"no network is called {', '.join(sorted(unknown))}")
    print(HEADER)
    for name in arguments.names or NETWORKS:
        print(compare(name, arguments.batch), flush=True)


if __name__ == "__main__":
    main()
