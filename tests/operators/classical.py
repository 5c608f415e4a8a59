"""Samples of classical models and of steps of training, and what they must answer."""

import math

import numpy as np
from onnx import TensorProto, numpy_helper
from scipy import special

from tests.operators.sample import DTYPES, PLAIN, is_float

SINGLE = np.dtype(np.float32)


def quarters(d, shape, dtype, low=-3, high=3):
    """Values that come several times, exact in every dtype."""
    x = d.rng.integers(4 * low, 4 * high + 1, shape) / 4
    return np.asarray(x if is_float(dtype) else np.trunc(x)).astype(dtype)


def feature_extractor(d):
    shape = d.shape(1, 3, zero=0, elements=400)
    x = d.array(shape, d.dtype())
    count = d.integer(1, 5)
    indices = d.rng.integers(0, shape[-1], [1, count] if d.chance(0.5) else [count]).astype(np.int64)
    return d.sample([x, indices], constants={1} if d.chance(0.5) else set(), types=[x.dtype])


def binarizer(d):
    x = quarters(d, d.shape(), d.dtype())
    return d.sample([x], attributes={"threshold": d.choice([0.5, -1.0, 0.1])} if d.chance(0.7) else {})


def imputer(d):
    shape = d.shape(1, 2)
    x = quarters(d, shape, d.dtype())
    count = shape[-1] if d.chance(0.5) and shape[-1] else 1
    if not is_float(x.dtype):
        attributes = {"imputed_value_int64s": [d.integer(-9, 9) for _ in range(count)]}
        return d.sample([x], attributes=attributes | {"replaced_value_int64": d.integer(-2, 2)})
    old = d.choice([0.25, -1.5, math.nan])
    if math.isnan(old) and x.size:
        x.flat[d.integer(0, x.size - 1)] = math.nan
    attributes = {"imputed_value_floats": [float(v) for v in d.array([count], SINGLE)]}
    return d.sample([x], attributes=attributes | {"replaced_value_float": old})


def normalizer(d):
    x = quarters(d, d.shape(1, 2), d.dtype())
    attributes = {"norm": d.choice(["MAX", "L1", "L2"])} if d.chance(0.8) else {}
    return d.sample([x], attributes=attributes, terms=16, types=[SINGLE])


def scaler(d):
    shape = d.shape(1, 2, zero=0)
    x = d.array(shape, d.dtype())
    attributes = {}
    for name in ("offset", "scale"):
        if d.chance(0.8):
            attributes[name] = [float(v) for v in d.array([d.choice([1, shape[-1]])], SINGLE)]
    return d.sample([x], attributes=attributes, terms=2, types=[SINGLE])


# The attribute that holds keys or values of each type, before opset 4 and from then on; others are tensors.
LISTS = {"int64": "int64s", "float": "floats", "string": "strings"}


def label_encoder(d):
    d.opset = max(d.opset, 2)  # the first release has other attributes
    names = [*LISTS, "int32", "int16", "double"] if d.opset >= 4 else list(LISTS)
    keys_of, values_of = (DTYPES[d.choice(names)] if d.opset < 4 else d.dtype(p) for p in ("T1", "T2"))
    count, attributes = d.integer(1, 6), {}
    keys, values = d.array([count], keys_of, -4, 4), d.array([count], values_of, -90, 90)
    for what, data in (("keys", keys), ("values", values)):
        name = next(name for name, dtype in DTYPES.items() if dtype == data.dtype)
        if name in LISTS and (d.opset < 4 or d.chance(0.6)):
            attributes[f"{what}_{LISTS[name]}"] = data.tolist()
        else:
            attributes[f"{what}_tensor"] = numpy_helper.from_array(data)
    if d.chance(0.6):
        value = d.array([1], values_of, 1, 9)
        if d.opset >= 4 and (values_of.name not in ("int64", "float32", "object") or d.chance(0.5)):
            attributes["default_tensor"] = numpy_helper.from_array(value)
        else:
            kind = {"i": "int64", "f": "float", "O": "string"}[values_of.kind]
            attributes[f"default_{kind}"] = value.item()
    shape = d.shape(0, 3, elements=200)
    x = d.rng.choice(np.concatenate([keys, d.array([4], keys_of, -4, 4)]), shape)
    return d.sample([np.asarray(x, keys_of)], attributes=attributes, types=[values_of])


# ---- trees ----


def grow(d, forest, depth, features):
    """Appends a subtree and gives (place, whether it is a leaf)."""
    if depth == 0 or d.chance(0.3):
        forest["weights"].append(d.integer(-12, 12) / 4)
        forest["targets"].append(d.integer(0, forest["n"] - 1))
        return len(forest["weights"]) - 1, 1
    node = len(forest["nodes"])
    forest["nodes"].append(None)
    mode = d.choice([0, 1, 2, 3, 4, 5, 6])
    members = [d.integer(-8, 8) / 4 for _ in range(d.integer(1, 3))] if mode == 6 else []
    ends = [grow(d, forest, depth - 1, features) for _ in range(2)]
    split = 0.0 if mode == 6 else d.integer(-8, 8) / 4
    forest["nodes"][node] = (d.integer(0, features - 1), mode, split, members, d.integer(0, 1), *ends)
    return node, 0


def tree_ensemble(d):
    dtype, features, rows = d.dtype(), d.integer(1, 5), d.integer(0, 9)
    forest, roots = {"weights": [], "targets": [], "nodes": [], "n": d.integer(1, 3)}, []
    for _ in range(d.integer(1, 4)):
        place, is_leaf = grow(d, forest, d.integer(1, 4), features)
        if is_leaf:  # a tree that is a leaf is a node whose branches are that leaf
            forest["nodes"].append((0, 0, 0.0, [], 0, (place, 1), (place, 1)))
            place = len(forest["nodes"]) - 1
        roots.append(place)
    feature, modes, splits, members, missing, true, false = zip(*forest["nodes"], strict=True)
    sets = [v for own, mode in zip(members, modes, strict=True) if mode == 6 for v in (*own, math.nan)]
    attributes = {
        "n_targets": forest["n"], "tree_roots": roots, "nodes_featureids": list(feature),
        "nodes_modes": numpy_helper.from_array(np.array(modes, np.uint8)),
        "nodes_splits": numpy_helper.from_array(np.array(splits, dtype)),
        "nodes_truenodeids": [place for place, _ in true], "nodes_trueleafs": [leaf for _, leaf in true],
        "nodes_falsenodeids": [place for place, _ in false], "nodes_falseleafs": [leaf for _, leaf in false],
        "leaf_targetids": forest["targets"],
        "leaf_weights": numpy_helper.from_array(np.array(forest["weights"], dtype)),
    }  # fmt: skip
    if sets:
        attributes["membership_values"] = numpy_helper.from_array(np.array(sets, dtype))
    if d.chance(0.6):
        attributes["nodes_missing_value_tracks_true"] = list(missing)
    if d.chance(0.6):
        attributes["aggregate_function"] = d.integer(0, 3)
    if d.chance(0.5):
        attributes["post_transform"] = d.integer(0, 2)
    x = quarters(d, [rows, features], dtype, -2, 2)
    x = np.where(d.rng.random(x.shape) < 0.1, np.array(math.nan, dtype), x)
    s = d.sample([x], attributes=attributes, types=[dtype], terms=8)
    s.symbolic.pop((0, 1), None)
    return s


def ngrams(d):
    """Grams of one to three elements over few values, several in one column."""
    dtype = d.dtype()
    values = d.array([4], dtype, -5, 5)
    values = np.unique(values)
    pool, counts, total = [], [], 0
    longest = d.integer(1, 3)
    for n in range(1, longest + 1):
        counts.append(len(pool))
        grams = {tuple(d.rng.choice(values, n).tolist()) for _ in range(d.integer(1, 3))}
        for gram in sorted(grams):
            pool += gram
            total += 1
    columns = [int(c) for c in d.rng.permutation(total)]
    least = d.integer(1, longest)
    attributes = {
        "mode": d.choice(["TF", "IDF", "TFIDF"]), "min_gram_length": least,
        "max_gram_length": d.integer(least, longest),
        "max_skip_count": d.integer(0, 2), "ngram_counts": counts, "ngram_indexes": columns,
    }  # fmt: skip
    attributes["pool_strings" if dtype.kind == "O" else "pool_int64s"] = pool
    if d.chance(0.6):
        attributes["weights"] = [d.integer(1, 12) / 4 for _ in range(total)]
    shape = [d.integer(0, 9)] if d.chance(0.5) else [d.integer(1, 3), d.integer(1, 9)]
    x = np.asarray(d.rng.choice(values, shape)).astype(dtype)
    return d.sample([x], attributes=attributes, types=[SINGLE])


# ---- steps of training ----


def training_step(moments):
    def generate(d):
        dtype, count = d.dtype("T3"), d.integer(1, 3)
        shapes = [d.shape(0, 3, elements=300) for _ in range(count)]
        weights, gradients = ([d.array(shape, dtype) for shape in shapes] for _ in range(2))
        kept = [d.array(shape, dtype, 0.1, 3) for _ in range(moments) for shape in shapes]
        rate, step = np.array(0.1, d.dtype("T1")), np.array(d.integer(0, 5), np.int64)
        attributes = OPTIMISERS[d.op](d)
        inputs = [rate, step, *weights, *gradients, *kept]
        types = [dtype] * (count * (1 + moments))
        s = d.sample(inputs, attributes=attributes, outputs=len(types), types=types, terms=4, symbolic=False)
        s.coarsest = SINGLE
        return s

    return generate


def some(d, **ranges):
    return {n: float(np.float32(d.rng.uniform(*limits))) for n, limits in ranges.items() if d.chance(0.6)}


OPTIMISERS = {
    "Momentum": lambda d: {
        "alpha": 0.9, "beta": 0.7, "norm_coefficient": 0.01, "mode": d.choice(["standard", "nesterov"]),
    },
    "Adagrad": lambda d: some(d, norm_coefficient=(0, 0.1), decay_factor=(0, 0.5), epsilon=(1e-4, 1e-2)),
    "Adam": lambda d: some(d, alpha=(0.5, 0.95), beta=(0.5, 0.99), norm_coefficient=(0, 0.1), epsilon=(1e-4, 1e-2),
                           norm_coefficient_post=(0, 0.1)),
}  # fmt: skip


# What they must answer.


def features_of(s, x, indices):
    y = np.take(x, indices.reshape(-1), -1)
    return y[None] if x.ndim == 1 else y


def imputed(s, x):
    if is_float(x.dtype):
        old, new = s.attributes["replaced_value_float"], s.attributes["imputed_value_floats"]
        return np.where(np.isnan(x) if math.isnan(old) else x == old, np.array(new), x)
    return np.where(x == s.attributes["replaced_value_int64"], np.array(s.attributes["imputed_value_int64s"]), x)


def of_length_one(s, x):
    x, norm = x.astype(np.float64), s.attributes.get("norm", "MAX")
    by = {"MAX": np.abs(x).max(-1, initial=0), "L1": np.abs(x).sum(-1), "L2": np.sqrt((x * x).sum(-1))}[norm][..., None]
    return np.where(by == 0, x, x / np.where(by == 0, 1, by))


def scaled(s, x):
    return (x - np.array(s.attributes.get("offset", [0.0]))) * np.array(s.attributes.get("scale", [1.0]))


def attribute_values(s, what):
    for name, value in s.attributes.items():
        if name.startswith(f"{what}_"):
            return numpy_helper.to_array(value).tolist() if isinstance(value, TensorProto) else value
    return None


def encoded(s, x):
    keys, values, default = (attribute_values(s, what) for what in ("keys", "values", "default"))
    dtype = s.types[0]
    default = {"i": -1, "f": -0.0, "O": "_Unused"}[dtype.kind] if default is None else default
    default = default[0] if isinstance(default, list) else default
    of = dict(zip(keys, values, strict=True))
    return np.array([of.get(v, default) for v in x.ravel().tolist()], dtype).reshape(x.shape)


COMPARED = [np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal]


def descended(s, x):
    a = {n: numpy_helper.to_array(v).tolist() if isinstance(v, TensorProto) else v for n, v in s.attributes.items()}
    members, sets = iter(a.get("membership_values", [])), {}
    for node, mode in enumerate(a["nodes_modes"]):
        if mode == 6:
            sets[node] = own_set(members)
    missing = a.get("nodes_missing_value_tracks_true", [0] * len(a["nodes_modes"]))

    def leaf_of(row, node):
        while True:
            value = row[a["nodes_featureids"][node]]
            if node in sets:
                goes = value in sets[node]
            else:
                goes = COMPARED[a["nodes_modes"][node]](value, a["nodes_splits"][node])
            goes = goes or (missing[node] and math.isnan(value))
            side = "true" if goes else "false"
            place = a[f"nodes_{side}nodeids"][node]
            if a[f"nodes_{side}leafs"][node]:
                return place
            node = place

    least, most = (float(f(np.finfo(s.dtype))) for f in (lambda i: i.min, lambda i: i.max))
    y, how = np.zeros((len(x), a["n_targets"])), a.get("aggregate_function", 1)
    for row in range(len(x)):
        met = [leaf_of(x[row], root) for root in a["tree_roots"]]
        for target in range(a["n_targets"]):
            own = [a["leaf_weights"][leaf] for leaf in met if a["leaf_targetids"][leaf] == target]
            total = [sum(own) / len(met), sum(own), min(own, default=most), max(own, default=least)]
            y[row, target] = total[how]
    return transformed(a.get("post_transform", 0), y)


def own_set(members):
    own = []
    for value in members:
        if math.isnan(value):
            break
        own.append(value)
    return own


def transformed(how, y):
    if how == 1:
        return special.softmax(y, -1)
    if how == 2:
        return special.expit(y)
    if how == 3:  # of the elements other than 0, which stay 0
        e = np.where(y == 0, 0, np.exp(y - y.max(-1, keepdims=True, initial=-np.inf)))
        return e / np.where(e.sum(-1, keepdims=True) == 0, 1, e.sum(-1, keepdims=True))
    return y


def grams_counted(s, x):
    a = s.attributes
    pool, starts = a.get("pool_int64s", a.get("pool_strings")), [*a["ngram_counts"]]
    grams = []
    for n, start in enumerate(starts, 1):
        end = starts[n] if n < len(starts) else len(pool)
        grams += [tuple(pool[k : k + n]) for k in range(start, end, n)]
    y = np.zeros((*x.shape[:-1], max(a["ngram_indexes"]) + 1))
    for row in np.ndindex(x.shape[:-1]):
        words = x[row].tolist()
        for gram, column in zip(grams, a["ngram_indexes"], strict=True):
            n = len(gram)
            if not a["min_gram_length"] <= n <= a["max_gram_length"]:
                continue
            for step in range(1, (a["max_skip_count"] if n > 1 else 0) + 2):
                for first in range(len(words) - (n - 1) * step):
                    y[(*row, column)] += tuple(words[first : first + (n - 1) * step + 1 : step]) == gram
    y = np.minimum(y, 1) if a["mode"] == "IDF" else y
    return y * np.array(a.get("weights", 1.0)) if a["mode"] != "TF" else y


def stepped(moments, rule):
    def evaluate(s, rate, step, *rest):
        count = len(rest) // (2 + moments)
        lists = [rest[k * count : (k + 1) * count] for k in range(2 + moments)]
        results = [rule(s.attributes, float(rate), int(step), *parts) for parts in zip(*lists, strict=True)]
        return [y for part in zip(*results, strict=True) for y in part]

    return evaluate


def momentum(a, rate, step, x, g, v):
    g = a["norm_coefficient"] * x + g
    v = a["alpha"] * v + (a["beta"] if step > 0 else 1) * g
    return x - rate * (g + a["alpha"] * v if a["mode"] == "nesterov" else v), v


def small(a):
    return a.get("epsilon", float(np.float32(1e-6)))


def adagrad(a, rate, step, x, g, h):
    g = a.get("norm_coefficient", 0) * x + g
    h = h + g * g
    return x - rate / (1 + step * a.get("decay_factor", 0)) * g / (np.sqrt(h) + small(a)), h


def adam(a, rate, step, x, g, v, h):
    alpha, beta = (a.get(n, float(np.float32(default))) for n, default in (("alpha", 0.9), ("beta", 0.999)))
    g = a.get("norm_coefficient", 0) * x + g
    v, h = alpha * v + (1 - alpha) * g, beta * h + (1 - beta) * g * g
    rate = rate * math.sqrt(1 - beta**step) / (1 - alpha**step) if step > 0 else rate
    return (1 - a.get("norm_coefficient_post", 0)) * (x - rate * v / (np.sqrt(h) + small(a))), v, h


GENERATORS = {
    "ArrayFeatureExtractor": feature_extractor, "Binarizer": binarizer, "Imputer": imputer, "Normalizer": normalizer,
    "Scaler": scaler, "LabelEncoder": label_encoder, "TreeEnsemble": tree_ensemble, "TfIdfVectorizer": ngrams,
    "Momentum": training_step(1), "Adagrad": training_step(1), "Adam": training_step(2),
}  # fmt: skip
OWN = {
    "ArrayFeatureExtractor": (PLAIN, features_of),
    "Binarizer": (PLAIN, lambda s, x: x > s.attributes.get("threshold", 0.0)),
    "Imputer": (PLAIN, imputed), "Normalizer": (PLAIN, of_length_one), "Scaler": (PLAIN, scaled),
    "LabelEncoder": (PLAIN, encoded), "TreeEnsemble": (PLAIN, descended), "TfIdfVectorizer": (PLAIN, grams_counted),
    "Momentum": (PLAIN, stepped(1, momentum)), "Adagrad": (PLAIN, stepped(1, adagrad)),
    "Adam": (PLAIN, stepped(2, adam)),
}  # fmt: skip
EXACT = {"ArrayFeatureExtractor", "Binarizer", "Imputer", "LabelEncoder"}
