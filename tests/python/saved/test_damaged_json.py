"""Whatever a text holds, loading it gives a program or an error: nothing crashes, and what is loaded can be used."""

import copy
import itertools
import json
import random

import pytest

import lathe
from lathe import ir, tir

from . import programs

REFUSALS = (lathe.Error, TypeError, ValueError)


def saved(nodes, root=None, **other):
    return json.dumps({"format": "lathe", "version": 1, "nodes": nodes, "root": root, **other})


def var(name="x", dtype="int32"):
    return ["expr.Var", {"name": name, "dtype": {"dtype": dtype}, "is_size": False}]


def number(value, dtype="int32"):
    return ["expr.IntImm", {"dtype": {"dtype": dtype}, "value": value}]


def add(a, b):
    return ["expr.Add", {"a": {"node": a}, "b": {"node": b}}]


def tensor(dtype, shape, data=""):
    return ["tensor_data.TensorData", {"dtype": {"dtype": dtype}, "shape": shape, "data": data}]


def call(name, args, attributes=None):
    info = ["struct_info.TensorStructInfo", {"shape": None, "dtype": {"dtype": "float32"}, "ndim": 2}]
    callee = ["relax_expr.Op", {"name": name, "struct_info": None}]
    fields = {"callee": {"node": 1}, "args": args, "attributes": attributes}
    fields |= {"struct_info_args": [], "struct_info": None}
    given = ["relax_expr.Var", {"name": "x", "struct_info": {"node": 0}, "is_dataflow": False}]
    shape = ["relax_expr.Var", {"name": "s", "struct_info": None, "is_dataflow": False}]
    return [info, callee, shape, given, ["relax_expr.Call", fields]]


def test_the_texts_here_are_programs_but_for_what_is_wrong():
    assert str(ir.load_json(saved([var(), number(2), add(0, 1)], {"node": 2}))) == "x + 2"
    assert ir.load_json(saved([tensor("int8", [3], "AQID")], {"node": 0})).shape == [3]
    assert ir.load_json(saved(call("exp", [{"node": 3}]), {"node": 4})).callee.name == "exp"


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (saved([var()], {"node": 0})[:-5], "not JSON"),
        ("\x00", "not JSON"),
        ("[" * 1_000_000, "not JSON"),
        ('{"a":' * 1_000_000, "not JSON"),
        ("[" * 1_000_000 + "]" * 1_000_000, "is an object, not an array"),
        ("3", "is an object, not the number 3"),
        ("{}", "a saved program has 'format'"),
        ('{"format": "other"}', "no program that Lathe saved"),
        (saved([], version=0), "'version' is a positive integer"),
        (saved([], version="1"), "'version' is a positive integer"),
        (saved([], version=1.5), "'version' is a positive integer"),
        (saved([], version=2), "version 2 of the format is newer"),
        (saved({}), "'nodes' is a list, not an object"),
        ('{"format": "lathe", "version": 1, "nodes": []}', "'root': 'root' is missing|a saved program has 'root'"),
        (saved([], {"node": 0}), "'root': it refers to node 0, which does not stand before it"),
        (saved([], {"node": -1}), "the number of a node is an integer from 0"),
        (saved([], {"node": 1.0}), "the number of a node is an integer from 0"),
        (saved([], {"node": 2**64}), "the number of a node is an integer from 0"),
        (saved([], {"node": 2**64 - 1}), "does not stand before it"),
        (saved([], {"node": None}), "not a null"),
        (saved([], 2**63), "9223372036854775808 does not fit in 64 bits"),
        (saved([], {}), "one key stands for a value, not one with 0"),
        (saved([], {"node": 0, "map": 1}), "one key stands for a value, not one with 2"),
        (saved([], {"other": 1}), "no object with the key 'other' and the number 1"),
        (saved([], {"map": []}), "a 'map' is an object, not an array"),
        (saved([], {"dtype": "int99"}), "there is no dtype 'int99'"),
        (saved([], {"float": "nan"}), "16 digits in base 16"),
        (saved([], {"float": "-7ff00000000000"}), "16 digits in base 16"),
        (saved([], {"bytes": "_w=="}), "'bytes' stand in operators' attributes alone"),
        (saved([["attributes.StringsAttributes", {"texts": [{"bytes": "a"}], "shape": [1]}]]), "not in base 64"),
        (saved([], [json.loads("[" * 300 + "]" * 300)]), "nested more than 256 levels"),
        (saved([add(1, 1), var()]), r"node 0 \(expr.Add\): it refers to node 1"),
        (saved([var(), add(1, 1)]), r"node 1 \(expr.Add\): it refers to node 1"),
        (saved([3]), "node 0: a node is a list of its kind and its fields"),
        (saved([["expr.Add"]]), "node 0: a node is a list of its kind and its fields"),
        (saved([["expr.Nothing", {}]]), "there is no kind of nodes 'expr.Nothing'"),
        (saved([["expr.Add", {"a": 1}]]), r"node 0 \(expr.Add\): 'b' is missing"),
        (saved([["expr.Add", {"a": 1, "b": 2, "c": 3}]]), "there is no field 'c'"),
        (saved([["expr.Add", {"a": None, "b": 2}]]), "Add: 'a' takes an expression, not nothing"),
        (saved([var(), number(1, "int64"), add(0, 1)]), "Add of int32 and int64"),
        (saved([["stmt.Evaluate", {"value": 1}], add(0, 0)]), "Add: 'a' takes an expression, not a Evaluate"),
        (saved([["expr.Var", {"name": 3, "dtype": {"dtype": "int8"}, "is_size": False}]]), "'name' takes a string"),
        (saved([tensor("int8", [3], "AQI=")]), r"a int8 of shape \[3\] takes 3 bytes, not 2"),
        (saved([tensor("int8", [3], "AQ!D")]), "'data' is not in base 64"),
        (saved([tensor("int8", [3], 5)]), "'data' is text in base 64"),
        (saved([tensor("int8", [-1])]), "an integer from 0 to"),
        (saved([tensor("int8", [2**40, 2**40, 0])]), "a constant is too large"),
        (saved([tensor("int8", [2**62, 2**62])]), "an integer from 0 to"),
        (saved([tensor("handle", [1], "AQID")]), "a constant of handle"),
        (saved([tensor("void", [1])]), "a constant of void"),
        (saved([["relax_expr.Op", {"name": "no such", "struct_info": None}]]), "there is no operator 'no such'"),
        (saved([["relax_expr.Op", {"name": "exp"}]]), "'struct_info' is missing"),
        (saved(call("nn.softmax", [None])), "the operator 'nn.softmax' has SoftmaxAttributes, not none"),
        (saved(call("exp", [None])), "'exp' needs its argument"),
        (saved(call("exp", [{"node": 3}] * 2)), "'exp' takes at most 1 arguments, not 2"),
        (saved(call("call_tir", [{"node": 3}] * 2)), "call_tir takes a function of the module"),
        (saved(call("exp", [3])), "'args' takes a graph expression, not 3"),
        (saved(call("exp", 3)), "'args' takes a list, not 3"),
        (saved([["module.IRModule", {"functions": [["a", 3]], "attrs": {"map": {}}}]]), "'functions' takes function"),
    ],
    ids=itertools.count(),
)
def test_what_is_wrong_is_told(text, message):
    with pytest.raises(lathe.ModelError, match=message) as caught:
        ir.load_json(text)
    assert caught.value.diagnostics[0].code.startswith("driver-json")


def codes_of(text):
    with pytest.raises(lathe.Error) as caught:
        ir.load_json(text)
    return [diagnostic.code for diagnostic in caught.value.diagnostics]


def test_codes():
    assert codes_of("") == ["driver-json"]
    assert codes_of(saved([], version=2)) == ["driver-json-version"]


def test_a_module_is_checked_as_a_script_is():
    x = tir.Var("x", "int64")
    unbound = lathe.IRModule({"main": tir.PrimFunc([], tir.Evaluate(x + 1))})
    assert codes_of(ir.save_json(unbound))[0].startswith("tir-")
    assert codes_of(ir.save_json([unbound]))[0].startswith("tir-")


def test_what_unfolds_without_end_is_no_module():
    expression = tir.Var("x", "int64")
    for _ in range(200):
        expression = expression + expression
    text = ir.save_json(lathe.IRModule({"main": tir.PrimFunc([], tir.Evaluate(expression))}))
    with pytest.raises(lathe.ModelError, match="uses its parts too often"):
        ir.load_json(text)


# ---- damage at random ----

WORDS = [
    None, True, 0, -1, 7, 2**62, 2**63 - 1, -(2**63), 1.5, "", "x", "float32", [], [1], [None], {}, {"node": 0},
    {"node": 1}, {"node": 10**9}, {"dtype": "handle"}, {"dtype": "bool"}, {"dtype": "int8x16"}, {"dtype": "void"},
    {"map": {}}, {"float": "inf"}, {"bytes": "/w=="},
]  # fmt: skip


def places(thing, found):
    """Every (container, key) inside."""
    for key, item in thing.items() if isinstance(thing, dict) else enumerate(thing):
        found.append((thing, key))
        if isinstance(item, (dict, list)):
            places(item, found)
    return found


def damaged(rows, choose):
    rows = copy.deepcopy(rows)
    for _ in range(choose.choice((1, 1, 2, 4))):
        container, key = choose.choice(places(rows, []))
        what = choose.randrange(6)
        if what == 0:
            del container[key]
        elif what == 1 and isinstance(container[key], int):
            container[key] = max(0, container[key] + choose.choice((-2, -1, 1, 2)))
        elif what == 2 and isinstance(container, list):
            container.insert(key, copy.deepcopy(choose.choice(container)))
        elif what == 3:
            there, other = choose.choice(places(rows, []))
            container[key] = copy.deepcopy(there[other])
        elif what == 4 and key == "node" and isinstance(rows.get("nodes"), list) and rows["nodes"]:
            container[key] = choose.randrange(len(rows["nodes"]))
        else:
            container[key] = copy.deepcopy(choose.choice(WORDS))
    return rows


def use(loaded):
    """What a user might do at once with what was loaded; it may be refused."""
    try:
        ir.save_json(loaded)
        if isinstance(loaded, (ir.Node, lathe.IRModule)):
            ir.structural_equal(loaded, loaded)
            ir.structural_hash(loaded)
            str(loaded)
    except REFUSALS as error:
        assert not isinstance(error, lathe.errors.InternalError), error


def seeds():
    found = [program for program in programs.of_passes().values() if len(ir.save_json(program)) < 12000]
    modules = [lathe.IRModule({"main": one}) if isinstance(one, ir.BaseFunc) else one for one in found]
    return [json.loads(ir.save_json(one)) for one in [*list(programs.scheduled()), *modules[::2], *found[1::2]]]


@pytest.mark.parametrize("part", range(4))
def test_damage_at_random(part):
    choose = random.Random(part)
    all_rows, loaded_count = seeds(), 0
    for _ in range(600):
        text = json.dumps(damaged(choose.choice(all_rows), choose))
        try:
            loaded = ir.load_json(text)
        except lathe.Error as error:
            assert not isinstance(error, lathe.errors.InternalError), (str(error), text)
            continue
        loaded_count += 1
        use(loaded)
    assert loaded_count >= 10


def test_bytes_at_random():
    choose = random.Random(11)
    letters = '0123456789{}[]",:-.enodxyzé\x00'
    texts = [json.dumps(rows) for rows in seeds()]
    for _ in range(600):
        text = choose.choice(texts)
        at, size = choose.randrange(len(text)), choose.choice((0, 1, 1, 5))
        text = text[:at] + "".join(choose.choice(letters) for _ in range(size)) + text[at + 1 :]
        try:
            use(ir.load_json(text if choose.randrange(4) else text[:at]))
        except lathe.Error as error:
            assert not isinstance(error, lathe.errors.InternalError), (str(error), text)
