"""LSTM and GRU of ONNX by PyTorch's modules, whose gates lie in another order, prepared once; a GRU that resets before
the product, which PyTorch has no module for, step by step."""

import torch

# For each gate of PyTorch's weights its place in those of ONNX: i o f c, and z r h.
GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2)}


class Recurrent(torch.nn.Module):
    """Called as ONNX's node without what is constant: x [length, batch, inputs], and the states before, if any."""

    def __init__(self, kind, attributes, dtype, w, r, b=None):
        super().__init__()
        direction, hidden = attributes.get("direction", b"forward"), attributes["hidden_size"]
        assert direction in (b"forward", b"bidirectional") and "activations" not in attributes
        assert not attributes.get("layout", 0) and not attributes.get("input_forget", 0) and "clip" not in attributes
        self.kind, self.ways = kind, w.shape[0]
        make = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU}[kind]
        self.inner = make(w.shape[2], hidden, bias=b is not None, bidirectional=self.ways == 2, dtype=dtype)
        for way, suffix in enumerate(("", "_reverse")[: self.ways]):
            parts = {"weight_ih": w[way], "weight_hh": r[way]}
            if b is not None:
                parts |= {"bias_ih": b[way, : b.shape[1] // 2], "bias_hh": b[way, b.shape[1] // 2 :]}
            for name, value in parts.items():
                gates = value.unflatten(0, (len(GATES[kind]), hidden))[list(GATES[kind])]
                getattr(self.inner, f"{name}_l0{suffix}").data.copy_(gates.flatten(0, 1))

    def forward(self, x, lengths=None, state=None, cell=None):
        assert lengths is None
        if state is not None and self.kind == "LSTM":
            state = (state, torch.zeros_like(state) if cell is None else cell)
        y, after = self.inner(x, state)
        y = y.unflatten(2, (self.ways, -1)).transpose(1, 2)  # [length, ways, batch, hidden]
        return (y, *after) if self.kind == "LSTM" else (y, after)


class ResettingFirst(torch.nn.Module):
    """A GRU whose candidate comes of the state that was reset: tanh(x W + (r * h) R + b), as ONNX has it without
    `linear_before_reset`. Called as Recurrent is."""

    def __init__(self, attributes, w, r, b=None):
        super().__init__()
        assert attributes.get("direction", b"forward") in (b"forward", b"bidirectional")
        assert not attributes.get("layout", 0) and not {"activations", "clip"} & attributes.keys()
        self.hidden = attributes["hidden_size"]
        b = w.new_zeros(w.shape[0], 6 * self.hidden) if b is None else b
        for name, value in (("w", w.transpose(1, 2)), ("r", r.transpose(1, 2)), ("b", b[:, None])):
            self.register_buffer(name, value.contiguous())

    def one_way(self, way, x, h):
        hidden, states = self.hidden, []
        of_inputs, of_states = self.b[way].split(3 * hidden, -1)
        for step in x @ self.w[way] + of_inputs:
            update, reset = (step + h @ self.r[way] + of_states)[:, : 2 * hidden].sigmoid().split(hidden, -1)
            candidate = (reset * h) @ self.r[way][:, 2 * hidden :] + of_states[:, 2 * hidden :]
            h = update * h + (1 - update) * torch.tanh(step[:, 2 * hidden :] + candidate)
            states.append(h)
        return torch.stack(states)

    def forward(self, x, lengths=None, state=None):
        assert lengths is None
        ways = self.w.shape[0]
        state = x.new_zeros(ways, x.shape[1], self.hidden) if state is None else state
        y = [self.one_way(0, x, state[0])]
        if ways == 2:
            y.append(self.one_way(1, x.flip(0), state[1]).flip(0))
        return torch.stack(y, 1), torch.stack([y[0][-1], *(way[0] for way in y[1:])])


def recurrent(kind, attributes, dtype, *weights):
    if kind == "GRU" and not attributes.get("linear_before_reset", 0):
        return ResettingFirst(attributes, *weights)
    return Recurrent(kind, attributes, dtype, *weights)
