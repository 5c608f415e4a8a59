"""Functions of Python's that programs call by name: T.call_packed("name", A, n).

    @lathe.register_func("debug.show")
    def show(a, step):
        print(step, a.numpy())

They are there while a program runs in this process, compiled or interpreted; what is saved cannot call them. Buffers
arrive as arrays over the program's own memory, lent for the call: keep a copy of what is needed later.
"""

import difflib

from .runtime import NDArray
from .tir.tensor_intrin import default_context

_functions: dict = {}


def register_global_func(name, f=None, override=False):
    """Registers a function under a name, which must be free unless `override` is set; also as a decorator.

    It is given arrays for buffers, and numbers and texts; what it returns is None or a number. An error that it raises
    goes to whoever called the program.
    """
    if callable(name):
        return register_global_func(name.__name__, name, override)
    if not isinstance(name, str):
        raise TypeError(f"a function is registered under a name, not under {type(name).__name__}")

    def register(function):
        if not callable(function):
            raise TypeError(f"'{name}' is registered for {type(function).__name__}, which cannot be called")
        if name in _functions and not override:
            raise ValueError(f"a function is registered as '{name}' already; override=True puts this one in its place")
        default_context().set_function(name, function, NDArray)
        _functions[name] = function
        return function

    return register if f is None else register(f)


register_func = register_global_func


def get_global_func(name, allow_missing=False):
    """The function registered under that name; None, where that is allowed and there is none."""
    found = _functions.get(name)
    if found is not None or allow_missing:
        return found
    near = difflib.get_close_matches(str(name), _functions, 1)
    raise ValueError(f"there is no registered function '{name}'" + (f"; the nearest is '{near[0]}'" if near else ""))


def remove_global_func(name):
    """Takes a name back: programs that call it are refused from now on."""
    if _functions.pop(name, None) is None:
        raise ValueError(f"there is no registered function '{name}'")
    default_context().remove_function(name)


def list_global_func_names():
    """The names that are registered, in alphabetical order."""
    return sorted(_functions)
