"""Every network at full size against PyTorch in float64 (./dev check --full).

PyTorch is in requirements-check.txt; LATHE_TORCH_PYTHON names another interpreter that has it.
"""

import os
import subprocess
import sys

import numpy as np
import onnx
import pytest

from tests.accuracy import torch_reference_path
from tests.accuracy.measure import assert_accurate
from tests.models import MODELS, input_for
from tests.support.float64 import reference_outputs, relative_error

TORCH_PYTHON = os.environ.get("LATHE_TORCH_PYTHON", sys.executable)

FULL_SIZE = {
    "digits": dict(height=28, width=31),
    "mlp": dict(features=784, hidden=(1021, 512, 509), classes=1000),
    "resnet50": dict(height=224, width=192),
    "mobilenet_v2": dict(height=224, width=192),
    "squeezenet": dict(height=227, width=195),
    "transformer": dict(length=128, features=768, heads=12, layers=6, inner=3072, classes=100),
}

pytestmark = pytest.mark.full


@pytest.fixture
def torch_reference(tmp_path):
    found = subprocess.run([TORCH_PYTHON, "-c", "import torch"], capture_output=True).returncode == 0
    assert found, f"{TORCH_PYTHON} has no PyTorch: see requirements-check.txt"

    def reference(model, feeds):
        model_path, feeds_path, outputs_path = (tmp_path / name for name in ("m.onnx", "feeds.npz", "outputs.npz"))
        onnx.save(model, model_path)
        np.savez(feeds_path, **feeds)
        command = [TORCH_PYTHON, torch_reference_path, model_path, feeds_path, outputs_path]
        subprocess.run([str(part) for part in command], check=True)
        with np.load(outputs_path) as outputs:
            return [outputs[key] for key in outputs]

    return reference


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", FULL_SIZE)
def test_full_size(backend, torch_reference, name, batch):
    model = MODELS[name](batch=batch, **FULL_SIZE[name])
    assert_accurate(backend, model, batch, torch_reference, name)


@pytest.mark.parametrize("name", MODELS)
def test_the_two_references_agree(torch_reference, name):
    """PyTorch and the reference evaluator, both in float64, at the small size."""
    model = MODELS[name](batch=2)
    feeds = input_for(model, 2, 5)
    assert relative_error(torch_reference(model, feeds)[0], reference_outputs(model, feeds)[0]) < 1e-12
