"""Systems of linear equations and inequalities over the integers, solved: numbers of any size on the way, and refused
where a solution needs one that the variables' dtype does not hold.

    found = lathe.arith.solve_linear_equations([x + y == 20, x - y == 10], [x, y])
    found.src_to_dst  # {x: 15, y: 5}
"""

from .. import _lathe
from ..ir.node import NODE_CLASSES, Range, as_expr
from .rows import Columns, System, combined, is_constant

And, IntImm, Var = (NODE_CLASSES["expr", name] for name in ("And", "IntImm", "Var"))


class IntGroupBounds:
    """Bounds of a variable, all of them to hold: coef * var is at least each of `lower`, is each of `equal`, and is at
    most each of `upper`; coef is a positive integer."""

    def __init__(self, coef, lower, equal, upper):
        self.coef = as_expr(coef)
        self.lower, self.equal, self.upper = ([as_expr(one) for one in some] for some in (lower, equal, upper))

    @staticmethod
    def from_range(rng):
        """The bounds that a Range sets."""
        first, extent = rng.min, rng.extent
        if isinstance(extent, IntImm) and extent.value == 1:
            return IntGroupBounds(1, [], [first], [])
        return IntGroupBounds(1, [first], [], [_lathe.Analyzer().simplify(as_expr(first + extent - 1))])

    def find_best_range(self):
        """A Range that holds all that the bounds leave, of those that their pairs make the shortest; None: no end."""
        if not isinstance(self.coef, IntImm) or self.coef.value < 1:
            raise ValueError(f"a coefficient of bounds is a positive integer, not `{self.coef}`")
        known, coef, best = _lathe.Analyzer(), self.coef.value, None
        for low in [*self.equal, *self.lower]:
            for high in [*self.equal, *self.upper]:
                first = known.simplify(as_expr((low + (coef - 1)) // coef))
                extent = known.simplify(as_expr(high // coef - first + 1))
                shorter = best is not None and known.can_prove(as_expr(extent < best.extent))
                if best is None or shorter:
                    best = Range.from_min_extent(first, extent)
        return best

    def __repr__(self):
        return f"IntGroupBounds(coef={self.coef}, lower={self.lower}, equal={self.equal}, upper={self.upper})"


class IntConstraints:
    """Variables, their ranges (a dict to Ranges, not of every one), and relations, comparisons, that all hold."""

    def __init__(self, variables, ranges, relations):
        self.variables, self.ranges = list(variables), dict(ranges or {})
        self.relations = [as_expr(one) for one in relations]

    def __repr__(self):
        return f"IntConstraints({self.variables}, ranges={self.ranges}, relations={self.relations})"


class IntConstraintsTransform:
    """Two systems with the same solutions: `src_to_dst` has an expression of dst's variables for each one of src, and
    `dst_to_src` the reverse."""

    def __init__(self, src, dst, src_to_dst, dst_to_src):
        self.src, self.dst, self.src_to_dst, self.dst_to_src = src, dst, dict(src_to_dst), dict(dst_to_src)

    def __repr__(self):
        return f"IntConstraintsTransform({self.src}, {self.dst}, {self.src_to_dst}, {self.dst_to_src})"


def _conjuncts(condition):
    if isinstance(condition, And):
        return _conjuncts(condition.a) + _conjuncts(condition.b)
    return [condition]


class _Problem:
    """What is to be solved: rows, equalities apart if asked for, and the conditions that are no linear ones."""

    def __init__(self, equations, variables, ranges, equalities_apart):
        if isinstance(equations, IntConstraints):
            if variables is not None or ranges is not None:
                raise TypeError("an IntConstraints has its variables and ranges with it")
            equations, variables, ranges = equations.relations, equations.variables, equations.ranges
        relations = [as_expr(one) for one in equations]
        wrong = next((one for one in relations if one.dtype != "bool"), None)
        if wrong is not None:
            raise TypeError(f"a relation is a condition, and `{wrong}` is {wrong.dtype}")
        if variables is None:
            variables = []
            for relation in relations:
                for var in _lathe.free_vars(relation):
                    if not any(var.same_as(one) for one in variables):
                        variables.append(var)
        self.source = IntConstraints(variables, ranges, relations)
        self.columns, self.solved = Columns(self.source.variables), len(self.source.variables)
        if any(one.same_as(two) for at, one in enumerate(self.columns.exprs) for two in self.columns.exprs[:at]):
            raise ValueError("a variable is to be solved for twice")
        self.rows, self.equal, self.others, self.boxes = [], [], [], {}
        self.false = False
        for var, item in self.source.ranges.items():
            self._add_range(var, item)
        for relation in relations:
            for part in _conjuncts(relation):
                self._add(part, equalities_apart)

    def _add_range(self, var, item):
        if not isinstance(item, Range):
            raise TypeError(f"a variable runs over a Range, not a {type(item).__name__}")
        first, extent = self.columns.form(item.min), self.columns.form(item.extent)
        column = self.columns.column(var)
        if first is None or extent is None:
            if column >= self.solved:
                return
            self.others += [as_expr(item.min <= var), as_expr(var - item.min < item.extent)]
            return
        last = combined(combined(first, 1, extent, 1), 1, {None: -1}, 1)
        if column < self.solved:
            self.rows += [combined(first, 1, {column: 1}, -1), combined({column: 1}, 1, last, -1)]
        elif is_constant(first) and is_constant(last):
            self.boxes[column] = [first.get(None, 0), last.get(None, 0)]

    def _add(self, relation, equalities_apart):
        if isinstance(relation, IntImm):
            self.false = self.false or not relation.value
            return
        rows = self.columns.rows(relation)
        if rows is None:
            self.others.append(relation)
        elif equalities_apart and len(rows) == 2:
            self.equal.append(rows[0])
        else:
            self.rows += rows

    def no_solution(self):
        return IntConstraints([], {}, [as_expr(False)])

    def no_transform(self):
        return IntConstraintsTransform(self.source, self.no_solution(), {}, {})


class _Unsolvable(Exception):
    """There is no solution."""


def _relations(columns, rows):
    """Rows as comparisons: two that are each other's opposite as an equation."""
    made, used = [], set()
    for at, row in enumerate(rows):
        if at in used:
            continue
        opposite = combined(row, -1, {}, 0)
        twin = next((other for other in range(at + 1, len(rows)) if rows[other] == opposite), None)
        used.add(twin)
        made.append(columns.relation(row, twin is not None))
    return made


def _ranges(columns, system):
    return {
        columns.exprs[column]: Range.from_min_extent(*map(columns.expr, system.ranges[column]))
        for column in system.order
        if column in system.ranges
    }


def _decided(relations):
    """The relations that are not constants; raises where one is false."""
    known = _lathe.Analyzer()
    kept = []
    for relation in relations:
        simple = known.simplify(relation)
        if not isinstance(simple, IntImm):
            kept.append(relation)
        elif not simple.value:
            raise _Unsolvable
    return kept


def _diagonal(matrix, right, count):
    """Rows and columns combined until `matrix` is diagonal: (its diagonal, right, basis, inverse of the basis).

    Rows take `right`, a form each, along. The variables are basis * the new ones; its determinant is 1 or -1.
    """
    basis = [[int(row == column) for column in range(count)] for row in range(count)]
    inverse = [row[:] for row in basis]
    matrix = [row[:] for row in matrix]

    def add_column(to, times, other):
        for row in (*matrix, *basis):
            row[to] += times * row[other]
        inverse[other] = [one - times * two for one, two in zip(inverse[other], inverse[to])]

    def swap_columns(one, other):
        for row in (*matrix, *basis):
            row[one], row[other] = row[other], row[one]
        inverse[one], inverse[other] = inverse[other], inverse[one]

    done = 0
    while done < min(len(matrix), count):
        places = [(abs(matrix[row][column]), row, column) for row in range(done, len(matrix))
                  for column in range(done, count) if matrix[row][column]]  # fmt: skip
        if not places:
            break
        _, row, column = min(places)
        matrix[done], matrix[row] = matrix[row], matrix[done]
        right[done], right[row] = right[row], right[done]
        swap_columns(done, column)
        pivot = matrix[done][done]
        for row in range(done + 1, len(matrix)):
            times = matrix[row][done] // pivot
            matrix[row] = [one - times * two for one, two in zip(matrix[row], matrix[done])]
            right[row] = combined(right[row], 1, right[done], -times)
        for column in range(done + 1, count):
            add_column(column, -(matrix[done][column] // pivot), done)
        rests = any(matrix[row][done] for row in range(done + 1, len(matrix))) or any(matrix[done][done + 1 :])
        done += not rests
    # The columns of the free variables in echelon form: each begins with a positive number, in a row of its own.
    first = done
    for row in range(count):
        while len(left := [column for column in range(first, count) if basis[row][column]]) > 1:
            least = min(left, key=lambda column: abs(basis[row][column]))
            for column in left:
                if column != least:
                    add_column(column, -(basis[row][column] // basis[row][least]), least)
        if left:
            swap_columns(first, left[0])
            if basis[row][first] < 0:
                for line in basis:
                    line[first] = -line[first]
                inverse[first] = [-one for one in inverse[first]]
            for column in range(done, first):
                add_column(column, -(basis[row][column] // basis[row][first]), first)
            first += 1
    return [matrix[at][at] for at in range(done)], right, basis, inverse


def _fixed(columns, diagonal, right):
    """What the equations set the first of the new variables to, forms; the conditions under which that is exact, and
    those that are rows."""
    values, conditions, rows = [], [], []
    for factor, form in zip(diagonal, right):
        if all(value % factor == 0 for value in form.values()):
            values.append({column: value // factor for column, value in form.items()})
            continue
        if is_constant(form):
            raise _Unsolvable
        form = form if factor > 0 else combined(form, -1, {}, 0)
        whole = columns.expr(form)
        divisor = columns.expr({None: abs(factor)})
        conditions.append(as_expr((whole % divisor) == 0))
        values.append({columns.column(as_expr(whole // divisor)): 1})
    for form in right[len(diagonal) :]:
        rows += [form, combined(form, -1, {}, 0)]
    return values, conditions, rows


def _substituted(row, values):
    """A row with forms for the columns that are solved for."""
    made = {column: value for column, value in row.items() if column not in values}
    for column, value in row.items():
        if column in values:
            made = combined(made, 1, values[column], value)
    return made


def solve_linear_equations(equations, variables=None, ranges=None):
    """The integer solutions of equations, in as few new variables as there are free ones: an IntConstraintsTransform.

    `ranges` maps variables to Ranges; equations may be an IntConstraints that has both with it. Without `variables`,
    all in the equations are solved for. What else occurs in the equations is a parameter. Inequalities, and relations
    that are not linear with integer coefficients, are told of the new variables in `dst.relations`; so is what
    `dst.ranges` does not say of the old ranges. Where there is no solution, dst has only the relation False. A solution
    with a number, or a sum, that the variables' dtype does not hold is refused.
    """
    problem = _Problem(equations, variables, ranges, True)
    columns, count = problem.columns, problem.solved
    try:
        if problem.false:
            raise _Unsolvable
        matrix = [[row.get(column, 0) for column in range(count)] for row in problem.equal]
        right = [{column: -value for column, value in row.items() if column is None or column >= count}
                 for row in problem.equal]  # fmt: skip
        diagonal, right, basis, inverse = _diagonal(matrix, right, count)
        fixed, conditions, rows = _fixed(columns, diagonal, right)
        free = [Var(f"n{at}", columns.dtype) for at in range(count - len(fixed))]
        places = [columns.column(var) for var in free]
        values = {}
        for row in range(count):
            form = {}
            for at, value in enumerate(fixed):
                form = combined(form, 1, value, basis[row][at])
            values[row] = form
        shifts = _shifted_to_least(values, basis, len(fixed), count)
        for row in range(count):
            for at, place in enumerate(places):
                values[row] = combined(values[row], 1, {place: 1}, basis[row][len(fixed) + at])
        rows += [_substituted(row, values) for row in problem.rows]
        system = System(columns, places, rows, problem.boxes)
        system.solve(nested=False)
        if system.empty:
            raise _Unsolvable
        old_boxes = {}
        for at, form in values.items():
            columns.require_fits(form, system.boxes)
            least, most = system.most(combined(form, -1, {}, 0)), system.most(form)
            old_boxes[at] = (least and -least, most)
        to_new = {var: columns.expr(values[at]) for at, var in enumerate(problem.source.variables)}
        others = [_lathe.substitute(one, list(to_new.items())) for one in problem.others]
        relations = _decided([*conditions, *_relations(columns, system.left), *others])
    except _Unsolvable:
        return problem.no_transform()
    to_old = {}
    for at, var in enumerate(free):
        form = combined(dict(enumerate(inverse[len(fixed) + at])), 1, {None: shifts[at]}, 1)
        columns.require_fits(form, old_boxes)
        to_old[var] = columns.expr(form)
    made = IntConstraints(free, _ranges(columns, system), relations)
    return IntConstraintsTransform(problem.source, made, to_new, to_old)


def _shifted_to_least(values, basis, fixed, count):
    """Shifts the free variables so that the solution at zero is small; how much each is shifted."""
    shifts = []
    for column in range(fixed, count):
        row = next(row for row in range(count) if basis[row][column])
        shift = values[row].get(None, 0) // basis[row][column]
        for at in range(count):
            values[at] = combined(values[at], 1, {None: -shift * basis[at][column]}, 1)
        shifts.append(shift)
    return shifts


def solve_linear_inequalities(equations, variables=None, ranges=None, deskew_range=False):
    """The integers that fulfil inequalities (and equations), as ranges: an IntConstraints.

    Each variable's range may mention the variables after it; what the ranges do not say is in `relations`. Variables
    without two ends have no range. With `deskew_range`, an IntConstraintsTransform to variables whose ranges begin at
    zero. Where there is certainly no solution, there are no variables, and the relation False. Arguments as for
    solve_linear_equations.
    """
    problem = _Problem(equations, variables, ranges, False)
    columns, count = problem.columns, problem.solved
    system = System(columns, range(count), problem.rows, problem.boxes)
    if not problem.false:
        system.solve(nested=True)
    try:
        if problem.false or system.empty:
            raise _Unsolvable
        if deskew_range:
            return _deskewed(problem, columns, system)
        relations = _decided([*_relations(columns, system.left), *problem.others])
    except _Unsolvable:
        return problem.no_transform() if deskew_range else problem.no_solution()
    return IntConstraints(problem.source.variables, _ranges(columns, system), relations)


def _deskewed(problem, columns, system):
    """The transform to variables that count from zero."""
    values, new, ranges, to_old = {}, [], {}, {}
    exprs = {}
    for column in reversed(system.order):
        var = problem.source.variables[column]
        if column not in system.ranges:
            values[column] = {column: 1}
            new.append(var)
            to_old[var] = var
        else:
            first, extent = system.ranges[column]
            for at in list(first):
                # The quotient that a bound is: of the variables' values, once these are known.
                if at is not None and at >= problem.solved and at not in values:
                    value = _lathe.substitute(columns.exprs[at], list(exprs.items()))
                    values[at] = {columns.column(value): 1}
            start = _substituted(first, values)
            if extent == {None: 1}:
                values[column] = start
            else:
                counter = Var(f"{var.name}_new", columns.dtype)
                values[column] = combined(start, 1, {columns.column(counter): 1}, 1)
                new.append(counter)
                ranges[counter] = Range.from_min_extent(0, columns.expr(extent))
                to_old[counter] = columns.expr(combined({column: 1}, 1, first, -1))
        exprs[var] = columns.expr(values[column])
    new.reverse()
    rows = [_substituted(row, values) for row in system.left]
    others = [_lathe.substitute(one, list(exprs.items())) for one in problem.others]
    made = IntConstraints(new, ranges, _decided([*_relations(columns, rows), *others]))
    to_new = {var: exprs[var] for var in problem.source.variables}
    return IntConstraintsTransform(problem.source, made, to_new, to_old)
