"""Programs read from decorated Python: what is around them, the spellings of several years, errors with their place."""

import linecache
import textwrap

import numpy as np
import pytest

import lathe
from lathe.script import from_source
from lathe.script import ir as I
from lathe.script import tir as T


def filled(value, size, dtype="int64"):
    @T.prim_func
    def fill(A: T.Buffer((size,), dtype)):
        for i in T.serial(size):
            with T.block("fill"):
                vi = T.axis.spatial(size, i)
                A[vi] = T.cast(value, dtype)

    return fill


def run_into(function, *arrays):
    lathe.build(function)[function.attrs["global_symbol"]](*arrays)
    return arrays[-1]


@pytest.mark.parametrize("value, size", [(3, 1), (-7, 5)])
def test_values_of_the_enclosing_function_are_seen(value, size):
    np.testing.assert_array_equal(run_into(filled(value, size), np.zeros(size, np.int64)), np.full(size, value))


def test_functions_of_python_are_called_with_expressions():
    offsets = [10, 20, 30]

    class Settings:
        rows = 3

    def weight(i, j):
        return i * offsets[1] + j

    @T.prim_func
    def table(A: T.Buffer((Settings.rows, 4), "int64")):
        for i, j in T.grid(Settings.rows, 4):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = weight(vi, vj) + sum([offset for offset in offsets])

    wanted = np.arange(3)[:, None] * 20 + np.arange(4) + 60
    np.testing.assert_array_equal(run_into(table, np.zeros((3, 4), np.int64)), wanted)


class Sizes:
    rows = 3

    class Of:
        columns = 5
        shapes = ({"tile": (3, 5)},)


def test_attributes_of_nested_classes_and_objects_are_seen():
    @T.prim_func
    def fill(A: T.Buffer((Sizes.rows, Sizes.Of.columns), "float32")):
        for i, j in T.grid(Sizes.rows, Sizes.Of.shapes[0]["tile"][1]):
            with T.block("fill"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = T.float32(Sizes.Of.columns)

    assert (run_into(fill, np.zeros((3, 5), "float32")) == 5).all()
    with pytest.raises(lathe.ScriptError, match="'Of' has no attribute 'rows'"):

        @T.prim_func
        def wrong(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(Sizes.Of.rows)


def test_a_grid_takes_a_shape():
    shape = (2, 3)

    @T.prim_func
    def fill(A: T.Buffer((2, 3, 4), "float32")):
        for i, j, k in T.grid(*shape, 4):
            with T.block("fill"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                A[vi, vj, vk] = T.float32(1)

    @T.prim_func
    def again(A: T.Buffer((2, 3, 4), "float32")):
        for i, j, k in T.grid(*A.shape):
            with T.block("fill"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                A[vi, vj, vk] = T.float32(1)

    assert lathe.ir.structural_equal(fill.without_attr("global_symbol"), again.without_attr("global_symbol"))
    assert (run_into(again, np.zeros((2, 3, 4), "float32")) == 1).all()


@pytest.mark.parametrize(
    ("line", "nearest"),
    [
        ("for i in T.gird(4): A[i] = 1.0", "T.grid"),
        ("for i in T.serail(4): A[i] = 1.0", "T.serial"),
        ("A[0] = T.flot32(1)", "T.float32"),
        ("A[0] = T.sqr(A[1])", "T.sqrt"),
        ("T.evalute(0)", "T.evaluate"),
    ],
)
def test_a_name_that_is_not_there_names_the_nearest(line, nearest):
    with pytest.raises(lathe.ScriptError) as told:
        from_source(f'@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n    {line}\n')
    assert f"the nearest name is {nearest}\n" in str(told.value) + "\n"


def test_branches_on_values_of_python_are_taken_while_reading():
    def clip(lower):
        @T.prim_func
        def clipped(A: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.block("A"):
                    vi = T.axis.spatial(4, i)
                    if lower is None:
                        A[vi] = A[vi] + T.float32(1)
                    else:
                        A[vi] = T.max(A[vi], T.float32(lower))

        return clipped

    a = np.array([-1, 0, 1, 2], np.float32)
    np.testing.assert_array_equal(run_into(clip(0.5), a.copy()), np.maximum(a, 0.5))
    np.testing.assert_array_equal(run_into(clip(None), a.copy()), a + 1)


def test_spellings_of_both_years_are_one_program():
    @T.prim_func(private=True)
    def older(A: T.Buffer[(4, 8), "float32"], B: T.Buffer[8, "float32"]):
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("RS", [i, j])
                with T.init():
                    B[vj] = T.float32(0)
                B[vj] = B[vj] + A[vi, vj]

    @T.prim_func(private=True)
    def newer(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8,), "float32")):
        for i, j in T.grid(4, 8):
            with T.sblock("B"):
                vi = T.axis.reduce(4, i)
                vj = T.axis.spatial(8, j)
                with T.init():
                    B[vj] = T.float32(0)
                B[vj] += A[vi, vj]

    lathe.ir.assert_structural_equal(older, newer)


@I.ir_module
class TwoFunctions:
    @T.prim_func
    def first(A: T.Buffer((2,), "int32")):
        for i in range(2):
            A[i] = T.int32(1)

    @T.prim_func
    def second(A: T.Buffer((2,), "int32")):
        for i in range(2):
            A[i] = T.int32(2)


def test_a_module_holds_its_functions_in_order():
    assert [name.name_hint for name in TwoFunctions.functions] == ["first", "second"]
    for name, function in TwoFunctions.functions.items():
        same = TwoFunctions.functions[name], TwoFunctions.functions.get(name), TwoFunctions.functions[name.name_hint]
        assert all(lathe.ir.structural_equal(function, found) for found in same)
    assert TwoFunctions.functions.get("third") is None and "third" not in TwoFunctions.functions
    assert [var.name for var in TwoFunctions.get_global_vars()] == ["first", "second"]
    assert TwoFunctions["second"].params[0].dtype == "handle"
    with pytest.raises(KeyError, match="no function 'third', only first, second"):
        TwoFunctions["third"]
    lathe.ir.assert_structural_equal(from_source(TwoFunctions.script()), TwoFunctions)


def test_the_text_of_a_function_is_read_back():
    function = filled(3, 4)
    lathe.ir.assert_structural_equal(from_source(function.script()), function)
    assert function.script().startswith("# lathe script")


def test_from_source_takes_names_that_the_text_refers_to():
    text = """
    @T.prim_func
    def f(A: T.Buffer((n,), "int64")):
        for i in range(n):
            A[i] = g(i)
    """
    function = from_source(text, extra_vars={"n": 3, "g": lambda i: i * i})
    np.testing.assert_array_equal(run_into(function.with_attr("global_symbol", "f"), np.zeros(3, np.int64)), [0, 1, 4])


# ---- sources that are no files ----


def defined_in(text, name="<cell 1>", keep=True):
    """What a notebook does: the text is compiled under a name that linecache knows."""
    text = textwrap.dedent(text)
    if keep:
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"T": T, "I": I}
    exec(compile(text, name, "exec"), names)
    return names


CELL = """
    @T.prim_func
    def cell(A: T.Buffer((2,), "int32")):
        for i in range(2):
            A[i] = T.int32(5)
    """


def test_a_cell_of_a_notebook_is_read():
    np.testing.assert_array_equal(run_into(defined_in(CELL)["cell"], np.zeros(2, np.int32)), [5, 5])


def test_a_text_without_source_says_so():
    with pytest.raises(lathe.ScriptError, match="the source of 'cell' is not to be had"):
        defined_in(CELL, "<nowhere>", keep=False)


# ---- errors ----

WRONG = {
    "undefined name": ("A[i] = missing", "'missing' is not defined", 4, 14),
    "wrong rank": ("A[i, i] = T.int32(1)", "buffer 'A' has 1 dimensions, not 2", 4, 8),
    "wrong dtype": ("A[i] = T.float32(1)", "the value stored into 'A' is float32, not int32", 4, 13),
    "unknown function": ("A[i] = T.expp(i)", "there is no 'T.expp'", 4, 13),
    "python raises": ("A[i] = (lambda: 1 // 0)()", "Python raised ZeroDivisionError", 4, 13),
    "wrong arity": ("A[i] = T.exp(1, 2)", "T.exp takes 1 arguments, not 2", 4, 13),
    "not Python": ("A[i] = = 2", "", 4, 13),
    "no statement": ("yield i", "", 4, 6),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_points_at_its_line_and_column(name):
    line, message, row, column = WRONG[name]
    text = f"@T.prim_func\ndef f(A: T.Buffer((2,), 'int32')):\n    for i in range(2):\n      {line}\n"
    with pytest.raises(lathe.ScriptError) as caught:
        from_source(text, filename="user.py")
    diagnostic = caught.value.diagnostics[0]
    assert message in diagnostic.message
    assert (name == "python raises") == (diagnostic.code == "script-python")
    assert diagnostic.place.startswith(f"user.py:{row}:"), diagnostic.place
    assert "^" in str(caught.value)


def test_an_error_of_a_decorated_function_has_the_place_in_this_file():
    with pytest.raises(lathe.ScriptError) as caught:

        @T.prim_func
        def wrong(A: T.Buffer((2,), "int32")):
            for i in range(2):
                A[i] = undefined_name  # noqa: F821 - that is the point

    here = caught.traceback[0].lineno + 1
    place = caught.value.diagnostics[0].place
    file, line, column = place.rsplit(":", 2)
    assert file == __file__
    assert here < int(line) <= here + 6 and int(column) == 24
    assert linecache.getline(file, int(line))[int(column) - 1 :].startswith("undefined_name")


def test_names_of_statements_have_no_meaning_outside_of_programs():
    for call in (lambda: T.grid(2, 3), lambda: T.block("B"), lambda: T.axis.remap("SS", [])):
        with pytest.raises(TypeError, match="inside a function decorated with T.prim_func only"):
            call()
    with pytest.raises(AttributeError, match="the nearest name is T.float32"):
        T.flaot32  # noqa: B018


def test_ill_formed_programs_are_refused_with_their_place():
    with pytest.raises(lathe.Error) as caught:

        @T.prim_func
        def reads_elsewhere(A: T.Buffer((2,), "int32")):
            for i in range(2):
                with T.block("A"):
                    vi = T.axis.spatial(2, i)
                    T.writes()
                    A[vi] = T.int32(1)

    assert caught.value.diagnostics[0].place.startswith(__file__)


# ---- plain loops ----


def linear_relu(x, w, out):
    for i in range(1):
        for j in range(20):
            total = 0.0
            for k in range(30):
                total += x[i][k] * w[j, k]
            out[i, j] = max(total, 0.0)


def test_plain_loops_become_a_function():
    shapes = {"x": ((1, 30), "float32"), "w": ((20, 30), "float32"), "out": ((1, 20), "float32")}
    function = lathe.script.from_python(linear_relu, **shapes)
    rng = np.random.default_rng(5)
    x, w = (rng.standard_normal(shapes[name][0]).astype("float32") for name in "xw")
    wanted = np.zeros((1, 20), np.float32)
    linear_relu(x, w, wanted)
    np.testing.assert_allclose(run_into(function, x, w, np.empty((1, 20), "float32")), wanted, rtol=1e-4, atol=1e-5)


def test_plain_loops_that_are_no_tensor_function_are_refused_with_their_place():
    def strange(x):
        for i in range(4):
            x[i] = open("file")

    with pytest.raises(lathe.Error) as caught:
        lathe.script.from_python(strange, x=((4,), "float32"))
    assert caught.value.diagnostics[0].place.startswith(__file__)
    with pytest.raises(TypeError, match="what 'x' is has to be said"):
        lathe.script.from_python(strange)
