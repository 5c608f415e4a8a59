"""A language model of LSTMs, with its state as inputs and outputs, and a tagger of sequences made of GRUs."""

import numpy as np
from onnx import TensorProto, helper

from tests.models.builder import ModelBuilder


def cell(m, kind, x, operands, outputs, **attributes):
    """A node with several outputs; absent operands are ''."""
    names = [f"{x}_{kind.lower()}_{i}" for i in range(outputs)]
    m.nodes.append(helper.make_node(kind, [x, *operands], names, name=f"{kind}_{x}", **attributes))
    return names


def cell_weights(m, gates, inputs, hidden, directions=1):
    """Input weights, recurrent weights and biases, of a size that keeps the state between -1 and 1 alive."""
    return [
        m.normal((directions, gates * hidden, inputs), np.sqrt(1.0 / inputs)),
        m.normal((directions, gates * hidden, hidden), np.sqrt(0.7 / hidden)),
        m.normal((directions, 2 * gates * hidden), 0.2),
    ]


def lstm_language(batch=1, length=7, seed=9, features=35, hidden=(48, 37), words=61):
    """Inputs: x, token ids [batch, length]; for each layer hidden_N and cell_N [1, batch, hidden]. Outputs: y, logits
    [batch, length, words], and the states behind the last token, from which the next call goes on."""
    m = ModelBuilder("lstm_language", seed)
    embedded = m.node("Gather", m.normal((words, features), 1.0), m.input("x", [batch, length], TensorProto.INT64))
    x, size, states = m.node("Transpose", embedded, perm=[1, 0, 2]), features, []
    for layer, width in enumerate(hidden):
        before = [m.input(f"{kind}_{layer}", [1, batch, width]) for kind in ("hidden", "cell")]
        operands = [*cell_weights(m, 4, size, width), "", *before]
        y, *after = cell(m, "LSTM", x, operands, 3, hidden_size=width)
        states += [(value, f"new_{name}", width) for value, name in zip(after, before)]
        x, size = m.node("Squeeze", y, m.integers(1)), width
    logits = m.linear(m.node("Transpose", x, perm=[1, 0, 2]), size, words, gain=4.0)
    m.output(logits, "y", [batch, length, words])
    for value, name, width in states:
        m.output(value, name, [1, batch, width])
    return m.build()


def gru_tagger(batch="batch", length="length", seed=10, features=23, hidden=31, tags=11):
    """Input x [batch, length, features]; output y, scores [batch, length, tags]. Two layers that read both ways, the
    first as PyTorch has it (linear before the reset), the second as the paper."""
    m = ModelBuilder("gru_tagger", seed)
    x, size = m.node("Transpose", m.input("x", [batch, length, features]), perm=[1, 0, 2]), features
    for form in (1, 0):
        operands = cell_weights(m, 3, size, hidden, directions=2)
        y, _ = cell(m, "GRU", x, operands, 2, hidden_size=hidden, direction="bidirectional", linear_before_reset=form)
        x = m.node("Reshape", m.node("Transpose", y, perm=[0, 2, 1, 3]), m.integers(0, 0, 2 * hidden))
        size = 2 * hidden
    scores = m.linear(m.node("Transpose", x, perm=[1, 0, 2]), size, tags, gain=4.0)
    m.output(m.node("Softmax", scores, axis=-1), "y", [batch, length, tags])
    return m.build()
