"""The one criterion of accuracy: at most twice ONNX Runtime's own error against float64, plus 1e-6."""

import numpy as np

from tests.models import input_for
from tests.support.backends import run_model
from tests.support.float64 import reference_outputs, relative_error

SLACK = 1e-6


def assert_accurate(backend, model, batch, reference=reference_outputs, describe=""):
    """Runs two random inputs; both must be accurate, and the answers must differ by a tenth of the largest element."""
    answers = []
    for seed in (11, 12):
        feeds = input_for(model, batch, seed)
        (wanted,) = reference(model, feeds)
        (theirs,) = run_model("onnxruntime", model, feeds)
        (ours,) = run_model(backend, model, feeds)
        assert ours.dtype == np.float32
        bound = 2 * relative_error(theirs, wanted) + SLACK
        error = relative_error(ours, wanted)
        print(f"{describe} batch {batch} seed {seed}: error {error:.3g}, bound {bound:.3g}")
        assert error <= bound, f"error {error:.3g}, at most {bound:.3g} allowed"
        answers.append(ours)
    difference = np.abs(answers[0] - answers[1]).max() / max(np.abs(y).max() for y in answers)
    assert difference >= 0.1, f"two random inputs give nearly the same output ({difference:.3g} of the largest)"
