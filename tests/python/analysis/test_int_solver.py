"""Solvers of linear equations and inequalities, against every integer point of small boxes."""

import itertools
import random

import pytest
from lathe import arith, tir
from lathe.ir import Range, as_expr


def variables(*names, dtype="int64"):
    return [tir.Var(name, dtype) for name in names]


class T:
    """What the texts of expressions call."""

    int64 = int32 = staticmethod(int)
    bool = staticmethod(bool)
    min, max = staticmethod(min), staticmethod(max)


def evaluate(expr, values):
    """An expression's value where its variables have these: with Python's integers, which never wrap."""
    text = str(as_expr(expr))
    return eval(text, {"T": T}, {var.name: value for var, value in values.items()})


def points(spans):
    for run in itertools.product(*spans.values()):
        yield dict(zip(spans, run))


def fulfils(system, values):
    """Whether values fulfil the relations, and lie in the ranges."""
    for var, item in system.ranges.items():
        first = evaluate(item.min, values)
        if not first <= values[var] < first + evaluate(item.extent, values):
            return False
    return all(evaluate(relation, values) for relation in system.relations)


def solutions(relations, spans, given=None):
    return {
        tuple(values[var] for var in spans)
        for values in points(spans)
        if all(evaluate(one, {**values, **(given or {})}) for one in relations)
    }


def solved(system, bounds, given=None):
    """All points of a system, by running over its ranges, each inside those after it; `bounds` where there is none."""
    if not system.variables:
        return {()} if fulfils(system, given or {}) else set()
    runs = [dict(given or {})]
    for var in reversed(system.variables):
        longer = []
        for run in runs:
            if var in system.ranges:
                item = system.ranges[var]
                first = evaluate(item.min, run)
                span = range(first, first + evaluate(item.extent, run))
            else:
                span = bounds
            longer += [{**run, var: value} for value in span]
        runs = longer
    return {tuple(run[var] for var in system.variables) for run in runs if fulfils(system, run)}


def check_transform(found, expected, bounds, given=None):
    """dst's points are those of src, one to one and by both maps."""
    src, dst = found.src, found.dst
    if not found.src_to_dst:
        assert dst.variables == [] and [bool(one.value) for one in dst.relations] == [False] and not found.dst_to_src
        assert not expected
        return
    met = set()
    inside = solved(dst, bounds, given)
    for point in inside:
        values = {**dict(zip(dst.variables, point)), **(given or {})}
        old = {var: evaluate(found.src_to_dst[var], values) for var in src.variables}
        back = {var: evaluate(found.dst_to_src[var], {**old, **(given or {})}) for var in dst.variables}
        assert all(back[var] == values[var] for var in dst.variables)
        met.add(tuple(old[var] for var in src.variables))
    assert len(met) == len(inside) and met == expected


def random_relations(rng, names, count, coefficient, kinds):
    def side():
        return sum((var * rng.randint(-coefficient, coefficient) for var in names), rng.randint(-6, 6))

    return [as_expr(rng.choice(kinds)(as_expr(side()), as_expr(side()))) for _ in range(count)]


INEQUALITIES = (tir.LE, tir.LT, tir.GE, tir.GT)


def test_the_documented_equations():
    x, y, z = variables("x", "y", "z")
    unique = arith.solve_linear_equations([x + y == 20, x - y == 10], [x, y])
    assert unique.dst.variables == [] and unique.dst.relations == []
    assert unique.src_to_dst[x].value == 15 and unique.src_to_dst[y].value == 5
    low_rank = arith.solve_linear_equations([x + y + z == 15, x + y == 10], [x, y, z])
    (n,) = low_rank.dst.variables
    known = arith.Analyzer()
    assert known.can_prove_equal(low_rank.src_to_dst[x] + low_rank.src_to_dst[y], 10)
    assert low_rank.src_to_dst[z].value == 5 and n.dtype == "int64"
    ranged = arith.solve_linear_equations([x + y == 0], [x, y], {x: Range(-5, 5), y: Range(0, 10)})
    (n,) = ranged.dst.variables
    assert ranged.dst.ranges[n].extent.value == 6 and ranged.dst.relations == []
    impossible = arith.solve_linear_equations([x + y == 0, x - y == 0, as_expr(x == 5)], [x, y], {})
    check_transform(impossible, set(), range(3))
    assert isinstance(ranged, arith.IntConstraintsTransform) and isinstance(ranged.src, arith.IntConstraints)
    again = arith.solve_linear_equations(arith.IntConstraints([x, y], None, [x + y == 20, x - y == 10]))
    assert again.src_to_dst[x].value == 15
    small = variables("x", "y", dtype="int32")
    found = arith.solve_linear_equations([small[0] * 2 == small[1]], small)
    assert found.dst.variables[0].dtype == found.src_to_dst[small[1]].dtype == "int32"


def test_the_documented_inequalities():
    x, y = variables("x", "y")
    known = arith.Analyzer()
    ranges = {x: Range(-100, 100), y: Range(0, 10)}
    problem = [x + y <= 20, x - y >= 10]
    found = arith.solve_linear_inequalities(problem, [x, y], ranges)
    assert (found.ranges[y].min.value, found.ranges[y].extent.value) == (0, 6)
    assert known.can_prove_equal(found.ranges[x].min, y + 10) and found.ranges[x].extent.value == 11
    assert [str(one) for one in found.relations] == ["x + y <= 20"]
    moved = arith.solve_linear_inequalities(problem, [x, y], ranges, deskew_range=True)
    new_x, new_y = moved.dst.variables
    assert (moved.dst.ranges[new_x].min.value, moved.dst.ranges[new_x].extent.value) == (0, 11)
    assert (moved.dst.ranges[new_y].min.value, moved.dst.ranges[new_y].extent.value) == (0, 6)
    assert [str(one) for one in moved.dst.relations] == ["y_new * 2 + x_new <= 10"]
    assert known.can_prove_equal(moved.src_to_dst[x], new_x + new_y + 10)
    assert known.can_prove_equal(moved.dst_to_src[new_x], x - y - 10)
    point = [x + y >= 10, x - y >= 2, as_expr(x <= 6)]
    found = arith.solve_linear_inequalities(point, [x, y])
    assert found.relations == []
    assert [evaluate(found.ranges[y].min, {}), found.ranges[y].extent.value, found.ranges[x].extent.value] == [4, 1, 1]
    moved = arith.solve_linear_inequalities(point, [x, y], deskew_range=True)
    assert moved.dst.variables == [] and moved.dst.ranges == {} and moved.dst.relations == []
    assert (moved.src_to_dst[x].value, moved.src_to_dst[y].value) == (6, 4)
    never = [as_expr(-x - 4 <= x * -5 + 2), as_expr(x * 4 + 5 <= x * 5)]
    check_transform(arith.solve_linear_inequalities(never, [x], {x: Range(-20, 21)}, True), set(), range(3))
    found = arith.solve_linear_inequalities(never, [x], {x: Range(-20, 21)})
    assert found.variables == [] and found.ranges == {} and [one.value for one in found.relations] == [False]


@pytest.mark.parametrize("seed", range(80))
def test_random_equations(seed):
    rng = random.Random(seed)
    names = variables("a", "b", "c", "d")[: rng.randint(1, 4)]
    spans = {var: range(first := rng.randint(-5, 2), first + rng.randint(0, 7)) for var in names}
    relations = random_relations(rng, names, rng.randint(0, 3), rng.choice((1, 2, 5)), [tir.EQ])
    if rng.random() < 0.4:
        relations += random_relations(rng, names, 1, 3, INEQUALITIES)
    ranges = {var: Range(span.start, span.stop) for var, span in spans.items()}
    found = arith.solve_linear_equations(relations, names, ranges)
    expected = solutions(relations, spans)
    check_transform(found, expected, ())
    assert len(found.dst.ranges) == len(found.dst.variables)


@pytest.mark.parametrize("seed", range(80))
def test_random_inequalities(seed):
    rng = random.Random(seed)
    names = variables("a", "b", "c", "d")[: rng.randint(1, 4)]
    spans = {var: range(first := rng.randint(-5, 2), first + rng.randint(0, 7)) for var in names}
    kinds = [*INEQUALITIES, tir.EQ] if seed % 2 else INEQUALITIES
    relations = random_relations(rng, names, rng.randint(0, 4), rng.choice((1, 2, 5)), kinds)
    ranges = {var: Range(span.start, span.stop) for var, span in spans.items()}
    expected = solutions(relations, spans)
    found = arith.solve_linear_inequalities(relations, names, ranges)
    assert (solved(found, ()) if found.variables else set()) == expected
    assert not found.variables or len(found.ranges) == len(names)
    check_transform(arith.solve_linear_inequalities(relations, names, ranges, deskew_range=True), expected, ())


@pytest.mark.parametrize("seed", range(24))
def test_random_parameters(seed):
    """Right sides and ends of ranges that mention parameters, tried at several of their values."""
    rng = random.Random(seed)
    names, (n, m) = variables("a", "b", "c")[: rng.randint(1, 3)], variables("n", "m")
    spans = {var: range(0, 5) for var in names}
    relations = [
        as_expr(tir.LE(one.a + n * rng.randint(-2, 2), one.b + m * rng.randint(-1, 1)))
        for one in random_relations(rng, names, 2, 2, [tir.LE])
    ]
    if rng.random() < 0.6:
        side = sum((var * rng.randint(-3, 3) for var in names), n)
        relations.append(as_expr(side == m * rng.randint(1, 2)))
    ranges = {var: Range(0, 5) for var in names}
    if seed % 3 == 0:
        ranges[n] = Range(-1, 4)
    equations = arith.solve_linear_equations(relations, names, ranges)
    nested = arith.solve_linear_inequalities(relations, names, ranges)
    moved = arith.solve_linear_inequalities(relations, names, ranges, deskew_range=True)
    for given in points({n: range(-1, 4), m: range(-2, 3)}):
        expected = solutions(relations, spans, given)
        for found in (equations, moved):
            if found.src_to_dst or expected:
                check_transform(found, expected, (), given)
        assert (solved(nested, (), given) if nested.variables else set()) == expected


def test_ends_that_are_symbols():
    x, y, n = variables("x", "y", "n")
    found = arith.solve_linear_inequalities([x + y <= n, x * 2 >= n], [x, y], {x: Range(0, n), y: Range(0, n)})
    for size in range(7):
        expected = solutions([x + y <= size, x * 2 >= size], {x: range(size), y: range(size)})
        assert solved(found, (), {n: size}) == expected
    rows = arith.solve_linear_equations([x * 2 + y == n], [x, y], {x: Range(0, n), y: Range(0, n)})
    for size in range(7):
        expected = solutions([as_expr(x * 2 + y == size)], {x: range(size), y: range(size)})
        check_transform(rows, expected, range(-20, 20), {n: size})
    even = arith.solve_linear_equations([x * 2 == n], [x])
    check_transform(even, {(3,)}, (), {n: 6})
    assert fulfils(even.dst, {n: 6}) and not fulfils(even.dst, {n: 7})


def test_degenerate_systems():
    x, y, n = variables("x", "y", "n")
    empty = arith.solve_linear_equations([], [])
    assert empty.dst.variables == [] and empty.dst.relations == [] and empty.src_to_dst == {}
    free = arith.solve_linear_equations([], [x, y], {x: Range(0, 3)})
    assert len(free.dst.variables) == 2 and len(free.dst.ranges) == 1
    check_transform(free, set(itertools.product(range(3), range(-2, 3))), range(-2, 3))
    assert arith.solve_linear_inequalities([], [x]).ranges == {}
    found = arith.solve_linear_inequalities([as_expr(x <= 4)], [x])
    assert found.ranges == {} and [str(one) for one in found.relations] == ["x <= 4"]
    kept = arith.solve_linear_inequalities([as_expr(x <= 4)], [x], deskew_range=True)
    assert kept.dst.variables[0].same_as(x) and kept.src_to_dst[x].same_as(x)

    def deskewed(*given):
        return arith.solve_linear_inequalities(*given, deskew_range=True)

    for solve in (arith.solve_linear_equations, deskewed):
        check_transform(solve([as_expr(False)], [x]), set(), ())
        check_transform(solve([], [x], {x: Range(0, 0)}), set(), ())
        check_transform(solve([], [x], {x: Range(3, 1)}), set(), ())
        check_transform(solve([as_expr(x * 2 == 3)], [x]), set(), ())
        check_transform(solve([x == x + 1], [x]), set(), ())
        check_transform(solve([as_expr(n == 3), as_expr(n == 4)], [x], {x: Range(0, 2)}), set(), ())
        check_transform(solve([as_expr(True), as_expr(x == 1)], [x]), {(1,)}, ())
    every = arith.solve_linear_equations([x + n == 3])  # without variables: all of them
    assert len(every.src_to_dst) == 2
    curved = arith.solve_linear_inequalities([x * y <= 6, x + 1 >= 2], [x, y], {x: Range(0, 5), y: Range(0, 5)})
    assert solved(curved, ()) == solutions([x * y <= 6, x + 1 >= 2], {x: range(5), y: range(5)})
    curved = arith.solve_linear_equations([as_expr(x * y == 6), x == y + 1], [x, y], {x: Range(0, 5), y: Range(0, 5)})
    check_transform(curved, {(3, 2)}, ())
    both = arith.solve_linear_inequalities([tir.And(x >= 1, x <= 2)], [x])
    assert solved(both, ()) == {(1,), (2,)}


def test_what_is_not_solved():
    x, y = variables("x", "y")
    (small,) = variables("s", dtype="int32")
    with pytest.raises(TypeError, match="a condition, and `x"):
        arith.solve_linear_equations([as_expr(x + 1)], [x])
    with pytest.raises(TypeError, match="one signed integer dtype, not int32, int64"):
        arith.solve_linear_equations([], [x, small])
    with pytest.raises(TypeError, match="one signed integer dtype, not float32"):
        arith.solve_linear_inequalities([], variables("f", dtype="float32"))
    with pytest.raises(TypeError, match="runs over a Range"):
        arith.solve_linear_equations([], [x], {x: 3})
    with pytest.raises(ValueError, match="solved for twice"):
        arith.solve_linear_equations([], [x, x])
    with pytest.raises(TypeError, match="its variables and ranges with it"):
        arith.solve_linear_equations(arith.IntConstraints([x], {}, []), [x])


def test_big_numbers_are_exact_or_refused():
    x, y = variables("x", "y")
    big = 2**62
    found = arith.solve_linear_equations([as_expr(x * big + y * (big - 1) == big - 1), as_expr(x == 0)], [x, y])
    assert (found.src_to_dst[x].value, found.src_to_dst[y].value) == (0, 1)
    # 2**62 x + 2**62 x and twice 2**62 wrap in int64; the mathematical system has x = 1.
    found = arith.solve_linear_equations([as_expr(x * big + x * big == as_expr(big) + y), as_expr(y == big)], [x, y])
    assert found.src_to_dst[x].value == 1
    with pytest.raises(ValueError, match="that int64 does not hold"):
        arith.solve_linear_equations([as_expr(x == y * big), as_expr(y == 4)], [x, y])
    with pytest.raises(ValueError, match="that int32 does not hold"):
        a, b = variables("a", "b", dtype="int32")
        arith.solve_linear_equations([a == b * (2**30), as_expr(b == 4)], [a, b])
    with pytest.raises(ValueError, match="the number 13835058055282163711, which int64 does not hold"):
        arith.solve_linear_inequalities([as_expr(x * big * 2 + x * (big - 1) <= y)], [x, y])
    found = arith.solve_linear_inequalities([as_expr(x * big <= 3 * (big // 2) + 5), as_expr(x * big >= -big)], [x])
    assert solved(found, ()) == {(-1,), (0,), (1,)}
    found = arith.solve_linear_equations([as_expr(x * (2**63 - 1) == y * (2**63 - 2)), x == y], [x, y])
    check_transform(found, {(0, 0)}, ())


@pytest.mark.parametrize("seed", range(30))
def test_random_big_numbers(seed):
    rng = random.Random(seed)
    names = variables("a", "b", "c")
    point = {var: rng.randint(-9, 9) for var in names}
    relations = []
    for _ in range(3):
        factors = [rng.randint(-(2**55), 2**55) for _ in names]
        total = sum(factor * point[var] for factor, var in zip(factors, names))
        relations.append(as_expr(sum((var * factor for factor, var in zip(factors, names)), as_expr(0)) == total))
    found = arith.solve_linear_equations(relations, names)
    assert {var: found.src_to_dst[var].value for var in names} == point
    nested = arith.solve_linear_inequalities(relations, names, {var: Range(-9, 10) for var in names})
    assert fulfils(nested, point) and len(nested.ranges) == 3


def test_bounds_are_grouped():
    x, n = variables("x", "n")
    bounds = arith.IntGroupBounds.from_range(Range(2, 9))
    assert [one.value for one in (bounds.coef, *bounds.lower, *bounds.upper)] == [1, 2, 8] and bounds.equal == []
    assert bounds.find_best_range().extent.value == 7
    assert arith.IntGroupBounds.from_range(Range.from_min_extent(n, 1)).equal[0].same_as(n)
    best = arith.IntGroupBounds(3, [4, 7], [], [20]).find_best_range()  # 7 <= 3 x <= 20
    assert (best.min.value, best.extent.value) == (3, 4)
    assert arith.IntGroupBounds(1, [x], [], []).find_best_range() is None
    exact = arith.IntGroupBounds(1, [0], [n], [9]).find_best_range()
    assert exact is not None and "coef" in str(bounds)
    with pytest.raises(ValueError, match="a positive integer"):
        arith.IntGroupBounds(0, [1], [], [2]).find_best_range()
