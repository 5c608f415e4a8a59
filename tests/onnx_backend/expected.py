"""expected_pass.txt: the cases that pass. The list only grows; a case of it that fails is a regression."""

from pathlib import Path

FILE = Path(__file__).with_name("expected_pass.txt")
HEADER = """\
# Cases of the onnx backend suite that pass, as kind/name. A line is never taken away: a regression fails the tests.
# Grown by: python -m tests.onnx_backend --update-expected
"""


def key(result):
    return f"{result.kind}/{result.name}"


def read(file=FILE):
    lines = file.read_text().splitlines() if file.exists() else []
    return {line for line in lines if line and not line.startswith("#")}


def grow(results, file=FILE):
    """Adds what passes now and returns the new lines."""
    known = read(file)
    fresh = {key(r) for r in results if r.state == "pass"} - known
    file.write_text(HEADER + "".join(f"{line}\n" for line in sorted(known | fresh)))
    return fresh


def regressions(results, file=FILE):
    known = read(file)
    return [r for r in results if key(r) in known and r.state != "pass"]
