"""Models whose gradients are checked beside the random samples: operators that have none of those, and whole networks.

A case is named after the operator, with what is special of it after an underscore.
"""

import numpy as np
from onnx import TensorProto, helper

from tests.operators.gradients import untyped_model

OPSET = 24


def _of_nodes(nodes, feeds, outputs=("y",), constants=None, domain="", opset=OPSET):
    return untyped_model(nodes, feeds, constants or {}, outputs, opset, domain), feeds


def _attention(rng):
    feeds = {name: rng.normal(size=(2, 2, 3, 4)) for name in ("q", "k", "v")}
    feeds["mask"] = rng.normal(size=(3, 3))
    return _of_nodes([helper.make_node("Attention", ["q", "k", "v", "mask"], ["y"], is_causal=1)], feeds)


def _attention_grouped(rng):
    feeds = {"q": rng.normal(size=(1, 4, 3, 2)), "k": rng.normal(size=(1, 2, 5, 2)), "v": rng.normal(size=(1, 2, 5, 3))}
    return _of_nodes([helper.make_node("Attention", ["q", "k", "v"], ["y"], softcap=2.0)], feeds)


def _flex_attention(rng):
    feeds = {name: rng.normal(size=(1, 2, 3, 4)) for name in ("q", "k", "v")}
    node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain="ai.onnx.preview")
    return _of_nodes([node], feeds, domain="ai.onnx.preview", opset=1)


def _gradient(rng):
    """The gradient of a gradient: of exp(x) * x * x by x, and of that."""
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]), helper.make_node("Mul", ["x", "x"], ["s"]),
        helper.make_node("Mul", ["e", "s"], ["p"]),
        helper.make_node("Gradient", ["x"], ["y"], xs=["x"], y="p", domain="ai.onnx.preview.training"),
    ]  # fmt: skip
    return _of_nodes(nodes, {"x": rng.normal(size=4)}, domain="ai.onnx.preview.training", opset=1)


def _rotary_embedding(rng):
    feeds = {"x": rng.normal(size=(2, 3, 4, 6)), "cos": rng.normal(size=(2, 4, 3)), "sin": rng.normal(size=(2, 4, 3))}
    feeds = {name: x.astype(np.float32) for name, x in feeds.items()}  # the specification has no float64 here
    return _of_nodes([helper.make_node("RotaryEmbedding", ["x", "cos", "sin"], ["y"])], feeds)


def _top_k_of_many(rng):
    """More than are kept in order while the elements pass, of many more."""
    node = helper.make_node("TopK", ["x", "count"], ["y", ""], axis=1)
    x = rng.permutation(200).reshape(2, 100) + rng.normal(size=(2, 100)) * 0.01
    return _of_nodes([node], {"x": x}, constants={"count": np.array([12])})


def _resize(mode, **attributes):
    def case(rng):
        node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode, **attributes)
        scales = np.array([1, 1, 1.7, 0.6], np.float32)
        return _of_nodes([node], {"x": rng.normal(size=(1, 2, 5, 6))}, constants={"scales": scales}, opset=19)

    return case


def _upsample(rng):
    scales = np.array([1, 1, 2, 3], np.float32)
    node = helper.make_node("Upsample", ["x", "scales"], ["y"], mode="linear")
    return _of_nodes([node], {"x": rng.normal(size=(1, 2, 3, 2))}, constants={"scales": scales}, opset=9)


def _branch(chosen):
    """y = x * w or sin(x), by data; w counts in one branch only."""

    def case(rng):
        def graph(name, node):
            return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, TensorProto.DOUBLE, [3])])

        node = helper.make_node(
            "If", ["c"], ["z"],
            then_branch=graph("product", helper.make_node("Mul", ["h", "w"], ["product"])),
            else_branch=graph("wave", helper.make_node("Sin", ["h"], ["wave"])),
        )  # fmt: skip
        nodes = [helper.make_node("Exp", ["x"], ["h"]), node, helper.make_node("Add", ["z", "x"], ["y"])]
        feeds = {"x": rng.normal(size=3), "w": rng.normal(size=3), "c": np.array(chosen)}
        return _of_nodes(nodes, feeds)

    return case


def _optimizer(op, count, **attributes):
    """An operator that learns is a function like any other."""

    def case(rng):
        names = ["x", "g", *(f"s{k}" for k in range(count))]
        feeds = {"r": np.array(0.1, np.float32), "t": np.array(2, np.int64)}
        feeds |= {name: rng.uniform(0.5, 1.5, 4) for name in names}
        outputs = ["y", *(f"n{k}" for k in range(count))]
        node = helper.make_node(op, ["r", "t", *names], outputs, domain="ai.onnx.preview.training", **attributes)
        return _of_nodes([node], feeds, outputs, domain="ai.onnx.preview.training", opset=1)

    return case


def _classical(op, inputs, **attributes):
    def case(rng):
        node = helper.make_node(op, list(inputs), ["y"], domain="ai.onnx.ml", **attributes)
        feeds = {name: make(rng) for name, make in inputs.items()}
        return _of_nodes([node], feeds, domain="ai.onnx.ml", opset=1)

    return case


def _perceptron(rng):
    feeds = {"x": rng.normal(size=(5, 4)), "w1": rng.normal(size=(4, 6)), "b1": rng.normal(size=6)}
    feeds |= {"w2": rng.normal(size=(6, 3)), "b2": rng.normal(size=3), "target": rng.integers(0, 3, 5)}
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]), helper.make_node("Tanh", ["h"], ["a"]),
        helper.make_node("Gemm", ["a", "w2", "b2"], ["scores"]),
        helper.make_node("SoftmaxCrossEntropyLoss", ["scores", "target"], ["y"]),
    ]  # fmt: skip
    return _of_nodes(nodes, feeds)


def _convolutions(rng):
    feeds = {"x": rng.normal(size=(2, 3, 8, 7)), "w1": rng.normal(size=(4, 3, 3, 3)) / 3, "b1": rng.normal(size=4)}
    feeds |= {"scale": rng.uniform(0.5, 1.5, 4), "shift": rng.normal(size=4), "w2": rng.normal(size=(6, 2, 3, 2)) / 3}
    feeds |= {"w3": rng.normal(size=(6, 3))}
    constants = {"mean": rng.normal(size=4), "variance": rng.uniform(0.5, 1.5, 4)}
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c1", "scale", "shift", "mean", "variance"], ["n1"]),
        helper.make_node("Relu", ["n1"], ["a1"]),
        helper.make_node("MaxPool", ["a1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "w2"], ["c2"], group=2), helper.make_node("HardSwish", ["c2"], ["a2"]),
        helper.make_node("GlobalAveragePool", ["a2"], ["p2"]), helper.make_node("Flatten", ["p2"], ["f"]),
        helper.make_node("MatMul", ["f", "w3"], ["scores"]), helper.make_node("LogSoftmax", ["scores"], ["y"]),
    ]  # fmt: skip
    return _of_nodes(nodes, feeds, constants=constants, opset=17)


def _transformer(rng):
    """One block: attention over two heads and a wide layer, each after a normalisation and added to what came in."""
    size, steps = 6, 4
    feeds = {"x": rng.normal(size=(2, steps, size))}
    feeds |= {name: rng.uniform(0.5, 1.5, size) for name in ("g1", "g2")}
    feeds |= {name: rng.normal(size=(size, size)) / 2 for name in ("wq", "wk", "wv", "wo")}
    feeds |= {"w1": rng.normal(size=(size, 8)) / 2, "w2": rng.normal(size=(8, size)) / 2}
    nodes = [helper.make_node("LayerNormalization", ["x", "g1"], ["n1"])]
    nodes += [helper.make_node("MatMul", ["n1", f"w{name}"], [name]) for name in "qkv"]
    nodes += [
        helper.make_node("Attention", ["q", "k", "v"], ["a"], q_num_heads=2, kv_num_heads=2),
        helper.make_node("MatMul", ["a", "wo"], ["o"]), helper.make_node("Add", ["x", "o"], ["r"]),
        helper.make_node("LayerNormalization", ["r", "g2"], ["n2"]), helper.make_node("MatMul", ["n2", "w1"], ["h"]),
        helper.make_node("Gelu", ["h"], ["e"]), helper.make_node("MatMul", ["e", "w2"], ["m"]),
        helper.make_node("Add", ["r", "m"], ["y"]),
    ]  # fmt: skip
    return _of_nodes(nodes, feeds)


def _rows(rng):
    return rng.normal(size=(3, 4)).astype(np.float32)


CASES = {
    "Attention": _attention,
    "Attention_grouped": _attention_grouped,
    "FlexAttention": _flex_attention,
    "Gradient": _gradient,
    "RotaryEmbedding": _rotary_embedding,
    "TopK_of_many": _top_k_of_many,
    "Resize_linear": _resize("linear"),
    "Resize_cubic": _resize("cubic", coordinate_transformation_mode="half_pixel"),
    "Resize_nearest": _resize("nearest"),
    "Resize_antialias": _resize("linear", antialias=1),
    "Upsample": _upsample,
    "If_then": _branch(True),
    "If_else": _branch(False),
    "Adagrad": _optimizer("Adagrad", 1, epsilon=0.1),
    "Adam": _optimizer("Adam", 2, epsilon=0.1),
    "Momentum": _optimizer("Momentum", 1, alpha=0.9, beta=0.8, mode="nesterov", norm_coefficient=0.1),
    "Scaler": _classical("Scaler", {"x": _rows}, offset=[1.0, 2.0, 3.0, 4.0], scale=[0.5, 2.0, 1.0, 3.0]),
    "Imputer": _classical("Imputer", {"x": _rows}, imputed_value_floats=[1.0], replaced_value_float=7.0),
    "Normalizer": _classical("Normalizer", {"x": _rows}, norm="L2"),
    "ArrayFeatureExtractor": _classical(
        "ArrayFeatureExtractor", {"x": _rows, "i": lambda rng: rng.integers(0, 4, (1, 3))}
    ),
    "Gemm_perceptron": _perceptron,
    "Conv_network": _convolutions,
    "Attention_transformer": _transformer,
}
