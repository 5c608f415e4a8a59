"""Programs of every sort: those that the tests of passes are written in, what schedules make, models, parts of them."""

import functools
from pathlib import Path

import lathe
import onnx.backend.test
from lathe import te, tir
from lathe.script import tir as T
from tests.support import paths


@functools.cache
def of_passes():
    """The programs in the texts of the pass tests, by file and place."""
    found = {}
    for path in sorted((paths.ROOT / "src").rglob("*_test.txt")):
        pieces, lines = [], []
        for line in path.read_text().splitlines():
            if line.startswith(("# case:", "# becomes")):
                pieces.append(lines)
                lines = []
            else:
                lines.append(line)
        for number, piece in enumerate([*pieces, lines]):
            text = "\n".join(piece)
            if "def " not in text:
                continue
            try:
                found[f"{path.stem} {number}"] = lathe.script.from_source(text, check_well_formed=False)
            except lathe.Error:
                continue  # a refusal, or constants that lie elsewhere
    return found


@T.prim_func
def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]


def scheduled():
    """A product after several schedules, as modules."""
    schedule = tir.Schedule(main)
    yield schedule.mod
    block = schedule.get_block("C")
    i, j, k = schedule.get_loops(block)
    i0, i1 = schedule.split(i, [None, 8])
    j0, j1 = schedule.split(j, [None, 16])
    schedule.reorder(i0, j0, k, i1, j1)
    yield schedule.mod
    schedule.vectorize(j1)
    schedule.parallel(i0)
    schedule.unroll(i1)
    schedule.annotate(k, "note", [1, 2.5, "three"])
    yield schedule.mod
    schedule.decompose_reduction(block, k)
    yield schedule.mod
    tiled = tir.Schedule(main)
    tiled.cache_write(tiled.get_block("C"), 0, "local")
    tiled.cache_read(tiled.get_block("C"), 0, "shared")
    tiled.rfactor(tiled.split(tiled.get_loops("C")[2], [None, 4])[1], 0)
    yield tiled.mod
    n = te.var("n")
    a = te.placeholder((n, 4), "float32", "a")
    k = te.reduce_axis((0, 4), "k")
    yield lathe.IRModule({"main": te.create_prim_func([a, te.compute((n,), lambda i: te.sum(a[i, k], k), "b")])})


def models():
    """The models that the examples have, as modules."""
    for path in sorted((paths.ROOT / "examples").rglob("*.onnx")):
        yield lathe.import_onnx(str(path))


def of_the_suite():
    """Every third model of the ONNX suite's node tests that is read: nearly all operators."""
    folder = Path(onnx.backend.test.__file__).parent / "data" / "node"
    for path in sorted(folder.glob("*/model.onnx"))[::3]:
        try:
            yield lathe.import_onnx(str(path))
        except lathe.Error:
            continue
