"""Equality and hash of programs up to the names of bound variables."""

from .. import _lathe
from .node import IRModule, Node, as_expr


def _difference(lhs, rhs, map_free_vars):
    if isinstance(lhs, IRModule) and isinstance(rhs, IRModule):
        return _difference_of_modules(lhs, rhs) if map_free_vars else lhs.first_difference(rhs)
    if isinstance(lhs, IRModule) or isinstance(rhs, IRModule):
        return f"a {type(lhs).__name__} is no {type(rhs).__name__}"
    if isinstance(lhs, (list, tuple)) and isinstance(rhs, (list, tuple)):
        if len(lhs) != len(rhs):
            return f"{len(lhs)} items, not {len(rhs)}"
        found = (_difference(a, b, map_free_vars) for a, b in zip(lhs, rhs))
        return next((difference for difference in found if difference is not None), None)
    if isinstance(lhs, str) and isinstance(rhs, str):
        return None if lhs == rhs else f"{lhs!r} is not {rhs!r}"
    a, b = (thing if isinstance(thing, Node) else as_expr(thing) for thing in (lhs, rhs))
    return _lathe.first_difference(a, b, map_free_vars)


def _difference_of_modules(lhs, rhs):
    """Free variables are each function's own."""
    for name in lhs._kinds:
        if name in rhs._kinds:
            difference = _lathe.first_difference(lhs._find(name), rhs._find(name), True)
            if difference is not None:
                return f"{name}.{difference}"
    left, right = lhs._copy(), rhs._copy()
    for name in set(lhs._kinds) & set(rhs._kinds):
        left._erase(name)
        right._erase(name)
    return left.first_difference(right)


def structural_equal(lhs, rhs, map_free_vars=False):
    """Whether two programs are the same up to the names of what they bind; with map_free_vars, of all variables."""
    return _difference(lhs, rhs, map_free_vars) is None


def get_first_structural_mismatch(lhs, rhs, map_free_vars=False):
    """Where two programs first differ, in words; None when they are equal."""
    return _difference(lhs, rhs, map_free_vars)


def assert_structural_equal(lhs, rhs, map_free_vars=False):
    """Raises ValueError that says where two programs first differ."""
    difference = _difference(lhs, rhs, map_free_vars)
    if difference is not None:
        raise ValueError(f"the programs differ at {difference}")


def structural_hash(node, map_free_vars=False):
    """Equal for programs that are structurally equal."""
    if isinstance(node, IRModule):
        return node.structural_hash()
    return _lathe.structural_hash(node if isinstance(node, Node) else as_expr(node), map_free_vars)
