"""Samples of the operators on integers and narrow floats that stand for floats, and of plain conversions of types.

Scales are powers of two and values are quarters of them, so that every product and quotient is exact in the narrowest
float: what is left to tell apart is rounding of ties, saturation, zero points, axes and blocks.
"""

import numpy as np
from onnx import helper
from onnx.reference.ops.op_cast import cast_to

from tests.operators import windows
from tests.operators.contraction import window
from tests.operators.sample import DTYPES, NUMBERS, is_float, is_integer, limits

SATURATING = {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"}


def conversion_attributes(d):
    attributes = {}
    if d.opset >= 19 and d.chance(0.4):
        attributes["saturate"] = int(d.chance(0.5))
    if d.opset >= 24 and d.chance(0.4):
        attributes["round_mode"] = d.choice(["up", "down", "nearest"])
    return attributes


def conversion_input(d, source, target):
    """Values that the target has an answer for: the specification leaves floats beyond an integer type open."""
    low, high = -100, 100
    if target == DTYPES["float8e8m0"]:  # and negative numbers
        low = 0.01
    elif is_float(source) and is_integer(target):
        low, high = (max(a, b) if a < 0 else min(a, b) for a, b in zip((low, high), limits(target), strict=True))
    x = d.array(d.shape(), source, low, high)
    if d.opset >= 19 and target.name in SATURATING and is_float(source) and x.size and d.chance(0.5):
        x.flat[d.integer(0, x.size - 1)] = np.array(d.choice([np.inf, -np.inf, np.nan, 3e4, -3e4])).astype(source)
    return x


def cast(d):
    """Of numbers: how a number is written is left open by the specification."""
    source, target = d.dtype("T1", NUMBERS), d.dtype("T2", NUMBERS)
    attributes = {"to": helper.np_dtype_to_tensor_dtype(target), **conversion_attributes(d)}
    return d.sample([conversion_input(d, source, target)], attributes=attributes)


def cast_like(d):
    source, target = d.dtype("T1", NUMBERS), d.dtype("T2", NUMBERS)
    other = d.array([2], target, 0, 1)
    return d.sample([conversion_input(d, source, target), other], attributes=conversion_attributes(d))


def converted(s, x, target):
    saturate, mode = bool(s.attributes.get("saturate", 1)), s.attributes.get("round_mode", "up")
    x = np.asarray(x)
    if is_integer(x.dtype) and x.dtype.itemsize == 1:  # NumPy knows no conversion between two types of ml_dtypes
        x = x.astype(np.int32)
    number = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    return cast_to(x.reshape(x.shape or (1,)), number, saturate, mode).reshape(x.shape)


def bit_cast(d):
    source = d.dtype("T1")
    target = d.choice([t for t in map(DTYPES.get, NUMBERS) if bits(t) == bits(source)])
    x = d.array(d.shape(), source, -3, 3)
    return d.sample([x], attributes={"to": helper.np_dtype_to_tensor_dtype(target)})


def bits(dtype):
    name = dtype.name
    return 4 if name in ("int4", "uint4", "float4_e2m1fn") else 2 if name in ("int2", "uint2") else 8 * dtype.itemsize


def bit_cast_reference(s, x):
    target, x = helper.tensor_dtype_to_np_dtype(s.attributes["to"]), x.astype(s.dtype)
    if target == np.bool_:
        return (x.view(np.uint8) & 1).astype(np.bool_)
    if bits(target) >= 8:
        return x.view(target)
    width = bits(target)
    low = x.view(np.uint8) & ((1 << width) - 1)
    if target.name.startswith("int"):  # ml_dtypes keeps them extended
        sign = np.uint8(1 << (width - 1))
        low = (low ^ sign) - sign
    return low.astype(np.uint8).view(target)


# ---- scales and zero points ----


def granular(d, shape, dtypes, zero_dtype, blocks):
    """A scale, a zero point or None, and the attributes that place them."""
    scale_dtype = d.choice(dtypes)
    kinds = ["tensor", "tensor"]
    if shape and 0 not in shape:
        kinds += ["axis"] if d.opset >= 13 else []
        kinds += ["block"] if blocks else []
    kind, attributes, own = d.choice(kinds), {}, []
    if kind != "tensor":
        axis = d.axis(len(shape))
        attributes["axis"], own = axis, [shape[axis]]
    if kind == "block":
        size = d.integer(1, shape[axis])
        attributes["block_size"], own = size, list(shape)
        own[axis] = -(-shape[axis] // size)
    scale = (2.0 ** d.rng.integers(-1, 3, own)).astype(scale_dtype)
    low, high = limits(zero_dtype)
    wide = is_integer(zero_dtype) and d.chance(0.7)
    zero = d.array(own, zero_dtype, max(low, -20) if wide else 0, min(high, 20) if wide else 0)
    return scale, zero, attributes


def spread(s, x, parameter):
    """The parameter seen at each element of x."""
    parameter = np.asarray(parameter)
    if parameter.size == 1:
        return parameter.reshape(())
    axis = s.attributes.get("axis", 1)
    if size := s.attributes.get("block_size", 0):
        return np.repeat(parameter, size, axis).take(range(x.shape[axis]), axis)
    return parameter.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


def rounded(s, q, zero, dtype):
    """round(q) + zero, as far as the dtype reaches."""
    if not is_integer(dtype):
        q = q + zero
        return converted(s, q, dtype) if dtype.name in SATURATING else q.astype(dtype)
    return np.clip(np.rint(q) + zero, *limits(dtype)).astype(dtype)


def quantize_linear(d):
    floats = [DTYPES[n] for n in (["float", "float16", "bfloat16"] if d.opset >= 19 else ["float"])]
    source = d.choice(floats)
    target = d.dtype("T3" if d.opset >= 23 else "T2")
    shape = d.shape(0, 4, elements=1500)
    scale, zero, attributes = granular(d, shape, floats if d.opset >= 23 else [source], target, d.opset >= 21)
    if d.opset >= 19 and target.name in SATURATING and d.chance(0.4):
        attributes["saturate"] = int(d.chance(0.5))
    reach = 4000 if target.name in SATURATING and source.itemsize == 4 and d.chance(0.3) else 40
    quarters = d.rng.integers(-reach, reach + 1, shape)
    s = d.sample([None, scale, zero], attributes=attributes, constants={1, 2} if d.chance(0.5) else set())
    x = np.asarray(quarters / 4 * spread(s, np.empty(shape), scale.astype(np.float64))).astype(source)
    if d.opset >= 21 and d.chance(0.3):
        s.attributes["output_dtype"] = helper.np_dtype_to_tensor_dtype(target)
        if d.chance(0.5):
            zero = None
    s.inputs = [x, scale, zero]
    return s


def quantize_reference(s, x, scale, zero=None):
    target = s.attributes.get("output_dtype")
    dtype = s.dtypes[2] if s.dtypes[2] is not None else helper.tensor_dtype_to_np_dtype(target)
    at_zero = 0 if zero is None else spread(s, x, zero.astype(np.float64))
    return rounded(s, x / spread(s, x, scale), at_zero, dtype)


def dequantize_linear(d):
    floats = [DTYPES[n] for n in (["float", "float16", "bfloat16"] if d.opset >= 19 else ["float"])]
    source = d.dtype("T1" if d.opset >= 19 else "T")
    shape = d.shape(0, 4, elements=1500)
    scale, zero, attributes = granular(d, shape, floats, source, d.opset >= 21)
    low, high = limits(source)
    x = d.array(shape, source, max(low, -100), min(high, 100))
    if d.opset >= 23 and d.chance(0.3):
        attributes["output_dtype"] = helper.np_dtype_to_tensor_dtype(d.choice(floats))
    zero = zero if d.chance(0.6) and source != DTYPES["int32"] else None
    return d.sample([x, scale, zero], attributes=attributes, constants={1, 2} if d.chance(0.5) else set())


def dequantize_reference(s, x, scale, zero=None):
    x = x.astype(np.float64)
    return (x - (0 if zero is None else spread(s, x, zero.astype(np.float64)))) * spread(s, x, scale)


def dynamic_quantize_linear(d):
    """The range is a multiple of 255, so that the scale is a power of two."""
    scale, zero = 2.0 ** d.integer(-2, 3), d.integer(0, 255)
    shape = d.shape(1, 4, zero=0)
    k = d.rng.integers(-zero * 4, (255 - zero) * 4 + 1, shape) / 4
    k.flat[0] = -zero
    if k.size > 1:
        k.flat[-1] = 255 - zero
    return d.sample([np.asarray(k * scale).astype(d.dtype("T1"))], outputs=3)


def dynamic_quantize_reference(s, x):
    low, high = np.float32(min(x.min(), 0)), np.float32(max(x.max(), 0))
    scale = np.float32((high - low) / np.float32(255))
    zero = np.clip(np.rint(-low / scale), 0, 255) if scale else np.float32(0)
    q = np.rint(x / scale) if scale else x
    return [np.clip(q + zero, 0, 255), np.asarray(scale), np.asarray(zero)]


# ---- products ----

BYTES = ("int8", "uint8")


def byte_tensor(d, shape, parameter):
    dtype = d.dtype(parameter, BYTES)
    low, high = limits(dtype)
    return d.array(shape, dtype, low, high)


def zero_like(d, x, shape=()):
    return d.array(list(shape), x.dtype, *limits(x.dtype))


def power_of_two(d, shape=(), low=-3, high=1):
    return np.asarray(2.0 ** d.rng.integers(low, high + 1, list(shape))).astype(np.float32)


def matrices(d):
    m, k, n = (d.size() for _ in range(3))
    batch = d.shape(0, 2, elements=20)
    return byte_tensor(d, [*d.broadcast(batch), m, k], "T1"), byte_tensor(d, [*batch, k, n], "T2")


def per_row(d, a):
    return d.choice([(), (1,), (a.shape[-2],), (*a.shape[:-1], 1)])


def per_column(d, b):
    return d.choice([(), (1,), (b.shape[-1],), (*b.shape[:-2], 1, b.shape[-1])])


def matmul_integer(d):
    a, b = matrices(d)
    zeros = [zero_like(d, a, per_row(d, a)) if d.chance(0.6) else None]
    zeros += [zero_like(d, b, per_column(d, b)) if d.chance(0.6) else None]
    return d.sample([a, b, *zeros], symbolic=False)


def by_row(parameter):
    parameter = np.asarray(parameter)
    return parameter[:, None] if parameter.ndim == 1 and parameter.size != 1 else parameter


def centred(x, zero):
    return x.astype(np.int64) - (0 if zero is None else zero.astype(np.int64))


def matmul_integer_reference(s, a, b, a_zero=None, b_zero=None):
    return centred(a, None if a_zero is None else by_row(a_zero)) @ centred(b, b_zero)


def qlinear_matmul(d):
    a, b = matrices(d)
    rows, columns = per_row(d, a), per_column(d, b)
    y_zero = zero_like(d, byte_tensor(d, (), "T3"))
    scales = d.dtype("TS") if d.opset >= 21 else DTYPES["float"]
    by = [power_of_two(d, *own).astype(scales) for own in ((rows,), (columns,), ((), 1, 12))]
    inputs = [a, by[0], zero_like(d, a, rows), b, by[1], zero_like(d, b, columns), by[2], y_zero]
    return d.sample(inputs, symbolic=False)


def qlinear_matmul_reference(s, a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero):
    product = matmul_integer_reference(s, a, b, a_zero, b_zero) * by_row(a_scale) * b_scale
    return rounded(s, product / y_scale, y_zero.astype(np.float64), y_zero.dtype)


def convolved(d):
    rank = d.choice([1, 2, 2, 3])
    attributes, spatial = window(d, rank)
    group = d.choice([1, 1, 2, 3])
    channels, outputs = group * d.integer(1, 4), group * d.integer(1, 5)
    attributes["group"] = group
    x = byte_tensor(d, [d.choice([1, 2, 0]), channels, *spatial], "T1")
    return attributes, x, byte_tensor(d, [outputs, channels // group, *attributes["kernel_shape"]], "T2")


def conv_integer(d):
    attributes, x, w = convolved(d)
    x_zero = zero_like(d, x) if d.chance(0.6) else None
    w_zero = zero_like(d, w, d.choice([(), (w.shape[0],)])) if d.chance(0.6) else None
    return d.sample([x, w, x_zero, w_zero], attributes=attributes, symbolic=False)


def by_channel(w, zero):
    return None if zero is None else zero.reshape([-1, *[1] * (w.ndim - 1)]) if zero.size > 1 else zero.reshape(())


def conv_reference(s, x, w, x_zero=None, w_zero=None):
    x = centred(x, x_zero).astype(np.float64)
    return windows.conv(s.attributes, x, centred(w, by_channel(w, w_zero)).astype(np.float64))


def qlinear_conv(d):
    attributes, x, w = convolved(d)
    own = d.choice([(), (w.shape[0],)])
    bias = d.array([w.shape[0]], np.dtype(np.int32), -900, 900) if d.chance(0.5) else None
    inputs = [x, power_of_two(d), zero_like(d, x), w, power_of_two(d, own), zero_like(d, w, own)]
    inputs += [power_of_two(d, (), 1, 12), zero_like(d, byte_tensor(d, (), "T3")), bias]
    return d.sample(inputs, attributes=attributes, symbolic=False)


def qlinear_conv_reference(s, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias=None):
    y = conv_reference(s, x, w, x_zero, w_zero)
    column = [-1, *[1] * (y.ndim - 2)]
    y = y if bias is None else y + bias.reshape(column)
    scale = x_scale * (w_scale.reshape(column) if w_scale.size > 1 else w_scale.reshape(()))
    return rounded(s, y * scale / y_scale, y_zero.astype(np.float64), y_zero.dtype)


GENERATORS = {
    "Cast": cast, "CastLike": cast_like, "BitCast": bit_cast, "QuantizeLinear": quantize_linear,
    "DequantizeLinear": dequantize_linear, "DynamicQuantizeLinear": dynamic_quantize_linear,
    "MatMulInteger": matmul_integer, "QLinearMatMul": qlinear_matmul, "ConvInteger": conv_integer,
    "QLinearConv": qlinear_conv,
}  # fmt: skip

WIDE = "float64 inputs are not among its types"
OWN = {
    "Cast": ("raises where an attribute is left out", lambda s, x: converted(s, x, to_of(s))),
    "CastLike": ("raises where an attribute is left out", lambda s, x, other: converted(s, x, s.dtypes[1])),
    "BitCast": ("bits are those of the sample's own dtype", bit_cast_reference),
    "QuantizeLinear": (WIDE, quantize_reference), "DequantizeLinear": (WIDE, dequantize_reference),
    "DynamicQuantizeLinear": (WIDE, dynamic_quantize_reference),
    "MatMulInteger": ("knows no zero points of one row or column", matmul_integer_reference),
    "QLinearMatMul": ("rounds after the zero point is added", qlinear_matmul_reference),
    "ConvInteger": ("lacks ranks and some pads", conv_reference),
    "QLinearConv": ("rounds after the zero point is added", qlinear_conv_reference),
}  # fmt: skip


def to_of(s):
    return helper.tensor_dtype_to_np_dtype(s.attributes["to"])
