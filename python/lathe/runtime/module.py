"""Compiled tensor functions: built, called in destination-passing style, timed, saved."""

import math
import os
import statistics

from .. import _lathe  # type: ignore[no-redef]
from ..errors import CompileError
from ..ir.module import as_module
from ..names import why_not
from ..options import debug_text
from ..target import Target, target_name
from ..tir.tensor_intrin import default_context
from .array import NDArray


def build(mod, target=None, pipeline="default", *, name=None, disabled_passes=(), debug_info=False):
    """Compiles tensor functions: a PrimFunc, an IRModule of them, or a Schedule. The result is called by name.

    mod: also a dict of one target and its module, as {"llvm": mod}.

    target: "llvm" for this machine; else as `lathe compile --target` takes it. None: what the functions say in their
    attribute "target" (T.target, tir.transform.BindTarget), the `with target:` around, or this machine.
    ValueError where the functions disagree.
    pipeline: "default", or a pass (a Sequential, for instance) that is applied before the compiler's own.
    name: what the one function is called in the result, whatever it is called in the module.
    debug_info: as for lathe.compile.
    """
    if isinstance(mod, dict):
        if len(mod) != 1:
            raise ValueError(f"a library here is for one target, and {len(mod)} are given")
        ((target, mod),) = mod.items()
    module = as_module(mod, "what is built")
    if callable(pipeline):
        module = pipeline(module)
    elif pipeline not in ("default", None):
        raise ValueError(f'a pipeline is "default" or a pass, not {pipeline!r}')
    if name is not None:
        if len(module._kinds) != 1:
            raise ValueError(f"name is for one function, and the module has {len(module._kinds)}")
        module = type(module)({name: function for _, function in module.items()})
    if target is None:
        target = _bound_target(module) or Target.current()
    return Module(_lathe.build_functions(module, target_name(target), list(disabled_passes), default_context(),
                                         debug_text(debug_info)))  # fmt: skip


def _bound_target(module):
    """What the module's functions say that they are compiled for, or None."""
    said = {name: module[name].attrs.get("target") for name, kind in module._kinds.items() if kind == "tir"}
    texts = {name: str(Target(target)) for name, target in said.items() if target is not None}
    if len(set(texts.values())) > 1:
        raise ValueError("functions are bound to different targets: "
                         + ", ".join(f"{name} to {target}" for name, target in texts.items()))  # fmt: skip
    return next(iter(texts.values()), None)


def load_module(path, fmt=""):
    """What export_library wrote. fmt: "so", which it is also where nothing is said."""
    if fmt not in ("", "so"):
        raise ValueError(f"a module is loaded from a .so file, not from one of format '{fmt}'")
    return Module(_lathe.open_functions(os.fspath(path)))


def _plain(argument):
    return argument._data if isinstance(argument, NDArray) else argument


class Module:
    """Compiled tensor functions. module["main"](a, b, out) runs one; tensors are NumPy's, NDArrays, or have DLPack."""

    entry_name = ""  # the function that a call of the module runs

    def __init__(self, functions):
        self._functions = functions
        self._names = [name for name, _ in functions.signatures]
        self.entry_name = "main" if "main" in self._names else self._names[0]

    def __getitem__(self, name):
        return self.get_function(name)

    def get_function(self, name, query_imports=False):
        """The function of that name."""
        if name == "main" and len(self._names) == 1:
            name = self._names[0]  # the only function is the main one, too
        if name not in self._names:
            raise AttributeError(f"the module has no function '{name}', only {', '.join(self._names)}")
        return Function(self._functions, name)

    def implements_function(self, name, query_imports=False):
        """Whether there is a function of that name."""
        return name in self._names

    def __contains__(self, name):
        return name in self._names

    def __call__(self, *arguments):
        return self[self.entry_name](*arguments)

    @property
    def mod(self):
        """The module itself, as an executable's."""
        return self

    def jit(self, *args, **options):
        """The module itself: it runs in this process already."""
        return self

    @property
    def imported_modules(self):
        """Modules of other devices: none."""
        return []

    imports = imported_modules

    def get_source(self, fmt=""):
        """The code as text: "ll" or "" (LLVM IR), "s" or "asm" (assembly), "tir" (what it is generated from)."""
        return self._functions.source(fmt or "ll")

    inspect_source = get_source

    def export_library(self, file_name, *, fcompile=None, fpack_imports=None, addons=None, workspace_dir=None):
        """Writes a shared library that load_module opens, here or in another process. ValueError: fcompile,
        fpack_imports or addons, since no other compiler or linker takes part; link the library to what it needs."""
        for option, given in (("fcompile", fcompile), ("fpack_imports", fpack_imports), ("addons", addons)):
            if given is not None:
                raise ValueError(f"{option} has no effect here: the library is linked as it is written")
        path = os.fspath(file_name)
        if not path.endswith(".so"):
            raise CompileError(f"a library is written as a .so file, not as '{os.path.basename(path)}'")
        self._functions.save(path)

    def time_evaluator(self, func_name, dev=None, number=10, repeat=1, min_repeat_ms=0, limit_zero_time_iterations=100,
                       cooldown_interval_ms=0, repeats_to_cooldown=1, cache_flush_bytes=0, f_preproc=""):  # fmt: skip
        """A callable that runs the function with its arguments and gives the times: `repeat` figures, each of `number`
        runs, or of as many as last for `min_repeat_ms`."""
        self.get_function(func_name)
        if number < 1 or repeat < 1:
            raise ValueError(f"number and repeat are at least 1, not {number} and {repeat}")

        def evaluate(*arguments):
            seconds = self._functions.time(
                func_name, tuple(map(_plain, arguments)), number, repeat, min_repeat_ms / 1000, cache_flush_bytes, 0
            )
            return BenchmarkResult(seconds)

        return evaluate

    def __getattr__(self, name):
        why = None if name.startswith("_") else why_not("Module", name)
        raise AttributeError(f"a module has no '{name}'" + (f": {why}" if why else ""))

    def __repr__(self):
        return f"Module({', '.join(self._names)})"


class Function:
    """One compiled function: called with its tensors in order, the last of which it usually fills."""

    def __init__(self, functions, name):
        self._functions, self.name = functions, name

    def __call__(self, *arguments):
        self._functions.call(self.name, tuple(map(_plain, arguments)), 0)

    def __repr__(self):
        parameters = dict(self._functions.signatures)[self.name]
        return f"Function({self.name}: {', '.join(parameters)})"


class BenchmarkResult:
    """Times of a function in seconds a run."""

    def __init__(self, results):
        self.results = tuple(results)
        self.mean = statistics.fmean(results)
        self.median = statistics.median(results)
        self.min, self.max = min(results), max(results)
        self.std = math.sqrt(statistics.pvariance(results))

    def __repr__(self):
        figures = ((name, getattr(self, name)) for name in ("mean", "median", "min", "max", "std"))
        return "BenchmarkResult(" + ", ".join(f"{name}={value * 1e3:.4f} ms" for name, value in figures) + ")"
