"""Divisions of iterator maps and their sums, against what they say at every point."""

import itertools
import random

import lathe
import pytest
from lathe import arith, tir
from lathe.ir import Range


def variables(*names):
    return [tir.Var(name, "int64") for name in names]


def evaluate(expr, values):
    """An expression's value where its variables have these."""
    return arith.Analyzer().simplify(tir.stmt_functor.substitute(lathe.ir.as_expr(expr), values)).value


def free(expr):
    return lathe._lathe.free_vars(expr)


def source_of(mark):
    return arith.normalize_iter_map_to_expr(mark.source)


def points(ranges):
    """Every point of the domain: values of the variables, and how far each is from its first."""
    spans = [range(item.extent.value) for item in ranges.values()]
    for run in itertools.product(*spans):
        counters = dict(zip(ranges, run))
        yield {var: count + ranges[var].min.value for var, count in counters.items()}, counters


def check(bindings, ranges, inner, predicate=True, check_level="surjective"):
    """The division, or an empty list; what it says is compared with the bindings at every point."""
    found = arith.subspace_divide(bindings, ranges, inner, predicate, check_level)
    if not found:
        return found
    assert len(found) == len(bindings) + 1 and all(len(pair) == 2 for pair in found)
    *pairs, (outside, inside) = found
    sources = [(source_of(outer), source_of(one), one.extent.value) for outer, one in pairs]
    for outer, one, _ in sources:
        assert not any(var.same_as(name) for var in free(outer) for name in inner)
        assert all(any(var.same_as(name) for name in inner) for var in free(one))
    assert not any(var.same_as(name) for var in free(outside.extent) for name in inner)
    assert all(any(var.same_as(name) for name in inner) for var in free(inside.extent))
    seen = [set() for _ in pairs]
    for values, counters in points(ranges):
        holds = bool(evaluate(predicate, values))
        assert holds == (bool(evaluate(outside.extent, values)) and bool(evaluate(inside.extent, values)))
        if not holds:
            continue
        for at, (binding, (outer, one, step), pair) in enumerate(zip(bindings, sources, pairs)):
            big, small = evaluate(outer, counters), evaluate(one, counters)
            assert evaluate(binding, values) == big * step + small
            base = pair[1].source.base.value
            assert 0 <= big < pair[0].extent.value and 0 <= small - base < step
            seen[at].add((big, small))
    if check_level != "nocheck":
        for pair, some in zip(pairs, seen):
            assert {big for big, _ in some} == set(range(pair[0].extent.value))
    return found


def test_the_documented_example():
    x, y, z, c = variables("x", "y", "z", "c")
    domain = {x: Range(0, 3), y: Range(0, 4), z: Range(0, 5)}
    known = arith.Analyzer()
    (outer, inner), (outside, inside) = arith.subspace_divide([z * 12 + y * 3 + x + c], domain, [x])
    assert known.can_prove_equal(source_of(outer), z * 4 + y) and outer.extent.value == 20
    assert known.can_prove_equal(source_of(inner), x + c) and inner.extent.value == 3
    assert isinstance(outer, arith.IterMark) and isinstance(outer.source, arith.IterSumExpr)
    assert outside.extent.value and inside.extent.value
    (outer, inner), _ = arith.subspace_divide([z * 12 + y * 3 + x + c], domain, [x, y])
    assert known.can_prove_equal(source_of(outer), z) and inner.extent.value == 12


def test_orders_that_do_not_divide():
    x, y, z = variables("x", "y", "z")
    domain = {x: Range(0, 3), y: Range(0, 4), z: Range(0, 5)}
    whole = z * 12 + y * 3 + x
    for inner in ([y], [z], [x, z], [y, z]):
        assert check([whole], domain, inner) == []
    assert check([x + y], domain, [x]) == [] and check([x * y], domain, [x]) == []
    assert check([x * 2], domain, [x], check_level="surjective") != []
    assert check([z, y * 3 + x], domain, [z]) != []
    for inner in ([], [x], [x, y], [x, y, z]):
        assert check([whole], domain, inner) != []
    assert check([], domain, [x])[0][0].extent.value  # no bindings: only the conditions
    with pytest.raises(ValueError, match="'w' is to be inside"):
        arith.subspace_divide([x], domain, variables("w"))
    with pytest.raises(TypeError, match="runs over a Range"):
        arith.subspace_divide([x], {x: 3}, [x])


def test_fusions_divide_where_their_parts_do():
    i, j = variables("i", "j")
    domain = {i: Range(0, 6), j: Range(0, 8)}
    fused = i * 8 + j
    assert check([fused // 16, fused % 16], domain, [j]) != []
    assert check([fused // 4, fused % 4], domain, [j]) != []
    assert check([fused // 24, fused % 24], domain, [j]) != []
    assert check([fused // 12, fused % 12], domain, [j]) == []
    assert check([fused // 2 % 8, fused % 2, fused // 16], domain, [j]) != []
    shifted = {i: Range(2, 8), j: Range(1, 9)}
    assert check([i * 8 + j], shifted, [j]) != []


def test_conditions_are_told_apart():
    i, j, k = variables("i", "j", "k")
    domain = {i: Range(0, 5), j: Range(0, 4), k: Range(0, 3)}
    fused = i * 12 + j * 3 + k
    assert check([fused], domain, [k], i * 4 + j < 18, "nocheck") != []
    whole = check([fused], domain, [k], fused < 48)
    assert whole and arith.Analyzer().can_prove_equal(whole[0][0].extent, 16)
    assert check([fused], domain, [k], fused <= 47) != []
    assert check([fused], domain, [k], lathe.ir.as_expr(48) > fused) != []
    assert check([fused], domain, [k], fused < 50) == [] and check([fused], domain, [k], i + k < 4, "nocheck") == []
    both = tir.And(i * 4 + j < 18, lathe.ir.as_expr(k < 2))
    pairs = check([fused], domain, [k], both, "nocheck")
    assert pairs and not pairs[-1][1].extent.same_as(pairs[-1][0].extent)
    assert check([fused], domain, [k], both) == []  # k < 2 leaves gaps
    assert check([i * 12 + j * 3], domain, [k], tir.And(i < 3, lathe.ir.as_expr(k < 2)), "nocheck") != []
    assert check([i * 4 + j, k], domain, [k], tir.And(i < 3, lathe.ir.as_expr(k < 2))) != []
    assert len(arith.subspace_divide([fused], domain, [k], tir.likely(fused < 48))) == 2
    assert check([fused], domain, [k], lathe.ir.as_expr(0) < fused, "nocheck") == []
    shifted = {i: Range(1, 6), j: Range(2, 6), k: Range(-1, 2)}
    assert check([fused], shifted, [k], fused < 53) != [] and check([fused], shifted, [k], fused < 54) == []


def test_symbolic_extents_divide():
    i, j, n = variables("i", "j", "n")
    pairs = arith.subspace_divide([i * 32 + j + n], {i: Range(0, n), j: Range(0, 32)}, [j])
    assert pairs and arith.Analyzer().can_prove_equal(pairs[0][0].extent, n)
    size = tir.SizeVar("size", "int64")
    inside = arith.subspace_divide([i * size + j], {i: Range(0, 4), j: Range(0, size)}, [j])
    assert arith.Analyzer().can_prove_equal(inside[0][1].extent, size) and inside[0][0].extent.value == 4


@pytest.mark.parametrize("seed", range(60))
def test_random_maps(seed):
    """Loops are fused, and the fusion split anew: at every cut of loops the division is true, or none is given."""
    rng = random.Random(seed)
    loops = variables("a", "b", "c")
    sizes = [rng.choice((1, 2, 3, 4, 6)) for _ in loops]
    ranges = {var: Range.from_min_extent(rng.choice((0, 0, 0, 2)), size) for var, size in zip(loops, sizes)}
    if rng.random() < 0.7:
        ranges = {var: Range(0, size) for var, size in zip(loops, sizes)}
    fused = lathe.ir.as_expr(loops[0])
    for var, size in zip(loops[1:], sizes[1:]):
        fused = fused * size + var
    total = sizes[0] * sizes[1] * sizes[2]
    bindings, left = [], fused
    for factor in rng.choices((2, 3, 4, 6), k=2):
        if total % factor == 0 and rng.random() < 0.7:
            bindings.append(left % factor)
            left, total = left // factor, total // factor
    bindings.append(left)
    predicate = True
    if rng.random() < 0.4:
        predicate = lathe.ir.as_expr(fused < rng.randrange(1, sizes[0] * sizes[1] * sizes[2] + 1))
    for inner in (loops[2:], loops[1:], [loops[rng.randrange(3)]]):
        check(bindings, ranges, inner, predicate, rng.choice(("nocheck", "surjective", "bijective")))
    plain = {var: Range(0, size) for var, size in zip(loops, sizes)}
    for inner in ([], loops[2:], loops[1:], loops):
        assert check([fused], plain, inner) != []


def test_an_index_is_a_sum_of_splits():
    i, j, n, m = variables("i", "j", "n", "m")
    domain = {i: Range(0, 8), j: Range(0, 6)}
    found = arith.normalize_to_iter_sum(j * 2 + i * 64 + n + 5, domain)
    assert [split.scale.value for split in found.args] == [64, 2]
    assert found.args[0].source.source.same_as(i) and arith.Analyzer().can_prove_equal(found.base, n + 5)
    symbols = arith.normalize_to_iter_sum(j * 4 + i * n * 4 + i // 2 * n * m * 4 + i % 3, domain)
    assert len(symbols.args) == 4 and [len(free(split.scale)) for split in symbols.args] == [2, 1, 0, 0]
    for index in (
        i * 3 - j, i * j + i, (i * 6 + j) // 4 * 2 + n, i + i + j // 2, (i + j) // 3, 7 - i, i // 2 * 5 + i % 2 * 100,
        i - i, (i * 6 + j) % 16 - (i * 6 + j) // 16, (i - j) * 3, n * 2,
    ):  # fmt: skip
        made = arith.normalize_to_iter_sum(index, domain)
        back = arith.normalize_iter_map_to_expr(made)
        for values, counters in points(domain):
            # What no split stands for is in the base, over the variables themselves.
            assert evaluate(back, {**counters, n: 9}) == evaluate(index, {**values, n: 9})
    nothing = arith.normalize_to_iter_sum(i * j, domain)
    assert nothing.args == [] and arith.Analyzer().can_prove_equal(nothing.base, i * j)
    (shifted,) = arith.normalize_to_iter_sum(i * 3 + 1, {i: Range(2, 6)}).args
    assert shifted.scale.value == 3 and arith.normalize_to_iter_sum(i * 3 + 1, {i: Range(2, 6)}).base.value == 7
    with pytest.raises(TypeError, match="runs over a Range"):
        arith.normalize_to_iter_sum(i, {i: 3})
