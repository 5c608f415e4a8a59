"""What a node computes, in float64, and how far rounding may carry it.

A value is a list of arrays: the truth first, then the same with every result rounded to its dtype (what makes ties of
values that are nearly one), then the same computed by `NOISY` evaluations that disturb what every
rounding operator reads and gives by about one unit of the dtype (stochastic arithmetic, after Parker's Monte Carlo
arithmetic and the CESTAC method). Their spread says which digits of an element are decided: sums that cancel, ties of a
rounding, thresholds between two branches need no allowances of their own.
"""

import ml_dtypes
import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from tests.operators import reference
from tests.operators.sample import DTYPES, FLOATS, Sample
from tests.support.float64 import OWN as BETTER_EVALUATORS

NOISY = 5

# Their outputs are elements of their inputs, or are decided without rounding.
EXACT = reference.EXACT | {
    "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "Not", "Shape", "Size", "IsNaN",
    "IsInf", "ArgMax", "ArgMin", "OneHot", "GatherND", "ReverseSequence", "EyeLike", "Range", "NonZero", "Compress",
    "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift", "CenterCropPad", "Col2Im",
}  # fmt: skip
# Near a zero of the function the error is that of an intermediate value of the order of one. In recurrent cells it is
# the state: what gates that are open keep of it and what they add may cancel, all but a product's last places.
CANCELLING = reference.CANCELLING | {
    "ReduceLogSum", "ReduceLogSumExp", "LogSoftmax", "InstanceNormalization", "Atanh", "LSTM", "GRU",
}  # fmt: skip
# They subtract a mean, whose error is common to all that it is subtracted from.
CENTRING = {"LayerNormalization", "InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization"}
# Their integers come of divisions that are rounded on the way.
ROUNDED_INTEGERS = {"QuantizeLinear", "DynamicQuantizeLinear", "QLinearMatMul", "QLinearConv"}


def one_hot(s, indices, depth, values):
    axis = s.attributes.get("axis", -1)
    places = np.arange(int(depth)).reshape([-1] + [1] * (indices.ndim - axis % (indices.ndim + 1)))
    positions = np.where(indices < 0, indices + int(depth), indices)
    return np.where(np.expand_dims(positions, axis) == places, values[1], values[0])


# operator: (why the evaluator is not the reference, function of the sample and its inputs)
OWN = reference.OWN | {"OneHot": ("takes indices that are out of range modulo the depth", one_hot)}


def epsilon(dtype):
    return float(ml_dtypes.finfo(DTYPES[dtype]).eps)


def is_float(dtype):
    return dtype in FLOATS


def wide(array, dtype):
    return np.asarray(array).astype(np.float64 if is_float(dtype) else DTYPES[dtype])


def single_node(op, opset, attributes, inputs, outputs):
    """A function over float64 arrays that evaluates the node."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    given = [(name, x) for name, x in zip(names, inputs, strict=True) if x is not None]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], **attributes)
    values = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given]
    graph = helper.make_graph([node], "one", values, [onnx.ValueInfoProto(name=f"y{i}") for i in range(outputs)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    evaluator = ReferenceEvaluator(model, new_ops=BETTER_EVALUATORS)
    return lambda arrays: evaluator.run(None, {n: x for n, x in zip(names, arrays, strict=True) if n})


def function_of(op, opset, attributes, arrays, dtypes, outputs):
    if op not in OWN:
        return single_node(op, opset, attributes, arrays, outputs)
    single = {k: float(np.float32(v)) if isinstance(v, float) else v for k, v in attributes.items()}
    sample = Sample(op, opset, arrays, single, outputs=outputs, dtypes=[DTYPES[d] if d else None for d in dtypes])

    def evaluate(given):
        made = OWN[op][1](sample, *given)
        return made if isinstance(made, (list, tuple)) else [made]

    return evaluate


def disturbed(rng, array, unit):
    if array is None or array.dtype != np.float64 or not unit:
        return array
    return array * (1 + unit * rng.uniform(-1, 1, array.shape))


def summed(op, attributes, x, result):
    """How many terms an operator adds up for an element, where they may be many."""
    if op.startswith(("Reduce", "Global")):
        return x.size / max(result.size, 1)
    if op == "LayerNormalization":
        return int(np.prod(x.shape[attributes.get("axis", -1) :]))
    if op == "InstanceNormalization":
        return int(np.prod(x.shape[2:]))
    if op == "GroupNormalization":
        return x.size / max(x.shape[0] * attributes["num_groups"], 1)
    return 1


def evaluate(rng, op, opset, attributes, inputs, dtypes, output_dtypes):
    """Lists of arrays for each output. `inputs`: lists of arrays as this gives them, or None; dtypes: names."""
    outputs = len(output_dtypes)
    first = [None if x is None else x[0] for x in inputs]
    function = function_of(op, opset, attributes, first, dtypes, outputs)
    floats = [epsilon(d) for d in [*dtypes, *output_dtypes] if d and is_float(d)]
    rounds = op not in EXACT and any(is_float(d) for d in output_dtypes) or op in ROUNDED_INTEGERS
    unit = max(floats, default=0.0) if rounds else 0.0
    made = [[] for _ in output_dtypes]
    with np.errstate(all="ignore"):
        for k in range(2 + NOISY):
            given = [None if x is None else x[min(k, len(x) - 1)] for x in inputs]
            if k > 1 and op in CENTRING and given[0].size:
                given[0] = given[0] + unit * np.abs(given[0]).max() * rng.uniform(-1, 1)
            results = function([disturbed(rng, x, unit) for x in given] if k > 1 else given)
            for i, (result, dtype) in enumerate(zip(results, output_dtypes, strict=True)):
                result = np.asarray(result)
                if is_float(dtype):
                    result = result.astype(np.float64)
                    terms = summed(op, attributes, given[0], result)
                    # A sum term by term is off by the root of their number.
                    result = disturbed(rng, result, unit / 2 * max(1, terms**0.5 / 4)) if k > 1 else result
                    if k > 1 and op in CENTRING:
                        # What the deviation is off by scales all that it divides.
                        result = result * (1 + unit * max(1, terms**0.5 / 4) * rng.choice([-1, 1]))
                    if k > 1 and op in CANCELLING:
                        result = result + unit * rng.uniform(-1, 1, result.shape)
                    if k == 1:
                        result = result.astype(DTYPES[dtype]).astype(np.float64)
                    largest = float(ml_dtypes.finfo(DTYPES[dtype]).max)
                    result = np.where(np.abs(result) > largest, np.sign(result) * np.inf, result)
                else:
                    result = result.astype(DTYPES[dtype])
                made[i].append(result)
    return made


def spread_of(value):
    """The largest deviation of each element among the disturbed evaluations."""
    with np.errstate(invalid="ignore"):
        return np.max([np.where(v == value[0], 0, np.abs(v - value[0])) for v in value[1:]], axis=0)


def allowed(value, dtype):
    """How far each element of a float value may be from the truth."""
    spread = spread_of(value)
    finite = spread[np.isfinite(spread)]
    typical = np.quantile(finite, 0.75) if finite.size else 0.0
    smallest = float(ml_dtypes.finfo(DTYPES[dtype]).tiny)
    return 8 * np.maximum(spread, typical) + 4 * epsilon(dtype) * np.abs(value[0]) + smallest


def same(a, b):
    return (a == b) | (np.isnan(a) & np.isnan(b))


def undecided(value):
    """Whether a disturbance makes an element finite that is not, or the other way."""
    return np.any([~same(v, value[0]) & ~(np.isfinite(v) & np.isfinite(value[0])) for v in value[1:]], axis=0)


def difference(got, value, dtype):
    """None, or how an answer differs from the truth."""
    wanted = value[0]
    if got.dtype != DTYPES[dtype]:
        return f"dtype {got.dtype}, wanted {dtype}"
    if got.shape != wanted.shape:
        return f"shape {list(got.shape)}, wanted {list(wanted.shape)}"
    if is_float(dtype):
        with np.errstate(invalid="ignore"):
            near = np.abs(got.astype(np.float64) - wanted) <= allowed(value, dtype)
            bad = np.where(np.isfinite(wanted), ~near, ~same(got, wanted)) & ~undecided(value)
    else:
        bad = (got != wanted) & ~np.any([v != wanted for v in value[1:]], axis=0)
    if not bad.any():
        return None
    index = tuple(int(i[0]) for i in np.nonzero(bad)) if bad.ndim else ()
    return (
        f"{int(bad.sum())} of {bad.size} elements differ, the first at {list(index)}: {got[index]!s}, "
        f"wanted {wanted[index]!s}"
    )
