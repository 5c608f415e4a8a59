"""Every network at full size against PyTorch in float64 (./dev check --full).

PyTorch is in requirements-check.txt; LATHE_TORCH_PYTHON names another interpreter that has it.
"""

import os
import sys

import onnx
import pytest

from tests.accuracy.measure import assert_accurate
from tests.models import MODELS, input_for
from tests.models.full_size import IMAGES, full_size
from tests.models.light import LIGHT, NARROW, light, set_batch
from tests.support.command import run_command
from tests.support.float64 import reference_outputs, relative_error
from tests.support.worker import Worker

TORCH_PYTHON = os.environ.get("LATHE_TORCH_PYTHON", sys.executable)
SECONDS = 600  # for one model

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def torch_worker():
    found = run_command([TORCH_PYTHON, "-c", "import torch"], timeout=SECONDS)
    assert found.code == 0, f"{TORCH_PYTHON} has no PyTorch, see requirements-check.txt\n{found}"
    with Worker("tests.accuracy.torch_reference", interpreter=TORCH_PYTHON) as worker:
        yield worker


@pytest.fixture
def torch_references(torch_worker, tmp_path):
    def references(model, all_feeds):
        onnx.save(model, tmp_path / "model.onnx")
        request = {"model": str(tmp_path / "model.onnx"), "feeds": all_feeds}
        kind, outputs = torch_worker.ask(request, SECONDS)
        assert kind == "ok", outputs
        return outputs

    return references


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", IMAGES)
def test_full_size(backend, torch_references, name, batch):
    assert_accurate(backend, full_size(name, batch), batch, torch_references, name)


@pytest.mark.parametrize("name", LIGHT)
def test_light_models(backend, torch_references, name):
    """Batch 1 and 3, static and symbolic, by one draw of the weights and one evaluation of each batch."""
    model, known = light(name), {}

    def references(model, all_feeds):
        batch = next(iter(all_feeds[0].values())).shape[0]
        if batch not in known:
            known[batch] = torch_references(model, all_feeds)
        return known[batch]

    assert_accurate(backend, model, (1, 3), references, name)
    for batch in (1, 3):
        assert_accurate(backend, set_batch(model, batch), batch, references, name)


@pytest.mark.parametrize("name", [*MODELS, *LIGHT])
def test_the_two_references_agree(torch_references, name):
    """PyTorch and the reference evaluator, both in float64, at the small size."""
    model = light(name, 2, narrow=NARROW[name]) if name in LIGHT else MODELS[name](batch=2)
    feeds = input_for(model, 2, 5)
    ((wanted,),) = torch_references(model, [feeds])
    assert relative_error(wanted, reference_outputs(model, feeds)[0]) < 1e-11
