"""Signatures as the vocabulary documents them, compared with those that are there."""

import ast
import inspect
from dataclasses import dataclass
from pathlib import Path

import lathe

FILE = Path(__file__).with_name("signatures.txt")


@dataclass
class Documented:
    """One line of the file."""

    path: str
    signature: inspect.Signature
    reason: str  # why it differs, or nothing


def read(text):
    """The lines of the file."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            words, _, reason = line.partition(") - ")
            path, _, inside = (words if reason else line.removesuffix(")")).partition("(")
            yield Documented(path, _signature(inside), reason)


def _signature(inside):
    arguments = ast.parse(f"lambda {inside}: 0", mode="eval").body.args
    parameters = []

    def add(one, kind, default=None):
        value = inspect.Parameter.empty if default is None else ast.literal_eval(default)
        parameters.append(inspect.Parameter(one.arg, kind, default=value))

    first = len(arguments.args) - len(arguments.defaults)
    for place, one in enumerate(arguments.args):
        add(one, inspect.Parameter.POSITIONAL_OR_KEYWORD, arguments.defaults[place - first] if place >= first else None)
    if arguments.vararg:
        add(arguments.vararg, inspect.Parameter.VAR_POSITIONAL)
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        add(one, inspect.Parameter.KEYWORD_ONLY, default)
    return inspect.Signature(parameters)


def actual(path):
    """The signature of what stands at a path under lathe, a method's without its first parameter."""
    *owners, name = path.split(".")
    owner = lathe
    for part in owners:
        owner = getattr(owner, part)
    signature = inspect.signature(getattr(owner, name))
    unbound = (staticmethod, classmethod)
    is_method = inspect.isclass(owner) and not isinstance(inspect.getattr_static(owner, name), unbound)
    parameters = list(signature.parameters.values())
    return signature.replace(parameters=parameters[1:] if is_method else parameters)


def difference(documented, found):
    """What a call by the documented signature would meet otherwise; empty where nothing."""
    here = list(found.parameters.values())
    by_name = {one.name: one for one in here}
    order = [one.name for one in here if one.kind is one.POSITIONAL_OR_KEYWORD]
    place = 0
    for wanted in documented.parameters.values():
        if wanted.kind is wanted.VAR_POSITIONAL:
            if not any(one.kind is one.VAR_POSITIONAL for one in here):
                return f"*{wanted.name} is not taken"
            continue
        if wanted.name not in by_name:
            return f"there is no parameter '{wanted.name}'"
        one = by_name[wanted.name]
        if wanted.kind is wanted.POSITIONAL_OR_KEYWORD:
            if place >= len(order) or order[place] != wanted.name:
                return f"'{wanted.name}' is not parameter {place} by position"
            place += 1
        if wanted.default is not wanted.empty and one.default != wanted.default:
            return f"'{wanted.name}' is {one.default!r} by default, not {wanted.default!r}"
    known = set(documented.parameters)
    for one in here:
        if one.name not in known and one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            return f"'{one.name}' has to be given, and is not documented"
    return ""


def problems(text=None):
    """Lines that differ without a reason, or have a reason and do not differ."""
    for one in read(FILE.read_text() if text is None else text):
        what = difference(one.signature, actual(one.path))
        if what and not one.reason:
            yield f"{one.path}: {what}"
        elif one.reason and not what:
            yield f"{one.path} is as documented, and the file says why it is not"
