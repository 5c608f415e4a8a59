"""Every public function of the language, called with what it does not take: it refuses in words, and lives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lathe

SWEEP = Path(__file__).with_name("misuse_sweep.py")
# Each space, and how many calls there are at least: new names are swept as they come.
SPACES = {"schedule": 400, "T": 1000, "te": 500, "tir": 1500, "topi": 400, "arith": 30, "script": 1000}


def swept(space, seed=1):
    """The lines that the sweep printed."""
    command = [sys.executable, "-X", "faulthandler", str(SWEEP), space, str(seed)]
    where = os.environ | {"PYTHONPATH": str(Path(lathe.__file__).parents[1])}
    done = subprocess.run(
        command, env=where, capture_output=True, text=True, errors="replace", timeout=300, check=False
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (done.returncode, lines[-1:], done.stderr[-2000:])
    return lines


@pytest.mark.parametrize("space", SPACES)
def test_whatever_is_called_wrongly_refuses_in_words(space):
    lines = swept(space)
    assert [line for line in lines if line.startswith("wrong: ")] == []
    assert int(lines[-1].removeprefix("done: ").removesuffix(" calls")) >= SPACES[space]


def test_the_sweep_finds_what_is_no_refusal():
    assert any("bad optional access" in line for line in swept("spoiled") if line.startswith("wrong: "))
