"""Worker process: compiles models to saved artifacts. A request is {"model": path, "artifact": path}."""

import shutil
import sys

from tests.support.worker import serve


def compile_lathe(request):
    import lathe

    lathe.compile(request["model"], **request.get("options", {})).save(request["artifact"])


def compile_onnxruntime(request):
    """Stands in when the harness itself is validated: the artifact is a copy of the model."""
    shutil.copyfile(request["model"], request["artifact"])


if __name__ == "__main__":
    serve({"lathe": compile_lathe, "onnxruntime": compile_onnxruntime}[sys.argv[1]])
