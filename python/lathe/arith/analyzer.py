"""Bounds, remainders, simplification and proofs under what is known."""

from .. import _lathe
from ..ir.node import NODE_CLASSES, Range, as_expr
from .int_set import domain_of, interval_of


IntImm = NODE_CLASSES["expr", "IntImm"]


class ConstIntBound:
    """Every value lies from min_value to max_value; POS_INF and NEG_INF stand for no bound."""

    POS_INF, NEG_INF = 2**63 - 1, -(2**63)

    def __init__(self, min_value, max_value):
        self.min_value, self.max_value = min_value, max_value

    def __eq__(self, other):
        return (self.min_value, self.max_value) == (other.min_value, other.max_value)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return f"ConstIntBound[{self.min_value}, {self.max_value}]"


class ModularSet:
    """Every value is base modulo coeff; coeff 0: the constant base."""

    def __init__(self, coeff, base):
        self.coeff, self.base = coeff, base

    def __repr__(self):
        return f"ModularSet(coeff={self.coeff}, base={self.base})"


def _number(expr):
    made = as_expr(expr)
    if made.dtype == "handle":
        raise TypeError(f"a scalar expression is expected, not `{made}`")
    return made


def _condition(condition):
    made = _number(condition)
    if made.dtype != "bool":
        raise TypeError(f"a condition is bool, and `{made}` is {made.dtype}")
    return made


class _Constraint:
    def __init__(self, analyzer, condition):
        self._analyzer, self._condition, self._held = analyzer, condition, None

    def __enter__(self):
        self._held = _lathe.AnalyzerConstraint(self._analyzer, _condition(self._condition))

    def __exit__(self, *raised):
        self._held = None


def _as(var, bound):
    """A constant bound as one of the variable's dtype: Range(0, 4) has none of its own."""
    known = isinstance(bound, IntImm) and bound.dtype != var.dtype
    return IntImm(var.dtype, bound.value) if known else bound


class Analyzer:
    """What is known about integer expressions under bindings and constraints. int64 ones never wrap."""

    def __init__(self):
        self._known = _lathe.Analyzer()

    def bind(self, var, expr):
        """`var` lies in a Range, or equals an expression."""
        if isinstance(expr, Range):
            self._known.bind(var, _as(var, expr.min), _as(var, expr.extent))
        else:
            self._known.bind(var, _number(expr), None)

    def constraint_scope(self, constraint):
        """Inside `with`, the constraint holds. Scopes nest."""
        return _Constraint(self._known, constraint)

    def update(self, var, info, override=False):
        """Adds knowledge of a variable: a ConstIntBound or a ModularSet."""
        if override:
            raise ValueError("knowledge is added here, never taken back: make another Analyzer")
        if isinstance(info, ConstIntBound):
            low = None if info.min_value <= ConstIntBound.NEG_INF else info.min_value
            high = None if info.max_value >= ConstIntBound.POS_INF else info.max_value
            self._known.update_bound(var, low, high)
        elif isinstance(info, ModularSet):
            self._known.update_modular(var, info.coeff, info.base)
        else:
            raise TypeError(f"a variable is described by a ConstIntBound or a ModularSet, not {type(info).__name__}")

    def simplify(self, expr, steps=2):
        """An equal expression in simpler form."""
        return self._known.simplify(_number(expr))

    rewrite_simplify = canonical_simplify = simplify

    def const_int_bound(self, expr):
        """The smallest and the largest value."""
        return ConstIntBound(*self._known.const_int_bound(_number(expr)))

    def modular_set(self, expr):
        """What every value is modulo something."""
        return ModularSet(*self._known.modular_set(_number(expr)))

    def const_int_bound_is_bound(self, var):
        """Whether `bind`, `update` or a constraint said anything of a variable's values."""
        return self.const_int_bound(var) != Analyzer().const_int_bound(var)

    def can_prove(self, expr, strength=0):
        """Whether a condition always holds; False: could not be shown."""
        return self._known.can_prove(_condition(expr))

    def can_prove_equal(self, lhs, rhs):
        """Whether two expressions are always equal; False: could not be shown."""
        return self._known.can_prove_equal(_number(lhs), _number(rhs))

    def int_set(self, expr, dom_map=None):
        """An IntervalSet of all values of `expr` while the variables of `dom_map` (each a Range or an IntervalSet) run.

        Tight for sums of terms of different variables; a variable that occurs twice may widen it.
        """
        return interval_of(self._known, _number(expr), domain_of(dom_map or {}))
