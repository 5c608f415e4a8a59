"""Calls every public function of the language with what it does not take; run by test_sweep.py.

    python -m tests.python.misuse.sweep SPACE SEED [ROUNDS]

Prints a line for each call before it is made, so that the last line of a process that dies names the culprit, and a
line `wrong: …` for each exception that no user should see. The same SPACE and SEED make the same calls.
"""

import faulthandler
import os
import random
import resource
import signal
import sys
import tempfile
import time
import warnings

import lathe
from tests.python.misuse import subjects
from tests.python.misuse.strangers import parameters_of, plausible, strangers

REFUSALS = (
    lathe.Error, TypeError, ValueError, AttributeError, KeyError, IndexError, NotImplementedError, OverflowError,
    RecursionError, StopIteration, SyntaxError, OSError, ZeroDivisionError, BufferError,
)  # fmt: skip
SECONDS = 10  # a call that takes longer hangs
MEMORY = 4 << 30  # more than the process has at the beginning, and a call asks for too much


class Hangs(BaseException):
    """A call takes too long."""


def too_long(*_):
    raise Hangs


def spoiled(*args):
    """What no user should see, for the sweep to find."""
    raise RuntimeError("bad optional access")


def endless(*args):
    """What does not end."""
    while True:
        pass


def stuck(*args):
    """What looks for no signals."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    time.sleep(1000)


def bounded():
    """Whether the sweep sets itself a bound on memory: the sanitizers reserve terabytes."""
    return "LD_PRELOAD" not in os.environ


def greedy(*args):
    """What asks for all memory."""
    if not bounded():
        raise MemoryError("a sanitizer reports who asks for as much")
    return bytes(2 * MEMORY)


def dead(*args):
    """The end of the process."""
    os.abort()


class Sweep:
    """The calls of one space."""

    def __init__(self, space, seed):
        self.space, self.pick, self.calls = space, random.Random(seed), 0
        self.seconds = 2 if space in OF_THE_SWEEP else SECONDS
        self.pool = strangers()
        self.fitting = plausible(self.pick, self.pool)

    def run(self, name, function, args, named=None):
        """One call."""
        named = named or {}
        shown = ", ".join([short(a) for a in args] + [f"{key}={short(a)}" for key, a in named.items()])
        print(f"{name}({shown})", flush=True)
        self.calls += 1
        signal.alarm(self.seconds)
        faulthandler.dump_traceback_later(2 * self.seconds, exit=True)  # what does not look for signals
        wrong = None
        try:
            function(*args, **named)
        except lathe.InternalError as error:
            wrong = f"{type(error).__name__}: {short(error)}"
        except REFUSALS as error:
            if not str(error) and not isinstance(error, StopIteration):
                wrong = f"{type(error).__name__} without a word"
        except MemoryError as error:
            if not type(error).__module__.startswith("numpy"):
                wrong = "memory without bound"
        except Hangs:
            wrong = "takes too long"
        except AssertionError as error:
            wrong = None if "assert_" in name else f"{type(error).__name__}: {short(error)}"
        except BaseException as error:  # noqa: BLE001: whatever else is what is looked for
            wrong = f"{type(error).__name__}: {short(error)}"
        finally:
            signal.alarm(0)
            faulthandler.cancel_dump_traceback_later()
        if wrong:
            print(f"wrong: {name}({shown}): {wrong}", flush=True)

    def fits(self, parameter):
        """A value for a parameter: often one that it may well take."""
        known = self.fitting.get(parameter.name, [])
        if self.space in ("schedule", "spoiled"):
            known = {
                "loop": ["loop", "inner"], "block": ["block", "C", "B"], "block_or_loop": ["block", "loop"],
                "target": ["block", "loop"], "ordered_loops": ["loop", "inner"], "loops": ["loop", "inner"],
                "read_buffer_index": [0, 1, "A"], "write_buffer_index": [0], "buffer_index": [0],
                "storage_scope": ["global", "local"], "scope": ["local"], "buffer": [("write", 0), ("read", 0), "A"],
                "index_map": [lambda i, j: (j, i), lambda *i: i, "lambda i, j: (i, j)"], "name": ["C", "B", "rows"],
                "factors": [[None, 2], [2, None], [2, 4], [2**40, None]], "n": [2], "axis": [0], "factor_axis": [0, -1],
            }.get(parameter.name, known)  # fmt: skip
        return self.pick.choice(known if known and self.pick.random() < 0.7 else self.pool)

    def arguments(self, function, rounds):
        """Some lists of arguments, by place and by name."""
        yield [], {}
        for _ in range(2 * rounds):
            yield [self.pick.choice(self.pool) for _ in range(self.pick.randint(1, 5))], {}
        parameters = parameters_of(function)
        if parameters is None:
            return
        for _ in range(4 * rounds):
            args, named = [], {}
            for one in parameters:
                if one.kind is one.VAR_POSITIONAL:
                    args.extend(self.fits(one) for _ in range(self.pick.randint(0, 3)))
                elif one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
                    if one.default is not one.empty and self.pick.random() < 0.5:
                        break
                    args.append(self.fits(one))
            for one in parameters:
                if one.kind is one.KEYWORD_ONLY and self.pick.random() < 0.5:
                    named[one.name] = self.fits(one)
            yield args, named

    def calls_of(self, functions, rounds):
        """All functions of a space."""
        for name, function in functions:
            for args, named in self.arguments(function, rounds):
                self.run(name, function, args, named)

    def programs(self, count):
        """Programs in which something is replaced, and what is done to them."""
        for number, function in enumerate(subjects.programs(self.pick, self.pool)):
            if number == count:
                return
            made = []
            self.run(f"change {number}", lambda: made.append(subjects.changed(self.pick, function, self.pool)), [])
            for use_number, use in enumerate(subjects.uses_of(made[0]) if made else ()):
                self.run(f"program {number}, use {use_number}", use, [])


def short(value):
    """A value on a line."""
    try:
        text = repr(value) if not isinstance(value, Exception) else str(value)
    except Exception as error:  # noqa: BLE001: a value that cannot be shown is one of them
        text = f"<{type(value).__name__}: {type(error).__name__}>"
    return " ".join(text.split())[:80].encode("ascii", "backslashreplace").decode()


OF_THE_SWEEP = {made.__name__: made for made in (spoiled, endless, stuck, greedy, dead)}


def main(space, seed, rounds=1):
    """Sweeps a space."""
    signal.signal(signal.SIGALRM, too_long)
    warnings.simplefilter("ignore")
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    if bounded():
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    sys.setrecursionlimit(5000)
    sweep = Sweep(space, seed)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # some calls write files
        os.environ["LATHE_REPRODUCER_DIR"] = folder
        if space == "programs":
            sweep.programs(12 * rounds)
        elif space in OF_THE_SWEEP:
            sweep.run(space, OF_THE_SWEEP[space], [])
        else:
            sweep.calls_of(subjects.SPACES[space](), rounds)
        os.chdir("/")
    print(f"done: {sweep.calls} calls", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *map(int, sys.argv[3:]))
