"""Calls every public function of the language with what it does not take; run by test_misuse_sweep.py.

    python misuse_sweep.py SPACE SEED

Prints a line for each call before it is made, so that the last line of a process that dies names the culprit, and a
line `wrong: …` for each exception that no user should see.
"""

import inspect
import random
import signal
import sys

import numpy as np

import lathe
from lathe import te, tir, topi
from lathe.script import tir as T

REFUSALS = (
    lathe.Error, TypeError, ValueError, AttributeError, KeyError, IndexError, NotImplementedError, OverflowError,
    RecursionError, StopIteration, SyntaxError, OSError,
)  # fmt: skip
SECONDS = 10  # a call that takes longer hangs

# What ends, prints, waits or writes, by design.
LEFT_OUT = {"show", "vscode", "main"}


@T.prim_func
def product(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    for i, j, k in T.grid(8, 8, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]


def deep(levels):
    nested = []
    for _ in range(levels):
        nested = [nested]
    return nested


def strangers():
    """Values of every kind, wrong almost everywhere."""
    other = tir.Schedule(product)
    gone = tir.Schedule(product)
    loops = gone.get_loops("C")
    gone.fuse(*loops)
    expression = tir.Var("x", "int64")
    for _ in range(4000):
        expression = expression + 1
    cycle = []
    cycle.append(cycle)
    return [
        None, True, 0, 1, -1, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63), 2**64, 10**40, 1.5, float("nan"), float("inf"),
        -0.0, 1j, "", "C", "float32", "int32", "no such thing", "a\nb", "\x00", "é" * 100, b"bytes", [], [None], [1, 2],
        [0, -1], (1, "a"), {}, {"a": 1}, {1: None}, {3}, object(), object, len, lambda: None, lambda *a: a,
        lambda i, j: (j, i), lambda i: i // 0, np.float32(1), np.zeros((2, 2)), np.zeros(0, "int64"), np.array(["a"]),
        range(3), deep(100), cycle, expression, tir.Var("h", "handle"), tir.Var("x", "int64"), tir.IntImm("int32", 7),
        tir.FloatImm("float32", float("nan")), tir.StringImm("s"), tir.decl_buffer((8, 8), "float32"),
        tir.decl_buffer((), "int8"), tir.Evaluate(0), product, product.body, lathe.IRModule({"main": product}),
        te.placeholder((8, 8), name="p"), te.placeholder((0,), "int8", name="e"), te.reduce_axis((0, 8)),
        other.get_block("C"), other.get_loops("C")[0], loops[0], other, other.trace, tir.IndexMap.from_func(
            lambda i, j: (j, i)), lathe.target.Target("llvm"), NotImplemented, ..., slice(0, 4), type, Exception("e"),
    ]  # fmt: skip


def members(space, name, depth=1):
    """The public callables of a module or namespace, with their names."""
    for key in dir(space):
        if key.startswith("_") or key in LEFT_OUT:
            continue
        try:
            value = getattr(space, key)
        except AttributeError:
            continue
        if inspect.ismodule(value):
            if depth and value.__name__.startswith("lathe."):
                yield from members(value, f"{name}.{key}", depth - 1)
        elif callable(value) and value is not space:
            yield f"{name}.{key}", value


def schedule_methods():
    for key in dir(tir.Schedule):
        if key.startswith("_") or key in LEFT_OUT:
            continue

        def call(*args, key=key, **named):
            sch = tir.Schedule(product)
            # Mostly a loop or a block of its own comes first, so that what follows is looked at.
            own = {"loop": sch.get_loops("C")[0], "block": sch.get_block("C")}
            args = [own.get(a, a) if isinstance(a, str) else a for a in args]
            before = sch.mod
            member = getattr(sch, key)
            try:
                return member(*args, **named) if callable(member) else None
            except REFUSALS:
                assert sch.mod.same_as(before) or lathe.ir.structural_equal(sch.mod, before), "a refusal changed it"
                raise

        yield f"Schedule.{key}", call


def spoiled(*args):
    """What no user should see, for the sweep to find."""
    raise RuntimeError("bad optional access")


SPACES = {
    "tir": lambda: members(tir, "tir"),
    "te": lambda: members(te, "te"),
    "topi": lambda: members(topi, "topi"),
    "script": lambda: members(lathe.script, "script"),
    "T": lambda: members(T, "T", 0),
    "arith": lambda: members(lathe.arith, "arith"),
    "schedule": schedule_methods,
    "spoiled": lambda: [("spoiled", spoiled)],
}


def arguments(pick, pool, name):
    """Some lists of arguments, each once."""
    yield ()
    for _ in range(6 if name.startswith("Schedule.") else 3):
        count = pick.randint(1, 5)
        made = [pick.choice(pool) for _ in range(count)]
        if name.startswith("Schedule."):
            made[0] = pick.choice(["loop", "block", "C", made[0]])
        yield made
    yield [pick.choice(pool)] * 2


def too_long(*_):
    raise TimeoutError("the call takes too long")


def sweep(space, seed):
    signal.signal(signal.SIGALRM, too_long)
    pick, pool, calls = random.Random(seed), strangers(), 0
    for name, function in SPACES[space]():
        for args in arguments(pick, pool, name):
            shown = ", ".join(short(a) for a in args)
            print(f"{name}({shown})", flush=True)
            calls += 1
            signal.alarm(SECONDS)
            try:
                function(*args)
            except lathe.InternalError as error:
                print(f"wrong: {name}({shown}): {type(error).__name__}: {short(error)}", flush=True)
            except REFUSALS as error:
                if not str(error) and not isinstance(error, StopIteration):
                    print(f"wrong: {name}({shown}): {type(error).__name__} without a word", flush=True)
            except BaseException as error:  # noqa: BLE001: whatever else is what is looked for
                print(f"wrong: {name}({shown}): {type(error).__name__}: {short(error)}", flush=True)
            finally:
                signal.alarm(0)
    print(f"done: {calls} calls", flush=True)


def short(value):
    try:
        text = repr(value) if not isinstance(value, Exception) else str(value)
    except Exception as error:  # noqa: BLE001: a value that cannot be shown is one of them
        text = f"<{type(value).__name__}: {type(error).__name__}>"
    return " ".join(text.split())[:80]


if __name__ == "__main__":
    sweep(sys.argv[1], int(sys.argv[2]))
