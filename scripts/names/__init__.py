"""The names of the vocabulary: what is there, which test uses it, and why the rest is left out.

    python -m scripts.names            writes docs/names.md anew
    python -m scripts.names --check    says whether it is fresh
"""

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from scripts.names.spaces import SPACES
from scripts.names.uses import pieces_of

ROOT = Path(__file__).resolve().parents[2]
VOCABULARY = Path(__file__).with_name("vocabulary.txt")
TABLE = ROOT / "docs" / "names.md"
REASONS = ROOT / "python" / "lathe" / "left_out.py"
INTRODUCTION = (
    "Every name of the vocabulary of TensorIR, and of the texts of graph functions: the test that uses it (imports",
    "it, or calls it where it is a method), or why it is left out; such a name raises AttributeError that says so, in",
    "the text of a graph function ScriptError. Made by `python -m scripts.names`.",
)
TESTS = ("tests/python", "tests/cli")


@dataclass
class Name:
    """One name of the vocabulary."""

    space: str
    name: str
    reason: str = ""  # why it is left out


@dataclass
class Section:
    """Names that stand together."""

    title: str
    names: list = field(default_factory=list)


def read(text):
    """The sections of the vocabulary's file."""
    sections = []
    for line in text.splitlines():
        if line.startswith("## "):
            sections.append(Section(line[3:]))
        elif line and not line.startswith("#"):
            head, _, names = line.rpartition(": ") if " - " in line.split(":")[0] else line.partition(": ")
            space, _, reason = head.partition(" - ")
            _add(sections[-1], space, names.split(), reason)
    return sections


def _add(section, space, names, reason):
    known = {(one.space, one.name): one for one in section.names}
    for name in names:
        if not reason:
            section.names.append(Name(space, name))
        elif (space, name) in known:
            known[space, name].reason = reason
        else:
            raise ValueError(f"{space}.{name} is left out, and is no name of {section.title}")


def pieces():
    """Pieces of the tests: each test function, and what else a file holds."""
    for folder in TESTS:
        for path in sorted((ROOT / folder).rglob("test_*.py")):
            yield from pieces_of(str(path.relative_to(ROOT)), path.read_text())


def test_of(one, found):
    """The first test that uses a name, or nothing."""
    return next((piece.place for piece in found if piece.uses(SPACES[one.space], one.name)), None)


def error_of(one):
    """What asking for a name raises, or nothing where it is there."""
    try:
        SPACES[one.space].get(one.name)
    except (AttributeError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def rows(sections):
    """(section, name, error or None, test or None) of every name."""
    found = list(pieces())
    for section in sections:
        for one in section.names:
            error = error_of(one)
            yield section, one, error, None if error else test_of(one, found)


def table(sections):
    """The text of docs/names.md."""
    lines = ["# Names", "", *INTRODUCTION, ""]
    section = None
    for own, one, error, test in rows(sections):
        if own is not section:
            section = own
            lines += ["", f"## {own.title}", "", "| name | test, or why it is left out |", "|---|---|"]
        lines.append(f"| `{one.space}.{one.name}` | {f'*left out*: {one.reason}' if error else f'`{test}`'} |")
    return "\n".join(lines) + "\n"


def stale(text, sections):
    """Where a table no longer says what is so: a name that came or went, or a test that does not use it any more."""
    said = dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", text, re.MULTILINE))
    tests = {piece.place: piece for piece in pieces()}
    names = [one for section in sections for one in section.names]
    for one in names:
        what = f"{one.space}.{one.name}"
        row = said.pop(what, None)
        if row is None:
            yield f"{what} is not in the table"
        elif error_of(one):
            if row != f"*left out*: {one.reason}":
                yield f"{what} is left out, and the table says {row}"
        elif row.strip("`") not in tests or not tests[row.strip("`")].uses(SPACES[one.space], one.name):
            yield f"{what} is not used by {row}"
    yield from (f"{what} is in the table, and not in the vocabulary" for what in said)


def problems(sections):
    """What is wrong: names without a test, or left out without a reason or without a helpful error."""
    for _, one, error, test in rows(sections):
        what = f"{one.space}.{one.name}"
        if error and not one.reason:
            yield f"{what} is not there, and vocabulary.txt does not say why"
        elif error and SPACES[one.space].helps and one.reason not in error and "nearest" not in error:
            yield f"{what} raises without the reason or the nearest name: {error}"
        elif not error and one.reason:
            yield f"{what} is there, and vocabulary.txt says why it is not"
        elif not error and not test:
            yield f"no test uses {what}"


def reasons(sections):
    """The text of python/lathe/left_out.py, from which asking for such a name gets its error."""
    spaces = {}
    for section in sections:
        for one in section.names:
            if one.reason:
                spaces.setdefault(one.space, {}).setdefault(one.reason, []).append(one.name)
    lines = ['"""Names of the vocabulary that are left out, and why. Made by `python -m scripts.names`."""', ""]
    lines += ["", "_REASONS = {"]
    for space, rows in sorted(spaces.items()):
        lines.append(f'    "{space}": {{')
        for reason, found in rows.items():
            lines.append(f'        "{reason}":')
            for text in textwrap.wrap(" ".join(found), 100):
                lines.append(f'            "{text} "')
            lines[-1] = lines[-1][:-2] + '",'
        lines.append("    },")
    lines += ["}", "", "LEFT_OUT = {"]
    lines += ["    space: {name: reason for reason, names in rows.items() for name in names.split()}"]
    return "\n".join([*lines, "    for space, rows in _REASONS.items()", "}"]) + "\n"


def sections():
    """The vocabulary."""
    return read(VOCABULARY.read_text())
