"""The stubs that editors and type checkers read are Python, and name what is made while modules are imported."""

import ast
from pathlib import Path

import lathe
import pytest

from scripts import stubs

WANTED = {
    "lathe.tir": {"For", "BufferStore", "Schedule", "PrimFunc"},
    "lathe.tir.schedule.primitives": {"Schedule", "ScheduleError"},
    "lathe.script.tir": {"exp", "float32", "prim_func", "grid"},
    "lathe._lathe": {"IRModule", "Executable", "Node"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("stubs")
    stubs.write(path, Path(lathe.__file__).parent)
    return path


def names_of(tree):
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


@pytest.mark.parametrize("module", sorted(stubs.MODULES))
def test_a_stub_is_python_and_names_what_is_there(folder, module):
    tree = ast.parse((folder / stubs.MODULES[module]).read_text())
    assert WANTED.get(module, set()) <= set(names_of(tree))


@pytest.mark.parametrize("module", sorted(stubs.MODULES))
def test_a_stub_defines_every_name_that_it_uses(folder, module):
    text = (folder / stubs.MODULES[module]).read_text()
    assert stubs.undefined(text) == []
    assert "import __getattr__" not in text and "__hash__ as" not in text
    assert not [line for line in text.splitlines() if "._" in line.replace("lathe._lathe", "")]


def test_types_of_programs_are_classes(folder):
    text = (folder / stubs.MODULES["lathe.script.tir"]).read_text()
    assert "class float32(_Any):" in text and "ScalarType = ..." not in text


def test_what_a_stub_does_not_define_is_found():
    assert stubs.undefined("a: Missing = ...\nclass B(Other):\n    c = hidden\n") == ["Missing", "Other", "hidden"]
    assert stubs.undefined(stubs.completed("a: Missing = ...\nclass B(Other):\n    c = hidden\n")) == []


def test_primitives_have_their_signatures(folder):
    tree = ast.parse((folder / stubs.MODULES["lathe.tir.schedule.primitives"]).read_text())
    schedule = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Schedule")
    split = next(node for node in schedule.body if isinstance(node, ast.FunctionDef) and node.name == "split")
    assert [a.arg for a in split.args.args][:3] == ["self", "loop", "factors"]
