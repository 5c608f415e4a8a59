"""Lathe and PyTorch in one process, imported in either order: neither meets the other's libraries."""

import subprocess
import sys

import pytest

from tests.support.paths import ROOT

PROGRAM = """
import {first}
import {second}
import numpy as np
exe = lathe.compile({model!r})
images = torch.rand(3, 1, 8, 8)
scores = torch.from_dlpack(exe(images))
assert scores.shape == (3, 10), scores.shape
net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 10))
before = net(images)
assert np.array_equal(exe(images.numpy()), scores.numpy())
assert torch.equal(net(images), before)
"""


@pytest.mark.full
@pytest.mark.parametrize("first, second", [("torch", "lathe"), ("lathe", "torch")])
def test_either_order(first, second):
    program = PROGRAM.format(first=first, second=second, model=str(ROOT / "examples" / "03-digits" / "digits.onnx"))
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
