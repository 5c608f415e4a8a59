"""Differences that are not Lathe's: each row says of a party that is no part of Lathe, and a node, why its answer is
none to go by. A difference under no row fails the run, and so does one of Lathe's own."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.operators import reference


@dataclass
class Explanation:
    party: str
    ops: tuple
    holds: Callable  # of the node and the dtypes and shapes it reads: whether the row is about it
    reason: str
    section: str  # of the specification
    test: str  # that holds Lathe to what is right


def always(attributes, arrays):
    return True


def empty(attributes, arrays):
    return any(a is not None and a.size == 0 for a in arrays)


def scalar(attributes, arrays):
    return arrays[0].ndim == 0


def integer(attributes, arrays):
    return arrays[0].dtype.kind in "iu"


def double(attributes, arrays):
    return arrays[0].dtype == np.float64


def clipped(attributes, arrays):
    return "clip" in attributes


def backwards(attributes, arrays):
    return len(arrays) > 4 and arrays[4] is not None and (arrays[4] < 0).any()


def zero(attributes, arrays):
    return not arrays[0].any()


def outside(attributes, arrays):
    depth = int(arrays[1])
    return bool(((arrays[0] < -depth) | (arrays[0] >= depth)).any())


def far_below(attributes, arrays):
    return bool((arrays[0] < -10).any())


def saturated(attributes, arrays):
    """Bytes of either sign, on a processor that multiplies and adds them in pairs of 16 bits."""
    kinds = {array.dtype.name for array in arrays[:4] if array is not None}
    return {"uint8", "int8"} <= kinds and not _has_vnni()


@functools.cache
def _has_vnni():
    listing = Path("/proc/cpuinfo")
    words = set(listing.read_text().split()) if listing.exists() else set()
    return bool({"avx512_vnni", "avx_vnni"} & words)


RECURRENT = ("RNN", "GRU", "LSTM")
SUITE = "tests/operators/test_operators.py"
ROWS = [
    Explanation(
        "evaluator", tuple(reference.OWN), always, "is no reference for the operator: tests/operators/reference.py "
        "says why in the operator's row", "the operator's own", SUITE,
    ),
    Explanation(
        "evaluator", ("OneHot",), outside, "takes indices that are out of range modulo the depth",
        "OneHot, inputs: indices", "tests/random_graphs/test_random_graphs.py",
    ),
    Explanation(
        "evaluator", ("HardSwish", "Gelu", "Erf", "LRN", "BatchNormalization", "Conv", "ConvTranspose", "AveragePool",
         "MaxPool"),
        always,
        "has mistakes or rounds to float32: tests/support/float64.py says which", "the operator's own", SUITE,
    ),
    Explanation(
        "onnxruntime", RECURRENT, empty, "gives zeros for the last state of no steps, or dies", "LSTM, outputs: Y_h",
        SUITE,
    ),
    Explanation(
        "onnxruntime", RECURRENT, always, "takes sigmoid and tanh from rational functions", "LSTM, attributes: "
        "activations", SUITE,
    ),
    Explanation(
        "onnxruntime", ("Sigmoid",), far_below, "takes it from a rational function, which is zero from -18 on",
        "Sigmoid, summary: y = 1 / (1 + exp(-x))", SUITE,
    ),
    Explanation(
        "onnxruntime", ("HardSwish",), double, "has a sixth in float32", "HardSwish, summary", SUITE,
    ),
    Explanation(
        "onnxruntime", ("LSTM",), clipped, "does not clip what the activation h reads", "LSTM, attributes: clip", SUITE,
    ),
    Explanation(
        "onnxruntime", ("NonZero",), scalar, "gives a scalar one row of indices, and not none", "NonZero, summary",
        SUITE,
    ),
    Explanation(
        "onnxruntime", ("ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceSum", "ReduceProd", "ReduceLogSumExp"), empty,
        "loses axes of a reduction of nothing", "ReduceSumSquare, attributes: keepdims", SUITE,
    ),
    Explanation(
        "onnxruntime", ("MatMul", "Gemm", "QLinearMatMul", "MatMulInteger", "ConvInteger"), empty,
        "leaves products of nothing unwritten, or without beta",
        "QLinearMatMul, summary: as numpy.matmul", SUITE,
    ),
    Explanation(
        "onnxruntime", ("MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv"), saturated,
        "adds products of bytes up in 16 bits, and cuts the sum off, on processors without VNNI",
        "MatMulInteger, summary: the production must never overflow", SUITE,
    ),
    Explanation(
        "onnxruntime", ("Slice",), backwards, "keeps an element where a step backwards starts before the first",
        "Slice, summary: clamping", SUITE,
    ),
    Explanation(
        "onnxruntime", ("DynamicQuantizeLinear",), zero, "gives zeros the scale 1", "DynamicQuantizeLinear, summary: "
        "y_scale", SUITE,
    ),
]  # fmt: skip
# Not asked at all, because the process dies of it.
DEADLY = {("onnxruntime", op): empty for op in (*RECURRENT, "QLinearMatMul", "QLinearConv")}


def is_deadly(party, op, arrays):
    return (party, op) in DEADLY and DEADLY[party, op]({}, arrays)


def explanation(party, node, arrays):
    """The row that explains why `party` differs at this node, or None. `arrays`: what the node reads, or None."""
    attributes = {a.name: a for a in node.attribute}
    for row in ROWS:
        if party == row.party and node.op_type in row.ops and row.holds(attributes, arrays):
            return row
    return None
