"""Targets by name."""


class Target:
    """A device that code is generated for: "llvm" for this machine, or what `lathe compile --target` takes."""

    def __init__(self, target, host=None):
        self.name = target if isinstance(target, str) else dict(target)["kind"]
        self.host = host

    @property
    def kind(self):
        """The kind of code."""
        return self.name.split()[0]

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"Target({self.name!r})"
