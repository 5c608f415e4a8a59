"""Programs in colours, for terminals and notebooks; plain text everywhere else."""

import re
import sys
import types

import pytest

import lathe
from lathe.ir import highlight
from lathe.script import tir as T


@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    T.func_attr({"key": "a < b"})
    for i in range(8):
        A[i] = A[i] + T.float32(1.5)


MODULE = lathe.IRModule({"main": main})


@pytest.mark.parametrize("thing", [main, MODULE, lathe.tir.Schedule(main).trace])
def test_plain_text_where_nobody_looks(thing, capsys):
    thing.show()
    printed = capsys.readouterr().out
    assert "\033" not in printed and printed.strip() == str(thing).strip()


class Terminal:
    """An output that says it is a terminal."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        """Nothing is held back."""

    def isatty(self):
        return True


def test_colours_in_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    main.show()
    assert "\033[1;34mfor\033[0m" in terminal.text and "\033[36m1.5\033[0m" in terminal.text
    assert re.sub(r"\033\[[\d;]*m", "", terminal.text).strip() == str(main).strip()


def test_html_in_a_notebook(monkeypatch):
    shown = []
    display = types.ModuleType("IPython.display")
    display.HTML, display.display = lambda text: ("html", text), shown.append
    for name, module in (("ipykernel", types.ModuleType("ipykernel")), ("IPython", types.ModuleType("IPython")),
                         ("IPython.display", display)):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)
    MODULE.show()
    ((kind, text),) = shown
    assert kind == "html" and text == MODULE._repr_html_()
    assert ">for</span>" in text and "a &lt; b" in text and "<b" not in text.replace("<br", "")
    assert main._repr_html_().startswith("<pre")


@pytest.mark.parametrize("text", ["", "x + 1", "for i in", '"open', "a\nb\n", "# only this", "(\n", "\tT.exp(R.x)\n"])
def test_no_text_is_lost(text):
    assert "".join(part for part, _ in highlight.pieces(text)) == text
    assert re.sub(r"\033\[[\d;]*m", "", highlight.for_terminal(text)) == text
