"""Runs rows of parts one after the other, times each, and remembers what passed so that a run can be taken up again.

What passed is remembered for one state: every file of the checkout, the packages that build and run it, the processor,
and Lathe's environment variables. With any of these changed, everything runs.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from .setup import APT_PACKAGES, ROOT

STATE = ROOT / "build" / "check-state.json"


def tree_key():
    """A hash over every file of the checkout that git tracks or would track."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout.split(b"\0")
    digest = hashlib.sha256()
    for name in sorted(set(names)):
        path = ROOT / name.decode()
        if name and path.is_file():
            digest.update(name + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def machine_key():
    """A hash over what else decides what a test does: installed packages, Python, the processor, the environment."""
    packages = subprocess.run(["dpkg-query", "-W", *APT_PACKAGES], capture_output=True, text=True).stdout
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    processor = sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
    variables = sorted(item for item in os.environ.items() if item[0].startswith(("LATHE_", "OMP_", "PYTEST_")))
    return hashlib.sha256(repr((packages, sys.version, processor, variables)).encode()).hexdigest()


def state_key():
    return f"{tree_key()} {machine_key()}"


def read_state(key):
    state = json.loads(STATE.read_text()) if STATE.exists() else {}
    return state if state.get("key") == key else {"key": key, "passed": {}}


def remember(part, seconds, key):
    """`seconds`: None where it failed. Nothing, when the tree was edited meanwhile: then nobody knows what it saw."""
    if state_key() != key:
        return
    state = read_state(key)
    state["passed"].pop(part.name, None)
    if seconds is not None:
        state["passed"][part.name] = seconds
    STATE.parent.mkdir(exist_ok=True)
    STATE.write_text(json.dumps(state))


def run_parts(parts, resume=False):
    """Every part, to the end; true when all passed. With `resume`, those that passed in this very state are not run."""
    key = state_key()
    passed = read_state(key)["passed"] if resume else {}
    results, start = [], time.monotonic()
    for part in parts:
        if part.name in passed and not part.always:
            results.append((part, "passed before", passed[part.name]))
            continue
        print(f"== {part.name}: {part.says}", flush=True)
        begin = time.monotonic()
        try:
            part.run()
            verdict = "passed"
        except (subprocess.CalledProcessError, OSError) as error:
            command = getattr(error, "cmd", None)
            print(f"{part.name}: {' '.join(map(str, command[:6])) + ' … failed' if command else error}", flush=True)
            verdict = "FAILED"
        seconds = time.monotonic() - begin
        results.append((part, verdict, seconds))
        remember(part, seconds if verdict == "passed" else None, key)
        if verdict == "FAILED" and part.name == "build":
            break
    failed = [part.name for part, verdict, _ in results if verdict == "FAILED"]
    print("== summary")
    for part, verdict, seconds in results:
        print(f"  {part.name:<14} {verdict:<14} {seconds:7.1f} s")
    total = time.monotonic() - start
    print(f"  {len(results) - len(failed)} of {len(parts)} parts passed in {total:.1f} s")
    return not failed and len(results) == len(parts)
