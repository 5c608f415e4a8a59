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


def test_prefixes_and_indentation():
    text = main.script(tir_prefix="Q", ir_prefix="J", relax_prefix="S", indent_spaces=2, name="renamed")
    assert "import ir as J, relax as S, tir as Q" in text and "def renamed(A: Q.Buffer" in text
    assert "\n  for i in range(8):\n    A[i]" in text and "T." not in text
    lathe.ir.assert_structural_equal(lathe.script.from_source(text), main)
    text = MODULE.script(tir_prefix="Q", indent_spaces=3)
    assert "\n   @Q.prim_func\n   def main(" in text
    lathe.ir.assert_structural_equal(lathe.script.from_source(text), MODULE)


def test_line_numbers():
    lines = main.script(print_line_numbers=True).split("\n")
    plain = main.script().split("\n")
    assert [line[3:] if len(line) > 2 else "" for line in lines] == plain
    assert [int(line[:2]) for line in lines] == list(range(1, len(plain) + 1))


def test_text_without_sugar():
    nested = lathe.script.from_source(
        "@T.prim_func\ndef main(A: T.Buffer((4, 4), 'float32')):\n    for i, j in T.grid(4, 4):\n"
        "        A[i, j] = A[i, j] + T.float32(1)\n"
    )
    assert "T.grid" in nested.script()
    plain = nested.script(syntax_sugar=False)
    assert "T.grid" not in plain
    lathe.ir.assert_structural_equal(lathe.script.from_source(plain), nested)


@pytest.mark.parametrize(
    "option", [{"show_meta": True}, {"verbose_expr": True}, {"obj_to_underline": [main]}, {"int_dtype": "int64"},
               {"num_context_lines": 3}, {"indent_spaces": 0}, {"indent_spaces": 99}, {"tir_prefix": "1 T"}]
)  # fmt: skip
def test_options_without_a_meaning_here(option):
    (name,) = option
    with pytest.raises(ValueError, match=name):
        main.script(**option)
    with pytest.raises(ValueError, match=name):
        MODULE.script(**option)


def test_styles(capsys):
    main.show("ansi", tir_prefix="Q")
    assert "Q.Buffer" in capsys.readouterr().out
    with pytest.raises(ValueError, match="style"):
        main.show("loud")
    with pytest.raises(ValueError, match="a name is for one function"):
        MODULE.script(name="main")
