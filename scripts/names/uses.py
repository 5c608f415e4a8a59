"""Which names a test uses, found by reading its syntax: a comment, or a word in a message, is no use.

A name of a module is used where an attribute of that very module is taken, however the file imports it; one of a class
where anything that is no module is asked for it, and called where it is a method. Texts that are programs count as what
they say, with T, I and R as scripts have them. Where a test takes attributes by getattr, its file's texts name them.
"""

import ast
import importlib
import inspect
import textwrap
import types
from dataclasses import dataclass, field

import lathe
from lathe.script import ir, relax, tir

SCRIPT_NAMES = {"T": tir, "I": ir, "R": relax}
FOREIGN = types.ModuleType("foreign")  # stands for every module that is not of the package


@dataclass
class Piece:
    """A test function, or what else a file holds."""

    place: str
    of_modules: set = field(default_factory=set)  # (module's id, name)
    modules: dict = field(default_factory=dict)  # id to module, of those above
    of_things: dict = field(default_factory=dict)  # name to whether it is called somewhere

    def uses(self, space, name):
        """Whether the name of a space is used here."""
        if not isinstance(space.thing, types.ModuleType):
            method = callable(getattr(space.thing, name, None)) and not inspect.isclass(getattr(space.thing, name))
            return name in self.of_things and (self.of_things[name] or not method)
        if (id(space.thing), name) in self.of_modules:
            return True
        # Another module may give the same thing: lathe.cpu, lathe.runtime.cpu.
        there = getattr(space.thing, name, self)
        others = [module for key, module in self.modules.items() if (key, name) in self.of_modules]
        return any(getattr(module, name, None) is there for module in others)

    def take(self, module, name):
        """Notes an attribute of a module."""
        self.of_modules.add((id(module), name))
        self.modules[id(module)] = module


def pieces_of(place, text):
    """The test functions of a file, and what else it holds."""
    tree = ast.parse(text)
    names, rest = imports(tree), Piece(place)
    for module, name in imported_parts(tree):
        rest.take(module, name)
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            own = Piece(f"{place}::{node.name}")
            _read(node, names, own, words)
            yield own
        else:
            _read(node, names, rest, words)
    yield rest


def imports(tree):
    """What the names that a file imports stand for: (module, name or None)."""
    found = {"lathe": (lathe, None)}  # also a fixture
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                whole = one.name if one.asname else one.name.partition(".")[0]
                found[one.asname or whole] = (_module(whole), None)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for one in node.names:
                found[one.asname or one.name] = (_module(node.module), one.name)
    return found


def imported_parts(tree):
    """The modules of the package that a file imports from, as (what they are in, name)."""
    for node in ast.walk(tree):
        paths = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        paths += [one.name for one in node.names] if isinstance(node, ast.Import) else []
        for path in paths:
            parent, _, name = path.rpartition(".")
            if parent.partition(".")[0] == "lathe":
                yield _module(parent), name


def _module(name):
    return importlib.import_module(name) if name.partition(".")[0] == "lathe" else FOREIGN


def _value(entry):
    """The thing that an imported name stands for."""
    module, name = entry
    if name is None or module is FOREIGN:
        return module
    return getattr(module, name, None)


def _thing(node, names):
    """The module that an expression is, or nothing."""
    if isinstance(node, ast.Name) and node.id in names:
        value = _value(names[node.id])
    elif isinstance(node, ast.Attribute):
        base = _thing(node.value, names)
        value = FOREIGN if base is FOREIGN else None if base is None else getattr(base, node.attr, None)
    else:
        return None
    return value if isinstance(value, types.ModuleType) else None


def _programs(text):
    """A text as Python, where it is a program or an expression with a name of a script's namespace."""
    if "." not in text or not any(f"{name}." in text for name in SCRIPT_NAMES):
        return []
    try:
        return [ast.parse(textwrap.dedent(text).strip())]
    except SyntaxError:
        return []


def _read(tree, names, piece, words):
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            module = _thing(node.value, names)
            if module is None:
                piece.of_things[node.attr] = piece.of_things.get(node.attr, False) or id(node) in called
            elif module is not FOREIGN:
                piece.take(module, node.attr)
            owner = node.value
            if module is None and isinstance(owner, ast.Attribute) and _thing(owner.value, names) is relax:
                piece.take(relax, f"{owner.attr}.{node.attr}")  # R.nn.relu: R.nn is there for texts alone
        elif isinstance(node, ast.Name) and node.id in names:
            module, name = names[node.id]
            if name and module is not FOREIGN:
                piece.take(module, name)
        elif isinstance(node, (ast.Constant, ast.JoinedStr)):
            for program in _programs(_text(node)):
                _read(program, {**names, **{key: (module, None) for key, module in SCRIPT_NAMES.items()}}, piece, words)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            module = _thing(node.args[0], names)
            for word in words if module is not FOREIGN else ():
                if module is None:
                    piece.of_things[word] = True
                elif word.isidentifier():
                    piece.take(module, word)


def _text(node):
    """The text of a literal; what is put into it is a name."""
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "put_in" for part in node.values)
    return node.value if isinstance(node.value, str) else ""
