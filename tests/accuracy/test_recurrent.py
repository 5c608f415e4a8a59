"""Networks of recurrent cells against their equations in float64."""

import numpy as np
import onnx
import pytest

from tests.models.full_size import RECURRENT
from tests.models.recurrent import gru_tagger, lstm_language
from tests.support.backends import BACKENDS, run_model
from tests.support.float64 import reference_outputs, relative_error


def feeds_for(model, batch, length, seed):
    rng, feeds = np.random.default_rng(seed), {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        shape = [d.dim_value or {"batch": batch, "length": length}[d.dim_param] for d in dims]
        is_word = value.type.tensor_type.elem_type == onnx.TensorProto.INT64
        feeds[value.name] = rng.integers(0, 61, shape) if is_word else rng.standard_normal(shape, np.float32)
    return feeds


NETWORKS = {"lstm_language": lstm_language, "gru_tagger": gru_tagger}


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", NETWORKS)
def test_recurrent_networks_are_accurate_and_depend_on_their_input(backend, name, batch, symbolic):
    assert_recurrent(backend, NETWORKS[name], batch, 19, symbolic)


@pytest.mark.full
@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", RECURRENT)
def test_full_size(backend, name, batch, symbolic):
    assert_recurrent(backend, RECURRENT[name], batch, 43, symbolic)


def assert_recurrent(backend, network, batch, length, symbolic):
    model = network(*(("batch", "length") if symbolic else (batch, length)))
    compiled, session = (BACKENDS[which](model) for which in (backend, "onnxruntime"))
    answers = []
    for seed in (1, 2):
        feeds = feeds_for(model, batch, length, seed)
        for want, their, our in zip(reference_outputs(model, feeds), session(feeds), compiled(feeds), strict=True):
            assert our.dtype == np.float32
            assert relative_error(our, want) <= 2 * relative_error(their, want) + 1e-6
            answers.append(want)
    half = len(answers) // 2
    largest = max(np.abs(answer).max() for answer in (answers[0], answers[half]))
    assert np.abs(answers[0] - answers[half]).max() > 0.1 * largest


def test_a_language_model_goes_on_from_the_state_it_gave(backend):
    whole_model, first_model, rest_model = (lstm_language(2, length) for length in (8, 5, 3))
    feeds = feeds_for(whole_model, 2, 8, 3)
    whole = run_model(backend, whole_model, feeds)
    first = run_model(backend, first_model, {**feeds, "x": feeds["x"][:, :5]})
    states = [value.name for value in whole_model.graph.input][1:]
    rest = run_model(backend, rest_model, {"x": feeds["x"][:, 5:], **dict(zip(states, first[1:], strict=True))})
    np.testing.assert_allclose(np.concatenate([first[0], rest[0]], 1), whole[0], rtol=0, atol=1e-5)
    for ours, theirs in zip(rest[1:], whole[1:], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
