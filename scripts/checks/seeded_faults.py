"""Every pass of the pipeline's page has a seeded fault, and every row of src/support/faults.def is one.

A fault belongs to the pass whose row, or whose function, its name begins with. What follows the passes (the memory
plan, the register program, each code generator) has faults too.
"""

import re
from pathlib import Path

from ..seeded_faults import read_rows
from .tree import is_test

PAGE = Path("src/driver/pipeline.cpp")
FAULTS = Path("src/support/faults.def")
ROW = re.compile(r'^\s*\{"(\w+)",\s*(?:\w+\()?(?:\w+::)*(\w+)', re.MULTILINE)
FLIP = re.compile(r'\bflip\("(\w+)"\)')
AFTER_THE_PASSES = ("plan_memory", "write_program", "llvm")


def check(tree):
    if PAGE not in tree.files:
        return []
    names = [name for name, _, _ in read_rows(tree.text(FAULTS))]
    flipped = {name for path in tree.sources if not is_test(path) for name in FLIP.findall(tree.text(path))}
    wanted = ROW.findall(tree.text(PAGE)) + [(name, name) for name in AFTER_THE_PASSES]
    problems = [
        f"{PAGE}: the pass {row} has no seeded fault: no name in {FAULTS} begins with it"
        for row, function in wanted
        if not any(name == start or name.startswith(start + "_") for name in names for start in (row, function))
    ]
    problems += [f"{FAULTS}: nothing flips {name}" for name in names if name not in flipped]
    problems += [f"{FAULTS}: {name} has two rows" for name in sorted(set(names)) if names.count(name) > 1]
    return problems
