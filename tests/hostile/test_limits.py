"""Models without end, and larger than any machine, under limits: an error soon, which names the node and the limit."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import lathe
from tests.hostile import endless
from tests.support import paths
from tests.support.artifacts import load_runtime

HUGE = np.array(1 << 40, np.int64)
TWO = np.array(2, np.int64)
TIMEOUT = 0.3
MEMORY = 64 << 20
# Of processor time beyond the limit; a second by the clock on a machine that does nothing else.
LATE = 1.0


@pytest.fixture(scope="module")
def executable():
    made = {}

    def get(name):
        if name not in made:
            made[name] = lathe.compile(endless.ALL[name][0]().SerializeToString())
        return made[name]

    return get


def same(a, b):
    return np.array_equal(np.asarray(a), np.asarray(b))


def assert_ends(exe, name, limits, said):
    """The run ends at the limit and says so; the next one gives what the first gave."""
    before = exe(TWO)
    start = time.process_time()
    with pytest.raises(lathe.RunError) as raised:
        exe(HUGE, limits=limits)
    assert time.process_time() - start < TIMEOUT * len(os.sched_getaffinity(0)) + LATE
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "runtime-limit" and said in str(raised.value)
    nodes = set(str(diagnostic.place).split("'")[1].split("/")) if diagnostic.place else {""}
    assert nodes & endless.ALL[name][1], str(raised.value)
    assert same(exe(TWO), before)


@pytest.mark.parametrize("name", [*endless.ENDLESS, "a fused sum"])
def test_time_ends_what_does_not_end(executable, name):
    assert_ends(executable(name), name, lathe.Limits(timeout=TIMEOUT), f"its time limit of {TIMEOUT} s")


@pytest.mark.parametrize("name", [*endless.ENDLESS, *endless.GROWING])
def test_steps_end_what_does_not_end(executable, name):
    limits = lathe.Limits(max_steps=3000, max_memory=4 << 30)
    if name == "concatenation":  # doubles with each turn
        limits = lathe.Limits(max_steps=100, max_memory=4 << 30)
    assert_ends(executable(name), name, limits, f"its limit of {limits.max_steps} steps")


@pytest.mark.parametrize("name", [*endless.GROWING, *(n for n in endless.ENORMOUS if n != "a fused sum")])
def test_memory_ends_what_grows(executable, name):
    memory = MEMORY if name != "sequence" else 1 << 20  # each turn copies the list of what is in it
    assert_ends(executable(name), name, lathe.Limits(max_memory=memory), f"memory limit of {memory} bytes")


def test_limits_of_the_executable_hold_unless_a_call_has_its_own(executable, tmp_path):
    exe = lathe.compile(endless.turns_without_end().SerializeToString(), limits=lathe.Limits(max_steps=1000))
    assert exe.limits.max_steps == 1000 and exe.limits.timeout is None
    with pytest.raises(lathe.RunError, match="1000 steps"):
        exe(HUGE)
    assert exe(np.array(2000, np.int64), limits=lathe.Limits()) == 0  # doubled past 64 bits
    with pytest.raises(lathe.RunError, match="1000 steps"):
        exe.run([HUGE])
    with pytest.raises(lathe.RunError, match="50 steps"):
        exe.run([HUGE], limits=lathe.Limits(max_steps=50))
    exe.limits = lathe.Limits(timeout=TIMEOUT)
    with pytest.raises(lathe.RunError, match="time limit"):
        exe(n=HUGE)
    exe.save(tmp_path / "m.so")
    opened = lathe.load(tmp_path / "m.so", limits=lathe.Limits(max_steps=70))
    with pytest.raises(lathe.RunError, match="70 steps"):
        opened(HUGE)
    artifact = load_runtime().Artifact(tmp_path / "m.so", timeout=TIMEOUT)
    with pytest.raises(RuntimeError, match="time limit of 0.3 s"):
        artifact.run([HUGE])


def test_limits_say_what_they_are():
    limits = lathe.Limits(max_memory=1 << 20, timeout=1.5)
    assert repr(limits) == "Limits(max_memory=1048576, timeout=1.5)" and repr(lathe.Limits()) == "Limits()"
    for wrong in ({"max_memory": 0}, {"max_steps": -1}, {"timeout": 0}, {"timeout": float("nan")}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            lathe.Limits(**wrong)
    with pytest.raises(lathe.InputError, match="no input 'limits'"):
        lathe.compile(endless.turns_without_end().SerializeToString())(TWO, limits=3)
    interpreted = lathe.compile(endless.fills().SerializeToString(), "interp")
    with pytest.raises(lathe.InputError, match="limits hold for compiled code"):
        interpreted(TWO, limits=limits)


@pytest.mark.parametrize("name", ["turns", "a fused sum"])
def test_a_run_is_cancelled_from_another_thread(executable, name):
    exe = executable(name)
    before = exe(TWO)
    timer = threading.Timer(TIMEOUT, exe.cancel)
    timer.start()
    with pytest.raises(lathe.RunError, match="cancelled") as raised:
        exe(HUGE)
    timer.join()
    assert raised.value.diagnostics[0].code == "runtime-cancelled"
    exe.cancel()  # nothing is running
    assert same(exe(TWO), before)


INTERRUPTED = """
    import os, signal, sys, threading, time
    import numpy as np
    import lathe
    from tests.hostile import endless

    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have it ignored
    exe = lathe.compile(endless.ALL[sys.argv[1]][0]().SerializeToString())
    before = exe(np.array(2, np.int64))
    for _ in range(2):
        started = time.process_time()
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            exe(np.array(1 << 40, np.int64))
        except KeyboardInterrupt:
            print(f"interrupted after {time.process_time() - started:.2f} s")
        assert np.array_equal(exe(np.array(2, np.int64)), before)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


@pytest.mark.parametrize("name", ["turns", "a fused sum"])
def test_ctrl_c_ends_a_run(name):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED), name], capture_output=True, text=True, timeout=120,
        cwd=paths.ROOT, env=paths.environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    times = [float(line.split()[2]) for line in done.stdout.splitlines()]
    assert len(times) == 2 and max(times) < 0.3 * len(os.sched_getaffinity(0)) + LATE


# ---- the command ----


@pytest.fixture(scope="module")
def saved(lathe_cli, tmp_path_factory):
    folder = tmp_path_factory.mktemp("endless")
    np.save(folder / "huge.npy", HUGE)
    np.save(folder / "two.npy", TWO)
    for name in ("turns", "Range"):
        (folder / f"{name}.onnx").write_bytes(endless.ALL[name][0]().SerializeToString())
        lathe_cli("compile", folder / f"{name}.onnx", "-o", folder / f"{name}.so")
    return folder


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("turns", ["--timeout", "0.2"], "the model did not run: the run passed its time limit of 0.2 s"),
        ("turns", ["--max-steps", "500"], "the run passed its limit of 500 steps"),
        ("Range", ["--max-memory", "10MB"], "would pass the context's memory limit of 10485760 bytes"),
    ],
)
def test_the_command_has_limits(lathe_cli, saved, name, options, said):
    outcome = lathe_cli.fails("run", saved / f"{name}.so", "--input", f"n={saved / 'huge.npy'}", *options)
    assert said in outcome.err
    # A limit is met where the run is at that moment: in the node, or in one of its body.
    node = outcome.err.split("'")[1] if outcome.err.startswith("node '") else ""
    assert set(node.split("/")) & endless.ALL[name][1], outcome.err
    lathe_cli("run", saved / f"{name}.so", "--input", f"n={saved / 'two.npy'}", *options)
    said = lathe_cli.fails(
        "bench", saved / f"{name}.onnx", "--input", f"n={saved / 'huge.npy'}", "--runs", "1", *options
    )
    assert said.err


def test_the_command_refuses_limits_that_are_none(lathe_cli, saved):
    for options in (["--timeout", "-1"], ["--max-memory", "many"], ["--max-steps", "0"]):
        outcome = lathe_cli.run("run", saved / "turns.so", "--input", f"n={saved / 'two.npy'}", *options)
        assert outcome.code == 2 and options[0] in outcome.err


def test_the_command_ends_with_ctrl_c(lathe_cli, saved):
    child = subprocess.Popen(
        [lathe_cli.binary, "run", saved / "turns.so", "--input", f"n={saved / 'huge.npy'}"], env=paths.environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # whoever started the tests may ignore it
    )  # fmt: skip
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == -signal.SIGINT
