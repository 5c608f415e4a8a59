"""lathe verify --bisect, where nothing is wrong: what would name a pass is in src/driver/verify/bisect_test.cpp."""

import re

import onnx
from onnx import TensorProto, helper


def test_each_pass_is_switched_off_in_turn(lathe_cli, tmp_path):
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="r"), helper.make_node("Add", ["a", "x"], ["y"], name="s")]
    shape = ["n", 5]
    graph = helper.make_graph(nodes, "g", [info("x", TensorProto.FLOAT, shape)], [info("y", TensorProto.FLOAT, shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, tmp_path / "m.onnx")
    out = lathe_cli("verify", tmp_path / "m.onnx", "--bisect", "--without-onnxruntime", "--dim", "n=2").out
    rows = dict(re.findall(r"^(\w+) +(agrees|differs|does not compile)", out, re.MULTILINE))
    assert list(rows) == lathe_cli("opt", "--list").out.split()
    assert rows["fuse_ops"] == rows["schedule_functions"] == "agrees" and rows["legalize"] == "does not compile"
    assert "differs" not in rows.values()
    assert "first pass that differs" not in out and "comparisons agree" in out
