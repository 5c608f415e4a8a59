"""Functions of Python's called by tensor programs, and tensor functions called by others."""

import threading

import numpy as np
import pytest

import lathe
from lathe import registry
from lathe.script import ir as I, tir as T

TARGETS = ["llvm", "interp"]


@pytest.fixture
def registered():
    """Registers functions for one test."""
    names = []

    def register(name, function):
        lathe.register_func(name, function)
        names.append(name)
        return function

    yield register
    for name in names:
        registry.remove_global_func(name)


def build(text, target="llvm"):
    return lathe.build(lathe.script.from_source(text), target=target)


# ---- registered functions ----


@pytest.mark.parametrize("target", TARGETS)
def test_buffers_numbers_and_texts_arrive(registered, target):
    seen = []

    def record(a, i, x, yes, text):
        seen.append((a.numpy(), a.shape, a.dtype, i, x, yes, text))
        a[...] = 7

    registered("test.record", record)
    built = build(
        """
@T.prim_func
def main(A: T.Buffer((2, 3), "int32"), n: T.int64, x: T.float32):
    T.call_packed("test.record", A, n + 1, x * T.float32(2), n > 3, "words")
""",
        target,
    )
    a = np.arange(6, dtype="int32").reshape(2, 3)
    built["main"](a, 4, 1.5)
    ((before, shape, dtype, i, x, yes, text),) = seen
    assert before.tolist() == [[0, 1, 2], [3, 4, 5]] and shape == (2, 3) and dtype == "int32"
    assert (i, x, yes, text) == (5, 3.0, 1, "words")
    assert a.tolist() == [[7, 7, 7], [7, 7, 7]]


@pytest.mark.parametrize("target", TARGETS)
def test_what_comes_back_is_a_number(registered, target):
    registered("test.integer", lambda i: i * 2)
    registered("test.real", lambda x: x / 2)
    registered("test.nothing", lambda: None)
    built = build(
        """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        A[i] = T.call_packed("test.integer", i)
        B[i] = T.call_packed("test.real", A[i] + 1, dtype="float32") + T.float32(1)
    A[3] = T.call_packed("test.nothing") + 5
""".replace("A[i] + 1", "T.float32(A[i])"),
        target,
    )
    a, b = np.zeros(4, "int32"), np.zeros(4, "float32")
    built["main"](a, b)
    assert a.tolist() == [0, 2, 4, 5] and b.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("target", TARGETS)
def test_memory_of_the_programs_own_and_parts_of_it(registered, target):
    def fill(a):
        a[...] = np.arange(a._data.size).reshape(a.shape)

    registered("test.fill", fill)
    built = build(
        """
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((4, 6), "float32")):
    C = T.alloc_buffer((4, 6), "float32")
    T.call_packed("test.fill", C)
    for i, j in T.grid(4, 6):
        B[i, j] = C[i, j]
    for i in range(2):
        with T.block("part"):
            vi = T.axis.spatial(2, i)
            T.reads()
            T.writes(A[vi * 2:vi * 2 + 2, 1:4])
            V = T.match_buffer(A[vi * 2:vi * 2 + 2, 1:4], (2, 3), "float32")
            T.call_packed("test.fill", V)
""",
        target,
    )
    a, b = np.full((4, 6), -1, "float32"), np.zeros((4, 6), "float32")
    built["main"](a, b)
    expected = np.full((4, 6), -1, "float32")
    expected[:2, 1:4] = expected[2:, 1:4] = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(a, expected)
    np.testing.assert_array_equal(b, np.arange(24).reshape(4, 6))


@pytest.mark.parametrize("dtype", ["float16", "bool", "uint8", "float64", "int4", "bfloat16"])
def test_every_type_of_element(registered, dtype):
    import ml_dtypes  # noqa: F401 - names of dtypes

    seen = []
    registered("test.kind", lambda a: seen.append((a.dtype, a.numpy().astype("float32").tolist())))
    one = "T.bool(True)" if dtype == "bool" else f'T.Cast("{dtype}", 1)'
    text = f"""
@T.prim_func
def main(B: T.Buffer((4,), "float32")):
    A = T.alloc_buffer((4,), "{dtype}")
    for i in range(4):
        A[i] = {one}
    T.call_packed("test.kind", A)
    B[0] = T.float32(1)
"""
    for target in TARGETS:
        build(text, target)["main"](np.zeros(4, "float32"))
    assert seen == [(dtype, [1.0] * 4)] * 2


@pytest.mark.parametrize("target", TARGETS)
def test_an_error_comes_back_as_it_is(registered, target):
    class Mine(Exception):
        pass

    def fails(i):
        if i == 3:
            raise Mine("at three")

    registered("test.fails", fails)
    built = build(
        """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        T.call_packed("test.fails", i)
        A[i] = T.float32(1)
""",
        target,
    )
    a = np.zeros(8, "float32")
    with pytest.raises(Mine, match="at three") as caught:
        built["main"](a)
    assert caught.traceback[-1].name == "fails"
    if target == "llvm":  # the interpreter hands nothing back
        assert a.tolist() == [1, 1, 1, 0, 0, 0, 0, 0]
    with pytest.raises(Mine):
        built.time_evaluator("main", lathe.cpu(), number=1)(a)


def test_what_returns_no_number_is_an_error(registered):
    registered("test.text", lambda: "text")
    for dtype in ("int32", "float32"):
        built = build(f"""
@T.prim_func
def main(A: T.Buffer((1,), "{dtype}")):
    A[0] = T.call_packed("test.text", dtype="{dtype}")
""")
        with pytest.raises(TypeError):
            built["main"](np.zeros(1, dtype))


def test_from_every_thread_of_a_parallel_loop(registered):
    threads, lock = set(), threading.Lock()

    def note(a, i):
        with lock:
            threads.add(threading.get_ident())
        a[i] = i

    registered("test.note", note)
    built = build("""
@T.prim_func
def main(A: T.Buffer((64,), "int32")):
    for i in T.parallel(64):
        T.call_packed("test.note", A, i)
""")
    a = np.zeros(64, "int32")
    built["main"](a)
    assert a.tolist() == list(range(64)) and threads


def test_what_is_not_there_is_said_when_it_is_called(registered):
    built = build("""
@T.prim_func
def main(A: T.Buffer((1,), "int32")):
    A[0] = T.call_packed("test.later")
""")
    a = np.zeros(1, "int32")
    with pytest.raises(lathe.Error, match="there is no registered function 'test.later'"):
        built["main"](a)
    registered("test.later", lambda: 9)
    built["main"](a)
    assert a[0] == 9


def test_what_is_saved_cannot_call_this_process(registered, tmp_path):
    registered("test.here", lambda a: None)
    built = build("""
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    T.call_packed("test.here", A)
""")
    with pytest.raises(lathe.Error, match="'main' calls 'test.here', which is registered in this process") as caught:
        built.export_library(str(tmp_path / "f.so"))
    assert caught.value.diagnostics[0].code == "driver-registered-function"


def test_calls_that_cannot_be_are_refused():
    for call, message in [
        ("T.call_packed(A)", "a registered function is called by its name"),
        ('T.call_packed("f", T.address_of(A[0]))', "argument 0 of 'f' is neither a buffer nor a number nor a text"),
        ('T.call_packed("f", dtype="float32x4")', "'f' gives a number or nothing, not float32x4"),
    ]:
        with pytest.raises(lathe.Error, match=message):
            lathe.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    T.evaluate({call})
""")


def test_a_call_prints_as_it_reads():
    f = lathe.script.from_source("""
@T.prim_func
def main(A: T.Buffer((4, 2), "float32"), B: T.Buffer((2, 2), "float32", strides=[4, 1])):
    T.call_packed("f", A, B, 1, "text")
""")
    text = f.script()
    assert 'T.call_packed("f", A, B, T.int32(1), "text")' in text
    lathe.ir.assert_structural_equal(lathe.script.from_source(text), f)
    spelt = """T.call_packed(
        "f", T.tvm_stack_make_array(T.address_of(A[0, 0]), T.tvm_stack_make_shape(T.int64(4), T.int64(2)), 0, 2,
                                    T.float32(0), 0), B, 1, "text")"""
    again = lathe.script.from_source(text.replace('T.call_packed("f", A, B, T.int32(1), "text")', spelt))
    lathe.ir.assert_structural_equal(again, f)


def test_names_are_registered_once():
    @lathe.register_func
    def test_registry_function(x):
        return x

    try:
        assert lathe.get_global_func("test_registry_function") is test_registry_function
        with pytest.raises(ValueError, match="is registered as 'test_registry_function' already"):
            lathe.register_global_func("test_registry_function", print)
        lathe.register_func("test_registry_function", print, override=True)
        assert lathe.get_global_func("test_registry_function") is print
        assert "test_registry_function" in registry.list_global_func_names()
    finally:
        registry.remove_global_func("test_registry_function")
    assert lathe.get_global_func("test_registry_function", allow_missing=True) is None
    with pytest.raises(ValueError, match="there is no registered function"):
        lathe.get_global_func("test_registry_function")
    with pytest.raises(ValueError):
        registry.remove_global_func("test_registry_function")
    with pytest.raises(TypeError):
        lathe.register_func("f", 3)
    with pytest.raises(TypeError):
        lathe.register_func(3)


# ---- functions of the module ----


@I.ir_module
class Layers:
    @T.prim_func(private=True)
    def dense(X: T.Buffer((4, 8), "float32"), W: T.Buffer((6, 8), "float32"), Y: T.Buffer((4, 6), "float32")):
        for i, j, k in T.grid(4, 6, 8):
            with T.block("dense"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] += X[vi, vk] * W[vj, vk]

    @T.prim_func(private=True)
    def relu(x: T.handle, y: T.handle, floor: T.float32):
        n = T.int64()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for i in range(n):
            Y[i] = T.max(X[i], floor)

    @T.prim_func
    def main(X: T.Buffer((4, 8), "float32"), W: T.Buffer((6, 8), "float32"), Y: T.Buffer((4, 6), "float32")):
        Z = T.alloc_buffer((4, 6), "float32")
        Layers.dense(X, W, Z)
        for i in T.parallel(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                T.reads(Z[vi, 0:6])
                T.writes(Y[vi, 0:6])
                A = T.match_buffer(Z[vi, 0:6], (6,), "float32")
                B = T.match_buffer(Y[vi, 0:6], (6,), "float32")
                Layers.relu(A, B, 0.0)


@pytest.mark.parametrize("target", TARGETS)
def test_functions_call_functions(target):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((4, 8), "float32"), rng.standard_normal((6, 8), "float32")
    y = np.zeros((4, 6), "float32")
    built = lathe.build(Layers, target=target)
    built["main"](x, w, y)
    np.testing.assert_allclose(y, np.maximum(x @ w.T, 0), rtol=1e-5, atol=1e-6)
    lathe.ir.assert_structural_equal(lathe.script.from_source(Layers.script()), Layers)


def test_a_library_has_what_its_functions_call(tmp_path):
    built = lathe.build(Layers)
    path = str(tmp_path / "layers.so")
    built.export_library(path)
    x, w, y = np.ones((4, 8), "float32"), np.ones((6, 8), "float32"), np.zeros((4, 6), "float32")
    lathe.runtime.load_module(path)["main"](x, w, y)
    assert (y == 8).all()
    with pytest.raises(lathe.InputError, match="memory"):
        built["relu"](y[0], y[0], 0.0)


def test_a_size_that_does_not_fit_is_found_when_it_is_known():
    built = build("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def first(A: T.Buffer((4,), "float32")):
        A[3] = T.float32(1)
    @T.prim_func
    def main(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        Module.first(T.address_of(A[1]))
""")
    a = np.zeros(5, "float32")
    built["main"](a)
    assert a.tolist() == [0, 0, 0, 0, 1]
    with pytest.raises(lathe.RunError, match="reaches past the end of 'A'"):
        built["main"](np.zeros(4, "float32"))


@pytest.mark.parametrize("target", TARGETS)
def test_strides_and_offsets_that_the_callee_leaves_open(target):
    built = build(
        """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def clear(a: T.handle):
        n, s, o = T.int64(), T.int64(), T.int64()
        A = T.match_buffer(a, (n, 2), "float32", strides=[s, 1], elem_offset=o)
        for i, j in T.grid(n, 2):
            A[i, j] = T.float32(0)
    @T.prim_func
    def main(A: T.Buffer((4, 6), "float32")):
        Module.clear(T.address_of(A[2, 4]))
""",
        target,
    )
    a = np.ones((4, 6), "float32")
    built["main"](a)
    expected = np.ones((4, 6), "float32")
    expected[2:, 4:] = 0
    np.testing.assert_array_equal(a, expected)
