"""Iterator maps: indices that split and fuse loop variables, as `io * 32 + ii` or `f // 7, f % 7`, taken apart.

    found = lathe.arith.detect_iter_map([f // 7, f % 7], {f: lathe.ir.Range(0, 21)})
    found.indices[0]  # IterSumExpr([IterSplitExpr(IterMark(f, extent=21), lower_factor=7, extent=3, scale=1)], base=0)
"""

import enum

from .. import _lathe
from ..ir.node import Range, as_expr


class IterMapLevel(enum.IntEnum):
    """What a map is to be besides affine."""

    NoCheck = 0
    Surjective = 1  # the indices take every value of a box, independently of each other
    Bijective = 2  # and each of them once

    @staticmethod
    def from_str(name):
        """The level of that name in lower case."""
        levels = {level.name.lower(): level for level in IterMapLevel}
        if str(name).lower() not in levels:
            raise ValueError(f"a level is one of {', '.join(levels)}, not {name!r}")
        return levels[str(name).lower()]


class IterMapExpr:
    """A part of an index: a split or a sum of splits."""


class IterMark:
    """What is split: a variable counted from its first value, or a fusion (an IterSumExpr) that counts 0, 1, 2, ….

    `extent` is how many values it takes.
    """

    def __init__(self, source, extent):
        self.source, self.extent = source, as_expr(extent)

    def __repr__(self):
        return f"IterMark({self.source}, extent={self.extent})"


class IterSplitExpr(IterMapExpr):
    """source // lower_factor % extent * scale; all that is not given is the whole of the source."""

    def __init__(self, source, lower_factor=1, extent=None, scale=1):
        if not isinstance(source, IterMark):
            raise TypeError(f"an IterMark is split, not a {type(source).__name__}")
        self.source, self.lower_factor, self.scale = source, as_expr(lower_factor), as_expr(scale)
        self.extent = source.extent if extent is None else as_expr(extent)

    def __repr__(self):
        pieces = f"lower_factor={self.lower_factor}, extent={self.extent}, scale={self.scale}"
        return f"IterSplitExpr({self.source}, {pieces})"


class IterSumExpr(IterMapExpr):
    """The sum of splits and a base."""

    def __init__(self, args, base=0):
        self.args, self.base = list(args), as_expr(base)
        self._found = None

    def __repr__(self):
        return f"IterSumExpr({self.args}, base={self.base})"


class IterMapResult:
    """`indices`: an IterSumExpr for each index, none where the map is refused; `errors` say why it is."""

    def __init__(self, indices, errors):
        self.indices, self.errors = indices, errors

    def __repr__(self):
        return f"IterMapResult({self.indices}, errors={self.errors})"


def affine_indices(indices, input_iters, predicate=True):
    """The compiler's own description of a map from variables (each with its Range) to indices."""
    wrong = next((one for one in input_iters.values() if not isinstance(one, Range)), None)
    if wrong is not None:
        raise TypeError(f"a variable runs over a Range, not a {type(wrong).__name__}")
    domain = [(var, item.min, item.extent) for var, item in input_iters.items()]
    return _lathe.AffineIndices(list(indices), domain, None if predicate is True else as_expr(predicate))


def refusal_of(found, check_level):
    """Why a map is none of that level; None where it is one."""
    level = IterMapLevel.from_str(check_level) if isinstance(check_level, str) else IterMapLevel(check_level)
    if found.refusal:
        return found.refusal
    if level >= IterMapLevel.Surjective and not found.surjective:
        return "the indices do not take every value of a box"
    if level >= IterMapLevel.Bijective and not found.injective:
        return "different values of the variables have the same indices"
    return None


def detect_iter_map(indices, input_iters, predicate=True, check_level=IterMapLevel.Surjective,
                    simplify_trivial_iterators=True):  # fmt: skip
    """The indices as sums of splits of `input_iters`, a map from variables to Ranges: an IterMapResult.

    `predicate` says which values of the variables count: bounds of fusions, as `io * 32 + ii < n`. Variables of extent
    one are simplified away in any case.
    """
    found = affine_indices(indices, input_iters, predicate)
    why = refusal_of(found, check_level)
    if why is not None:
        return IterMapResult([], [why])
    marks = []

    def sum_of(pieces):
        digits, base = pieces
        splits = [IterSplitExpr(marks[at], lower, extent, scale) for at, lower, extent, scale in digits]
        made = IterSumExpr(splits, base)
        made._found = found
        return made

    for var, _, fused, extent in found.sources():
        marks.append(IterMark(sum_of(fused) if var is None else var, extent))
    return IterMapResult([sum_of(pieces) for pieces in found.sums()], [])


def normalize_iter_map_to_expr(expr):
    """The scalar expression that a part of an iterator map stands for; variables count from zero."""
    known = _lathe.Analyzer()

    def total(terms):
        whole = terms[0]
        for term in terms[1:]:
            whole = whole + term
        return whole

    def made(part):
        if isinstance(part, IterMark):
            return made(part.source)
        if isinstance(part, IterSumExpr):
            return total([*(made(arg) for arg in part.args), part.base])
        if not isinstance(part, IterSplitExpr):
            return as_expr(part)
        value = made(part.source) // part.lower_factor
        whole = known.can_prove_equal(part.lower_factor * part.extent, part.source.extent)
        return (value if whole else value % part.extent) * part.scale

    return known.simplify(as_expr(made(expr)))


def iter_map_simplify(indices, input_iters, predicate=True, check_level=IterMapLevel.Surjective,
                      simplify_trivial_iterators=True):  # fmt: skip
    """The indices in the simplest form that an iterator map's structure gives; as they are where they are none."""
    found = affine_indices(indices, input_iters, predicate)
    if refusal_of(found, check_level) is not None:
        return [as_expr(index) for index in indices]
    return found.normalized()


def inverse_affine_iter_map(iter_map, outputs):
    """The variables of a map as expressions of its indices' values: a dict from variables.

    `iter_map` are the IterSumExprs of one detect_iter_map, in order, which is to be bijective.
    """
    sums = list(iter_map)
    found = sums[0]._found if sums and isinstance(sums[0], IterSumExpr) else None
    if found is None or any(not isinstance(one, IterSumExpr) or one._found is not found for one in sums):
        raise TypeError("the indices of one detect_iter_map are inverted")
    if len(sums) != len(found.sums()) or len(sums) != len(outputs):
        raise ValueError(f"{len(found.sums())} indices have as many outputs, not {len(outputs)} of {len(sums)}")
    return dict(found.inverse(list(outputs)))
