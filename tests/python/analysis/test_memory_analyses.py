"""Which memory is touched where: host code and devices, copies, accesses out of bounds."""

import itertools
import math
import random
import types

import pytest

import lathe
from lathe import tir
from lathe.ir.structural import structural_equal
from lathe.script import from_source
from lathe.script import tir as T
from lathe.tir.analysis import identify_memcpy, oob_checker, verify_memory

# What the texts of random programs call, for Python to evaluate them.
SCALARS = {"T": types.SimpleNamespace(min=min, max=max, if_then_else=lambda c, a, b: a if c else b)}


def function(parameters, body):
    text = f"@T.prim_func\ndef main({parameters}):\n" + "".join(f"    {line}\n" for line in body)
    return from_source(text)


# ---- memory of devices ----

LOOP = ["for i in range(8):", "    B[i] = A[i]"]
THREADS = ['for i in T.thread_binding(8, thread="threadIdx.x"):', "    B[i] = A[i]"]
LAUNCH = ['with T.launch_thread("blockIdx.x", 8) as bx:', "    B[bx] = A[bx]"]
BLOCK = [*THREADS[:1], '    with T.block("b"):', "        vi = T.axis.spatial(8, i)", "        B[vi] = A[vi]"]
SHARED = ['S = T.alloc_buffer((8,), "float32", scope="shared")', "for i in range(8):", "    S[i] = T.float32(1)"]
GLOBAL = ['S = T.alloc_buffer((8,), "float32")', "for i in range(8):", "    S[i] = T.float32(1)"]
MIXED = [*THREADS, "B[0] = T.float32(0)"]
EXTENT = ['for i in T.thread_binding(I[0], thread="threadIdx.x"):', "    B[i] = A[i]"]
CONDITION = ["if A[0] > T.float32(0):", *[f"    {line}" for line in THREADS]]
VIRTUAL = ['for i in T.thread_binding(8, thread="vthread.x"):', "    B[i] = A[i]"]
ADDRESS = ['T.evaluate(T.call_extern("int32", "launch", T.address_of(A[0]), T.address_of(B[0])))']
PROGRAMS = [(LOOP, False), (THREADS, True), (LAUNCH, True), (BLOCK, True), (SHARED, True), (GLOBAL, False),
            (MIXED, False), (EXTENT, False), (CONDITION, False), (VIRTUAL, False), (ADDRESS, True)]  # fmt: skip
OVER = 'A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), I: T.Buffer((1,), "int64")'


@pytest.mark.parametrize("body, legal", PROGRAMS)
def test_memory_of_devices(body, legal):
    f = function(OVER, body)
    for target in ("cuda", "cuda -arch=sm_75", "opencl", "webgpu", "metal", "rocm", "vulkan", {"kind": "cuda"}):
        assert verify_memory(f.with_attr("target", target)) == legal
    assert verify_memory(f.with_attr("target", lathe.target.Target("cuda"))) == legal
    for target in ("llvm", "llvm -mcpu=x86-64-v3", {"kind": "llvm"}, lathe.target.Target("llvm")):
        assert verify_memory(f.with_attr("target", target))
    assert verify_memory(f)
    module = tir.transform.BindTarget("cuda")(lathe.IRModule({"main": f}))
    assert verify_memory(module["main"]) == legal


# ---- copies ----


def ranges(region, values):
    """The region's (first, end) in each dimension, with loop variables as in `values`."""

    def number(e):
        free = {v: values[v.name] for v in tir.analysis.undefined_vars(e)}
        return int(lathe.arith.Analyzer().simplify(tir.stmt_functor.substitute(e, free)).value)

    return [(number(r.min), number(r.min) + number(r.extent)) for r in region.region]


def flat(index, shape):
    offset = 0
    for i, extent in zip(index, shape, strict=True):
        offset = offset * extent + i
    return offset


def is_copy(pairs, shapes, boxes):
    """Whether (source index, destination index) pairs are a copy of one box to the other, contiguous in both."""
    offsets = [[flat(index, shape) for index in side] for side, shape in zip(zip(*pairs), shapes)]
    for side, offset, box in zip(zip(*pairs), offsets, boxes):
        if sorted(offset) != list(range(min(offset), min(offset) + len(pairs))):
            return False
        if set(side) != set(itertools.product(*(range(*r) for r in box))):
            return False
    return len({source - destination for source, destination in zip(*offsets)}) == 1


def hull(indices):
    return [(min(column), max(column) + 1) for column in zip(*indices)]


class Nest:
    """A random nest like a copy, as text and as what each iteration does."""

    def __init__(self, seed):
        self.random = pick = random.Random(seed)
        self.loops = [(name, pick.choice([0, 0, 0, 1, -2]), pick.randint(1, 5)) for name in "ijk"[: pick.randint(1, 3)]]
        self.counts_down = False
        order = list(self.loops)
        if pick.random() < 0.2:
            pick.shuffle(order)
        parts = [name if first == 0 else f"({name} - {first})" for name, first, _ in order]
        one = self.indices(parts, [n for _, _, n in order])
        other = one if pick.random() < 0.4 else self.indices(parts, [n for _, _, n in order])
        self.sides = [[self.disturbed(i) for i in one], [self.disturbed(i) for i in other]]
        if pick.random() < 0.1:
            self.sides[0].reverse()
        self.condition = pick.choice(["", "", "", "", "", "i < 3"])
        self.pairs = []
        ranges_ = [range(first, first + n) for _, first, n in self.loops]
        for point in itertools.product(*ranges_):
            at = dict(zip([name for name, _, _ in self.loops], point))
            if not self.condition or eval(self.condition, SCALARS, at):
                self.pairs.append(tuple(tuple(eval(e, SCALARS, at) for e in side) for side in self.sides))
        self.shapes = []
        for side in zip(*self.pairs) if self.pairs else []:
            slack = [pick.choice([0, 0, 0, 1]) for _ in side[0]]
            self.shapes.append([end + more for (_, end), more in zip(hull(side), slack)])
        self.legal = bool(self.pairs) and all(i >= 0 for pair in self.pairs for index in pair for i in index)

    def indices(self, parts, extents):
        """The loops one a dimension, or fused and split again."""
        pick = self.random
        if pick.random() < 0.4:
            return list(parts)
        total, fused = math.prod(extents), "0"
        for part, n in zip(parts, extents):
            fused = part if fused == "0" else f"({fused} * {n} + {part})"
        widths = [w for w in range(1, total + 1) if total % w == 0]
        width = pick.choice(widths) if pick.random() < 0.8 else pick.randint(1, total)
        return [fused] if pick.random() < 0.4 else [f"{fused} // {width}", f"{fused} % {width}"]

    def disturbed(self, index):
        roll = self.random.random()
        if roll < 0.06:
            return f"({index}) * 2"
        if roll < 0.1:
            self.counts_down = True
            return f"30 - ({index})"
        if roll < 0.3:
            return f"{index} + {self.random.randint(1, 3)}"
        return "2" if roll < 0.32 else index

    def program(self):
        a, b = self.shapes
        lines = [f"{'    ' * d}for {name} in T.serial({first}, {first + n}):"
                 for d, (name, first, n) in enumerate(self.loops)]  # fmt: skip
        if self.condition:
            lines.append(f"{'    ' * len(lines)}if {self.condition}:")
        source, destination = (", ".join(side) for side in self.sides)
        lines.append(f"{'    ' * len(lines)}B[{destination}] = A[{source}]")
        return function(f'A: T.Buffer({tuple(a)}, "float32"), B: T.Buffer({tuple(b)}, "float32")', lines)

    def check(self, found):
        """That what was found are copies: of the innermost loops that have as many iterations."""
        assert len(found) <= 1
        for source, destination in found:
            names = [name for name, _, _ in self.loops]
            inner = len(names)
            volume = None
            for values in itertools.product(*(range(first, first + n) for _, first, n in self.loops)):
                boxes = [ranges(region, dict(zip(names, values))) for region in (source, destination)]
                volume = math.prod(end - first for first, end in boxes[0])
                break
            while inner and math.prod(n for _, _, n in self.loops[inner - 1 :]) <= volume:
                inner -= 1
            outer = [range(first, first + n) for _, first, n in self.loops[:inner]]
            moving = [range(first, first + n) for _, first, n in self.loops[inner:]]
            assert math.prod(map(len, moving)) == volume
            for fixed in itertools.product(*outer):
                at = dict(zip(names, fixed))
                boxes = [ranges(region, at) for region in (source, destination)]
                pairs = []
                for rest in itertools.product(*moving):
                    at = dict(zip(names, [*fixed, *rest]))
                    assert not self.condition or eval(self.condition, SCALARS, at)
                    pairs.append(tuple(tuple(eval(e, SCALARS, at) for e in side) for side in self.sides))
                assert is_copy(pairs, self.shapes, boxes)
            return inner == 0
        return False


def test_copies_are_what_iterations_say():
    """Of 1500 random nests none is taken for a copy that is none; of 662 copies those are left that count down."""
    copies, found = 0, 0
    for seed in range(1500):
        nest = Nest(seed)
        if not nest.legal:
            continue
        result = nest.check(identify_memcpy(nest.program().body))
        whole = len(nest.pairs) == math.prod(n for _, _, n in nest.loops)
        truth = whole and is_copy(nest.pairs, nest.shapes, [hull(side) for side in zip(*nest.pairs)])
        assert truth or not result, nest.sides
        copies += truth
        found += result
        assert result or not truth or nest.counts_down, nest.sides
    assert copies > 500
    assert found > 0.99 * copies


def test_copies_whose_extents_are_symbols():
    head = ["n = T.int64()", "m = T.int64()", 'A = T.match_buffer(a, (n, m), "float32")',
            'B = T.match_buffer(b, (n, m), "float32")']  # fmt: skip
    for lines, text in [
        (["for i, j in T.grid(n, m):", "    B[i, j] = A[i, j]"], "0:n, 0:m"),
        (["for j, i in T.grid(m, n):", "    B[i, j] = A[i, j]"], "0:n, 0:m"),
        (["for j in range(m):", "    B[3, j] = A[3, j]"], "3:4, 0:m"),
        (["for i, j in T.grid(n, m):", "    B[i, j] = A[j, i]"], None),
        (["for i in range(n):", "    B[i, 0] = A[i, 0]"], None),
        (["for k in range(n * m):", "    B[k // m, k % m] = A[k // m, k % m]"], None),  # m may be 0
    ]:
        found = identify_memcpy(function("a: T.handle, b: T.handle", head + lines).body)
        parts = [[", ".join(f"{r.min}:{lathe.arith.Analyzer().simplify(r.min + r.extent)}" for r in region.region)
                  for region in pair] for pair in found]  # fmt: skip
        assert [[part.replace("T.int64(", "").replace(")", "") for part in pair] for pair in parts] == (
            [[text, text]] if text else [])  # fmt: skip


def test_copies_that_are_no_copies():
    over = 'A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float16")'
    for store in ["A[i + 4] = A[i]", "B[i] = A[i]"]:
        [[source, destination]] = identify_memcpy(function(over, ["for i in range(4):", f"    {store}"]).body)
        assert source.buffer.name == "A" and destination.buffer.name == store[0]
    for store in ["A[i + 1] = A[i]", 'B[i] = T.Cast("float32", C[i])', "B[i] = A[i] + A[i]", "B[i] = T.float32(1)",
                  "B[i] = A[3 - i]", "B[i] = A[i // 2]", "B[3] = A[3]"]:  # fmt: skip
        assert identify_memcpy(function(over, ["for i in range(4):", f"    {store}"]).body) == []


# ---- out of bounds ----


class Accesses:
    """A random nest with a store and a load under conditions, as text and as whether it stays inside."""

    def __init__(self, seed):
        self.random = pick = random.Random(seed)
        self.names = list("ijk"[: pick.randint(1, 3)])
        self.domain = {name: (pick.choice([0, 0, 1, -1]), pick.randint(0, 6)) for name in self.names}
        self.ranks = pick.choice([1, 2])
        self.store = [self.index() for _ in range(self.ranks)]
        self.load = [self.index() for _ in range(self.ranks)]
        self.outer = pick.choice(["True", self.condition(), self.condition()])
        self.inner = pick.choice(["True", self.condition()])
        self.as_block, self.as_let = pick.random() < 0.3, pick.random() < 0.3
        stores, loads = [], []
        for point in itertools.product(*(range(first, first + n) for first, n in self.domain.values())):
            at = dict(zip(self.names, point))
            if eval(self.outer, SCALARS, at):
                stores.append([eval(e, SCALARS, at) for e in self.store])
                if eval(self.inner, SCALARS, at):
                    loads.append([eval(e, SCALARS, at) for e in self.load])
        # Extents around what would do, so that about half of the programs are wrong.
        self.shapes = [[max([1, *(max(i[d] for i in used) + pick.choice([-1, 0, 1, 1, 1]) for _ in used[:1])])
                        for d in range(self.ranks)] for used in (stores, loads)]  # fmt: skip
        self.wrong = any(not 0 <= i < extent for used, shape in zip((stores, loads), self.shapes)
                         for index in used for i, extent in zip(index, shape))  # fmt: skip

    def index(self):
        pick, name, other = self.random, self.random.choice(self.names), self.random.choice(self.names)
        return pick.choice([name, f"{name} + {pick.randint(0, 2)}", f"{name} * {pick.randint(2, 4)} + {other}",
                            f"({name} * 3 + {other} + 6) // {pick.randint(2, 4)}",
                            f"({name} + {other} * 2) % {pick.randint(2, 6)}", f"5 - {name}",
                            f"T.min({name}, {pick.randint(1, 4)})", f"T.max({name} - {other}, 0)", "3"])  # fmt: skip

    def condition(self):
        pick, name, other = self.random, self.random.choice(self.names), self.random.choice(self.names)
        return pick.choice([f"{name} < {pick.randint(0, 5)}", f"{name} + {other} < {pick.randint(1, 8)}",
                            f"{name} % 2 == 0", f"{name} >= 1", f"{name} > {other}"])  # fmt: skip

    def program(self):
        lines = []
        for name, (first, n) in self.domain.items():
            lines.append(f"{'    ' * len(lines)}for {name} in T.serial({first}, {first + n}):")
        indent = "    " * len(lines)
        value = f"T.if_then_else({self.inner}, B[{', '.join(self.load)}], T.float32(0))"
        value = value if self.inner != "True" else f"B[{', '.join(self.load)}]"
        at = list(self.store)
        if self.as_block:
            lines.append(f'{indent}with T.block("b"):')
            indent += "    "
            first, n = self.domain[self.names[0]]
            lines.append(f"{indent}v = T.axis.spatial(({first}, {first + n}), {self.names[0]})")
            at = ["v" if e == self.names[0] else e for e in at]
            if self.outer != "True":
                lines.append(f"{indent}T.where({self.outer})")
        elif self.outer != "True":
            lines.append(f"{indent}if {self.outer}:")
            indent += "    "
        if self.as_let:
            lines.append(f"{indent}w: T.int64 = {at[0]}")
            at[0] = "w"
        lines.append(f"{indent}A[{', '.join(at)}] = {value}")
        a, b = map(tuple, self.shapes)
        return function(f'A: T.Buffer({a}, "float32"), B: T.Buffer({b}, "float32")', lines)


def test_bounds_are_what_iterations_say():
    """Of 1500 random nests none is refused that stays inside, and all 684 are that do not."""
    wrong, found = 0, 0
    check = oob_checker()
    for seed in range(1500):
        accesses = Accesses(seed)
        module = lathe.IRModule({"main": accesses.program()})
        try:
            check(module)
        except lathe.CompileError as error:
            assert accesses.wrong, str(error)
            found += 1
        wrong += accesses.wrong
    assert wrong > 500
    assert found > 0.99 * wrong


def test_bounds_are_told():
    @T.prim_func
    def shifted(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(i >= 1)
                B[vi, vj] = A[vi - 1, vj + 1]

    with pytest.raises(lathe.CompileError, match="index 1 is j \\+ 1, from 1 to 4, and the extent is 4") as raised:
        oob_checker()(lathe.IRModule({"main": shifted}))
    [told] = raised.value.diagnostics
    assert told.code == "tir-access-out-of-bounds" and "test_memory_analyses.py:" in told.place
    assert "a load of 'A' is out of bounds" in told.message
    assert told.notes == ["it is 4 where j = 3", "in function 'main'"]


def test_bounds_that_symbols_decide():
    parameters = 'a: T.handle, B: T.Buffer((8,), "float32"), m: T.int64'
    head = ["n = T.int64()", 'A = T.match_buffer(a, (n,), "float32")']
    for lines, wrong in [
        (["for i in range(n):", "    A[i] = T.float32(0)"], False),
        (["for i in range(n + 1):", "    A[i] = T.float32(0)"], True),  # whatever n is
        (["for i in range(n):", "    A[i + 1] = T.float32(0)"], True),  # wherever something runs
        (["for i in range(n):", "    A[n - 1 - i] = T.float32(0)"], False),
        (["for i in range(8):", "    A[i] = B[i]"], False),  # for some n
        (["B[m] = T.float32(0)"], False),  # for some m
        (["if m > 8:", "    B[m] = T.float32(0)"], True),
        (["if m >= 0:", "    if m < 8:", "        B[m] = T.float32(0)"], False),
        (["for i in range(n):", "    if i + 1 < n:", "        A[i + 1] = T.float32(0)"], False),
        (["for i, j in T.grid(n, m):", "    A[i * m + j] = T.float32(0)"], False),  # a product is not decided
    ]:
        module = lathe.IRModule({"main": function(parameters, head + lines)})
        if wrong:
            with pytest.raises(lathe.CompileError, match="out of bounds"):
                oob_checker()(module)
        else:
            made = lathe.transform.Sequential([oob_checker()])(module)
            assert structural_equal(made["main"], module["main"])
