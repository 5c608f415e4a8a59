"""Winograd convolutions on request: lathe.compile(winograd=True), and what they lose."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.backends import onnxruntime_session


def convolutions(images, channels, height, width, outputs, pads=(1, 1, 1, 1), residual=False, seed=0, **attributes):
    """Conv, Relu, Conv with a bias, the input added where asked for, Relu; both of 3x3."""
    rng = np.random.default_rng(seed)
    first = (rng.standard_normal((channels, channels, 3, 3)) / np.sqrt(9 * channels)).astype(np.float32)
    second = (rng.standard_normal((outputs, channels, 3, 3)) / np.sqrt(9 * channels)).astype(np.float32)
    constants = {"first": first, "second": second, "bias": rng.standard_normal(outputs).astype(np.float32)}
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["a"], name="begin", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "second", "bias"], ["c"], name="end", pads=list(pads), **attributes),
    ]
    last = "c"
    if residual:
        nodes.append(helper.make_node("Add", ["c", "x"], ["d"]))
        last = "d"
    nodes.append(helper.make_node("Relu", [last], ["y"]))
    graph = helper.make_graph(
        nodes, "convolutions",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [images, channels, height, width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def relative(value, wanted):
    return np.abs(value - wanted).max() / max(np.abs(wanted).max(), 1e-30)


SHAPES = [
    (1, 32, 14, 14, 32, (1, 1, 1, 1), True),
    (2, 32, 13, 9, 48, (2, 0, 1, 3), False),
    (1, 64, 7, 7, 64, (1, 1, 1, 1), True),
    (3, 48, 5, 11, 16, (0, 0, 0, 0), False),
    (1, 16, 1, 1, 16, (1, 1, 1, 1), True),
    (1, 32, 4, 23, 31, (1, 1, 1, 1), False),
    (1, 20, 6, 6, 24, (1, 1, 1, 1), False),
]


@pytest.mark.parametrize("images, channels, height, width, outputs, pads, residual", SHAPES)
def test_is_the_convolution_up_to_its_error(lathe, images, channels, height, width, outputs, pads, residual):
    model = convolutions(images, channels, height, width, outputs, pads, residual)
    x = np.random.default_rng(1).standard_normal((images, channels, height, width)).astype(np.float32)
    wanted = onnxruntime_session(model.SerializeToString()).run(None, {"x": x})[0]
    direct = lathe.compile(model)
    assert "winograd" not in direct.metadata
    assert relative(direct(x), wanted) < 2e-6
    assert relative(lathe.compile(model, winograd=True)(x), wanted) < 1e-5


def random_shape(seed):
    rng = np.random.default_rng(seed)
    channels, outputs = (int(16 * rng.integers(2, 5)) for _ in range(2))
    height, width = (int(rng.integers(6, 30)) for _ in range(2))
    return int(rng.integers(1, 4)), channels, height, width, outputs, tuple(int(p) for p in rng.integers(0, 4, 4))


@pytest.mark.parametrize("seed", range(6))
def test_random_shapes(lathe, seed):
    images, channels, height, width, outputs, pads = random_shape(seed)
    model = convolutions(images, channels, height, width, outputs, pads, seed=seed)
    x = np.random.default_rng(seed).standard_normal((images, channels, height, width)).astype(np.float32)
    made = lathe.compile(model, winograd=True)
    assert made.metadata["winograd"].startswith("winograd: ")
    wanted = onnxruntime_session(model.SerializeToString()).run(None, {"x": x})[0]
    assert relative(made(x), wanted) < 1e-5


def test_says_how_many_and_what_error(lathe):
    said = lathe.compile(convolutions(1, 64, 28, 28, 64), winograd=True).metadata["winograd"]
    assert said.startswith("winograd: 2 convolutions; the largest error of one is ")
    error = float(said.split("the largest error of one is ")[1].split()[0])
    assert 1e-8 < error < 1e-5


def test_says_that_nothing_gains(lathe):
    said = lathe.compile(convolutions(1, 3, 8, 8, 3), winograd=True).metadata["winograd"]
    assert said.startswith("winograd: no convolution gains by it")


def test_a_session_takes_it(lathe):
    model = convolutions(1, 32, 20, 20, 32)
    session = lathe.InferenceSession(model.SerializeToString(), winograd=True)
    assert "2 convolutions" in session.get_modelmeta().custom_metadata_map["winograd"]
    x = np.ones((1, 32, 20, 20), np.float32)
    wanted = lathe.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    assert relative(session.run(None, {"x": x})[0], wanted) < 1e-5


def test_what_is_not_finite_stays_in_its_tiles(lathe):
    """docs/winograd.md: every output of the tiles that read it, and no other."""
    model = convolutions(1, 32, 24, 24, 32)
    x = np.ones((1, 32, 24, 24), np.float32)
    clean = lathe.compile(model, winograd=True)(x)
    x[0, 5, 0, 0] = np.inf
    spoiled = lathe.compile(model, winograd=True)(x)
    np.testing.assert_array_equal(spoiled[..., 12:, 12:], clean[..., 12:, 12:])
    assert np.isnan(spoiled[..., 0, 0]).any() or np.isinf(spoiled[..., 0, 0]).any()
