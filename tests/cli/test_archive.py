"""An archive with its header and the static runtime make one C program; the shared library runs from the C example."""

import shutil
import subprocess

import numpy as np
import pytest

from tests.support import paths
from tests.support.backends import onnxruntime_session
from tests.support.command import run_command

PROGRAM = r"""
#include <lathe.h>
#include <stdio.h>
#include "digits.h"

int main(void) {
  static float pixels[2 * 64];
  int64_t shape[] = {2, 1, 8, 8};
  DLTensor x = {pixels, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape, NULL, 0};
  const DLTensor* inputs[] = {&x};
  DLManagedTensor* y = NULL;
  LatheModel* model;
  LatheContext* context;
  for (int i = 0; i < 128; ++i) pixels[i] = (float)(i % 7) / 8;
  if (lathe_open_artifact(&digits_lathe_artifact, NULL, &model) || lathe_create_context(model, NULL, &context) ||
      lathe_run(context, inputs, 1, &y, 1)) {
    fprintf(stderr, "%s\n", lathe_last_error()->message);
    return 1;
  }
  for (int i = 0; i < 20; ++i) printf("%.9g\n", ((float*)y->dl_tensor.data)[i]);
  y->deleter(y);
  lathe_destroy_context(context);
  lathe_close(model);
  return 0;
}
"""


def compiler():
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang-19")
    assert found, "no C compiler"
    return found


def build(*arguments):
    done = subprocess.run([compiler(), *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("form", ["a", "o"])
def test_a_c_program_holds_the_model(lathe_cli, tmp_path, form):
    lathe_cli("compile", paths.DIGITS_MODEL, "-o", tmp_path / f"digits.{form}")
    (tmp_path / "main.c").write_text(PROGRAM)
    runtime = paths.BUILD / "lib" / "liblathe_runtime.a"
    build(
        "-std=c11", "-Wall", f"-I{paths.ROOT / 'src' / 'abi'}", f"-I{tmp_path}", tmp_path / "main.c",
        tmp_path / f"digits.{form}", runtime, "-lpthread", "-ldl", "-lm", "-o", tmp_path / "main",
    )  # fmt: skip
    outcome = run_command([tmp_path / "main"])
    assert outcome.code == 0, str(outcome)
    x = ((np.arange(128) % 7).astype(np.float32) / 8).reshape(2, 1, 8, 8)
    wanted = onnxruntime_session(str(paths.DIGITS_MODEL)).run(None, {"image": x})[0]
    np.testing.assert_allclose(np.array(outcome.out.split(), np.float32), wanted.ravel(), rtol=1e-4, atol=1e-4)


def test_the_c_example_runs_a_saved_model(digits_artifact, tmp_path):
    library = paths.BUILD / "lib"
    build(
        f"-I{paths.ROOT / 'src' / 'abi'}", paths.ROOT / "examples" / "01-c-interface" / "run_model.c",
        f"-L{library}", "-llathe_runtime", f"-Wl,-rpath,{library}", "-o", tmp_path / "run_model",
    )  # fmt: skip
    outcome = run_command([tmp_path / "run_model", digits_artifact])
    assert outcome.code == 0, str(outcome)
    assert "input image: [ batch 1 8 8 ]" in outcome.out and "output logits:" in outcome.out
    values = [float(line) for line in outcome.out.splitlines() if line.startswith("  ")]
    assert len(values) == 8 and np.isfinite(values).all() and np.ptp(values) > 0
