"""Line coverage of the C++ sources by the tests: ./dev coverage [ROOM…] prints it room by room.

Without rooms by the C++ tests and by those Python tests that reach what has a Python face or a command alone; with
rooms by their C++ tests. The preset `coverage` counts with clang's own instrumentation; its profiles and the report lie
in its build folder.
"""

import json
import os
import subprocess
from dataclasses import dataclass

from . import build, parts
from .setup import ROOT

TOOLS = "/usr/lib/llvm-19/bin"
LEAST = 90.0  # per cent, over all
PYTHON_TESTS = ["tests/python", "tests/cli", "tests/errors"]
# It links plain C programs with the runtime's archive, which would need the counters' library.
NOT_COUNTED = ["tests/cli/test_archive.py"]


@dataclass
class Lines:
    covered: int = 0
    counted: int = 0

    def percent(self):
        return 100.0 * self.covered / self.counted if self.counted else 100.0


def is_ours(path):
    """Sources of the product: no tests, nothing generated, nothing of others."""
    return path.startswith("src/") and "_test" not in path and "/testing/" not in path and "_fuzz" not in path


def lines_by_file(export):
    """Path -> Lines, of what `llvm-cov export -summary-only` gives, for sources of ours."""
    found = {}
    for data in export["data"]:
        for file in data["files"]:
            path = os.path.relpath(file["filename"], ROOT)
            if is_ours(path):
                lines = file["summary"]["lines"]
                found[path] = Lines(lines["covered"], lines["count"])
    return found


def by_room(files):
    """Room (the folder under src/) -> Lines."""
    rooms = {}
    for path, lines in files.items():
        room = rooms.setdefault(path.split("/")[1], Lines())
        room.covered += lines.covered
        room.counted += lines.counted
    return rooms


def report(files, gaps=15):
    """The table, and the files with the most lines that no test runs."""
    rooms = by_room(files)
    total = Lines(sum(r.covered for r in rooms.values()), sum(r.counted for r in rooms.values()))
    rows = [f"{'room':<14} {'lines':>7} {'run':>7} {'share':>7}"]
    for name, lines in [*sorted(rooms.items()), ("all", total)]:
        rows.append(f"{name:<14} {lines.counted:>7} {lines.covered:>7} {lines.percent():>6.1f}%")
    rows.append("lines that no test runs, most first:")
    missed = sorted(files.items(), key=lambda item: item[1].covered - item[1].counted)
    rows += [f"  {lines.counted - lines.covered:>5} of {lines.counted:<5} {path}" for path, lines in missed[:gaps]]
    return "\n".join(rows), total


def run_python_tests(folder, profiles):
    """The Python tests with the counting extension and command; processes of one program share a few files."""
    parts.pytest_everywhere(
        *PYTHON_TESTS, *[f"--deselect={test}" for test in NOT_COUNTED],
        LATHE_BUILD_DIR=str(folder), LLVM_PROFILE_FILE=str(profiles / "python-%4m.profraw"),
    )  # fmt: skip
    return [folder / "bin" / "lathe", *folder.glob("python/lathe/_lathe.*.so")]


def measure(rooms):
    """Builds and runs the tests of `rooms` (all when none is named) and gives Lines by file."""
    folder = build.folder("coverage")
    if rooms:
        binaries = parts.test_binaries("coverage", rooms)
    else:
        build.configure("coverage")
        binaries = sorted(build.test_targets("coverage"))
    build.build("coverage", binaries if rooms else [*binaries, "product"])
    profiles = folder / "profiles"
    profiles.mkdir(exist_ok=True)
    for old in profiles.iterdir():
        old.unlink()
    pattern = "^(" + "|".join(binaries) + ")$"
    parts.ctest("coverage", pattern, LLVM_PROFILE_FILE=str(profiles / "%p-%m.profraw"))
    programs = [folder / "bin" / name for name in binaries]
    if not rooms:
        programs += run_python_tests(folder, profiles)
    merged = folder / "coverage.profdata"
    raw = sorted(profiles.glob("*.profraw"))
    parts.call(f"{TOOLS}/llvm-profdata", "merge", "-sparse", *raw, "-o", merged)
    objects = [word for program in programs for word in ("-object", program)]
    command = [f"{TOOLS}/llvm-cov", "export", "-summary-only", f"-instr-profile={merged}", *objects]
    text = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout
    (folder / "coverage.json").write_text(text)
    return lines_by_file(json.loads(text))


def run(rooms):
    """Prints the report; true when enough lines are run, which is asked of all rooms together alone."""
    files = measure(rooms)
    text, total = report({p: n for p, n in files.items() if not rooms or p.split("/")[1] in rooms})
    print(text)
    return bool(rooms) or total.percent() >= LEAST
