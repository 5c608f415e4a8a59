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
