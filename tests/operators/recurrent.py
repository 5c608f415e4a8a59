"""Samples of recurrent cells, and what they must answer: the equations of the specification, step by step."""

import numpy as np

# name: (function of x, alpha, beta; which of the two it takes)
ACTIVATIONS = {
    "Relu": (lambda x, a, b: np.maximum(x, 0), ""),
    "Tanh": (lambda x, a, b: np.tanh(x), ""),
    "Sigmoid": (lambda x, a, b: 1 / (1 + np.exp(-x)), ""),
    "Affine": (lambda x, a, b: a * x + b, "ab"),
    "LeakyRelu": (lambda x, a, b: np.where(x < 0, a * x, x), "a"),
    "ThresholdedRelu": (lambda x, a, b: np.where(x >= a, x, 0), "a"),
    "ScaledTanh": (lambda x, a, b: a * np.tanh(b * x), "ab"),
    "HardSigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), "ab"),
    "Elu": (lambda x, a, b: np.where(x < 0, a * np.expm1(x), x), "a"),
    "Softsign": (lambda x, a, b: x / (1 + np.abs(x)), ""),
    "Softplus": (lambda x, a, b: np.logaddexp(x, 0), ""),
}
# ThresholdedRelu jumps: a value at its threshold falls on either side, by rounding.
SMOOTH = sorted(set(ACTIVATIONS) - {"ThresholdedRelu"})
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
USUAL = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def cell(op):
    def generate(d):
        dtype, gates, hidden = d.dtype(), GATES[op], d.choice([1, 2, 3, 5, 8, 16, 19, 32, 64])
        steps, batch, width = d.choice([1, 2, 3, 5, 0]), d.choice([1, 2, 3, 4]), d.choice([1, 2, 3, 7])
        attributes = {"hidden_size": hidden}
        direction = d.choice(["forward", "reverse", "bidirectional"])
        ways = 2 if direction == "bidirectional" else 1
        if ways == 2 or d.chance(0.7):
            attributes["direction"] = direction
        if "direction" not in attributes:
            direction = "forward"
        layout = d.opset >= 14 and d.chance(0.3)
        if layout:
            attributes["layout"] = 1
        if d.chance(0.5):
            names = [d.choice(SMOOTH) for _ in USUAL[op] * ways]
            attributes["activations"] = names
            takes = "".join(ACTIVATIONS[name][1] for name in names)
            for letter, key in (("a", "activation_alpha"), ("b", "activation_beta")):
                if takes.count(letter):
                    attributes[key] = [d.choice([0.25, 0.5, 0.75]) for _ in range(takes.count(letter))]
        if d.chance(0.25):
            attributes["clip"] = 0.5
        if op == "GRU" and d.chance(0.5):
            attributes["linear_before_reset"] = 1
        if op == "LSTM" and d.chance(0.25):
            attributes["input_forget"] = 1

        def weight(*shape):
            return d.array(shape, dtype, -0.5, 0.5)

        def state():
            return weight(batch, ways, hidden) if layout else weight(ways, batch, hidden)

        x = weight(batch, steps, width) if layout else weight(steps, batch, width)
        inputs = [x, weight(ways, gates * hidden, width), weight(ways, gates * hidden, hidden)]
        inputs.append(weight(ways, 2 * gates * hidden) if d.chance(0.7) else None)
        with_lengths = steps > 0 and d.chance(0.4)
        inputs.append(d.rng.integers(1, steps + 1, batch).astype(np.int32) if with_lengths else None)
        inputs.append(state() if d.chance(0.5) else None)
        if op == "LSTM":
            inputs.append(state() if d.chance(0.5) else None)
            inputs.append(weight(ways, 3 * hidden) if d.chance(0.4) else None)
        constants = {i for i in (1, 2, 3, 7) if i < len(inputs) and inputs[i] is not None} if d.chance(0.6) else set()
        terms = (width + hidden) * max(steps, 1)
        s = d.sample(
            inputs, attributes=attributes, constants=constants, terms=terms, outputs=3 if op == "LSTM" else 2
        )
        batch_axis = 0 if layout else 1
        s.symbolic = {(0, a): "batch" if a == batch_axis else "steps" for (i, a) in s.symbolic if i == 0 and a != 2}
        return s

    return generate


def functions(s, op, way):
    """f, g, h of one direction."""
    usual = USUAL[op]
    names = s.attributes.get("activations", usual * 2)
    alphas, betas = iter(s.attributes.get("activation_alpha", [])), iter(s.attributes.get("activation_beta", []))
    clip = s.attributes.get("clip")
    made = []
    for name in names:
        function, takes = ACTIVATIONS[name]
        a = next(alphas) if "a" in takes else None
        b = next(betas) if "b" in takes else None
        made.append(
            lambda x, function=function, a=a, b=b: function(x if clip is None else np.clip(x, -clip, clip), a, b)
        )
    return made[way * len(usual) : (way + 1) * len(usual)]


def one_step(op, s, f, x, h, c, r, bias, p):
    """The next states from the input's product [gates, hidden] and the states before."""
    size = len(h)
    rows = r.reshape(GATES[op], size, size)
    if op == "RNN":
        return f[0](x[0] + rows[0] @ h + bias[0]), c
    if op == "GRU":
        z, reset = (f[0](x[g] + rows[g] @ h + bias[g]) for g in (0, 1))
        if s.attributes.get("linear_before_reset"):
            n = f[1](x[2] + reset * (rows[2] @ h + bias[2]))
        else:
            n = f[1](x[2] + rows[2] @ (reset * h) + bias[2])
        return (1 - z) * n + z * h, c
    total = [x[g] + rows[g] @ h + bias[g] for g in range(4)]
    i = f[0](total[0] + p[0] * c)
    forget = 1 - i if s.attributes.get("input_forget") else f[0](total[2] + p[2] * c)
    c = forget * c + i * f[1](total[3])
    o = f[0](total[1] + p[1] * c)
    return o * f[2](c), c


def recurrent(op):
    def evaluate(s, x, w, r, b=None, lengths=None, h0=None, c0=None, p=None):
        layout = s.attributes.get("layout", 0)
        if layout:
            x = x.swapaxes(0, 1)
            h0, c0 = (None if a is None else a.swapaxes(0, 1) for a in (h0, c0))
        (steps, batch, _), (ways, _, size) = x.shape, r.shape
        gates = GATES[op]
        y = np.zeros((steps, ways, batch, size))
        h = np.zeros((ways, batch, size)) if h0 is None else h0.copy()
        c = np.zeros((ways, batch, size)) if c0 is None else c0.copy()
        for way, n in np.ndindex(ways, batch):
            outer, inner = np.zeros((2, gates, size)) if b is None else b[way].reshape(2, gates, size)
            peepholes = np.zeros((3, size)) if p is None else p[way].reshape(3, size)
            length = steps if lengths is None else int(lengths[n])
            backward = way == 1 or s.attributes.get("direction") == "reverse"
            f = functions(s, op, way)
            for t in reversed(range(length)) if backward else range(length):
                given = (w[way] @ x[t, n]).reshape(gates, size) + outer
                h[way, n], c[way, n] = one_step(op, s, f, given, h[way, n], c[way, n], r[way], inner, peepholes)
                y[t, way, n] = h[way, n]
        if layout:
            y, h, c = y.transpose(2, 0, 1, 3), h.swapaxes(0, 1), c.swapaxes(0, 1)
        return [y, h, c][: s.outputs]

    return evaluate


GENERATORS = {op: cell(op) for op in GATES}
OWN = {op: ("knows one direction, few activations and no lengths", recurrent(op)) for op in GATES}
