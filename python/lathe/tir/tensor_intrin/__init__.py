"""TensorIntrin: what a device computes in one go, as loops that say what it is and as code that does it."""

import difflib

from ... import _lathe  # type: ignore[no-redef]
from ...errors import ScheduleError
from ...ir.node import BaseFunc

_default = _lathe.Context()


def offered(target="native"):
    """The names of the compiler's own intrinsics that a target has the instructions for."""
    return _lathe.offered_intrins(str(target))


def default_context():
    """Where what is registered from Python is found."""
    return _default


class TensorIntrin:
    """Two functions over the same buffers. `desc` says as loops what is computed; `impl` computes it.

    Schedule.tensorize finds a block to be the description and puts the implementation in its place.
    """

    def __init__(self, desc, impl):
        for what, function in (("desc", desc), ("impl", impl)):
            if not isinstance(function, BaseFunc):
                raise TypeError(f"{what} is a PrimFunc, not {type(function).__name__}")
        self.desc, self.impl = desc, impl

    @staticmethod
    def register(name, desc, impl, override=False):
        """Registers an intrinsic under a name, which must be free unless `override` is set, and returns it."""
        made = TensorIntrin(desc, impl)
        _default.add_intrin(name, desc, impl, bool(override))
        return made

    @staticmethod
    def get(name, allow_missing=False):
        """The intrinsic of that name; None, where that is allowed and there is none."""
        found = _default.find_intrin(name)
        if found is not None:
            return TensorIntrin(*found)
        if allow_missing:
            return None
        near = difflib.get_close_matches(name, _default.intrin_names(), 1, 0.0)
        raise ScheduleError(
            f"no intrinsic is registered under the name '{name}'" + (f"; the nearest is '{near[0]}'" if near else "")
        )

    def __repr__(self):
        return f"TensorIntrin({', '.join(p.name for p in self.desc.params)})"


from . import arm_cpu, x86  # noqa: E402, F401
