"""The newer home of the schedule, under the same names."""

from .tir.schedule import BlockRV, ExprRV, LoopRV, SBlockRV, Schedule, ScheduleError, Trace

__all__ = ["BlockRV", "ExprRV", "LoopRV", "SBlockRV", "Schedule", "ScheduleError", "Trace"]
