"""Configures and builds a preset of CMakePresets.json in its folder."""

import os
import subprocess

from . import setup
from .setup import ROOT


def folder(preset):
    return ROOT / ("build" if preset == "dev" else f"build-{preset}")


def is_empty(preset):
    return not (folder(preset) / "build.ninja").exists()


def environment():
    tools = setup.ensure().parent
    return dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}")


def configure(name):
    """Makes the build folder of the preset `name` unless it is there.

    Sources are compiled by eights, which makes a build from nothing several times quicker; after an edit its eight are
    compiled anew.
    """
    if not is_empty(name):
        take_back_from_pip(folder(name))
        return
    command = ["cmake", "--preset", name, "-B", folder(name), "--log-level=WARNING", "-DLATHE_UNITY=ON"]
    subprocess.run(command, cwd=ROOT, env=environment(), check=True, stdout=subprocess.DEVNULL)


def take_back_from_pip(path):
    """`pip install .` builds in the same folder and leaves its own interpreter configured, which is gone by now."""
    if "\nSKBUILD:" not in (path / "CMakeCache.txt").read_text():
        return
    python = ROOT / ".venv" / "bin" / "python"
    command = ["cmake", "-B", path, "-S", ROOT, "-USKBUILD*", f"-DPython_EXECUTABLE={python}", "--log-level=WARNING"]
    subprocess.run(command, cwd=ROOT, env=environment(), check=True, stdout=subprocess.DEVNULL)


def build(name="dev", targets=()):
    configure(name)
    subprocess.run(["ninja", "-C", folder(name), *targets], env=environment(), check=True)


def test_targets(name):
    """The test binaries that a configured build folder knows."""
    command = ["ninja", "-C", folder(name), "-t", "targets", "all"]
    listing = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout
    rows = [line.rsplit(": ", 1) for line in listing.splitlines() if ": " in line]
    named = {target for target, rule in rows if rule == "phony" and target.endswith("_test") and "/" not in target}
    return {target for target in named if not target.startswith("cmake_")}  # those are CMake's own
