"""Convolutions leave the products with padding out: the same bits as with them, and what a product with zero gives."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.backends import onnxruntime_session


def chain(image, layers, seed=0, spoil=None):
    """Convolutions with a Relu behind each; a layer: outputs, kernel, pads, strides, dilations."""
    rng = np.random.default_rng(seed)
    channels, value, nodes, constants = image[1], "x", [], []
    for i, (outputs, kernel, pads, strides, dilations) in enumerate(layers):
        weight = rng.standard_normal((outputs, channels, *kernel)) / np.sqrt(channels * np.prod(kernel))
        weight = weight.astype(np.float32)
        if spoil is not None:
            weight[0, 0, 0, 0] = spoil
        constants += [
            numpy_helper.from_array(weight, f"w{i}"),
            numpy_helper.from_array(rng.standard_normal(outputs).astype(np.float32), f"b{i}"),
        ]
        nodes += [
            helper.make_node("Conv", [value, f"w{i}", f"b{i}"], [f"c{i}"], pads=pads, strides=strides,
                             dilations=dilations),
            helper.make_node("Relu", [f"c{i}"], [f"r{i}"]),
        ]  # fmt: skip
        channels, value = outputs, f"r{i}"
    graph = helper.make_graph(
        nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(image))],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)], constants,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def layer(outputs, kernel, pads, strides=None, dilations=None):
    ones = [1] * len(kernel)
    return outputs, kernel, pads, strides or ones, dilations or ones


def square(outputs):
    return layer(outputs, (3, 3), [1, 1, 1, 1])


CHAINS = {
    "rows of 14": ((1, 32, 14, 14), [square(64), square(32)]),
    "rows of 7, several in a tile": ((2, 64, 7, 7), [square(64), square(48)]),
    "long sums": ((1, 320, 7, 7), [square(32), square(33)]),
    "two by two": ((1, 48, 2, 2), [square(64), square(64)]),
    "one element": ((1, 48, 1, 1), [square(64), square(64)]),
    "one side": ((1, 16, 9, 9), [layer(32, (3, 3), [2, 0, 0, 1]), layer(32, (2, 3), [0, 2, 1, 0])]),
    "strides": ((1, 16, 13, 11), [layer(32, (3, 3), [1] * 4, [2, 2]), layer(32, (5, 5), [2] * 4, [1, 2])]),
    "dilation": (
        (1, 24, 10, 10),
        [layer(32, (3, 3), [2] * 4, None, [2, 2]), layer(32, (3, 3), [3] * 4, None, [3, 3])],
    ),
    "more padding than image": ((1, 8, 3, 2), [layer(32, (3, 3), [4, 4, 4, 4]), square(16)]),
    "one dimension": ((1, 32, 12), [layer(32, (3,), [1, 1]), layer(32, (5,), [2, 2])]),
    "three dimensions": ((1, 8, 4, 5, 6), [layer(16, (3, 3, 3), [1] * 6), layer(16, (3, 3, 3), [1] * 6)]),
}


@pytest.mark.parametrize("name", CHAINS)
def test_gives_the_bits_that_all_products_give(lathe, name):
    image, layers = CHAINS[name]
    model = chain(image, layers)
    x = np.random.default_rng(1).standard_normal(image).astype(np.float32)
    wanted = onnxruntime_session(model.SerializeToString()).run(None, {"x": x})[0]
    got = lathe.compile(model)(x)
    assert np.abs(got - wanted).max() <= 2e-6 * np.abs(wanted).max()
    for passes in (["skip_zeros"], ["mark_zero_borders"]):
        np.testing.assert_array_equal(got, lathe.compile(model, disabled_passes=passes)(x))


def test_gives_the_same_where_only_the_run_knows_the_batch(lathe):
    image, layers = CHAINS["rows of 7, several in a tile"]
    model = chain(("n", *image[1:]), layers)
    fixed, symbolic = lathe.compile(chain(image, layers)), lathe.compile(model)
    x = np.random.default_rng(1).standard_normal(image).astype(np.float32)
    np.testing.assert_array_equal(symbolic(x), fixed(x))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_multiplies_zeros_by_what_is_not_finite(lathe, value):
    image = (1, 16, 5, 5)
    model = chain(image, [square(32)], spoil=value)
    x = np.random.default_rng(1).standard_normal(image).astype(np.float32)
    got = lathe.compile(model)(x)
    assert np.isnan(got[0, 0, 0, 0])
    assert np.isfinite(got[0, 1:]).all()
