"""ONNX graphs as functions of JAX: the operators of the benchmarks' lines. What is constant in the graph is constant
for XLA, and what shapes are made of stays NumPy's."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from onnx import helper, numpy_helper


def _spatial(a, x):
    """Strides, dilations and pads ((begin, end), …) of the axes behind the channels."""
    count = x.ndim - 2
    pads = a.get("pads", [0] * 2 * count)
    ones = [1] * count
    return a.get("strides", ones), a.get("dilations", ones), list(zip(pads[:count], pads[count:]))


def conv(a, x, w, b=None):
    strides, dilations, pads = _spatial(a, x)
    y = lax.conv_general_dilated(x, w, strides, pads, rhs_dilation=dilations, feature_group_count=a.get("group", 1))
    return y if b is None else y + b.reshape(1, -1, *[1] * (x.ndim - 2))


def conv_transpose(a, x, w, b=None):
    """A convolution of the input with zeros between its elements, by the kernel turned around."""
    assert a.get("group", 1) == 1
    strides, dilations, pads = _spatial(a, x)
    axes = tuple(range(2, x.ndim))
    more = a.get("output_padding", [0] * len(axes))
    reach = [(w.shape[axis] - 1) * d for axis, d in zip(axes, dilations)]
    around = [(r - begin, r - end + m) for r, (begin, end), m in zip(reach, pads, more)]
    y = lax.conv_general_dilated(x, np.flip(w, axes).swapaxes(0, 1), [1] * len(axes), around, lhs_dilation=strides,
                                 rhs_dilation=dilations)  # fmt: skip
    return y if b is None else y + b.reshape(1, -1, *[1] * len(axes))


def _windows(a, x, start, function):
    assert not a.get("ceil_mode", 0)
    strides, dilations, pads = _spatial(a, x)
    return lax.reduce_window(x, start, function, (1, 1, *a["kernel_shape"]), (1, 1, *strides), [(0, 0)] * 2 + pads,
                             window_dilation=(1, 1, *dilations))  # fmt: skip


def max_pool(a, x):
    return _windows(a, x, -jnp.inf, lax.max)


def average_pool(a, x):
    total = _windows(a, x, 0.0, lax.add)
    if a.get("count_include_pad", 0):
        return total / np.prod(a["kernel_shape"])
    return total / _windows(a, jnp.ones_like(x[:1, :1]), 0.0, lax.add)


def batch_norm(a, x, scale, bias, mean, variance):
    shape = (1, -1, *[1] * (x.ndim - 2))
    factor = scale / np.sqrt(variance + np.float32(a.get("epsilon", 1e-5)))
    return x * factor.reshape(shape) + (bias - mean * factor).reshape(shape)


def layer_norm(a, x, scale, bias=None):
    axes = tuple(range(a.get("axis", -1) % x.ndim, x.ndim))
    centred = x - x.mean(axes, keepdims=True)
    y = centred * lax.rsqrt((centred * centred).mean(axes, keepdims=True) + a.get("epsilon", 1e-5)) * scale
    return y if bias is None else y + bias


def gemm(a, x, w, b=None):
    y = (x.T if a.get("transA") else x) @ (w.T if a.get("transB") else w) * a.get("alpha", 1.0)
    return y if b is None else y + a.get("beta", 1.0) * b


def resize(a, x, region, scales, sizes=None):
    mode = a.get("coordinate_transformation_mode", b"half_pixel")
    shape = [round(n * s) for n, s in zip(x.shape, scales.tolist())] if sizes is None else sizes.tolist()
    if a["mode"] == b"nearest":
        assert mode == b"asymmetric" and a.get("nearest_mode") == b"floor"
        for axis, (size, scale) in enumerate(zip(shape, scales.tolist())):
            if scale != 1:
                x = jnp.take(x, np.floor(np.arange(size) / scale).astype(np.int32), axis)
        return x
    assert mode == b"half_pixel" and a["mode"] == b"linear"
    return jax.image.resize(x, shape, "linear", antialias=False)


def recurrent(gates, step):
    """A cell as a scan over the length; its input's product is done for all steps at once."""

    def run(a, x, w, r, b=None, lengths=None, state=None, cell=None):
        assert lengths is None and "activations" not in a and not a.get("layout", 0)
        hidden, ways, results = a["hidden_size"], w.shape[0], []
        b = np.zeros((ways, 2 * gates * hidden), np.float32) if b is None else b
        zero = jnp.zeros((ways, x.shape[1], hidden), x.dtype)
        state, cell = (zero if value is None else value for value in (state, cell))
        backward = a.get("direction", b"forward") == b"reverse"
        for way in range(ways):
            known, inner = np.split(b[way], 2)
            fed = jnp.einsum("lbi,gi->lbg", x, w[way]) + known

            def turn(carry, part, way=way, inner=inner):
                return step(a, carry, part, r[way], inner)

            results.append(lax.scan(turn, (state[way], cell[way]), fed, reverse=backward or way == 1))
        y = jnp.stack([outputs for _, outputs in results], 1)
        return (y, *(jnp.stack(last) for last in zip(*(carry for carry, _ in results))))

    return run


def lstm_step(a, carry, fed, r, b):
    before, cell = carry
    i, o, f, c = jnp.split(fed + before @ r.T + b, 4, -1)
    cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(c)
    after = jax.nn.sigmoid(o) * jnp.tanh(cell)
    return (after, cell), after


def gru_step(a, carry, fed, r, b):
    assert a.get("linear_before_reset", 0)
    before, cell = carry
    (z, s, h), (rz, rs, rh) = (jnp.split(part, 3, -1) for part in (fed, before @ r.T + b))
    update = jax.nn.sigmoid(z + rz)
    after = (1 - update) * jnp.tanh(h + jax.nn.sigmoid(s + rs) * rh) + update * before
    return (after, cell), after


def reduce_by(function):
    def reduce(a, x, axes=None):
        axes = a.get("axes") if axes is None else np.ravel(axes).tolist()
        return function(x, tuple(axes) if axes else None, keepdims=bool(a.get("keepdims", 1)))

    return reduce


def _is_known(*values):
    return all(value is None or isinstance(value, np.ndarray) for value in values)


def gather(a, x, indices):
    return (np if _is_known(x, indices) else jnp).take(x, indices, a.get("axis", 0))


def concat(a, *xs):
    return (np if _is_known(*xs) else jnp).concatenate(xs, a["axis"])


def unsqueeze(a, x, axes=None):
    axes = tuple(a["axes"] if axes is None else axes.tolist())
    return np.expand_dims(x, axes) if _is_known(x) else jnp.expand_dims(x, axes)


def cut(a, x, begins, ends, axes=None, steps=None):
    axes = range(len(begins)) if axes is None else axes.tolist()
    steps = [1] * len(begins) if steps is None else steps.tolist()
    index = [slice(None)] * x.ndim
    for axis, *part in zip(axes, begins.tolist(), ends.tolist(), steps):
        index[axis] = slice(*part)
    return x[tuple(index)]


def split(a, x, sizes):
    return tuple(jnp.split(x, np.cumsum(sizes)[:-1].tolist(), a.get("axis", 0)))


def reshape(a, x, shape):
    return x.reshape([x.shape[i] if d == 0 else d for i, d in enumerate(shape.tolist())])


def flatten(a, x):
    axis = a.get("axis", 1)
    return x.reshape(int(np.prod(x.shape[:axis])), -1)


OPERATORS = {
    "Abs": lambda a, x: abs(x),
    "Add": lambda a, x, y: x + y,
    "AveragePool": average_pool,
    "BatchNormalization": batch_norm,
    "Cast": lambda a, x: x.astype(helper.tensor_dtype_to_np_dtype(a["to"])),
    "Clip": lambda a, x, low=None, high=None: jnp.clip(x, low, high),
    "Concat": concat,
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "Div": lambda a, x, y: x / y,
    "Erf": lambda a, x: jax.scipy.special.erf(x),
    "Exp": lambda a, x: jnp.exp(x),
    "Expand": lambda a, x, shape: x * jnp.ones(shape.tolist(), x.dtype),
    "Flatten": flatten,
    "GRU": recurrent(3, gru_step),
    "Gather": gather,
    "Gelu": lambda a, x: jax.nn.gelu(x, approximate=a.get("approximate", b"none") == b"tanh"),
    "Gemm": gemm,
    "GlobalAveragePool": lambda a, x: x.mean(tuple(range(2, x.ndim)), keepdims=True),
    "Identity": lambda a, x: x,
    "LSTM": recurrent(4, lstm_step),
    "LayerNormalization": layer_norm,
    "MatMul": lambda a, x, y: x @ y,
    "MaxPool": max_pool,
    "Mul": lambda a, x, y: x * y,
    "Neg": lambda a, x: -x,
    "Pow": lambda a, x, y: x**y,
    "ReduceMax": reduce_by(jnp.max),
    "ReduceMean": reduce_by(jnp.mean),
    "ReduceSum": reduce_by(jnp.sum),
    "Relu": lambda a, x: jax.nn.relu(x),
    "Reshape": reshape,
    "Resize": resize,
    "Shape": lambda a, x: np.array(x.shape),
    "Sigmoid": lambda a, x: jax.nn.sigmoid(x),
    "Slice": cut,
    "Softmax": lambda a, x: jax.nn.softmax(x, a.get("axis", -1)),
    "Split": split,
    "Sqrt": lambda a, x: jnp.sqrt(x),
    "Sub": lambda a, x, y: x - y,
    "Tanh": lambda a, x: jnp.tanh(x),
    "Transpose": lambda a, x: x.transpose(a["perm"]),
    "Unsqueeze": unsqueeze,
}


class JaxModel:
    """The graph as a function of the tensors named `inputs`, in that order, giving a list."""

    def __init__(self, model):
        self.constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        missing = {node.op_type for node in model.graph.node} - OPERATORS.keys()
        if missing:
            raise NotImplementedError(f"{sorted(missing)[0]} has no row among JAX's operators")
        self.nodes = [
            (OPERATORS[node.op_type], {a.name: helper.get_attribute_value(a) for a in node.attribute},
             list(node.input), list(node.output))
            for node in model.graph.node
        ]  # fmt: skip
        self.inputs = [value.name for value in model.graph.input if value.name not in self.constants]
        self.outputs = [value.name for value in model.graph.output]

    def __call__(self, *inputs):
        values = {"": None} | self.constants | dict(zip(self.inputs, inputs))
        for operator, attributes, operands, outputs in self.nodes:
            result = operator(attributes, *(values[name] for name in operands))
            values.update(zip(outputs, result if isinstance(result, tuple) else (result,)))
        return [values[name] for name in self.outputs]
