"""Passes over modules, sequences of them, and the context that they run under.

    with lathe.transform.PassContext(opt_level=3, instruments=[PassTimingInstrument()]):
        mod = lathe.transform.Sequential([tir.transform.Simplify(), tir.transform.UnrollLoop()])(mod)
"""

import difflib
import functools
import inspect
import re
import threading
from dataclasses import dataclass, field

from .module import IRModule, as_module
from .node import BaseFunc, show_text

# Options of passes by name: what each takes, and what it does.
CONFIG = {
    "tir.disable_vectorize": (bool, "VectorizeLoop leaves programs as they are"),
    "tir.verify": (bool, "programs are verified after each pass"),
}


@dataclass(frozen=True)
class PassInfo:
    """What is known of a pass."""

    opt_level: int
    name: str
    required: list = field(default_factory=list)
    traceable: bool = False


class PassContext:
    """What passes run under, inside `with`.

    opt_level: passes of a higher one do not run as parts of a Sequential. required_pass and disabled_pass: names that
    run at any level, or never. instruments: what looks on. config: options by name (CONFIG).
    """

    _state = threading.local()

    def __init__(self, opt_level=2, required_pass=None, disabled_pass=None, instruments=None, config=None):
        self.opt_level = int(opt_level)
        self.required_pass, self.disabled_pass = list(required_pass or []), list(disabled_pass or [])
        self.instruments = list(instruments or [])
        self.config = dict(config or {})
        for key, value in self.config.items():
            if key not in CONFIG:
                near = difflib.get_close_matches(key, CONFIG, 1, 0.0)[0]
                raise AttributeError(f"there is no option '{key}'; the nearest is '{near}'")
            if not isinstance(value, CONFIG[key][0]):
                raise TypeError(f"the option '{key}' is a {CONFIG[key][0].__name__}, not {type(value).__name__}")

    @classmethod
    def _stack(cls):
        if not hasattr(cls._state, "stack"):
            cls._state.stack = []
        return cls._state.stack

    @classmethod
    def current(cls):
        """The innermost context, or one that asks for nothing."""
        stack = cls._stack()
        return stack[-1] if stack else cls()

    def __enter__(self):
        self._stack().append(self)
        entered = []
        try:
            for instrument in self.instruments:
                instrument.enter_pass_ctx()
                entered.append(instrument)
        except BaseException:
            for instrument in entered:
                instrument.exit_pass_ctx()
            self._stack().pop()
            raise
        return self

    def __exit__(self, *raised):
        try:
            for instrument in self.instruments:
                instrument.exit_pass_ctx()
        finally:
            self._stack().pop()

    def override_instruments(self, instruments):
        """Other instruments from here on."""
        for instrument in self.instruments:
            instrument.exit_pass_ctx()
        self.instruments = list(instruments or [])
        for instrument in self.instruments:
            instrument.enter_pass_ctx()

    def pass_enabled(self, info):
        """Whether a pass runs as a part of a sequence."""
        if info.name in self.disabled_pass:
            return False
        return info.name in self.required_pass or self.opt_level >= info.opt_level


class Pass:
    """A function from module to module, with a name. Calling it leaves the module given as it was."""

    info = PassInfo(0, "")

    def transform_module(self, mod, ctx):
        """The module that the pass makes of a copy of the given one."""
        raise NotImplementedError(f"the pass {self.info.name} says not what it does")

    def __call__(self, mod):
        module = as_module(mod, "what a pass takes")
        ctx = PassContext.current()
        if self.info.name not in ctx.required_pass:
            # Every instrument is asked, so that each can keep count.
            answers = [bool(instrument.should_run(module, self.info)) for instrument in ctx.instruments]
            if not all(answers):
                return module
        for instrument in ctx.instruments:
            instrument.run_before_pass(module, self.info)
        made = self.transform_module(module.clone(), ctx)
        if not isinstance(made, IRModule):
            raise TypeError(f"the pass {self.info.name} gives a {type(made).__name__}, not an IRModule")
        if ctx.config.get("tir.verify"):
            from .. import _lathe

            _lathe.verify_module(made, True)
        for instrument in ctx.instruments:
            instrument.run_after_pass(made, self.info)
        return made

    def __repr__(self):
        return f"{type(self).__name__}({self.info.name}, opt_level={self.info.opt_level})"


class ModulePass(Pass):
    """A pass that Python wrote: func(mod, ctx)."""

    def __init__(self, func, info):
        self._func, self.info = func, info

    def transform_module(self, mod, ctx):
        """What the function gives."""
        return self._func(mod, ctx)


class FunctionPass(Pass):
    """A pass over each function of one kind by itself: func(function, mod, ctx)."""

    def __init__(self, func, info, kind):
        self._func, self.info, self._kind = func, info, kind

    def transform_module(self, mod, ctx):
        """The module with every such function replaced by what the pass makes of it; None removes it."""
        for name, kind in mod._kinds.items():
            if kind != self._kind:
                continue
            made = self._func(mod[name], mod, ctx)
            if made is None:
                del mod[name]
            elif isinstance(made, BaseFunc):
                mod[name] = made
            else:
                raise TypeError(f"the pass {self.info.name} gives a {type(made).__name__} for a function")
        return mod


class Sequential(Pass):
    """Passes one after the other: those that the context allows."""

    def __init__(self, passes=None, opt_level=0, name="sequential", required=None, traceable=False):
        self.passes = list(passes or [])
        for one in self.passes:
            if not isinstance(one, Pass):
                raise TypeError(f"a sequence is made of passes, not of a {type(one).__name__}")
        self.info = PassInfo(opt_level, name, list(required or []), traceable)

    def transform_module(self, mod, ctx):
        """Runs the passes in order."""
        for one in self.passes:
            if ctx.pass_enabled(one.info):
                mod = one(mod)
        return mod


def _decorated(method, make, given, opt_level, name, required, traceable):
    """The decorator of a function, or of a class that has `method`."""
    if not isinstance(opt_level, int):
        raise TypeError("the level of a pass is an integer: write @…_pass(opt_level=0)")

    def decorate(thing):
        info = PassInfo(opt_level, name or thing.__name__, list(required or []), traceable)
        if not inspect.isclass(thing):
            if not callable(thing):
                raise TypeError(f"a pass is a function or a class, not {type(thing).__name__}")
            return make(thing, info)
        if not hasattr(thing, method):
            raise TypeError(f"the pass class {thing.__name__} has no {method}")

        @functools.wraps(thing, updated=())
        def create(*args, **named):
            instance = thing(*args, **named)
            made = make(getattr(instance, method), info)
            made.instance = instance
            return made

        return create

    return decorate(given) if given is not None else decorate


def module_pass(pass_func=None, opt_level=0, name=None, required=None, traceable=False):
    """Makes a pass of func(mod, ctx), or of a class with transform_module(self, mod, ctx)."""
    return _decorated("transform_module", ModulePass, pass_func, opt_level, name, required, traceable)


def function_pass_of(kind):
    """The decorator that makes passes over functions of one IR: "tir" or "relax"."""

    def decorator(pass_func=None, opt_level=0, name=None, required=None, traceable=False):
        """Makes a pass of func(f, mod, ctx), or of a class with transform_function(self, f, mod, ctx)."""

        def make(function, info):
            return FunctionPass(function, info, kind)

        return _decorated("transform_function", make, pass_func, opt_level, name, required, traceable)

    return decorator


def PrintIR(header=""):  # noqa: N802 - the vocabulary's name
    """A pass that prints the program and leaves it as it is."""

    def show(mod, ctx):
        show_text((f"# {header}\n" if header else "") + mod.script())
        return mod

    return ModulePass(show, PassInfo(0, "PrintIR"))


def ApplyPassToFunction(transform, func_name_regex, error_if_no_function_matches_regex=False):  # noqa: N802
    """A pass applied to the functions whose whole names match."""
    pattern = re.compile(func_name_regex)

    def apply(mod, ctx):
        names = [name for name in mod._kinds if pattern.fullmatch(name)]
        if not names and error_if_no_function_matches_regex:
            raise ValueError(f"no function's name matches '{func_name_regex}': there are {', '.join(mod._kinds)}")
        part = transform(IRModule({name: mod[name] for name in names}))
        for name in names:
            if name not in part:
                del mod[name]
        mod.update(part)
        return mod

    return ModulePass(apply, PassInfo(0, "ApplyPassToFunction"))


__all__ = [
    "ApplyPassToFunction", "CONFIG", "FunctionPass", "ModulePass", "Pass", "PassContext", "PassInfo", "PrintIR",
    "Sequential", "module_pass",
]  # fmt: skip
