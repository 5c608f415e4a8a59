"""A matrix product with relu: written as loops, made fast step by step, each step proved, run and timed.

    python examples/04-tensor-programs/matrix_product.py [SIZE]
"""

# Calls in annotations are how tensor programs are written, and no types to a type checker.
# pyright: reportInvalidTypeForm=false
# mypy: disable-error-code="valid-type"

import sys

import numpy as np

import lathe
from lathe import tir
from lathe.script import tir as T


def matrix_product(n):
    """C = max(A @ B, 0) of n x n matrices, as anybody would write it."""

    @T.prim_func
    def main(A: T.Buffer((n, n), "float32"), B: T.Buffer((n, n), "float32"), C: T.Buffer((n, n), "float32")):
        Y = T.alloc_buffer((n, n), "float32")
        for i, j, k in T.grid(n, n, n):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] += A[vi, vk] * B[vk, vj]
        for i, j in T.grid(n, n):
            with T.block("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))

    return main


class Race:
    """Runs the schedule's program after each step and says how fast it is."""

    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.a, self.b = (rng.standard_normal((n, n)).astype("float32") for _ in range(2))
        self.c = np.empty((n, n), "float32")
        self.wanted = np.maximum(self.a @ self.b, 0)
        self.work = 2 * n**3

    def measure(self, step, schedule):
        """One line: the step, its time, and its speed."""
        built = lathe.build(schedule.mod)
        built["main"](self.a, self.b, self.c)
        lathe.testing.assert_allclose(self.c, self.wanted, rtol=1e-3, atol=1e-3)
        time = built.time_evaluator("main", lathe.cpu(), number=1, repeat=3, min_repeat_ms=50)(self.a, self.b, self.c)
        print(f"{step:42} {time.min * 1e3:9.3f} ms  {self.work / time.min / 1e9:8.1f} GFLOP/s")


def main(n):
    race = Race(n)
    sch = tir.Schedule(matrix_product(n))
    race.measure("as it is written", sch)

    i, j, k = sch.get_loops("product")
    j0, j1 = sch.split(j, [None, 64])
    sch.reorder(i, j0, k, j1)
    race.measure("rows of B are walked along", sch)

    sch.decompose_reduction("product", k)
    sch.vectorize(sch.split(j1, [None, 16])[1])
    race.measure("16 columns at once", sch)

    # Eight rows of two vectors are summed up in registers, and leave them through relu.
    sch = tir.Schedule(matrix_product(n))
    product = sch.get_block("product")
    i, j, k = sch.get_loops(product)
    i0, i1 = sch.split(i, [None, 8])
    j0, j1, j2 = sch.split(j, [None, 2, 16])
    sch.reorder(i0, j0, k, i1, j1, j2)
    written = sch.cache_write(product, 0, "register")
    sch.reverse_compute_at(written, j0)
    sch.reverse_compute_inline("relu")
    init = sch.decompose_reduction(product, k)
    sch.split(sch.get_loops(written)[-1], [None, 16])
    for block in (init, product, written):
        row, vectors, lanes = sch.get_loops(block)[-3:]
        sch.unroll(row)
        sch.unroll(vectors)
        sch.vectorize(lanes)
    race.measure("tiles of 8 x 32 in registers", sch)

    sch.parallel(i0)
    race.measure("on all cores", sch)

    try:
        sch.parallel(k)
    except lathe.ScheduleError as refusal:
        print(f"\nA step that would change the result is refused:\n  {refusal}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 256)
