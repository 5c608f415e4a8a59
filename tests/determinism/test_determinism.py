"""Same bits for every number of threads, same artifact bytes from every compile, many callers and forks together."""

import hashlib
import shutil
import sys

import numpy as np
import onnx
import pytest

from tests.models import MODELS, input_for
from tests.support import paths
from tests.support.command import run_command

SMALL = {"multiplier": 0.25}
CHOSEN = {
    "digits": {}, "mlp": {"batch": 3}, "transformer": {}, "resnet50": SMALL, "mobilenet_v2": SMALL | {"batch": 2},
    "squeezenet": SMALL,
}  # fmt: skip


class Prepared:
    """A model file, its inputs, and artifacts and outputs of it."""

    def __init__(self, folder, name, lathe_cli):
        self.folder, self.lathe = folder, lathe_cli
        model = MODELS[name](**CHOSEN[name])
        self.model, self.feeds = folder / f"{name}.onnx", folder / f"{name}.npz"
        onnx.save(model, self.model)
        np.savez(self.feeds, **input_for(model, 3, 21))

    def compile(self, artifact, *options, **run_options):
        self.lathe("compile", self.model, "-o", artifact, *options, **run_options)
        return artifact

    def run(self, artifact, threads):
        outputs = self.folder / f"outputs-{threads}.npz"
        environment = paths.environment(LATHE_NUM_THREADS=threads, OMP_NUM_THREADS=None)
        command = [sys.executable, "-m", "tests.determinism.run_once", artifact, self.feeds, outputs]
        outcome = run_command(command, env=environment, cwd=paths.ROOT)
        assert outcome.code == 0, str(outcome)
        with np.load(outputs) as arrays:
            return {name: arrays[name] for name in arrays}


@pytest.fixture(params=CHOSEN)
def prepared(request, lathe_cli, tmp_path):
    return Prepared(tmp_path, request.param, lathe_cli)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_same_bits_on_one_and_two_threads(prepared):
    artifact = prepared.compile(prepared.folder / "model.so")
    one = prepared.run(artifact, 1)
    for threads in (2, 3):
        many = prepared.run(artifact, threads)
        assert one.keys() == many.keys()
        for name in one:
            assert one[name].tobytes() == many[name].tobytes(), f"{name} differs on {threads} threads"
    assert np.isfinite(one["out_0"]).all() and np.ptp(one["out_0"]) > 0


def test_same_bytes_from_two_folders_processes_and_thread_counts(prepared, tmp_path):
    digests = {}
    for folder in ("a", "another/much/longer/folder"):
        place = tmp_path / folder
        place.mkdir(parents=True)
        model = shutil.copy(prepared.model, place / "model.onnx")
        for threads in (1, 2):
            # A cache of its own, so that nothing is the same because it was compiled once.
            environment = paths.environment(
                LATHE_CACHE_DIR=place / f"cache-{threads}", XDG_CACHE_HOME=place / f"xdg-{threads}"
            )
            artifact = place / f"model-{threads}.so"
            command = ("compile", model, "-o", artifact, "--compile-threads", str(threads))
            prepared.lathe(*command, cwd=place, env=environment)
            digests[folder, threads] = digest(artifact)
    assert len(set(digests.values())) == 1, digests


def test_same_bytes_again_and_by_a_relative_path(prepared, tmp_path):
    first = prepared.compile(tmp_path / "first.so")
    prepared.lathe("compile", prepared.model.name, "-o", "second.so", cwd=tmp_path)
    assert digest(first) == digest(tmp_path / "second.so")


def test_different_models_give_different_bytes(lathe_cli, tmp_path):
    digests = set()
    for seed in (1, 2):
        onnx.save(MODELS["mlp"](seed=seed), tmp_path / "mlp.onnx")
        lathe_cli("compile", tmp_path / "mlp.onnx", "-o", tmp_path / "mlp.so")
        digests.add(digest(tmp_path / "mlp.so"))
    assert len(digests) == 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["runtime", "package"])
def test_two_models_eight_callers_and_forks(lathe_cli, tmp_path, kind, threads):
    arguments = []
    for name in ("digits", "transformer"):
        prepared = Prepared(tmp_path, name, lathe_cli)
        artifact = prepared.compile(tmp_path / f"{name}.so")
        outputs = prepared.run(artifact, 1)
        with np.load(prepared.feeds) as feeds:
            data = tmp_path / f"{name}-wanted.npz"
            np.savez(data, **dict(feeds), **outputs)
        arguments += [artifact, data]
    environment = paths.environment(LATHE_NUM_THREADS=threads)
    command = [sys.executable, "-m", "tests.determinism.many_callers", kind, *arguments]
    outcome = run_command(command, env=environment, cwd=paths.ROOT, timeout=120)
    assert outcome.code == 0, str(outcome)


def test_thread_count_is_taken_from_the_first_that_is_set(lathe_cli, digits_artifact, tmp_path):
    """LATHE_NUM_THREADS wins over OMP_NUM_THREADS: with one thread the process stays single."""
    program = (
        "import os, sys, numpy as np\n"
        "from tests.support.artifacts import load_runtime\n"
        "artifact = load_runtime().Artifact(sys.argv[1])\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "artifact.run({'image': np.ones((64, 1, 8, 8), np.float32)})\n"
        "print(len(os.listdir('/proc/self/task')) - before)\n"
    )
    environment = paths.environment(LATHE_NUM_THREADS=1, OMP_NUM_THREADS=2, OPENBLAS_NUM_THREADS=1)
    outcome = run_command([sys.executable, "-c", program, digits_artifact], env=environment, cwd=paths.ROOT)
    assert outcome.code == 0 and int(outcome.out) == 0, str(outcome)
