"""LATHE_PERF_MAP: kernels by name for Linux's perf, which reads lines of address, size and name."""

import json

from tests.support import paths
from tests.support.command import run_command


def test_each_kernel_has_its_name(lathe_cli, tmp_path):
    command = [paths.LATHE, "explain", paths.DIGITS_MODEL, "--dim", "batch=3", "--seconds", "0.01", "-o"]
    outcome = run_command([*command, tmp_path / "r.json"], env=paths.environment(LATHE_PERF_MAP=tmp_path))
    assert outcome.code == 0, str(outcome)
    (file,) = tmp_path.glob("perf-*.map")
    rows = [line.split(" ", 2) for line in file.read_text().splitlines()]
    assert rows and all(int(address, 16) > 0 and int(size, 16) > 0 for address, size, _ in rows)
    names = {name for _, _, row in rows for name in row.removeprefix("lathe::").split("|")}
    kernels = {kernel["name"] for kernel in json.loads((tmp_path / "r.json").read_text())["kernels"]}
    assert kernels <= names


def test_a_folder_that_is_not_there_is_no_failure(lathe_cli, tmp_path):
    command = [paths.LATHE, "bench", paths.DIGITS_MODEL, "--dim", "batch=3", "--runs", "1"]
    assert run_command(command, env=paths.environment(LATHE_PERF_MAP=tmp_path / "none")).code == 0
