"""Samples of matrix products, convolutions, pools, normalisations and reductions."""

import numpy as np

from tests.operators.sample import FLOATS


def matmul(d):
    dtype, k = d.dtype(), d.size()
    batch = d.shape(0, 2, elements=20)
    a, b = [*d.broadcast(batch), d.size(), k], [*batch, k, d.size()]
    form = d.integer(0, 5)
    a = [k] if form == 0 else a
    b = [k] if form == 1 else b
    if d.chance(0.5) and form > 1:
        a, b = [*batch, *a[-2:]], [*d.broadcast(batch), *b[-2:]]
    return d.sample([d.array(a, dtype), d.array(b, dtype)], terms=max(k, 1), symbolic=k > 0)


def gemm(d):
    dtype, m, n, k = d.dtype(), d.size(), d.size(), d.size()
    trans_a, trans_b = d.integer(0, 1), d.integer(0, 1)
    a, b = [k, m] if trans_a else [m, k], [n, k] if trans_b else [k, n]
    attributes = {"transA": trans_a, "transB": trans_b}
    # Of integers whole factors; of floats some that are exact in every dtype, and some in none.
    factors = [2.0, 3.0] if np.dtype(dtype).kind in "iu" else d.choice([[0.75, 1.5], [-0.3, 1.1]])
    attributes |= {name: value for name, value in zip(("alpha", "beta"), factors, strict=True) if d.chance(0.8)}
    c = None if d.opset >= 11 and d.chance(0.3) else d.array(d.choice([[m, n], [n], [1, n], [m, 1], []]), dtype)
    constants = {1, 2} if d.chance(0.5) and c is not None else set()
    return d.sample(
        [d.array(a, dtype), d.array(b, dtype), c], attributes=attributes, constants=constants, terms=max(k, 1)
    )


def window(d, rank, dilations=True, auto=True):
    """Attributes of a window that fits the returned spatial sizes."""
    kernel = [d.integer(1, 3) for _ in range(rank)]
    strides = [d.integer(1, 3) for _ in range(rank)]
    dilation = [d.integer(1, 2) if dilations else 1 for _ in range(rank)]
    attributes = {"kernel_shape": kernel}
    if d.chance(0.7):
        attributes["strides"] = strides
    else:
        strides = [1] * rank
    if dilations and d.chance(0.4):
        attributes["dilations"] = dilation
    else:
        dilation = [1] * rank
    reach = [(k - 1) * s + 1 for k, s in zip(kernel, dilation, strict=True)]
    mode = d.integer(0, 3)
    if mode == 0 and auto and dilation == [1] * rank:
        attributes["auto_pad"] = d.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif mode < 3:
        attributes["pads"] = [d.integer(0, k - 1) for _ in range(2) for k in kernel]
    return attributes, [r + d.integer(0, 8) for r in reach]


def conv(d):
    dtype, rank = d.dtype(), d.choice([1, 2, 2, 2, 3])
    attributes, spatial = window(d, rank)
    group = d.choice([1, 1, 2, 3])
    inputs = group * d.integer(1, 4)
    outputs = group * d.integer(1, 5)
    if d.chance(0.25):  # depthwise
        group = outputs = inputs
    attributes["group"] = group
    x = d.array([d.choice([1, 2, 3, 0]), inputs, *spatial], dtype, -1, 1)
    w = d.array([outputs, inputs // group, *attributes["kernel_shape"]], dtype, -1, 1)
    b = d.array([outputs], dtype, -1, 1) if d.chance(0.6) else None
    s = d.sample([x, w, b], attributes=attributes, constants={1, 2} if d.chance(0.7) else set(), terms=w[0].size)
    s.symbolic = {(0, axis): f"n{axis}" for (i, axis) in s.symbolic if i == 0 and axis != 1}
    return s


def pool(average):
    def generate(d):
        dtype = d.dtype()
        rank = d.choice([1, 2, 2, 3])
        attributes, spatial = window(d, rank, dilations=d.opset >= (19 if average else 10))
        if d.opset >= 10 and d.chance(0.3) and "auto_pad" not in attributes:
            attributes["ceil_mode"] = 1
        if average and d.chance(0.5):
            attributes["count_include_pad"] = 1
        x = d.array([d.integer(1, 3), d.integer(1, 4), *spatial], dtype)
        outputs = 1
        if not average and "auto_pad" not in attributes and d.opset >= 8 and d.chance(0.2):
            outputs = 2
        return d.sample([x], attributes=attributes, outputs=outputs, terms=9)

    return generate


def global_pool(d):
    x = d.array([d.integer(1, 3), d.integer(1, 4), *d.shape(1, 3, zero=0)], d.dtype())
    return d.sample([x], terms=x[0, 0].size)


def batch_norm(d):
    dtype, c = d.dtype(), d.integer(1, 7)
    x = d.array([d.choice([0, 1, 2, 3]), c, *d.shape(0, 3, elements=500)], dtype)
    low = (0.5, -1, -1, 0.5)
    parameters = [d.array([c], dtype, l, 1.5) for l in low]
    attributes = {"epsilon": 1e-3} if d.chance(0.5) else {}
    return d.sample([x, *parameters], attributes=attributes, constants={1, 2, 3, 4} if d.chance(0.6) else set())


def layer_norm(d):
    dtype = d.dtype("T")
    shape = d.shape(1, 4, zero=0)
    axis = d.axis(len(shape))
    tail = shape[axis:]
    x = d.array(shape, dtype)
    b = d.array(tail, dtype) if d.chance(0.6) else None
    attributes = {"axis": axis, "epsilon": 1e-2}
    return d.sample([x, d.array(tail, dtype), b], attributes=attributes, terms=max(int(np.prod(tail)), 4))


def softmax(d):
    shape = d.shape(1, 4)
    x = d.array(shape, d.dtype())
    attributes = {"axis": d.axis(len(shape), negative=d.opset >= 11)} if d.chance(0.8) or x.ndim == 1 else {}
    return d.sample([x], attributes=attributes, terms=8)


def reduction(first_axes_input, low=-2.0, high=2.0, empty=True):
    """`first_axes_input`: the opset from which axes are an input; `empty`: whether an empty range has a value."""

    def generate(d):
        dtype = d.dtype(only=FLOATS if "Log" in d.op else None)  # a truncated logarithm proves nothing
        bounds = (0.5, 1.5) if d.op == "ReduceProd" else (low, high)
        x = d.array(d.shape(1, 4, zero=0.06 if empty else 0, elements=2000), dtype, *bounds)
        attributes = {"keepdims": d.integer(0, 1)} if d.chance(0.7) else {}
        axes = d.axes(x.ndim, negative=d.opset >= 11) if d.chance(0.8) else None
        terms = max(int(x.size), 1)
        if d.opset < first_axes_input:
            if axes:
                attributes["axes"] = axes
            return d.sample([x], attributes=attributes, terms=terms)
        if d.chance(0.3):
            attributes["noop_with_empty_axes"] = d.integer(0, 1)
        axes = d.int64([] if axes is None else axes) if axes is not None or d.chance(0.5) else None
        return d.sample([x, axes], attributes=attributes, constants={1}, terms=terms)

    return generate


def arg_reduction(d):
    x = d.array(d.shape(1, 4, zero=0), d.dtype())
    attributes = {"keepdims": d.integer(0, 1), "axis": d.axis(x.ndim, negative=d.opset >= 11)}
    if d.opset >= 12 and d.chance(0.5):
        attributes["select_last_index"] = d.integer(0, 1)
    return d.sample([x], attributes=attributes)


def lp_pool(d):
    dtype, rank = d.dtype(), d.choice([1, 2, 2, 3])
    attributes, spatial = window(d, rank, dilations=d.opset >= 18)
    if d.opset >= 18 and d.chance(0.3) and "auto_pad" not in attributes:
        attributes["ceil_mode"] = 1
    if d.chance(0.7):
        attributes["p"] = d.integer(1, 3)
    return d.sample([d.array([d.integer(1, 3), d.integer(1, 4), *spatial], dtype)], attributes=attributes, terms=27)


def global_lp_pool(d):
    x = d.array([d.integer(1, 3), d.integer(1, 4), *d.shape(1, 3, zero=0)], d.dtype())
    return d.sample([x], attributes={"p": d.integer(1, 3)} if d.chance(0.7) else {}, terms=x[0, 0].size)


def conv_transpose(d):
    dtype, rank = d.dtype(), d.choice([1, 2, 2, 3])
    attributes, _ = window(d, rank, auto=False)
    kernel = attributes["kernel_shape"]
    strides, dilations = (attributes.get(n, [1] * rank) for n in ("strides", "dilations"))
    spatial = [d.integer(2, 6) for _ in range(rank)]
    if d.chance(0.4):
        attributes["output_padding"] = [d.integer(0, max(s, k) - 1) for s, k in zip(strides, dilations, strict=True)]
    form = d.integer(0, 5)
    if form == 0:
        attributes.pop("pads", None)
        attributes["auto_pad"] = d.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif form == 1:
        attributes.pop("pads", None)
        whole = [s * (n - 1) + (k - 1) * t + 1 for s, n, k, t in zip(strides, spatial, kernel, dilations, strict=True)]
        attributes["output_shape"] = [d.integer(max(n - 2, 1), n) for n in whole]
        attributes.pop("output_padding", None)
        if d.chance(0.5):
            attributes["auto_pad"] = d.choice(["SAME_UPPER", "SAME_LOWER"])
    group = d.choice([1, 1, 2, 3])
    inputs, outputs = group * d.integer(1, 4), d.integer(1, 4)
    if group > 1 or d.chance(0.4):
        attributes["group"] = group
    if d.chance(0.3):
        attributes.pop("kernel_shape")
    x = d.array([d.choice([1, 2, 0]), inputs, *spatial], dtype, -1, 1)
    w = d.array([inputs, outputs, *kernel], dtype, -1, 1)
    b = d.array([group * outputs], dtype, -1, 1) if d.chance(0.6) else None
    terms = max(int(w[:, 0].size) // group, 1)
    s = d.sample([x, w, b], attributes=attributes, constants={1, 2} if d.chance(0.7) else set(), terms=terms)
    s.symbolic = {(0, axis): f"n{axis}" for (i, axis) in s.symbolic if i == 0 and axis != 1}
    return s


def einsum(d):
    """Labels at random, some of them twice in one operand, some summed over in one operand alone."""
    dtype, sizes = d.dtype(), {label: d.choice([1, 2, 3, 4, 5]) for label in "abcdeI"}
    if d.chance(0.1):
        sizes[d.choice("abcde")] = 0
    ellipsis = [d.integer(1, 3) for _ in range(d.integer(1, 2))] if d.chance(0.3) else None
    terms, operands = [], []
    for _ in range(d.integer(1, 3)):
        labels = [d.choice("abcdeI") for _ in range(d.integer(0 if terms else 1, 3))]
        shape = [sizes[label] for label in labels]
        if ellipsis and (not terms or d.chance(0.6)):
            at = d.integer(0, len(labels))
            labels.insert(at, "...")
            shape[at:at] = d.broadcast(ellipsis)
        terms.append("".join(labels))
        operands.append(d.array(shape, dtype, -2, 2))
    equation = ",".join(terms)
    if d.chance(0.7):
        used = sorted(set(equation) - set(",."))
        kept = [used[k] for k in d.rng.permutation(len(used))[: d.integer(0, len(used))]]
        equation += "->" + ("..." if ellipsis else "") + "".join(kept)
    count = 4 ** len(operands) * max(int(np.prod([sizes[label] for label in set(equation) & set(sizes)])), 1)
    # The shape inference of ONNX does not survive a term without labels.
    return d.sample(operands, attributes={"equation": equation}, symbolic=False, terms=count, types=[dtype])


GENERATORS = {
    "LpPool": lp_pool, "GlobalLpPool": global_lp_pool, "ConvTranspose": conv_transpose, "Einsum": einsum,
    "MatMul": matmul, "Gemm": gemm, "Conv": conv, "MaxPool": pool(False), "AveragePool": pool(True),
    "GlobalAveragePool": global_pool, "GlobalMaxPool": global_pool, "BatchNormalization": batch_norm,
    "LayerNormalization": layer_norm, "Softmax": softmax, "LogSoftmax": softmax,
    "ReduceSum": reduction(13), "ReduceMean": reduction(18, empty=False), "ReduceProd": reduction(18),
    "ReduceMax": reduction(18, empty=False), "ReduceMin": reduction(18, empty=False), "ReduceL1": reduction(18),
    "ReduceL2": reduction(18), "ReduceSumSquare": reduction(18), "ReduceLogSum": reduction(18, low=0.5, empty=False),
    "ReduceLogSumExp": reduction(18, empty=False), "ArgMax": arg_reduction, "ArgMin": arg_reduction,
}  # fmt: skip
