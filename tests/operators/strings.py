"""Samples of the operators that look into strings, and what they must answer."""

import re

import numpy as np

from tests.operators.sample import PLAIN, TEXT

# What the syntax of RE2 and that of Python's `re` say alike.
PATTERNS = ("", ".*", "a|b", "[a-z]*", r"\d+", r"-?\d+(\.\d+)?", "(ab?)*", r"\w+ \w+", "[^a]", "..")
SENTENCES = ("", "a", "a b", "  two  words ", "a,b,,c", ",", "naïve café", "日本 語", "A-b-C", "x--y")


def texts(d, shape, words=SENTENCES):
    return np.asarray(d.rng.choice(np.array(words, TEXT), shape), TEXT)


def concatenation(d):
    shape = d.shape(elements=400)
    a, b = d.array(d.broadcast(shape), d.dtype()), d.array(shape, TEXT)
    return d.sample([a, b] if d.chance(0.5) else [b, a])


def full_match(d):
    return d.sample([d.array(d.shape(elements=400), d.dtype("T1"))], attributes={"pattern": d.choice(PATTERNS)})


def split(d):
    x = d.array(d.shape(0, 3, elements=200), d.dtype("T1"))
    x = texts(d, x.shape)
    attributes = {"delimiter": d.choice(["", ",", "-", "--", "a"])} if d.chance(0.7) else {}
    if d.chance(0.4):
        attributes["maxsplit"] = d.integer(0, 2)
    return d.sample([x], attributes=attributes, outputs=2, types=[TEXT, np.dtype(np.int64)])


def normalization(d):
    """Changes of case are those that every locale has."""
    words = ("a", "B", "ab", "Ab", "", "the", "The", "x1")
    x = texts(d, [d.integer(1, 6)] if d.chance(0.6) else [1, d.integer(1, 6)], words)
    attributes = {}
    if d.chance(0.7):
        attributes["case_change_action"] = d.choice(["LOWER", "UPPER", "NONE"])
    if d.chance(0.6):
        attributes["is_case_sensitive"] = d.integer(0, 1)
    if d.chance(0.7):
        attributes["stopwords"] = [str(w) for w in d.rng.choice(np.array(words, TEXT), d.integer(1, 3))]
    return d.sample([x], attributes=attributes, types=[TEXT])


def category_mapper(d):
    count, source = d.integer(1, 5), d.dtype("T1")
    words = [str(w) for w in d.rng.permutation(np.array(SENTENCES, TEXT))[:count]]
    numbers = [int(n) for n in d.rng.permutation(9)[:count]]
    attributes = {"cats_strings": words, "cats_int64s": numbers}
    if d.chance(0.6):
        attributes |= {"default_string": "none", "default_int64": -7}
    shape = d.shape(0, 3, elements=100)
    x = texts(d, shape) if source == TEXT else d.rng.integers(0, 9, shape)
    result = np.dtype(np.int64) if source == TEXT else TEXT
    return d.sample([np.asarray(x, source)], attributes=attributes, types=[result])


# What they must answer.


def each(function, dtype):
    def evaluate(s, x):
        return np.array([function(s.attributes, v) for v in x.ravel().tolist()], dtype).reshape(x.shape)

    return evaluate


def parts(s, x):
    delimiter, most = s.attributes.get("delimiter") or None, s.attributes.get("maxsplit", -1)
    # What is left after the last split keeps no white space at its end. The specification does not say; ONNX Runtime
    # does so, the evaluator does not.
    lists = [(v if delimiter else v.rstrip()).split(delimiter, most) for v in x.ravel().tolist()]
    longest = max(map(len, lists), default=0)
    y = np.full([len(lists), longest], "", TEXT)
    for row, own in zip(y, lists, strict=True):
        row[: len(own)] = own
    return [y.reshape(*x.shape, longest), np.array([len(own) for own in lists], np.int64).reshape(x.shape)]


def normalized(s, x):
    a = s.attributes
    fold = (lambda v: v) if a.get("is_case_sensitive") else str.lower
    stopped = {fold(word) for word in a.get("stopwords", [])}
    change = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}[a.get("case_change_action", "NONE")]
    kept = [change(v) for v in x.ravel().tolist() if fold(v) not in stopped] or [""]
    return np.array(kept, TEXT).reshape([1] * (x.ndim - 1) + [-1])


def mapped(s, x):
    a = s.attributes
    if x.dtype == TEXT:
        of, default = dict(zip(a["cats_strings"], a["cats_int64s"], strict=True)), a.get("default_int64", -1)
    else:
        of, default = dict(zip(a["cats_int64s"], a["cats_strings"], strict=True)), a.get("default_string", "_Unused")
    return np.array([of.get(v, default) for v in x.ravel().tolist()], s.types[0]).reshape(x.shape)


GENERATORS = {
    "StringConcat": concatenation, "RegexFullMatch": full_match, "StringSplit": split,
    "StringNormalizer": normalization, "CategoryMapper": category_mapper,
}  # fmt: skip
OWN = {
    "StringConcat": (PLAIN, lambda s, a, b: np.asarray(a + b, TEXT)),
    "RegexFullMatch": (PLAIN, each(lambda a, v: re.fullmatch(a["pattern"], v) is not None, np.bool_)),
    "StringSplit": (PLAIN, parts), "StringNormalizer": (PLAIN, normalized), "CategoryMapper": (PLAIN, mapped),
}  # fmt: skip
