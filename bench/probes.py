"""What the machine can do now: the multiply-add peak, a product that stays in L2, and reads from each level of memory.

The probes are tensor programs, built for the present target. Figures are for `threads` threads together.
"""

import functools

import numpy as np

import lathe
from bench.memory import aligned_empty
from lathe import tir
from lathe.script import tir as T

STEPS = 40_000
CHAINS = 12  # vectors that are added up side by side while memory is read
PRODUCT = 192  # its three matrices take 432 KB
DRAM_BYTES = 512 << 20


def aligned_zeros(shape):
    """Memory of our own, written once: else all its pages are one."""
    zeros = aligned_empty(shape, "float32")
    zeros[...] = 0
    return zeros


def peak_program(threads, lanes, rows):
    """Each thread keeps `rows` accumulators in registers and multiplies and adds STEPS times."""

    @T.prim_func
    def main(X: T.Buffer((2, lanes), "float32"), Y: T.Buffer((threads, rows, lanes), "float32")):
        for t in T.parallel(threads):
            with T.block("thread"):
                vt = T.axis.spatial(threads, t)
                sums = T.alloc_buffer((rows, lanes), "float32", scope="register")
                for r in T.unroll(rows):
                    for lane in T.vectorized(lanes):
                        sums[r, lane] = T.float32(0)
                for k in range(STEPS):
                    for r in T.unroll(rows):
                        for lane in T.vectorized(lanes):
                            sums[r, lane] = sums[r, lane] * X[0, lane] + X[1, lane]
                for r in T.unroll(rows):
                    for lane in T.vectorized(lanes):
                        Y[vt, r, lane] = sums[r, lane]

    return main


def read_program(threads, lanes, steps, passes):
    """Each thread adds up `steps` times CHAINS vectors, in as many chains, `passes` times over."""
    chains = CHAINS

    @T.prim_func
    def main(X: T.Buffer((threads, steps, chains, lanes), "float32"), Y: T.Buffer((threads, chains, lanes), "float32")):
        for t in T.parallel(threads):
            with T.block("thread"):
                vt = T.axis.spatial(threads, t)
                sums = T.alloc_buffer((chains, lanes), "float32", scope="register")
                for c in T.unroll(chains):
                    for lane in T.vectorized(lanes):
                        sums[c, lane] = T.float32(0)
                for again, k in T.grid(passes, steps):
                    for c in T.unroll(chains):
                        for lane in T.vectorized(lanes):
                            sums[c, lane] = sums[c, lane] + X[vt, k, c, lane]
                for c in T.unroll(chains):
                    for lane in T.vectorized(lanes):
                        Y[vt, c, lane] = sums[c, lane]

    return main


def product_program(threads, lanes, rows):
    """A matrix product for each thread, in register tiles of `rows` by two vectors."""
    n = PRODUCT

    @T.prim_func
    def main(A: T.Buffer((threads, n, n), "float32"), B: T.Buffer((threads, n, n), "float32"),
             C: T.Buffer((threads, n, n), "float32")):  # fmt: skip
        for t, i, j, k in T.grid(threads, n, n, n):
            with T.block("product"):
                vt, vi, vj, vk = T.axis.remap("SSSR", [t, i, j, k])
                with T.init():
                    C[vt, vi, vj] = T.float32(0)
                C[vt, vi, vj] += A[vt, vi, vk] * B[vt, vk, vj]

    sch = tir.Schedule(main)
    product = sch.get_block("product")
    t, i, j, k = sch.get_loops(product)
    i0, i1 = sch.split(i, [None, rows])
    j0, j1, j2 = sch.split(j, [None, 2, lanes])
    sch.reorder(j0, i0, k, i1, j1, j2)
    written = sch.cache_write(product, 0, "register")
    sch.reverse_compute_at(written, i0)
    init = sch.decompose_reduction(product, k)
    sch.split(sch.get_loops(written)[-1], [None, lanes])
    for block in (init, product, written):
        row, vectors, lane = sch.get_loops(block)[-3:]
        sch.unroll(row)
        sch.unroll(vectors)
        sch.vectorize(lane)
    sch.parallel(t)
    return sch.mod


class Probes:
    """The programs, built once for a number of threads: `read()` gives {probe: figure}, GFLOP/s and GB/s."""

    def __init__(self, threads):
        target = lathe.target.Target("native")
        self.target, self.threads, self.lanes = target.attrs, threads, target.lanes()
        registers = self.target["vector_registers"]
        accumulators = 24 if registers >= 32 else 12
        rows = 8 if registers >= 32 else 4
        vector, square = (self.lanes,), (threads, PRODUCT, PRODUCT)
        self.peak = self._built(
            peak_program(threads, self.lanes, accumulators), (2, *vector), (threads, accumulators, *vector)
        )
        self.product = self._built(product_program(threads, self.lanes, rows), square, square, square)
        self.peak_work = 2 * threads * STEPS * accumulators * self.lanes
        self.product_work = 2 * threads * PRODUCT**3

    def _built(self, program, *shapes):
        return lathe.build(program), [aligned_zeros(shape) for shape in shapes]

    @functools.cache
    def reader(self, total_bytes):
        """The program that reads so many bytes, all threads together, and what one run of it reads."""
        vector = 4 * self.lanes
        steps = max(1, total_bytes // self.threads // vector // CHAINS)
        passes = max(1, (4 << 20) // total_bytes)
        program = read_program(self.threads, self.lanes, steps, passes)
        shapes = (self.threads, steps, CHAINS, self.lanes), (self.threads, CHAINS, self.lanes)
        return self._built(program, *shapes), passes * steps * CHAINS * vector * self.threads

    def _best(self, made, work, repeat=3):
        built, arrays = made
        time = built.time_evaluator("main", lathe.cpu(), number=1, repeat=repeat)(*arrays)
        return work / time.min / 1e9

    def bandwidth(self, total_bytes):
        """GB/s of reading so many bytes again and again."""
        made, read = self.reader(total_bytes)
        return self._best(made, read, repeat=5)

    def read(self):
        """The three probes that stand beside each sample."""
        return {
            "fma": self._best(self.peak, self.peak_work),
            "product": self._best(self.product, self.product_work, repeat=5),
            "dram": self._best(self.reader(DRAM_BYTES)[0], self.reader(DRAM_BYTES)[1], repeat=1),
        }

    def limits(self):
        """The machine's limits: GFLOP/s of float32, and for each level of memory its bytes and GB/s."""
        levels = []
        for cache in self.target["caches"]:
            each = 1 if cache["shared_by"] > 1 else self.threads
            size = cache["bytes"] * each
            speed = self.bandwidth(min(size // 2, 64 << 20))
            levels.append({"level": f"L{cache['level']}", "bytes": size, "gb_s": speed})
        levels.append({"level": "DRAM", "bytes": None, "gb_s": self.bandwidth(DRAM_BYTES)})
        return {"gflop_s": max(self._best(self.peak, self.peak_work) for _ in range(5)), "memory": levels}
