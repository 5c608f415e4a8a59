"""Worker process: evaluates models in float64 with PyTorch. A request is {"model": path, "feeds": [{name: array}]}.

A process of its own because PyTorch may live in another virtual environment than the compiler; one for many models,
because importing it takes seconds. It has one thread: several wait for one another by spinning, which on a busy
machine takes ten times as long.
"""

import onnx
import torch

from tests.support.torch_model import evaluate
from tests.support.worker import serve


def handle(request):
    """The outputs for each of the feeds."""
    return evaluate(onnx.load(request["model"]), request["feeds"])


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve(handle)
