"""Passes that replace statements of one kind, and passes that only look: the vocabulary's small ones."""

from ..ir.node import NODE_CLASSES, ForKind
from ..ir.transform import function_pass_of
from .analysis import verify_gpu_code, verify_memory, verify_ssa
from .op import FUNCTIONS
from .stmt_functor import ir_transform, post_order_visit

_expr = {kind: made for (family, kind), made in NODE_CLASSES.items() if family == "expr"}
_stmt = {kind: made for (family, kind), made in NODE_CLASSES.items() if family == "stmt"}
_pass = function_pass_of("tir")


def _rewriting(name, replace, kinds):
    """The pass that puts replace(node) in the place of nodes of these kinds, or leaves those it gives None for."""

    def rewrite(function, mod, ctx):
        return function.with_body(ir_transform(function.body, None, replace, kinds))

    return _pass(rewrite, opt_level=0, name="tir." + name)


def _without(name, gone):
    """The pass that leaves statements out; one that is all of a body becomes `T.evaluate(0)`."""

    def replace(node):
        if isinstance(node, _stmt["SeqStmt"]):
            left = [one for one in node.seq if not gone(one)]
            return None if len(left) == len(node.seq) else _sequence(left)
        for part in ("body", "then_case", "else_case", "init"):
            child = getattr(node, part, None)
            if child is not None and gone(child):
                node = node._with(**{part: _sequence([])})
        return node

    def rewrite(function, mod, ctx):
        body = ir_transform(function.body, None, replace)
        return function.with_body(_sequence([]) if gone(body) else body)

    return _pass(rewrite, opt_level=0, name="tir." + name)


def _sequence(statements):
    if not statements:
        return _stmt["Evaluate"](0)
    return statements[0] if len(statements) == 1 else _stmt["SeqStmt"](statements)


def _is_call(node, name):
    return isinstance(node, _expr["Call"]) and node.op == name


def RemoveAssume():  # noqa: N802 - the vocabulary's names
    """`T.assume(condition)` goes."""
    return _without("RemoveAssume", lambda s: isinstance(s, _stmt["Evaluate"]) and _is_call(s.value, "assume"))


def RemoveStoreUndef():  # noqa: N802
    """Stores of `T.undef()` go: the element may have any value, so it keeps the one that it has."""
    return _without(
        "RemoveStoreUndef", lambda s: isinstance(s, _stmt["BufferStore"]) and _is_call(s.value, "undef")
    )


def SkipAssert():  # noqa: N802
    """Assertions go."""
    return _without("SkipAssert", lambda s: isinstance(s, _stmt["AssertStmt"]))


def ConvertForLoopsToSerial():  # noqa: N802
    """Parallel loops become serial ones."""

    def serial(node):
        return node._with(kind=ForKind.SERIAL) if node.kind == ForKind.PARALLEL else None

    return _rewriting("ConvertForLoopsToSerial", serial, ["tir.For"])


def RewriteUnsafeSelect():  # noqa: N802
    """A `T.Select` of scalars that loads in one of its values becomes a `T.if_then_else`, which computes only one."""

    def loads(value):
        found = []
        post_order_visit(value, lambda node: found.append(node) if isinstance(node, _expr["BufferLoad"]) else None)
        return bool(found)

    def rewrite(node):
        if str(node.condition.dtype) != "bool" or not (loads(node.true_value) or loads(node.false_value)):
            return None
        return FUNCTIONS["if_then_else"](node.condition, node.true_value, node.false_value)

    return _rewriting("RewriteUnsafeSelect", rewrite, ["tir.Select"])


def _looking(name, holds, what):
    """The pass that raises where a function is not as it should be."""

    def look(function, mod, ctx):
        if not holds(function):
            raise ValueError(f"{function.attrs.get('global_symbol', 'a function')} {what}")
        return function

    return _pass(look, opt_level=0, name="tir." + name)


def VerifySSA():  # noqa: N802
    """Raises ValueError where a variable is defined twice."""
    return _looking("VerifySSA", verify_ssa, "defines a variable twice")


def VerifyMemory():  # noqa: N802
    """Raises ValueError where the host touches a device's memory."""
    return _looking("VerifyMemory", verify_memory, "touches its device's memory outside of the device's threads")


def VerifyGPUCode(constraints):  # noqa: N802
    """Raises ValueError where a function needs more than a device has; constraints: those of verify_gpu_code."""
    return _looking("VerifyGPUCode", lambda f: verify_gpu_code(f, constraints), f"is not within {dict(constraints)}")


PASSES = {
    made.__name__: made
    for made in (RemoveAssume, RemoveStoreUndef, SkipAssert, ConvertForLoopsToSerial, RewriteUnsafeSelect, VerifySSA,
                 VerifyMemory, VerifyGPUCode)
}  # fmt: skip
