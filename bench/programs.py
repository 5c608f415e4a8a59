"""./dev bench programs: register programs beside what a stack machine would run, and interpreted beside compiled.

A stack machine has no registers in its instructions: an operand is pushed by an instruction of its own, and a result is
popped into its place by another. At best a value that is used once needs neither. Both are counted on programs as they
are printed. Times are of whole runs by one thread, in turn, the best of all rounds.
"""

import argparse
import json
import re
import tempfile
import time
from pathlib import Path

import lathe
import numpy as np

from bench.compile_time import elementwise
from bench.language import text_table
from tests.models.builder import ModelBuilder
from tests.models.gpt2 import gpt2
from tests.models.mobilenet_v2 import mobilenet_v2
from tests.models.recurrent import gru_tagger
from tests.models.small import mlp
from tests.models.transformer import transformer

ROOT = Path(__file__).parent.parent
LETTERS = dict(re.findall(r'^LATHE_INSTRUCTION\((\w+), "([^"]*)"\)', (ROOT / "src/abi/instructions.def").read_text(),
                          re.MULTILINE))  # fmt: skip
WORD = re.compile(r'"[^"]*"|[()]|@\S+|(?:storage|constant|attributes|->) \w+|%\d+|_|-?\d+')
WRITTEN = "tsxqouv"
COLUMNS = ["program", "instructions", "stack", "at best", "bytes", "stack", "compiled", "interpreted", "share"]


def thin(rows, layers=60):
    """Products so small that a run is mostly what is between them."""
    model = ModelBuilder("thin", 3)
    x = model.input("x", [rows, 8])
    for _ in range(layers):
        x = model.node("MatMul", x, model.normal([8, 8], 0.3))
    model.output(x, "y", [rows, 8])
    return model.build()


# Name, model, and the sizes of symbols for the run.
PROGRAMS = {
    "products of 8x8, fixed": (lambda: thin(4), {}),
    "products of 8x8, any rows": (lambda: thin("rows"), {"rows": 4}),
    "elementwise chain": (lambda: elementwise(300), {}),
    "MLP, any batch": (lambda: mlp(), {"batch": 1}),
    "GRU tagger, any length": (lambda: gru_tagger(), {"batch": 1, "length": 9}),
    "transformer, any batch": (lambda: transformer(), {"batch": 1}),
    "GPT-2, narrow, with a cache": (
        lambda: gpt2(length=1, past=6, features=48, heads=4, layers=3, words=97, positions=32), {}),
    "MobileNetV2 at 32x32": (lambda: mobilenet_v2(1, 32, 32, multiplier=0.25, classes=10), {}),
}  # fmt: skip


def bytes_of_number(value):
    """In groups of seven bits, the sign in the last."""
    return 1 + (value.bit_length() if value >= 0 else (~value).bit_length()) // 7


class Counts:
    """What a program's instructions are, and what a stack machine's would be."""

    def __init__(self):
        self.instructions = self.stack = self.bytes = self.stack_bytes = 0
        self.reads, self.writes = {}, {}

    def add(self, function, words):
        self.instructions += 1
        self.bytes += 16 + 4 * len(words)
        pushes = pops = 0
        self.stack_bytes += 1
        for letter, word in words:
            if word.startswith("%"):
                number = int(word[1:])
                used = self.writes if letter in WRITTEN else self.reads
                used[function, number] = used.get((function, number), 0) + 1
                pushes += letter not in WRITTEN
                pops += letter in WRITTEN
                self.stack_bytes += 1 + bytes_of_number(number)
            elif letter in "SD":
                pushes += 1
                self.stack_bytes += 1 + (bytes_of_number(int(word)) if word != "_" else 1)
            else:
                self.stack_bytes += 2  # a number that the text does not always show
        self.stack += 1 + pushes + pops

    def at_best(self):
        """Without the values that one instruction makes and one uses: neither is popped nor pushed."""
        passed = sum(self.writes.get(register) == 1 for register, count in self.reads.items() if count == 1)
        return self.stack - 2 * passed


def operands(name, text):
    """Pairs of a letter and its word; counts are words of their own."""
    words = WORD.findall(text)
    found, at = [], 0
    letters = iter(LETTERS[name])
    for letter in letters:
        if letter != "#":
            found.append((letter, words[at]))
            at += 1
            continue
        letter = next(letters)
        end = words.index(")", at)
        found.append(("#", str(end - at - 1)))
        found += [(letter, word) for word in words[at + 1 : end]]
        at = end + 1
    return found


def count(text):
    """The counts of a program that `lathe compile -o NAME.program` has printed."""
    counts, function = Counts(), 0
    for line in text.splitlines():
        function += line.startswith("fn ")
        match = re.match(r" *\d+  (\w+) ?(.*)", line)
        if match and match[1] in LETTERS:
            counts.add(function, operands(match[1], match[2].partition("  ; ")[0]))
    return counts


def feeds_of(model, sizes):
    random = np.random.default_rng(5)
    kinds = {1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_}
    found = {}
    for value in model.graph.input:
        dims = [dim.dim_value or sizes[dim.dim_param] for dim in value.type.tensor_type.shape.dim]
        kind = kinds[value.type.tensor_type.elem_type]
        drawn = random.standard_normal(dims) if kind == np.float32 else random.integers(0, 2, dims)
        found[value.name] = drawn.astype(kind)
    return found


def times(modules, feeds, rounds):
    """Seconds of one run of each, the best of all rounds, in turn."""
    best = dict.fromkeys(modules, float("inf"))
    for _ in range(rounds):
        for name, module in modules.items():
            begin = time.perf_counter()
            for _ in range(20):
                module(*feeds.values())
            best[name] = min(best[name], (time.perf_counter() - begin) / 20)
    return best


def measured(rounds):
    """A row of figures for each program."""
    rows = []
    for name, (make, sizes) in PROGRAMS.items():
        model = make()
        content, feeds = model.SerializeToString(), feeds_of(model, sizes)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "it.program"
            compiled = lathe.compile(content, threads=1)
            compiled.save(path)
            counts = count(path.read_text())
        modules = {"compiled": compiled, "interpreted": lathe.compile(content, disabled_passes=["compile_program"],
                                                                      threads=1)}  # fmt: skip
        best = times(modules, feeds, rounds)
        rows.append({"program": name, "instructions": counts.instructions, "stack": counts.stack,
                     "stack_at_best": counts.at_best(), "bytes": counts.bytes, "stack_bytes": counts.stack_bytes,
                     **best})  # fmt: skip
    return rows


def cells(row):
    return [row["program"], str(row["instructions"]), str(row["stack"]), str(row["stack_at_best"]), str(row["bytes"]),
            str(row["stack_bytes"]), f"{row['compiled'] * 1e6:.1f} us", f"{row['interpreted'] * 1e6:.1f} us",
            f"{row['compiled'] / row['interpreted']:.2f}"]  # fmt: skip


def main(words):
    """The command."""
    parser = argparse.ArgumentParser(prog="./dev bench programs", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the figures as JSON")
    options = parser.parse_args(words)
    rows = measured(options.rounds)
    print(text_table([COLUMNS, *map(cells, rows)]))
    if options.save:
        options.save.write_text(json.dumps(rows, indent=1))
