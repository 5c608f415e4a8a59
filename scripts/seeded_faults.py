"""Turns on each row of src/support/faults.def in turn, and fails unless the row's tests find it.

A fault that no test executes counts as missed. The tests must pass with no fault on.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import build
from .setup import ROOT

TABLE = ROOT / "src" / "support" / "faults.def"
ROW = re.compile(r'^LATHE_FAULT\(\s*(\w+)\s*,\s*"([^"]*)"\s*,\s*"([^"]*)"\s*\)', re.MULTILINE)
TIMEOUT = 600


def read_rows(text):
    return [(name, tests.split(), meaning) for name, tests, meaning in ROW.findall(text)]


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
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "executed"
        passed = [run_test(binary, fault, log, timeout) for binary in binaries]
        executed = log.exists() and fault in log.read_text().split()
    if not executed:
        return "missed: no test executes it"
    return "missed: its tests pass with it" if all(passed) else "found"


def judge(rows, folder):
    """Prints a line for each row and returns how many are missed; binaries are those of `folder`."""
    missed = 0
    for name in sorted({test for _, tests, _ in rows for test in tests}):
        if (folder / name).exists() and not run_test(folder / name, None, None):
            print(f"  {name}: fails with no fault on", flush=True)
            missed += 1
    for fault, tests, meaning in rows:
        start = time.monotonic()
        result = verdict(fault, [folder / name for name in tests])
        missed += result != "found"
        print(f"  {fault:<32} {result:<28} {time.monotonic() - start:5.1f} s  {meaning}", flush=True)
    print(f"seeded faults: {len(rows)} rows, {missed} missed")
    return missed


def main(names):
    rows = [row for row in read_rows(TABLE.read_text()) if not names or row[0] in names]
    if rows:
        build.configure("faults")
        targets = build.test_targets("faults") & {test for _, tests, _ in rows for test in tests}
        build.build("faults", sorted(targets))
    return judge(rows, build.folder("faults") / "bin")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) != 0)
