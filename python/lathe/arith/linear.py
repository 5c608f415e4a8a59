"""Linear forms of expressions, the bounds that conditions give variables, and what an expression computes twice."""

from .. import _lathe
from ..ir.node import NODE_CLASSES, as_expr
from ..ir.structural import structural_equal
from .int_set import IntervalSet, domain_of, interval_of, pos_inf

And, IntImm, Max, Min, Var = (NODE_CLASSES["expr", name] for name in ("And", "IntImm", "Max", "Min", "Var"))
_ORDERS = {"LT": (1, 1), "LE": (1, 0), "GT": (-1, 1), "GE": (-1, 0)}  # sign and margin of: sign * (a - b) + margin <= 0


def detect_linear_equation(expr, var_list):
    """`expr` as coefficients, one for each variable, and the rest: their list; empty where it is not linear in them."""
    return _lathe.Analyzer().linear_coefficients(as_expr(expr), list(var_list)) or []


def _bounds(var, condition):
    """`coefficient * var + rest <= 0` (two of them for an equality) that a comparison says; None where it says none."""
    kind = type(condition).__name__
    if kind == "EQ":
        signs = [(1, 0), (-1, 0)]
    elif kind in _ORDERS:
        signs = [_ORDERS[kind]]
    else:
        return None
    known, found = _lathe.Analyzer(), []
    for sign, margin in signs:
        form = known.linear_coefficients(as_expr((condition.a - condition.b) * sign + margin), [var])
        if form is None or not isinstance(form[0], IntImm) or form[0].value == 0:
            return None
        found.append((form[0].value, form[1]))
    return found


def _end(known, coefficient, rest):
    """The end that `coefficient * var + rest <= 0` sets: the largest value where the coefficient is positive, else the
    smallest."""
    if coefficient > 0:
        return known.simplify(as_expr((0 - rest) // coefficient))
    return known.simplify(as_expr((rest - coefficient - 1) // -coefficient))


def deduce_bound(var, cond, hint_map, relax_map):
    """An IntervalSet of values of `var` with which the comparison `cond` holds whatever those of `relax_map` are.

    `relax_map` and `hint_map` map variables to Ranges or IntervalSets; what `hint_map` says of the other variables is
    not needed here. Nothing where no such values could be told.
    """
    bounds = _bounds(var, as_expr(cond))
    domains = domain_of(relax_map)
    if bounds is None:
        return IntervalSet.nothing()
    known, low, high = _lathe.Analyzer(), None, None
    for coefficient, rest in bounds:
        worst = interval_of(known, rest, domains).max_value
        if worst.same_as(pos_inf()):
            return IntervalSet.nothing()
        if coefficient > 0:
            high = _end(known, coefficient, worst)
        else:
            low = _end(known, coefficient, worst)
    return IntervalSet(low, high)


def detect_clip_bound(expr, var_list):
    """The smallest and the largest value that a condition leaves each variable: [low, high, low, high, …], None where
    it says nothing; empty where a part of it is no bound of one of the variables."""
    parts, left = [], [as_expr(expr)]
    while left:
        part = left.pop()
        if isinstance(part, And):
            left += [part.b, part.a]
        else:
            parts.append(part)
    ends = [[None, None] for _ in var_list]
    known = _lathe.Analyzer()
    for part in parts:
        named = [at for at, var in enumerate(var_list) if any(var.same_as(free) for free in _lathe.free_vars(part))]
        if len(named) != 1:
            return []
        bounds = _bounds(var_list[named[0]], part)
        if bounds is None:
            return []
        pair = ends[named[0]]
        for coefficient, rest in bounds:
            at, narrower = (1, Min) if coefficient > 0 else (0, Max)
            end = _end(known, coefficient, rest)
            pair[at] = end if pair[at] is None else known.simplify(narrower(pair[at], end))
    return [end for pair in ends for end in pair]


def detect_common_subexpr(expr, threshold):
    """What `expr` computes at least `threshold` times: a dict from expressions, the largest ones, to how often."""
    buckets = {}

    def count(part):
        if not isinstance(part, (Var, IntImm)) and _lathe.children(part):
            key = _lathe.structural_hash(part, False)
            for entry in buckets.setdefault(key, []):
                if structural_equal(entry[0], part):
                    entry[1] += 1
                    break
            else:
                buckets[key].append([part, 1])
        for child in _lathe.children(part):
            count(child)

    count(as_expr(expr))
    often = [entry for bucket in buckets.values() for entry in bucket if entry[1] >= threshold]

    def holds(whole, part):
        return any(structural_equal(child, part) or holds(child, part) for child in _lathe.children(whole))

    return {
        part: times
        for part, times in often
        if not any(other is not part and others >= times and holds(other, part) for other, others in often)
    }
