"""python -m scripts.stubs FOLDER PACKAGE: writes the type stubs of the modules whose names are made while they
are imported, for editors and type checkers; the build puts them beside the modules in the wheel."""

import ast
import builtins
import os
import re
import subprocess
import sys
from pathlib import Path

# Modules, and where their stubs lie in the package. Others are plain Python and need none.
MODULES = {
    "lathe._lathe": "_lathe.pyi",
    "lathe.ir.node": "ir/node.pyi",
    "lathe.tir": "tir/__init__.pyi",
    "lathe.tir.op": "tir/op.pyi",
    "lathe.tir.schedule.primitives": "tir/schedule/primitives.pyi",
    "lathe.te": "te/__init__.pyi",
    "lathe.tir.functor": "tir/functor.pyi",
    "lathe.tir.transform": "tir/transform.pyi",
    "lathe.script.tir": "script/tir.pyi",
    "lathe.topi": "topi/__init__.pyi",
    "lathe.topi.elementwise": "topi/elementwise.pyi",
    "lathe.script.ir_builder.tir": "script/ir_builder/tir.pyi",
}


# What type checkers take for a class: a type's name in the text of a program, called or as an annotation.
SCALAR = """class {0}(_Any):
    def __new__(cls, *values: _Any, **named: _Any) -> {0}: ...
"""


def _defined(body):
    """The names that statements define, those under conditions included."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((one.asname or one.name).split(".")[0] for one in node.names)
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))
        elif isinstance(node, ast.If):
            yield from _defined([*node.body, *node.orelse])


def undefined(text):
    """The names in annotations, bases and values that a stub does not define."""
    tree = ast.parse(text)
    known = {*vars(builtins), *_defined(tree.body)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            known.update(_defined(node.body))
    return sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - known)


def completed(text):
    """A stub with what its generator leaves open: names that the package keeps to itself are of any type, what
    refuses unknown names is none of the module's, the types of programs are classes."""
    text = re.sub(r"^from [\w.]+ import __getattr__ as __getattr__\n", "", text, flags=re.M)
    text = re.sub(r"^    __(getattr|hash)__ as __\1__,?\n", "", text, flags=re.M)
    text = re.sub(r"^from lathe\.compiler import _save as save\n", "", text, flags=re.M)
    text = re.sub(r"^    decorator as (\w+),\n((?:    .*\n)*\))", r"\2\n\1: _Any = ...", text, flags=re.M)
    text = re.sub(r"\blathe(?:\.\w+)*\._(?!lathe\b)\w+", "_Any", text)
    text = re.sub(r"^(\w+): ScalarType = \.\.\.\n", lambda found: SCALAR.format(found[1]), text, flags=re.M)
    text = "from typing import Any as _Any\n" + text
    for name in undefined(text):
        text = re.sub(rf"(?<![\w.]){name}\b", "_Any", text)
    return text


def write(folder, package):
    """Writes every stub, of the package where the build left it. What is on the path of this process stays there: pip
    builds with packages of its own."""
    sys.path.insert(0, str(Path(package).parent))
    for module, place in MODULES.items():
        path = Path(folder) / place
        path.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", module, "-o", str(path)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
        path.write_text(completed(path.read_text()))


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2])
