"""Smaller names of the vocabulary: values of the runtime, attributes of a module."""

import numpy as np
import pytest

import lathe
from lathe import runtime
from lathe.script import tir as T


@T.prim_func
def doubled(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("b"):
            v = T.axis.spatial(4, i)
            B[v] = A[v] * T.float32(2)


def test_shapes_and_texts():
    shape = runtime.ShapeTuple([3, np.int64(4)])
    assert shape == (3, 4) and repr(shape) == "ShapeTuple([3, 4])" and shape[1] == 4
    assert runtime.ShapeTuple() == ()
    with pytest.raises(TypeError, match="integers, not float"):
        runtime.ShapeTuple([1.5])
    with pytest.raises(TypeError, match="integers, not bool"):
        runtime.ShapeTuple([True])
    assert runtime.String("text") == "text" and isinstance(runtime.String("text"), str)


def test_convert():
    held = runtime.convert(np.arange(3, dtype="int32"))
    assert isinstance(held, runtime.NDArray) and held.numpy().tolist() == [0, 1, 2]
    first, (second,) = runtime.convert((1, [np.zeros(2)]))
    assert first == 1 and isinstance(second, runtime.NDArray)
    assert runtime.convert(runtime.ShapeTuple([2])) == (2,) and runtime.convert("text") == "text"


def test_what_this_machine_does():
    assert runtime.enabled("llvm") and runtime.enabled("x86-64-v3")
    assert not runtime.enabled("a toaster")
    assert runtime.num_threads() >= 1


def test_attributes_of_a_module():
    module = lathe.IRModule({"main": doubled})
    changed = module.with_attr("purpose", "a test").with_attrs({"sizes": [4, 5], "deep": {"at": 1.5}})
    assert not module.attrs and changed.get_attr("purpose") == "a test"
    assert changed.attrs["sizes"] == [4, 5] and changed.get_attr("nothing") is None
    assert lathe.ir.structural_equal(lathe.script.from_source(changed.script()), changed)
    assert not changed.without_attr("purpose").attrs.get("purpose")
    with pytest.raises(TypeError, match="an attribute is"):
        module.with_attr("purpose", object())


# ---- T: addresses, masks, what a function is compiled for ----


def run(function, *arrays, target="llvm"):
    copies = [np.array(array) for array in arrays]
    lathe.build(function, target=target)["main"](*copies)
    return copies


def test_addresses_of_later_elements():
    # What is passed begins at the third element of A.
    @lathe.script.ir_module
    class Module:
        @T.prim_func(private=True)
        def first(X: T.Buffer((2,), "int32"), out: T.Buffer((1,), "int32")):
            out[0] = X[0] + X[1]

        @T.prim_func
        def main(A: T.Buffer((8,), "int32"), B: T.Buffer((4,), "int32")):
            for i in range(3):
                Module.first(T.handle_add_byte_offset(A.data, i * 8), T.address_of(B[i]))
            Module.first(T.handle_add_byte_offset(A.data, 24), T.address_of(B[3]))

    for target in ("llvm", "interp"):
        _, sums = run(Module, np.arange(8, dtype="int32"), np.zeros(4, "int32"), target=target)
        assert sums.tolist() == [1, 5, 9, 13]
    with pytest.raises(lathe.Error, match="a multiple of those of an element, 4"):
        lathe.script.from_source("@T.prim_func\ndef main(A: T.Buffer((8,), 'int32')):\n"
                                 "    T.call_extern('void', 'f', T.handle_add_byte_offset(A.data, 3))\n")  # fmt: skip


def test_masks_of_lanes():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), n: T.int32):
        B[T.Ramp(0, 1, 8)] = T.Select(T.get_active_lane_mask("boolx8", 2, n), A[T.Ramp(0, 1, 8)],
                                      T.Broadcast(T.float32(-1), 8))  # fmt: skip

    a = np.arange(8, dtype="float32")
    for target in ("llvm", "interp"):
        b = np.zeros(8, "float32")
        lathe.build(main, target=target)["main"](a, b, 6)
        assert b.tolist() == [0, 1, 2, 3, -1, -1, -1, -1]


def test_attributes_name_targets():
    @T.prim_func
    def main(a: T.Ptr("float32"), b: T.handle):
        T.func_attr({"target": T.target("llvm")})
        A = T.match_buffer(a, (4,), "float32")
        B = T.match_buffer(b, (4,), "float32")
        for i in range(4):
            B[i] = A[i]

    assert main.attrs["target"] == "llvm" and T.target({"kind": "llvm"}) == {"kind": "llvm"}
    assert T.Ptr("float32").dtype == "handle"
    lathe.ir.assert_structural_equal(lathe.script.from_source(main.script()), main)
    assert run(main, np.ones(4, "float32"), np.zeros(4, "float32"), target=None)[1].tolist() == [1, 1, 1, 1]
    with pytest.raises(lathe.Error, match="toaster"):
        lathe.build(main.with_attr("target", T.target("toaster")))
    other = main.with_attr("target", {"kind": "interp"})
    with pytest.raises(ValueError, match="one to llvm, other to interp"):
        lathe.build(lathe.IRModule({"one": main, "other": other}))
    with pytest.raises(lathe.Error, match="a dict of its parts"):
        T.target(3)
