"""Worker process: runs saved artifacts with the runtime alone. A request is {"artifact": path, "feeds": {name: array}}.

The compiler is not there: `assert_without_compiler` is checked after every run.
`onnxruntime` in place of `lathe` as the backend validates the harness, with model files as artifacts.
"""

import sys

from tests.support.artifacts import assert_without_compiler, load_runtime
from tests.support.worker import serve


def run_lathe(request):
    outputs = load_runtime().Artifact(request["artifact"]).run(request["feeds"])
    assert_without_compiler()
    return list(outputs)


def run_onnxruntime(request):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(request["artifact"], options, providers=["CPUExecutionProvider"])
    return session.run(None, request["feeds"])


if __name__ == "__main__":
    serve({"lathe": run_lathe, "onnxruntime": run_onnxruntime}[sys.argv[1]])
