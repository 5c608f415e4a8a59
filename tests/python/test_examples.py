"""The examples that are Python programs run."""

import subprocess
import sys

from tests.support import paths


def run(example, *arguments):
    """What the example prints."""
    environment = {"PYTHONPATH": ":".join(sys.path), "LATHE_NUM_THREADS": "1"}
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
    assert len([line for line in said.splitlines() if line.endswith("%")]) == 5
