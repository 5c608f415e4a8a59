"""The source text of functions and classes, and the names around it, for the parser."""

import builtins
import inspect
import linecache
import sys

from .. import _lathe
from ..errors import ScriptError

# What stands for a dialect of scripts when a name is bound to it: filled by lathe/script/__init__.py.
NAMESPACES = {}


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


def parse(text, file, names, *, indented=False, check_well_formed=True):
    """The module in a text, with Python's names around it."""

    def evaluate(expression, values):
        code = compile(_place(expression), file, "eval")
        return eval(code, {"__builtins__": builtins, **names, **values})

    return _lathe.parse_script(text, file, names, evaluate, _aliases(names), indented, check_well_formed)


def _lines_of(file, namespace):
    lines = linecache.getlines(file, namespace)
    if not lines:
        linecache.checkcache(file)
        lines = linecache.getlines(file, namespace)
    return lines


def block_at(file, first_line, namespace, what):
    """The text of the definition that begins in a line, with empty lines before it so that places are right."""
    lines = _lines_of(file, namespace)
    if first_line < 1 or first_line > len(lines):
        raise ScriptError(
            f"the source of {what} is not to be had: scripts are read from files, notebooks and texts in linecache "
            "(lathe.script.from_source takes a text)"
        )
    block = inspect.getblock(lines[first_line - 1 :])
    return "\n" * (first_line - 1) + "".join(block)


def parse_function(function, frame, check_well_formed):
    """The program of a decorated function."""
    code = function.__code__
    text = block_at(code.co_filename, code.co_firstlineno, function.__globals__, f"'{function.__qualname__}'")
    names = names_around(frame, [function])
    return parse(text, code.co_filename, names, indented=True, check_well_formed=check_well_formed)


def parse_class(cls, frame, check_well_formed):
    """The program of a decorated class."""
    file, first = frame.f_code.co_filename, frame.f_lineno
    lines = _lines_of(file, frame.f_globals)
    # The call of a decorator stands in the decorator's line; other decorators may come first.
    if not (1 <= first <= len(lines) and lines[first - 1].lstrip().startswith("@")):
        try:
            lines, first = inspect.getsourcelines(cls)
        except (OSError, TypeError):
            first = 0
    text = block_at(file, first, frame.f_globals, f"class '{cls.__qualname__}'")
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
