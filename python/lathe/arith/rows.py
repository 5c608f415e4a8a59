"""Linear forms over integers of any size, and the systems `form <= 0` of them that solvers of constraints work on.

A form is a dict from columns to coefficients, none of them zero; the constant is at `None`. A column is a variable, or
an integer expression of which nothing else is known.
"""

from math import gcd

from .. import _lathe
from ..ir.node import NODE_CLASSES, as_expr
from ..ir.structural import structural_equal

Add, IntImm, Mul, Sub, Var = (NODE_CLASSES["expr", name] for name in ("Add", "IntImm", "Mul", "Sub", "Var"))
_MARGINS = {"LT": (1, 1), "LE": (1, 0), "GT": (-1, 1), "GE": (-1, 0), "EQ": (1, 0)}
_MOST_PAIRS = 2000  # that one elimination makes; without them ranges are wider, and relations say the rest


def combined(one, times, other, more):
    """times * one + more * other."""
    made = {column: times * value for column, value in one.items()}
    for column, value in other.items():
        made[column] = made.get(column, 0) + more * value
    return {column: value for column, value in made.items() if value}


def tightened(row):
    """An equal row `form <= 0` whose coefficients have no divisor in common: its constant is rounded."""
    divisor = gcd(*(value for column, value in row.items() if column is not None))
    made = {column: value // divisor for column, value in row.items() if column is not None} if divisor else {}
    constant = -(-row.get(None, 0) // (divisor or 1))
    return {**made, None: constant} if constant else made


def is_constant(form):
    """Whether a form mentions no column."""
    return all(column is None for column in form)


class Columns:
    """The columns of forms: the variables to solve for, then whatever else occurs."""

    def __init__(self, variables):
        self.exprs = list(variables)
        self.solved = len(self.exprs)
        dtypes = sorted({var.dtype for var in self.exprs})
        if len(dtypes) > 1 or (dtypes and not dtypes[0].startswith("int")):
            raise TypeError(f"the variables are of one signed integer dtype, not {', '.join(dtypes)}")
        self.dtype = dtypes[0] if dtypes else "int64"
        self.known = _lathe.Analyzer()

    def column(self, expr):
        """The column of an expression, a new one where it is met first."""
        for at, one in enumerate(self.exprs):
            if one.same_as(expr) or (not isinstance(one, Var) and structural_equal(one, expr)):
                return at
        self.exprs.append(expr)
        return len(self.exprs) - 1

    def form(self, expr):
        """An expression's form; None where it is not linear in the variables that are solved for."""
        made = self._form(expr)
        return self._form(self.known.simplify(expr)) if made is None else made

    def _form(self, expr, simplified=False):
        if isinstance(expr, IntImm):
            return {None: expr.value} if expr.value else {}
        if isinstance(expr, Var):
            return {self.column(expr): 1}
        if isinstance(expr, (Add, Sub, Mul)):
            one, other = self._form(expr.a), self._form(expr.b)
            if one is None or other is None:
                return None
            if not isinstance(expr, Mul):
                return combined(one, 1, other, 1 if isinstance(expr, Add) else -1)
            if is_constant(one) or is_constant(other):
                factor, moving = (one, other) if is_constant(one) else (other, one)
                return combined(moving, factor.get(None, 0), {}, 0)
        elif not simplified:
            return self._form(self.known.simplify(expr), True)
        if any(free.same_as(var) for free in _lathe.free_vars(expr) for var in self.exprs[: self.solved]):
            return None
        return {self.column(expr): 1}

    def rows(self, condition):
        """The rows that a comparison says, and whether it is an equality; None where it is no linear one."""
        kind = type(condition).__name__
        if kind not in _MARGINS or not condition.a.dtype.startswith("int"):
            return None
        one, other = self.form(condition.a), self.form(condition.b)
        if one is None or other is None:
            return None
        sign, margin = _MARGINS[kind]
        row = combined(combined(one, sign, other, -sign), 1, {None: margin}, 1)
        return [row, combined(row, -1, {}, 0)] if kind == "EQ" else [row]

    def holds(self, value):
        """Whether the variables' dtype has a number."""
        most = 2 ** (int(self.dtype[3:]) - 1)
        return -most <= value < most

    def fits(self, form, boxes):
        """Whether the dtype has the numbers of a form, and what is added up where the columns are in these boxes."""
        total = 0
        for column, value in form.items():
            box = (1, 1) if column is None else boxes.get(column, (None, None))
            total += 0 if None in box else abs(value) * max(map(abs, box))
        return all(map(self.holds, form.values())) and self.holds(total)

    def number(self, value):
        """A constant of the variables' dtype."""
        if not self.holds(value):
            raise ValueError(f"the solution has the number {value}, which {self.dtype} does not hold")
        return IntImm(self.dtype, value)

    def require_fits(self, form, boxes):
        """Refuses a form whose value cannot be computed in the dtype."""
        if not self.fits(form, boxes):
            raise ValueError(f"the solution has a sum that {self.dtype} does not hold")

    def _sum(self, terms):
        made = None
        for column, value in terms:
            term = self.number(abs(value)) if column is None else self.exprs[column]
            if column is not None and abs(value) != 1:
                term = term * self.number(abs(value))
            if made is None:
                made = term if value > 0 or column is None else 0 - term
                if column is None and value < 0:
                    made = self.number(value)
            else:
                made = made + term if value > 0 else made - term
        return as_expr(self.number(0) if made is None else made)

    def expr(self, form):
        """The expression of a form."""
        terms = sorted(form.items(), key=lambda term: (term[0] is None, term[1] < 0, term[0] or 0))
        return self._sum(terms)

    def relation(self, row, equal=False):
        """The comparison `row <= 0`, or `row == 0`, with no negative coefficients."""
        left = {column: value for column, value in row.items() if value > 0}
        right = {column: -value for column, value in row.items() if value < 0}
        if not right and None in left:
            right = {None: -left.pop(None)}
        sides = self.expr(left), self.expr(right)
        return as_expr(sides[0] == sides[1]) if equal else as_expr(sides[0] <= sides[1])


class System:
    """Rows over columns, of which `order` are eliminated one after the other.

    Afterwards `ranges` has for a column (first, extent), two forms: the first of later columns. What the ranges do not
    say is in `left`. Where there is certainly no solution, `empty` is true.
    """

    def __init__(self, columns, order, rows, boxes):
        self.columns, self.order = columns, list(order)
        self.given = {column: list(box) for column, box in boxes.items()}
        self.rows, self.ranges, self.left = [], {}, []
        self.empty = not all(self._take(self.rows, row) for row in rows)
        self.boxes = {column: list(box) for column, box in boxes.items()}

    @staticmethod
    def _take(rows, row):
        """Adds a row, unless a like one says more; False where nothing fulfils it."""
        row = tightened(row)
        if is_constant(row):
            return row.get(None, 0) <= 0
        same = [at for at, one in enumerate(rows) if is_constant(combined(one, 1, row, -1))]
        if not same:
            rows.append(row)
        elif rows[same[0]].get(None, 0) < row.get(None, 0):
            rows[same[0]] = row
        return True

    @staticmethod
    def _largest(form, boxes):
        """The largest value of a form over boxes; None where there may be none."""
        total = 0
        for column, value in form.items():
            end = 1 if column is None else boxes.get(column, (None, None))[value > 0]
            if end is None:
                return None
            total += value * end
        return total

    def _propagate(self):
        """Narrows the boxes by the rows; False where one is empty."""
        for _ in range(30):
            changed = False
            for row in self.rows:
                for column, value in row.items():
                    if column is None:
                        continue
                    rest = {other: factor for other, factor in row.items() if other != column}
                    most = self._largest({other: -factor for other, factor in rest.items()}, self.boxes)
                    if most is None:
                        continue
                    box = self.boxes.setdefault(column, [None, None])
                    end, side = (most // value, 1) if value > 0 else (-(most // -value), 0)
                    if box[side] is None or (end < box[1] if side else end > box[0]):
                        box[side], changed = end, True
                    if None not in box and box[0] > box[1]:
                        return False
            if not changed:
                break
        return True

    def _levels(self):
        """Fourier and Motzkin's elimination: for each column the rows of it and later ones; None: no solution."""
        rows, levels = list(self.rows), {}
        for column in self.order:
            mine = [row for row in rows if column in row]
            rows = [row for row in rows if column not in row]
            below, above = ([row for row in mine if (row[column] > 0) == up] for up in (False, True))
            levels[column] = (below, above)
            if len(below) * len(above) > _MOST_PAIRS:
                continue
            for low in below:
                for high in above:
                    row = combined(low, high[column], high, -low[column])
                    most = self._largest(row, self.boxes)
                    if is_constant(row) and most > 0:
                        return None
                    if most is None or most > 0:
                        self._take(rows, row)
        return levels

    def solve(self, nested):
        """Finds the ranges; `nested`: their ends may mention later ones of the columns that are solved for."""
        if self.empty or not self._propagate():
            self.empty = True
            return
        levels = self._levels()
        self.empty = levels is None
        for column in () if self.empty else reversed(self.order):
            found = self._range_of(column, levels[column], nested)
            if found is not None:
                self.ranges[column] = found
                if is_constant(found[1]) and found[1].get(None, 0) <= 0:
                    self.empty = True
        if not self.empty:
            self.left = [row for row in self.rows if not self.implied(row)]

    def _range_of(self, column, level, nested):
        def rest(row):
            return {other: value for other, value in row.items() if other != column}

        def usable(bound):
            under, form = bound
            inside = nested or not any(other in self.order for other in form)
            return inside and self.columns.fits(combined(form, 1, {None: under}, 1), self.boxes)

        low, high = self.boxes.get(column, (None, None))
        lows = [(-row[column], rest(row)) for row in level[0]] + ([] if low is None else [(1, {None: low})])
        highs = [(row[column], combined(rest(row), -1, {}, 0)) for row in level[1]]
        highs += [] if high is None else [(1, {None: high})]
        best = symbolic = None
        for under, first in filter(usable, lows):
            for over, last in filter(usable, highs):
                apart = combined(last, under, first, -over)
                most = self._largest(apart, self.boxes)
                if most is not None:
                    extent = most // (under * over) + 1
                    if best is None or extent < best[2]:
                        best = (under, first, extent)
                elif under == over == 1 and not any(other in self.order for other in apart) and symbolic is None:
                    symbolic = (first, combined(apart, 1, {None: 1}, 1))
        if best is None:
            return symbolic
        return self._first(*best[:2]), combined({None: best[2]}, 1, {}, 0)

    def _first(self, under, form):
        """ceil(form / under) as a form."""
        if under == 1:
            return form
        up = combined(form, 1, {None: under - 1}, 1)
        if is_constant(up):
            return combined({None: up.get(None, 0) // under}, 1, {}, 0)
        column = self.columns.column(as_expr(self.columns.expr(up) // self.columns.number(under)))
        for boxes, most, least in (
            (self.given, self.most(up), self.most(combined(up, -1, {}, 0))),
            (self.boxes, self._largest(up, self.boxes), self._largest(combined(up, -1, {}, 0), self.boxes)),
        ):
            boxes[column] = [None if least is None else -least // under, None if most is None else most // under]
        return {column: 1}

    def most(self, form):
        """The largest value that a form takes in the ranges; None where there may be none."""
        for column in self.order:
            value = form.get(column, 0)
            if not value or column not in self.ranges:
                continue
            first, extent = self.ranges[column]
            form = combined(combined(form, 1, {column: value}, -1), 1, first, value)
            if value > 0:
                form = combined(form, 1, combined(extent, 1, {None: -1}, 1), value)
        return self._largest(form, self.given)

    def implied(self, row):
        """Whether the ranges alone fulfil a row."""
        most = self.most(row)
        return most is not None and most <= 0
