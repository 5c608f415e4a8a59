"""import lathe.as_tvm: from then on `import tvm` and `from tvm.script import tir as T` find Lathe.

Only where nothing else was imported as tvm before; lathe.as_tvm.remove() takes it back.
"""

import importlib
import importlib.abc
import importlib.util
import sys

from .names import why_not

_NAME, _OURS = "tvm", __name__.rpartition(".")[0]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds tvm.x as lathe.x, the same module."""

    def find_spec(self, fullname, path=None, target=None):
        """The spec of a module under tvm."""
        package, _, name = fullname.rpartition(".")
        if package.split(".")[0] == _OURS and (why := why_not(package, name)):
            # `from tvm import x`, which Python looks for under the module's own name. An error that names the module
            # would be passed over.
            raise ModuleNotFoundError(f"there is no {_NAME}{fullname[len(_OURS) :]}: {why}")
        if fullname != _NAME and not fullname.startswith(_NAME + "."):
            return None
        ours = _OURS + fullname[len(_NAME) :]
        try:
            found = importlib.util.find_spec(ours)
        except ModuleNotFoundError:
            found = None
        if found is None:
            # Of the first that is not there, what `tvm.x` says of it.
            outer, _, name = ours.rpartition(".")
            if outer in sys.modules and (why := why_not(outer, name)):
                raise ModuleNotFoundError(f"there is no {fullname}: {why}", name=fullname)
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=found.submodule_search_locations is not None)

    def create_module(self, spec):
        """Our module, under its other name."""
        made = importlib.import_module(_OURS + spec.name[len(_NAME) :])
        self._kept = (made, made.__spec__)
        return made

    def exec_module(self, module):
        """The module ran already; its own spec comes back."""
        module.__spec__ = self._kept[1]


_finder = _Finder()


def install():
    """Makes `import tvm` find Lathe."""
    other = sys.modules.get(_NAME)
    if other is not None and other is not sys.modules[_OURS]:
        raise ImportError("another tvm was imported in this process already")
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def remove():
    """Makes `import tvm` find what it found before."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name in [name for name in sys.modules if name == _NAME or name.startswith(_NAME + ".")]:
        del sys.modules[name]


install()
