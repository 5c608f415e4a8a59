"""The one criterion of accuracy: at most twice ONNX Runtime's own error against float64, plus 1e-6."""

import numpy as np

from tests.models import input_for
from tests.support.backends import BACKENDS
from tests.support.float64 import reference_outputs, relative_error

SLACK = 1e-6


SEEDS = (11, 12)


def one_by_one(model, all_feeds):
    return [reference_outputs(model, feeds) for feeds in all_feeds]


def assert_accurate(backend, model, batch, references=one_by_one, describe=""):
    """Runs two random inputs; both must be accurate, and the answers must differ by a tenth of the largest element.

    `batch` is a number, or several for a model whose batch is symbolic: it is compiled once.
    """
    compiled, session = (BACKENDS[name](model) for name in (backend, "onnxruntime"))
    for count in [batch] if isinstance(batch, int) else batch:
        answers = []
        all_feeds = [input_for(model, count, seed) for seed in SEEDS]
        for seed, feeds, (wanted,) in zip(SEEDS, all_feeds, references(model, all_feeds), strict=True):
            (theirs,), (ours,) = session(feeds), compiled(feeds)
            assert ours.dtype == np.float32
            bound = 2 * relative_error(theirs, wanted) + SLACK
            error = relative_error(ours, wanted)
            print(f"{describe} batch {count} seed {seed}: error {error:.3g}, bound {bound:.3g}")
            assert error <= bound, f"batch {count}: error {error:.3g}, at most {bound:.3g} allowed"
            answers.append(ours)
        difference = np.abs(answers[0] - answers[1]).max() / max(np.abs(y).max() for y in answers)
        assert difference >= 0.1, f"two random inputs give nearly the same output ({difference:.3g} of the largest)"
