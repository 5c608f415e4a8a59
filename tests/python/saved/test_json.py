"""Programs saved as JSON are the same when they are loaded: what is shared, free or exact stays so."""

import base64
import json
import math
import struct

import numpy as np
import pytest

import lathe
from lathe import ir, tir
from lathe.script import relax as R
from lathe.script import tir as T

from . import programs

assert R  # scripts have it by its name


def again(thing):
    text = ir.save_json(thing)
    loaded = ir.load_json(text)
    assert ir.save_json(loaded) == text
    return loaded


def check(thing, map_free_vars=False):
    loaded = again(thing)
    assert type(loaded) is type(thing)
    ir.assert_structural_equal(loaded, thing, map_free_vars)
    return loaded


def test_the_programs_of_the_pass_tests():
    found = programs.of_passes()
    assert len(found) > 250
    refused = []
    for name, program in found.items():
        text = ir.save_json(program)
        try:
            loaded = ir.load_json(text)
        except lathe.Error:
            refused.append(name)  # as it would have been in its text
            with pytest.raises(lathe.Error):
                lathe.script.from_source(program.script())
            continue
        assert ir.save_json(loaded) == text, name
        ir.assert_structural_equal(loaded, program, map_free_vars=True)
        assert str(loaded) == str(program), name
    assert len(refused) < len(found) / 20, refused


def test_what_schedules_make():
    for module in programs.scheduled():
        assert str(check(module)) == str(module)
        check(module["main"])


def test_models():
    for module in programs.models():
        assert str(check(module)) == str(module)
    outputs = [str(lathe.compile(one).outputs) for one in (module, check(module))]
    assert outputs[0] == outputs[1]


def test_models_with_nearly_every_operator():
    modules = list(programs.of_the_suite())
    assert len(modules) > 400
    for module in modules:
        assert str(check(module)) == str(module)


def parts_of(node):
    parts = []
    tir.stmt_functor.post_order_visit(node, parts.append)
    return parts


def test_every_part_of_a_program_by_itself():
    for part in parts_of(list(programs.scheduled())[2]["main"]):
        check(part, map_free_vars=True)
    for function in programs.of_passes().values():
        if isinstance(function, tir.PrimFunc) and len(parts := parts_of(function)) < 60:
            for part in parts:
                check(part, map_free_vars=True)


def test_a_loaded_schedule_computes_the_same():
    module = again(list(programs.scheduled())[3])
    a, b = np.random.rand(2, 64, 64).astype("float32")
    c = np.zeros((64, 64), "float32")
    lathe.build(module)(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    schedule = tir.Schedule(module)
    assert len(schedule.get_loops("C_init")) == 4


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0, -1, 2**63 - 1, -(2**63), 0.0, 1.0, -1.5, 1e300, 5e-324, 1.0e20, 0.1, "", "float32",
        'a "quoted"\\ text\n', "\x00", "é 語 🙂", [], [1, [2.0, [None]]], {}, {"a": {"b": [True]}, "é": 1},
        {"min": None, "extent": None}, {"node": 3}, {"dtype": "no such"},
    ],
)  # fmt: skip
def test_plain_values(value):
    loaded = again(value)
    assert loaded == value and type(loaded) is type(value)


ODD_NAN = struct.unpack("<d", b"\1\0\0\0\0\0\xf4\xff")[0]


@pytest.mark.parametrize("value", [-0.0, math.inf, -math.inf, math.nan, ODD_NAN])
def test_floats_to_the_bit(value):
    for loaded in (again(value), again([value])[0], again(tir.FloatImm("float64", value)).value):
        assert struct.pack("<d", loaded) == struct.pack("<d", value)


def test_values_that_hold_programs():
    x = tir.Var("x", "int64")
    module = list(programs.scheduled())[0]
    loaded = again({"both": [x + 1, x], "module": (module, [module["main"]])})
    assert loaded["both"][0].a.same_as(loaded["both"][1])
    assert isinstance(loaded["module"][0], lathe.IRModule)
    assert loaded["module"][0]["main"].same_as(loaded["module"][1][0])
    compared = again(x == 1)
    assert isinstance(compared, tir.EQ)


def test_what_is_no_part_of_programs_is_refused():
    for stranger in (object(), {1: 2}, [object()], ir.Range(0, 4), np.zeros(3), 1j):
        with pytest.raises(TypeError):
            ir.save_json(stranger)
    with pytest.raises((ValueError, OverflowError)):
        ir.save_json(2**64)
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested more than 200 levels"):
        ir.save_json(endless)


def test_what_is_shared_stays_shared():
    x, y = tir.Var("x", "int32"), tir.Var("x", "int32")
    buffer = tir.decl_buffer((4,), "float32", "b")
    store = tir.BufferStore(buffer, tir.BufferLoad(buffer, [x]), [y])
    loaded = check(store, map_free_vars=True)
    assert loaded.buffer.same_as(loaded.value.buffer) and loaded.buffer.data.same_as(loaded.value.buffer.data)
    assert not loaded.value.indices[0].same_as(loaded.indices[0])
    assert not ir.structural_equal(loaded, store)  # its variables are others
    shared = x + 1
    twice = again(shared * shared)
    assert twice.a.same_as(twice.b)


def test_sharing_takes_no_time():
    expression = tir.Var("x", "int64")
    for _ in range(2000):
        expression = expression + expression
    check(expression, map_free_vars=True)


def test_deep_nesting():
    expression = tir.Var("x", "int64")
    for _ in range(4000):
        expression = expression + 1
    check(expression, map_free_vars=True)


def test_attributes_of_modules_and_functions():
    module = list(programs.scheduled())[0].with_attr("target", {"sizes": [1, 2.0, "x"], "none": None})
    module["main"] = module["main"].with_attr({"tir.noalias": True, "list": [tir.IntImm("int8", -3)]})
    loaded = check(module)
    assert loaded.attrs == module.attrs and loaded["main"].attrs["tir.noalias"] is True
    assert [name.name_hint for name in loaded.functions] == [name.name_hint for name in module.functions]


DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2", "uint2",
)  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype):
    for lanes in ("", "x4"):
        variable = check(tir.Var("x", dtype + lanes), map_free_vars=True)
        assert variable.dtype == dtype + lanes


def bits_of(dtype):
    if dtype.startswith(("float8", "float4", "bool")):
        return 4 if dtype.startswith("float4") else 8
    return int("".join(filter(str.isdigit, dtype)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_constants(dtype):
    size = (15 * bits_of(dtype) + 7) // 8
    for shape, count in (([3, 5], size), ([0, 7], 0)):
        data = base64.b64encode(np.random.default_rng(1).integers(0, 2, count, np.uint8).tobytes()).decode()
        row = ["tensor_data.TensorData", {"dtype": {"dtype": dtype}, "shape": shape, "data": data}]
        text = json.dumps({"format": "lathe", "version": 1, "nodes": [row], "root": {"node": 0}})
        tensor = ir.load_json(text)
        assert json.loads(ir.save_json(tensor)) == json.loads(text)
        check(tensor)
        assert tensor.dtype == dtype and tensor.shape == shape
        row[1]["data"] = base64.b64encode(b"\0" * (count + 1)).decode()
        wrong = json.dumps({"format": "lathe", "version": 1, "nodes": [row], "root": {"node": 0}})
        with pytest.raises(lathe.Error, match=f"takes {count} bytes, not {count + 1}"):
            ir.load_json(wrong)


def test_nodes_by_the_names_of_their_kinds():
    x = tir.Var("x", "int32")
    for key in ("tir.Add", "Add"):
        assert ir.structural_equal(ir.make_node(key, a=x, b=T.int32(1)), x + 1)
    loop = ir.make_node("tir.For", loop_var=x, min=0, extent=4, kind=0, body=tir.Evaluate(x))
    assert isinstance(loop, tir.For)
    assert ir.make_node("tir.IntImm", dtype="int8", value=3).value == 3
    for key, why in [("tir.Nothing", "no kind"), ("relax.Add", "no kind"), ("Var", "several kinds"), ("", "no kind")]:
        with pytest.raises(ValueError, match=why):
            ir.make_node(key)
    with pytest.raises(TypeError, match="no field 'c'"):
        ir.make_node("tir.Add", c=1)
    with pytest.raises(TypeError):
        ir.make_node("tir.Add", a=x)


def test_a_program_says_what_it_is():
    saved = json.loads(ir.save_json(T.int32(3) + tir.Var("x", "int32")))
    assert saved["format"] == "lathe" and saved["version"] == 1
    assert [kind for kind, _ in saved["nodes"]] == ["expr.IntImm", "expr.Var", "expr.Add"]
    assert saved["root"] == {"node": 2}
