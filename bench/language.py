"""./dev bench language: how quick tensor programs are as a language, in processor time of this process.

Lines a second from a text and through decorators, the time of a proved primitive on a function of twenty blocks, and of
a scheduled matrix product from Python to something that can be called. `--module tvm` measures the peer by the same
programs, in an environment that has it.
"""

import argparse
import gc
import importlib
import json
import linecache
import statistics
import time

AIMS = {
    "lines a second from text": 300_000, "lines a second through decorators": 10_000,
    "a primitive, median, ms": 1.0, "a primitive, 95th percentile, ms": 10.0, "a matrix product to callable, ms": 50.0,
}  # fmt: skip

FUNCTION = '''
    @T.prim_func
    def f{n}(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"),
            C: T.Buffer((128, 128), "float32")):
        D = T.alloc_buffer((128, 128), "float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(A[vi, vk], B[vk, vj])
                T.writes(D[vi, vj])
                with T.init():
                    D[vi, vj] = T.float32(0)
                D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vk, vj]
        for i0, j0, i1, j1 in T.grid(16, 16, 8, 8):
            with T.block("rectified"):
                vi = T.axis.spatial(128, i0 * 8 + i1)
                vj = T.axis.spatial(128, j0 * 8 + j1)
                T.reads(D[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = T.max(D[vi, vj], T.float32(0)) + T.exp(D[vi, vj])
'''


# How packages that renamed them write what differs in the programs here.
RENAMED = {
    "T.block(": "T.sblock(", "T.alloc_buffer(": "T.sblock_alloc_buffer(",
    "@T.prim_func\n": "@T.prim_func(s_tir=True)\n",
}  # fmt: skip


def spelled(tvm, text):
    """A program in the words of the package that is measured."""
    if hasattr(script_of(tvm), "block"):
        return text
    for ours, theirs in RENAMED.items():
        text = text.replace(ours, theirs)
    return text


def script_of(tvm):
    """The namespace T of the package."""
    script = importlib.import_module(tvm.__name__ + ".script")
    return script.tir if hasattr(script, "tir") else script.tirx


def schedule_of(tvm, program):
    """A schedule of the program."""
    return (tvm.tir if hasattr(tvm, "tir") else tvm.s_tir).Schedule(program)


def block_of(schedule, name):
    """A block of that name."""
    return (schedule.get_block if hasattr(schedule, "get_block") else schedule.get_sblock)(name)


def spent(step, rounds):
    """The least processor time of some rounds, in seconds: what others do on the machine only adds to it."""
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        begin = time.process_time()
        kept = step()
        best = min(best, time.process_time() - begin)
        del kept
    return best


def lines_from_text(tvm, functions, rounds):
    """Lines a second of a text that is parsed and checked."""
    text = spelled(tvm, "@I.ir_module\nclass Module:" + "".join(FUNCTION.format(n=n) for n in range(functions)))
    return text.count("\n") / spent(lambda: tvm.script.from_source(text), rounds)


def lines_through_decorators(tvm, functions, rounds):
    """Lines a second of functions that Python runs the decorator of, one by one."""
    text = spelled(tvm, "".join(FUNCTION.format(n=n).replace("\n    ", "\n") for n in range(functions)))
    file = "<programs of bench.language>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    code = compile(text, file, "exec")
    return text.count("\n") / spent(lambda: exec(code, {"T": script_of(tvm)}), rounds)  # noqa: S102


def twenty_blocks():
    """A text of element-wise stages, one after the other, and a sum at the end."""
    lines = ['@T.prim_func\ndef main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64,), "float32")):']
    lines += [f'    S{n} = T.alloc_buffer((64, 64), "float32")' for n in range(19)]
    for n in range(19):
        source = f"S{n - 1}" if n else "A"
        lines += [
            "    for i, j in T.grid(64, 64):", f'        with T.block("stage{n}"):',
            '            vi, vj = T.axis.remap("SS", [i, j])',
            f"            S{n}[vi, vj] = {source}[vi, vj] * T.float32({n + 2})",
        ]  # fmt: skip
    lines += [
        "    for i, j in T.grid(64, 64):", '        with T.block("total"):',
        '            vi, vj = T.axis.remap("SR", [i, j])', "            with T.init():",
        "                B[vi] = T.float32(0)", "            B[vi] = B[vi] + S18[vi, vj]",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def primitive_times(tvm, rounds):
    """Seconds of each step of a schedule that takes the twenty blocks apart."""
    program = tvm.script.from_source(spelled(tvm, twenty_blocks()))
    times = []

    def timed(step, *arguments, **options):
        begin = time.process_time()
        made = step(*arguments, **options)
        times.append(time.process_time() - begin)
        return made

    for _ in range(rounds):
        schedule = schedule_of(tvm, program)
        for n in range(19):
            i, j = timed(schedule.get_loops, block_of(schedule, f"stage{n}"))
            outer, inner = timed(schedule.split, i, factors=[None, 8])
            timed(schedule.reorder, inner, outer)
            timed(schedule.parallel, inner)
            left, right = timed(schedule.split, j, factors=[16, 4])
            timed(schedule.vectorize, right)
        block = block_of(schedule, "total")
        i, j = schedule.get_loops(block)
        timed(schedule.decompose_reduction, block, j)
        for n in range(0, 18, 3):
            timed(schedule.compute_inline, block_of(schedule, f"stage{n}"))
        timed(schedule.cache_read, block_of(schedule, "stage17"), 0, "global")
        timed(schedule.cache_write, block_of(schedule, "stage14"), 0, "global")
    return times


def product_to_callable(tvm, rounds):
    """Seconds from the text of a product of 128-cubed to a module that can be called, its schedule between."""
    text = '''
@T.prim_func
def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):
    for i, j, k in T.grid(128, 128, 128):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
'''

    def made():
        schedule = schedule_of(tvm, tvm.script.from_source(spelled(tvm, text)))
        block = block_of(schedule, "product")
        i, j, k = schedule.get_loops(block)
        i0, i1 = schedule.split(i, factors=[None, 8])
        j0, j1 = schedule.split(j, factors=[None, 16])
        k0, k1 = schedule.split(k, factors=[None, 4])
        schedule.reorder(i0, j0, k0, k1, i1, j1)
        schedule.vectorize(j1)
        schedule.unroll(i1)
        schedule.decompose_reduction(block, k0)
        return (tvm.build if hasattr(tvm, "build") else tvm.compile)(schedule.mod, target="llvm")

    return spent(made, rounds)


def measured(tvm, quick=False):
    """The figures, by the names of the aims."""
    rounds, functions = (2, 50) if quick else (7, 400)
    times = sorted(primitive_times(tvm, 1 if quick else 5))
    return {
        "lines a second from text": lines_from_text(tvm, functions, rounds),
        "lines a second through decorators": lines_through_decorators(tvm, functions // 4, rounds),
        "a primitive, median, ms": statistics.median(times) * 1e3,
        "a primitive, 95th percentile, ms": times[len(times) * 95 // 100] * 1e3,
        "a matrix product to callable, ms": product_to_callable(tvm, rounds) * 1e3,
    }


def table(columns):
    """Figures side by side: columns are (title, figures)."""
    rows = [["", "aim", *(title for title, _ in columns)]]
    for name, aim in AIMS.items():
        rows.append([name, f"{aim:,.4g}", *(f"{found[name]:,.4g}" if name in found else "" for _, found in columns)])
    return text_table(rows)


def text_table(rows):
    """Rows of cells as lines: the first column to the left, the others to the right."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))])
        for row in rows
    )


def main(words):
    """The command."""
    parser = argparse.ArgumentParser(prog="./dev bench language", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small programs, few rounds")
    parser.add_argument("--module", default="lathe", help="the package that is measured (default: lathe)")
    parser.add_argument("--save", metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--beside", metavar="FILE", help="figures that --save wrote, as another column")
    options = parser.parse_args(words)
    tvm = importlib.import_module(options.module)
    found = measured(tvm, options.quick)
    columns = [(f"{options.module} {tvm.__version__}", found)]
    if options.beside:
        with open(options.beside) as file:
            other = json.load(file)
        columns.append((other["package"], other["figures"]))
    print(table(columns))
    if options.save:
        with open(options.save, "w") as file:
            json.dump({"package": columns[0][0], "figures": found}, file, indent=1)
    return found


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
