"""expected_pass*.txt: the cases that pass in each mode. A list only grows; a case of it that fails is a regression."""

from pathlib import Path

FOLDER = Path(__file__).parent
HEADER = """\
# Cases of the onnx backend suite that pass{how}, as kind/name. No line is ever taken away:
# a case of the list that fails is a regression.
# Grown by: python -m tests.onnx_backend{option} --update-expected
"""


def file_of(mode):
    return FOLDER / ("expected_pass.txt" if mode == "static" else f"expected_pass_{mode}.txt")


def key(result):
    return f"{result.kind}/{result.name}"


def read(mode, folder=FOLDER):
    file = folder / file_of(mode).name
    lines = file.read_text().splitlines() if file.exists() else []
    return {line for line in lines if line and not line.startswith("#")}


def grow(results, mode, folder=FOLDER):
    """Adds what passes now and returns the new lines."""
    known = read(mode, folder)
    fresh = {key(r) for r in results if r.state == "pass"} - known
    head = HEADER.format(how="", option="")
    if mode != "static":
        head = HEADER.format(how=f" in the {mode} mode", option=f" --mode {mode}")
    (folder / file_of(mode).name).write_text(head + "".join(f"{line}\n" for line in sorted(known | fresh)))
    return fresh


def regressions(results, mode, folder=FOLDER):
    known = read(mode, folder)
    return [r for r in results if key(r) in known and r.state != "pass"]
