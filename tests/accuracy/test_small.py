"""Every network at about 64x48 pixels against the `onnx` reference evaluator in float64."""

import math

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from tests.accuracy.measure import assert_accurate
from tests.models import IMAGE_MODELS, MODELS, input_for
from tests.models.light import LIGHT, NARROW, light
from tests.support import paths
from tests.support.backends import run_model
from tests.support.float64 import reference_outputs, relative_error, to_float64


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_fixed_batch(backend, name, batch):
    assert_accurate(backend, MODELS[name](batch=batch), batch, describe=name)


@pytest.mark.parametrize("name", ["digits", "mlp", "transformer", "efficientnet", "unet", "vit", "tcn"])
def test_symbolic_batch(backend, name):
    assert_accurate(backend, MODELS[name](), (1, 3), describe=name)


@pytest.mark.parametrize("name", LIGHT)
def test_light_models_of_few_channels(backend, name):
    assert_accurate(backend, light(name, narrow=NARROW[name]), (1, 3), describe=name)


@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_symbolic_batch_of_narrow_images(backend, name):
    assert_accurate(backend, MODELS[name](multiplier=0.25, height=49, width=67, classes=37), 2, describe=name)


def test_symbolic_batch_and_length(backend):
    assert_accurate(backend, MODELS["transformer"](length="length", fused_gelu=True), 2, describe="transformer")
    assert_accurate(backend, MODELS["tcn"](length="length"), 2, describe="tcn")
    assert_accurate(backend, MODELS["wav2vec"](length=333), (1, 3), describe="wav2vec")


def test_the_trained_digits_model(backend):
    assert_accurate(backend, onnx.load(paths.DIGITS_MODEL), 5, describe="trained digits")


# What follows tests the measure itself: it must be able to fail.


def test_float64_reference_is_not_float32():
    model = MODELS["mlp"]()
    feeds = input_for(model, 3, 1)
    (wide,) = reference_outputs(model, feeds)
    (narrow,) = ReferenceEvaluator(model).run(None, feeds)
    assert wide.dtype == np.float64 and narrow.dtype == np.float32
    assert 0 < relative_error(narrow, wide) < 1e-5


def test_the_reference_erf_is_exact():
    graph = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 20]> f (float[n] x) => (float[n] y) { y = Gelu(x) }'
    )
    x = np.linspace(-3, 3, 50, dtype=np.float32)
    (y,) = reference_outputs(graph, {"x": x})
    exact = [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.astype(np.float64)]
    np.testing.assert_allclose(y, exact, rtol=0, atol=1e-15)


def test_widening_leaves_no_float32_behind():
    for name in MODELS:
        wide = to_float64(MODELS[name](batch=1))
        assert all(t.data_type != onnx.TensorProto.FLOAT for t in wide.graph.initializer), name


@pytest.mark.parametrize("weight", range(0, 12, 3))
def test_a_small_change_of_any_weight_is_caught(weight):
    """One element of one weight off by a thousandth of the tensor's largest is beyond the bound."""
    model = MODELS["digits"](batch=2)
    feeds = input_for(model, 2, 11)
    (wanted,) = reference_outputs(model, feeds)
    (theirs,) = run_model("onnxruntime", model, feeds)
    tensor = model.graph.initializer[weight]
    values = onnx.numpy_helper.to_array(tensor).copy()
    values.flat[values.size // 2] += 1e-2 * np.abs(values).max()
    tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    (changed,) = run_model("onnxruntime", model, feeds)
    assert relative_error(changed, wanted) > 2 * relative_error(theirs, wanted) + 1e-6
