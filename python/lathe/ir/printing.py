"""`script` and `show`: programs as text, as the caller wants it."""

from .highlight import for_notebook, show_text

# Options of other printers that mean nothing here, with the value that asks for nothing, and why.
_REFUSED = {
    "show_meta": (False, "constants stand in the text, large ones by their hash"),
    "module_alias": ("cls", "a function of the module is cls.name wherever it is read"),
    "buffer_dtype": ("float32", "every dtype is written out, so that the text means the same everywhere"),
    "int_dtype": ("int32", "every dtype is written out, so that the text means the same everywhere"),
    "float_dtype": ("void", "every dtype is written out, so that the text means the same everywhere"),
    "verbose_expr": (False, "expressions are written as they are"),
    "num_context_lines": (None, "the whole program is written"),
    "show_object_address": (False, "an address says nothing of a program"),
    "path_to_underline": (None, "a ScheduleError shows the statements that it is about"),
    "path_to_annotate": (None, "a ScheduleError shows the statements that it is about"),
    "obj_to_underline": (None, "a ScheduleError shows the statements that it is about"),
    "obj_to_annotate": (None, "a ScheduleError shows the statements that it is about"),
}
_STYLES = (None, "light", "dark", "ansi")


def _numbered(text):
    lines = text.split("\n")
    width = len(str(len(lines)))
    return "\n".join(f"{number:{width}} {line}".rstrip() for number, line in enumerate(lines, 1))


def script(self, *, name=None, show_meta=False, ir_prefix="I", tir_prefix="T", relax_prefix="R", module_alias="cls",
           buffer_dtype="float32", int_dtype="int32", float_dtype="void", verbose_expr=False, indent_spaces=4,
           print_line_numbers=False, num_context_lines=None, syntax_sugar=True, show_object_address=False,
           show_all_struct_info=True, path_to_underline=None, path_to_annotate=None, obj_to_underline=None,
           obj_to_annotate=None):  # fmt: skip
    """The text: parsed again, it is the same program.

    name: what a function is called. ir_prefix, tir_prefix, relax_prefix: what stands for the namespaces I, T and R.
    indent_spaces: of a block, 1 to 16. print_line_numbers: before each line, for reading only. syntax_sugar: loops as
    T.grid, axes as T.axis.remap, operators between their operands. show_all_struct_info: after each name of a graph
    function, shapes and dtype. The others are options of other printers: ValueError says why one has no effect here.
    """
    given = locals()
    for option, (neutral, why) in _REFUSED.items():
        if given[option] != neutral:
            raise ValueError(f"{option} has no effect here: {why}")
    text = self._written(name, {
        "ir_prefix": ir_prefix, "tir_prefix": tir_prefix, "relax_prefix": relax_prefix,
        "indent_spaces": int(indent_spaces), "syntax_sugar": bool(syntax_sugar),
        "show_struct_info": bool(show_all_struct_info),
    })  # fmt: skip
    return _numbered(text) if print_line_numbers else text


def show(self, style=None, black_format=None, **options):
    """Prints the text, in colours where the output is a terminal or a notebook; options: those of `script`.

    style: None, "light", "dark" or "ansi", which look alike here. black_format: lines are as short as they can be.
    """
    if style not in _STYLES:
        raise ValueError(f"a style is one of {_STYLES}, not {style!r}")
    show_text(self.script(**options))


__all__ = ["for_notebook", "script", "show", "show_text"]
