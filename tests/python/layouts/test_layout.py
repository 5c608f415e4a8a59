"""Layouts: their axes, and where a change of layout puts elements, against NumPy."""

import random

import numpy as np
import pytest

import lathe
from lathe import tir
from lathe.script import tir as T


def values(expressions):
    return [int(one) for one in expressions]


def test_the_axes_of_a_layout():
    blocked = tir.layout("NCHW16c")
    assert isinstance(blocked, tir.Layout) and blocked.name == str(blocked) == "NCHW16c"
    assert repr(blocked) == "Layout(NCHW16c)"
    assert len(blocked) == 5 and [blocked[i] for i in range(5)] == list(blocked) == ["N", "C", "H", "W", "c"]
    assert blocked[-1] == "c"
    assert "c" in blocked and "h" not in blocked and "CH" not in blocked and 16 not in blocked
    assert (blocked.index_of("C"), blocked.index_of("c"), blocked.index_of("D")) == (1, 4, -1)
    assert (blocked.factor_of("C"), blocked.factor_of("c"), blocked.factor_of("H")) == (16, 16, -1)
    assert blocked == tir.Layout("NCHW16c") != tir.layout("NCHW8c") and blocked != "NCHW16c"
    assert len({blocked, tir.layout("NCHW16c"), tir.layout("NHWC")}) == 2
    assert tir.layout(blocked) is blocked
    assert len(tir.layout("")) == 0 and tir.layout("").name == ""


@pytest.mark.parametrize(
    "text, message",
    [
        ("NCHW16x", "layout 'NCHW16x', column 5: the subordinate axis 'x' has no primal axis 'X'"),
        ("NCHWC", "column 5: the axis 'C' is there already"),
        ("NC2c4c", "column 5: the axis 'c' is there already"),
        ("NC0c", "column 3: the factor of 'c' is 0"),
        ("NCc", "column 3: the subordinate axis 'c' has no factor before it"),
        ("N4C", "column 2: the primal axis 'C' takes no factor"),
        ("NC4", "column 3: the factor 4 has no axis after it"),
        ("N C", "column 2: ' ' is neither a letter nor a digit"),
        ("NC4000000000c", "column 3: a factor is more than 2147483647"),
    ],
)
def test_what_is_no_layout(text, message):
    with pytest.raises(lathe.NodeError, match=message):
        tir.layout(text)


def test_what_is_no_axis():
    blocked = tir.layout("NC16c")
    with pytest.raises(IndexError, match="layout 'NC16c' has 3 axes, and none is number 3"):
        blocked[3]
    for axis in ("NC", "", "4", 3, "é"):
        with pytest.raises(ValueError, match="an axis is one letter"):
            blocked.index_of(axis)
    with pytest.raises(ValueError, match="an axis is one letter"):
        blocked.factor_of("16c")
    with pytest.raises(TypeError, match="a layout is a text"):
        tir.layout(3)


def test_a_change_of_layout():
    change = tir.bijective_layout("NCHW", tir.layout("NCHW16c"))
    assert isinstance(change, tir.BijectiveLayout) and repr(change) == "BijectiveLayout(NCHW -> NCHW16c)"
    assert (change.src_layout.name, change.dst_layout.name) == ("NCHW", "NCHW16c")
    assert values(change.forward_index([1, 37, 3, 4])) == [1, 2, 3, 4, 5]
    assert values(change.backward_index([1, 2, 3, 4, 5])) == [1, 37, 3, 4]
    assert values(change.forward_shape([1, 32, 7, 7])) == [1, 2, 7, 7, 16]
    assert values(change.backward_shape([1, 2, 7, 7, 16])) == [1, 32, 7, 7]
    assert change == tir.bijective_layout("NCHW", "NCHW16c") != tir.bijective_layout("NCHW16c", "NCHW")
    assert hash(change) == hash(tir.bijective_layout("NCHW", "NCHW16c")) and change != 3
    assert values(tir.bijective_layout("", "").forward_shape([])) == []


def test_an_extent_that_a_factor_does_not_divide_is_padded():
    change = tir.bijective_layout("NC", "NC16c")
    assert values(change.forward_shape([1, 30])) == [1, 2, 16]
    assert values(change.backward_shape(change.forward_shape([1, 30]))) == [1, 32]


def test_symbolic_indices_and_shapes():
    n, c = tir.Var("n", "int64"), tir.Var("c", "int64")
    change = tir.bijective_layout("NC", "CN16c")
    outer, batch, inner = change.forward_index([n, c])
    assert (str(outer), str(batch), str(inner)) == ("c // 16", "n", "c % 16")
    known = lathe.arith.Analyzer()
    back = change.backward_index(change.forward_index([n, c]))
    assert all(known.can_prove_equal(a, b) for a, b in zip(back, [n, c]))
    shape = change.forward_shape([n, c * 16])
    assert [str(one) for one in shape[:2]] == ["c", "n"] and int(shape[2]) == 16
    assert all(isinstance(one, tir.PrimExpr) for one in shape)
    wide, narrow = tir.bijective_layout("C16c", "C4c"), tir.bijective_layout("C16c", "C")
    assert [str(one) for one in wide.forward_index([n, c])] == ["n * 4 + c // 4", "c % 4"]
    assert str(narrow.forward_index([n, 3])[0]) == "n * 16 + 3"


def test_the_dtype_of_numbers():
    assert {one.dtype for one in tir.bijective_layout("NC", "NC4c").forward_shape([3, 8])} == {"int32"}
    change = tir.bijective_layout(tir.layout("NC", "int64"), "NC4c")
    assert {one.dtype for one in change.forward_index([3, 8])} == {"int64"}


def test_changes_that_cannot_be():
    with pytest.raises(lathe.NodeError, match="cannot change layout 'NCHW' into 'NCW': 'NCW' has no axis 'H'"):
        tir.bijective_layout("NCHW", "NCW")
    with pytest.raises(lathe.NodeError, match="cannot change layout 'NC' into 'NCHW4c': 'NC' has no axis 'H'"):
        tir.BijectiveLayout("NC", "NCHW4c")
    n, change = tir.Var("n", "int64"), tir.bijective_layout("NC", "NC16c")
    with pytest.raises(lathe.NodeError, match="layout 'NC' has 2 axes, and 1 indices are given"):
        change.forward_index([3])
    with pytest.raises(lathe.NodeError, match="layout 'NC16c' has 3 axes, and 2 extents are given"):
        change.backward_shape([3, 4])
    with pytest.raises(lathe.NodeError, match="axis 'c' of layout 'NC16c' has extent 16, and 8 is given"):
        change.backward_shape([1, 2, 8])
    for dtype in ("float32", "int8", "bool"):
        message = f"for axis 'C' of layout 'NC' an integer of 32 bits or more is expected, not {dtype}"
        with pytest.raises(lathe.NodeError, match=message):
            change.forward_index([n, tir.Var("x", dtype)])


def random_layout(rng, axes):
    """A layout of those primal axes: its text, and its letters with the factors of the lower-case ones."""
    letters = [(axis, None) for axis in axes]
    letters += [(axis.lower(), rng.choice([1, 2, 3, 4])) for axis in axes if rng.random() < 0.5]
    rng.shuffle(letters)
    return "".join((str(factor) if factor else "") + axis for axis, factor in letters), letters


def by_numpy(array, source, target):
    """The array, laid out as `source` says, as `target` has it; -1 where there is padding."""
    axes, factors, wanted = [axis for axis, _ in source], dict(source), dict(target)
    primal = [axis for axis in axes if axis.isupper()]
    together = [part for axis in primal for part in (axis, axis.lower()) if part in axes]
    extents = [array.shape[axes.index(a)] * factors.get(a.lower(), 1) for a in primal]
    plain = array.transpose([axes.index(part) for part in together]).reshape(extents)
    plain = np.pad(plain, [(0, -extent % wanted.get(a.lower(), 1)) for a, extent in zip(primal, extents)],
                   constant_values=-1)  # fmt: skip
    parts, shape = [], []
    for axis, extent in zip(primal, plain.shape):
        factor = wanted.get(axis.lower())
        parts += [axis, axis.lower()] if factor else [axis]
        shape += [extent // factor, factor] if factor else [extent]
    return plain.reshape(shape).transpose([parts.index(axis) for axis, _ in target])


@pytest.mark.parametrize("seed", range(40))
def test_elements_go_where_numpy_puts_them(seed):
    rng = random.Random(seed)
    axes = "NCHW"[: rng.randint(1, 4)]
    (source, source_axes), (target, target_axes) = random_layout(rng, axes), random_layout(rng, axes)
    shape = [factor or rng.randint(1, 4) for _, factor in source_axes]
    while np.prod(shape) > 300:
        shape[[i for i, (axis, _) in enumerate(source_axes) if axis.isupper() and shape[i] > 1][0]] -= 1
    array = np.arange(np.prod(shape)).reshape(shape)
    expected = by_numpy(array, source_axes, target_axes)
    change = tir.bijective_layout(source, target)
    assert values(change.forward_shape(shape)) == list(expected.shape)
    for place in np.ndindex(*shape):
        there = tuple(values(change.forward_index(place)))
        assert expected[there] == array[place]
        assert tuple(values(change.backward_index(there))) == place
    forward, backward = change.forward_map(), change.backward_map()
    assert all(size <= whole for size, whole in zip(values(forward.map_shape(shape)), expected.shape))
    assert values(backward.map_indices(forward.map_indices([0] * len(shape)))) == [0] * len(shape)


@T.prim_func
def main(A: T.Buffer((2, 6, 3, 5), "float32"), C: T.Buffer((2, 6, 3, 5), "float32")):
    B = T.alloc_buffer((2, 6, 3, 5), "float32")
    for i, j, k, m in T.grid(2, 6, 3, 5):
        with T.block("B"):
            a, b, c, d = T.axis.remap("SSSS", [i, j, k, m])
            B[a, b, c, d] = A[a, b, c, d] + T.float32(1)
    for i, j, k, m in T.grid(2, 6, 3, 5):
        with T.block("C"):
            a, b, c, d = T.axis.remap("SSSS", [i, j, k, m])
            C[a, b, c, d] = B[a, b, c, d] * T.float32(2)


@pytest.mark.parametrize("target", ["NHWC", "NCHW2c", "HW3cCN", "WCNH2h4c", "N2nCHW"])
def test_a_schedule_takes_the_map_of_a_change(target):
    change = tir.bijective_layout("NCHW", target)
    sch = tir.Schedule(main)
    sch.transform_layout("B", ("write", 0), change.forward_map())
    buffer = sch.get(sch.get_block("B")).writes[0].buffer
    assert values(buffer.shape) == values(change.forward_shape([2, 6, 3, 5]))
    a, c = np.random.default_rng(7).random((2, 6, 3, 5), "float32"), np.zeros((2, 6, 3, 5), "float32")
    lathe.build(sch.mod)["main"](a, c)
    np.testing.assert_array_equal(c, (a + 1) * 2)
