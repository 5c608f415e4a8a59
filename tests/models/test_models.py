"""The networks are what they say: valid, of the known sizes, and they keep their input's information."""

import numpy as np
import onnx
import pytest

from tests.models import IMAGE_MODELS, MODELS, input_for
from tests.models.light import LIGHT, as_given, light
from tests.support.backends import run_model

# Parameters of the published networks: torchvision's counts, plus the running statistics of batch norms.
PUBLISHED = {"resnet50": 25_557_032 + 2 * 26_560, "mobilenet_v2": 3_504_872 + 2 * 17_056, "squeezenet": 1_235_496}


@pytest.mark.parametrize("name", PUBLISHED)
def test_has_the_published_number_of_parameters(name):
    model = MODELS[name]()
    floats = [t for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT and t.dims]
    assert sum(int(np.prod(t.dims)) for t in floats) == PUBLISHED[name]


@pytest.mark.parametrize("batch", [1, 3, "batch"])
@pytest.mark.parametrize("name", MODELS)
def test_runs_and_depends_on_its_input(name, batch):
    options = dict(multiplier=0.5) if name in IMAGE_MODELS else {}
    model = MODELS[name](batch=batch, **options)
    count = 2 if batch == "batch" else batch
    answers = [run_model("onnxruntime", model, input_for(model, count, seed))[0] for seed in (1, 2)]
    largest = max(np.abs(y).max() for y in answers)
    assert 0.05 < largest < 50
    assert np.abs(answers[0] - answers[1]).max() > 0.1 * largest


@pytest.mark.parametrize("name", LIGHT)
def test_light_models_have_the_graph_that_was_given(name):
    """Everything but weights and batch is as in the file: the operators, and the shapes between them."""
    ours, theirs = light(name, batch=1), as_given(name)
    kinds = [n.op_type for n in theirs.graph.node if n.op_type != "ConstantOfShape"]
    if name == "inception_v1":
        kinds.remove("Reshape")  # of a weight
    assert [n.op_type for n in ours.graph.node] == kinds
    shapes = [
        {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in inferred.graph.value_info}
        for inferred in (onnx.shape_inference.infer_shapes(m, data_prop=True) for m in (ours, theirs))
    ]
    shared = [value for n in ours.graph.node for value in n.output if value in shapes[0] and value in shapes[1]]
    assert all(shapes[0][value] == shapes[1][value] for value in shared) and len(shared) > 10


@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_pads_are_uneven_and_statistics_differ(name):
    model = MODELS[name](batch=1, multiplier=0.25)
    pads = [list(a.ints) for n in model.graph.node for a in n.attribute if a.name == "pads"]
    assert any(p[:2] != p[2:] for p in pads) and any(p[0] != p[1] for p in pads)
    for tensor in model.graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.size > 8:
            assert len(np.unique(values)) > values.size * 0.9
