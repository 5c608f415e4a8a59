"""A product of bytes, C = A @ B summed up in 32 bits, brought to the machine's own instructions for it, step by step.

    python examples/05-tensor-intrinsics/int8_product.py [SIZE]

With AMX the last steps use its tiles, with AVX-512 VNNI its dot products; elsewhere the loops stay loops. Beside these
stands the share of what the instruction reaches at this hour with its operands in registers or in the first cache.
"""

# Calls in annotations are how tensor programs are written, and no types to a type checker.
# pyright: reportInvalidTypeForm=false
# mypy: disable-error-code="valid-type"

import sys

import numpy as np

import lathe
from lathe import tir
from lathe.script import tir as T
from lathe.tir.tensor_intrin import offered, x86


def product(n):
    """C = A @ B of n x n matrices, as anybody would write it; A counts from 0, B has a sign."""

    @T.prim_func
    def main(A: T.Buffer((n, n), "uint8"), B: T.Buffer((n, n), "int8"), C: T.Buffer((n, n), "int32")):
        for i, j, k in T.grid(n, n, n):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] += T.cast(A[vi, vk], "int32") * T.cast(B[vk, vj], "int32")

    return main


def product_of_packed(n):
    """The same where B comes in panels of 32 columns, four neighbours along k together."""

    @T.prim_func
    def main(
        A: T.Buffer((n, n), "uint8"), B: T.Buffer((n // 32, n // 4, 32, 4), "int8"), C: T.Buffer((n, n), "int32")
    ):
        for i, j, k in T.grid(n, n, n):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] += T.cast(A[vi, vk], "int32") * T.cast(B[vj // 32, vk // 4, vj % 32, vk % 4], "int32")

    return main


# An intrinsic of our own: four rows of 16 bytes become 16 groups of four, as the dot products want them.
@T.prim_func
def four_rows(A: T.Buffer((4, 16), "int8"), P: T.Buffer((16, 4), "int8")):
    for i, j in T.grid(4, 16):
        with T.block("pack"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vj, vi] = A[vi, vj]


@T.prim_func
def four_rows_at_once(A: T.Buffer((4, 16), "int8"), P: T.Buffer((16, 4), "int8", strides=[4, 1])):
    P[0, T.ramp(T.int64(0), T.int64(1), 64)] = T.reinterpret(
        "int8x64",
        T.bitwise_or(
            T.bitwise_or(
                T.Cast("int32x16", T.reinterpret("uint8x16", A[0, 0:16])),
                T.shift_left(T.Cast("int32x16", T.reinterpret("uint8x16", A[1, 0:16])), T.broadcast(T.int32(8), 16)),
            ),
            T.bitwise_or(
                T.shift_left(T.Cast("int32x16", T.reinterpret("uint8x16", A[2, 0:16])), T.broadcast(T.int32(16), 16)),
                T.shift_left(T.Cast("int32x16", T.reinterpret("uint8x16", A[3, 0:16])), T.broadcast(T.int32(24), 16)),
            ),
        ),
    )


tir.TensorIntrin.register("example_pack_4x16", four_rows, four_rows_at_once, override=True)


def aligned(array):
    """The same in memory that begins with a cache line: a row of a tile is one."""
    memory = np.empty(array.nbytes + 64, "uint8")
    start = -memory.ctypes.data % 64
    made = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


ROUNDS = 24576


@T.prim_func
def dot_products_alone(A: T.Buffer((64,), "uint8"), B: T.Buffer((64,), "int8"), C: T.Buffer((20, 16), "int32")):
    """Twenty sums in registers, to each of which every round adds 64 products."""
    S = T.alloc_buffer((20, 16), "int32", scope="register")
    for s in T.unroll(20):
        S[s, 0:16] = C[s, 0:16]
    for round in range(ROUNDS):
        for s in T.unroll(20):
            S[s, 0:16] = T.call_llvm_pure_intrin(
                "int32x16", "llvm.x86.avx512.vpdpbusd.512", S[s, 0:16], T.reinterpret("int32x16", A[0:64]), B[0:64]
            )
    for s in T.unroll(20):
        C[s, 0:16] = S[s, 0:16]


@T.prim_func
def tiles_alone(A: T.Buffer((4, 32, 64), "uint8"), B: T.Buffer((4, 32, 64), "int8"), C: T.Buffer((64, 16), "int32")):
    """As the steps of a product of 32 x 32 results, from 16 KB."""
    with T.block("tiles"):
        T.reads(A[0:4, 0:32, 0:64], B[0:4, 0:32, 0:64])
        T.writes(C[0:64, 0:16])
        for t in T.unroll(4):
            T.evaluate(T.call_llvm_intrin("void", "llvm.x86.tilezero", T.Cast("int8", t)))
        for round in range(ROUNDS):
            for t in T.unroll(2):
                T.evaluate(T.call_llvm_intrin(
                    "void", "llvm.x86.tileloadd64", T.Cast("int8", 4 + t),
                    T.address_of(A[round % 4, t * 16, 0]), T.int64(64)))  # fmt: skip
                T.evaluate(T.call_llvm_intrin(
                    "void", "llvm.x86.tileloadd64", T.Cast("int8", 6 + t),
                    T.address_of(B[round % 4, t * 16, 0]), T.int64(64)))  # fmt: skip
            for t in T.unroll(4):
                T.evaluate(T.call_llvm_intrin(
                    "void", "llvm.x86.tdpbusd", T.Cast("int8", t), T.Cast("int8", 4 + t // 2),
                    T.Cast("int8", 6 + t % 2)))  # fmt: skip
        for t in T.unroll(4):
            T.evaluate(T.call_llvm_intrin(
                "void", "llvm.x86.tilestored64", T.Cast("int8", t),
                T.address_of(C[t * 16, 0]), T.int64(64)))  # fmt: skip


def best_time(built, *arrays):
    """Seconds of a run, the best of five means: long enough each that the processor is as fast as it stays."""
    return built.time_evaluator("main", lathe.cpu(), number=1, repeat=5, min_repeat_ms=50)(*arrays).min


class Race:
    """Runs the schedule's program after each step and says how fast it is."""

    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.a = aligned(rng.integers(0, 256, (n, n)).astype("uint8"))
        self.b = aligned(rng.integers(-128, 128, (n, n)).astype("int8"))
        self.c = aligned(np.empty((n, n), "int32"))
        self.wanted = (self.a.astype("float64") @ self.b.astype("float64")).astype("int32")
        self.work = 2 * n**3

    def measure(self, step, schedule, b=None, alone=None):
        """One line: the step, its time, and its speed; `b` where B is given in another form.

        alone: the instruction by itself, and its operations; how fast it is is asked before and after.
        """
        built = lathe.build(schedule.mod)
        b = self.b if b is None else b
        built["main"](self.a, b, self.c)
        np.testing.assert_array_equal(self.c, self.wanted)
        speed = [self.speed_of(alone)]
        time = best_time(built, self.a, b, self.c)
        speed.append(self.speed_of(alone))
        line = f"{step:48} {time * 1e3:9.3f} ms  {self.work / time / 1e9:8.1f} GOP/s"
        if alone:
            line += f"  {self.work / time / max(speed) * 100:3.0f} % of {max(speed) / 1e9:.0f}"
        print(line)

    def speed_of(self, alone):
        """Operations a second of the instruction by itself."""
        if not alone:
            return None
        program, work = alone
        # Bytes as the product's: of zeros the processor does more, as they cost less power.
        rng = np.random.default_rng(1)
        buffers = [program.buffer_map[param] for param in program.params]
        shapes = [[int(extent) for extent in buffer.shape] for buffer in buffers]
        arrays = [aligned(rng.integers(0, 128, shape).astype(b.dtype)) for shape, b in zip(shapes, buffers)]
        return work / best_time(lathe.build(program.with_attr("global_symbol", "main")), *arrays)


def loops(race, n):
    """What loops alone give."""
    sch = tir.Schedule(product(n))
    race.measure("as it is written", sch)
    _, j, k = sch.get_loops("product")
    j0, j1 = sch.split(j, [None, 64])
    sch.reorder(j0, k, j1)
    sch.decompose_reduction("product", k)
    sch.vectorize(sch.split(j1, [None, 16])[1])
    race.measure("rows of B are walked along, 16 columns at once", sch)


def dot_products(race, n):
    """Each instruction adds, for 16 columns, four neighbours along k: B is packed so that they lie together."""
    alone = dot_products_alone, 2 * 64 * 20 * ROUNDS
    sch = tir.Schedule(product(n))
    block = sch.get_block("product")
    sch.reindex_cache_read(block, 1, "global", lambda i, j, k: (j // 16, k // 4, j % 16, k % 4))
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, [None, 16])
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(i, j0, k0, j1, k1)
    sch.tensorize(j1, x86.VNNI_DOT_16x4_INTRIN)
    sch.decompose_reduction("product_o", k0)
    race.measure("dot products of VNNI", sch, alone=alone)

    # Sums of 8 rows and 32 columns stay in registers while k goes by; panels of B stay in a cache.
    sch = tir.Schedule(product(n))
    block = sch.get_block("product")
    packed = sch.reindex_cache_read(block, 1, "global", lambda i, j, k: (j // 32, k // 4, j % 32, k % 4))
    out = sch.cache_write(block, 0, "register")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 8])
    j0, j1, j2 = sch.split(j, [None, 2, 16])
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(j0, i0, k0, i1, j1, j2, k1)
    sch.reverse_compute_at(out, i0)
    start = sch.decompose_reduction(block, k0)
    sch.tensorize(j2, x86.VNNI_DOT_16x4_INTRIN)
    rows, columns = sch.get_loops(out)[-2:]
    parts = sch.split(columns, [None, 16])
    for row, vector, lanes in ((i1, j1, None), sch.get_loops(start)[-3:], (rows, *parts)):
        sch.unroll(row)
        sch.unroll(vector)
        if lanes:
            sch.vectorize(lanes)
    pack(sch, packed)
    race.measure("sums in registers", sch, alone=alone)


def pack(sch, packed):
    """Four rows of 16 columns are packed at once."""
    j, k = sch.get_loops(packed)[-2:]
    k0, k1 = sch.split(k, [None, 4])
    j0, j1, j2 = sch.split(j, [None, 2, 16])
    sch.reorder(k0, j0, j1, k1, j2)
    sch.tensorize(k1, "example_pack_4x16")


def tiles(race, n):
    """Blocks of 32 x 32 results in the tile registers of AMX, over the whole of k."""
    alone = tiles_alone, 2 * 16 * 16 * 64 * 4 * ROUNDS
    sch = tir.Schedule(product(n))
    block = sch.get_block("product")
    packed = sch.reindex_cache_read(block, 1, "global", lambda i, j, k: (j // 32, k // 4, j % 32, k % 4))
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 32])
    j0, j1 = sch.split(j, [None, 32])
    k0, k1 = sch.split(k, [None, 64])
    sch.reorder(i0, j0, i1, j1, k0, k1)
    sch.tensorize(i1, x86.AMX_DOT_32x32_U8S8S32_INTRIN)
    race.measure("tiles of AMX", sch, alone=alone)

    # What is left is mostly the packing of B.
    pack(sch, packed)
    race.measure("B packed by an intrinsic of our own", sch, alone=alone)

    # Weights are packed once, when they are loaded.
    sch = tir.Schedule(product_of_packed(n))
    i, j, k = sch.get_loops("product")
    i0, i1 = sch.split(i, [None, 32])
    j0, j1 = sch.split(j, [None, 32])
    k0, k1 = sch.split(k, [None, 64])
    sch.reorder(i0, j0, i1, j1, k0, k1)
    sch.tensorize(i1, x86.AMX_DOT_32x32_U8S8S32_INTRIN)
    packed = race.b.reshape(n // 4, 4, n // 32, 32).transpose(2, 0, 3, 1)
    race.measure("B packed beforehand", sch, aligned(packed), alone)


def main(n):
    race = Race(n)
    loops(race, n)
    here = offered()
    if x86.VNNI_DOT_16x4_INTRIN in here:
        dot_products(race, n)
    if x86.AMX_DOT_32x32_U8S8S32_INTRIN in here:
        tiles(race, n)

    sch = tir.Schedule(product(n))
    try:
        sch.tensorize(sch.get_loops("product")[0], x86.VNNI_DOT_16x4_INTRIN)
    except lathe.ScheduleError as refusal:
        print(f"\nWhat is not what an intrinsic does is refused:\n  {refusal}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 256)
