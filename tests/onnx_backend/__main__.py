"""Runs the onnx backend suite from saved artifacts, in a process that has neither compiler nor Python package."""

import argparse
import re
import sys
import time

from tests.onnx_backend import expected
from tests.onnx_backend.cases import KINDS, all_cases
from tests.onnx_backend.modes import MODES
from tests.onnx_backend.suite import failures_by_operator, operator_table, run_suite, summary, write_report


def parse(words):
    parser = argparse.ArgumentParser(
        prog="python -m tests.onnx_backend", description=__doc__,
        epilog="examples: --op Conv --op MaxPool   |   --mode dynamic --list-failures   |   --update-expected",
    )  # fmt: skip
    parser.add_argument("--mode", choices=MODES, default="static", help="models as given (static), every extent of "
                        "every input a symbol (dynamic), or every input a constant")  # fmt: skip
    parser.add_argument("--op", action="append", default=[], help="only cases that use this operator (repeatable)")
    parser.add_argument("--case", action="append", default=[], help="only cases of these names (regular expressions)")
    parser.add_argument("--kind", action="append", choices=KINDS, default=[], help="only cases of this kind")
    parser.add_argument("--list-failures", action="store_true", help="print each failure, grouped by operator")
    parser.add_argument("--table", action="store_true", help="print a table by operator")
    parser.add_argument("--update-expected", action="store_true", help="add the cases that pass to the mode's list")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60.0,
                        help="seconds of processor time, or asleep, for a compile or a run of one case")  # fmt: skip
    parser.add_argument(
        "--backend", choices=("lathe", "onnxruntime"), default="lathe", help="onnxruntime validates this runner"
    )
    return parser.parse_args(words)


def main(words):
    arguments = parse(words)
    cases = all_cases()
    if arguments.kind:
        cases = [case for case in cases if case.kind in arguments.kind]
    if arguments.case:
        cases = [case for case in cases if any(re.fullmatch(pattern, case.name) for pattern in arguments.case)]
    if arguments.op:
        wanted = set(arguments.op)
        cases = [case for case in cases if wanted & set(case.operators)]
    if not cases:
        sys.exit("no case matches")
    terminal = sys.stderr.isatty()

    def report(result, done, total):
        if terminal or done % 200 == 0:
            print(f"{done}/{total}", end="\r" if terminal else "\n", file=sys.stderr, flush=True)

    started = time.monotonic()
    results = run_suite(cases, arguments.backend, arguments.processes, arguments.timeout, report, arguments.mode)
    seconds = time.monotonic() - started
    if arguments.list_failures:
        print(failures_by_operator(results))
    if arguments.table:
        print(operator_table(results))
    print(f"{arguments.mode}: {summary(results)}\nin {seconds:.0f} s")
    if arguments.backend != "lathe":
        return
    complete = not (arguments.kind or arguments.case or arguments.op)
    if complete:
        print(f"written: {write_report(results, arguments.mode, seconds)}")
    lost = expected.regressions(results, arguments.mode)
    for result in lost:
        print(f"regression: {expected.key(result)} [{result.state}] {result.detail}")
    if arguments.update_expected:
        added = expected.grow(results, arguments.mode)
        print(f"{len(added)} cases added to {expected.file_of(arguments.mode).name}")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
