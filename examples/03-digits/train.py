"""Trains the digits network in plain NumPy and writes digits.onnx.

Seeds are fixed: the same machine writes the same file.

    python examples/03-digits/train.py [-o digits.onnx]

The network: two convolution stages (Conv, BatchNormalization, Relu, MaxPool) and two Gemm layers, 40 thousand weights.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from images import load_split

EPSILON = 1e-5
MOMENTUM = 0.9  # of the running batch-norm statistics


class Conv:
    """3x3 convolution, stride 1, one pixel of zeros around; no bias, BatchNormalization follows."""

    def __init__(self, rng, inputs, outputs):
        self.weight = rng.normal(0, np.sqrt(2 / (inputs * 9)), (outputs, inputs, 3, 3)).astype(np.float32)

    def forward(self, x, training):
        n, c, h, w = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))  # [n, c, h, w, 3, 3]
        self.columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, c * 9)
        self.shape = x.shape
        y = self.columns @ self.weight.reshape(len(self.weight), -1).T
        return y.reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def backward(self, dy):
        n, c, h, w = self.shape
        flat = dy.transpose(0, 2, 3, 1).reshape(n * h * w, -1)
        self.d_weight = (flat.T @ self.columns).reshape(self.weight.shape)
        d_columns = (flat @ self.weight.reshape(len(self.weight), -1)).reshape(n, h, w, c, 3, 3)
        d_padded = np.zeros((n, c, h + 2, w + 2), np.float32)
        for i in range(3):
            for j in range(3):
                d_padded[:, :, i : i + h, j : j + w] += d_columns[..., i, j].transpose(0, 3, 1, 2)
        return d_padded[:, :, 1:-1, 1:-1]

    parameters = ("weight",)


class BatchNorm:
    def __init__(self, channels):
        self.scale = np.ones(channels, np.float32)
        self.bias = np.zeros(channels, np.float32)
        self.mean = np.zeros(channels, np.float32)
        self.variance = np.ones(channels, np.float32)

    def forward(self, x, training):
        if training:
            mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
            self.mean = MOMENTUM * self.mean + (1 - MOMENTUM) * mean
            self.variance = MOMENTUM * self.variance + (1 - MOMENTUM) * variance
        else:
            mean, variance = self.mean, self.variance
        column = (slice(None), None, None)
        self.inverse = 1 / np.sqrt(variance + EPSILON)
        self.normal = (x - mean[column]) * self.inverse[column]
        return self.normal * self.scale[column] + self.bias[column]

    def backward(self, dy):
        self.d_scale = (dy * self.normal).sum((0, 2, 3))
        self.d_bias = dy.sum((0, 2, 3))
        count = dy.size // dy.shape[1]
        column = (slice(None), None, None)
        centred = dy - self.d_bias[column] / count - self.normal * self.d_scale[column] / count
        return centred * (self.scale * self.inverse)[column]

    parameters = ("scale", "bias")


class Relu:
    def forward(self, x, training):
        self.mask = x > 0
        return x * self.mask

    def backward(self, dy):
        return dy * self.mask

    parameters = ()


class MaxPool:
    """2x2, stride 2."""

    def forward(self, x, training):
        n, c, h, w = x.shape
        tiles = x.reshape(n, c, h // 2, 2, w // 2, 2)
        y = tiles.max((3, 5))
        self.mask = tiles == y[:, :, :, None, :, None]
        self.mask = self.mask / self.mask.sum((3, 5), keepdims=True)  # ties share the gradient
        return y

    def backward(self, dy):
        n, c, h, w = dy.shape
        return (self.mask * dy[:, :, :, None, :, None]).reshape(n, c, 2 * h, 2 * w).astype(np.float32)

    parameters = ()


class Gemm:
    def __init__(self, rng, inputs, outputs):
        self.weight = rng.normal(0, np.sqrt(2 / inputs), (outputs, inputs)).astype(np.float32)
        self.bias = np.zeros(outputs, np.float32)

    def forward(self, x, training):
        self.shape = x.shape
        self.x = x.reshape(len(x), -1)
        return self.x @ self.weight.T + self.bias

    def backward(self, dy):
        self.d_weight = dy.T @ self.x
        self.d_bias = dy.sum(0)
        return (dy @ self.weight).reshape(self.shape)

    parameters = ("weight", "bias")


def build_layers(seed):
    rng = np.random.default_rng(seed)
    return [
        Conv(rng, 1, 16), BatchNorm(16), Relu(),
        Conv(rng, 16, 32), BatchNorm(32), Relu(), MaxPool(),
        Conv(rng, 32, 64), BatchNorm(64), Relu(), MaxPool(),
        Gemm(rng, 256, 64), Relu(),
        Gemm(rng, 64, 10),
    ]  # fmt: skip


def forward(layers, x, training=False):
    for layer in layers:
        x = layer.forward(x, training)
    return x


def train(layers, images, labels, epochs, batch, seed):
    """Adam with a learning rate that falls to zero; every batch is shifted by up to one pixel."""
    rng = np.random.default_rng(seed)
    moments = {}
    step, steps = 0, epochs * (len(images) // batch)
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        for start in range(0, len(images) - batch + 1, batch):
            chosen = order[start : start + batch]
            x = np.roll(images[chosen], rng.integers(-1, 2, size=2), axis=(2, 3))
            logits = forward(layers, x, training=True)
            probability = np.exp(logits - logits.max(1, keepdims=True))
            probability /= probability.sum(1, keepdims=True)
            gradient = probability
            gradient[np.arange(batch), labels[chosen]] -= 1
            gradient = (gradient / batch).astype(np.float32)
            for layer in reversed(layers):
                gradient = layer.backward(gradient)
            step += 1
            rate = 3e-3 * 0.5 * (1 + np.cos(np.pi * step / steps))
            for index, layer in enumerate(layers):
                for name in layer.parameters:
                    d = getattr(layer, "d_" + name)
                    first, second = moments.get((index, name), (np.zeros_like(d), np.zeros_like(d)))
                    first, second = 0.9 * first + 0.1 * d, 0.999 * second + 0.001 * d * d
                    moments[index, name] = first, second
                    update = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
                    setattr(layer, name, (getattr(layer, name) - rate * update).astype(np.float32))
        if (epoch + 1) % 5 == 0:
            accuracy = (forward(layers, images).argmax(1) == labels).mean()
            print(f"epoch {epoch + 1:3d}: {100 * accuracy:.2f} % of the training images", flush=True)


def export(layers):
    nodes, weights = [], []
    value, index = "image", 0

    def weight(name, array):
        weights.append(numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name))
        return name

    def node(kind, inputs, **attributes):
        nonlocal value
        output = "logits" if kind == "Gemm" and layer is layers[-1] else f"{name}_out"
        nodes.append(helper.make_node(kind, inputs, [output], name=name, **attributes))
        value = output

    for layer in layers:
        index += 1
        name = f"{type(layer).__name__.lower()}_{index}"
        match layer:
            case Conv():
                node("Conv", [value, weight(f"{name}.weight", layer.weight)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
            case BatchNorm():
                fields = [weight(f"{name}.{f}", getattr(layer, f)) for f in ("scale", "bias", "mean", "variance")]
                node("BatchNormalization", [value, *fields], epsilon=EPSILON)
            case Relu():
                node("Relu", [value])
            case MaxPool():
                node("MaxPool", [value], kernel_shape=[2, 2], strides=[2, 2])
            case Gemm():
                if not any(n.op_type == "Flatten" for n in nodes):
                    nodes.append(helper.make_node("Flatten", [value], ["features"], name="flatten", axis=1))
                    value = "features"
                node(
                    "Gemm",
                    [value, weight(f"{name}.weight", layer.weight), weight(f"{name}.bias", layer.bias)],
                    transB=1,
                )
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])],
        weights,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="lathe-examples")
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default=Path(__file__).with_name("digits.onnx"), type=Path)
    parser.add_argument("--epochs", default=25, type=int)
    arguments = parser.parse_args()
    images, labels, held_out, held_out_labels = load_split()
    layers = build_layers(seed=1)
    train(layers, images, labels, arguments.epochs, batch=32, seed=2)
    accuracy = (forward(layers, held_out).argmax(1) == held_out_labels).mean()
    print(f"{100 * accuracy:.2f} % of the {len(held_out)} held-out images")
    onnx.save(export(layers), arguments.output)
    print(f"{arguments.output}: {arguments.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
