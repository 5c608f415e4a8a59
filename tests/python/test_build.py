"""Tensor functions built, called with arrays of all sorts, timed, saved; what does not fit is refused in a sentence."""

import subprocess
import sys

import numpy as np
import pytest

import lathe
from lathe.script import ir as I
from lathe.script import tir as T
from tests.support import paths


@I.ir_module
class Kernels:
    @T.prim_func
    def axpy(alpha: T.float32, x: T.Buffer((6,), "float32"), y: T.Buffer((6,), "float32")):
        for i in range(6):
            with T.block("y"):
                vi = T.axis.spatial(6, i)
                y[vi] = y[vi] + alpha * x[vi]

    @T.prim_func
    def transpose(a: T.handle, b: T.handle):
        m, n = T.int64(), T.int64()
        A = T.match_buffer(a, (m, n), "int32")
        B = T.match_buffer(b, (n, m), "int32")
        for i, j in T.grid(m, n):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj, vi] = A[vi, vj]


@pytest.fixture(scope="module")
def built():
    return lathe.build(Kernels, target="llvm")


def test_arrays_of_numpy_nd_and_dlpack(built):
    x = np.arange(6, dtype=np.float32)
    y = np.ones(6, np.float32)
    built["axpy"](2.0, x, y)
    np.testing.assert_array_equal(y, 2 * x + 1)

    device = lathe.nd.array(np.ones(6, np.float32), lathe.cpu())
    built["axpy"](1, lathe.nd.array(x), device)
    np.testing.assert_array_equal(device.numpy(), x + 1)

    class OnlyDLPack:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    y = np.zeros(6, np.float32)
    built["axpy"](1.0, OnlyDLPack(x), y)
    np.testing.assert_array_equal(y, x)


def test_sizes_of_any_shape(built):
    for shape in ((3, 5), (1, 1), (0, 4), (7, 2)):
        a = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
        b = np.empty(shape[::-1], np.int32)
        built["transpose"](a, b)
        np.testing.assert_array_equal(b, a.T)


def ones(count, dtype=np.float32):
    return np.ones(count, dtype)


WRONG = {
    "too few": (lambda f: f["axpy"](1.0, ones(6)), "takes 3 arguments (alpha: float32, x: float32 [6], y: "),
    "too many": (lambda f: f["axpy"](1.0, ones(6), ones(6), ones(6)), "4 are given"),
    "dtype": (lambda f: f["axpy"](1.0, ones(6, np.float64), ones(6)), "must be x: float32 [6], it is of float64"),
    "rank": (lambda f: f["axpy"](1.0, ones((2, 3)), ones(6)), "it has the shape [2, 3]"),
    "size": (lambda f: f["axpy"](1.0, ones(6), ones(7)), "must be y: float32 [6], it has the shape [7]"),
    "gaps": (lambda f: f["axpy"](1.0, ones(12)[::2], ones(6)), "it has gaps: its strides are [2]"),
    "number for tensor": (lambda f: f["axpy"](1.0, 2.0, ones(6)), "it is a number"),
    "tensor for number": (lambda f: f["axpy"](ones(6), ones(6), ones(6)), "it is a tensor"),
    "symbol": (lambda f: f["transpose"](ones((2, 3), np.int32), ones((2, 3), np.int32)), "by the arguments before"),
    "no tensor": (lambda f: f["axpy"](1.0, "text", ones(6)), ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused(built, name):
    call, message = WRONG[name]
    with pytest.raises(TypeError) as caught:
        call(built)
    assert message in str(caught.value)


def test_memory_that_is_written_is_not_shared(built):
    x = np.ones(11, np.float32)
    with pytest.raises(lathe.InputError, match="share memory, and it writes the latter"):
        built["axpy"](1.0, x[:6], x[5:])
    built["axpy"](1.0, x[:5].repeat(2)[:6].copy(), x[5:])


def test_times(built):
    x, y = ones(6), ones(6)
    times = built.time_evaluator("axpy", lathe.cpu(), number=3, repeat=4)(1.0, x, y)
    assert len(times.results) == 4 and all(t > 0 for t in times.results)
    assert times.min <= times.median <= times.max and times.min <= times.mean <= times.max and times.std >= 0
    longer = built.time_evaluator("axpy", lathe.cpu(), number=1, min_repeat_ms=5)(0.0, x, y)
    assert 0 < longer.mean < 5e-3
    with pytest.raises(ValueError, match="at least 1"):
        built.time_evaluator("axpy", lathe.cpu(), number=0)


def test_sources_for_people(built):
    assert "define" in built.get_source() and "axpy" in built.get_source("tir")
    assert ".text" in built.get_source("asm")
    with pytest.raises(lathe.Error, match="no source in the form 'cuda'"):
        built.get_source("cuda")


def test_a_library_runs_in_another_process(built, tmp_path):
    path = tmp_path / "kernels.so"
    built.export_library(path)
    opened = lathe.runtime.load_module(path)
    y = ones(6)
    opened["axpy"](3.0, ones(6), y)
    np.testing.assert_array_equal(y, np.full(6, 4))
    code = (
        "import lathe, numpy as np; a = np.arange(6, dtype='int32').reshape(2, 3); b = np.empty((3, 2), 'int32');"
        f"lathe.runtime.load_module({str(path)!r})['transpose'](a, b); assert (b == a.T).all(); print('same')"
    )
    environment = paths.environment()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout == "same\n", done.stderr


def test_what_is_no_library_is_refused(built, tmp_path):
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(lathe.RunError):
        lathe.runtime.load_module(tmp_path / "text.so")
    with pytest.raises(lathe.Error, match="as a .so file"):
        built.export_library(tmp_path / "kernels.tar")


def test_names_that_are_not_there(built):
    with pytest.raises(AttributeError, match="no function 'gemm', only axpy, transpose"):
        built["gemm"]
    with pytest.raises(ValueError, match="no device 'cuda'"):
        lathe.device("cuda", 0)


def test_only_tensor_functions_are_built():
    with pytest.raises(TypeError, match="what is built is an IRModule or a function"):
        lathe.build(3)
    with pytest.raises(lathe.Error, match="no function to build"):
        lathe.build(lathe.IRModule({}))


def test_results_do_not_depend_on_threads(monkeypatch):
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64,), "float32")):
        for i in T.parallel(64):
            for j in range(64):
                with T.block("B"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vj]

    a = np.random.default_rng(0).standard_normal((64, 64)).astype("float32")
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("LATHE_NUM_THREADS", threads)
        b = np.empty(64, "float32")
        lathe.build(main)["main"](a, b)
        results.append(b.tobytes())
    assert len(set(results)) == 1


def test_an_address_that_goes_out_of_the_program():
    @T.prim_func
    def main(B: T.Buffer((4,), "float32")):
        A = T.alloc_buffer((4,), "float32")
        for i in range(4):
            A[i] = T.float32(3)
        T.evaluate(T.call_extern("handle", "memcpy", B.data, A.data, T.int64(16)))

    b = np.zeros(4, "float32")
    lathe.build(main)["main"](b)
    assert b.tolist() == [3] * 4


def test_compile_builds_what_has_tensor_functions_alone():
    a, out = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    function = lathe.script.from_source(
        "@T.prim_func\ndef plus(A: T.Buffer((8,), 'float32'), B: T.Buffer((8,), 'float32')):\n"
        "    for i in range(8):\n        B[i] = A[i] + T.float32(1)\n"
    )
    for given in (function, lathe.IRModule({"plus": function}), lathe.tir.Schedule(function)):
        built = lathe.compile(given, target="llvm")
        out[:] = 0
        built[built.entry_name](a, out)
        np.testing.assert_array_equal(out, a + 1)
        assert built.mod.time_evaluator(built.entry_name, lathe.cpu(), number=1)(a, out).mean > 0
    assert "add1" in lathe.build(function, target="llvm", name="add1")
    with pytest.raises(ValueError, match="name is for one function, and the module has 2"):
        lathe.build(Kernels, name="add1")


def test_a_target_around_is_what_is_built_for():
    text = "@T.prim_func\ndef main(A: T.Buffer((8,), 'float32')):\n    A[0] = T.float32(1)\n"
    function = lathe.script.from_source(text)
    assert lathe.target.Target.current() is None
    with lathe.target.Target("llvm") as outer, lathe.target.Target("null"):
        assert lathe.target.Target.current().name == "null"
        with outer:
            assert lathe.target.Target.current() is outer
            lathe.build(function).get_source("ll")
        with pytest.raises(lathe.Error, match="the null target emits a listing"):
            lathe.build(function).get_source("ll")
    assert lathe.target.Target.current() is None
    with pytest.raises(ValueError, match="no `with target:` is around"):
        lathe.target.Target.current(allow_none=False)
