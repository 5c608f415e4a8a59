"""A matrix product taken by hand to what one core can do: after each step its speed, and its share of the core's peak.

    python examples/06-to-the-roof/matrix_product.py [SIZE]

The tile's shape comes from the target: how many vector registers it has, and how many floats fit in one. The peak is
measured, by a program that does nothing but multiply and add in registers. SIZE is 1024 unless it is given, and a
multiple of 64.
"""

# Calls in annotations are how tensor programs are written, and no types to a type checker.
# pyright: reportInvalidTypeForm=false
# mypy: disable-error-code="valid-type"

import sys

import numpy as np

import lathe
from lathe import tir
from lathe.script import tir as T

# ---- the machine ----

TARGET = lathe.target.Target("native")
LANES = TARGET.lanes(32)
REGISTERS = TARGET.attrs["vector_registers"]
# Rows by vectors of the tile of C that stays in registers: with a row of B beside it, and one register for an element
# of A, it fills them. Wide rather than tall: the rows of A lie apart by a power of two and fall on one another in L1.
ROWS, VECTORS = (6, 4) if REGISTERS >= 32 else (6, 2)
WIDTH = VECTORS * LANES
# Tiles beside one another whose columns of B are packed at once: an element of A that came from afar is used 64 times.
BESIDE = max(64 // WIDTH, 1)


def multiply_adds(steps, chains):
    """Chains of multiply-adds that never leave the registers."""

    @T.prim_func
    def main(X: T.Buffer((2, LANES), "float32"), Y: T.Buffer((chains, LANES), "float32")):
        with T.block("all"):
            sums = T.alloc_buffer((chains, LANES), "float32", scope="register")
            for c in T.unroll(chains):
                for lane in T.vectorized(LANES):
                    sums[c, lane] = T.float32(0)
            for _ in range(steps):
                for c in T.unroll(chains):
                    for lane in T.vectorized(LANES):
                        sums[c, lane] = sums[c, lane] * X[0, lane] + X[1, lane]
            for c in T.unroll(chains):
                for lane in T.vectorized(LANES):
                    Y[c, lane] = sums[c, lane]

    return main


class Peak:
    """What one core multiplies and adds, in GFLOP/s."""

    def __init__(self, steps=100_000, chains=12):
        self.built = lathe.build(multiply_adds(steps, chains))
        self.arrays = np.zeros((2, LANES), "float32"), np.empty((chains, LANES), "float32")
        self.work = 2 * steps * chains * LANES

    def measure(self):
        times = self.built.time_evaluator("main", lathe.cpu(), number=1, repeat=5)(*self.arrays)
        return self.work / times.min / 1e9


# ---- the product ----


def product(n):
    """C = A @ B of n x n matrices, as anybody would write it."""

    @T.prim_func
    def main(A: T.Buffer((n, n), "float32"), B: T.Buffer((n, n), "float32"), C: T.Buffer((n, n), "float32")):
        for i, j, k in T.grid(n, n, n):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] += A[vi, vk] * B[vk, vj]

    return main


def along_rows(n):
    """A row of C by a row of B: both are walked along, in vectors."""
    sch = tir.Schedule(product(n))
    i, j, k = sch.get_loops("product")
    sch.reorder(i, k, j)
    sch.decompose_reduction("product", k)
    for block in sch.get_child_blocks("root"):
        sch.vectorize(sch.split(sch.get_loops(block)[-1], [None, LANES])[1])
    return sch


def tiled(n, *, beside=0, unrolled=1):
    """A tile of C is summed up in registers and written once.

    beside: the columns of B that so many tiles beside one another read are copied first, those of each tile next to one
        another; the rows of A that a tile reads are still near when the tile beside it reads them.
    unrolled: so many steps of the sum are written out.
    """
    sch = tir.Schedule(product(n))
    block = sch.get_block("product")
    i, j, k = sch.get_loops(block)
    columns, tiles, vectors, lanes = sch.split(j, [None, max(beside, 1), VECTORS, LANES])
    sch.reorder(columns, i, tiles, k, vectors, lanes)
    if beside:
        panel = sch.cache_read(block, 1, "local")
        sch.compute_at(panel, columns)
        sch.transform_layout(panel, ("write", 0), lambda k, j: (j // WIDTH, k, j % WIDTH))
        in_vectors(sch, panel)
    # As equal as they can be: a full tile and a small rest would leave registers idle.
    tiles = -(-n // ROWS)
    small, larger = n // tiles, n % tiles
    parts = [(block, small)]
    if larger:
        first, second = sch.loop_partition(i, [larger * (small + 1), None])
        parts = [(block, small + 1), (sch.get_child_blocks(second)[0], small)]
    for part, rows in parts:
        in_registers(sch, part, rows, unrolled)
    return sch


def in_registers(sch, block, rows, unrolled):
    """Tiles of `rows` by VECTORS below the block's loop over rows."""
    *_, i, tile, k, vectors, lanes = sch.get_loops(block)
    _, row = sch.split(i, [None, rows])
    sch.reorder(tile, k, row, vectors, lanes)
    if unrolled > 1:
        k, steps = sch.split(k, [None, unrolled])
        sch.unroll(steps)
    written = sch.cache_write(block, 0, "register")
    sch.reverse_compute_at(written, tile)
    start = sch.decompose_reduction(block, k)
    sch.split(sch.get_loops(written)[-1], [None, LANES])
    for each in (start, block, written):
        row, vectors, lanes = sch.get_loops(each)[-3:]
        sch.unroll(row)
        sch.unroll(vectors)
        sch.vectorize(lanes)


def in_vectors(sch, block):
    vectors, lanes = sch.split(sch.get_loops(block)[-1], [None, LANES])
    sch.unroll(vectors)
    sch.vectorize(lanes)


STEPS = [
    ("as it is written", lambda n: tir.Schedule(product(n))),
    (f"rows walked along, {LANES} columns at once", along_rows),
    (f"tiles of {ROWS} x {WIDTH} in registers", tiled),
    ("columns of a tile of B packed", lambda n: tiled(n, beside=1)),
    (f"{BESIDE * WIDTH} columns packed for L2", lambda n: tiled(n, beside=BESIDE)),
    ("four steps of the sum written out", lambda n: tiled(n, beside=BESIDE, unrolled=4)),
]


def matrix(n):
    """Memory that begins with a cache line: a vector that straddles two is read twice."""
    memory = np.empty(n * n + 16, "float32")
    start = -memory.ctypes.data % 64 // 4
    return memory[start : start + n * n].reshape(n, n)


def main(n):
    if n < 1 or n % (BESIDE * WIDTH):
        sys.exit(f"the size is a multiple of {BESIDE * WIDTH} here, not {n}")
    rng, peak = np.random.default_rng(0), Peak()
    a, b, c = matrix(n), matrix(n), matrix(n)
    a[...], b[...] = rng.standard_normal((2, n, n))
    wanted = a @ b
    print(f"{REGISTERS} registers of {LANES} floats; {peak.measure():.0f} GFLOP/s of multiply-adds on one core")
    for name, schedule in STEPS:
        built = lathe.build(schedule(n).mod)
        built["main"](a, b, c)
        lathe.testing.assert_allclose(c, wanted, rtol=1e-3, atol=1e-3)
        evaluate = built.time_evaluator("main", lathe.cpu(), number=1, repeat=5)
        found = []
        for _ in range(3):  # the clock moves: each figure has a peak of its own, measured just before
            now = peak.measure()
            speed = 2 * n**3 / evaluate(a, b, c).min / 1e9
            found.append((speed / now, speed))
        share, speed = max(found)
        print(f"{name:42} {speed:8.1f} GFLOP/s {share:7.1%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024)
