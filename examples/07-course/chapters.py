"""The course of this field in one file: a program as loops, as expressions, transformed, sampled, and for threads.

    python examples/07-course/chapters.py [SIZE]
"""

# Calls in annotations are how tensor programs are written, and no types to a type checker.
# pyright: reportInvalidTypeForm=false
# mypy: disable-error-code="valid-type"

import sys

import numpy as np

import lathe
from lathe import te, tir, topi
from lathe.script import tir as T


def chapter(title):
    """A line between the chapters."""
    print(f"\n# {title}")


def product_relu(n):
    """C = max(A @ B, 0) as loops and blocks."""

    @T.prim_func
    def main(A: T.Buffer((n, n), "float32"), B: T.Buffer((n, n), "float32"), C: T.Buffer((n, n), "float32")):
        Y = T.alloc_buffer((n, n), "float32")
        for i, j, k in T.grid(n, n, n):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] += A[vi, vk] * B[vk, vj]
        for i, j in T.grid(n, n):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))

    return main


def by_expressions(n):
    """The same by tensor expressions."""
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    Y = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="Y")
    C = te.compute((n, n), lambda i, j: te.max(Y[i, j], 0), name="C")
    return te.create_prim_func([A, B, C])


def by_operators(n):
    """The same by operators."""
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    return te.create_prim_func([A, B, topi.nn.relu(topi.matmul(A, B))])


class Data:
    """Two matrices, and what the program should make of them."""

    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.a, self.b = (rng.standard_normal((n, n)).astype("float32") for _ in range(2))
        self.wanted = np.maximum(self.a @ self.b, 0)

    def run(self, module, target=None):
        """Builds and checks; the compiled module, and its arguments."""
        built, out = lathe.build(module, target), np.zeros_like(self.a)
        arguments = (lathe.nd.array(self.a), lathe.nd.array(self.b), lathe.nd.array(out))
        built["main"](*arguments)
        lathe.testing.assert_allclose(arguments[-1].numpy(), self.wanted, rtol=1e-3, atol=1e-3)
        return built, arguments

    def time(self, module):
        """Milliseconds of a run."""
        built, arguments = self.run(module)
        return built.time_evaluator("main", lathe.cpu(), number=1, repeat=3)(*arguments).min * 1e3


def transformed(sch, jfactor):
    """Columns in parts, relu beside the sum, the sum's beginning apart."""
    Y = sch.get_block("Y")
    i, j, k = sch.get_loops(Y)
    j0, j1 = sch.split(j, factors=[None, jfactor])
    sch.reorder(j0, k, j1)
    sch.reverse_compute_at("C", j0)
    sch.decompose_reduction(Y, k)
    return sch


def sampled(sch):
    """The same, with the size of the parts left to chance."""
    j = sch.get_loops("Y")[1]
    _, inner = sch.sample_perfect_tile(j, n=2)
    return transformed(sch, inner)


def for_threads(sch, block=4, tile=4, depth=8):
    """Blocks of threads, each thread a tile of its own; what all of them read goes through shared memory."""
    Y = sch.get_block("Y")
    kept = sch.cache_write(Y, 0, "local")
    sch.reverse_compute_inline("C")
    i, j, k = sch.get_loops(Y)
    i0, i1, i2 = sch.split(i, factors=[None, block, tile])
    j0, j1, j2 = sch.split(j, factors=[None, block, tile])
    k0, k1 = sch.split(k, factors=[None, depth])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    sch.reverse_compute_at(kept, j1)
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    sch.bind(sch.fuse(i1, j1), "threadIdx.x")
    for number in range(2):
        copy = sch.cache_read(Y, number, "shared")
        sch.compute_at(copy, k0)
        _, thread, lanes = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), factors=[None, block * block, 4])
        sch.vectorize(lanes)
        sch.bind(thread, "threadIdx.x")
    sch.decompose_reduction(Y, k0)
    return sch


def main(n):
    data = Data(n)
    chapter("three ways to write it")
    for make in (product_relu, by_expressions, by_operators):
        print(f"{make.__name__:16} {data.time(make(n)):8.3f} ms")

    chapter("transformed step by step")
    for jfactor in (1, 4, 16):
        sch = transformed(tir.Schedule(product_relu(n)), jfactor)
        print(f"columns by {jfactor:<5} {data.time(sch.mod):8.3f} ms")
    sch.trace.show()

    chapter("left to chance, and searched")
    best = min((sampled(tir.Schedule(product_relu(n), seed=seed)) for seed in range(6)), key=lambda s: data.time(s.mod))
    print(f"drawn: {list(best.trace.decisions.values())}, {data.time(best.mod):.3f} ms")
    again = tir.Schedule(product_relu(n))
    best.trace.apply_to_schedule(again)
    lathe.ir.assert_structural_equal(again.mod, best.mod)

    chapter("for threads")
    sch = for_threads(tir.Schedule(product_relu(n)))
    data.run(sch.mod, "interp")  # no such device here: the interpreter does what the threads would
    print(sch.mod.script())
    try:
        tile = tir.Schedule(product_relu(n))
        tile.bind(tile.get_loops("Y")[2], "threadIdx.x")
    except lathe.ScheduleError as refusal:
        print(f"refused: {refusal}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 64)
