"""Lines of one operator, or of a few that belong together: GROUPS has for each group a generator of (name, make)."""

from functools import partial

import numpy as np
from onnx import TensorProto

from bench.convolutions import convolutions
from tests.models.builder import ModelBuilder
from tests.models.recurrent import cell, cell_weights

# m, k, n: square, skinny, matrix-vector, and sizes that no vector width divides.
PRODUCTS = [
    (64, 64, 64), (128, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048),
    (1, 768, 768), (1, 1024, 4096), (1, 4096, 1024), (4, 1024, 1024), (8, 768, 3072), (16, 1024, 1024),
    (16, 768, 3072), (32, 512, 2048), (128, 768, 768), (128, 768, 3072), (128, 3072, 768), (512, 64, 512),
    (4096, 64, 64), (64, 4096, 64), (3136, 64, 256), (49, 2048, 512), (97, 101, 103), (513, 257, 129),
    (1000, 1000, 1000), (255, 1023, 511), (1, 2048, 1000), (2, 2048, 2048), (197, 768, 2304), (31, 63, 4097),
]  # fmt: skip


def product(m, k, n, constant):
    builder = ModelBuilder("product", seed=m + 3 * k + 7 * n)
    a = builder.input("a", [m, k])
    b = builder.normal((k, n), np.sqrt(1 / k)) if constant else builder.input("b", [k, n])
    builder.output(builder.node("MatMul", a, b), "y", [m, n])
    return builder.build()


def transposed_product(m, k, n, transA, transB):
    builder = ModelBuilder("gemm", seed=m + 3 * k + 7 * n)
    a = builder.input("a", [k, m] if transA else [m, k])
    b = builder.normal((n, k) if transB else (k, n), np.sqrt(1 / k))
    builder.output(builder.node("Gemm", a, b, transA=transA, transB=transB), "y", [m, n])
    return builder.build()


def batched_product(batch, m, k, n):
    builder = ModelBuilder("batched", seed=m)
    a, b = builder.input("a", [batch, m, k]), builder.input("b", [batch, k, n])
    builder.output(builder.node("MatMul", a, b), "y", [batch, m, n])
    return builder.build()


def one_operator(kind, shape, output, **attributes):
    builder = ModelBuilder(kind.lower(), seed=len(shape))
    builder.output(builder.node(kind, builder.input("x", shape), **attributes), "y", output)
    return builder.build()


def reduction(kind, shape, axes):
    """Over all axes where `axes` has all of them, as exporters write it: without naming them."""
    output = [size for axis, size in enumerate(shape) if axis not in axes]
    builder = ModelBuilder(kind.lower(), seed=sum(axes))
    x, named = builder.input("x", shape), bool(output)
    if kind == "ReduceSum":
        y = builder.node(kind, x, *([builder.integers(*axes)] if named else []), keepdims=0)
    else:
        y = builder.node(kind, x, **({"axes": list(axes)} if named else {}), keepdims=0)
    builder.output(y, "y", output)
    return builder.build()


def arg_max(shape, axis):
    builder = ModelBuilder("arg_max", seed=len(shape))
    y = builder.node("ArgMax", builder.input("x", shape), axis=axis, keepdims=0)
    builder.output(y, "y", shape[:axis] + shape[axis + 1 :], TensorProto.INT64)
    return builder.build()


def instance_norm(channels, height, width):
    builder = ModelBuilder("instance_norm", seed=channels)
    shape = [1, channels, height, width]
    parameters = [builder.normal((channels,), 1.0), builder.normal((channels,), 1.0)]
    builder.output(builder.node("InstanceNormalization", builder.input("x", shape), *parameters), "y", shape)
    return builder.build()


def layer_norm(rows, features):
    builder = ModelBuilder("layer_norm", seed=features)
    builder.output(builder.layer_norm(builder.input("x", [rows, features]), features), "y", [rows, features])
    return builder.build()


def chain(shape):
    """A chain of elementwise operators with a second operand that is broadcast."""
    builder = ModelBuilder("chain", seed=1)
    x = builder.input("x", shape)
    y = builder.node("Mul", builder.node("Sigmoid", x), x)
    y = builder.node("Add", y, builder.normal(shape[-1:], 0.5))
    y = builder.node("Mul", builder.node("Tanh", y), builder.node("Exp", builder.node("Neg", builder.node("Abs", x))))
    builder.output(y, "y", shape)
    return builder.build()


def cheap_chain(shape, steps):
    """Additions and products by rows and scalars that keep the values of the order of one: nothing but memory, unless
    they are done together."""
    builder = ModelBuilder("cheap_chain", seed=steps)
    x = builder.input("x", shape)
    y = x
    for step in range(steps):
        if step % 4 == 0:
            y = builder.node("Add", y, builder.normal(shape[-1:], 0.3))
        elif step % 4 == 1:
            y = builder.node("Relu", y)
        elif step % 4 == 2:
            y = builder.node("Mul", y, builder.uniform(shape[-1:], 0.4, 0.9))
        else:
            y = builder.node("Sub", x, y)
    builder.output(y, "y", shape)
    return builder.build()


def resize(channels, height, width, mode):
    """Twice the height and width, in the two forms that PyTorch's Upsample is exported in."""
    builder = ModelBuilder("resize", seed=channels)
    forms = {
        "nearest": {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        "linear": {"coordinate_transformation_mode": "half_pixel"},
    }
    scales = builder.weight(np.array([1, 1, 2, 2], np.float32))
    y = builder.node("Resize", builder.input("x", [1, channels, height, width]), "", scales, mode=mode, **forms[mode])
    builder.output(y, "y", [1, channels, 2 * height, 2 * width])
    return builder.build()


def gather(table_rows, features, count):
    """Rows of a constant table, anywhere in it."""
    builder = ModelBuilder("gather", seed=features)
    table = builder.normal((table_rows, features), 1.0)
    rows = builder.input("rows", [1, count], TensorProto.INT64)
    builder.output(builder.node("Gather", table, rows), "y", [1, count, features])
    return builder.build()


def recurrent(kind, length, batch, inputs, hidden, direction="forward"):
    """One layer from a zero state; the reset of a GRU behind the product, as PyTorch has it."""
    builder = ModelBuilder(kind.lower(), seed=hidden)
    gates, ways = {"LSTM": 4, "GRU": 3}[kind], 2 if direction == "bidirectional" else 1
    form = {"linear_before_reset": 1} if kind == "GRU" else {}
    weights = cell_weights(builder, gates, inputs, hidden, ways)
    y = cell(builder, kind, builder.input("x", [length, batch, inputs]), weights, 2, hidden_size=hidden,
             direction=direction, **form)[0]  # fmt: skip
    builder.output(y, "y", [length, ways, batch, hidden])
    return builder.build()


def attention(heads, length, depth):
    builder = ModelBuilder("attention", seed=length)
    query, key, value = (builder.input(name, [1, heads, length, depth]) for name in ("q", "k", "v"))
    scores = builder.node("MatMul", query, builder.node("Transpose", key, perm=[0, 1, 3, 2]))
    scores = builder.node("Softmax", builder.node("Mul", scores, builder.scalar(depth**-0.5)), axis=-1)
    builder.output(builder.node("MatMul", scores, value), "y", [1, heads, length, depth])
    return builder.build()


def narrow_mlp(layers, width):
    builder = ModelBuilder("narrow_mlp", seed=2)
    x = builder.input("x", [1, width])
    for _ in range(layers):
        x = builder.node("Relu", builder.gemm(x, width, width))
    builder.output(x, "y", [1, width])
    return builder.build()


def _products():
    for m, k, n in PRODUCTS:
        yield f"matmul-{m}x{k}x{n}", partial(product, m, k, n, constant=True)
    for m, k, n in PRODUCTS[2:6:2] + PRODUCTS[14:15]:
        yield f"matmul-{m}x{k}x{n}-input", partial(product, m, k, n, constant=False)
    for a, b in ((1, 0), (0, 1), (1, 1)):
        yield f"gemm-512-t{a}{b}", partial(transposed_product, 512, 512, 512, a, b)
    yield "matmul-12x128x64x128", partial(batched_product, 12, 128, 64, 128)
    yield "matmul-12x1x64x257", partial(batched_product, 12, 1, 64, 257)


def _rows():
    for rows, features in ((128, 768), (4096, 64), (16, 16384), (1536, 128), (97, 1031)):
        shape, size = [rows, features], f"{rows}x{features}"
        yield f"softmax-{size}", partial(one_operator, "Softmax", shape, shape, axis=-1)
        yield f"layer_norm-{size}", partial(layer_norm, rows, features)
    for axis in range(3):
        yield f"sum-axis{axis}", partial(reduction, "ReduceSum", [128, 96, 160], [axis])
        yield f"max-axis{axis}", partial(reduction, "ReduceMax", [128, 96, 160], [axis])
    for axes in ([0, 1], [0, 2], [1, 2]):
        yield f"sum-axes{axes[0]}{axes[1]}", partial(reduction, "ReduceSum", [128, 96, 160], axes)
    yield "sum-all", partial(reduction, "ReduceSum", [128, 96, 160], [0, 1, 2])
    yield "mean-all", partial(reduction, "ReduceMean", [128, 96, 160], [0, 1, 2])
    for axis in range(2):
        yield f"sum-rank2-axis{axis}", partial(reduction, "ReduceSum", [1000, 1031], [axis])
        yield f"max-rank2-axis{axis}", partial(reduction, "ReduceMax", [1000, 1031], [axis])


    # Along an axis that is not the last.
    for name, shape in (("channels", [1, 21, 256, 256]), ("middle", [8, 197, 64])):
        yield f"softmax-{name}", partial(one_operator, "Softmax", shape, shape, axis=1)
        yield f"arg_max-{name}", partial(arg_max, shape, 1)
    yield "arg_max-512x1000", partial(arg_max, [512, 1000], 1)
    yield "instance_norm-56", partial(instance_norm, 64, 56, 56)


def _movement():
    for name, shape, perm in (
        ("nchw-nhwc", [8, 64, 56, 56], [0, 2, 3, 1]),
        ("nhwc-nchw", [8, 56, 56, 64], [0, 3, 1, 2]),
        ("heads", [8, 128, 12, 64], [0, 2, 1, 3]),
        ("matrix", [1000, 1031], [1, 0]),
    ):
        yield f"transpose-{name}", partial(one_operator, "Transpose", shape, [shape[p] for p in perm], perm=perm)
    yield "chain-1M", partial(chain, [1024, 1024])
    yield "chain-16K", partial(chain, [64, 256])
    yield "exp-1M", partial(one_operator, "Exp", [1024, 1024], [1024, 1024])
    yield "max_pool-112", partial(one_operator, "MaxPool", [1, 64, 112, 112], [1, 64, 56, 56], kernel_shape=[3, 3],
                                  strides=[2, 2], pads=[1, 1, 1, 1])  # fmt: skip
    yield "average_pool-28", partial(one_operator, "AveragePool", [1, 256, 28, 28], [1, 256, 26, 26],
                                     kernel_shape=[3, 3])  # fmt: skip
    yield "global_pool-7", partial(one_operator, "GlobalAveragePool", [1, 2048, 7, 7], [1, 2048, 1, 1])
    for steps in (2, 24):
        yield f"chain-cheap{steps}-1M", partial(cheap_chain, [1024, 1024], steps)
        yield f"chain-cheap{steps}-16K", partial(cheap_chain, [64, 256], steps)
    for mode in ("nearest", "linear"):
        yield f"resize-{mode}-56", partial(resize, 64, 56, 56, mode)
        yield f"resize-{mode}-160", partial(resize, 3, 160, 120, mode)
    yield "gather-embedding-128x768", partial(gather, 30522, 768, 128)
    yield "gather-rows-4096x64", partial(gather, 100000, 64, 4096)


def _recurrent():
    for kind in ("LSTM", "GRU"):
        name = kind.lower()
        for length, hidden in ((64, 256), (64, 512), (16, 1024)):
            yield f"{name}-{length}x{hidden}", partial(recurrent, kind, length, 1, hidden, hidden)
        yield f"{name}-64x128-b8", partial(recurrent, kind, 64, 8, 96, 128)
        yield f"{name}-64x256-both", partial(recurrent, kind, 64, 1, 256, 256, "bidirectional")


def _attentions():
    for length in (64, 256, 512, 1024, 2048):
        yield f"attention-{length}", partial(attention, 12, length, 64)


GROUPS = {"matmul": _products, "conv": convolutions, "rows": _rows, "movement": _movement, "attention": _attentions,
          "recurrent": _recurrent}  # fmt: skip
