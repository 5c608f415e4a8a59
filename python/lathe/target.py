"""Targets by name, and what their devices can do."""

import json
import re
import threading

from . import _lathe


def target_name(target):
    """The target as the compiler names it; the vocabulary calls this machine "llvm", with what differs as options."""
    if target is None:
        return "native"
    name = target if isinstance(target, str) else getattr(target, "name", None) or str(target)
    kind, *words = name.split() or [""]
    if kind != "llvm":
        return name
    options = dict(re.match(r"--?([^=]+)=?(.*)", word).groups() for word in words if word.startswith("-"))
    # How many cores and which libraries there are says the machine; what is not an option goes on, to be refused.
    kept = [f"-{name}={options[name]}" for name in ("mcpu", "mattr") if options.get(name, "native") != "native"]
    known = {"mcpu", "mattr", "mtriple", "num-cores", "keys", "libs", "device", "host"}
    kept += [word for word in words if not word.startswith("-") or re.sub("^--?|=.*", "", word) not in known]
    if "mtriple" not in options and not kept:
        return "native"
    if "mtriple" not in options and "mcpu" not in options:
        return " ".join(["native", *kept])
    triple = options.get("mtriple") or json.loads(_lathe.describe_target("native"))["triple"]
    return " ".join([triple, *kept])


_entered = threading.local()  # targets of `with`, outermost first, of this thread


class Target:
    """A device that code is generated for: "llvm" for this machine, or what `lathe compile --target` takes."""

    def __init__(self, target, host=None):
        self.name = target if isinstance(target, str) else dict(target)["kind"]
        self.host = host

    @property
    def kind(self):
        """The kind of code."""
        return self.name.split()[0]

    @property
    def attrs(self):
        """What the device is, as of the target file: triple, features (LLVM's names), vector_bits and vector_registers,
        cores, caches (level, bytes, line_bytes, shared_by). Raises lathe.Error where no target has that name."""
        return json.loads(_lathe.describe_target(target_name(self.name)))

    @staticmethod
    def current(allow_none=True):
        """The target of the innermost `with target:` around, or None."""
        around = getattr(_entered, "targets", [])
        if not around and not allow_none:
            raise ValueError("no `with target:` is around")
        return around[-1] if around else None

    def __enter__(self):
        _entered.targets = [*getattr(_entered, "targets", []), self]
        return self

    def __exit__(self, *raised):
        _entered.targets = _entered.targets[:-1]

    def lanes(self, bits=32):
        """How many elements of so many bits one vector register holds."""
        return max(1, self.attrs["vector_bits"] // bits)

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"Target({self.name!r})"
