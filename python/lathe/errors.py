"""What Lathe raises. Every error carries `.diagnostics`: code, place, message, notes, help."""


class Error(Exception):
    """Something asked of Lathe cannot be done, for the reason it gives."""

    def __init__(self, text, diagnostics=()):
        super().__init__(text)
        self.diagnostics = list(diagnostics)


class ModelError(Error):
    """The model cannot be read: damaged, inconsistent, or with operators that are not known."""


class ScriptError(Error):
    """The text of a program is wrong."""


class CompileError(Error):
    """The program cannot be compiled as asked."""


class InputError(Error, TypeError):
    """An array of the wrong dtype, shape or number was given to a compiled model."""


class RunError(Error):
    """A compiled model could not be opened, or failed while it ran."""


class NodeError(Error, TypeError):
    """A node cannot be made of what it was given."""


class ScheduleError(Error):
    """A primitive cannot be applied, for the reason it gives; the program stays as it was."""


class InternalError(Error):
    """A failure of Lathe itself; the text says where the reproducer lies."""


_KINDS = (
    ("onnx", ModelError),
    ("relax-wrong-input", InputError),
    ("relax-cannot-interpret", RunError),
    ("relax", ModelError),
    ("script", ScriptError),
    ("tir-tensor-intrin", ScheduleError),
    ("tir-layout", NodeError),
    ("schedule", ScheduleError),
    ("te-", NodeError),
    ("ir-too-deep", Error),
    ("ir-", NodeError),
    ("driver-json-holds", NodeError),
    ("driver-json", ModelError),
    ("runtime-input", InputError),
    ("runtime", RunError),
    ("tir-assertion-failed", RunError),
    ("tir-raised", RunError),
    ("tir-out-of-bounds", RunError),
    ("tir-uninitialised-read", RunError),
    ("tir-division-by-zero", RunError),
    ("tir-not-interpretable", RunError),
)


def error_of(diagnostics, text):
    """The exception for diagnostics from the compiler; the first one's code chooses the class."""
    code = diagnostics[0].code if diagnostics else ""
    for prefix, kind in _KINDS:
        if code.startswith(prefix):
            return kind(text, diagnostics)
    return CompileError(text, diagnostics)
