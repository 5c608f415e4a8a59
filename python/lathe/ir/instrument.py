"""What may look on while passes run: PassContext(instruments=[...])."""

import time


class PassInstrument:
    """Hooks around passes; a class of one's own overrides some.

    should_run(mod, info) decides whether a pass runs: one that says False skips it, unless the context requires it.
    """

    def enter_pass_ctx(self):
        """The context is entered."""

    def exit_pass_ctx(self):
        """The context is left."""

    def should_run(self, mod, info):
        """Whether the pass runs."""
        return True

    def run_before_pass(self, mod, info):
        """The pass is about to run."""

    def run_after_pass(self, mod, info):
        """The pass has run."""


_HOOKS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")


def pass_instrument(pi_cls=None):
    """Makes an instrument of a class that has some of the hooks."""

    def decorate(cls):
        if not isinstance(cls, type):
            raise TypeError(f"pass_instrument decorates a class, not {type(cls).__name__}")
        own = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
        bases = tuple(base for base in cls.__bases__ if base is not object)
        if issubclass(cls, PassInstrument):
            return cls
        return type(cls.__name__, (*bases, PassInstrument), own)

    return decorate(pi_cls) if pi_cls is not None else decorate


@pass_instrument
class PassTimingInstrument:
    """How long each pass takes; render() gives the table of what ran in the last context."""

    def __init__(self):
        self._rows, self._running = [], []

    def enter_pass_ctx(self):
        """The table begins anew."""
        self._rows, self._running = [], []

    def run_before_pass(self, mod, info):
        """The clock starts."""
        self._rows.append([len(self._running), info.name, 0.0])
        self._running.append((self._rows[-1], time.perf_counter()))

    def run_after_pass(self, mod, info):
        """The clock stops."""
        row, began = self._running.pop()
        row[2] = time.perf_counter() - began

    def render(self):
        """One line a pass, those of a sequence under it."""
        return "".join(f"{'  ' * depth}{name}: {seconds * 1e6:.0f} us\n" for depth, name, seconds in self._rows)


class _Printing(PassInstrument):
    def _show(self, when, mod, info):
        print(f"# {when} {info.name}\n{mod.script()}", flush=True)


class PrintBeforeAll(_Printing):
    """Prints the program before each pass."""

    def run_before_pass(self, mod, info):
        """Prints the program."""
        self._show("before", mod, info)


class PrintAfterAll(_Printing):
    """Prints the program after each pass."""

    def run_after_pass(self, mod, info):
        """Prints the program."""
        self._show("after", mod, info)


class PassPrintingInstrument(_Printing):
    """Prints the program before and after the passes of these names."""

    def __init__(self, print_before_pass_names=(), print_after_pass_names=()):
        self.before, self.after = set(print_before_pass_names), set(print_after_pass_names)

    def run_before_pass(self, mod, info):
        """Prints the program where the pass is one of those."""
        if info.name in self.before:
            self._show("before", mod, info)

    def run_after_pass(self, mod, info):
        """Prints the program where the pass is one of those."""
        if info.name in self.after:
            self._show("after", mod, info)


__all__ = [
    "PassInstrument", "PassPrintingInstrument", "PassTimingInstrument", "PrintAfterAll", "PrintBeforeAll",
    "pass_instrument",
]  # fmt: skip
