"""What may look on while passes run: what lathe.ir.instrument has."""

from .ir.instrument import (
    PassInstrument, PassPrintingInstrument, PassTimingInstrument, PrintAfterAll, PrintBeforeAll, pass_instrument,
)  # fmt: skip
from .names import refuser

__all__ = [
    "PassInstrument", "PassPrintingInstrument", "PassTimingInstrument", "PrintAfterAll", "PrintBeforeAll",
    "pass_instrument",
]  # fmt: skip

__getattr__ = refuser("lathe.instrument", globals())
