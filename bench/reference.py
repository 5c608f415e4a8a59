"""Worker process: the outputs of models in float64. A request is {"path", "feeds": [{name: array}]}; the answer has a
list of outputs for each of the feeds.

PyTorch computes them; what it has no row for, the evaluator of the `onnx` package, which takes longer.
"""

import onnx

from tests.support.float64 import reference_outputs
from tests.support.worker import serve


def evaluate(request):
    model = onnx.load(request["path"])
    try:
        from tests.support import torch_model

        return torch_model.evaluate(model, request["feeds"])
    except Exception:  # noqa: BLE001 (whatever stops it, the other may go on)
        return [reference_outputs(model, feeds) for feeds in request["feeds"]]


if __name__ == "__main__":
    serve(evaluate)
