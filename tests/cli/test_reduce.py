"""lathe reduce: models and scripts made small by a command that goes on failing."""

import onnx
from onnx import TensorProto, helper


def chain(path, middle="Erf"):
    """Twelve nodes, one of them `middle`, and two outputs."""
    info = helper.make_tensor_value_info
    kinds = ["Relu", "Tanh", "Neg", "Abs", "Sigmoid", middle, "Tanh", "Neg", "Abs", "Exp", "Relu", "Neg"]
    nodes = [helper.make_node(kind, [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i, kind in enumerate(kinds)]
    graph = helper.make_graph(
        nodes, "g", [info("v0", TensorProto.FLOAT, ["n", 8])],
        [info("v12", TensorProto.FLOAT, ["n", 8]), info("v3", TensorProto.FLOAT, ["n", 8])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)


def test_a_model_of_one_node_is_left(lathe_cli, tmp_path):
    model, small = tmp_path / "chain.onnx", tmp_path / "chain.reduced.onnx"
    chain(model)
    said = lathe_cli("reduce", model, "--check", "grep -q Erf {model} && exit 3", timeout=300)
    assert str(small) in said.out and "exit code 3" in said.out
    left = onnx.load(small)
    onnx.checker.check_model(left)
    assert [node.op_type for node in left.graph.node] == ["Erf"]
    lathe_cli("verify", small, "--without-onnxruntime")


def test_a_command_of_our_own_is_the_check(lathe_cli, tmp_path):
    """The refusal of an operator that Lathe does not know: the message holds, names may change."""
    model, small = tmp_path / "chain.onnx", tmp_path / "small.onnx"
    chain(model)
    broken = onnx.load(model)
    broken.graph.node[5].op_type = "NoSuchOperator"
    onnx.save(broken, model)
    check = f"{lathe_cli.binary} compile {{model}} -o {tmp_path}/out.so --no-cache"
    lathe_cli("reduce", model, "--check", check, "-o", small, timeout=300)
    assert "NoSuchOperator" in [node.op_type for node in onnx.load(small).graph.node]
    assert len(onnx.load(small).graph.node) <= 6


def test_what_does_not_fail_is_refused(lathe_cli, tmp_path):
    chain(tmp_path / "chain.onnx")
    outcome = lathe_cli.fails("reduce", tmp_path / "chain.onnx", "--check", "true")
    assert "succeeds" in outcome.err
    lathe_cli.fails("reduce", tmp_path / "absent.onnx", "--check", "false")
