"""Samples of normalisations that have no room elsewhere, of losses, and what they must answer."""

import ml_dtypes
import numpy as np

from tests.operators.sample import PLAIN

SINGLE = float(np.float32(1e-5))


def channels_first(d, low=0, high=3, channels=None):
    c = d.integer(1, 7) if channels is None else channels
    return [d.choice([1, 2, 3]), c, *d.shape(low, high, zero=0, elements=500)]


def epsilon(d):
    return {"epsilon": 1e-3} if d.chance(0.5) else {}


def parameters(d):
    return {1, 2} if d.chance(0.6) else set()


def instance_normalization(d):
    """At least four values are normalised together: of one, nothing but rounding is left."""
    dtype, shape = d.dtype(), channels_first(d, 1)
    shape[2] += 3
    inputs = [d.array(shape, dtype), *(d.array(shape[1:2], dtype) for _ in range(2))]
    return d.sample(inputs, attributes=epsilon(d), constants=parameters(d), terms=8)


def group_normalization(d):
    dtype, groups = d.dtype(), d.choice([1, 2, 3])
    shape = channels_first(d, 1, channels=groups * d.integer(1, 3))
    shape[2] += 3
    of = groups if d.opset < 21 else shape[1]
    inputs = [d.array(shape, dtype), *(d.array([of], dtype) for _ in range(2))]
    s = d.sample(inputs, attributes={"num_groups": groups, **epsilon(d)}, constants=parameters(d), terms=8)
    s.symbolic.pop((0, 1), None)
    return s


def rms_normalization(d):
    shape = d.shape(1, 4, zero=0)
    axis = d.axis(len(shape))
    attributes = {"axis": axis} if d.chance(0.7) or axis % len(shape) != len(shape) - 1 else {}
    scale = d.array(d.broadcast(shape[axis % len(shape) :]), d.dtype("V"))
    x = d.array(shape, d.dtype("T"))
    attributes |= epsilon(d)
    coarsest = max((x.dtype, scale.dtype, np.dtype(np.float32)), key=lambda t: ml_dtypes.finfo(t).eps)
    s = d.sample([x, scale], attributes=attributes, terms=8, symbolic=False, types=[scale.dtype])
    s.coarsest = coarsest
    return s


def mean_variance(d):
    x = d.array(d.shape(4, 4, zero=0, elements=1500), d.dtype())
    x = x if min(x.shape[0], x.shape[2]) > 1 else d.array([3, *x.shape[1:]], x.dtype)
    attributes = {"axes": sorted(int(a) for a in d.rng.permutation(4)[:3])} if d.chance(0.5) else {}
    attributes = {} if attributes and 0 not in attributes["axes"] else attributes
    return d.sample([x], attributes=attributes, terms=16, types=[x.dtype])


def lp_normalization(d):
    x = d.array(d.shape(1, 4), d.dtype(), 0.1, 3)
    x = np.where(d.rng.random(x.shape) < 0.5, x, -x).astype(x.dtype)
    attributes = {"axis": d.axis(x.ndim)} if d.chance(0.7) else {}
    if d.chance(0.7):
        attributes["p"] = d.integer(1, 2)
    return d.sample([x], attributes=attributes, terms=4)


def local_response(d):
    x = d.array(channels_first(d, 0, 3), d.dtype())
    attributes = {"size": d.integer(1, 6)}
    for name, low, high in (("alpha", 0.001, 0.5), ("beta", 0.3, 1.2), ("bias", 0.5, 2)):
        if d.chance(0.6):
            attributes[name] = float(np.float32(d.rng.uniform(low, high)))
    return d.sample([x], attributes=attributes, terms=4)


def loss(d):
    """Classes of all elements but a few that are ignored; the sum of their weights is not zero."""
    dtype, classes = d.dtype(), d.integer(2, 6)
    shape = [d.integer(1, 3), classes, *d.shape(0, 2, zero=0, elements=100)]
    x = d.array(shape, dtype, -2, 2)
    of = d.rng.integers(0, classes, [shape[0], *shape[2:]]).astype(d.dtype("Tind"))
    attributes = {"reduction": d.choice(["none", "sum", "mean"])} if d.chance(0.7) else {}
    if d.chance(0.5):
        attributes["ignore_index"] = d.choice([0, classes - 1, -1, 100])
        if of.size > 1:
            of.flat[1] = attributes["ignore_index"]
        of.flat[0] = classes // 2
    weight = d.array([classes], dtype, 0.5, 2) if d.chance(0.5) else None
    outputs = d.integer(1, 2) if d.op == "SoftmaxCrossEntropyLoss" else 1
    return d.sample([x, of, weight], attributes=attributes, outputs=outputs, terms=max(of.size, 8), symbolic=False)


# What they must answer.


def column(parameter, rank):
    return parameter.reshape(-1, *[1] * (rank - 2))


def standardized(x, axes, small):
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(axes, keepdims=True) + small)


def by_instance(s, x, scale, bias):
    y = standardized(x, tuple(range(2, x.ndim)), s.attributes.get("epsilon", SINGLE))
    return y * column(scale, x.ndim) + column(bias, x.ndim)


def by_group(s, x, scale, bias):
    groups = s.attributes["num_groups"]
    y = standardized(x.reshape(x.shape[0], groups, -1), (2,), s.attributes.get("epsilon", SINGLE)).reshape(x.shape)
    each = x.shape[1] // scale.size if s.opset < 21 else 1
    return y * column(np.repeat(scale, each), x.ndim) + column(np.repeat(bias, each), x.ndim)


def by_root_mean_square(s, x, scale):
    axes = tuple(range(s.attributes.get("axis", -1) % x.ndim, x.ndim))
    return x / np.sqrt(np.square(x).mean(axes, keepdims=True) + s.attributes.get("epsilon", SINGLE)) * scale


def by_mean_and_variance(s, x):
    axes = tuple(s.attributes.get("axes", [0, 2, 3]))
    return (x - x.mean(axes, keepdims=True)) / (x.std(axes, keepdims=True) + 1e-9)


def by_norm(s, x):
    norm = np.linalg.norm if x.size else lambda x, p, axis, keepdims: np.ones(1)
    return x / norm(x, s.attributes.get("p", 2), axis=s.attributes.get("axis", -1), keepdims=True)


def by_neighbours(s, x):
    size, a = s.attributes["size"], s.attributes
    total = np.zeros_like(x)
    for c in range(x.shape[1]):
        near = x[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1]  # the odd neighbour is the one behind
        total[:, c] = np.square(near).sum(1)
    return x / (a.get("bias", 1.0) + a.get("alpha", float(np.float32(1e-4))) / size * total) ** a.get("beta", 0.75)


def negative_log_likelihood(s, x, of, weight=None):
    ignored = of == s.attributes["ignore_index"] if "ignore_index" in s.attributes else np.zeros(of.shape, bool)
    at = np.where(ignored, 0, of)
    picked = -np.take_along_axis(x, np.expand_dims(at, 1), 1)[:, 0]
    factor = np.where(ignored, 0, 1.0 if weight is None else weight[at])
    how = s.attributes.get("reduction", "mean")
    if how == "none":
        return picked * factor
    return np.sum(picked * factor) / (factor.sum() if how == "mean" else 1)


def cross_entropy(s, x, of, weight=None):
    shifted = x - x.max(1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return [negative_log_likelihood(s, logs, of, weight), logs][: s.outputs]


GENERATORS = {
    "InstanceNormalization": instance_normalization, "GroupNormalization": group_normalization,
    "RMSNormalization": rms_normalization, "MeanVarianceNormalization": mean_variance,
    "LpNormalization": lp_normalization, "LRN": local_response,
    "NegativeLogLikelihoodLoss": loss, "SoftmaxCrossEntropyLoss": loss,
}  # fmt: skip
OWN = {
    "InstanceNormalization": (PLAIN, by_instance),
    "GroupNormalization": (PLAIN, by_group),
    "RMSNormalization": (PLAIN, by_root_mean_square),
    "MeanVarianceNormalization": (PLAIN, by_mean_and_variance),
    "LpNormalization": (PLAIN, by_norm),
    "LRN": (PLAIN, by_neighbours),
    "NegativeLogLikelihoodLoss": (PLAIN, negative_log_likelihood),
    "SoftmaxCrossEntropyLoss": (PLAIN, cross_entropy),
}
