"""lathe.compile, save, load and InferenceSession."""

import inspect

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.models import MODELS, input_for
from tests.support import paths
from tests.support.backends import onnxruntime_session


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).random((5, 1, 8, 8), np.float32)


@pytest.fixture(scope="module")
def wanted(images):
    return onnxruntime_session(str(paths.DIGITS_MODEL)).run(None, {"image": images})[0]


def close(value, wanted):
    np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", ["path", "str", "bytes", "proto"])
def test_takes_a_path_bytes_or_a_proto(lathe, images, wanted, form):
    model = {
        "path": paths.DIGITS_MODEL, "str": str(paths.DIGITS_MODEL), "bytes": paths.DIGITS_MODEL.read_bytes(),
        "proto": onnx.load(paths.DIGITS_MODEL),
    }[form]  # fmt: skip
    y = lathe.compile(model)(images)
    assert isinstance(y, np.ndarray) and y.dtype == np.float32 and y.shape == (5, 10)
    close(y, wanted)


def test_takes_an_irmodule(lathe, images, wanted):
    """The module that `lathe compile --emit relax` prints, parsed and compiled, is the same model."""
    module = lathe.import_onnx(paths.DIGITS_MODEL)
    assert isinstance(module, lathe.IRModule)
    close(lathe.compile(module)(images), wanted)


def test_is_called_by_name_or_position(lathe):
    a = helper.make_tensor_value_info("a", TensorProto.FLOAT, ["n"])
    b = helper.make_tensor_value_info("b", TensorProto.FLOAT, ["n"])
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n"]) for n in ("difference", "product")]
    nodes = [helper.make_node("Sub", ["a", "b"], ["difference"]), helper.make_node("Mul", ["a", "b"], ["product"])]
    graph = helper.make_graph(nodes, "two", [a, b], outputs)
    exe = lathe.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    x, y = np.float32([1, 2, 3]), np.float32([10, 20, 40])
    for result in (exe(x, y), exe(a=x, b=y), exe(b=y, a=x), exe(x, b=y)):
        assert isinstance(result, tuple) and len(result) == 2
        np.testing.assert_array_equal(result[0], x - y)
        np.testing.assert_array_equal(result[1], x * y)


def test_sizes_that_differ_go_together_where_one_is_one(lathe):
    """x and x with two zeros behind it: their sum has three elements where x has one, and is none elsewhere."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["k"])
    pads = helper.make_tensor("pads", TensorProto.INT64, [2], [0, 2])
    nodes = [helper.make_node("Pad", ["x", "pads"], ["padded"]), helper.make_node("Add", ["padded", "x"], ["y"])]
    graph = helper.make_graph(nodes, "differ", [x], [y], [pads])
    exe = lathe.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    np.testing.assert_array_equal(exe(np.float32([3])), np.float32([6, 3, 3]))
    with pytest.raises(lathe.RunError, match="it must be 1"):
        exe(np.float32([3, 4]))


@pytest.mark.parametrize("batch", [1, 2, 7, 64, 0])
def test_one_executable_takes_any_batch(lathe, batch, images):
    exe = lathe.compile(paths.DIGITS_MODEL)
    x = np.random.default_rng(batch).random((batch, 1, 8, 8), np.float32)
    y = exe(x)
    assert y.shape == (batch, 10)
    if batch:
        close(y, onnxruntime_session(str(paths.DIGITS_MODEL)).run(None, {"image": x})[0])
    assert exe(images).shape == (5, 10)


def test_saves_and_loads(lathe, images, wanted, tmp_path):
    exe = lathe.compile(paths.DIGITS_MODEL)
    exe.save(str(tmp_path / "digits.so"))
    loaded = lathe.load(str(tmp_path / "digits.so"))
    assert loaded(images).tobytes() == exe(images).tobytes()
    close(loaded(images), wanted)
    copied = lathe.load(str(tmp_path / "digits.so"), huge_pages=True)
    assert copied(images).tobytes() == exe(images).tobytes()


def test_saved_bytes_equal_the_command_s(lathe, lathe_cli, digits_artifact, tmp_path):
    lathe.compile(paths.DIGITS_MODEL).save(str(tmp_path / "digits.so"))
    assert (tmp_path / "digits.so").read_bytes() == digits_artifact.read_bytes()


def test_target_interp_runs_but_does_not_save(lathe, images, wanted, tmp_path):
    exe = lathe.compile(paths.DIGITS_MODEL, target="interp")
    close(exe(images[:1]), wanted[:1])
    with pytest.raises(lathe.Error, match="interp"):
        exe.save(str(tmp_path / "digits.so"))


def test_session_has_the_interface_of_onnxruntime(lathe, images, wanted):
    session, theirs = lathe.InferenceSession(str(paths.DIGITS_MODEL)), onnxruntime_session(str(paths.DIGITS_MODEL))
    for kind in ("get_inputs", "get_outputs"):
        for ours, other in zip(getattr(session, kind)(), getattr(theirs, kind)(), strict=True):
            assert (ours.name, list(ours.shape), ours.type) == (other.name, list(other.shape), other.type)
    parameters = list(inspect.signature(session.run).parameters)
    assert parameters[:2] == ["output_names", "input_feed"]
    close(session.run(None, {"image": images})[0], wanted)
    close(session.run(["logits"], {"image": images})[0], wanted)
    assert isinstance(session.run(None, {"image": images}), list)


@pytest.mark.parametrize("name", ["mlp", "transformer"])
def test_session_takes_bytes(lathe, name):
    model = MODELS[name]()
    feeds = input_for(model, 2, 1)
    session = lathe.InferenceSession(model.SerializeToString())
    close(session.run(None, feeds)[0], onnxruntime_session(model).run(None, feeds)[0])
