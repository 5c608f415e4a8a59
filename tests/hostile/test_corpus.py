"""The corpus of strangers' files by the command: no signal, ten seconds, and no more memory than the file tells of.

What compiles runs as well, under limits: it ends, or says which limit ended it within a second.
"""

import concurrent.futures
import os
import resource
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.hostile.corpus import corpus
from tests.support import paths
from tests.support.command import Outcome, assert_clear_failure

SLACK = 20 if paths.SANITIZED else 1
SECONDS = 10 * SLACK  # of processor time: other work on the machine is not the file's fault
BESIDE_THE_FILE = SLACK * 200 << 20  # bytes of memory, beyond those that the command takes for a model of one node
AT_ONCE = 40  # files in ./dev test
RUN_SECONDS, RUN_MEMORY, RUN_STEPS = SLACK, 64 << 20, 1_000_000
LARGEST_INPUT = 16 << 20  # bytes; models with larger ones are not run
LONGEST_NAME = 10_000  # that a command line takes


@dataclass
class Spent:
    outcome: Outcome
    seconds: float  # of processor time
    memory: int  # bytes, at the most


def run_measured(command, timeout):
    """Runs a command and says what it took; the processor's time is bounded by the kernel."""

    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (4 * SECONDS, 4 * SECONDS))
        if not paths.SANITIZED:
            resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    start = time.monotonic()
    child = subprocess.Popen(
        [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        env=paths.environment(), preexec_fn=limits, text=True, errors="replace",
    )  # fmt: skip
    timer = threading.Timer(timeout, child.kill)
    timer.start()
    texts = {}
    readers = [
        threading.Thread(target=lambda name=name, pipe=pipe: texts.update({name: pipe.read()}))
        for name, pipe in (("out", child.stdout), ("err", child.stderr))
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    _, status, usage = os.wait4(child.pid, 0)
    late = not timer.is_alive()
    timer.cancel()
    code = os.waitstatus_to_exitcode(status)
    child.returncode = code
    outcome = Outcome(list(command), code, texts["out"], texts["err"], time.monotonic() - start, late)
    return Spent(outcome, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10)


@pytest.fixture(scope="module")
def memory_of_little(lathe_cli, tmp_path_factory):
    """What the command takes for a model of three nodes."""
    folder = tmp_path_factory.mktemp("little")
    (folder / "little.onnx").write_bytes(corpus()["Squeeze, axis 99"]())
    small = run_measured([lathe_cli.binary, "compile", folder / "little.onnx", "-o", folder / "out.so"], 120)
    return small.memory


def input_words(content, folder):
    """Options that give a model zeros of the sizes that it declares, 3 where it declares none. None: they are too
    large, or have a name that no command line can give."""
    words = []
    graph = onnx.ModelProto.FromString(content).graph
    weights = {weight.name for weight in graph.initializer}
    for number, given in enumerate(value for value in graph.input if value.name not in weights):
        tensor = given.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        shape = [dim.dim_value if dim.HasField("dim_value") else 3 for dim in tensor.shape.dim]
        if "\0" in given.name or len(given.name) > LONGEST_NAME:
            return None
        if np.prod([float(extent) for extent in shape]) * dtype.itemsize > LARGEST_INPUT:
            return None
        np.save(folder / f"{number}.npy", np.zeros(shape, dtype))
        words += ["--input", f"{given.name}={folder / f'{number}.npy'}"]
    return words


def problem_of_run(lathe_cli, artifact, words, memory_of_little):
    """What the command does wrong when it runs what it compiled, under limits."""
    limits = ["--timeout", RUN_SECONDS, "--max-memory", RUN_MEMORY, "--max-steps", RUN_STEPS]
    spent = run_measured([lathe_cli.binary, "run", artifact, *words, *limits], 120)
    if spent.outcome.code != 0:
        try:
            assert_clear_failure(spent.outcome)
        except AssertionError as error:
            return f"run: {str(error)[:600]}"
    if spent.seconds > RUN_SECONDS * len(os.sched_getaffinity(0)) + 1:
        return f"run: {spent.seconds:.1f} s"
    if spent.memory > memory_of_little + RUN_MEMORY + LARGEST_INPUT + BESIDE_THE_FILE:
        return f"run: {spent.memory >> 20} MiB"
    return None


def problem(lathe_cli, folder, name, memory_of_little):
    """What the command does wrong with a file, or None."""
    content = corpus()[name]()
    number = list(corpus()).index(name)
    path, artifact = folder / f"{number}.onnx", folder / f"{number}.so"
    path.write_bytes(content)
    spent = run_measured([lathe_cli.binary, "compile", path, "-o", artifact, "--no-cache", "-q"], 120)
    path.unlink()
    outcome = spent.outcome
    try:
        if outcome.code != 0:
            assert_clear_failure(outcome, sentences=6)
    except AssertionError as error:
        return f"{name}: {str(error)[:600]}"
    if spent.seconds > SECONDS:
        return f"{name}: {spent.seconds:.1f} s"
    allowed = memory_of_little + 2 * len(content) + BESIDE_THE_FILE
    if spent.memory > allowed:
        return f"{name}: {spent.memory >> 20} MiB for a file of {len(content)} bytes, {allowed >> 20} are allowed"
    if outcome.code != 0:
        return None
    with tempfile.TemporaryDirectory(dir=folder) as arrays:
        words = input_words(content, Path(arrays))
        found = problem_of_run(lathe_cli, artifact, words, memory_of_little) if words is not None else None
    artifact.unlink()
    return f"{name}: {found}" if found else None


def run_corpus(lathe_cli, folder, names, memory_of_little):
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        said = list(pool.map(lambda name: problem(lathe_cli, folder, name, memory_of_little), names))
    problems = [text for text in said if text]
    assert not problems, f"{len(problems)} of {len(names)}\n" + "\n".join(problems)


def test_some_files(lathe_cli, tmp_path, memory_of_little, seed):
    names = list(corpus())
    step = max(1, len(names) // AT_ONCE)
    run_corpus(lathe_cli, tmp_path, names[seed % step :: step], memory_of_little)


@pytest.mark.full
def test_every_file(lathe_cli, tmp_path, memory_of_little):
    run_corpus(lathe_cli, tmp_path, list(corpus()), memory_of_little)


def test_the_corpus_is_large_and_no_file_is_there_twice():
    contents = [make() for make in corpus().values()]
    assert len(contents) >= 200
    assert len(set(contents)) >= 0.98 * len(contents)
    assert all(isinstance(content, bytes) and content for content in contents)


def test_the_measure_sees_time_and_memory():
    spent = run_measured(["python3", "-c", "x = bytearray(300 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1"], 60)
    assert spent.outcome.code == 0 and spent.memory > 250 << 20 and spent.seconds > 0.01
    assert run_measured(["sleep", "30"], 0.3).outcome.timed_out
