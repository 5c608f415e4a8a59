"""Every pass of the pipeline's page has a seeded fault, and each fault is declared once and flipped there.

A fault belongs to the pass whose row, or whose function, its name begins with. What follows the passes (the memory
plan, the register program, each code generator) has faults too.
"""

import re
from pathlib import Path

from ..seeded_faults import read_faults
from .tree import is_test

PAGE = Path("src/driver/pipeline.cpp")
ROW = re.compile(r'^\s*\{"(\w+)",\s*(?:\w+\()?(?:\w+::)*(\w+)', re.MULTILINE)
FLIP = re.compile(r"\bflip\((\w+)\)")
AFTER_THE_PASSES = ("plan_memory", "write_program", "llvm")


def check(tree):
    if PAGE not in tree.files:
        return []
    sources = [path for path in tree.sources if not is_test(path)]
    declared = [(name, path) for path in sources for name, _, _ in read_faults(tree.text(path))]
    names = [name for name, _ in declared]
    wanted = ROW.findall(tree.text(PAGE)) + [(name, name) for name in AFTER_THE_PASSES]
    problems = [
        f"{PAGE}: the pass {row} has no seeded fault: no LATHE_FAULT begins with it"
        for row, function in wanted
        if not any(name == start or name.startswith(start + "_") for name in names for start in (row, function))
    ]
    flipped = {path: set(FLIP.findall(tree.text(path))) for path in sources}
    problems += [f"{path}: nothing flips {name}" for name, path in declared if name not in flipped[path]]
    problems += [f"{path}: {name} is declared twice" for name, path in declared if names.count(name) > 1]
    return problems
