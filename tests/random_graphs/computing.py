"""Nodes that compute: elementwise, products, convolutions, reductions, normalisations, and patterns of these."""

import numpy as np

from tests.operators import contraction
from tests.operators.sample import FLOATS
from tests.random_graphs.graph import Rejected, element_type

INTEGERS = ("int32", "int64", "int8", "uint8")
NUMBERS = (*FLOATS, *INTEGERS)


def numbers(g):
    """The dtypes an arithmetic node takes: the graph's float mostly."""
    return (g.float,) if g.chance(0.8) else ("int32", "int64")


def unary(op, first_opset=0):
    def grow(g):
        if g.opset < first_opset:
            raise Rejected
        return g.node(op, [g.pick()])

    return grow


def with_floats(op, first_opset=0, **ranges):
    def grow(g):
        if g.opset < first_opset:
            raise Rejected
        drawn = {n: float(np.float32(g.rng.uniform(*limits))) for n, limits in ranges.items() if g.chance(0.6)}
        return g.node(op, [g.pick()], drawn)

    return grow


def binary(op, dtypes=numbers):
    def grow(g):
        a = g.pick(dtypes(g))
        b = g.partner(a)
        return g.node(op, [b, a] if g.chance(0.4) else [a, b])

    return grow


def division(g):
    a = g.pick(numbers(g))
    b = g.partner(a)
    if not (np.abs(b.data[0]) > 0.05).all():
        if a.dtype not in FLOATS:
            raise Rejected
        (b,) = g.node("Add", g.node("Mul", [b, b]) + [g.constant(np.float64(0.75), b.dtype)])
    return g.node("Div", [a, b])


def compare(op):
    def grow(g):
        a = g.pick(numbers(g))
        return g.node(op, [a, g.partner(a)], dtypes=["bool"])

    return grow


def logic(op):
    def grow(g):
        a = g.pick(("bool",))
        return g.node(op, [a, g.partner(a)])

    return grow


def negation(g):
    return g.node("Not", [g.pick(("bool",))])


def select(g):
    a = g.pick(numbers(g))
    b = g.partner(a)
    shape = list(np.broadcast_shapes(a.shape, b.shape))
    conditions = [v for v in g.pool if v.dtype == "bool" and np.broadcast_shapes(v.shape, v.shape) == tuple(shape)]
    condition = g.choice(conditions) if conditions else g.fresh(g.broadcast(shape), "bool")
    return g.node("Where", [condition, a, b], dtypes=[a.dtype])


def variadic(op, floats=True):
    def grow(g):
        parts = [g.pick((g.float,) if floats else numbers(g))]
        for _ in range(g.integer(0, 3)):
            parts.append(g.partner(parts[0]))
        return g.node(op, parts)

    return grow


def clip(g):
    x = g.pick(numbers(g))
    limits = [g.constant(v, x.dtype) if g.chance(0.7) else None for v in (np.float64(-1), np.float64(2))]
    return g.node("Clip", [x, *limits])


def prelu(g):
    x = g.pick(low=1)
    return g.node("PRelu", [x, g.fresh(g.broadcast(list(x.shape)), x.dtype)])


def power(g):
    x = g.pick()
    if g.chance(0.5):
        return g.node("Pow", [x, g.constant(np.float64(g.choice([2, 3, 1, 0])), x.dtype)])
    (positive,) = g.node("Add", g.node("Abs", [x]) + [g.constant(np.float64(0.5), x.dtype)])
    return g.node("Pow", [positive, g.constant(np.float64(g.choice([0.5, -1, -0.5, 1.5])), x.dtype)])


def modulo(g):
    a = g.pick(("int32", "int64", "uint8", "int8"))
    b = g.fresh(g.broadcast(list(a.shape)), a.dtype, 1, 7)
    return g.node("Mod", [a, b], {"fmod": 1} if g.chance(0.3) else {})


def bitwise(op):
    def grow(g):
        if g.opset < 18:
            raise Rejected
        a = g.pick(INTEGERS)
        return g.node(op, [a] if op == "BitwiseNot" else [a, g.partner(a)])

    return grow


def shift(g):
    a = g.pick(("uint8", "uint32", "uint64"))
    bits = g.fresh(g.broadcast(list(a.shape)), a.dtype, 0, 7)
    return g.node("BitShift", [a, bits], {"direction": g.choice(["LEFT", "RIGHT"])})


def cast(g):
    x = g.pick((*NUMBERS, "bool"))
    to = g.choice([g.float, g.float, "float", "int32", "int64", "bool", "int8", "uint8", "double", "float16"])
    values = x.data[0].astype(np.float64)
    low = {"uint8": 0, "int8": -127}.get(to, -2e9)
    high = {"uint8": 255, "int8": 127}.get(to, 2e9)
    cut = to not in ("bool", *FLOATS) and x.dtype not in INTEGERS
    if cut and x.size and (values.min() < low or values.max() > high):  # what becomes of it is left open
        raise Rejected
    return g.node("Cast", [x], {"to": element_type(to)}, [to])


def reduction(op, axes_input, floats=False):
    def grow(g):
        x = g.pick((g.float,) if floats or g.chance(0.8) else ("int32", "int64"), low=1)
        if op == "ReduceProd" and x.size > 64:  # vanishes
            raise Rejected
        if op == "ReduceLogSum":
            (x,) = g.node("Add", g.node("Abs", [x]) + [g.constant(np.float64(0.5), x.dtype)])
        if not x.size and op not in ("ReduceSum", "ReduceProd", "ReduceL1", "ReduceSumSquare"):
            raise Rejected
        attributes = {"keepdims": g.integer(0, 1)} if g.chance(0.8) else {}
        axes = g.axes(x.rank) if g.chance(0.85) else None
        if g.opset >= axes_input:
            return g.node(op, [x] + ([g.integers(axes)] if axes else []), attributes)
        return g.node(op, [x], attributes | ({"axes": axes} if axes else {}))

    return grow


def arg_reduction(op):
    def grow(g):
        x = g.pick(numbers(g), low=1, where=lambda v: v.size > 0)
        attributes = {"keepdims": g.integer(0, 1), "axis": g.axis(x.rank)}
        if g.chance(0.4):
            attributes["select_last_index"] = g.integer(0, 1)
        return g.node(op, [x], attributes, ["int64"])

    return grow


def along_axis(op):
    def grow(g):
        x = g.pick(low=1)
        return g.node(op, [x], {"axis": g.axis(x.rank)} if g.chance(0.8) or op == "Hardmax" else {})

    return grow


def cumulative(g):
    x = g.pick(numbers(g), low=1)
    attributes = {name: 1 for name in ("exclusive", "reverse") if g.chance(0.4)}
    return g.node("CumSum", [x, g.constant(np.int64(g.axis(x.rank)), "int64")], attributes)


def matmul(g):
    x = g.pick(low=1, high=4)
    k = x.shape[-1]
    others = [v for v in g.pool if v.dtype == x.dtype and v.rank >= 2 and v.shape[-2] == k and v is not x]
    if others and g.chance(0.5):
        y = g.choice(others)
    else:
        spread = 1.5 / max(1.0, float(np.sqrt(k)))
        y = g.fresh(
            [*(g.broadcast(list(x.shape[:-2])) if g.chance(0.3) else []), k, g.size()], x.dtype, -spread, spread
        )
    return g.node("MatMul", [x, y])


def gemm(g):
    x = g.pick(low=2, high=2)
    trans_a, trans_b = g.integer(0, 1), g.integer(0, 1)
    m, k = x.shape[::-1] if trans_a else x.shape
    n = g.size()
    spread = 1.5 / max(1.0, float(np.sqrt(k)))
    w = g.fresh([n, k] if trans_b else [k, n], x.dtype, -spread, spread)
    c = g.fresh(g.choice([[m, n], [n], [1, n], [m, 1], []]), x.dtype) if g.chance(0.7) else None
    attributes = {"transA": trans_a, "transB": trans_b}
    attributes |= {n: v for n, v in (("alpha", 0.75), ("beta", -1.5)) if g.chance(0.4)}
    return g.node("Gemm", [x, w, c], attributes)


def einsum(g):
    x = g.pick(low=2, high=3)
    if x.rank == 2:
        i, j = x.shape
        form, shape = g.choice(
            [("ij,jk->ik", [j, g.size()]), ("ij,ij->i", [i, j]), ("ij,i->j", [i]), ("ij,kj->kij", [2, j])]
        )
    else:
        i, j, k = x.shape
        form, shape = g.choice(
            [("ijk,ikl->ijl", [i, k, g.size()]), ("ijk,kl->ijl", [k, g.size()]), ("ijk,j->ik", [j]),
             ("ijk,ijk->kj", [i, j, k])]
        )  # fmt: skip
    return g.node("Einsum", [x, g.fresh(shape, x.dtype, -0.7, 0.7)], {"equation": form})


def image(g, low=3, high=5):
    return g.pick(low=low, high=high, where=lambda v: v.size > 0, new=0.1)


def windowed(g, x, dilations=True):
    """Window attributes that fit x."""
    for _ in range(20):
        attributes, _ = contraction.window(g, x.rank - 2, dilations)
        reach = [
            (k - 1) * d + 1
            for k, d in zip(attributes["kernel_shape"], attributes.get("dilations", [1] * (x.rank - 2)), strict=True)
        ]
        if all(r <= s for r, s in zip(reach, x.shape[2:], strict=True)):
            return attributes
    raise Rejected


def conv(g):
    x = image(g)
    attributes = windowed(g, x)
    channels = x.shape[1]
    group = g.choice([1, 1, 1, channels] + [d for d in (2, 3) if channels % d == 0])
    outputs = group * g.integer(1, max(1, 9 // group))
    fan = channels // group * int(np.prod(attributes["kernel_shape"]))
    spread = 1.7 / float(np.sqrt(fan))
    w = g.fresh(
        [outputs, channels // group, *attributes["kernel_shape"]], x.dtype, -spread, spread, constant=g.chance(0.8)
    )
    b = g.fresh([outputs], x.dtype, constant=g.chance(0.8)) if g.chance(0.6) else None
    return g.node("Conv", [x, w, b], attributes | {"group": group})


def conv_transpose(g):
    x = image(g, 3, 4)
    rank, channels = x.rank - 2, x.shape[1]
    kernel = [g.integer(1, 3) for _ in range(rank)]
    group = g.choice([1, 1, channels])
    attributes = {"kernel_shape": kernel, "group": group, "strides": [g.integer(1, 2) for _ in range(rank)]}
    w = g.fresh([channels, g.integer(1, 4), *kernel], x.dtype, -0.5, 0.5, constant=True)
    return g.node(
        "ConvTranspose", [x, w, g.fresh([w.shape[1] * group], x.dtype) if g.chance(0.5) else None], attributes
    )


def pool(op):
    def grow(g):
        x = image(g)
        attributes = windowed(g, x, dilations=op == "MaxPool")
        if op == "AveragePool" and g.chance(0.4):
            attributes["count_include_pad"] = 1
        return g.node(op, [x], attributes)

    return grow


def global_pool(op):
    return lambda g: g.node(op, [image(g)])


def per_channel(g, x, low, high):
    return g.fresh([x.shape[1]], x.dtype, low, high, constant=g.chance(0.85))


def batch_norm(g):
    if g.opset < 15:
        raise Rejected
    x = g.pick(low=2, high=5)
    return g.node("BatchNormalization", [x, *(per_channel(g, x, low, 1.5) for low in (0.5, -1, -1, 0.5))])


def layer_norm(g):
    if g.opset < 17:
        raise Rejected
    x = g.pick(low=1, high=4, where=lambda v: v.size > 0)
    axis = g.axis(x.rank)
    tail = list(x.shape[axis:])
    b = g.fresh(tail, x.dtype) if g.chance(0.6) else None
    return g.node("LayerNormalization", [x, g.fresh(tail, x.dtype, 0.5, 1.5), b], {"axis": axis, "epsilon": 1e-2})


def instance_norm(g):
    x = image(g)
    parameters = [per_channel(g, x, 0.5, 1.5), per_channel(g, x, -1, 1)]
    return g.node("InstanceNormalization", [x, *parameters], {"epsilon": 1e-2})


# Patterns that exporters write, for passes that look for them.


def attention(g):
    x = g.pick(low=2, high=3, where=lambda v: v.size > 0)
    features = x.shape[-1]
    width = g.choice([2, 4, 8])
    q, k, v = (
        g.node("MatMul", [x, g.fresh([features, width], x.dtype, -0.6, 0.6, constant=True)])[0] for _ in range(3)
    )
    (k,) = g.node("Transpose", [k], {"perm": [*range(x.rank - 2), x.rank - 1, x.rank - 2]})
    (scores,) = g.node("Mul", g.node("MatMul", [q, k]) + [g.constant(np.float64(width**-0.5), x.dtype)])
    (weights,) = g.node("Softmax", [scores], {"axis": -1})
    return g.node("MatMul", [weights, v])


def written_out_layer_norm(g):
    x = g.pick(low=1, high=4, where=lambda v: v.shape[-1] > 1 and v.size > 0)

    def mean(v):
        if g.opset >= 18:
            return g.node("ReduceMean", [v, g.integers([-1])])[0]
        return g.node("ReduceMean", [v], {"axes": [-1]})[0]

    (centred,) = g.node("Sub", [x, mean(x)])
    variance = mean(g.node("Pow", [centred, g.constant(np.float64(2), x.dtype)])[0])
    (deviation,) = g.node("Sqrt", g.node("Add", [variance, g.constant(np.float64(0.125), x.dtype)]))
    (normal,) = g.node("Div", [centred, deviation])
    return g.node("Mul", [normal, g.fresh([x.shape[-1]], x.dtype, 0.5, 1.5, constant=True)])


def written_out_gelu(g):
    x = g.pick()
    (inner,) = g.node("Erf", g.node("Div", [x, g.constant(np.float64(np.float32(2**0.5)), x.dtype)]))
    (outer,) = g.node("Add", [inner, g.constant(np.float64(1), x.dtype)])
    return g.node("Mul", g.node("Mul", [x, outer]) + [g.constant(np.float64(0.5), x.dtype)])


def swish(g):
    x = g.pick()
    return g.node("Mul", [x, g.node("Sigmoid", [x])[0]])


def identities(g):
    """What an algebraic simplifier removes, and what it must not."""
    x = g.pick(numbers(g))
    op, value = g.choice(
        [("Add", 0), ("Mul", 1), ("Sub", 0), ("Div", 1), ("Mul", 0), ("Mul", -1), ("Mul", 2), ("Add", -1)]
    )
    shape = g.choice([[], [1], [1, 1]] + ([[x.shape[-1]]] if x.rank else []) + [[1] * (x.rank + 1)])
    return g.node(op, [x, g.constant(np.full(shape, value), x.dtype)])


ROWS = {
    **{op: unary(op) for op in ("Abs", "Neg", "Exp", "Log", "Sqrt", "Reciprocal", "Sin", "Cos", "Tanh", "Erf")},
    **{op: unary(op) for op in ("Relu", "Floor", "Ceil", "Round", "Sign", "Softplus", "Softsign", "Atan", "Sinh", 
                                  "Asinh", "Sigmoid")},
    **{op: unary(op, first) for op, first in (("HardSwish", 14), ("Mish", 18), ("Identity", 1))},
    "LeakyRelu": with_floats("LeakyRelu", alpha=(0.01, 0.9)), "Elu": with_floats("Elu", alpha=(0.3, 2)),
    "Selu": with_floats("Selu"), "HardSigmoid": with_floats("HardSigmoid", alpha=(0.1, 0.4), beta=(0.2, 0.8)),
    "ThresholdedRelu": with_floats("ThresholdedRelu", alpha=(0.3, 2)), "Gelu": unary("Gelu", 20),
    **{op: binary(op) for op in ("Add", "Sub", "Mul")}, "Div": division, "Pow": power, "Mod": modulo, "PRelu": prelu,
    **{op: compare(op) for op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")},
    **{op: logic(op) for op in ("And", "Or", "Xor")}, "Not": negation, "Where": select, "Clip": clip, "Cast": cast,
    "Min": variadic("Min", False), "Max": variadic("Max", False), "Mean": variadic("Mean"), "Sum": variadic("Sum"),
    **{op: bitwise(op) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot")}, "BitShift": shift,
    "ReduceSum": reduction("ReduceSum", 13), "ReduceMean": reduction("ReduceMean", 18, True),
    **{op: reduction(op, 18) for op in ("ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare", "ReduceProd")},
    **{op: reduction(op, 18, True) for op in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")},
    "ArgMax": arg_reduction("ArgMax"), "ArgMin": arg_reduction("ArgMin"), "CumSum": cumulative,
    **{op: along_axis(op) for op in ("Softmax", "LogSoftmax", "Hardmax")},
    "MatMul": matmul, "Gemm": gemm, "Einsum": einsum, "Conv": conv, "ConvTranspose": conv_transpose,
    "MaxPool": pool("MaxPool"), "AveragePool": pool("AveragePool"), "GlobalMaxPool": global_pool("GlobalMaxPool"),
    "GlobalAveragePool": global_pool("GlobalAveragePool"), "BatchNormalization": batch_norm,
    "LayerNormalization": layer_norm, "InstanceNormalization": instance_norm,
    "attention": attention, "written_out_layer_norm": written_out_layer_norm, "written_out_gelu": written_out_gelu,
    "swish": swish, "identities": identities,
}  # fmt: skip
# Drawn so many times as often as the others.
WEIGHTS = {"Add": 4, "Mul": 4, "Sub": 2, "MatMul": 4, "Conv": 4, "Relu": 2, "identities": 3, "Where": 2, "Cast": 2}
