"""Tensor programs: their nodes, scalar functions, and the schedule."""

from ..ir.node import NODE_CLASSES, BaseFunc, ForKind, PrimExpr, Range, Stmt
from . import buffer as _buffer
from . import analysis, functor, op, stmt_functor, transform
from .buffer import decl_buffer
from .index_map import IndexMap
from .layout import BijectiveLayout, Layout, bijective_layout, layout
from .functor import PyStmtExprMutator, PyStmtExprVisitor
from ..names import refuser as _refuser
from .op import all, any, const, convert, indexdiv, indexmod, power  # noqa: A004

globals().update(
    (kind, made) for (family, kind), made in NODE_CLASSES.items()
    if family in ("expr", "stmt", "buffer", "iter_var", "comm_reducer", "buffer_region", "match_buffer")
    or kind == "PrimFunc"
)  # fmt: skip
globals().update((name, made) for name, made in op.FUNCTIONS.items() if name[0].islower() or name not in globals())


def SizeVar(name, dtype="int32"):  # noqa: N802 - the vocabulary's name
    """A variable that is known to be at least zero."""
    return Var(name, dtype, True)  # noqa: F821


def build(mod, target=None, pipeline="default"):
    """The same as lathe.build."""
    from ..runtime.module import build

    return build(mod, target, pipeline)


from .schedule import BlockRV, LoopRV, Schedule, ScheduleError, Trace  # noqa: E402
from .tensor_intrin import TensorIntrin  # noqa: E402

schedule = __import__("sys").modules[__name__ + ".schedule"]

__all__ = [
    "BaseFunc", "BijectiveLayout", "BlockRV", "ForKind", "IndexMap", "Layout", "LoopRV", "PrimExpr",
    "PyStmtExprMutator", "PyStmtExprVisitor", "Range", "Schedule", "ScheduleError", "SizeVar", "Stmt", "TensorIntrin",
    "Trace", "all", "analysis", "any", "bijective_layout", "build", "const", "convert", "decl_buffer", "functor",
    "indexdiv", "indexmod", "layout", "op", "power", "stmt_functor", "tensor_intrin", "transform",
]  # fmt: skip

__getattr__ = _refuser("tir", globals())
