"""Every case as given with each pass switched off alone, and with all that may be: python -m tests.onnx_backend.passes

A case's passes are those that changed its program, for without any other it is compiled the same. Where the artifact
comes out the same without a pass, byte by byte, there is nothing to run; else its outputs are compared with those of
the whole pipeline, within the suite's tolerances.
"""

import argparse
import shutil
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.onnx_backend.cases import all_cases, compare
from tests.onnx_backend.suite import over_cases
from tests.support.worker import WorkerFailed

# Passes that give programs the form that those after them take: a case without one may be refused.
LOWERING = {
    "expand_composites", "legalize", "inline_calls", "lower_init", "convert_blocks", "flatten_buffers",
    "join_axis_groups", "vectorize_loops", "unroll_loops", "legalize_registers", "lower_intrinsics",
    "legalize_dtypes",
}  # fmt: skip
ALL = "all that may be"
# What became of a case without a pass.
STATES = ("same code", "same outputs", "refused", "differs")
TIMEOUT = 120.0  # seconds


@dataclass
class Without:
    """A case's outcomes by the passes that were off; none where it does not run with all of them on."""

    name: str
    states: dict = field(default_factory=dict)  # pass -> one of STATES
    details: dict = field(default_factory=dict)  # pass -> what differs, or the refusal


class CasePasses:
    def __init__(self, case, compiler, runner, folder):
        self.case, self.compiler, self.runner, self.folder = case, compiler, runner, folder

    def compile(self, artifact, **options):
        """The artifact's bytes; a RuntimeError where it is refused."""
        request = {"model": str(self.case.model_path), "artifact": str(artifact), "options": options}
        said, value = self.compiler.ask(request, TIMEOUT)
        if said == "error":
            raise RuntimeError(value)
        return artifact.read_bytes()

    def outputs(self, artifact):
        found = []
        for feeds, _ in self.case.data_sets():
            said, value = self.runner.ask({"artifact": str(artifact), "feeds": feeds}, TIMEOUT)
            if said == "error":
                raise RuntimeError(value)
            found.append(value)
        return found

    def run(self):
        outcome = Without(self.case.name)
        whole, dumps = self.folder / "whole.so", self.folder / "dumps"
        shutil.rmtree(dumps, ignore_errors=True)
        try:
            code = self.compile(whole, dump_ir=str(dumps))
            expected = self.outputs(whole)
        except (RuntimeError, WorkerFailed):
            return outcome
        changed = [file.stem.split("_", 1)[1] for file in sorted(dumps.glob("*"))] if dumps.is_dir() else []
        changed.append("compile_program")  # changes the artifact alone
        optional = [name for name in changed if name not in LOWERING]
        for name, off in [*((name, [name]) for name in changed), (ALL, optional)]:
            outcome.states[name], outcome.details[name] = self.without(off, code, expected)
        return outcome

    def without(self, off, code, expected):
        artifact = self.folder / "without.so"
        try:
            if self.compile(artifact, disabled_passes=off) == code:
                return "same code", ""
        except RuntimeError as refusal:
            return "refused", str(refusal)
        except WorkerFailed as failure:
            return "differs", str(failure)
        try:
            found = self.outputs(artifact)
        except (RuntimeError, WorkerFailed) as failure:
            return "differs", str(failure)
        different = [text for a, b in zip(found, expected, strict=True) if (text := compare(self.case, a, b))]
        return ("differs", different[0]) if different else ("same outputs", "")


def run_passes(cases, processes=2, report=None):
    """A Without for each case, in their order."""

    def task(case, compiler, runner, folder):
        return CasePasses(case, compiler, runner, folder).run()

    return over_cases(cases, task, processes=processes, report=report)


def is_fault(name, state):
    return state == "differs" or (state == "refused" and name not in LOWERING)


def faults(outcomes):
    """Lines: a case, the pass without which it is wrong or refused, and how."""
    return [
        f"{outcome.name} without {name} [{state}] {outcome.details[name][:300]}"
        for outcome in outcomes
        for name, state in outcome.states.items()
        if is_fault(name, state)
    ]


def table(outcomes):
    """A line for each pass: the cases whose program it changes, and what became of them without it."""
    counts = Counter((name, state) for outcome in outcomes for name, state in outcome.states.items())
    names = sorted({name for name, _ in counts})
    rows = [("without", "cases", *STATES)]
    for name in names:
        found = [counts[name, state] for state in STATES]
        rows.append((name, *(str(count) if count else "-" for count in (sum(found), *found))))
    width = max(len(row[0]) for row in rows)
    return "\n".join(f"{row[0]:{width}}" + "".join(f"{cell:>14}" for cell in row[1:]) for row in rows)


def main(words):
    parser = argparse.ArgumentParser(prog="python -m tests.onnx_backend.passes", description=__doc__.split("\n")[0])
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth case")
    parser.add_argument("--op", action="append", default=[], help="only cases that use this operator (repeatable)")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args(words)
    cases = [case for case in all_cases() if not arguments.op or set(arguments.op) & set(case.operators)]
    started = time.monotonic()

    def report(outcome, done, total):
        if done % 100 == 0:
            print(f"{done}/{total}", file=sys.stderr, flush=True)

    outcomes = run_passes(cases[:: arguments.every], arguments.processes, report)
    print(table(outcomes))
    found = faults(outcomes)
    print(*found, sep="\n")
    ran = sum(bool(outcome.states) for outcome in outcomes)
    print(f"{ran} of {len(outcomes)} cases run; {len(found)} faults, in {time.monotonic() - started:.0f} s")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
