"""Plain loops mean what they mean when Python runs them over NumPy's arrays: the function is its own reference."""

import numpy as np
import pytest

import lathe

RNG = np.random.default_rng(11)


def run_into(function, *arrays):
    lathe.build(function)[function.attrs["global_symbol"]](*arrays)
    return arrays[-1]


def backwards(x, y):
    for i in range(6):
        y[i] = x[-1 - i]


def around(x, y):
    for i in range(6):
        y[i] = x[i - 1] + x[i - 3]


def ends(x, y):
    y[0] = x[-1]
    y[-1] = x[0]
    for i in range(1, 5):
        y[-1 - i] = x[-i] * 2


def turned(x, y):
    rows, columns = x.shape
    for i in range(rows):
        for j in range(columns):
            y[i, j] = x[-i][j - columns] + x[rows - 1 - i, ~j]


def guarded(x, y):
    n = len(x)
    for i in range(n):
        if i > 0 and i < n - 1:
            y[i] = x[i - 1] + x[i + 1]
        else:
            y[i] = x[i - 2]


def chosen(x, y):
    for i in range(6):
        y[i] = x[i + 1] if i < 5 else x[i - 6]
        if i == 5 or x[i + 1] > 0:
            y[i] += 1


def both_evaluated(x, y):
    for i in range(6):
        y[i] = np.where(i > 0, x[i - 1], -1)


def gathered(x, at, y):
    for i in range(6):
        y[i] = x[at[i]] - x[at[i] - i]


def stepping(x, y):
    for i in range(-1, -7, -1):
        y[i] = x[i]


def moving(x, y):
    p = -1
    for i in range(6):
        p -= 1
        y[i] = x[p + 1]


# Indices that are negative, or may be.
INDICES = [backwards, around, ends, turned, guarded, chosen, both_evaluated, gathered, stepping, moving]


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("function", INDICES, ids=lambda f: f.__name__)
def test_negative_indices_count_from_the_end(function, symbolic):
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    shape = (6, 4) if function is turned else (6,)
    arrays = {name: RNG.standard_normal(shape).astype("float32") for name in names}
    if "at" in arrays:
        arrays["at"] = RNG.integers(0, 2, 6).astype("int32") * np.int32(-1)
        arrays["at"][2] = 5
    extents = tuple("uv"[: len(shape)]) if symbolic else shape
    specs = {name: (extents, str(a.dtype)) for name, a in arrays.items()}
    made = lathe.script.from_python(function, **specs)
    wanted = {name: a.copy() for name, a in arrays.items()}
    function(**wanted)
    found = run_into(made, *arrays.values())
    np.testing.assert_allclose(found, wanted[names[-1]], rtol=1e-6)


def sums(x, k, y):
    for i in range(8):
        y[i] = x[i] + k[i]


def products(x, k, y):
    for i in range(8):
        y[i] = x[i] * k[i] * i


def quotients(x, k, y):
    for i in range(8):
        y[i] = x[i] / (k[i] + 1)


def larger(x, k, y):
    for i in range(8):
        y[i] = max(x[i], k[i], i)


def smaller(x, k, y):
    for i in range(8):
        y[i] = min(i, k[i]) + np.minimum(x[i], 3)


def with_literals(x, k, y):
    for i in range(8):
        y[i] = k[i] * 0.1 + x[i] // 2 + (0.3 if i > 3 else 0.7)


def of_python(x, k, y):
    for i in range(8):
        y[i] = x[i] * (i / 3) + i / 7 + np.int16(i) * k[i]


def compared(x, k, y):
    for i in range(8):
        y[i] = 1 if x[i] > k[i] and k[i] <= i else np.where(x[i] == k[i], 2.5, 3)


def wrapped(x, k, y):
    for i in range(8):
        y[i] = k[i] * 100 + i


ARITHMETIC = [sums, products, quotients, larger, smaller, with_literals, of_python, compared, wrapped]
DTYPES = ["int8", "uint8", "int16", "int32", "uint32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("of_k", DTYPES)
@pytest.mark.parametrize("of_x", DTYPES)
@pytest.mark.parametrize("function", ARITHMETIC, ids=lambda f: f.__name__)
def test_dtypes_are_promoted_as_by_numpy(function, of_x, of_k):
    x = RNG.integers(0, 9, 8).astype(of_x)
    k = (RNG.integers(0, 9, 8) - (0 if of_k.startswith("u") else 4)).astype(of_k)
    k[k == -1] = 1
    specs = {"x": ((8,), of_x), "k": ((8,), of_k), "y": ((8,), "float64")}
    wanted = np.zeros(8)
    with np.errstate(all="ignore"):
        function(x, k, wanted)
    found = np.zeros(8)  # interpreted: products and sums are rounded apart, as NumPy rounds them
    lathe.build(lathe.script.from_python(function, **specs), target="interp")[function.__name__](x, k, found)
    np.testing.assert_array_equal(found, wanted)


def out_of_bounds(x, y):
    for i in range(5):
        y[i] = 0.0


def beyond_a_symbol(x, y):
    for i in range(len(x)):
        y[i] = x[i + 1]


def too_far_back(x, y):
    for i in range(4):
        y[i] = x[-2 - i]


def literal(x, y):
    y[4] = 1.0


def parts(x, y):
    y[0] = x[1:3]


@pytest.mark.parametrize(
    "function, message",
    [
        (out_of_bounds, "this index reaches 4, and dimension 0 of 'y' has 4 elements"),
        (beyond_a_symbol, "this index reaches n, and dimension 0 of 'x' has n elements"),
        (too_far_back, "this index reaches -5, and dimension 0 of 'x' has 4 elements"),
        (literal, "this index reaches 4, and dimension 0 of 'y' has 4 elements"),
        (parts, "a part of an array is no number"),
    ],
)
def test_what_leaves_an_array_is_refused_where_it_stands(function, message):
    n = "n" if function is beyond_a_symbol else 4
    with pytest.raises(lathe.Error) as caught:
        lathe.script.from_python(function, x=((n,), "float32"), y=((n,), "float32"))
    first = caught.value.diagnostics[0]
    assert message in first.message
    line = function.__code__.co_firstlineno + (1 if function in (literal, parts) else 2)
    assert first.place.startswith(f"{__file__}:{line}:")


def test_loops_that_may_not_run_are_believed():
    def f(x, y):
        for i in range(m):  # noqa: F821
            y[i] = x[i]

    shapes = {"x": (("n",), "float32"), "y": (("m",), "float32")}
    x, y = RNG.standard_normal((2, 5)).astype("float32")
    np.testing.assert_array_equal(run_into(lathe.script.from_python(f, **shapes), x, y), x)


def test_a_parameter_of_which_nothing_is_said():
    with pytest.raises(TypeError, match="what 'k' is has to be said"):
        lathe.script.from_python(sums, x=((8,), "float32"), y=((8,), "float32"))
    with pytest.raises(TypeError, match="'k' is given as"):
        lathe.script.from_python(sums, x=((8,), "float32"), k=((8,),), y=((8,), "float32"))


def steps_on(x, y):
    for i in range(60):
        for j in range(40):
            for k in range(50):
                if i < 57 and k != 49:
                    y[i * 40 + j] = x[(i * {step} + k) // {divisor} - {back}] + x[j % {wrap}]


def test_nests_of_many_iterations_are_looked_at_where_the_index_goes(tmp_path):
    """Refused exactly where an iteration that runs leaves the array."""
    import inspect
    import linecache

    pattern, refused = inspect.getsource(steps_on), 0
    for case in range(40):
        chosen = {"step": int(RNG.integers(-3, 9)), "divisor": int(RNG.integers(1, 4)),
                  "back": int(RNG.integers(0, 60)), "wrap": int(RNG.integers(30, 61))}  # fmt: skip
        text, name = pattern.format(**chosen), f"{tmp_path}/steps_{case}.py"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        scope = {}
        exec(compile(text, name, "exec"), scope)
        i, k = np.meshgrid(np.arange(57), np.arange(49))
        reached = (i * chosen["step"] + k) // chosen["divisor"] - chosen["back"]
        size = int(reached.max()) + 1 if case % 2 else int(RNG.integers(40, 500))
        leaves = size <= reached.max() or -size > reached.min() or min(39, chosen["wrap"] - 1) >= size
        specs = {"x": ((max(size, 1),), "float32"), "y": ((2400,), "float32")}
        try:
            lathe.script.from_python(scope["steps_on"], **specs)
            found = False
        except lathe.Error as error:
            assert "this index reaches" in str(error)
            found = True
        assert found == bool(leaves), (chosen, size, int(reached.min()), int(reached.max()))
        refused += found
    assert 5 < refused < 35
