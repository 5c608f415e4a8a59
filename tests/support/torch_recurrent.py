"""LSTM and GRU of ONNX by PyTorch's modules, whose gates lie in another order, prepared once."""

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
        assert kind == "LSTM" or attributes.get("linear_before_reset", 0), "PyTorch's GRU resets behind the product"
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
