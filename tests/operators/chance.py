"""Samples of the operators that draw random numbers; their statistics are checked, and that a seed repeats them.

The bounds are six standard deviations and more: a right program fails one sample in a hundred million.
"""

import numpy as np
from onnx import helper
from scipy import special

from tests.operators.sample import is_float

MANY = 2000


def seeded(d, attributes):
    return attributes | ({"seed": float(d.integer(0, 1000))} if d.chance(0.7) else {})


def large(d):
    shape = d.shape(0, 3, elements=200)
    return [*shape, MANY // max(int(np.prod(shape)), 1)] if d.chance(0.8) else shape


def bounds(d, normal):
    names = ("mean", "scale") if normal else ("low", "high")
    values = (d.choice([-2.0, 0.5]), d.choice([1.0, 3.0]))
    return {name: value for name, value in zip(names, values, strict=True) if d.chance(0.7)}


def plain(normal):
    def generate(d):
        dtype, attributes = d.dtype(), bounds(d, normal)
        if dtype != np.float32 or d.chance(0.5):
            attributes["dtype"] = helper.np_dtype_to_tensor_dtype(dtype)
        return d.sample([], attributes=seeded(d, attributes | {"shape": large(d) or [MANY]}), types=[dtype])

    return generate


def like(normal):
    def generate(d):
        x = d.array(large(d), d.dtype("T1"))
        attributes, dtype = bounds(d, normal), x.dtype
        if not is_float(dtype) or dtype.name.startswith("float8") or d.chance(0.5):
            dtype = d.dtype("T2")
            attributes["dtype"] = helper.np_dtype_to_tensor_dtype(dtype)
        return d.sample([x], attributes=seeded(d, attributes), types=[dtype])

    return generate


def bernoulli(d):
    """Chances of 0 and of 1 are certain."""
    x = d.array(large(d), d.dtype("T1"), 0, 1)
    x = np.where(x < 0.1, np.array(0, x.dtype), np.where(x > 0.9, np.array(1, x.dtype), x))
    attributes, dtype = {}, x.dtype
    if d.chance(0.7):
        dtype = d.dtype("T2")
        attributes["dtype"] = helper.np_dtype_to_tensor_dtype(dtype)
    return d.sample([x], attributes=seeded(d, attributes), types=[dtype])


def multinomial(d):
    x = d.array([d.integer(1, 3), d.integer(1, 5)], d.dtype("T1"), -2, 1)
    dtype = d.dtype("T2")
    attributes = {"sample_size": d.choice([1, 7, MANY])}
    if dtype != np.int32 or d.chance(0.5):
        attributes["dtype"] = helper.np_dtype_to_tensor_dtype(dtype)
    return d.sample([x], attributes=seeded(d, attributes), types=[dtype])


# What is said of an answer that cannot be.


def distance(values, distribution):
    """The largest difference between the shares of values below a bound and the distribution's (Kolmogorov)."""
    values = np.sort(values.astype(np.float64).ravel())
    expected, count = distribution(values), len(values)
    steps = np.arange(count + 1) / count
    return max(np.abs(steps[1:] - expected).max(), np.abs(steps[:-1] - expected).max())


def of_distribution(y, distribution):
    if not y.size:
        return None
    found, most = distance(y, distribution), 3.2 / np.sqrt(y.size) + (0.02 if y.dtype.itemsize < 4 else 0)
    return f"{found:.3f} off the distribution, at most {most:.3f}" if found > most else None


def normal(s, y):
    mean, scale = s.attributes.get("mean", 0.0), s.attributes.get("scale", 1.0)
    return of_distribution(y, lambda v: special.ndtr((v - mean) / scale))


def uniform(s, y):
    low, high = s.attributes.get("low", 0.0), s.attributes.get("high", 1.0)
    wide = y.astype(np.float64)
    rounding = 0 if y.dtype.itemsize > 2 else 0.02
    if y.size and not (low <= wide.min() and wide.max() <= high + rounding):
        return f"from {wide.min()} to {wide.max()}, wanted within [{low}, {high})"
    return of_distribution(y, lambda v: np.clip((v - low) / (high - low), 0, 1))


def of_chances(s, y):
    chance, met = s.inputs[0].astype(np.float64), y.astype(np.float64)
    if not np.isin(met, [0, 1]).all():
        return "other than 0 and 1"
    if (met[chance == 0] != 0).any() or (met[chance == 1] != 1).any():
        return "what is certain does not hold"
    off, deviation = abs((met - chance).sum()), np.sqrt((chance * (1 - chance)).sum())
    return f"{off} off the sum of chances, {deviation} a standard deviation" if off > 6 * deviation + 1e-3 else None


def of_classes(s, y):
    shares = special.softmax(s.inputs[0].astype(np.float64), 1)
    for row, share in zip(y, shares, strict=True):
        if not ((row >= 0) & (row < len(share))).all():
            return "a class that there is not"
        counts = np.array([(row == k).sum() for k in range(len(share))])
        if (np.abs(counts - len(row) * share) > 6 * np.sqrt(len(row) * share * (1 - share)) + 1).any():
            return f"counts {counts.tolist()} of shares {share.tolist()}"
    return None


def shape_of(s):
    if s.op == "Multinomial":
        return (s.inputs[0].shape[0], s.attributes["sample_size"])
    return tuple(s.attributes["shape"]) if "shape" in s.attributes else s.inputs[0].shape


def difference(sample, run):
    """None, or what is wrong with two runs, each compiled anew."""
    (y,), (again,) = run(), run()
    if y.dtype != sample.types[0] or y.shape != shape_of(sample):
        return f"{y.dtype}{list(y.shape)}, wanted {sample.types[0]}{list(shape_of(sample))}"
    if "seed" in sample.attributes and not np.array_equal(y, again):
        return "the same seed gave other numbers"
    return STATISTICS[sample.op](sample, y)


STATISTICS = {
    "RandomNormal": normal, "RandomNormalLike": normal, "RandomUniform": uniform, "RandomUniformLike": uniform,
    "Bernoulli": of_chances, "Multinomial": of_classes,
}  # fmt: skip
GENERATORS = {
    "RandomNormal": plain(True), "RandomNormalLike": like(True), "RandomUniform": plain(False),
    "RandomUniformLike": like(False), "Bernoulli": bernoulli, "Multinomial": multinomial,
}  # fmt: skip
