"""Compiles the digits network ahead of time, runs the held-out images from the artifact, and compares.

    python examples/03-digits/demo.py [--lathe build/bin/lathe] [--keep digits.so]

The images run in this process, which loads the small runtime and the artifact, not the compiler.
Exit code 1 when a prediction differs from ONNX Runtime's.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["LATHE_NUM_THREADS"] = "1"  # one thread each; read when the runtime is loaded

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402

from images import load_split  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MODEL = HERE / "digits.onnx"
ROUNDS = 7


def load_runtime():
    """runtime_ctypes.py by its path, so that the package and with it the compiler stay out of this process."""
    spec = importlib.util.spec_from_file_location("runtime_ctypes", ROOT / "python" / "lathe" / "runtime_ctypes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_model(lathe, artifact):
    started = time.perf_counter()
    done = subprocess.run([lathe, "compile", MODEL, "-o", artifact], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"lathe compile failed (exit code {done.returncode}):\n{done.stderr.strip()}")
    return time.perf_counter() - started


def seconds_per_image(runners, feeds):
    """The best of several rounds for each runner, interleaved so that a change of clock speed meets all of them."""
    best = [float("inf")] * len(runners)
    images = sum(len(feed["image"]) for feed in feeds)
    for _ in range(ROUNDS):
        for index, run in enumerate(runners):
            started = time.perf_counter()
            for feed in feeds:
                run(feed)
            best[index] = min(best[index], (time.perf_counter() - started) / images)
    return best


def print_table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for index, (label, left, right) in enumerate(rows):
        print(f"  {label:<{widths[0]}}  {left:>{widths[1]}}  {right:>{widths[2]}}")
        if index == 0:
            print("  " + "-" * (sum(widths) + 4))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", type=Path, default=ROOT / "build" / "bin" / "lathe", help="the lathe command")
    parser.add_argument("--keep", type=Path, help="where to leave the artifact")
    arguments = parser.parse_args()
    if not arguments.lathe.is_file():
        sys.exit(f"{arguments.lathe} is not built: run ./dev build")

    _, _, images, labels = load_split()
    with tempfile.TemporaryDirectory() as folder:
        artifact = arguments.keep or Path(folder) / "digits.so"
        compile_seconds = compile_model(arguments.lathe, artifact)
        size = artifact.stat().st_size
        compiled = load_runtime().Artifact(str(artifact))

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        started = time.perf_counter()
        session = onnxruntime.InferenceSession(str(MODEL), options, providers=["CPUExecutionProvider"])
        session_seconds = time.perf_counter() - started

        runners = [compiled.run, lambda feed: session.run(None, feed)]
        ours, theirs = (np.asarray(run({"image": images})[0]).argmax(1) for run in runners)
        single = seconds_per_image(runners, [{"image": image[None]} for image in images])
        batch = seconds_per_image(runners, [{"image": images}])
        del compiled

    def accuracy(predictions):
        return f"{100 * (predictions == labels).mean():.2f} %"

    print(f"{len(images)} held-out digits of 8x8 pixels, one thread each, best of {ROUNDS} interleaved rounds\n")
    print_table([
        ("", "Lathe", "ONNX Runtime"),
        ("accuracy", accuracy(ours), accuracy(theirs)),
        ("time per image, one at a time", f"{1e6 * single[0]:.1f} us", f"{1e6 * single[1]:.1f} us"),
        (f"time per image, {len(images)} at once", f"{1e6 * batch[0]:.1f} us", f"{1e6 * batch[1]:.1f} us"),
        ("ready to run after", f"{compile_seconds:.2f} s (compile, once)", f"{session_seconds:.2f} s (each start)"),
        ("file", f"{size / 1000:.0f} kB (artifact)", f"{MODEL.stat().st_size / 1000:.0f} kB (model)"),
    ])  # fmt: skip

    differ = np.flatnonzero(ours != theirs)
    if len(differ):
        first = differ[0]
        print(f"\npredictions differ on {len(differ)} of {len(images)} images", file=sys.stderr)
        print(f"the first is image {first}: {ours[first]} and {theirs[first]}", file=sys.stderr)
        sys.exit(1)
    print(f"\nThe predictions agree on all {len(images)} images. Where to look next:")
    for command, says in [
        ("build/bin/lathe compile examples/03-digits/digits.onnx -o digits.ll", "what the compiler made of it"),
        ("build/bin/lathe verify examples/03-digits/digits.onnx", "compiled code against the interpreter"),
        ("docs/tour.md", "a small model, step by step"),
    ]:
        print(f"  {command:<69}  {says}")


if __name__ == "__main__":
    main()
