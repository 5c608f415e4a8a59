"""Every pass has a test of its own name beside it.

A pass is a .cpp under a folder `passes`, or under src/graph or src/lower, that defines the function it is named after.
"""

import re

from .tree import is_test

ROOMS_OF_PASSES = ("graph", "lower")


def check(tree):
    names = {path.with_suffix("") for path in tree.files}
    problems = []
    for path in tree.sources:
        holds_passes = "passes" in path.parts[:-1] or path.parts[1] in ROOMS_OF_PASSES
        if path.suffix != ".cpp" or is_test(path) or not holds_passes:
            continue
        if re.search(rf"^[A-Za-z_][\w:<>,&* ]*\b{path.stem}\(", tree.text(path), re.MULTILINE):
            if path.with_name(path.stem + "_test") not in names:
                problems.append(f"{path}: a pass without a test: {path.stem}_test.cpp is missing")
    return problems
