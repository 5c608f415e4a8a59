"""The source text of functions and classes, and the names around it, for the parser."""

import builtins
import collections
import functools
import inspect
import linecache
import sys

from .. import _lathe
from ..errors import ScriptError
from ..ir.node import Comparison, PrimExpr
from ..tir.op import FUNCTIONS

# What stands for a dialect of scripts when a name is bound to it: filled by lathe/script/__init__.py.
NAMESPACES: dict = {}


class Names(dict):
    """The names around a definition: of the frames that enclose it, then of its module."""


def names_around(frame, functions=()):
    """What the text of a definition may refer to: globals, the enclosing frame's names, and captured ones."""
    names = dict(frame.f_globals)
    outer = frame.f_back
    names.update(frame.f_locals)
    for function in functions:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                names[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
    # Annotations refer to names that no closure keeps; those of the calling frames are tried last.
    while outer is not None and outer.f_code.co_filename == frame.f_code.co_filename:
        for name, value in outer.f_locals.items():
            names.setdefault(name, value)
        outer = outer.f_back
    return names


def _aliases(names):
    found = {}
    for name, value in names.items():
        path = NAMESPACES.get(id(value))
        if path:
            found[name] = path
    return found


def _place(text):
    return "(" + text + "\n)" if "\n" in text or text.lstrip().startswith("#") else text.strip()


def _extreme(name):
    """Python's max or min, which is T's where it is of expressions: Python's own would have to know which is larger."""
    of_numbers = getattr(builtins, name)

    def extreme(*args, **named):
        if len(args) > 1 and not named and any(isinstance(one, (PrimExpr, Comparison)) for one in args):
            return functools.reduce(FUNCTIONS[name], args)
        return of_numbers(*args, **named)

    return extreme


_largest, _smallest = _extreme("max"), _extreme("min")


def held(text, file, names, indented):
    """A text with Python's names around it, as the parsers take it."""

    def evaluate(expression, values):
        code = compile(_place(expression), file, "eval")
        return eval(code, {"__builtins__": builtins, "max": _largest, "min": _smallest, **names, **values})

    return _lathe.HeldText(text, file, names, evaluate, _aliases(names), indented)


def parse(text, file, names, *, indented=False, check_well_formed=True):
    """The module in a text, with Python's names around it."""
    return _lathe.parse_script(held(text, file, names, indented), check_well_formed)


def _lines_of(file, namespace):
    lines = linecache.getlines(file, namespace)
    if not lines:
        linecache.checkcache(file)
        lines = linecache.getlines(file, namespace)
    return lines


def _last_line(code):
    """The last line that the code came from, that of functions in it included."""
    last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
    # A statement over several lines ends with its outermost instruction, and the last statement is among the last.
    ends = [end for _, end, _, _ in collections.deque(code.co_positions(), maxlen=64) if end]
    return max([last, *ends, *(_last_line(const) for const in code.co_consts if inspect.iscode(const))])


def _depth(line):
    return len(line) - len(line.lstrip())


def block_at(file, code, namespace, what):
    """The text of the definition that was compiled to `code`, with empty lines before it so that places are right."""
    lines = _lines_of(file, namespace)
    first, last = code.co_firstlineno, _last_line(code)
    if first < 1 or last > len(lines):
        raise ScriptError(
            f"the source of {what} is not to be had: scripts are read from files, notebooks and texts in linecache "
            "(lathe.script.from_source takes a text)"
        )
    # What the compiler dropped at the end stands deeper than the definition does.
    depth = _depth(lines[first - 1])
    while last < len(lines) and lines[last].strip() and _depth(lines[last]) > depth:
        last += 1
    return "\n" * (first - 1) + "".join(lines[first - 1 : last])


def parse_function(function, frame, check_well_formed):
    """The program of a decorated function."""
    code = function.__code__
    text = block_at(code.co_filename, code, function.__globals__, f"'{function.__qualname__}'")
    names = names_around(frame, [function])
    return parse(text, code.co_filename, names, indented=True, check_well_formed=check_well_formed)


def held_function(function, frame):
    """The text of a function's definition with the names around it."""
    code = function.__code__
    text = block_at(code.co_filename, code, function.__globals__, f"'{function.__qualname__}'")
    return held(text, code.co_filename, names_around(frame, [function]), True)


def loops_of(function, frame, parameters):
    """The program that a plain function of loops is."""
    code = inspect.unwrap(function).__code__
    text = block_at(code.co_filename, code, function.__globals__, f"'{function.__qualname__}'")
    names = names_around(frame, [function])
    return _lathe.loops_from_python(held(text, code.co_filename, names, True), parameters)


def parse_class(cls, frame, check_well_formed):
    """The program of a decorated class."""
    file = frame.f_code.co_filename
    bodies = [const for const in frame.f_code.co_consts if inspect.iscode(const) and const.co_name == cls.__name__]
    # The call of a decorator stands in the decorator's line; the body's code begins with the first decorator.
    bodies = [body for body in bodies if body.co_firstlineno <= frame.f_lineno <= _last_line(body)]
    if not bodies:
        raise ScriptError(f"class '{cls.__qualname__}' is decorated where it is defined, or its text is given")
    text = block_at(file, bodies[-1], frame.f_globals, f"class '{cls.__qualname__}'")
    functions = [inspect.unwrap(f) for f in vars(cls).values() if inspect.isfunction(f)]
    names = names_around(frame, functions)
    names.pop(cls.__name__, None)
    return parse(text, file, names, indented=True, check_well_formed=check_well_formed)


def is_class_body(frame):
    """Whether a frame runs the body of a class that is decorated as a module."""
    scope = frame.f_locals
    if "__qualname__" not in scope or "__module__" not in scope:
        return False
    lines = _lines_of(frame.f_code.co_filename, frame.f_globals)
    for line in lines[frame.f_code.co_firstlineno - 1 :]:
        text = line.strip()
        if not text.startswith(("@", "#")) and text:
            return False
        if text.startswith("@") and "ir_module" in text:
            return True
    return False


def caller(depth):
    """The frame that many calls up from the caller of this function."""
    return sys._getframe(depth + 1)
