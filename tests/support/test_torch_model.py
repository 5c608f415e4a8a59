"""Operators of which PyTorch's form differs from that of ONNX, against ONNX Runtime."""

import numpy as np
import pytest

from tests.models.builder import ModelBuilder
from tests.models.recurrent import cell, cell_weights
from tests.support.backends import run_model
from tests.support.float64 import relative_error

torch_model = pytest.importorskip("tests.support.torch_model", reason="PyTorch is not installed")


def agrees(model, feeds):
    (wanted,) = torch_model.evaluate(model, [feeds])
    got = run_model("onnxruntime", model, feeds)
    assert all(relative_error(g, w) < 2e-6 for g, w in zip(got, wanted, strict=True))


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("kind, states, resets_last", [("LSTM", 2, 0), ("GRU", 1, 1), ("GRU", 1, 0)])
@pytest.mark.parametrize("batch", [1, 3])
def test_recurrent_cells(kind, states, resets_last, direction, batch):
    builder, ways, hidden, length = ModelBuilder("cell", seed=4), 1 + (direction == "bidirectional"), 5, 6
    x = builder.input("x", [length, batch, 7])
    before = [builder.input(f"state_{n}", [ways, batch, hidden]) for n in range(states)]
    gates, form = (4, {}) if kind == "LSTM" else (3, {"linear_before_reset": resets_last})
    operands = [*cell_weights(builder, gates, 7, hidden, ways), "", *before]
    y, *after = cell(builder, kind, x, operands, 1 + states, hidden_size=hidden, direction=direction, **form)
    builder.output(y, "y", [length, ways, batch, hidden])
    for number, value in enumerate(after):
        builder.output(value, f"after_{number}", [ways, batch, hidden])
    rng = np.random.default_rng(0)
    shapes = {"x": (length, batch, 7)} | {name: (ways, batch, hidden) for name in before}
    agrees(builder.build(), {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()})


@pytest.mark.parametrize("group, pads, more", [(1, [1, 0, 2, 1], [0, 1]), (2, [0, 0, 0, 0], [1, 0])])
def test_transposed_convolution_with_uneven_pads(group, pads, more):
    builder = ModelBuilder("transposed", seed=group)
    weight = builder.normal((4, 3, 4, 3), 0.3)
    y = builder.node("ConvTranspose", builder.input("x", [2, 4, 5, 6]), weight, kernel_shape=[4, 3], strides=[2, 3],
                     pads=pads, output_padding=more, group=group)  # fmt: skip
    sizes = [(n - 1) * s + k - begin - end + m
             for n, s, k, begin, end, m in zip((5, 6), (2, 3), (4, 3), pads[:2], pads[2:], more)]  # fmt: skip
    builder.output(y, "y", [2, 3 * group, *sizes])
    agrees(builder.build(), {"x": np.random.default_rng(1).standard_normal((2, 4, 5, 6)).astype(np.float32)})


@pytest.mark.parametrize("named", [True, False])
def test_reductions_over_named_and_over_all_axes(named):
    builder = ModelBuilder("mean", seed=1)
    x = builder.input("x", [3, 4, 5])
    builder.output(builder.node("ReduceMean", x, keepdims=1, **({"axes": [1]} if named else {})), "y",
                   [3, 1, 5] if named else [1, 1, 1])  # fmt: skip
    agrees(builder.build(), {"x": np.random.default_rng(1).standard_normal((3, 4, 5)).astype(np.float32)})
