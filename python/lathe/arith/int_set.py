"""Sets of integers with symbolic ends: what an expression takes while some of its variables run over their domains."""

from .. import _lathe
from ..ir.node import NODE_CLASSES, Range, as_expr
from .iter_map import affine_indices

Max, Min, Var = (NODE_CLASSES["expr", name] for name in ("Max", "Min", "Var"))

_NEG_INF, _POS_INF = Var("neg_inf", "handle"), Var("pos_inf", "handle")


def neg_inf():
    """The end of an interval that has no smallest value: always the same object."""
    return _NEG_INF


def pos_inf():
    """The end of an interval that has no largest value: always the same object."""
    return _POS_INF


class IntSet:
    """A set of integers."""

    @staticmethod
    def single_point(point):
        """The set of one value."""
        return IntervalSet(point, point)

    @staticmethod
    def vector(vec):
        """The values of the lanes of a vector expression; of a scalar, its value."""
        made = as_expr(vec)
        lanes = getattr(made, "lanes", 1)
        if lanes == 1:
            return IntSet.single_point(made)
        base, stride = getattr(made, "base", getattr(made, "value", None)), getattr(made, "stride", 0)
        if base is None:
            raise TypeError(f"the lanes of a ramp or a broadcast are a set, not those of `{made}`")
        known = _lathe.Analyzer()
        first, last = base, known.simplify(as_expr(base + stride * (lanes - 1)))
        if known.can_prove(as_expr(stride >= 0)):
            return IntervalSet(first, last)
        return IntervalSet(last, first) if known.can_prove(as_expr(stride <= 0)) else IntervalSet.everything()

    def is_nothing(self):
        """Whether no value is in the set, for certain."""
        raise NotImplementedError

    def is_everything(self):
        """Whether every integer is in the set."""
        raise NotImplementedError


class IntervalSet(IntSet):
    """The integers from min_value to max_value, both in the set; neg_inf() and pos_inf(), or None, stand for no end."""

    def __init__(self, min_value, max_value):
        self.min_value = _NEG_INF if min_value is None else as_expr(min_value)
        self.max_value = _POS_INF if max_value is None else as_expr(max_value)

    @classmethod
    def everything(cls):
        """All integers."""
        return cls(None, None)

    @classmethod
    def nothing(cls):
        """No integer."""
        return cls(_POS_INF, _NEG_INF)

    def is_everything(self):
        return self.min_value.same_as(_NEG_INF) and self.max_value.same_as(_POS_INF)

    def is_nothing(self):
        if self.min_value.same_as(_POS_INF) or self.max_value.same_as(_NEG_INF):
            return True
        return self.is_bounded() and _lathe.Analyzer().can_prove(as_expr(self.max_value < self.min_value))

    def is_bounded(self):
        """Whether it has both ends."""
        return not any(end.same_as(inf) for end in (self.min_value, self.max_value) for inf in (_NEG_INF, _POS_INF))

    def __repr__(self):
        return f"IntervalSet[{self.min_value}, {self.max_value}]"


def domain_of(dom_map):
    """A map from variables to Ranges and IntervalSets as (variable, first, extent), and those without an end."""
    bounded, unbounded = [], []
    for var, domain in dom_map.items():
        if isinstance(domain, Range):
            bounded.append((var, domain.min, domain.extent))
        elif not isinstance(domain, IntervalSet):
            raise TypeError(f"a variable runs over a Range or an IntervalSet, not a {type(domain).__name__}")
        elif domain.is_bounded():
            bounded.append((var, domain.min_value, domain.max_value - domain.min_value + 1))
        else:
            unbounded.append(var)
    return bounded, unbounded


def interval_of(known, expr, domains):
    """An IntervalSet of what `expr` takes over what `domain_of` gave; everything where a variable without an end is in
    it."""
    bounded, unbounded = domains
    if any(var.same_as(free) for free in _lathe.free_vars(expr) for var in unbounded):
        return IntervalSet.everything()
    return IntervalSet(*known.interval(expr, bounded))


def _ranges(region):
    wrong = next((item for item in region if not isinstance(item, Range)), None)
    if wrong is not None:
        raise TypeError(f"a region is a list of Ranges, not of {type(wrong).__name__}")
    return list(region)


def estimate_region_strict_bound(region, var_dom, predicate=True):
    """What the region covers while the variables of `var_dom` run, where that is exactly a box of IntervalSets; else
    None.

    `region` is a list of Ranges, `var_dom` maps variables to Ranges; `predicate` says which of their values count.
    """
    ranges = _ranges(region)
    found = affine_indices([item.min for item in ranges], var_dom, predicate)
    if found.refusal or not found.surjective:
        return None
    known, sets = _lathe.Analyzer(), []
    for item, (digits, base), extent in zip(ranges, found.sums(), found.extents()):
        stride = digits[-1][3] if digits else as_expr(1)
        if not known.can_prove(as_expr(stride >= 1)) or not known.can_prove(as_expr(stride <= item.extent)):
            return None  # it leaves gaps, or runs down
        sets.append(IntervalSet(known.simplify(base), known.simplify(base + stride * (extent - 1) + item.extent - 1)))
    return sets


def estimate_region_lower_bound(region, var_dom, predicate=True):
    """A box of IntervalSets that the region covers for certain, or None: here the exact one, where there is one."""
    return estimate_region_strict_bound(region, var_dom, predicate)


def estimate_region_upper_bound(region, var_dom, predicate=True):
    """A box of IntervalSets that holds all that the region covers; the exact one, where there is one."""
    exact = estimate_region_strict_bound(region, var_dom, predicate)
    if exact is not None:
        return exact
    known, domains = _lathe.Analyzer(), domain_of(var_dom)
    return [
        IntervalSet(
            interval_of(known, item.min, domains).min_value,
            interval_of(known, as_expr(item.min + item.extent - 1), domains).max_value,
        )
        for item in _ranges(region)
    ]


def union_lower_bound(sets):
    """An interval that the union of the IntervalSets covers for certain: they are joined where they touch or overlap.

    Nothing is told of the rest: of sets that lie apart the first is given.
    """
    known, whole = _lathe.Analyzer(), IntervalSet.nothing()
    for one in sets:
        if one.is_nothing():
            continue
        if whole.is_nothing() or one.is_everything():
            whole = one
        elif whole.is_everything() or not (one.is_bounded() and whole.is_bounded()):
            continue
        elif known.can_prove(as_expr(one.min_value <= whole.max_value + 1)) and known.can_prove(
            as_expr(whole.min_value <= one.max_value + 1)
        ):
            low, high = Min(whole.min_value, one.min_value), Max(whole.max_value, one.max_value)
            whole = IntervalSet(known.simplify(low), known.simplify(high))
    return whole
