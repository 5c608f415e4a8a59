"""The examples that are Python programs run."""

import os
import subprocess
import sys

from tests.support import paths


def run(example, *arguments):
    """What the example prints."""
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path), "LATHE_NUM_THREADS": "1"}
    command = [sys.executable, paths.ROOT / "examples" / example, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_matrix_product_gets_faster_step_by_step():
    said = run("04-tensor-programs/matrix_product.py", "64")
    assert len([line for line in said.splitlines() if line.endswith("GFLOP/s")]) == 5
    assert "cannot parallelize loop 'k'" in said


def test_a_matrix_product_goes_to_the_roof():
    said = run("06-to-the-roof/matrix_product.py", "128")
    assert len([line for line in said.splitlines() if line.endswith("%")]) == 6


def test_the_courses_chapters_run_one_after_the_other():
    said = run("07-course/chapters.py", "32")
    assert [line for line in said.splitlines() if line.startswith("# ") and "lathe" not in line] == [
        "# three ways to write it", "# transformed step by step", "# left to chance, and searched", "# for threads",
    ]  # fmt: skip
    assert 'T.thread_binding(16, thread="threadIdx.x")' in said and "refused: cannot bind loop 'k'" in said


def test_a_product_of_bytes_is_brought_to_the_machines_instructions():
    said = run("05-tensor-intrinsics/int8_product.py", "64")
    assert len([line for line in said.splitlines() if line.endswith("GOP/s")]) >= 2
    assert "is not what intrinsic 'dot_16x4_vnni' describes" in said
