"""Models in float64: the truth that float32 answers are measured against."""

from types import SimpleNamespace

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from scipy import special

from tests.operators import windows
from tests.operators.recurrent import recurrent


class Erf(OpRun):
    """The evaluator's own Erf rounds to float32 whatever its input is."""

    op_domain = ""

    def _run(self, x):
        return (special.erf(x).astype(x.dtype),)


class Gelu(OpRun):
    """The evaluator expands Gelu into nodes that meet its own Erf."""

    op_domain = ""

    def _run(self, x, approximate=None):
        if approximate == "tanh":
            return ((0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))).astype(x.dtype),)
        return ((0.5 * x * (1 + special.erf(x / np.sqrt(2)))).astype(x.dtype),)


class HardSwish(OpRun):
    """The evaluator expands HardSwish into a node whose attribute is a sixth rounded to float32."""

    op_domain = ""

    def _run(self, x):
        return ((x * np.clip(x / 6 + 0.5, 0, 1)).astype(x.dtype),)


class LRN(OpRun):
    """The evaluator's own sums the squares of as many channels as the batch has images."""

    op_domain = ""

    def _run(self, x, alpha=None, beta=None, bias=None, size=None):
        channels, before = x.shape[1], (size - 1) // 2
        square = np.pad(x * x, [(0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)])
        total = sum(square[:, k : k + channels] for k in range(size))
        return ((x / (bias + alpha / size * total) ** beta).astype(x.dtype),)


class BatchNormalization(OpRun):
    """The evaluator's own trains in opset 9 whatever it is asked for."""

    op_domain = ""

    def _run(self, x, scale, bias, mean, variance, epsilon=None, momentum=None, training_mode=None):
        assert not training_mode
        column = (slice(None), *[None] * (x.ndim - 2))
        return ((x - mean[column]) / np.sqrt(variance[column] + epsilon) * scale[column] + bias[column],)


def given(**attributes):
    return {name: value for name, value in attributes.items() if value is not None}


class Conv(OpRun):
    """The evaluator's own takes ten times as long."""

    op_domain = ""

    def _run(self, x, w, b=None, kernel_shape=None, **attributes):
        return (windows.conv(given(**attributes), x, w, b),)


class ConvTranspose(OpRun):
    """The evaluator's own gives every group the bias of the first one's channels."""

    op_domain = ""

    def _run(self, x, w, b=None, kernel_shape=None, **attributes):
        return (windows.conv_transpose(given(**attributes), x, w, b),)


class AveragePool(OpRun):
    """As Conv."""

    op_domain = ""

    def _run(self, x, **attributes):
        return (windows.average_pool(given(**attributes), x),)


class MaxPool(OpRun):
    """As Conv."""

    op_domain = ""

    def _run(self, x, storage_order=None, **attributes):
        return windows.max_pool(given(**attributes), x)[: len(self.output)]


def by_its_equations(kind):
    """A recurrent operator: the evaluator's own know one direction."""

    def run(self, *inputs, **attributes):
        plain = given(**attributes)
        for name in ("clip", "activations", "activation_alpha", "activation_beta"):
            if not plain.get(name):
                plain.pop(name, None)
        return tuple(recurrent(kind)(SimpleNamespace(attributes=plain, outputs=len(self.onnx_node.output)), *inputs))

    return type(kind, (OpRun,), {"op_domain": "", "_run": run})


OWN = [Erf, Gelu, HardSwish, LRN, BatchNormalization, Conv, ConvTranspose, AveragePool, MaxPool]
OWN += [by_its_equations(kind) for kind in ("LSTM", "GRU")]


def to_float64(model):
    """A copy of the model that computes in float64: weights, constants, casts, inputs and outputs.

    Only float32 is widened. Operators of ONNX are polymorphic over floats, so nothing else changes.
    """
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    _widen_graph(wide.graph)
    (opset,) = [o.version for o in model.opset_import if o.domain == ""]
    for node in wide.graph.node:
        # The evaluator takes the newest default. What is after the axis has no extent in the networks here.
        if node.op_type == "Softmax" and opset < 13 and not node.attribute:
            node.attribute.append(onnx.helper.make_attribute("axis", 1))
    return wide


def _widen_graph(graph):
    for index, tensor in enumerate(graph.initializer):
        graph.initializer[index].CopyFrom(_widen_tensor(tensor))
    for value in [*graph.input, *graph.output, *graph.value_info]:
        tensor_type = value.type.tensor_type
        if tensor_type.elem_type == TensorProto.FLOAT:
            tensor_type.elem_type = TensorProto.DOUBLE
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                attribute.t.CopyFrom(_widen_tensor(attribute.t))
            elif attribute.HasField("g"):
                _widen_graph(attribute.g)
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
            elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
                value = attribute.f if attribute.name == "value_float" else list(attribute.floats)
                attribute.CopyFrom(onnx.helper.make_attribute("value", numpy_helper.from_array(np.float64(value))))


def _widen_tensor(tensor):
    if tensor.data_type != TensorProto.FLOAT:
        return tensor
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)


def reference_outputs(model, feeds):
    """The model's outputs computed in float64 by the `onnx` reference evaluator."""
    wide = {name: value.astype(np.float64) if value.dtype == np.float32 else value for name, value in feeds.items()}
    outputs = ReferenceEvaluator(to_float64(model), new_ops=OWN).run(None, wide)
    for value in outputs:
        assert value.dtype != np.float32, "a part of the model was evaluated in float32"
    return outputs


def relative_error(value, reference):
    """Largest error over the largest element of the reference."""
    value, reference = np.asarray(value, np.float64), np.asarray(reference, np.float64)
    assert value.shape == reference.shape, f"shape {value.shape}, wanted {reference.shape}"
    assert np.isfinite(value).all(), "the output is not finite"
    return np.abs(value - reference).max() / np.abs(reference).max()
