"""Samples of the elementwise operators."""

import numpy as np

from tests.operators.sample import DTYPES, is_float


def unary(low=-3.0, high=3.0, attributes=None, **by_dtype):
    def generate(d):
        x = d.array(d.shape(), d.dtype(), low, high)
        return d.sample([x], attributes=attributes(d) if attributes else {})

    return generate


def optional_floats(**ranges):
    def attributes(d):
        return {name: float(np.float32(d.rng.uniform(*limits))) for name, limits in ranges.items() if d.chance(0.6)}

    return attributes


def binary(positive_second=False, parameter="T"):
    def generate(d):
        shape, dtype = d.shape(), d.dtype(parameter)
        a, b = d.array(d.broadcast(shape), dtype), d.array(shape, dtype)
        if positive_second:  # divisors: away from zero
            b = np.where(np.abs(b) < 1, np.array(1, dtype), b).astype(dtype)
        if not positive_second and d.chance(0.5):
            a, b = b, a
        return d.sample([a, b])

    return generate


def power(d):
    shape, dtype = d.shape(), d.dtype()
    exponent = d.dtype("T1") if d.opset >= 12 else dtype
    return d.sample([d.array(d.broadcast(shape), dtype, 0.5, 3), d.array(shape, exponent, 0, 3)])


def modulo(d):
    shape, dtype = d.shape(), d.dtype()
    fmod = is_float(dtype) or d.chance(0.4)
    b = d.array(shape, dtype, -5, 5)
    b = np.where(np.abs(b) < 1, np.array(2, dtype), b).astype(dtype)
    return d.sample([d.array(d.broadcast(shape), dtype, -20, 20), b], attributes={"fmod": 1} if fmod else {})


def variadic(d):
    shape, dtype = d.shape(), d.dtype()
    count = d.integer(1, 4)
    return d.sample([d.array(d.broadcast(shape), dtype) for _ in range(count)], terms=count)


def prelu(d):
    shape, dtype = d.shape(low=1), d.dtype()
    return d.sample([d.array(shape, dtype), d.array(d.broadcast(shape), dtype)])


def clip(d):
    dtype = d.dtype()
    x = d.array(d.shape(), dtype, -6, 6)
    low, high = np.array(-1, np.float64), np.array(3, np.float64)
    if dtype.kind == "u":
        low = np.array(1, np.float64)
    if d.opset < 11:
        limits = {"min": float(low), "max": float(high)}
        return d.sample([x], attributes={name: value for name, value in limits.items() if d.chance(0.7)})
    limits = [v.astype(dtype) if d.chance(0.7) else None for v in (low, high)]
    return d.sample([x, *limits], constants={1, 2} if d.chance(0.5) else set())


def where(d):
    shape, dtype = d.shape(), d.dtype()
    condition = d.array(d.broadcast(shape), DTYPES["bool"])
    return d.sample([condition, d.array(d.broadcast(shape), dtype), d.array(shape, dtype)])


def identity(d):
    return d.sample([d.array(d.shape(), d.dtype("V" if d.opset >= 14 else "T"))])


def dropout(d):
    x = d.array(d.shape(), d.dtype())
    outputs = d.integer(1, 2) if d.opset >= 12 else 1  # the mask of older opsets has no defined value
    if d.opset < 12:
        return d.sample([x], attributes={"ratio": 0.3}, outputs=outputs)
    ratio = np.array(0.3, DTYPES["float"]) if d.chance(0.5) else None
    training = np.array(False) if d.chance(0.3) else None
    return d.sample([x, ratio, training], constants={1, 2}, outputs=outputs)


def hardmax(d):
    x = d.array(d.shape(1, 4, zero=0), d.dtype())
    return d.sample([x], attributes={"axis": d.axis(x.ndim, negative=d.opset >= 11)})


def bit_shift(d):
    """A shift by the width or more is nobody's promise."""
    shape, dtype = d.shape(), d.dtype()
    a, b = d.array(d.broadcast(shape), dtype, 0, 250), d.array(shape, dtype, 0, 8 * dtype.itemsize - 1)
    return d.sample([a, b], attributes={"direction": d.choice(["LEFT", "RIGHT"])})


def special_floats(d):
    x = d.array(d.shape(), d.dtype("T1" if d.op == "IsNaN" and d.opset >= 9 or d.op == "IsInf" else "T"))
    for value in (np.inf, -np.inf, np.nan, 0.0):
        if x.size:
            x.flat[d.integer(0, x.size - 1)] = np.array(value).astype(x.dtype)
    names = ("detect_negative", "detect_positive") if d.op == "IsInf" else ()
    return d.sample([x], attributes={name: d.integer(0, 1) for name in names if d.chance(0.6)})


def shrink(d):
    """Thresholds and biases are exact in every dtype; of integers they are whole, and of unsigned ones fit below x."""
    x = d.array(d.shape(), d.dtype(), -6, 6)
    if is_float(x.dtype):
        return d.sample([x], attributes={n: d.choice([0.25, 1.5, 2.0]) for n in ("lambd", "bias") if d.chance(0.7)})
    attributes = {"lambd": d.choice([1.0, 2.5])}
    if d.chance(0.7):
        attributes["bias"] = d.choice([1.0, 2.0])
    return d.sample([x], attributes=attributes)


GENERATORS = {
    "BitShift": bit_shift, "IsInf": special_floats, "IsNaN": special_floats, "Shrink": shrink,
    "Swish": unary(attributes=optional_floats(alpha=(0.3, 2))),
    **{op: unary() for op in ("Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "HardSwish", "Neg", "Not", "Relu", "Round")},
    **{op: unary() for op in ("Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Tanh")},
    **{op: unary() for op in ("Asinh", "Atan", "BitwiseNot", "Cosh", "Mish", "Sinh", "Softsign")},
    **{op: unary(-0.9, 0.9) for op in ("Asin", "Acos", "Atanh")}, "Tan": unary(-1.2, 1.2), "Acosh": unary(1.2, 9),
    "Celu": unary(attributes=optional_floats(alpha=(0.3, 2))),
    "ThresholdedRelu": unary(attributes=optional_floats(alpha=(0.3, 2))), "Hardmax": hardmax,
    **{op: binary() for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    "Sqrt": unary(0, 9), "Log": unary(0.1, 9), "Reciprocal": unary(0.3, 5),
    "Elu": unary(attributes=optional_floats(alpha=(0.3, 2))),
    "LeakyRelu": unary(attributes=optional_floats(alpha=(0.01, 0.9))),
    "HardSigmoid": unary(-6, 6, attributes=optional_floats(alpha=(0.1, 0.4), beta=(0.2, 0.8))),
    "Gelu": unary(attributes=lambda d: {"approximate": d.choice(["none", "tanh"])} if d.chance(0.6) else {}),
    **{op: binary() for op in ("Add", "Sub", "Mul", "And", "Or", "Xor", "Equal", "Greater", "GreaterOrEqual")},
    "Less": binary(), "LessOrEqual": binary(), "Div": binary(positive_second=True),
    "Pow": power, "Mod": modulo, "PRelu": prelu, "Clip": clip, "Where": where,
    **{op: variadic for op in ("Min", "Max", "Mean", "Sum")},
    "Identity": identity, "Dropout": dropout,
}  # fmt: skip
