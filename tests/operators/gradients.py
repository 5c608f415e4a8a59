"""Gradients of operators: how one is checked, and which operators have none, with the reason."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.operators.sample import DTYPES, LAST_OPSET, domain_of, is_float

# What stands in the table of operators without a gradient. The reasons:
_NO_FLOATS = "it takes no floats, or gives none"
_RANDOM = "it draws at random"
_TEXTS = "it looks things up, or reads strings or files: its steps have no slope"
_VALUES = "no gradient goes through sequences and optionals yet"

NO_GRADIENT = {
    **dict.fromkeys(
        """And Or Xor Not Equal Greater GreaterOrEqual Less LessOrEqual IsInf IsNaN ArgMax ArgMin NonZero Shape Size
        BitShift BitwiseAnd BitwiseOr BitwiseXor BitwiseNot MatMulInteger ConvInteger QLinearMatMul QLinearConv
        QuantizeLinear NonMaxSuppression Constant ConstantOfShape EyeLike OneHot BlackmanWindow HammingWindow HannWindow
        MelWeightMatrix BitCast""".split(),
        _NO_FLOATS,
    ),
    **dict.fromkeys(
        "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial".split(), _RANDOM
    ),
    **dict.fromkeys(
        """StringConcat StringSplit StringNormalizer RegexFullMatch LabelEncoder CategoryMapper TfIdfVectorizer
        TreeEnsemble Binarizer ImageDecoder""".split(),
        _TEXTS,
    ),
    **dict.fromkeys(
        """SequenceEmpty SequenceConstruct SequenceInsert SequenceErase SequenceAt SequenceLength ConcatFromSequence
        SplitToSequence SequenceMap Optional OptionalHasElement OptionalGetElement""".split(),
        _VALUES,
    ),
}  # fmt: skip

# Samples of operators that have gradients elsewhere: which, and why these have none.
PARTLY_NONE = {
    "RoiAlign": (
        lambda sample: sample.attributes.get("mode") == "max" and sample.attributes.get("sampling_ratio", 0) == 0,
        "a maximum over as many points as the region's size says is a loop over data that overwrites what is needed",
    ),
}

# The steps of central differences and how close gradients come, by the type that all is computed in.
STEPS = {np.dtype(np.float64): 1e-5, np.dtype(np.float32): 3e-3}
CLOSE = {np.dtype(np.float64): 1e-5, np.dtype(np.float32): 5e-3}


def float_of(feeds):
    """The type that gradients are computed in: float64 but for operators that the specification has no float64 of."""
    return np.dtype(np.float64 if any(x.dtype == np.float64 for x in feeds.values()) else np.float32)


def untyped_model(nodes, feeds, constants, outputs, opset, domain=""):
    """A model of float64 wherever a sample has floats, whatever types the specification lists."""
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in feeds.items()
    ]
    initializers = [numpy_helper.from_array(x, name) for name, x in constants.items()]
    values = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "gradient", inputs, values, initializers)
    opsets = [helper.make_opsetid("", LAST_OPSET if domain else opset)]
    if domain:
        opsets.append(helper.make_opsetid(domain, opset))
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 10
    return model


def model_of(sample):
    """The model of a widened sample, and what it is fed."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(sample.inputs)]
    while names and not names[-1]:
        names.pop()
    outputs = [f"y{i}" for i in range(sample.outputs)]
    domain = domain_of(sample.op)
    node = helper.make_node(
        sample.op, names, outputs, name=f"{sample.op}_under_test", domain=domain, **sample.attributes
    )
    given = {names[i]: x for i, x in enumerate(sample.inputs) if x is not None}
    constants = {f"x{i}": given[f"x{i}"] for i in sample.constants if f"x{i}" in given}
    feeds = {name: x for name, x in given.items() if name not in constants}
    return untyped_model([node], feeds, constants, outputs, sample.opset, domain), feeds


def results(lathe, module, feeds):
    found = lathe.compile(module)(*feeds.values())
    return [np.asarray(y) for y in (found if isinstance(found, (list, tuple)) else [found])]


def with_loss(model, ys, rng):
    """The model with one result: its floats, weighted at random and summed up. None where it has none."""
    graph, parts, kind = model.graph, [], float_of(dict(enumerate(ys)))
    for value, y in zip(list(graph.output), ys, strict=True):
        if y.dtype != kind:
            continue
        name = value.name
        weights = rng.uniform(0.5, 1.5, y.shape) * rng.choice([-1.0, 1.0], y.shape)
        graph.initializer.append(numpy_helper.from_array(np.asarray(weights, kind), f"weights_{name}"))
        graph.node.append(helper.make_node("Mul", [name, f"weights_{name}"], [f"weighted_{name}"]))
        graph.node.append(helper.make_node("ReduceSum", [f"weighted_{name}"], [f"sum_{name}"], keepdims=0))
        parts.append(f"sum_{name}")
    if not parts:
        return None
    graph.node.append(helper.make_node("Sum", parts, ["loss"]))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("loss", helper.np_dtype_to_tensor_dtype(kind), []))
    return model


def off_the_grid(x, step, rng):
    """Floats moved by some steps: samples of narrow floats lie on kinks more often than chance has it."""
    return (x + rng.uniform(10 * step, 100 * step, x.shape)).astype(x.dtype) if x.dtype in STEPS else x


def check_along(lathe, program, feeds, names, kind, rng, directions=2):
    """How far gradients are from central differences along random directions, as parts of what is allowed, and how
    many directions are smooth."""
    exe = lathe.compile(program)
    gradients = [np.asarray(g) for g in exe(*feeds.values())[1:]]
    assert [g.shape for g in gradients] == [feeds[name].shape for name in names]
    worst, smooth = 0.0, 0
    for _ in range(directions):
        ways = {name: rng.normal(size=feeds[name].shape) for name in names}

        def loss(step, ways=ways):
            moved = {name: x + (step * ways[name]).astype(x.dtype) if name in ways else x for name, x in feeds.items()}
            return float(np.asarray(exe(*moved.values())[0]))

        step = STEPS[kind]
        slopes = [(loss(s) - loss(-s)) / (2 * s) for s in (step, step / 3)]
        sides = [(loss(s) - loss(0)) / s for s in (step / 3, -step / 3)]
        products = [g * ways[name] for g, name in zip(gradients, names, strict=True)]
        along, scale = sum(float(p.sum()) for p in products), 1 + sum(float(np.abs(p).sum()) for p in products)
        # Where the steps or the sides disagree, a kink lies between; where there is no number, there is no slope.
        apart = max(abs(slopes[0] - slopes[1]), abs(sides[0] - sides[1]))
        if not np.isfinite(slopes + sides).all() or apart > CLOSE[kind] * scale:
            continue
        smooth += 1
        worst = max(worst, abs(along - slopes[0]) / scale)
    return worst / CLOSE[kind], smooth


def check_model(lathe, model, feeds, rng):
    """What check_along says, or None without floats to differentiate."""
    names = [name for name, x in feeds.items() if x.dtype == float_of(feeds)]
    if not names:
        return None
    ys = results(lathe, model, feeds)
    coarsest = min(float_of(feeds), float_of(dict(enumerate(ys))), key=lambda dtype: dtype.itemsize)
    feeds = {name: off_the_grid(x, STEPS[coarsest], rng) for name, x in feeds.items()}
    model = with_loss(model, results(lathe, model, feeds), rng)  # extents may depend on the values
    if model is None:
        return None
    return check_along(lathe, lathe.relax.gradient(model, names), feeds, names, coarsest, rng)


def in_float32(sample):
    """The sample as it is widened, but to float32: for operators that know no float64."""
    narrowed = sample.widened()
    wide = [x is not None and x.dtype in (np.float16, np.float32, DTYPES["bfloat16"]) for x in sample.inputs]
    narrowed.inputs = [x.astype(np.float32) if is_wide else x for x, is_wide in zip(sample.inputs, wide, strict=True)]
    return narrowed


def check_sample(lathe, sample, rng):
    if not any(x is not None and is_float(x.dtype) for x in sample.inputs):
        return None
    try:
        return check_model(lathe, *model_of(sample.widened()), rng)
    except lathe.ModelError:
        return check_model(lathe, *model_of(in_float32(sample)), rng)
