"""Tensors of strings through the whole path: compiled, saved, opened without the compiler, fed with arrays of str.

What moves strings is held against NumPy on arrays of objects; what looks into them against Python's own.
"""

import random
import re

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import lathe
from tests.support.artifacts import load_runtime_elsewhere

STRING, INT64, FLOAT, BOOL = TensorProto.STRING, TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL


def texts(*values, shape=None):
    array = np.array(values, dtype=object)
    return array if shape is None else array.reshape(shape)


WORDS = texts("b", "a", "", "ü", "b", "long enough to need memory of its own", shape=(2, 3))


def port(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, weights=(), opset=20):
    graph = helper.make_graph(nodes, "strings", inputs, outputs, [numpy_helper.from_array(v, n) for n, v in weights])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 4)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def compiled(proto, tmp_path):
    path = tmp_path / "strings.onnx"
    path.write_bytes(proto.SerializeToString())
    return lathe.compile(path)


def run_both_ways(proto, feeds, tmp_path):
    """The outputs in this process, which a saved artifact must give as well."""
    executable = compiled(proto, tmp_path)
    result = executable(*feeds)
    result = list(result) if isinstance(result, tuple) else [result]
    executable.save(tmp_path / "strings.so")
    saved = load_runtime_elsewhere(tmp_path / "strings.so", feeds)
    assert [np.asarray(x).tolist() for x in saved] == [np.asarray(x).tolist() for x in result]
    return result


MOVES = {
    "Identity": ({}, (), lambda x: x),
    "Reshape": ({}, [np.array([3, 2])], lambda x: x.reshape(3, 2)),
    "Transpose": ({"perm": [1, 0]}, (), lambda x: x.T),
    "Flatten": ({"axis": 0}, (), lambda x: x.reshape(1, 6)),
    "Squeeze": ({}, [np.array([], np.int64)], lambda x: x),
    "Unsqueeze": ({}, [np.array([0])], lambda x: x[None]),
    "Expand": ({}, [np.array([2, 2, 3])], lambda x: np.broadcast_to(x, (2, 2, 3))),
    "Tile": ({}, [np.array([2, 2])], lambda x: np.tile(x, (2, 2))),
    "Gather": ({"axis": 1}, [np.array([2, 0])], lambda x: x[:, [2, 0]]),
    "GatherND": ({}, [np.array([[1, 0], [0, 2]])], lambda x: x[[1, 0], [0, 2]]),
    "GatherElements": ({"axis": 1}, [np.array([[2], [1]])], lambda x: np.take_along_axis(x, np.array([[2], [1]]), 1)),
    "Slice": ({}, [np.array([1]), np.array([-10]), np.array([0]), np.array([-1])], lambda x: x[1::-1]),
    "Pad": ({}, [np.array([1, 0, 0, 1])], lambda x: np.pad(x, ((1, 0), (0, 1)), constant_values="")),
    "Concat": ({"axis": 0}, [texts("x", "y", "z", shape=(1, 3))], lambda x: np.vstack([x, texts("x", "y", "z")])),
    "ScatterND": (
        {},
        [np.array([[0, 1]]), texts("new")],
        lambda x: texts("b", "new", *x.reshape(-1)[2:], shape=(2, 3)),
    ),
    "Compress": ({"axis": 1}, [np.array([True, False, True])], lambda x: x[:, [0, 2]]),
}


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize("kind", list(MOVES))
def test_what_moves_elements_moves_strings(kind, symbolic, tmp_path):
    attributes, weights, meaning = MOVES[kind]
    expected = meaning(WORDS)
    weights = [(f"w{i}", w) for i, w in enumerate(weights)]
    node = helper.make_node(kind, ["x", *(name for name, _ in weights)], ["y"], **attributes)
    shape = ["n", "k"] if symbolic else list(WORDS.shape)
    proto = model([node], [port("x", STRING, shape)], [port("y", STRING, [None] * expected.ndim)], weights)
    [actual] = run_both_ways(proto, [WORDS], tmp_path)
    assert actual.dtype == object and actual.shape == expected.shape
    assert actual.tolist() == expected.tolist()


def test_equal_where_and_unique(tmp_path):
    nodes = [
        helper.make_node("Equal", ["x", "y"], ["same"]),
        helper.make_node("Where", ["same", "x", "y"], ["chosen"]),
        helper.make_node("Unique", ["x"], ["each", "first", "inverse", "counts"]),
        helper.make_node("Unique", ["x"], ["met"], sorted=0),
    ]
    outputs = [port("same", BOOL, [None, None]), port("chosen", STRING, [None, None]), port("each", STRING, [None])]
    outputs += [port(name, INT64, [None]) for name in ("first", "inverse", "counts")] + [port("met", STRING, [None])]
    proto = model(nodes, [port("x", STRING, ["n", 3]), port("y", STRING, [1, 3])], outputs)
    y = texts("b", "?", "", shape=(1, 3))
    same, chosen, each, first, inverse, counts, met = run_both_ways(proto, [WORDS, y], tmp_path)
    np.testing.assert_array_equal(same, WORDS == y)
    assert chosen.tolist() == np.where(WORDS == y, WORDS, y).tolist()
    wanted = np.unique(WORDS.reshape(-1).astype(str), return_index=True, return_inverse=True, return_counts=True)
    assert each.tolist() == wanted[0].tolist()
    np.testing.assert_array_equal(first, wanted[1])
    np.testing.assert_array_equal(inverse, wanted[2].reshape(-1))
    np.testing.assert_array_equal(counts, wanted[3])
    assert met.tolist() == list(dict.fromkeys(WORDS.reshape(-1)))


def test_split_concat_normalize_and_constants(tmp_path):
    nodes = [
        helper.make_node("Constant", [], ["mark"], value_string="!"),
        helper.make_node("StringSplit", ["x"], ["parts", "counts"], delimiter=" ", maxsplit=2),
        helper.make_node("StringConcat", ["parts", "mark"], ["loud"]),
        helper.make_node("StringNormalizer", ["x"], ["kept"], case_change_action="UPPER", stopwords=["a b"]),
    ]
    outputs = [port("loud", STRING, ["n", None]), port("counts", INT64, ["n"]), port("kept", STRING, [None])]
    x = texts("one two three four", "", "a b", "ß é")
    loud, counts, kept = run_both_ways(model(nodes, [port("x", STRING, ["n"])], outputs), [x], tmp_path)
    assert counts.tolist() == [3, 1, 2, 2]
    assert loud.tolist() == [
        ["one!", "two!", "three four!"],
        ["!", "!", "!"],
        ["a!", "b!", "!"],
        ["ß!", "é!", "!"],
    ]
    assert kept.tolist() == ["ONE TWO THREE FOUR", "", "ß É"]


def test_casts_there_and_back(tmp_path):
    nodes = [
        helper.make_node("Cast", ["x"], ["text"], to=STRING),
        helper.make_node("Cast", ["text"], ["again"], to=FLOAT),
        helper.make_node("Cast", ["again"], ["whole"], to=TensorProto.INT32),
        helper.make_node("Cast", ["whole"], ["digits"], to=STRING),
        helper.make_node("Cast", ["digits"], ["small"], to=TensorProto.INT8),
    ]
    outputs = [port("text", STRING, ["n"]), port("again", FLOAT, ["n"]), port("digits", STRING, ["n"])]
    outputs.append(port("small", TensorProto.INT8, ["n"]))
    proto = model(nodes, [port("x", FLOAT, ["n"])], outputs)
    x = np.array([1.5, -2.25e-20, 100.0, 3.4028235e38 * 0 + 7], np.float32)
    text, again, digits, small = run_both_ways(proto, [x], tmp_path)
    assert text.tolist() == [str(value) for value in x]
    np.testing.assert_array_equal(again, x)
    assert digits.tolist() == ["1", "0", "100", "7"]
    np.testing.assert_array_equal(small, [1, 0, 100, 7])
    executable = compiled(proto, tmp_path)
    with pytest.raises(lathe.Error, match="'300' is not a number that fits"):
        executable(np.array([300.0], np.float32))


def test_tables_of_strings(tmp_path):
    ml = {"domain": "ai.onnx.ml"}
    words = {"keys_int64s": [10, 20], "values_strings": ["A", "B"], "default_string": "?"}
    categories = {"cats_strings": ["b"], "cats_int64s": [5], "default_int64": -7}
    nodes = [
        helper.make_node("LabelEncoder", ["x"], ["number"], keys_strings=["a", "b"], values_int64s=[10, 20], **ml),
        helper.make_node("LabelEncoder", ["number"], ["word"], **words, **ml),
        helper.make_node("CategoryMapper", ["x"], ["mapped"], **categories, **ml),
        helper.make_node(
            "TfIdfVectorizer",
            ["x"],
            ["grams"],
            mode="TF",
            min_gram_length=1,
            max_gram_length=2,
            max_skip_count=0,
            pool_strings=["b", "a", "b", "a"],
            ngram_counts=[0, 2],
            ngram_indexes=[0, 1, 2],
        ),
    ]
    outputs = [port("number", INT64, ["n"]), port("word", STRING, ["n"]), port("mapped", INT64, ["n"])]
    proto = model(nodes, [port("x", STRING, ["n"])], [*outputs, port("grams", FLOAT, [3])])
    number, word, mapped, grams = run_both_ways(proto, [texts("b", "a", "", "b", "a")], tmp_path)
    assert number.tolist() == [20, 10, -1, 20, 10]
    assert word.tolist() == ["B", "A", "?", "B", "A"]
    assert mapped.tolist() == [5, -7, -7, 5, -7]
    assert grams.tolist() == [2, 2, 2]


def test_branches_loops_sequences_and_optionals(tmp_path):
    def constant(text, name):
        return helper.make_node("Constant", [], [name], value_strings=[text, text])

    then = helper.make_graph([constant("yes", "t")], "then", [], [port("t", STRING, [2])])
    otherwise = helper.make_graph([helper.make_node("Identity", ["x"], ["e"])], "else", [], [port("e", STRING, [2])])
    body = helper.make_graph(
        [
            helper.make_node("StringConcat", ["carried", "x"], ["next"]),
            helper.make_node("Identity", ["on"], ["goes_on"]),
        ],
        "body",
        [port("turn", INT64, []), port("on", BOOL, []), port("carried", STRING, [2])],
        [port("goes_on", BOOL, []), port("next", STRING, [2]), port("next", STRING, [2])],
    )
    nodes = [
        helper.make_node("If", ["c"], ["chosen"], then_branch=then, else_branch=otherwise),
        helper.make_node("Loop", ["turns", "", "chosen"], ["last", "rows"], body=body),
        helper.make_node("SequenceConstruct", ["chosen", "last"], ["both"]),
        helper.make_node("Optional", ["last"], ["maybe"]),
    ]
    outputs = [port("last", STRING, [2]), port("rows", STRING, [None, 2])]
    outputs.append(helper.make_tensor_sequence_value_info("both", STRING, [2]))
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(STRING, [2]))
    outputs.append(helper.make_value_info("maybe", optional))
    inputs = [port("c", BOOL, []), port("x", STRING, [2]), port("turns", INT64, [])]
    executable = compiled(model(nodes, inputs, outputs), tmp_path)
    for condition in (True, False):
        chosen = "yes" if condition else "x"
        last, rows, both, maybe = executable(np.array(condition), texts("x", ""), np.array(2))
        second = "yes" if condition else ""
        assert last.tolist() == [chosen + "xx", second]
        assert rows.tolist() == [[chosen + "x", second], [chosen + "xx", second]]
        assert [each.tolist() for each in both] == [[chosen, second], [chosen + "xx", second]]
        assert maybe.tolist() == last.tolist()


def test_sequences_of_strings_go_in(tmp_path):
    sequence = helper.make_tensor_sequence_value_info("s", STRING, ["n"])
    nodes = [helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)]
    executable = compiled(model(nodes, [sequence], [port("y", STRING, [None])]), tmp_path)
    assert executable([texts("a", "b"), np.array(["c"])]).tolist() == ["a", "b", "c"]


def test_bytes_that_are_no_text_come_back_as_bytes(tmp_path):
    proto = model([helper.make_node("Identity", ["x"], ["y"])], [port("x", STRING, ["n"])], [port("y", STRING, ["n"])])
    x = texts("plain", b"\xff\x00raw", "nul\0inside")
    assert compiled(proto, tmp_path)(x).tolist() == x.tolist()


def test_what_is_no_string_is_refused(tmp_path):
    proto = model([helper.make_node("Identity", ["x"], ["y"])], [port("x", STRING, [2])], [port("y", STRING, [2])])
    executable = compiled(proto, tmp_path)
    for wrong, message in [
        (np.zeros(2), "not an array of str"),
        (texts("a", 3), "element 1 of input 'x' is a int"),
        (None, "not an array of str"),
        (texts("a", "b", "c"), r"must have the shape \[2\]"),
        (texts("a", "\ud800"), "surrogates not allowed"),
    ]:
        with pytest.raises((TypeError, lathe.Error, UnicodeEncodeError), match=message):
            executable(wrong)
    assert executable(texts("a", "b")).tolist() == ["a", "b"]
    proto = model([helper.make_node("Add", ["x", "x"], ["y"])], [port("x", STRING, [2])], [port("y", STRING, [2])])
    with pytest.raises(lathe.Error, match="is string, but"):
        compiled(proto, tmp_path)


def test_strings_count_against_the_memory_limit(tmp_path):
    nodes = [helper.make_node("StringConcat", ["x", "x"], ["y"], name="twice")]
    executable = compiled(model(nodes, [port("x", STRING, ["n"])], [port("y", STRING, ["n"])]), tmp_path)
    x = texts(*(str(i) * 100 for i in range(2000)))
    with pytest.raises(lathe.Error, match="memory limit"):
        executable(x, limits=lathe.Limits(max_memory=200_000))
    assert executable(x)[7] == x[7] * 2


# ---- regular expressions ----


def matcher(pattern, tmp_path):
    nodes = [helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)]
    return compiled(model(nodes, [port("x", STRING, ["n"])], [port("y", BOOL, ["n"])]), tmp_path)


ATOMS = ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\W", "(?:ab|b)", "(a)", "ü", r"\b", "^", "$", "[[:digit:]x]", r"\x61"]


def random_pattern(rng, depth=3):
    if depth == 0:
        return rng.choice(ATOMS)
    kind = rng.randrange(5)
    if kind == 0:
        return "(" + random_pattern(rng, depth - 1) + "|" + random_pattern(rng, depth - 1) + ")"
    if kind == 1:
        return "(?:" + random_pattern(rng, depth - 1) + ")" + rng.choice(["*", "+", "?", "{2}", "{1,2}", "*?", "{0,}"])
    return random_pattern(rng, depth - 1) + random_pattern(rng, depth - 1)


def test_matches_are_pythons_on_random_expressions(tmp_path):
    rng = random.Random(7)
    both = 0
    for _ in range(60):
        pattern = random_pattern(rng)
        strings = ["".join(rng.choice("abü1 _") for _ in range(rng.randrange(6))) for _ in range(60)]
        # Python has no names of classes, and its \W and \b know letters beyond ASCII, which RE2's do not.
        python = re.compile(pattern.replace("[[:digit:]x]", "[0-9x]"), re.ASCII)
        expected = [python.fullmatch(text) is not None for text in strings]
        actual = matcher(pattern, tmp_path)(texts(*strings))
        assert actual.tolist() == expected, pattern
        both += 0 < sum(expected) < len(expected)
    assert both > 20


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"[\w.]+@(?P<host>\w+\.)+(?:com|org)", ["a.b@c.d.org"], ["a@b", "a@b.net"]),
        (r"(?i)strasse-\d{2,}k", ["STRASSE-12K", "stra\u017fse-123\u212a"], ["straße-12k", "strasse-1k"]),
        (r"(?s).*", ["a\nb", ""], []),
        (r".*", [""], ["a\nb"]),
        (r"(?m)^a$\n^b$", ["a\nb"], ["ab"]),
        (r"\Qa.b\E+", ["a.bb"], ["axb"]),
        (r"[]a-]+", ["]a-"], ["b"]),
        (r"a{,2}", ["a{,2}"], ["aa"]),
        (r"x*", ["", "x" * 100_000], ["x" * 100_000 + "y"]),
        (r"(x+x+)+y", ["xxy"], ["x" * 5_000]),
        (r"[^\x00-\x{10FFFF}]?", [""], ["a"]),
        (r"\pL", None, None),
        (r"(?=a)b", None, None),
        (r"(a)\1", None, None),
        (r"a**", None, None),
        (r"(", None, None),
        (r"a)", None, None),
        (r"[b-a]", None, None),
        (r"((a{1000}){1000}){1000}", None, None),
        (r"((((){1000}){1000}){1000}){1000}", None, None),
        (r"a{1001}", None, None),
        ("(" * 1000, None, None),
    ],
)
def test_expressions(pattern, yes, no, tmp_path):
    if yes is None:
        with pytest.raises(lathe.Error, match="the regular expression"):
            matcher(pattern, tmp_path)
        return
    assert matcher(pattern, tmp_path)(texts(*yes, *no)).tolist() == [True] * len(yes) + [False] * len(no)
