"""Worker process: compiles models to saved artifacts. A request is {"model": path, "artifact": path}.

The answer says whether the artifact has nothing to compute: no kernel, compiled or of the runtime, and no function.
"""

import shutil
import sys
from pathlib import Path

from tests.support.worker import serve


def compile_lathe(request):
    import lathe

    compiled = lathe.compile(request["model"], **request.get("options", {}))
    compiled.save(request["artifact"])
    listing = f"{request['artifact']}.program"
    compiled.save(listing, "program")
    return " call_" not in Path(listing).read_text()


def compile_onnxruntime(request):
    """Stands in when the harness itself is validated: the artifact is a copy of the model."""
    shutil.copyfile(request["model"], request["artifact"])
    return False


if __name__ == "__main__":
    serve({"lathe": compile_lathe, "onnxruntime": compile_onnxruntime}[sys.argv[1]])
