"""Diagnostic codes are declared in codes.h alone; each, and every failure of the C interface, is named by a test.

A test names a code by its text ("onnx-cycle"), or by its constant: `onnx::codes::cycle`, or `codes::cycle` in the
folder of that codes.h.
"""

import re

from .tree import is_test

INTERFACE = "src/abi/lathe.h"
NAMESPACE = re.compile(r"^namespace (?:\w+::)*(\w+)::codes? \{", re.MULTILINE)
CODE = re.compile(r'\bCode (\w+)\{"([\w-]+)"\}')
INLINE = re.compile(r'(?:\.code = |\bCode(?: \w+)?)\{"([\w-]+)"')
FAILURE = re.compile(r"^\s*(LATHE_[A-Z_]+) = [1-9]\d*\b", re.MULTILINE)


def named_in(text, folders):
    """What a test names: codes by their text, constants with their namespace, failures of the C interface."""
    named = set(re.findall(r"(?<![\w-])[a-z]+(?:-[a-z0-9]+)+(?![\w-])|\bLATHE_[A-Z_]+\b|\b\w+::codes?::\w+", text))
    near = re.findall(r"(?<!::)\bcodes?::(\w+)", text)
    return named | {f"{folder}/{constant}" for folder in folders for constant in near}


def named_by_tests(tree):
    named = set()
    for path in tree.files:
        is_one = path.suffix == ".cpp" and is_test(path) or path.suffix == ".py" and path.name.startswith("test_")
        if is_one and path.parts[0] in ("src", "tests", "python", "tools"):
            named |= named_in(tree.text(path), path.parents)
    return named


def failures_of(tree):
    """The codes of LatheError, declared first in the C interface."""
    text = tree.text(INTERFACE) if (tree.root / INTERFACE).exists() else ""
    return FAILURE.findall(text[text.find("LATHE_OK") :].split("}")[0])


def declared_in(path, text):
    """The codes of one codes.h, each with every way a test may name it."""
    namespace = NAMESPACE.search(text)
    for constant, code in CODE.findall(text):
        spaces = [f"{namespace[1]}::{word}::{constant}" for word in ("code", "codes")] if namespace else []
        yield code, {code, f"{path.parent}/{constant}", *spaces}


def check(tree):
    named = named_by_tests(tree)
    problems = []
    for path in tree.files:
        if path.suffix not in (".cpp", ".h") or is_test(path) or "testing" in path.parts:
            continue
        if path.name == "codes.h":
            declared = declared_in(path, tree.text(path))
            problems += [f"{path}: no test expects {code}" for code, names in declared if not names & named]
        else:
            inline = INLINE.findall(tree.text(path))
            problems += [f"{path}: the code {code} belongs in its folder's codes.h" for code in inline]
    problems += [f"{INTERFACE}: no test expects {name}" for name in failures_of(tree) if name not in named]
    return problems
