"""Language models against the float64 reference: BERT; GPT-2 and LLaMA before and with a cache of keys and values."""

from functools import partial

import numpy as np
import pytest

from tests.models.bert import bert
from tests.models.full_size import LANGUAGE, random_feeds
from tests.models.gpt2 import gpt2
from tests.models.llama import llama
from tests.support.backends import BACKENDS
from tests.support.float64 import reference_outputs, relative_error

LANGUAGE_MODELS = {
    "bert": lambda: bert(2, 9, features=24, heads=3, layers=2, inner=40, words=51),
    "gpt2-prefill": lambda: gpt2(2, 7, features=24, heads=3, layers=2, words=51, positions=16),
    "gpt2-decode": lambda: gpt2(2, 1, past=6, features=24, heads=3, layers=2, words=51, positions=16),
    "llama-prefill": lambda: llama(2, 7, features=24, heads=6, shared=3),
    "llama-decode": lambda: llama(2, 1, past=6, features=24, heads=6, shared=3),
}


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_language_models_are_accurate_and_depend_on_their_input(backend, name):
    assert_language(backend, LANGUAGE_MODELS[name]())


@pytest.mark.full
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", LANGUAGE)
def test_full_size(backend, name, batch):
    assert_language(backend, LANGUAGE[name](batch))


def assert_language(backend, model):
    compiled, session = (BACKENDS[which](model) for which in (backend, "onnxruntime"))
    answers = []
    for seed in (1, 2):
        feeds = random_feeds(model, seed)
        wanted, theirs, ours = reference_outputs(model, feeds), session(feeds), compiled(feeds)
        for want, their, our in zip(wanted, theirs, ours):
            assert relative_error(our, want) <= 2 * relative_error(their, want) + 1e-6
        answers.append(wanted[0])
    largest = max(np.abs(answer).max() for answer in answers)
    assert np.abs(answers[0] - answers[1]).max() > 0.1 * largest


@pytest.mark.parametrize("model", [partial(gpt2, features=24, heads=3, layers=2, words=51, positions=16), llama])
def test_a_decoder_with_a_cache_continues_what_prefill_began(model):
    tokens = np.random.default_rng(3).integers(0, 51, (1, 8))
    whole = reference_outputs(model(1, 8), {"x": tokens})
    start = reference_outputs(model(1, 7), {"x": tokens[:, :7]})
    cache = {f"past_{kind}_{i}": start[1 + 2 * i + k] for i in range(2) for k, kind in enumerate(("key", "value"))}
    feeds = {"x": tokens[:, 7:], **{name: value.astype(np.float32) for name, value in cache.items()}}
    last = reference_outputs(model(1, 1, past=7), feeds)
    assert relative_error(last[0][:, 0], whole[0][:, 7]) < 1e-6
