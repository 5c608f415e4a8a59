"""Sets, iterator maps and linear forms from Python, each held against counting."""

import itertools

import lathe
import numpy as np
import pytest
from lathe import arith, tir
from lathe.ir import Range, structural_equal


def variables(*names):
    return [tir.Var(name, "int64") for name in names]


def value_of(expr, values):
    """An expression's value where its variables have these."""
    made = arith.Analyzer().simplify(tir.stmt_functor.substitute(lathe.ir.as_expr(expr), values))
    return made.value


def values_of(expr, domain):
    """All values of an expression while the variables of `domain` run."""
    runs = itertools.product(*(range(size) for size in domain.values()))
    return {value_of(expr, dict(zip(domain, run))) for run in runs}


def test_an_interval_holds_every_value():
    i, j, n = variables("i", "j", "n")
    known = arith.Analyzer()
    domain = {i: 5, j: 3}
    ranges = {var: Range(0, size) for var, size in domain.items()}
    for expr in (i * 3 + j, i - j * 2, i // 2 + 1, i * 4 + j % 2, (i + j) // 3, 7 - i):
        found = known.int_set(expr, ranges)
        values = values_of(expr, domain)
        assert value_of(found.min_value, {}) <= min(values) and value_of(found.max_value, {}) >= max(values)
    exact = known.int_set(i * 3 + j + n, ranges)
    assert structural_equal(exact.min_value, n) and known.can_prove_equal(exact.max_value, n + 14)
    within = known.int_set(i + n, {i: arith.IntervalSet(2, 4)})
    assert known.can_prove_equal(within.min_value, n + 2) and known.can_prove_equal(within.max_value, n + 4)
    assert known.int_set(i * 2, {i: arith.IntervalSet(0, arith.pos_inf())}).is_everything()
    assert known.can_prove_equal(known.int_set(n, {i: arith.IntervalSet.everything()}).max_value, n)
    with pytest.raises(TypeError, match="a Range or an IntervalSet, not a int"):
        known.int_set(i, {i: 3})


def test_sets_have_ends_or_none():
    (n,) = variables("n")
    point = arith.IntSet.single_point(n)
    assert structural_equal(point.min_value, n) and structural_equal(point.max_value, n)
    everything = arith.IntervalSet(arith.neg_inf(), arith.pos_inf())
    assert everything.is_everything() and not everything.is_nothing() and isinstance(everything, arith.IntSet)
    assert arith.IntervalSet(3, 2).is_nothing() and not arith.IntervalSet(2, 3).is_nothing()
    lanes = arith.IntSet.vector(tir.Ramp(n, 2, 4))
    assert arith.Analyzer().can_prove_equal(lanes.max_value, n + 6)
    down = arith.IntSet.vector(tir.Ramp(n, -2, 4))
    assert arith.Analyzer().can_prove_equal(down.min_value, n - 6) and structural_equal(down.max_value, n)
    same = arith.IntSet.vector(tir.Broadcast(n, 4))
    assert structural_equal(same.min_value, n) and structural_equal(same.max_value, n)
    joined = arith.union_lower_bound([arith.IntervalSet(0, 3), arith.IntervalSet(4, 9), arith.IntervalSet(20, 21)])
    assert (joined.min_value.value, joined.max_value.value) == (0, 9)


def test_regions_are_bounded():
    i, j, n = variables("i", "j", "n")
    known = arith.Analyzer()
    domain = {i: Range(0, 8), j: Range(0, 4)}
    for estimate in (
        arith.estimate_region_lower_bound, arith.estimate_region_strict_bound, arith.estimate_region_upper_bound,
    ):  # fmt: skip
        (whole,) = estimate([Range.from_min_extent(n + i * 4 + j, 2)], domain)
        assert known.can_prove_equal(whole.min_value, n) and known.can_prove_equal(whole.max_value, n + 32)
    gaps = [Range.from_min_extent(i * 4, 2)]
    assert arith.estimate_region_lower_bound(gaps, domain) is None
    (around,) = arith.estimate_region_upper_bound(gaps, domain)
    assert (around.min_value.value, around.max_value.value) == (0, 29)
    slanted = [Range.from_min_extent(i, 1), Range.from_min_extent(i, 1)]
    assert arith.estimate_region_strict_bound(slanted, domain) is None
    assert len(arith.estimate_region_upper_bound(slanted, domain)) == 2
    cut = arith.estimate_region_strict_bound([Range.from_min_extent(i * 4 + j, 1)], domain, i * 4 + j < 30)
    assert (cut[0].min_value.value, cut[0].max_value.value) == (0, 29)
    with pytest.raises(TypeError, match="a list of Ranges"):
        arith.estimate_region_upper_bound([i], domain)


def test_an_iterator_map_is_taken_apart():
    (f,) = variables("f")
    found = arith.detect_iter_map([f // 7, f % 7], {f: Range(0, 21)}, check_level="bijective")
    assert isinstance(found, arith.IterMapResult) and found.errors == [] and len(found.indices) == 2
    assert all(isinstance(index, arith.IterMapExpr) for index in found.indices)
    high, low = (index.args[0] for index in found.indices)
    assert isinstance(high, arith.IterSplitExpr) and isinstance(high.source, arith.IterMark)
    assert (high.lower_factor.value, high.extent.value, high.scale.value) == (7, 3, 1)
    assert (low.lower_factor.value, low.extent.value) == (1, 7)
    assert high.source.source.same_as(f) and high.source.extent.value == 21
    assert found.indices[0].base.value == 0
    for index, expr in zip(found.indices, (f // 7, f % 7)):
        assert arith.Analyzer().can_prove_equal(arith.normalize_iter_map_to_expr(index) * 100, expr * 100) or [
            value_of(arith.normalize_iter_map_to_expr(index), {f: k}) for k in range(21)
        ] == [value_of(expr, {f: k}) for k in range(21)]


def test_a_map_is_inverted():
    i, j, a, b = variables("i", "j", "a", "b")
    domain = {i: Range(0, 6), j: Range(0, 8)}
    indices = [(i * 8 + j) // 12, (i * 8 + j) % 12]
    found = arith.detect_iter_map(indices, domain, check_level=arith.IterMapLevel.Bijective)
    inverse = arith.inverse_affine_iter_map(found.indices, [a, b])
    for at_i, at_j in itertools.product(range(6), range(8)):
        outputs = [value_of(index, {i: at_i, j: at_j}) for index in indices]
        back = {var: value_of(expr, dict(zip((a, b), outputs))) for var, expr in inverse.items()}
        assert (back[i], back[j]) == (at_i, at_j)
    with pytest.raises(TypeError, match="of one detect_iter_map"):
        arith.inverse_affine_iter_map([arith.IterSumExpr([], 0)], [a])
    with pytest.raises(ValueError, match="have as many outputs"):
        arith.inverse_affine_iter_map(found.indices[:1], [a])


def test_a_map_that_is_none_says_why():
    i, j = variables("i", "j")
    domain = {i: Range(0, 4), j: Range(0, 4)}
    overlapping = arith.detect_iter_map([i + j], domain)
    assert overlapping.indices == [] and len(overlapping.errors) == 1
    twice = arith.detect_iter_map([i, i], domain, check_level="surjective")
    assert twice.indices == [] and "not independent" in twice.errors[0]
    assert arith.detect_iter_map([i], domain, check_level="surjective").errors == []
    assert "same indices" in arith.detect_iter_map([i], domain, check_level="bijective").errors[0]
    with pytest.raises(ValueError, match="a level is one of nocheck, surjective, bijective"):
        arith.detect_iter_map([i], domain, check_level="injective")


def test_indices_are_simplified_by_their_structure():
    i, j = variables("i", "j")
    domain = {i: Range(0, 16), j: Range(0, 8)}
    simpler = arith.iter_map_simplify([(i * 8 + j) // 8, (i * 8 + j) % 8], domain)
    assert [str(one) for one in simpler] == ["i", "j"]
    kept = arith.iter_map_simplify([i + j], domain)
    assert structural_equal(kept[0], i + j, map_free_vars=False)


def random_map(rng):
    """Variables with their sizes, and splits, fusions, strides or sums of them."""
    names = variables("i", "j", "k")[: rng.integers(1, 4)]
    sizes = {var: int(rng.integers(1, 7)) for var in names}
    fused = 0
    for var in names:
        fused = fused * sizes[var] + var
    cut = int(rng.integers(1, 6))
    kinds = [[fused // cut, fused % cut], [fused], list(names), [names[0] * 2 + 1], [fused + names[-1]]]
    return sizes, kinds[rng.integers(len(kinds))]


def test_random_maps_are_what_counting_says(seed):
    rng, told, refused = np.random.default_rng(seed), 0, 0
    for _ in range(40):
        sizes, indices = random_map(rng)
        ranges = {var: Range(0, size) for var, size in sizes.items()}
        points = [dict(zip(sizes, run)) for run in itertools.product(*(range(size) for size in sizes.values()))]
        images = [tuple(value_of(index, point) for index in indices) for point in points]
        found = arith.detect_iter_map(indices, ranges, check_level="nocheck")
        told, refused = told + bool(found.indices), refused + bool(found.errors)
        for at, index in enumerate(found.indices):
            rebuilt = arith.normalize_iter_map_to_expr(index)
            assert [value_of(rebuilt, point) for point in points] == [image[at] for image in images]
        if arith.detect_iter_map(indices, ranges, check_level="bijective").indices:
            assert len(set(images)) == len(points)
    assert told > 10 and refused > 0


def test_linear_forms():
    i, j, n = variables("i", "j", "n")
    form = arith.detect_linear_equation(i * 4 - j + n * 2 + 3, [i, j])
    assert [part.value for part in form[:2]] == [4, -1]
    assert arith.Analyzer().can_prove_equal(form[2], n * 2 + 3)
    assert arith.detect_linear_equation(i * j, [i, j]) == []


def test_bounds_are_deduced():
    i, j, n = variables("i", "j", "n")
    for condition, holds in (
        (i * 3 + j <= 20, lambda a, b: a * 3 + b <= 20),
        (i * 3 - j > 2, lambda a, b: a * 3 - b > 2),
        (10 - i * 2 >= j, lambda a, b: 10 - a * 2 >= b),
        (j < i, lambda a, b: b < a),
    ):
        found = arith.deduce_bound(i, condition, {}, {j: Range(0, 5)})
        low = value_of(found.min_value, {}) if not found.min_value.same_as(arith.neg_inf()) else -50
        high = value_of(found.max_value, {}) if not found.max_value.same_as(arith.pos_inf()) else 50
        told = set(range(low, high + 1))
        assert told == {a for a in range(-50, 51) if all(holds(a, b) for b in range(5))}
    assert arith.deduce_bound(i, i * j < 3, {}, {}).is_nothing()
    assert arith.deduce_bound(i, i + j < 3, {}, {j: arith.IntervalSet(0, arith.pos_inf())}).is_nothing()
    point = arith.deduce_bound(i, tir.EQ(i, n + 1), {}, {})
    assert structural_equal(point.min_value, point.max_value)


def test_clips_are_found():
    i, j, n = variables("i", "j", "n")
    ends = arith.detect_clip_bound(tir.And(tir.And(i >= 2, i * 2 < n), j <= 7), [i, j])
    assert ends[0].value == 2 and ends[2] is None and ends[3].value == 7
    assert value_of(ends[1], {n: 9}) == 4 and value_of(ends[1], {n: 8}) == 3
    assert arith.detect_clip_bound(i < j, [i, j]) == []


def test_what_is_computed_twice_is_found():
    i, j = variables("i", "j")
    shared = (i + j) * (i + j)
    found = arith.detect_common_subexpr(shared // 3 + shared % 5, 2)
    by_text = {str(part): times for part, times in found.items()}
    assert by_text[str(shared)] == 2 and by_text.get(str(i + j), 4) == 4
    assert arith.detect_common_subexpr(i + j, 2) == {}


def test_ranges_of_variables_of_32_bits():
    known, x = lathe.arith.Analyzer(), lathe.tir.Var("x", "int32")
    known.bind(x, lathe.ir.Range(0, 4))
    assert known.can_prove(x < 4) and known.const_int_bound(x).max_value == 3


def test_constants_that_a_substitution_leaves_are_folded():
    x = lathe.tir.Var("x", "int32")
    for e, value in [(x + 1, 8), (x * 3 - 1, 20), (lathe.tir.floordiv(x, 2), 3), (lathe.tir.floormod(x, 4), 3)]:
        found = lathe.arith.Analyzer().simplify(lathe.tir.stmt_functor.substitute(e, {x: lathe.tir.const(7, "int32")}))
        assert int(found) == value, (e, found)


def test_whether_bounds_are_known():
    known, n, m = arith.Analyzer(), tir.Var("n", "int64"), tir.Var("m", "int64")
    assert not known.const_int_bound_is_bound(n)
    known.bind(n, lathe.ir.Range(0, 8))
    assert known.const_int_bound_is_bound(n) and not known.const_int_bound_is_bound(m)
    with known.constraint_scope(m < 4):
        assert known.const_int_bound_is_bound(m)
    assert not known.const_int_bound_is_bound(m)
