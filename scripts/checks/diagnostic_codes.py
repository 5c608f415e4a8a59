"""Every diagnostic code that a folder's codes.h declares, and every failure of the C interface, is named by a test.

A test names a code by its text ("onnx-cycle"), or by its constant: `onnx::codes::cycle`, or `codes::cycle` in the
folder of that codes.h.
"""

import re

from .tree import is_test

INTERFACE = "src/abi/lathe.h"
NAMESPACE = re.compile(r"^namespace (?:\w+::)*(\w+)::codes? \{", re.MULTILINE)
CODE = re.compile(r'\bCode (\w+)\{"([\w-]+)"\}')
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


def check(tree):
    named = named_by_tests(tree)
    problems = []
    for path in tree.sources:
        if path.name != "codes.h":
            continue
        text = tree.text(path)
        namespace = NAMESPACE.search(text)
        for constant, code in CODE.findall(text):
            names = {code, f"{path.parent}/{constant}"}
            if namespace:
                names |= {f"{namespace[1]}::{word}::{constant}" for word in ("code", "codes")}
            if not names & named:
                problems.append(f"{path}: no test expects {code}")
    problems += [f"{INTERFACE}: no test expects {name}" for name in failures_of(tree) if name not in named]
    return problems
