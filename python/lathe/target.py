"""Targets by name, and what their devices can do."""

import json

from . import _lathe


def target_name(target):
    """The target as the compiler names it; the vocabulary calls this machine "llvm"."""
    if target is None:
        return "native"
    kind = target if isinstance(target, str) else getattr(target, "name", None) or str(target)
    return "native" if kind.split()[0] == "llvm" and "-mcpu" not in kind and "-mtriple" not in kind else kind


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

    def lanes(self, bits=32):
        """How many elements of so many bits one vector register holds."""
        return max(1, self.attrs["vector_bits"] // bits)

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"Target({self.name!r})"
