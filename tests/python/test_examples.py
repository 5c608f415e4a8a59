"""The examples that are Python programs run."""

import subprocess
import sys

from tests.support import paths


def test_a_matrix_product_gets_faster_step_by_step():
    example = paths.ROOT / "examples" / "04-tensor-programs" / "matrix_product.py"
    environment = {"PYTHONPATH": ":".join(sys.path), "LATHE_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, example, "64"], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    steps = [line for line in done.stdout.splitlines() if line.endswith("GFLOP/s")]
    assert len(steps) == 5
    assert "cannot parallelize loop 'k'" in done.stdout
