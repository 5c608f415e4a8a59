"""What an operator must answer: the `onnx` reference evaluator in float64, NumPy where the evaluator is no reference.

Each row of OWN says why the evaluator is not used.
"""

import math

import ml_dtypes  # noqa: F401 (registers bfloat16 with NumPy)
import numpy as np
import onnx
from scipy import special

from tests.operators import (
    attention, by_data, classical, control, creating, images, indexing, normalizing, quantized, recurrent, resizing,
    sampling, sequences, shaping, strings, windows,
)  # fmt: skip
from tests.operators.sample import DTYPES, NARROW_FLOATS, PLAIN, TEXT, Parts
from tests.support.float64 import Erf, Gelu


def divide(s, a, b):
    if a.dtype.kind == "f":
        return a / b
    quotient = (
        np.abs(a.astype(object)) // np.abs(b.astype(object)) * np.sign(a.astype(object)) * np.sign(b.astype(object))
    )
    return np.asarray(quotient).astype(a.dtype)


def modulo(s, a, b):
    return np.fmod(a, b) if s.attributes.get("fmod") else np.mod(a, b)


def power(s, a, b):
    if a.dtype.kind == "f":
        return np.power(a, b.astype(np.float64))
    return np.power(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)


def softmax(log):
    def evaluate(s, x):
        axis = s.attributes.get("axis", -1 if s.opset >= 13 else 1)
        if x.size == 0:
            return x
        function = special.log_softmax if log else special.softmax
        if s.opset >= 13:
            return function(x, axis)
        axis %= max(x.ndim, 1) if axis < 0 else max(x.ndim + 1, 1)
        rows = math.prod(x.shape[:axis])
        return function(x.reshape(rows, -1), 1).reshape(x.shape)

    return evaluate


def dropout(s, x, ratio=None, training=None):
    """Inference: the input, and a mask of ones."""
    return [x, np.ones(x.shape, np.bool_)][: s.outputs]


def gemm_addends(s, a, b, c=None):
    """alpha * A' * B' and beta * C"""
    a, b = (a.T if s.attributes["transA"] else a), (b.T if s.attributes["transB"] else b)
    alpha, beta = s.attributes.get("alpha", 1), s.attributes.get("beta", 1)
    return alpha * (a @ b), np.zeros((), a.dtype) if c is None else beta * c


def gemm(s, *inputs):
    product, addend = gemm_addends(s, *inputs)
    return product + addend


def extremum(function):
    def evaluate(s, *xs):
        y = xs[0]
        for x in xs[1:]:
            y = function(y, x)
        return y

    return evaluate


def mean(s, *xs):
    return sum(xs[1:], xs[0]) / len(xs)


def prelu(s, x, slope):
    return np.where(x < 0, x * slope, x)


def split(s, x, sizes=None):
    axis = s.attributes["axis"]
    if sizes is None:
        sizes = s.attributes.get("split", [x.shape[axis] // s.outputs] * s.outputs)
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def reduce(function, keep_empty=False):
    def evaluate(s, x, axes=None):
        axes = s.attributes.get("axes", axes)
        axes = None if axes is None or len(axes) == 0 else tuple(int(a) for a in axes)
        if axes is None and s.attributes.get("noop_with_empty_axes"):
            axes = ()  # every element is a range of its own; see the opset 18 text for the element function
        return function(x, axis=axes, keepdims=bool(s.attributes.get("keepdims", 1)))

    return evaluate


def batch_norm(s, x, scale, bias, mean, variance):
    column = (slice(None), *[None] * (x.ndim - 2))
    deviation = np.sqrt(variance + s.attributes.get("epsilon", float(np.float32(1e-5))))
    return (x - mean[column]) / deviation[column] * scale[column] + bias[column]


def global_pool(function):
    return lambda s, x: function(x, axis=tuple(range(2, x.ndim)), keepdims=True)


def flatten(s, x):
    axis = s.attributes["axis"]
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


def gather(s, x, indices):
    return np.take(x, indices, axis=s.attributes["axis"])


def pad(s, x, pads=None, value=None, axes=None):
    pads = [int(p) for p in s.attributes.get("pads", pads)]
    axes = range(x.ndim) if axes is None else [int(a) % x.ndim for a in axes]
    value = s.attributes.get("value", 0) if value is None else value
    before, after = [0] * x.ndim, [0] * x.ndim
    for i, axis in enumerate(axes):
        before[axis], after[axis] = pads[i], pads[i + len(pads) // 2]
    x = x[tuple(slice(max(-b, 0), n - max(-a, 0)) for b, a, n in zip(before, after, x.shape, strict=True))]
    widths = [(max(b, 0), max(a, 0)) for b, a in zip(before, after, strict=True)]
    mode = s.attributes.get("mode", "constant")
    return np.pad(x, widths, mode, **({"constant_values": value} if mode == "constant" else {}))


def squeeze(s, x, axes=None):
    axes = s.attributes.get("axes", axes)
    ones = {i for i, size in enumerate(x.shape) if size == 1} if axes is None else {int(a) % x.ndim for a in axes}
    assert all(x.shape[i] == 1 for i in ones), f"{sorted(ones)} of {x.shape}"
    return x.reshape([size for i, size in enumerate(x.shape) if i not in ones])


def unsqueeze(s, x, axes=None):
    axes = s.attributes.get("axes", axes)
    rank = x.ndim + len(axes)
    inserted, sizes = {int(a) % rank for a in axes}, iter(x.shape)
    return x.reshape([1 if i in inserted else next(sizes) for i in range(rank)])


def log_sum_exp(x, axis, keepdims):
    return special.logsumexp(x, axis=axis, keepdims=keepdims) if axis != () else x


def celu(s, x):
    alpha = s.attributes.get("alpha", 1.0)
    return np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha))


def thresholded_relu(s, x):
    """The specification's function body casts alpha to the type of x before it compares, so it is rounded to it."""
    alpha = np.float64(np.asarray(s.attributes.get("alpha", 1.0)).astype(s.dtype))
    return np.where(x > alpha, x, 0)


def hardmax(s, x):
    axis = s.attributes["axis"]
    rows = x if s.opset >= 13 else x.reshape(math.prod(x.shape[: axis % x.ndim]), -1)
    axis = axis if s.opset >= 13 else 1
    chosen = np.expand_dims(rows.argmax(axis), axis)
    y = np.zeros_like(rows)
    np.put_along_axis(y, chosen, 1, axis)
    return y.reshape(x.shape)


REDUCTIONS = {
    "ReduceSum": np.sum,
    "ReduceMean": lambda x, **k: reduce_mean(x, **k),
    "ReduceProd": np.prod, "ReduceMax": np.max, "ReduceMin": np.min,
    "ReduceL1": lambda x, **k: np.sum(np.abs(x), **k),
    "ReduceL2": lambda x, **k: np.sqrt(np.sum(np.square(x.astype(np.float64)), **k)),
    "ReduceSumSquare": lambda x, **k: np.sum(np.square(x), **k),
    "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
    "ReduceLogSumExp": log_sum_exp,
}  # fmt: skip


def reduce_mean(x, **options):
    return np.mean(x, **options) if x.dtype.kind == "f" else np.trunc(np.mean(x, dtype=np.float64, **options))


def max_pool(s, x):
    return [*windows.max_pool(s.attributes, x)][: s.outputs]


def lp_pool(s, x):
    p = s.attributes.get("p", 2)
    kernel = s.attributes["kernel_shape"]
    tiles = windows.windows(np.abs(x) ** p, s.attributes, kernel, 0.0)
    return tiles.sum(tuple(range(2 + len(kernel), tiles.ndim))) ** (1 / p)


def global_lp_pool(s, x):
    p = s.attributes.get("p", 2)
    return np.sum(np.abs(x) ** p, axis=tuple(range(2, x.ndim)), keepdims=True) ** (1 / p)


def shrunk(s, x):
    threshold, bias = s.attributes.get("lambd", 0.5), s.attributes.get("bias", 0.0)
    wide = x.astype(np.float64)
    return np.where(wide < -threshold, wide + bias, np.where(wide > threshold, wide - bias, 0))


RELEASES = "axes as attributes and empty axes differ by release"

# operator: (why the evaluator is not the reference, function of the sample and its inputs)
OWN = {
    "Div": ("integer division rounds towards minus infinity there, towards zero in the specification", divide),
    "Mod": ("takes the sign of NumPy's mod for one form only", modulo),
    "Pow": ("rounds mixed dtypes in the narrower one", power),
    "Softmax": ("opsets before 13 flatten to two dimensions, there they do not", softmax(False)),
    "LogSoftmax": ("opsets before 13 flatten to two dimensions, there they do not", softmax(True)),
    "Dropout": ("older opsets draw random numbers there", dropout),
    "HardSwish": ("rounds 1/6 to float32", lambda s, x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "Gemm": ("refuses integers with alpha and beta", gemm),
    "Min": ("refuses a single operand", extremum(np.minimum)),
    "Max": ("refuses a single operand", extremum(np.maximum)),
    "Mean": ("divides in the input's dtype", mean),
    "PRelu": ("reshapes a slope of one axis to channels, which is not the specification's broadcast", prelu),
    "Split": ("old opsets without sizes are refused", split),
    "BatchNormalization": ("old opsets raise, and epsilon is not the default's", batch_norm),
    "GlobalMaxPool": ("knows rank four alone", global_pool(np.max)),
    "GlobalAveragePool": ("written beside GlobalMaxPool", global_pool(np.mean)),
    "Flatten": ("raises on zero sizes", flatten),
    "Gather": ("loses the shape of empty indices", gather),
    "Pad": ("refuses negative pads", pad),
    "Squeeze": ("old opsets remove one axis after another, each counted in what the last one left", squeeze),
    "Unsqueeze": ("old opsets want the axes sorted", unsqueeze),
    "Conv": ("lacks ranks and some pads", lambda s, x, w, b=None: windows.conv(s.attributes, x, w, b)),
    "MaxPool": ("ceil_mode and dilations differ by release", max_pool),
    "AveragePool": ("ceil_mode and dilations differ by release", lambda s, x: windows.average_pool(s.attributes, x)),
    **{op: (RELEASES, reduce(function)) for op, function in REDUCTIONS.items()},
    "Mish": ("has its own rounding", lambda s, x: x * np.tanh(np.log1p(np.exp(x)))),
    "Celu": ("computes in float32", celu),
    "Softsign": ("returns a number for a scalar, and then refuses it", lambda s, x: x / (1 + np.abs(x))),
    "ThresholdedRelu": ("compares with alpha in the dtype of its input, here the widened one", thresholded_relu),
    "Hardmax": ("opsets before 13 flatten to two dimensions, there they do not", hardmax),
    "Shrink": (PLAIN, shrunk),
    "Swish": (PLAIN, lambda s, x: x / (1 + np.exp(-s.attributes.get("alpha", 1.0) * x))),
    "LpPool": (PLAIN, lp_pool),
    "GlobalLpPool": ("it has none", global_lp_pool),
    "ConvTranspose": ("gives every group the bias of the first one's channels",
                      lambda s, x, w, b=None: windows.conv_transpose(s.attributes, x, w, b)),
    "Einsum": (PLAIN, lambda s, *xs: np.einsum(s.attributes["equation"], *xs)),
    **indexing.OWN,
    **creating.OWN,
    **control.OWN,
    **sequences.OWN,
    **images.OWN,
    **strings.OWN,
    **classical.OWN,
    **attention.OWN,
    **resizing.OWN,
    **normalizing.OWN,
    **shaping.OWN,
    **quantized.OWN,
    **recurrent.OWN,
    **by_data.OWN,
    **sampling.OWN,
}  # fmt: skip


def expected(sample, output_dtypes):
    """The outputs in the model's own dtypes."""
    wide = sample.widened()
    with np.errstate(all="ignore"):
        if sample.op in OWN:
            outputs = OWN[sample.op][1](wide, *wide.inputs)
            outputs = outputs if type(outputs) is list else [outputs]
        else:
            evaluator = onnx.reference.ReferenceEvaluator(wide.model(), new_ops=[Erf, Gelu])
            outputs = evaluator.run(None, wide.feeds())
        return [rounded(y, dtype) for y, dtype in zip(outputs, output_dtypes, strict=True)]


def rounded(y, dtype):
    if isinstance(y, Parts):
        return Parts([rounded(part, dtype) for part in y], dtype, y.rank)
    return None if y is None else np.asarray(y).astype(dtype)


# Units in the last place allowed, by the cost of computing one element in the dtype itself.
ULPS = {"Exp": 4, "Log": 4, "Pow": 16, "Gelu": 16, "Softmax": 8, "LogSoftmax": 16, "LayerNormalization": 32, "Tanh": 8,
        "Mod": 64, "ReduceLogSumExp": 16, "BatchNormalization": 16, "Softplus": 8, "Selu": 8, "Elu": 8,
        "Sigmoid": 16, "Swish": 8, "Celu": 16, "Mish": 16, "Tan": 8,
        "Sinh": 8, "Cosh": 8, "Acosh": 8, "Atanh": 8, "Asinh": 8, "Acos": 8, "Asin": 8}  # fmt: skip


def rounded_on_the_way(sample):
    """What rounding intermediate values costs where they are larger than the output, in epsilons of the dtype.

    Gemm adds alpha * S and beta * C, which may cancel. Each rounding is off by half an epsilon of its value: alpha, S
    and alpha * S are rounded, so are beta and beta * C. (The sum of both is counted in units of the output.)
    """
    if sample.op != "Gemm":
        return 0
    wide = sample.widened()
    product, addend = gemm_addends(wide, *wide.inputs)
    return 1.5 * np.abs(product) + np.abs(addend)


def difference(sample, value, wanted):
    """None when `value` is within tolerance of `wanted`, else what differs."""
    if wanted is None or isinstance(wanted, list):
        if wanted is None or not isinstance(value, list) or len(value) != len(wanted):
            return None if value is None and wanted is None else f"{value}, wanted {wanted}"
        said = [difference(sample, a, b) for a, b in zip(value, wanted, strict=True)]
        return next((f"part {i}: {text}" for i, text in enumerate(said) if text), None)
    if wanted.dtype == TEXT and value.dtype.kind == "U":
        value = value.astype(TEXT)
    if value.dtype != wanted.dtype:
        return f"dtype {value.dtype}, wanted {wanted.dtype}"
    if value.shape != wanted.shape:
        return f"shape {list(value.shape)}, wanted {list(wanted.shape)}"
    if wanted.dtype in [DTYPES[name] for name in NARROW_FLOATS]:
        a, b = value.astype(np.float64), wanted.astype(np.float64)
        bad = ~((a == b) | (np.isnan(a) & np.isnan(b)))
    elif wanted.dtype not in (DTYPES["float16"], DTYPES["bfloat16"], DTYPES["float"], DTYPES["double"]):
        bad = value != wanted
    else:
        epsilon = max(float(ml_dtypes.finfo(t).eps) for t in (wanted.dtype, sample.coarsest or wanted.dtype))
        a, b = value.astype(np.float64), wanted.astype(np.float64)
        finite = np.isfinite(b)
        largest = np.abs(b[finite]).max(initial=0.0)
        # Addends of the order of one: rounding errors of a sum grow as the root of their number.
        bound = epsilon * (
            ULPS.get(sample.op, 4) * np.abs(b) + (sample.terms > 1) * 4 * math.sqrt(sample.terms) * max(largest, 1)
        )
        bound = bound + epsilon * rounded_on_the_way(sample)
        # Near a zero of the function the error is that of an intermediate value of the order of one.
        bound = bound + epsilon * (0 if sample.op in EXACT else 4 if sample.op in CANCELLING else 0.5)
        with np.errstate(invalid="ignore"):
            bad = np.where(finite, ~(np.abs(a - b) <= bound), ~((a == b) | (np.isnan(a) & np.isnan(b))))
    if not bad.any():
        return None
    index = tuple(int(i[0]) for i in np.nonzero(bad)) if bad.ndim else ()
    pair = f"{value[index]!r}, wanted {wanted[index]!r}"
    return f"{int(bad.sum())} of {bad.size} elements differ, the first at {list(index)}: {pair}"


CANCELLING = {
    "Celu", "Mish", "Acos", "Acosh", "Sinh", "Asinh", "Elu", "Selu", "Softplus", "Gelu", "BatchNormalization",
    "LayerNormalization", "HardSigmoid", "HardSwish",
}  # fmt: skip

# Operators whose outputs are elements of their inputs: no rounding of their own.
EXACT = {
    "Identity", "Dropout", "Reshape", "Flatten", "Transpose", "Concat", "Split", "Slice", "Gather", "Pad", "Expand",
    "Tile", "Squeeze", "Unsqueeze", "Constant", "ConstantOfShape", "Where", "Min", "Max", "MaxPool", "GlobalMaxPool",
    "BitwiseNot", "Hardmax", "GatherElements", "Trilu", "TopK", "DepthToSpace", "SpaceToDepth", "ThresholdedRelu",
    "TensorScatter", "ReduceMax", "ReduceMin", "Clip", "Relu", "Abs", "Neg", "Sign", "Floor", "Ceil", "Round",
    "BitShift", "GatherND", "ReverseSequence", *by_data.EXACT,
    *creating.EXACT, *shaping.EXACT, *classical.EXACT, *sequences.EXACT, *control.EXACT,
}  # fmt: skip
