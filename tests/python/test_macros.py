"""T.macro, threads and branches as frames."""

import numpy as np
import pytest

import lathe
from lathe.script import ir as I
from lathe.script import tir as T

scale = 3


@T.macro
def store_scaled(B, value, i, by=2):
    """Docstrings are no statements."""
    twice = value * T.float32(by)
    B[i] = twice * T.float32(scale)


@T.macro(hygienic=False)
def store_at_call(B, A, i):
    B[i] = A[i] * T.float32(scale)


@T.macro
def copy_block(A, B, n):
    for i in range(n):
        with T.block("copy"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi]


def run(function, a, **options):
    b = np.zeros_like(a)
    lathe.build(function, **options)[function.attrs["global_symbol"]](a, b)
    return b


array = np.arange(8, dtype="float32")


def test_a_call_stands_for_the_body():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            store_scaled(B, A[i], i)

    np.testing.assert_array_equal(run(f, array), array * 6)
    assert "store_scaled" not in f.script()


def test_arguments_by_name_and_defaults():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            store_scaled(i=i, B=B, value=A[i], by=5)

    np.testing.assert_array_equal(run(f, array), array * 15)


def test_free_names_mean_what_the_macro_says():
    def made(scale):
        @T.prim_func
        def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
            for i in range(8):
                store_scaled(B, A[i], i, 1)

        @T.prim_func
        def g(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
            for i in range(8):
                store_at_call(B, A, i)

        assert scale == 7  # so that the functions capture it
        return f, g

    f, g = made(7)
    np.testing.assert_array_equal(run(f, array), array * 3)
    np.testing.assert_array_equal(run(g, array), array * 7)


def test_macros_hold_whole_blocks_and_work_in_modules():
    @I.ir_module
    class Module:
        @T.prim_func
        def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
            copy_block(A, B, 8)

    sch = lathe.tir.Schedule(Module)
    sch.vectorize(sch.get_loops("copy")[0])
    b = np.zeros_like(array)
    lathe.build(sch.mod)["main"](array, b)
    np.testing.assert_array_equal(b, array)


class Parts:
    def __init__(self, factor):
        self.factor = factor

        @T.macro
        def scaled(B, A, i):
            B[i] = A[i] * T.float32(factor)

        self.scaled = scaled


def test_a_macro_of_an_object():
    parts = Parts(4)

    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            parts.scaled(B, A, i)

    np.testing.assert_array_equal(run(f, array), array * 4)


def test_a_text_has_macros_of_its_own():
    f = lathe.script.from_source("""
@T.macro
def twice(B, A, i):
    B[i] = A[i] + A[i]

@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        twice(B, A, i)
""").with_attr("global_symbol", "main")
    np.testing.assert_array_equal(run(f, array), array * 2)


REFUSED = {
    "at most": ("twice(B, A)", "argument 'i' is missing"),
    "too many": ("twice(B, A, i, i)", "macro 'twice' takes 3 arguments, not 4"),
    "a name that is none": ("twice(B, A, i, j=i)", "macro 'twice' has no parameter 'j'"),
    "itself": ("again(B, A, i)", "more than 64 deep"),
    "a return": ("returns(i)", "macro 'returns' returns"),
    "its names outside": ("twice(B, A, i)\n        B[i] = inner", "'inner' is not defined"),
}


@pytest.mark.parametrize("call, wanted", REFUSED.values(), ids=REFUSED)
def test_calls_that_are_refused(call, wanted):
    text = f"""
@T.macro
def twice(B, A, i):
    inner = A[i] + A[i]
    B[i] = inner

@T.macro
def again(B, A, i):
    again(B, A, i)

@T.macro
def returns(i):
    return i

@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        {call}
"""
    with pytest.raises(lathe.ScriptError) as caught:
        lathe.script.from_source(text, filename="macros.py")
    assert wanted in str(caught.value)
    assert "macros.py:" in caught.value.diagnostics[0].place


def test_a_macro_is_no_function_of_python():
    with pytest.raises(TypeError, match="the macro 'store_scaled' is called as a statement of a tensor program only"):
        store_scaled(1, 2, 3)
    with pytest.raises(TypeError, match="T.macro decorates a function"):
        T.macro(3)


# ---- threads ----


def test_threads_are_launched_by_frames_and_by_lines():
    @T.prim_func
    def frames(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        with T.launch_thread("blockIdx.x", 2) as bx:
            with T.launch_thread("threadIdx.x", 4) as tx:
                B[bx * 4 + tx] = A[bx * 4 + tx]

    @T.prim_func
    def lines(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        bx = T.launch_thread("blockIdx.x", 2)
        tx = T.launch_thread("threadIdx.x", 4)
        B[bx * 4 + tx] = A[bx * 4 + tx]

    @T.prim_func
    def declared(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        bx = T.env_thread("blockIdx.x")
        tx = T.env_thread("threadIdx.x")
        T.launch_thread(bx, 2)
        T.launch_thread(tx, 4)
        B[bx * 4 + tx] = A[bx * 4 + tx]

    for function in (frames, lines, declared):
        np.testing.assert_array_equal(run(function, array, target="interp"), array)
        lathe.ir.assert_structural_equal(function.without_attr("global_symbol"), frames.without_attr("global_symbol"))
        assert 'T.thread_binding(4, thread="threadIdx.x")' in function.script()


def test_a_launch_takes_a_thread():
    with pytest.raises(lathe.ScriptError, match="'n' is no thread; T.env_thread makes one"):
        lathe.script.from_source("""
@T.prim_func
def main(n: T.int64):
    T.launch_thread(n, 4)
""")


# ---- branches and loops as frames ----


def test_branches_and_whiles_as_frames():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        n = T.alloc_buffer((1,), "int64")
        n[0] = 0
        with T.While(n[0] < 8):
            with T.If(n[0] % 2 == 0):
                with T.Then():
                    B[n[0]] = A[n[0]]
                with T.Else():
                    B[n[0]] = -A[n[0]]
            n[0] = n[0] + 1

    np.testing.assert_array_equal(run(f, array), np.where(array % 2 == 0, array, -array))


@pytest.mark.parametrize(
    "body, wanted",
    [
        ("with T.If(n > 0):\n        T.evaluate(0)", "holds 'with T.Then"),
        ("with T.If(n > 0):\n        with T.Else():\n            T.evaluate(0)", "has no 'with T.Then()'"),
        ("with T.If(n > 0):\n        with T.Then():\n            pass\n        with T.Then():\n            pass",
         "has this case already"),
    ],
)  # fmt: skip
def test_branches_that_are_refused(body, wanted):
    with pytest.raises(lathe.ScriptError) as caught:
        lathe.script.from_source(f"@T.prim_func\ndef main(n: T.int64):\n    {body}\n")
    assert wanted in str(caught.value)
