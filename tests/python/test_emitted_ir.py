"""LLVM IR that get_source gives runs under LLVM's own interpreter of programs, without anything of ours."""

import shutil
import subprocess

import pytest

import lathe
from lathe.script import tir as T

LLI = shutil.which("lli-19") or "/usr/lib/llvm-19/bin/lli"

# What calls the kernel: two tensors of constants, and the sum of what it stores as the exit status.
CALLER = """
@A = internal global [6 x float] [float 1.0, float 2.0, float 3.0, float 4.0, float 5.0, float 6.0]
@B = internal global [6 x float] zeroinitializer

define i32 @main() {
entry:
  %buffers = alloca [2 x ptr]
  store ptr @A, ptr %buffers
  %second = getelementptr ptr, ptr %buffers, i64 1
  store ptr @B, ptr %second
  %status = call i32 @scale(ptr null, ptr null, ptr %buffers, ptr null)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %more, %loop ]
  %place = getelementptr float, ptr @B, i64 %i
  %value = load float, ptr %place
  %more = fadd float %sum, %value
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, 6
  br i1 %again, label %loop, label %done
done:
  %whole = fptosi float %more to i32
  %code = add i32 %whole, %status
  ret i32 %code
}
"""


@pytest.mark.parametrize("scheduled", [False, True])
def test_emitted_ir_runs_under_lli(tmp_path, scheduled):
    @T.prim_func
    def scale(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
        for i in range(6):
            with T.block("scale"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[vi] * 2.0 + T.exp(A[vi] * 0.0)

    schedule = lathe.tir.Schedule(scale)
    if scheduled:
        (i,) = schedule.get_loops("scale")
        _, inner = schedule.split(i, factors=[None, 4])
        schedule.vectorize(inner)
    text = lathe.build(schedule.mod).get_source("ll")
    path = tmp_path / "scale.ll"
    path.write_text(text + CALLER)
    ran = subprocess.run([LLI, str(path)], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (2 * 21 + 6, "")
