"""Runs rows of parts one after the other, times each, and remembers what passed so that a run can be taken up again."""

import hashlib
import json
import subprocess
import time

from .setup import ROOT

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


def read_state(key):
    state = json.loads(STATE.read_text()) if STATE.exists() else {}
    return state if state.get("tree") == key else {"tree": key, "passed": {}}


def run_parts(parts, resume=False):
    """Every part, to the end; true when all passed. With `resume`, those that passed on this very tree are not run."""
    state = read_state(tree_key()) if resume else {"passed": {}}
    results, start = [], time.monotonic()
    for part in parts:
        if part.name in state["passed"]:
            results.append((part, "passed before", state["passed"][part.name]))
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
        if verdict == "passed" and resume:
            state["passed"][part.name] = seconds
            STATE.parent.mkdir(exist_ok=True)
            STATE.write_text(json.dumps(state))
        if verdict == "FAILED" and part.name == "build":
            break
    failed = [part.name for part, verdict, _ in results if verdict == "FAILED"]
    print("== summary")
    for part, verdict, seconds in results:
        print(f"  {part.name:<14} {verdict:<14} {seconds:7.1f} s")
    total = time.monotonic() - start
    print(f"  {len(results) - len(failed)} of {len(parts)} parts passed in {total:.1f} s")
    return not failed and len(results) == len(parts)
