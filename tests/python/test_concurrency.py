"""The GIL is released, threads share an executable, and Ctrl-C ends a compile."""

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import onnx
import pytest

from tests.models import MODELS, input_for
from tests.support import paths


def progress_while(work):
    """How often another thread of Python came to run while `work()` went on, and the seconds it took."""
    ticks, done = 0, threading.Event()

    def count():
        nonlocal ticks
        while not done.wait(0.001):
            ticks += 1

    counter = threading.Thread(target=count)
    counter.start()
    started = time.monotonic()
    try:
        work()
    finally:
        done.set()
        counter.join()
    return ticks, time.monotonic() - started


def test_running_releases_the_gil(lathe):
    model = MODELS["resnet50"](batch=1, height=224, width=192, multiplier=0.5)
    exe, feeds = lathe.compile(model, threads=1), input_for(model, 1, 1)
    exe(**feeds)
    ticks, seconds = progress_while(lambda: [exe(**feeds) for _ in range(5)])
    assert ticks >= min(10, seconds / 0.02), f"{ticks} turns in {seconds:.2f} s"


def test_compiling_releases_the_gil(lathe):
    model = MODELS["resnet50"](batch=1, multiplier=0.25).SerializeToString()
    ticks, seconds = progress_while(lambda: lathe.compile(model))
    assert ticks >= min(20, seconds / 0.05), f"{ticks} turns in {seconds:.2f} s"


def test_one_executable_from_eight_threads(lathe):
    model = MODELS["transformer"]()
    exe = lathe.compile(model)
    feeds = [input_for(model, batch, batch) for batch in range(1, 9)]
    wanted = [exe(**f).tobytes() for f in feeds]
    wrong = []

    def call(index):
        for turn in range(30):
            k = (index + turn) % 8
            if exe(**feeds[k]).tobytes() != wanted[k]:
                wrong.append((index, turn))

    threads = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_models_compile_in_several_threads_at_once(lathe):
    results = {}

    def work(seed):
        model = MODELS["mlp"](seed=seed)
        results[seed] = (model, lathe.compile(model))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for model, exe in results.values():
        feeds = input_for(model, 2, 1)
        np.testing.assert_allclose(exe(**feeds).sum(1), 1, atol=1e-5)


@pytest.mark.parametrize("delay", [0.1, 0.6])
def test_ctrl_c_ends_a_compile(tmp_path, delay):
    """SIGINT while a large model compiles raises KeyboardInterrupt, long before the compile would be done."""
    onnx.save(MODELS["resnet50"](batch=1, height=224, width=192), tmp_path / "model.onnx")
    program = (
        "import signal, sys, lathe\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # behind the shell's & it is ignored\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    while True: lathe.compile(sys.argv[1])\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
        "print(lathe.compile(sys.argv[2])(__import__('numpy').zeros((1, 1, 8, 8), 'float32')).shape, flush=True)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "model.onnx"), str(paths.DIGITS_MODEL)]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=paths.environment()
    )
    try:
        first = child.stdout.readline()
        assert first.strip() == "ready", first + child.stderr.read()
        time.sleep(delay)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=20)
    finally:
        child.kill()
    assert child.returncode == 0, err
    assert out.splitlines() == ["interrupted", "(1, 10)"], out + err
