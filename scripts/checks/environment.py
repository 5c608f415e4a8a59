"""Environment variables are read in two files: one of the compiler, one of the runtime, both from abi/knobs.def."""

import re

from .tree import is_test

READERS = ("src/support/environment.cpp", "src/runtime/cpu/environment.cpp")
READ = re.compile(r"\b(secure_)?getenv\s*\(|\benviron\b\s*(\[|;|!=)")


def check(tree):
    problems = []
    for path in tree.files:
        if path.suffix not in {".h", ".cpp", ".c"} or is_test(path) or str(path) in READERS:
            continue
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            if READ.search(line.split("//")[0]):
                problems.append(f"{path}:{number}: reads the environment; only {' and '.join(READERS)} do")
    return problems
