"""Graph programs built and run as the course does: relax.build, relax.VirtualMachine."""

import numpy as np
import pytest

import lathe as tvm
from lathe import relax
from lathe.script import ir as I
from lathe.script import relax as R
from lathe.script import tir as T


@I.ir_module
class MLP:
    @T.prim_func
    def bias(X: T.Buffer((1, 8), "float32"), B: T.Buffer((8,), "float32"), Y: T.Buffer((1, 8), "float32")):
        for i, j in T.grid(1, 8):
            with T.block("bias"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] + B[vj]

    @R.function
    def main(x: R.Tensor((1, 4), "float32"), w: R.Tensor((8, 4), "float32"), b: R.Tensor((8,), "float32")):
        cls = MLP
        with R.dataflow():
            lv0 = R.matmul(x, R.permute_dims(w))
            lv1 = R.call_tir(cls.bias, (lv0, b), R.Tensor((1, 8), "float32"))
            out = R.nn.relu(lv1)
            R.output(out)
        return out


RNG = np.random.default_rng(0)
X, W, B = (RNG.standard_normal(shape, dtype="float32") for shape in [(1, 4), (8, 4), (8,)])
WANTED = np.maximum(X @ W.T + B, 0)


@pytest.fixture(scope="module")
def machine():
    return relax.VirtualMachine(relax.build(MLP, target="llvm"), tvm.cpu())


@pytest.mark.parametrize("build", [relax.vm.build, relax.vm_build.build, relax.build])
def test_as_the_course_does(build):
    ex = build(MLP, target="llvm")
    vm = relax.VirtualMachine(ex, tvm.cpu())
    got = vm["main"](tvm.nd.array(X), tvm.nd.array(W), tvm.nd.array(B))
    assert isinstance(got, tvm.nd.NDArray)
    np.testing.assert_allclose(got.numpy(), WANTED, rtol=1e-5)
    assert vm.module is ex


def test_inputs_that_are_set_before(machine):
    with pytest.raises(ValueError, match="set_input"):
        relax.VirtualMachine(machine.module).invoke_stateful("main")
    with pytest.raises(ValueError, match="was not run"):
        machine.get_outputs("main")
    machine.set_input("main", X, W, b=B)
    machine.invoke_stateful("main")
    np.testing.assert_allclose(machine.get_outputs("main").numpy(), WANTED, rtol=1e-5)


def test_a_call_that_is_saved(machine):
    machine.save_function("main", "again", X, W, B)
    machine.save_function("main", "quiet", X, W, B, include_return=False)
    np.testing.assert_allclose(machine["again"]().numpy(), WANTED, rtol=1e-5)
    assert machine["quiet"]() is None


def test_times(machine):
    found = machine.time_evaluator("main", tvm.cpu(), number=3, repeat=4)(X, W, B)
    assert len(found.results) == 4 and 0 < found.min <= found.median <= found.max
    long = machine.time_evaluator("main", tvm.cpu(), number=1, repeat=1, min_repeat_ms=5)(X, W, B)
    assert 0 < long.mean < 0.005


def test_a_saved_module_and_passes(tmp_path):
    path = str(tmp_path / "mlp.so")
    tvm.compile(MLP).save(path)
    np.testing.assert_allclose(relax.VirtualMachine(path)["main"](X, W, B).numpy(), WANTED, rtol=1e-5)
    seen = []

    @tvm.transform.module_pass(opt_level=0, name="look")
    def look(mod, ctx):
        seen.append(sorted(mod._kinds))
        return mod

    ex = relax.build(MLP, relax_pipeline=tvm.transform.Sequential([look]), exec_mode="compiled")
    np.testing.assert_allclose(relax.VirtualMachine(ex)["main"](X, W, B).numpy(), WANTED, rtol=1e-5)
    assert seen == [["bias", "main"]]


def test_what_is_refused(machine):
    for act, error in [
        (lambda: relax.build(MLP, params={"w": W}), ValueError),
        (lambda: relax.build(MLP, exec_mode="fast"), ValueError),
        (lambda: relax.build(MLP, relax_pipeline="zero"), ValueError),
        (lambda: relax.build(MLP, system_lib=True), ValueError),
        (lambda: relax.VirtualMachine(machine.module, "gpu"), ValueError),
        (lambda: relax.VirtualMachine(3), TypeError),
        (lambda: machine["bias"], AttributeError),
        (lambda: machine["main"](X), tvm.InputError),
    ]:
        with pytest.raises(error):
            act()
    for name in ("invoke_closure", "set_instrument", "profile"):
        with pytest.raises(AttributeError, match=f"no '{name}': "):
            getattr(machine, name)


def test_devices_say_what_they_have():
    device = tvm.cpu()
    assert device.exist and device.device_name == "cpu" and device.multi_processor_count >= 1
    assert device.total_global_memory >= device.available_global_memory > 0
    assert device.l2_cache_size_bytes is None or device.l2_cache_size_bytes > 1000
    for name in ("max_threads_per_block", "warp_size", "max_shared_memory_per_block", "compute_version",
                 "max_clock_rate", "max_thread_dimensions", "api_version", "driver_version"):  # fmt: skip
        assert getattr(device, name) is None
    device.sync()
    with pytest.raises(AttributeError, match="no streams"):
        device.create_raw_stream()


def test_parameters_in_a_file(tmp_path):
    path = tmp_path / "params.bin"
    tvm.runtime.save_param_dict_to_file({"w": W}, path)
    np.testing.assert_array_equal(tvm.runtime.load_param_dict_from_file(path)["w"].numpy(), W)
    assert str(tvm.runtime.const(3).dtype) == "int32" and str(tvm.runtime.const(0.5).dtype) == "float32"
    assert str(tvm.runtime.const(1, "int8").dtype) == "int8"
    taken = tvm.runtime.tensor(W), tvm.runtime.empty((2,), "int8"), tvm.runtime.from_dlpack(W)
    assert [t.dtype for t in taken] == ["float32", "int8", "float32"]


@T.prim_func
def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i] * T.float32(2)


def test_the_modules_of_tensor_functions(tmp_path):
    seen = []

    @tvm.transform.module_pass(opt_level=0, name="look")
    def look(mod, ctx):
        seen.append(list(mod._kinds))
        return mod

    a = np.arange(4, dtype="float32")
    for module in (tvm.tir.build(twice, "llvm", look), tvm.build({"llvm": twice}), tvm.build(twice).jit()):
        assert module.implements_function("twice") and not module.implements_function("other")
        for name in ("twice", "main"):  # the only function is the main one
            b = np.zeros(4, "float32")
            module.mod[name](a, b)
            np.testing.assert_array_equal(b, a * 2)
    assert seen == [["twice"]]
    path = tmp_path / "twice.so"
    tvm.build(twice).export_library(path)
    tvm.runtime.load_module(path, "so")["twice"](a, b)
    for act in (
        lambda: tvm.build({"llvm": twice, "interp": twice}),
        lambda: tvm.build(twice, pipeline="mine"),
        lambda: tvm.build(twice).export_library(path, fcompile=print),
        lambda: tvm.runtime.load_module(path, "json"),
    ):
        with pytest.raises(ValueError):
            act()
    with pytest.raises(AttributeError, match="for one device"):
        tvm.build(twice).import_module(None)


def test_passes_of_graphs_have_a_home():
    assert relax.transform.Gradient
