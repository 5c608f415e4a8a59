"""Every pass has a test of its own name beside it, and programs before and after it in a text of that name.

A pass is a .cpp under a folder `passes`, or under src/graph or src/lower, that defines the function it is named after;
those over modules have the text.
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
            over_modules = re.search(rf"\b{path.stem}\((ir::)?IRModule\b", tree.text(path))
            if over_modules and path.with_name(path.stem + "_test.txt") not in tree.files:
                problems.append(f"{path}: a pass without examples: {path.stem}_test.txt is missing")
    return problems
