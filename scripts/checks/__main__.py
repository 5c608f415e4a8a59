"""Runs the checks, or those named: python -m scripts.checks [layers sizes …]."""

import importlib
import sys
import time
from pathlib import Path

from .tree import Tree

CHECKS = [
    "clang_format",
    "layers",
    "include_cycles",
    "sizes",
    "pass_tests",
    "seeded_faults",
    "heavy_headers",
    "environment",
    "diagnostic_codes",
    "words",
]


def run(names, root):
    tree, failed = Tree(root), 0
    for name in names:
        start = time.monotonic()
        problems = importlib.import_module(f"scripts.checks.{name}").check(tree)
        for problem in problems:
            print(f"  {problem}")
        verdict = f"{len(problems)} problems" if problems else "ok"
        print(f"check {name}: {verdict}, {time.monotonic() - start:.1f} s")
        failed += bool(problems)
    print(f"checks: {len(names) - failed} of {len(names)} passed", flush=True)
    return failed == 0


if __name__ == "__main__":
    sys.exit(not run(sys.argv[1:] or CHECKS, Path(__file__).resolve().parents[2]))
