"""Nodes of operators that have random samples of their own (tests/operators): a sample's node joins the graph.

Its first input becomes a value of the graph where one has its dtype and shape, or can be cut and reshaped to it.
"""

import numpy as np
import onnx
from onnx import helper

from tests.operators.sample import DTYPES, Draw, allowed_dtypes
from tests.operators.table import GENERATORS
from tests.random_graphs.graph import Rejected

OPERATORS = [
    "Tan", "Asin", "Acos", "Cosh", "Acosh", "Atanh", "Celu", "GatherElements", "ScatterElements", "TensorScatter",
    "Expand", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger",
    "QLinearMatMul", "RNN", "GRU", "LSTM", "Compress", "NonZero", "CastLike", "Dropout", "MaxPool", "AveragePool",
    "Conv", "MatMul", "Slice", "Pad", "Softmax", "CumSum", "Mod", "Pow", "Reshape", "Where",
]  # fmt: skip
KNOWN = ("bool", "int8", "int32", "int64", "uint8", "float16", "bfloat16", "float", "double")
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


class OneDraw(Draw):
    """Draws at the graph's opset and, of dtypes, those that graphs are made of."""

    def __init__(self, g, op):
        self.op, self.rng, self.opset, self.float = op, g.rng, g.opset, g.float

    def dtype(self, parameter="T", only=None):
        names = [n for n in allowed_dtypes(self.op, self.opset, parameter) if n in KNOWN]
        names = [n for n in names if only is None or n in only]
        if not names:
            raise Rejected
        return DTYPES[self.float if self.float in names and self.chance(0.7) else self.choice(names)]


def output_dtypes(sample):
    model = sample.model()
    return [NAMES[helper.tensor_dtype_to_np_dtype(y.type.tensor_type.elem_type)] for y in model.graph.output]


def adapted(g, array, name):
    """A value of the graph made to have the shape of `array`, or None."""
    size = array.size
    fits = [v for v in g.pool if v.dtype == name and v.size >= size > 0]
    if not fits or name not in (g.float, "int64", "int32"):
        return None
    value = g.choice(fits[-6:])
    if value.shape == array.shape:
        return value
    (flat,) = g.node("Reshape", [value, g.integers([-1])])
    if value.size > size:
        (flat,) = g.node("Slice", [flat, g.integers([0]), g.integers([size]), g.integers([0])])
    return g.node("Reshape", [flat, g.integers(array.shape)])[0]


def sampled(op):
    def grow(g):
        try:
            sample = GENERATORS[op](OneDraw(g, op))
            dtypes = output_dtypes(sample)
        except (KeyError, onnx.defs.SchemaError):  # no such operator or type at this opset
            raise Rejected from None
        if any(x is not None and x.dtype not in NAMES for x in sample.inputs) or any(d not in KNOWN for d in dtypes):
            raise Rejected
        inputs = []
        for i, x in enumerate(sample.inputs):
            if x is None:
                inputs.append(None)
                continue
            name = NAMES[x.dtype]
            if name not in KNOWN:
                raise Rejected
            value = adapted(g, x, name) if i == 0 and g.chance(0.7) and "QL" not in op else None
            if value is None:
                value = g.constant(x, name) if i in sample.constants or g.chance(0.4) else g.given(x, name)
                if not value.constant:
                    # Dimensions that must be known are those that the sample has none of its own symbols for.
                    drawn = g.axes_of[value.name]
                    g.axes_of[value.name] = [
                        s if (i, a) in sample.symbolic else n
                        for a, (s, n) in enumerate(zip(drawn, x.shape, strict=True))
                    ]
            inputs.append(value)
        return g.node(op, inputs, sample.attributes, dtypes, len(dtypes))

    return grow


ROWS = {f"sampled {op}": sampled(op) for op in OPERATORS if op in GENERATORS}
WEIGHTS = {name: 0.6 for name in ROWS}
