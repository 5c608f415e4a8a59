"""Configures and builds one of the presets of CMakePresets.json."""

import os
import subprocess

from . import setup
from .setup import ROOT


def folder(preset):
    return ROOT / ("build" if preset == "dev" else f"build-{preset}")


def is_empty(preset):
    return not (folder(preset) / "build.ninja").exists()


def build(preset="dev", targets=(), unity=False, keep_going=False):
    python = setup.ensure()
    environment = dict(os.environ, PATH=f"{python.parent}:{os.environ['PATH']}")
    if is_empty(preset):
        options = ["-DLATHE_UNITY=ON"] if unity else []
        subprocess.run(["cmake", "--preset", preset, *options, "--log-level=WARNING"], env=environment, check=True)
    command = ["ninja", "-C", folder(preset), *(["-k", "0"] if keep_going else []), *targets]
    subprocess.run(command, env=environment, check=True)
