"""Iterator maps divided by a part of their variables, as blockize divides the axes of a block by the loops inside.

    (outer, inner), _ = lathe.arith.subspace_divide([i * 32 + j], {i: Range(0, 4), j: Range(0, 32)}, [j])
    # i * 32 + j is outer.source * inner.extent + inner.source: i of 4, and j of 32
"""

from .. import _lathe
from ..ir.node import NODE_CLASSES, Range, as_expr
from .iter_map import (
    IterMapLevel,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    affine_indices,
    normalize_iter_map_to_expr,
    refusal_of,
)

_NAMES = ("And", "Call", "GE", "GT", "IntImm", "LE", "LT", "Var")
And, Call, GE, GT, IntImm, LE, LT, Var = (NODE_CLASSES["expr", name] for name in _NAMES)


class _Indivisible(Exception):
    """No outer and inner part; caught by subspace_divide."""


class _Division:
    """The sources and sums of one detected map, each divided into a part of the outer variables and one of the inner.

    A piece is (whether it is inner, mark, lower, extent, scale), where the mark is of one kind of variables.
    """

    def __init__(self, found, inner, known):
        self.known, self.inner = known, inner
        self.sources, self.kinds, self.marks, self.divided = found.sources(), [], [], {}
        for var, _, fused, extent in self.sources:
            if var is not None:
                self.kinds.append({any(var.same_as(one) for one in inner)})
                self.marks.append(IterMark(var, extent))
            else:
                self.kinds.append(set().union(*(self.kinds[digit[0]] for digit in fused[0])))
                splits = [IterSplitExpr(self.marks[at], *rest) for at, *rest in fused[0]]
                self.marks.append(IterMark(IterSumExpr(splits, fused[1]), extent))

    def quotient(self, whole, part):
        """whole / part, which is to be exact."""
        if not self.known.can_prove_equal(as_expr(whole % part), as_expr(0)):
            raise _Indivisible
        return self.known.simplify(as_expr(whole // part))

    def multiple(self, whole, part):
        return self.known.can_prove_equal(as_expr(whole % part), as_expr(0))

    def product(self, *factors):
        made = as_expr(1)
        for factor in factors:
            made = self.known.simplify(as_expr(made * factor))
        return made

    def pieces(self, digits):
        """The pieces that digits consist of, largest scale first."""
        made = []
        for at, lower, extent, scale in digits:
            if len(self.kinds[at]) == 1:
                made.append((*self.kinds[at], self.marks[at], lower, extent, scale))
            else:
                made += self.pieces_of_mixed(at, lower, extent, scale)
        return [piece for piece in made if not self.known.can_prove_equal(piece[3], as_expr(1))]

    def pieces_of_mixed(self, at, lower, extent, scale):
        """source // lower % extent where the source is outer * step + inner with inner below step."""
        if at not in self.divided:
            outer, inner, step = self.cut(self.pieces(self.sources[at][2][0]))
            count = self.known.simplify(as_expr((self.sources[at][3] + step - 1) // step))
            self.divided[at] = (IterMark(outer, count), IterMark(inner, step), step)
        outer, inner, step = self.divided[at]
        span = self.product(lower, extent)
        if self.multiple(lower, step):
            return [(False, outer, self.quotient(lower, step), extent, scale)]
        if self.multiple(step, span):
            return [(True, inner, lower, extent, scale)]
        below = self.quotient(step, lower)
        if self.multiple(span, step):
            above = self.quotient(span, step)
        elif self.known.can_prove(as_expr(span >= self.sources[at][3])):
            above = outer.extent
        else:
            raise _Indivisible
        return [(False, outer, as_expr(1), above, self.product(scale, below)), (True, inner, lower, below, scale)]

    def cut(self, pieces):
        """Pieces as (outer sum, inner sum, step): they are outer * step + inner, and inner is below step."""
        outer = [piece for piece in pieces if not piece[0]]
        inner = [piece for piece in pieces if piece[0]]
        if any(above[0] and not below[0] for above, below in zip(pieces, pieces[1:])):
            raise _Indivisible
        step = self.product(inner[0][3], inner[0][4]) if inner else as_expr(1)
        outer = [IterSplitExpr(mark, low, extent, self.quotient(scale, step)) for _, mark, low, extent, scale in outer]
        return IterSumExpr(outer), IterSumExpr([IterSplitExpr(*piece[1:]) for piece in inner]), step

    def sums(self, digits, base):
        """A sum as the marks of its outer and its inner part; the base is the inner one's."""
        outer, inner, step = self.cut(self.pieces(digits))
        count = self.product(outer.args[0].extent, outer.args[0].scale) if outer.args else as_expr(1)
        return IterMark(outer, count), IterMark(IterSumExpr(inner.args, base), step)


def _conjuncts(condition):
    if isinstance(condition, And):
        return _conjuncts(condition.a) + _conjuncts(condition.b)
    if isinstance(condition, Call) and condition.op == "likely":
        return _conjuncts(condition.args[0])
    return [condition]


def _both(conditions):
    made = as_expr(True)
    for at, condition in enumerate(conditions):
        made = And(made, condition) if at else condition
    return made


def _mentions(expr, variables):
    return any(free.same_as(var) for free in _lathe.free_vars(expr) for var in variables)


def _cut_ranges(conditions, input_iters, known):
    """The ranges that upper bounds of single variables leave, and the other conditions."""
    ranges, others = dict(input_iters), []
    for condition in conditions:
        simple = known.simplify(condition)
        var, bound = getattr(simple, "a", None), getattr(simple, "b", None)
        if not isinstance(simple, (LT, LE)) or not isinstance(var, Var) or var not in ranges:
            others.append(condition)
            continue
        extent = known.simplify(as_expr(bound - ranges[var].min + isinstance(simple, LE)))
        cuts = not _mentions(bound, input_iters) and known.can_prove(as_expr(extent <= ranges[var].extent))
        if cuts and known.can_prove(as_expr(extent >= 1)):
            ranges[var] = Range.from_min_extent(ranges[var].min, extent)
        else:
            others.append(condition)
    return ranges, others


def _outer_bound(condition, input_iters, inner, known):
    """A comparison of both kinds of variables as one of the outer alone, where it goes by whole steps of the inner."""
    if isinstance(condition, (LT, LE)):
        index, bound = condition.a, condition.b
    elif isinstance(condition, (GT, GE)):
        index, bound = condition.b, condition.a
    else:
        raise _Indivisible
    if _mentions(bound, input_iters):
        index, bound = as_expr(index - bound), as_expr(0)
    if isinstance(condition, (LE, GE)):
        bound = as_expr(bound + 1)
    if isinstance(condition, (GT, GE)) and not _mentions(index, input_iters):
        raise _Indivisible  # a lower bound
    found = affine_indices([index], input_iters)
    if found.refusal:
        raise _Indivisible
    division = _Division(found, inner, known)
    digits, base = found.sums()[0]
    outer, inside = division.sums(digits, base)
    counters = {var: as_expr(var - item.min) for var, item in input_iters.items()}
    value = _lathe.substitute(normalize_iter_map_to_expr(outer), list(counters.items()))
    limit = division.quotient(known.simplify(as_expr(bound - base)), inside.extent)
    return as_expr(known.simplify(value) < limit)


def subspace_divide(bindings, input_iters, sub_iters, predicate=True, check_level=IterMapLevel.Surjective,
                    simplify_trivial_iterators=True):  # fmt: skip
    """Each binding as outer * e + inner, where inner depends on `sub_iters` alone, outer on the others alone: a list.

    `input_iters` maps the variables to Ranges. For each binding there is a pair of IterMarks, [outer, inner]: their
    sources are IterSumExprs, e is the inner one's extent, and the binding's base is with the inner. After them comes a
    pair whose extents are the conditions that `predicate` is of the outer and of the inner variables. The list is empty
    where the bindings are no map of `check_level` (as for detect_iter_map), or one that does not divide so.
    """
    domain = dict(input_iters)
    inner = list(sub_iters)
    for var in inner:
        if not any(var.same_as(one) for one in domain):
            raise ValueError(f"'{var.name}' is to be inside, and has no range among input_iters")
    ranged = _lathe.Analyzer()
    for var, item in domain.items():
        if isinstance(item, Range):
            ranged.bind(var, item.min, item.extent)
    conditions = _conjuncts(as_expr(predicate))
    cut = _cut_ranges(conditions, domain, ranged)
    # A bound of one variable is only a condition of its part, or it makes the variable's range what the map needs.
    for ranges, others in ((domain, conditions), cut)[: 1 + (len(cut[1]) < len(conditions))]:
        found = affine_indices(bindings, ranges, _both(others))
        if refusal_of(found, check_level) is not None:
            continue
        known = _lathe.Analyzer()
        try:
            division = _Division(found, inner, known)
            divided = [list(division.sums(digits, base)) for digits, base in found.sums()]
            parts = _conditions_apart(conditions, domain, inner, ranged)
        except _Indivisible:
            continue
        return [*divided, [IterMark(IterSumExpr([]), part) for part in parts]]
    return []


def _conditions_apart(conditions, domain, inner, ranged):
    """The conditions of the outer and of the inner variables."""
    outside = [var for var in domain if not any(var.same_as(one) for one in inner)]
    outer, inside = [], []
    for condition in conditions:
        if ranged.can_prove(condition):
            continue
        if not _mentions(condition, inner):
            outer.append(condition)
        elif not _mentions(condition, outside):
            inside.append(condition)
        else:
            outer.append(_outer_bound(condition, domain, inner, _lathe.Analyzer()))
    return _both(outer), _both(inside)


class _Terms:
    """Sums of an index by what moves in them, for normalize_to_iter_sum."""

    def __init__(self, input_iters):
        self.iters, self.known = input_iters, _lathe.Analyzer()
        for var, item in input_iters.items():
            self.known.bind(var, item.min, item.extent)
        self.plain = _lathe.Analyzer()
        self.marks = {var: IterMark(var, item.extent) for var, item in input_iters.items()}
        self.splits, self.base = [], as_expr(0)  # splits: [mark, lower, extent, scale]

    def add(self, expr, scale):
        kind = type(expr).__name__
        if not _mentions(expr, self.iters):
            self.base = as_expr(self.base + expr * scale)
        elif kind in ("Add", "Sub"):
            self.add(expr.a, scale)
            self.add(expr.b, scale if kind == "Add" else as_expr(0 - scale))
        elif kind == "Mul" and not (_mentions(expr.a, self.iters) and _mentions(expr.b, self.iters)):
            moving, still = (expr.a, expr.b) if _mentions(expr.a, self.iters) else (expr.b, expr.a)
            self.add(moving, self.plain.simplify(as_expr(scale * still)))
        else:
            self.add_factor(expr, scale)

    def add_factor(self, expr, scale):
        found = affine_indices([expr], self.iters)
        if found.refusal:
            self.base = as_expr(self.base + expr * scale)
            return
        marks = []
        for var, _, fused, extent in found.sources():
            if var is not None:
                marks.append(self.marks[var])
            else:
                splits = [IterSplitExpr(marks[at], *rest) for at, *rest in fused[0]]
                marks.append(IterMark(IterSumExpr(splits, fused[1]), extent))
        digits, base = found.sums()[0]
        self.base = as_expr(self.base + base * scale)
        for at, lower, extent, factor in digits:
            self.add_split(marks[at], lower, extent, self.plain.simplify(as_expr(factor * scale)))

    def add_split(self, mark, lower, extent, scale):
        for split in self.splits:
            equal = zip(split[1:3], (lower, extent))
            if split[0] is mark and all(self.plain.can_prove_equal(*pair) for pair in equal):
                split[3] = self.plain.simplify(as_expr(split[3] + scale))
                return
        self.splits.append([mark, lower, extent, scale])

    def sum(self):
        kept = [split for split in self.splits if not self.plain.can_prove_equal(split[3], as_expr(0))]
        kept.sort(key=lambda split: _size_of(split[3]), reverse=True)
        return IterSumExpr([IterSplitExpr(*split) for split in kept], self.plain.simplify(self.base))


def _size_of(scale):
    """A scale's constant factor, and how many others it has."""
    if isinstance(scale, IntImm):
        return (scale.value, 0)
    if type(scale).__name__ != "Mul":
        return (1, 1)
    (one, some), (other, more) = _size_of(scale.a), _size_of(scale.b)
    return (one * other, some + more)


def normalize_to_iter_sum(index, input_iters):
    """`index` as an IterSumExpr of splits of `input_iters`, a map from variables to Ranges, largest scale first.

    Scales are sorted by their constant factor, then by how many symbols they have. What is found no split of the
    variables is in the base: nothing is refused. Nothing is said of whether the splits overlap. A split's variable
    counts from the first value of its range, as in all iterator maps.
    """
    wrong = next((one for one in input_iters.values() if not isinstance(one, Range)), None)
    if wrong is not None:
        raise TypeError(f"a variable runs over a Range, not a {type(wrong).__name__}")
    terms = _Terms(dict(input_iters))
    terms.add(terms.known.simplify(as_expr(index)), as_expr(1))
    return terms.sum()
