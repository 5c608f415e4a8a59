"""Turns on each fault that the sources declare (support/mutation.h) in turn, and fails unless its tests find it.

A fault that no test executes counts as missed. The tests must pass with no fault on.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import build
from .setup import ROOT

DECLARATION = re.compile(r'^LATHE_FAULT\(\s*(\w+)\s*,\s*"([^"]*)"\s*,\s*((?:"[^"]*"\s*)+)\);', re.MULTILINE)
TIMEOUT = 600


def read_faults(text):
    """Name, tests and meaning of each fault that a source declares."""
    found = DECLARATION.findall(text)
    return [(name, tests.split(), "".join(re.findall('"([^"]*)"', words))) for name, tests, words in found]


def faults_of_tree():
    sources = sorted(path for path in (ROOT / "src").rglob("*.cpp") if not path.stem.endswith("_test"))
    return [fault for path in sources for fault in read_faults(path.read_text())]


def run_test(binary, fault, log, timeout=TIMEOUT):
    """Whether the test binary passed with the fault on (None: no fault)."""
    variables = dict(os.environ, LATHE_FAULT=fault or "", LATHE_FAULT_LOG=str(log) if fault else "")
    command = [str(binary), "--gtest_brief=1", "--gtest_fail_fast"]
    try:
        return subprocess.run(command, env=variables, cwd=binary.parent.parent, capture_output=True,
                              timeout=timeout).returncode == 0  # fmt: skip
    except subprocess.TimeoutExpired:
        return False


def verdict(fault, binaries, timeout=TIMEOUT):
    """'found', or 'missed: …' with the reason."""
    absent = [binary.name for binary in binaries if not binary.exists()]
    if absent:
        return f"missed: there is no {' '.join(absent)}"
    anywhere = False
    with tempfile.TemporaryDirectory() as folder:
        for binary in binaries:
            log = Path(folder) / binary.name
            passed = run_test(binary, fault, log, timeout)
            executed = log.exists() and fault in log.read_text().split()
            if executed and not passed:
                return "found"
            anywhere = anywhere or executed
    return "missed: its tests pass with it" if anywhere else "missed: no test executes it"


def timed(function, *arguments):
    start = time.monotonic()
    return function(*arguments), time.monotonic() - start


def judge(rows, folder):
    """Prints a line for each row and returns how many are missed; binaries are those of `folder`."""
    start = time.monotonic()
    missed = 0
    tests_of = sorted({test for _, tests, _ in rows for test in tests})
    binaries = [folder / name for name in tests_of if (folder / name).exists()]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
        for binary, passed in zip(binaries, workers.map(lambda path: run_test(path, None, None), binaries)):
            if not passed:
                print(f"  {binary.name}: fails with no fault on", flush=True)
                missed += 1
        verdicts = workers.map(lambda row: timed(verdict, row[0], [folder / name for name in row[1]]), rows)
        for (fault, _, meaning), (result, seconds) in zip(rows, verdicts):
            missed += result != "found"
            print(f"  {fault:<44} {result:<30} {seconds:5.1f} s  {meaning}", flush=True)
    print(f"seeded faults: {len(rows)} faults, {missed} missed, {time.monotonic() - start:.0f} s")
    return missed


def main(names):
    rows = [row for row in faults_of_tree() if not names or row[0] in names]
    if rows:
        build.configure("faults")
        targets = build.test_targets("faults") & {test for _, tests, _ in rows for test in tests}
        build.build("faults", sorted(targets))
    return judge(rows, build.folder("faults") / "bin")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) != 0)
