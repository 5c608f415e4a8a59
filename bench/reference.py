"""Worker process: the outputs of models in float64, by PyTorch. A request is {"path", "feeds": [{name: array}]}."""

import onnx

from tests.support.torch_model import evaluate
from tests.support.worker import serve

if __name__ == "__main__":
    serve(lambda request: evaluate(onnx.load(request["path"]), request["feeds"]))
