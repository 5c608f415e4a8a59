"""Every public function of the language, called with what it does not take: it refuses in words, and lives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lathe

ROOT = Path(lathe.__file__).parents[1]
# Each space, and how many calls there are at least: new names are swept as they come.
SPACES = {
    "schedule": 400, "T": 1500, "te": 700, "tir": 2000, "topi": 600, "arith": 200, "script": 2000, "ir": 300,
    "runtime": 180, "objects": 5000, "builder": 1500, "passes": 180, "programs": 300,
}  # fmt: skip
MORE = 10  # rounds under --full, from a seed of their own


def swept(space, seed=1, rounds=1):
    """The lines that the sweep printed, and how its process ended."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.python.misuse.sweep", space, str(seed), str(rounds)]
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parents[3])])
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, errors="replace",
        timeout=600, check=False,
    )  # fmt: skip
    return done.stdout.splitlines(), done


def wrong(space, seed, rounds=1):
    """What the sweep found: a text with what repeats it, or nothing."""
    lines, done = swept(space, seed, rounds)
    found = [line for line in lines if line.startswith("wrong: ")]
    if done.returncode != 0:
        found.append(f"the process ended with {done.returncode} in {lines[-1:]}: {done.stderr[-2000:]}")
    elif not found:
        assert int(lines[-1].removeprefix("done: ").removesuffix(" calls")) >= SPACES.get(space, 0)
        return ""
    return "\n".join([*found, f"again: python -m tests.python.misuse.sweep {space} {seed} {rounds}"])


@pytest.mark.parametrize("space", SPACES)
def test_whatever_is_called_wrongly_refuses_in_words(space, seed):
    assert wrong(space, seed) == ""


@pytest.mark.full
@pytest.mark.parametrize("space", SPACES)
def test_more_of_it(space, seed):
    assert wrong(space, seed + 1000, MORE) == ""


@pytest.mark.parametrize(
    "space, said",
    [("spoiled", "bad optional access"), ("endless", "takes too long"), ("stuck", "ended with 1 in"),
     ("greedy", "memory without bound"), ("dead", "ended with -6 in")],
)  # fmt: skip
def test_the_sweep_finds_what_is_no_refusal(space, said):
    found = wrong(space, 1)
    assert said in found
    assert found.endswith(f"again: python -m tests.python.misuse.sweep {space} 1 1")
