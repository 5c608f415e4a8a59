"""What tests ask of schedules."""

from ...ir.module import as_module
from ...ir.structural import assert_structural_equal
from ...names import refuser
from .primitives import Schedule
from .trace import Trace


def assert_structural_equal_ignore_global_symbol(lhs, rhs, map_free_vars=False):
    """Raises where two functions or modules differ in more than what their functions are called outside."""

    def unnamed(thing):
        module = as_module(thing, "what is compared")
        names = list(module._kinds)
        functions = [(name, module[name]) for name in names]
        rename = (lambda name: "main") if len(names) == 1 and not hasattr(thing, "functions") else lambda name: name
        return type(module)({
            rename(name): function.without_attr("global_symbol") if "global_symbol" in function.attrs else function
            for name, function in functions
        })  # fmt: skip

    assert_structural_equal(unnamed(lhs), unnamed(rhs), map_free_vars)


def verify_trace_roundtrip(sch, mod, *, debug_mask="all", text_format=("python", "json")):
    """Raises where a schedule's trace, written as a text ("python", "json" or both) and done again on the program that
    it began with, gives another program. The schedule that did it again is the result."""
    formats = [text_format] if isinstance(text_format, str) else list(text_format)
    again = None
    for form in formats:
        again = Schedule(mod, debug_mask=debug_mask)
        if form == "json":
            Trace.apply_json_to_schedule(sch.trace.as_json(), again)
        elif form == "python":
            Trace.from_python("\n".join(sch.trace.as_python()) + "\n").apply_to_schedule(again, remove_postproc=False)
        else:
            raise ValueError(f'a trace is written as "python" or "json", not as {form!r}')
        assert_structural_equal(again.mod, sch.mod)
    return again


__all__ = ["assert_structural_equal_ignore_global_symbol", "verify_trace_roundtrip"]

__getattr__ = refuser("tir.schedule.testing", globals())
