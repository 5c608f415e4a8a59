"""Programs transformed step by step: the schedule, what it is asked and what it notes."""

from ...names import refuser as _refuser
from . import analysis, testing, transform
from .primitives import (
    PRIMITIVES, BlockRV, ExprRV, LoopRV, SBlockRV, Schedule, ScheduleDebugMask, ScheduleError, ScheduleState,
)  # fmt: skip
from .trace import Instruction, InstructionKind, Trace

__all__ = [
    "PRIMITIVES", "BlockRV", "ExprRV", "Instruction", "InstructionKind", "LoopRV", "SBlockRV", "Schedule",
    "ScheduleDebugMask", "ScheduleError", "ScheduleState", "Trace", "analysis", "testing", "transform",
]  # fmt: skip

__getattr__ = _refuser("tir.schedule", globals())
