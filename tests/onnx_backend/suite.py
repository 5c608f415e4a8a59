"""Runs cases: compiled and saved by one process, run from the saved artifact by another that has no compiler.

Both processes serve one case after another; one that dies or is given up is replaced, at the cost of its case alone.
"""

import json
import shutil
import tempfile
import threading
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.onnx_backend.cases import compare
from tests.onnx_backend.modes import variants
from tests.support import paths
from tests.support.worker import Worker, WorkerFailed

STATES = ("pass", "compile", "run", "wrong", "crash")


@dataclass
class Result:
    name: str
    kind: str
    operator: str
    operators: list
    state: (
        str  # one of STATES: passed, refused by the compiler, failed in the runtime, wrong output, crash or time limit
    )
    detail: str
    seconds: float
    folded: bool = False  # the artifact has nothing left to compute


def run_case(case, mode, compiler, runner, folder, timeout):
    started = time.monotonic()
    artifact = folder / f"{case.kind}-{case.name}.so"
    folded = []

    def result(state, detail=""):
        seconds = round(time.monotonic() - started, 3)
        nothing_left = bool(folded) and all(folded)
        return Result(case.name, case.kind, case.operator, case.operators, state, detail[:500], seconds, nothing_left)

    try:
        for variant in variants(case, mode, folder):
            said, value = compiler.ask({"model": str(variant.model_path), "artifact": str(artifact)}, timeout)
            if said == "error":
                return result("compile", value)
            if not artifact.exists():
                return result("compile", "no artifact was written")
            folded.append(value)
            for feeds, expected in variant.data:
                said, value = runner.ask({"artifact": str(artifact), "feeds": feeds}, timeout)
                if said == "error":
                    return result("run", value)
                if difference := compare(case, value, expected):
                    return result("wrong", difference)
            artifact.unlink()
        return result("pass") if folded else result("run", "the case has no data")
    except WorkerFailed as failure:
        return result("crash", str(failure))
    except Exception as error:  # noqa: BLE001 (a case whose data cannot be read counts as failed, not as the end)
        return result("run", f"{type(error).__name__}: {error}")
    finally:
        for left in folder.glob(f"{case.kind}-{case.name}*"):
            if left.is_dir():  # of a compiler that was ended while it wrote
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink()


def over_cases(cases, task, backend="lathe", processes=2, report=None):
    """What `task(case, compiler, runner, folder)` makes of each case, in their order, by `processes` pairs of workers.

    `report(outcome, done, total)` is called after each.
    """
    outcomes, waiting, lock = {}, list(enumerate(cases))[::-1], threading.Lock()

    def work(folder):
        folder.mkdir()
        env = paths.environment(LATHE_NUM_THREADS="1", OMP_NUM_THREADS="1", LATHE_REPRODUCER_DIR=str(folder))
        with Worker("tests.support.compile_worker", backend, env=env) as compiler, \
             Worker("tests.support.artifact_worker", backend, env=env) as runner:  # fmt: skip
            while True:
                with lock:
                    if not waiting:
                        return
                    index, case = waiting.pop()
                outcome = task(case, compiler, runner, folder)
                case.__dict__.pop("model", None)
                with lock:
                    outcomes[index] = outcome
                    if report:
                        report(outcome, len(outcomes), len(cases))

    with tempfile.TemporaryDirectory() as folder:
        threads = [threading.Thread(target=work, args=(Path(folder) / str(i),)) for i in range(processes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return [outcomes[index] for index in range(len(cases))]


def run_suite(cases, backend="lathe", processes=2, timeout=60.0, report=None, mode="static"):
    """A Result for each case, in their order."""

    def task(case, compiler, runner, folder):
        return run_case(case, mode, compiler, runner, folder, timeout)

    return over_cases(cases, task, backend, processes, report)


def summary(results):
    states = Counter(result.state for result in results)
    folded = sum(result.state == "pass" and result.folded for result in results)
    of_them = f", {folded} of them folded to nothing" if folded else ""
    lines = [f"{states['pass']} of {len(results)} cases pass{of_them}"]
    lines += [f"  {count:5d} {state}" for state, count in states.most_common() if state != "pass"]
    for kind in dict.fromkeys(result.kind for result in results):
        chosen = [result for result in results if result.kind == kind]
        lines.append(f"  {kind}: {sum(r.state == 'pass' for r in chosen)} of {len(chosen)}")
    return "\n".join(lines)


def failures_by_operator(results):
    groups = defaultdict(list)
    for result in results:
        if result.state != "pass":
            groups[result.operator].append(result)
    lines = []
    for operator, group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        total = sum(result.operator == operator for result in results)
        lines.append(f"{operator}: {len(group)} of {total} fail")
        lines += [f"  {r.name} [{r.state}] {r.detail.splitlines()[0][:160] if r.detail else ''}" for r in group]
    return "\n".join(lines)


def operator_table(results):
    """A line for each operator: cases, those that pass, those of them folded to nothing, and failures by state."""
    rows = [("operator", "cases", *("pass", "folded"), *STATES[1:])]
    groups = defaultdict(list)
    for result in results:
        groups[result.operator].append(result)
    for operator, group in sorted(groups.items()):
        states = Counter(result.state for result in group)
        folded = sum(result.state == "pass" and result.folded for result in group)
        counts = [len(group), states["pass"], folded, *(states[state] for state in STATES[1:])]
        rows.append((operator, *(str(count) if count else "-" for count in counts)))
    width = max(len(row[0]) for row in rows)
    return "\n".join(f"{row[0]:{width}}" + "".join(f"{cell:>9}" for cell in row[1:]) for row in rows)


def write_report(results, mode="static", seconds=0.0, folder=paths.BUILD):
    folder.mkdir(parents=True, exist_ok=True)
    passed = [r for r in results if r.state == "pass"]
    content = {
        "mode": mode,
        "passed": len(passed),
        "folded": sum(r.folded for r in passed),
        "total": len(results),
        "seconds": round(seconds, 1),
        "cases": [asdict(r) for r in results],
    }
    file = folder / f"onnx-backend-{mode}.json"
    file.write_text(json.dumps(content, indent=1) + "\n")
    text = [summary(results), failures_by_operator(results), operator_table(results)]
    file.with_suffix(".txt").write_text("\n\n".join(text) + "\n")
    return file
