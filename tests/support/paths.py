"""Where the checkout, the build folder, the `lathe` command and the Python package are."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("LATHE_BUILD_DIR", ROOT / "build"))
LATHE = BUILD / "bin" / "lathe"
PACKAGE = ROOT / "python" / "lathe"
RUNTIME_CTYPES = PACKAGE / "runtime_ctypes.py"
# Under the address sanitizer (./dev check --full sanitized-python) memory and time are not what a user sees.
SANITIZED = "ASAN_OPTIONS" in os.environ
DIGITS_MODEL = ROOT / "examples" / "03-digits" / "digits.onnx"


def python_path():
    """Folders under which `import lathe` works, the build folder's before the sources'."""
    return [str(folder) for folder in (BUILD / "python", ROOT / "python") if folder.is_dir()]


def environment(**changes):
    """The environment for a child process; a value None removes the variable."""
    result = dict(os.environ)
    folders = [*python_path(), str(ROOT)]
    if result.get("PYTHONPATH"):
        folders.append(result["PYTHONPATH"])
    result["PYTHONPATH"] = os.pathsep.join(folders)
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = str(value)
    return result


def make_importable():
    """Lets this process import `lathe` from the build folder, unless an installed package is there already."""
    for folder in reversed(python_path()):
        if folder not in sys.path:
            sys.path.insert(0, folder)
