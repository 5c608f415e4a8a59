"""Operators of neural networks on tensors of te."""

from .. import _lathe
from ..names import refuser as _refuser
from .arrange import reshape
from .elementwise import add, cast, greater, multiply, where  # type: ignore[attr-defined]
from .make import state, tensor


def relu(x):
    """max(x, 0), element by element."""
    return tensor(_lathe.topi_unary("relu", state(x)))


def leaky_relu(t, alpha):
    """x where it is positive, else alpha * x."""
    return where(greater(t, 0), t, multiply(t, alpha))


def softmax(x, axis=-1):
    """exp(x) over its sum along an axis."""
    return tensor(_lathe.topi_softmax(state(x), int(axis), False))


def log_softmax(x, axis=-1):
    """The logarithm of softmax."""
    return tensor(_lathe.topi_softmax(state(x), int(axis), True))


def matmul(tensor_a, tensor_b, bias=None, out_dtype=None, transpose_a=False, transpose_b=False):
    """The matrix product of the last two dimensions, plus a bias."""
    if out_dtype is not None:
        tensor_a, tensor_b = cast(tensor_a, out_dtype), cast(tensor_b, out_dtype)
    made = tensor(_lathe.topi_batch_product(state(tensor_a), state(tensor_b), bool(transpose_a), bool(transpose_b)))
    return made if bias is None else add(made, bias)


def batch_matmul(tensor_a, tensor_b, oshape=None, out_dtype=None, transpose_a=False, transpose_b=True):
    """The matrix products of a batch; tensor_b is [batch, n, k] unless transpose_b is False."""
    if oshape is not None:
        raise ValueError("the shape of a product follows from its operands")
    return matmul(tensor_a, tensor_b, None, out_dtype, transpose_a, transpose_b)


def dense(data, weight, bias=None, out_dtype=None):
    """data [batch, in] times weight [out, in], transposed, plus bias [out]."""
    if out_dtype is not None:
        data, weight = cast(data, out_dtype), cast(weight, out_dtype)
    return tensor(_lathe.topi_dense(state(data), state(weight), None if bias is None else state(bias)))


def flatten(data):
    """[batch, the rest in a row]."""
    return reshape(data, [data.shape[0], -1])


def pad(data, pad_before, pad_after=None, pad_value=0.0, name="PadInput"):
    """A tensor with a value before and after each dimension."""
    after = pad_before if pad_after is None else pad_after
    return tensor(_lathe.topi_pad(state(data), list(pad_before), list(after), pad_value))


def _windows(kernel, strides, dilation, padding):
    pair = lambda value: list(value) if isinstance(value, (tuple, list)) else [value, value]  # noqa: E731
    strides, dilation, padding = pair(strides), pair(dilation), pair(padding)
    before, after = (padding, padding) if len(padding) == 2 else (padding[:2], padding[2:])
    rows = zip(pair(kernel), strides, dilation, before, after)
    return [[int(number) for number in row] for row in rows]


def conv2d(data, kernel, strides=1, padding=0, dilation=1, data_layout="NCHW", kernel_layout="", out_dtype=None,
           groups=1):  # fmt: skip
    """A convolution: data [n, c, h, w] (or NHWC), kernel [out, in / groups, kh, kw]."""
    if data_layout not in ("NCHW", "NHWC") or kernel_layout not in ("", "OIHW"):
        raise ValueError(f"layouts are NCHW or NHWC, with OIHW, not {data_layout} with {kernel_layout}")
    if out_dtype is not None:
        data, kernel = cast(data, out_dtype), cast(kernel, out_dtype)
    windows = _windows([int(size) for size in kernel.shape[2:]], strides, dilation, padding)
    return tensor(_lathe.topi_conv2d(state(data), state(kernel), windows, data_layout == "NHWC", int(groups)))


def conv2d_nchw(Input, Filter, stride, padding, dilation, out_dtype=None):  # noqa: N803 - the vocabulary's names
    """A convolution in NCHW."""
    return conv2d(Input, Filter, stride, padding, dilation, "NCHW", out_dtype=out_dtype)


def pool2d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout="NCHW",
           count_include_pad=True):  # fmt: skip
    """The largest ("max") or mean ("avg") element of windows; padding is (top, left, bottom, right)."""
    if pool_type not in ("max", "avg") or layout not in ("NCHW", "NHWC") or ceil_mode:
        raise ValueError("pools are max or avg, NCHW or NHWC, without ceil_mode")
    windows = _windows(list(kernel), stride, dilation, list(padding))
    return tensor(_lathe.topi_pool2d(pool_type, state(data), windows, layout == "NHWC", bool(count_include_pad)))


__getattr__ = _refuser("topi.nn", globals())
__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in ("state", "tensor"))
