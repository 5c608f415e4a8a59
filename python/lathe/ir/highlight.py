"""Programs in colours: for terminals by escape sequences, for notebooks as HTML. The standard tokenizer is enough."""

import html
import io
import keyword
import sys
import tokenize

# What is coloured: the escape sequence of terminals, and the style of HTML.
_STYLES = {
    "comment": ("\033[90m", "color:#6a737d"),
    "decorator": ("\033[35m", "color:#8250df"),
    "keyword": ("\033[1;34m", "color:#0550ae;font-weight:bold"),
    "number": ("\033[36m", "color:#0a7d5f"),
    "string": ("\033[32m", "color:#0a6b1d"),
    "module": ("\033[33m", "color:#953800"),
}
_END = "\033[0m"
_MODULES = ("T", "I", "R")


def _kind(token, before):
    if token.type == tokenize.COMMENT:
        return "comment"
    if token.type == tokenize.STRING:
        return "string"
    if token.type == tokenize.NUMBER:
        return "number"
    if token.string == "@" and before.type in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
        return "decorator"
    if token.type != tokenize.NAME:
        return None
    if keyword.iskeyword(token.string):
        return "keyword"
    return "module" if token.string in _MODULES and before.string != "." else None


def pieces(text):
    """The text in parts: (part, what it is, or None)."""
    lines = text.splitlines(keepends=True)
    found, row, column = [], 1, 0

    def upto(end):
        nonlocal row, column
        part = ""
        while row < end[0] and row <= len(lines):
            part += lines[row - 1][column:]
            row, column = row + 1, 0
        if row <= len(lines):
            part += lines[row - 1][column : end[1]]
            column = end[1]
        if part:
            found.append((part, None))

    try:
        before = tokenize.TokenInfo(tokenize.NEWLINE, "", (1, 0), (1, 0), "")
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            kind = _kind(token, before)
            if kind:
                upto(token.start)
                found.append((token.string, kind))
                row, column = token.end
            before = token
    except (tokenize.TokenError, SyntaxError):
        pass  # a part of a program: what was not understood stays as it is
    upto((len(lines) + 1, 0))
    return found


def for_terminal(text):
    """The text with escape sequences."""
    return "".join(_STYLES[kind][0] + part + _END if kind else part for part, kind in pieces(text))


def for_notebook(text):
    """The text as HTML."""
    parts = (
        f'<span style="{_STYLES[kind][1]}">{html.escape(part)}</span>' if kind else html.escape(part)
        for part, kind in pieces(text)
    )
    return '<pre style="line-height:1.3">' + "".join(parts) + "</pre>"


def show_text(text):
    """Prints a program: in colours where the output is a terminal or a notebook."""
    if "ipykernel" in sys.modules:
        from IPython.display import HTML, display

        display(HTML(for_notebook(text)))
    else:
        print(for_terminal(text) if sys.stdout.isatty() else text)
