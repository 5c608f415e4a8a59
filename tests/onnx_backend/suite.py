"""Runs cases: compiled and saved by one process, run from the saved artifact by another that has no compiler."""

import json
import tempfile
import threading
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.onnx_backend.cases import compare
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


def run_case(case, compiler, runner, folder, timeout):
    started = time.monotonic()
    artifact = folder / f"{case.kind}-{case.name}.so"

    def result(state, detail=""):
        seconds = round(time.monotonic() - started, 3)
        return Result(case.name, case.kind, case.operator, case.operators, state, detail[:500], seconds)

    try:
        said, value = compiler.ask({"model": str(case.model_path), "artifact": str(artifact)}, timeout)
        if said == "error":
            return result("compile", value)
        if not artifact.exists():
            return result("compile", "no artifact was written")
        sets = 0
        for feeds, expected in case.data_sets():
            sets += 1
            said, value = runner.ask({"artifact": str(artifact), "feeds": feeds}, timeout)
            if said == "error":
                return result("run", value)
            if difference := compare(case, value, expected):
                return result("wrong", difference)
        return result("pass") if sets else result("run", "the case has no data")
    except WorkerFailed as failure:
        return result("crash", str(failure))
    except Exception as error:  # noqa: BLE001 (a case whose data cannot be read counts as failed, not as the end)
        return result("run", f"{type(error).__name__}: {error}")
    finally:
        artifact.unlink(missing_ok=True)


def run_suite(cases, backend="lathe", processes=2, timeout=60.0, report=None):
    """Runs the cases by `processes` pairs of workers; returns results in the order of the cases."""
    results, waiting, lock = {}, list(enumerate(cases))[::-1], threading.Lock()
    env = paths.environment(LATHE_NUM_THREADS="1", OMP_NUM_THREADS="1")

    def work(folder):
        with Worker("tests.support.compile_worker", backend, env=env) as compiler, \
             Worker("tests.support.artifact_worker", backend, env=env) as runner:  # fmt: skip
            while True:
                with lock:
                    if not waiting:
                        return
                    index, case = waiting.pop()
                outcome = run_case(case, compiler, runner, folder, timeout)
                case.__dict__.pop("model", None)
                with lock:
                    results[index] = outcome
                    if report:
                        report(outcome, len(results), len(cases))

    with tempfile.TemporaryDirectory() as folder:
        threads = [threading.Thread(target=work, args=(Path(folder),)) for _ in range(processes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return [results[index] for index in range(len(cases))]


def summary(results):
    states = Counter(result.state for result in results)
    lines = [f"{states['pass']} of {len(results)} cases pass"]
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


def write_report(results, folder=paths.BUILD):
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "passed": sum(r.state == "pass" for r in results),
        "total": len(results),
        "cases": [asdict(r) for r in results],
    }
    (folder / "onnx-backend.json").write_text(json.dumps(content, indent=1) + "\n")
    (folder / "onnx-backend.txt").write_text(summary(results) + "\n\n" + failures_by_operator(results) + "\n")
    return folder / "onnx-backend.json"
